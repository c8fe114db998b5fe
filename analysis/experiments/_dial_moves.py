"""Attention and loss when the positions that one attention layer reads are moved.

l layers, S shifts, H heads, n ordinary places, R = 2 (REACH + largest shift) + 1 offsets, K shifts
of the loss.
"""

import numpy as np

from ..maths import moves, profiles
from ..measures import later_layers, position_parts


def attention(model, r, move, shifts, places, rng):
    """Mean attention by offset of a layer at every shift, and with random moves: [S+1 H R].

    The last row is the null: every key (or query) is moved by a shift drawn for it alone.
    """
    wide = profiles.REACH + shifts[-1]
    n = len(r.positions)
    ways = [*shifts, rng.choice(shifts[shifts != 0], n)]
    own_q, own_k = (x(model, r.layer, r.x) for x in (position_parts.queries, position_parts.keys))
    by_shift = []
    for s in ways:
        q, k = queries_keys(model, r, move, s, own_q, own_k)
        queries = keys = places
        if np.ndim(s) == 0:
            queries = moves.not_round(places, s) if move != "keys" else places
            keys = moves.not_round(places, s) if move != "queries" else places
        pattern = position_parts.pattern(model, r.layer, q, k)
        by_shift.append(moves.attention_between(pattern, queries, keys, wide))
    return np.array(by_shift)


def queries_keys(model, r, move, s, q, k):
    """Queries and keys of a layer, one of them or both with positions moved by s."""
    x = r.put(moves.rolled(r.positions, s))
    if move != "keys":
        q = position_parts.queries(model, r.layer, x)
    if move != "queries":
        k = position_parts.keys(model, r.layer, x)
    return q, k


def loss_shifts(shifts):
    """Shifts at which the loss is measured: 1, 2, 4, ... to the right."""
    return [s for s in shifts.tolist() if s > 0 and s & (s - 1) == 0]


def losses(model, given, others, places, layers, shifts, used):
    """Losses of a document with keys moved, and with queries and keys moved: [l 2 K+1].

    used: their weights; nothing is computed where that is 0. The first of each row is without a
    shift.
    """
    result = np.zeros((len(layers), 2, 1 + len(loss_shifts(shifts))))
    if not used:
        return result
    passed = position_parts.of_document(model, given.tokens)
    plain = later_layers.loss(model, given, passed.streams[-1], len(passed.streams) - 1, {})
    result[..., 0] = plain
    for i, r in enumerate(position_parts.readings(model, passed, others, places, layers)):
        own_q, own_k = (
            x(model, r.layer, r.x) for x in (position_parts.queries, position_parts.keys)
        )
        for j, s in enumerate(loss_shifts(shifts), 1):
            for way, move in enumerate(("keys", "both")):
                q, k = queries_keys(model, r, move, s, own_q, own_k)
                points = {("q", r.layer): q, ("k", r.layer): k}
                stream = passed.streams[r.layer]
                result[i, way, j] = later_layers.loss(model, given, stream, r.layer, points)
    return result * used
