"""The matrices of queries, keys and values as one, where a file has them side by side (GPT-2).

A product of one row then takes one call, which reads the weights in one go: of GPT-2's size three
take a third longer. Axis letters: see model.py.
"""

import operator
from typing import NamedTuple

import numpy as np

from .kernels import linear

STEP = 16  # features that BLAS computes at once; what is left over it adds up in another order


class SideBySide(NamedTuple):
    """What a layer knows of its arrays."""

    parts: tuple  # W_Q, W_K, W_V, b_Q, b_K, b_V
    whole: tuple | None


def qkv(x, w):  # [B T D] -> [B T A], [B T K], [B T K]
    """x W_Q + b_Q, then the same for keys and values, each when asked for; of one token at once."""
    together = matrices(w) if x.size == x.shape[-1] else None
    if together is None:
        yield linear(x, w.W_Q, w.b_Q)
        yield linear(x, w.W_K, w.b_K)
        yield linear(x, w.W_V, w.b_V)
        return
    y = linear(x, *together)
    K = w.W_K.shape[1]
    yield y[..., : -2 * K]
    yield y[..., -2 * K : -K]
    yield y[..., -K:]


def matrices(w):
    """W_QKV [D A+2K] and b_QKV of a layer, looked for once and after each change; or None."""
    parts = w.W_Q, w.W_K, w.W_V, w.b_Q, w.b_K, w.b_V
    known = getattr(w, "_known", None)
    if known is None or not all(map(operator.is_, known.parts, parts)):
        known = w._known = SideBySide(parts, whole(parts))
    return known.whole


def whole(parts):
    """W_QKV [D A+2K] and b_QKV, views of the six arrays; None where these lie apart."""
    biases = parts[3:]
    W, b = joined(parts[:3]), joined(biases)
    has_biases = any(x is not None for x in biases)
    if W is None or (b is None and has_biases):
        return None
    return W, b


def joined(arrays):
    """A view of arrays that follow one another in memory along the last axis; None for others.

    Their widths are multiples of STEP, so that a product of one row has the same bits as apart.
    """
    if not all(type(x) is np.ndarray and x.shape[-1] % STEP == 0 for x in arrays):
        return None
    first = arrays[0]
    widths = [x.shape[-1] for x in arrays]
    ends = first.ctypes.data + first.strides[-1] * np.cumsum(widths)
    places = [x.ctypes.data for x in arrays]
    layouts = {(x.dtype, x.shape[:-1], x.strides) for x in arrays}
    if len(layouts) > 1 or places[1:] != [*ends[:-1]]:
        return None
    shape = *first.shape[:-1], sum(widths)
    return np.lib.stride_tricks.as_strided(first, shape, writeable=False)
