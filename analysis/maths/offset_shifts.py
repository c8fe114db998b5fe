"""Whether attended offsets follow moved positions: for each head, for each layer, and over all.

A cell is a head with a direction at one shift other than 0. l layers, S shifts, H heads, R = 2 wide
+ 1 offsets. Order: cells, figures over all of them with their nulls, by strength, by layer.
"""

import numpy as np

from . import moves, profiles, stats

SHIFTED = "attended", "expected", "told"
BY_LAYER = "directed", "exact", "slopes", "weight", "weight_dealt"


def followed(r, follows, seed):
    """Where heads with a direction attend at each shift, and how that moves with the shift.

    One head at offset -1, which attends one token further to the left for each token that its keys
    are moved:

    >>> shifts, wide = np.array([-1, 0, 1]), profiles.REACH + 1
    >>> attention = np.zeros((1, 4, 1, 2 * wide + 1))  # the last: positions in random order
    >>> for i, s in enumerate(shifts):
    ...     attention[0, i, 0, wide - 1 - s] = 1
    >>> r = {"attention": attention, "shifts": shifts, "causal": False, "n": 64}
    >>> f = followed(r | {"documents": 1, "layers": [0]}, follows=-1, seed=0)
    >>> f["attended"][0, :, 0], int(f["n_exact"]), float(f["slope"])
    (array([ 0, -1, -2]), 2, -1.0)
    """
    shifts, causal = r["shifts"], r["causal"]
    wide = r["attention"].shape[-1] // 2
    by_layer = r["attention"][:, :-1]  # [l S H R]
    near = slice(wide - profiles.REACH, wide + profiles.REACH + 1)
    still = by_layer[:, len(shifts) // 2, :, near]
    offset = still.argmax(axis=-1) - profiles.REACH  # [l H]
    result = _counted(r, still, offset)
    attended = by_layer.argmax(axis=-1) - wide  # [l S H]
    cells = [moves.cells(of_layer, shifts, follows, causal) for of_layer in offset]
    expected = np.array([places for places, _ in cells])
    known = np.array([known for _, known in cells])
    by_chance = r["attention"][:, [-1] * len(shifts)]  # positions in random order
    result |= {"offset": offset, "attended": attended, "expected": expected}
    result["weight"] = _weights(by_layer, expected, wide)
    result["weight_dealt"] = _weights(by_chance, expected, wide)
    result |= _cells_of(result, known, result["directed"], shifts)
    result |= _summary(result, shifts, seed)
    if "named" in result:
        result |= _of_named(result, known, shifts, seed)
    if "attention_orders" in r:
        result |= _in_orders(result, r["attention_orders"], shifts)
    result |= _by_strength(result, still.max(axis=-1), shifts, seed)
    return result | _by_layer(result, r["layers"], shifts, seed)


def _cells_of(r, known, heads, shifts):
    """Cells [l S H] that are counted of these heads [l H], those that are exact, and slopes [l H].

    known: where the offset can be tested.
    """
    is_told = known & heads[:, None]
    slopes = [moves.slopes(a, shifts, x) for a, x in zip(r["attended"], is_told)]
    exact = (r["attended"] == r["expected"]) & is_told
    return {"told": is_told, "exact": exact, "slopes": np.array(slopes)}


def _counted(r, still, offset):
    """Heads with a direction, bool [l H], and those that a kernel names.

    Without words those count as well that attend to their own token so much: they do so by
    positions. A kernel names a head if it peaks at the head's offset. Where a bias has one number
    for that offset and others no head counts.
    """
    judge = profiles.directed if r["documents"] else profiles.stands_out
    directed = judge(still, r["n"], causal=r["causal"])
    if "kernel_lag" not in r:
        return {"directed": directed}
    is_distinct = r["distinct"][offset + profiles.REACH]
    named = r["kernel_named"] & (r["kernel_lag"] == offset) & is_distinct
    result = {"directed": directed & is_distinct, "named": named, "n_named": named.sum()}
    return result | {"n_shared": (directed & ~is_distinct).sum()}


def _of_named(r, known, shifts, seed):
    """Exact cells and slope of the heads that a kernel names."""
    named = {"directed": r["named"]} | _cells_of(r, known, r["named"], shifts)
    own = _summary(r | named, shifts, seed)
    result = {f"{name}_named": own[name] for name in ("n_cells", "n_exact", "slope")}
    return result | {f"{name}_named_null": own[f"{name}_null"] for name in ("n_exact", "slope")}


def _weights(attention, expected, wide):
    """Attention at the expected offset: [l S H R], [l S H] -> [l S H]."""
    place = (expected + wide)[..., None]
    weights = np.take_along_axis(attention, place, axis=-1)
    return weights[..., 0]


def _summary(r, shifts, seed):
    """Figures over all layers, with their nulls."""
    is_told = r["told"]
    flat = [np.moveaxis(r[name], 1, 0).reshape(len(shifts), -1) for name in SHIFTED]
    n_exact, slope = moves.by_chance(*flat, shifts, seed)
    followers = r["directed"] & is_told.any(axis=1)
    result = {"n_directed": r["directed"].sum(), "n_cells": is_told.sum()}
    result |= {"n_exact": r["exact"].sum(), "n_exact_null": n_exact}
    result |= {"slope": _mean(r["slopes"], followers), "slope_null": slope}
    result["mean_weight"] = _mean(r["weight"], is_told)
    result["mean_weight_null"] = _mean(r["weight_dealt"], is_told)
    return result


def _mean(values, where):
    """Mean of the values where a condition holds; 0 if it holds nowhere."""
    return values[where].mean() if where.any() else 0.0


def _only(r, heads):
    """The cells of these heads [l H] alone."""
    part = {name: r[name] & heads[:, None] for name in ("told", "exact")}
    return r | part | {"directed": r["directed"] & heads}


def _in_orders(r, attention, shifts):
    """In how many random orders of positions half of the cells or more are as expected.

    attention: [l orders S-1 H R], with the keys in that order and moved. most_in_orders: the most
    cells that are so in one order.
    """
    moved = shifts != 0
    is_told = r["told"][:, None, moved]
    expected = r["expected"][:, None, moved]
    attended = attention.argmax(axis=-1) - attention.shape[-1] // 2
    n_exact = ((attended == expected) & is_told).sum(axis=(0, 2, 3))
    n_follow = ((2 * n_exact >= is_told.sum()) & is_told.any()).sum()
    return {"n_orders": len(n_exact), "n_orders_follow": n_follow, "most_in_orders": n_exact.max()}


def _by_strength(r, attention, shifts, seed):
    """Heads and cells by the attention [l H] that heads give to their offset without a shift."""
    rows = []
    for band in range(len(profiles.STRENGTHS)):
        inside = profiles.strength(attention) == band
        rows.append(_summary(_only(r, inside), shifts, seed))
    names = "n_cells", "n_exact", "n_exact_null"
    result = {f"strength_{name}": np.array([row[name] for row in rows]) for name in names}
    result["n_by_strength"] = profiles.by_strength(attention, r["directed"])
    return result | {"strengths": np.array([*profiles.STRENGTHS])}


def _by_layer(r, layers, shifts, seed):
    """The same for each layer: lists over the layers."""
    rows = []
    for i in range(len(layers)):
        part = {name: r[name][i : i + 1] for name in (*SHIFTED, *BY_LAYER)}
        rows.append(_summary(part, shifts, seed))
    result = {f"layer_{name}": x for name, x in stats.stacked(rows).items()}
    result["layer_names"] = np.array([f"layer {i}" for i in layers])
    return result
