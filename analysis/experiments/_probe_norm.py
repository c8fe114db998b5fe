"""Positions carried by the norm alone: what enters layer 0 is x_t (1 + eps t), without positions.

The slides' first hypothesis. The change is made after the norm of the embeddings, where there is
one: that norm would undo a change before it. T tokens, D width.
"""

from functools import partial

import numpy as np

from ..measures import mask_tap


def condition(eps, seed=None):
    """condition(model) -> hook, as the losses want it; seed: the null, with permuted norms."""
    return partial(_tap, eps=eps, seed=seed)


def factors(T, eps, seed=None):
    """1 + eps t for every position t [T]; with a seed in random order."""
    t = np.arange(T)
    if seed is not None:
        t = np.random.default_rng((seed, T)).permutation(t)
    return 1 + eps * t


def _tap(model, eps, seed):
    without_positions = mask_tap.tap(model, positions="zero")

    def hook(name, x, layer=None):
        x = without_positions(name, x, layer)
        if name == "resid_pre" and layer == 0:
            return x * factors(x.shape[1], eps, seed)[:, None].astype(x.dtype)
        return x

    return hook
