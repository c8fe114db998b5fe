"""The arithmetic of a transformer on plain arrays; a trailing underscore means: writes in place.

Three things make it fast and none changes a formula: `linear` multiplies from the weight's side, so its result lies
feature after feature in memory, and every later step keeps that order; large work is spread over threads; large
arrays use memory again. Each kernel has its plain float64 twin in the tests. Axis letters: see model.py.
"""
import math

import numpy as np

from .threads import empty, spread, threads

TILE = 1 << 18  # elements that one thread works on at a time: for fewer, threads wait for Python's lock too often
np.empty(1 << 24, np.uint8)  # glibc keeps freed memory for the next arrays up to the size of the largest freed before

def features(shape, dtype): return empty((shape[-1], math.prod(shape[:-1])), dtype).T.reshape(shape)  # by feature

def linear(x, W, b=None):  # [... D], [D M], [M] -> [... M]
    """x W + b. W.T @ x.T is at full speed for either memory layout of W; x @ W is not for a few rows."""
    rows = x.reshape(-1, x.shape[-1])
    y = empty((W.shape[1], len(rows)), x.dtype)
    def piece(i, j):
        np.matmul(W.T[i:j], rows.T, out=y[i:j])
        if b is not None:
            y[i:j] += b[i:j, None]
    spread(piece, len(y), max(96, len(y) // threads()) if len(rows) > 383 else len(y))  # few rows: BLAS is better at it
    return y.T.reshape(*x.shape[:-1], W.shape[1])

def product(a, b, out=None):  # [B H T d], [B H d S] -> [B H T S]
    """a b for every text and head, into `out` if it is given."""
    out = empty((*a.shape[:-1], b.shape[-1]), a.dtype) if out is None else out
    x, y, z = (m.swapaxes(0, 1) for m in (a, b, out)) if len(a) == 1 else (a, b, out)  # one text: by heads
    spread(lambda i, j: np.matmul(x[i:j], y[i:j], out=z[i:j]), len(x), max(1, (1 << 24) // (x[0].size * y.shape[-1])))
    return out

def moments(x, eps):  # [B T D] -> [B T], [B T]
    """LayerNorm's two numbers per token: the mean, and the scale 1/sqrt(population variance + eps)."""
    mean = np.add.reduce(x, -1) / x.shape[-1]
    centred = x - mean[..., None]
    return mean, 1.0 / np.sqrt(np.einsum("...d,...d->...", centred, centred) / x.shape[-1] + eps)

def normalise(x, mean, scale, w, b):  # [B T D], [B T], [B T], [D], [D] -> [B T D]
    """LayerNorm with its two numbers given: (x - mean) * scale * w + b (Ba et al. 2016)."""
    out = np.subtract(x, mean[..., None], out=features(x.shape, x.dtype))
    out *= scale[..., None]
    out *= w
    out += b
    return out

def softmax_(x):  # [... S]
    """Rows of exp(x) / sum exp(x); a row of nothing but -inf (every key hidden) becomes zeros."""
    rows, ones = x.reshape(-1, x.shape[-1], copy=False), np.ones(x.shape[-1], x.dtype)
    def _piece(i, j):
        r = rows[i:j]
        with np.errstate(over="ignore", under="ignore"):
            total = (e := np.exp(r)) @ ones
        if not (total.min() > 1e-20 and total.max() < 1e30):  # near the ends of float32: take the largest off first
            top = r.max(-1, keepdims=True)
            top[np.isneginf(top)] = 0.0
            total = np.exp(np.subtract(r, top, out=r), out=e) @ ones
            total[total == 0] = 1.0
        np.divide(e, total[:, None], out=r)
    spread(_piece, len(rows), max(1, TILE // x.shape[-1]))
    return x

# R(x^2) = atanh(erf(x / sqrt 2)) / x, lowest power first, a minimax fit for |x| < 5: Phi(x) is (1 + tanh(x R)) / 2.
_ERF_AS_TANH = (0.7978860305, 0.0363320649, -3.174149980e-05, -5.560394082e-05,
                4.012598966e-06, -1.357302752e-07, 1.846657204e-09)

def gelu_(x):
    """x Phi(x), Phi the normal distribution function (Hendrycks & Gimpel 2016). In float32 at most 6e-7 off."""
    if x.dtype == np.float64:
        from scipy.special import erf  # 0.3 s to import, and only reference runs need it
        return np.multiply(x, 0.5 * (1.0 + erf(x * 0.5 ** 0.5)), out=x)
    def tile(t):
        np.clip(square := t * t, 0.0, 36.0, out=square)  # beyond, tanh is 1 to the last bit, but the polynomial turns
        r = square * _ERF_AS_TANH[-1]
        for coefficient in _ERF_AS_TANH[-2:0:-1]:
            r += coefficient
            r *= square
        return np.add(r, _ERF_AS_TANH[0], out=r)
    return _gate_(x, tile)

def gelu_tanh_(x):
    """x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2: GPT-2's approximation (Hendrycks & Gimpel 2016)."""
    def tile(t):
        r = t * t
        r *= 0.044715 * (2.0 / np.pi) ** 0.5
        r += (2.0 / np.pi) ** 0.5
        return r
    return _gate_(x, tile)

def silu_(x, slope=1.0):
    """x sigmoid(slope x) = x (1 + tanh(slope x / 2)) / 2, which overflows for no x."""
    return _gate_(x, lambda t: np.full_like(t, 0.5 * slope))

def _gate_(x, f):
    """x <- x (1 + tanh(x f(x))) / 2, tile by tile, f giving a new array."""
    flat = x.ravel(order="K")  # whatever the order of the axes in memory
    if not np.may_share_memory(flat, x):
        raise ValueError(f"an in-place kernel needs an array without gaps; strides are {x.strides}")
    def piece(i, j):
        r = f(t := flat[i:j])
        np.tanh(np.multiply(r, t, out=r), out=r)
        r += 1.0
        t *= np.multiply(r, 0.5, out=r)
    spread(piece, flat.size, TILE)
    return x

ACTIVATIONS = {
    "gelu": gelu_, "gelu_python": gelu_, "gelu_new": gelu_tanh_, "gelu_fast": gelu_tanh_,
    "gelu_pytorch_tanh": gelu_tanh_, "silu": silu_, "swish": silu_, "quick_gelu": lambda x: silu_(x, 1.702),
    "relu": lambda x: np.maximum(x, 0.0, out=x), "tanh": lambda x: np.tanh(x, out=x)}
