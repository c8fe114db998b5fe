"""A fractional mask put to work inside a model: a tap for the forward pass. The maths is in masks.py.

T tokens as queries and S = T as keys, H heads.
"""

from functools import partial

import numpy as np

from . import masks

POSITIONS = {"kept": lambda rows: rows, "zero": np.zeros_like}  # name -> f(rows of the table that a text reads)


def condition(mask=None, meaning="weights", positions="kept", seed=None):
    """condition(model) -> tap, as the losses want it; None for `mask`: none.

    mask: m(distance, head), or numbers from 0 to 1: [H T S], what broadcasts to it, or [S], a value for each key.
    seed: the null of a function, as in masks.distances. ValueError for a meaning or positions that there are not.
    """
    masks.meaning(meaning)
    if positions not in POSITIONS:
        raise ValueError(f"positions are {positions!r}; wanted: {', '.join(POSITIONS)}")
    return partial(tap, mask=mask, meaning=meaning, positions=positions, seed=seed)


def tap(model, mask=None, meaning="weights", positions="kept", seed=None):
    """The tap `at` of one forward pass under a mask, of whole texts: what `minitx.forward` calls at every point."""
    chosen, now = masks.meaning(meaning), {}

    def masked(x, layer):
        if "mask" not in now:
            now["mask"] = chosen.prepare(_mask(mask, x, model.config.causal, seed))
        if chosen.bare:
            x = _bare(now["q"] * model.config.attn_scale(layer), now["k"], x)
        return chosen.combine(x, now["mask"])

    def at(name, x, layer=None):
        if name == "pos_embed":
            return POSITIONS[positions](x)
        if name in ("q", "k"):
            now[name] = x
        return masked(x, layer) if name == chosen.point and mask is not None else x
    return at


def _mask(mask, x, causal, seed):
    """The mask [H T S] for scores or weights x [B H T S], in their dtype; ValueError for one of another size."""
    _, H, T, S = x.shape
    if T != S:
        raise ValueError(f"{T} queries and {S} keys: a mask by distance needs the whole text in one pass, no cache")
    return (masks.made(mask, T, H, causal, seed) if callable(mask) else masks.checked(mask, T, H)).astype(x.dtype)


def _bare(q, k, scores):
    """Scores [B H T S] without the causal mask; padding, which does not even see itself, stays hidden."""
    padding = np.isneginf(np.diagonal(scores, axis1=-2, axis2=-1))
    return np.where(padding[..., None, :], scores, np.matmul(q, k.swapaxes(-1, -2), order="C"))
