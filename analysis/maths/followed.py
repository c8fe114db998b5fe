"""Whether attended offsets follow positions that were moved: head by head, layer by layer, in all.

A cell is a head with a direction at one shift other than 0. l layers, S shifts, H heads, R = 2 wide
+ 1 offsets. Order: cells, figures over all of them with their nulls, and for each layer.
"""

import numpy as np

from . import moves, profiles

SHIFTED = "attended", "expected", "told"
BY_LAYER = "directed", "exact", "slopes", "weight", "weight_dealt"


def followed(r, follows, seed):
    """Where heads with a direction attend at each shift, and how that moves with the shift."""
    shifts, causal, n = r["shifts"], r["causal"], r["n"]
    wide = r["attention"].shape[-1] // 2
    by_layer = r["attention"][:, :-1]  # [l S H R]
    still = by_layer[:, len(shifts) // 2]
    directed = profiles.directed(still, n, causal=causal)
    near = slice(wide - profiles.REACH, wide + profiles.REACH + 1)
    offset = still[..., near].argmax(axis=-1) - profiles.REACH  # [l H]
    attended = by_layer.argmax(axis=-1) - wide  # [l S H]
    expected, is_told = np.swapaxes([moves.cells(o, shifts, follows, causal) for o in offset], 0, 1)
    is_told = is_told.astype(bool) & directed[:, None]
    result = {"directed": directed, "offset": offset, "attended": attended, "expected": expected}
    result["told"] = is_told
    result["exact"] = (attended == expected) & is_told
    result["weight"] = _weights(by_layer, expected, wide)
    result["weight_dealt"] = _weights(r["attention"][:, [-1] * len(shifts)], expected, wide)
    slopes = [moves.slopes(a, shifts, known) for a, known in zip(attended, is_told)]
    result["slopes"] = np.array(slopes)
    return result | _summary(result, shifts, seed) | _by_layer(result, r["layers"], shifts, seed)


def _weights(attention, expected, wide):
    """Attention at the expected offset: [l S H R], [l S H] -> [l S H]."""
    return np.take_along_axis(attention, (expected + wide)[..., None], axis=-1)[..., 0]


def _summary(r, shifts, seed):
    """Figures over all layers, with their nulls."""
    is_told = r["told"]
    flat = [np.moveaxis(r[name], 1, 0).reshape(len(shifts), -1) for name in SHIFTED]
    n_exact, slope = moves.by_chance(*flat, shifts, seed)
    followers = r["directed"] & is_told.any(axis=1)
    result = {"n_directed": r["directed"].sum(), "n_cells": is_told.sum()}
    result["n_exact"], result["n_exact_null"] = r["exact"].sum(), n_exact
    result["slope"] = r["slopes"][followers].mean() if followers.any() else 0.0
    result["slope_null"] = slope
    for name in ("weight", "weight_dealt"):
        mean = r[name][is_told].mean() if is_told.any() else 0.0
        result["mean_" + name.replace("dealt", "null")] = mean
    return result


def _by_layer(r, layers, shifts, seed):
    """The same for each layer: lists over the layers."""
    rows = []
    for i in range(len(layers)):
        part = {name: r[name][i : i + 1] for name in (*SHIFTED, *BY_LAYER)}
        rows.append(_summary(part, shifts, seed))
    result = {f"layer_{name}": np.array([row[name] for row in rows]) for name in rows[0]}
    result["layer_names"] = np.array([f"layer {i}" for i in layers])
    return result
