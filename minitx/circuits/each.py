"""Path patching for every sender, or receiver, of a name, one at a time: a layer's side by side.

N pairs of texts, L layers, H heads, R receivers of a layer, S senders of a layer.
"""

import numpy as np


def named(nodes, given):
    """All nodes of a name that is given alone, as {node: its index}; none if it is none."""
    index = {}
    for node in nodes:
        if node.name == given and node.layer is not None:
            _, layer, head = node
            index[node] = (layer,) if head is None else (layer, head)
    return index


def receiver_by_receiver(runs, paths, base, trace, changed):  # -> [N L H]
    """The measure of runs in which one receiver at a time reads these changes {Place: [N T D]}.

    They are of the senders. Where none is read it is that of the base run.
    """
    senders, receivers = paths.senders, paths.each_receiver
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


def sender_by_sender(runs, paths, base, trace, donor):  # -> [N L H]
    """The measure of runs in which receivers read what one sender at a time writes in the donor's.

    Where no receiver reads it, it is that of the base run.
    """
    graph, senders, receivers = runs.graph, paths.each_sender, paths.receivers
    values = _unchanged(runs, senders, trace)
    by_place = {}
    for node in senders:
        if any(graph.reaches(node, receiver) for receiver in receivers):
            by_place.setdefault(graph.senders[node], []).append(node)
    for place, nodes in by_place.items():
        more = np.stack([graph.more(node, donor, trace) for node in nodes])
        measured = runs.values(receivers, base, trace, {place: more})
        for node, value in zip(nodes, measured):
            values[:, *senders[node]] = value
    return values


def _unchanged(runs, nodes, trace):  # -> [N L H]
    """The measure of the base run, for each node."""
    own = runs.number.values(trace["logits"])
    last = np.max([*nodes.values()], axis=0)
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
    values = graph.values(nodes, stream, base.batch.valid, angle)
    pairs = np.arange(N)
    rows = np.tile(pairs, R)
    edits = _edits(nodes, values, N)
    measured = runs.later.values(base.rows(rows), rows, nodes[0].layer, trace, edits)
    return measured.reshape(R, N)


def _edits(nodes, values, N):
    """The edit that puts each receiver's value into its own N rows."""
    name, layer, head = nodes[0]
    if head is None:
        return {(f"{name}_out", layer): lambda x: values[0]}

    def edit(x):
        rows = slice(0, N)
        for node, value in zip(nodes, values):
            x[rows, node.head] = value
            rows = slice(rows.stop, rows.stop + N)
        return x

    return {(name, layer): edit}
