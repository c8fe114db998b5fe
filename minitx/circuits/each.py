"""Path patching into every receiver of a name, one at a time, those of a layer side by side.

N pairs of texts, L layers, H heads, R receivers of a layer.
"""

import numpy as np


def named(graph, receiver):
    """All receivers of a name that is given alone, as {node: its index}; none if it is none."""
    index = {}
    for node in graph.receivers:
        if node.name == receiver and node.layer is not None:
            _, layer, head = node
            index[node] = (layer,) if head is None else (layer, head)
    return index


def one_by_one(runs, senders, receivers, base, trace, changed):  # {node: index} -> [N L H]
    """The measure of runs in which one receiver at a time reads these changes {Place: [N T D]}.

    They are of these senders. Where none is read it is that of the base run.
    """
    values = _unchanged(runs, receivers, trace)
    layers = dict.fromkeys(node.layer for node in receivers)
    for layer in layers:
        nodes = [node for node in receivers if node.layer == layer]
        if not any(runs.graph.reaches(sender, nodes[0]) for sender in senders):
            continue
        measured = _side_by_side(runs, nodes, base, trace, changed)
        for node, value in zip(nodes, measured):
            values[:, *receivers[node]] = value
    return values


def _unchanged(runs, receivers, trace):  # -> [N L H]
    """The measure of the base run, for each receiver."""
    own = runs.number.values(trace["logits"])
    last = np.max([*receivers.values()], axis=0)
    values = np.empty((len(own), *(last + 1)))
    values.T[:] = own
    return values


def _side_by_side(runs, nodes, base, trace, changed):  # -> [R N]
    """The measure of as many runs as receivers of a layer: one of them reads in each."""
    graph = runs.graph
    N = len(base.batch.tokens)
    R = len(nodes)
    stream = runs.stream(nodes[0], trace, changed)
    angle = graph.angle(nodes[0], trace)
    values = []
    for node in nodes:
        value = graph.value(node, stream, base.batch.valid, angle)
        values.append(value)
    tiled = np.tile(np.arange(N), R)
    texts = base.rows(tiled)
    number = runs.number.rows(tiled)
    edits = _edits(nodes, values, N)
    outcome = texts.run(graph.model, "logits", edits)
    measured = number.values(outcome["logits"])
    return measured.reshape(R, N)


def _edits(nodes, values, N):
    """The edit that puts each receiver's value into its own N rows."""
    name, layer, head = nodes[0]
    if head is None:
        return {(f"{name}_out", layer): values[0]}

    def edit(x):
        rows = slice(0, N)
        for node, value in zip(nodes, values):
            x[rows, node.head] = value
            rows = slice(rows.stop, rows.stop + N)
        return x

    return {(name, layer): edit}
