"""Linear layers and norms, walked backward: what all parts of a backward pass have in them.

`back` is the place of the pass (tape.py); dy stands for the gradient by what a function gives, and
what is returned for that by what it reads. Axis letters: see model.py.
"""

import numpy as np

from ..kernels import linear
from . import derivatives


def linear_back(name, dy, x, back):  # [... M], [... D] -> [... D]
    """y = x W + b, of the arrays W_name and b_name: the gradient by x is dy W^T."""
    back.weight(f"W_{name}", derivatives.matrix, x, dy)
    back.weight(f"b_{name}", derivatives.bias, dy)
    W = back.array(f"W_{name}")
    return linear(dy, W.T)


def norm_back(name, dy, x, back):  # [B T D] -> [B T D]
    """y = norm(x): the gradient by x directly, and by the numbers that are made of x."""
    dy = back.point(name, dy)
    if back.array(f"{name}_w") is None:
        return dy  # ModernBERT's first
    scale = back.value(f"{name}_scale")
    if not back.cfg.rms_norm:
        mean = back.value(f"{name}_mean")
        return layer_norm_back(name, dy, x, mean, scale, back)
    no_mean = np.zeros_like(scale)
    back.weight(f"{name}_w", derivatives.gain, dy, x, no_mean, scale)
    w = back.array(f"{name}_w")
    dx, d_scale = derivatives.scaled(dy, x, scale, w)
    d_scale = back.point(f"{name}_scale", d_scale)
    return dx + derivatives.inverse_rms(d_scale, x, scale)


def layer_norm_back(name, dy, x, mean, scale, back):  # [B T D] -> [B T D]
    """The same for y = (x - mean) scale w + b."""
    back.weight(f"{name}_w", derivatives.gain, dy, x, mean, scale)
    back.weight(f"{name}_b", derivatives.bias, dy)
    w = back.array(f"{name}_w")
    dx, d_mean, d_scale = derivatives.normalised(dy, x, mean, scale, w)
    d_mean = back.point(f"{name}_mean", d_mean)
    d_scale = back.point(f"{name}_scale", d_scale)
    by_numbers = derivatives.mean_and_inverse_std(
        d_mean,
        d_scale,
        x,
        mean,
        scale,
    )
    return dx + by_numbers
