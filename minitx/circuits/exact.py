"""Exact effects of all edges, or nodes: each is patched by itself, clean into corrupt.

The estimates of edges.py are compared with them. N pairs of texts, S senders.
"""

import numpy as np

from .patching import patched_values
from .stream import EMBEDDINGS, POINT_OF


def exact_edges(runs, pairs, traces):  # -> {(sender, receiver): [N]}
    """The measure of corrupt runs in which one edge is clean; the senders of a step at once."""
    clean, corrupt = traces
    graph, values = runs.graph, {}
    by_place = {}
    for sender, place in graph.senders.items():
        by_place.setdefault(place, []).append(sender)
    for place, senders in by_place.items():
        more = [graph.more(sender, clean, corrupt) for sender in senders]
        changed = {place: np.stack(more)}
        for receiver in graph.receivers:
            if not graph.reaches(senders[0], receiver):
                continue
            y = runs.values([receiver], pairs.corrupt, corrupt, changed)
            for sender, of_edge in zip(senders, y):
                values[sender, receiver] = of_edge
    return values


def exact_nodes(runs, pairs, traces):  # -> {sender: [N]}
    """The measure of corrupt runs in which one node is clean."""
    graph, clean = runs.graph, traces[0]
    groups = [_pieces(graph, node, clean) for node in graph.senders]
    values = {}
    for group in groups:
        for key, _ in group:
            values[key] = clean[key]
    y = patched_values(runs.later, groups, pairs.corrupt, traces[1], values)
    return dict(zip(graph.senders, y.T))


def _pieces(graph, node, trace):
    """What is patched for a node: (key, index of its second axis)."""
    if node.layer is None:
        stack = graph.stack_of(graph.senders[node])
        keys = [stack.key(name) for name in EMBEDDINGS.values()]
    else:
        keys = [(POINT_OF[node.name], node.layer)]
    if node.head is not None:
        return [(keys[0], node.head)]
    pieces = []
    for key in keys:
        if key in trace:
            pieces += [(key, i) for i in range(trace[key].shape[1])]
    return pieces
