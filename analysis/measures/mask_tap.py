"""A fractional mask at work inside a model: a hook for the forward pass.

The maths is in masks.py. T tokens as queries and S = T as keys, H heads.
"""

from functools import partial
from typing import Literal

import numpy as np

from minitx.kernels import matmul_heads

from ..maths import masks
from . import inputs

# what the values of a mask do: the names of masks.MEANINGS, as the option of an experiment
Meaning = Literal[
    "scores", "weights", "weights_raw", "embedding", "library-2023", "library-now", "library-now-2d"
]
# name -> f(rows of the table that a text reads)
POSITIONS = {"kept": lambda rows: rows, "zero": np.zeros_like}


def condition(mask=None, meaning="weights", positions="kept", seed=None):
    """A function condition(model) -> hook, as losses.py takes it.

    mask: m(distance, head), or numbers from 0 to 1: an array that broadcasts to [H T S], or [S], a
    value for each key; None for no mask. meaning: a name of masks.MEANINGS. positions: "kept", or
    "zero" for zeros in the position table. seed: of the null of a mask m(distance, head), which
    permutes distances (masks.distances). Raises ValueError for an unknown meaning or unknown
    positions.
    """
    masks.meaning(meaning)
    if positions not in POSITIONS:
        raise ValueError(f"positions are {positions!r}; wanted: {', '.join(POSITIONS)}")
    return partial(tap, mask=mask, meaning=meaning, positions=positions, seed=seed)


def tap(model, mask=None, meaning="weights", positions="kept", seed=None):
    """The hook of one forward pass of whole texts under a mask, as `minitx.forward` takes it.

    Raises NotApplicable if zeros in the position table would not take all positions away.
    """
    rule = masks.meaning(meaning)
    if positions != "kept":
        inputs.check_table_alone(model)
    if rule.bare and mask is not None:
        inputs.check_uncapped(model)
    state = {}  # the mask, once for all layers, and q and k of the current layer

    def masked(x, layer):
        if "mask" not in state:
            state["mask"] = rule.prepare(_mask(mask, x, model.config.causal, seed))
        if rule.bare:
            x = _bare(state["q"] * model.config.attn_scale(layer), state["k"], x)
        return rule.combine(x, state["mask"])

    def hook(name, x, layer=None):
        if name == "pos_embed":
            return POSITIONS[positions](x)
        if name in ("q", "k"):
            state[name] = x
        if name == "pattern" and rule.values and mask is not None:
            return x * state["mask"]  # times v: the pattern times v times the mask
        return masked(x, layer) if name == rule.point and mask is not None else x

    return hook


def _mask(mask, x, causal, seed):
    """The mask [H T S] for scores or weights x [B H T S], in their dtype.

    Raises ValueError for a mask of another size, and for a text that comes in parts.
    """
    _, H, T, S = x.shape
    if T != S:
        raise ValueError(
            f"{T} queries and {S} keys: a mask by distance needs the whole text in one pass, "
            "no cache"
        )
    if callable(mask):
        values = masks.build_mask(mask, T, H, causal, seed)
    else:
        values = masks.validate_mask(mask, T, H)
    return values.astype(x.dtype)


def _bare(q, k, scores):
    """Scores [B H T S] without the causal mask.

    Padding, which does not even see itself, stays hidden.
    """
    padding = np.isneginf(np.diagonal(scores, axis1=-2, axis2=-1))
    return np.where(padding[..., None, :], scores, matmul_heads(q, k.swapaxes(-1, -2)))
