"""Attention and loss when the positions that one attention layer reads are moved.

l layers, S shifts, W moves, H heads, n ordinary positions, R = 2 (REACH + largest shift) + 1
offsets, K shifts of the loss.
"""

import numpy as np

from ..maths import moves
from . import later_layers, position_parts

N_ORDERS = 8  # of places


def ways(shifts, n, rng, orders=()):
    """Moves of a layer's n positions: the shifts, one of random shifts, and of random orders.

    The random shifts [n] are the null: every key (or query) is moved by one drawn for it alone.
    """
    return [*shifts, rng.choice(shifts[shifts != 0], n), *orders]


def orders(shifts, n, rng):
    """Moves [n] that put positions in a random order, drawn for each shift but 0, N_ORDERS times.

    Positions in such an order tell no place.
    """
    here = np.arange(n)
    return [rng.permutation(n) - here for _ in range(N_ORDERS) for s in shifts if s]


def attention(model, r, move, ways, places, wide):
    """Mean attention by offset, up to `wide`, of a layer at every move of its positions: [W H R].

    ways: moves, each a number of tokens, or [n] for positions each of its own.
    """
    own_q, own_k = (x(model, r.layer, r.x) for x in (position_parts.queries, position_parts.keys))
    by_way = []
    for s in ways:
        q, k = queries_keys(model, r, move, s, own_q, own_k)
        queries = keys = places
        if np.ndim(s) == 0:
            queries = moves.not_round(places, s) if move != "keys" else places
            keys = moves.not_round(places, s) if move != "queries" else places
        pattern = position_parts.pattern(model, r.layer, q, k)
        by_way.append(moves.attention_between(pattern, queries, keys, wide))
    return np.array(by_way)


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
