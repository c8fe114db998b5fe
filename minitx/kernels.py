"""The arithmetic of a transformer on plain arrays; a trailing underscore means: writes in place.

Two things make it fast and neither changes a formula. `linear` multiplies from the weight's side,
so its result lies feature after feature in memory, and norms and activations keep that order. Large
work is spread over threads (machine/threads.py). Each kernel has its plain float64 twin in the
tests. Axis letters: see model.py.
"""

import functools
import inspect
import math

import numpy as np

from .machine.threads import even_step, product_step, spread

# How large a chunk of work is that threads share. Measured; neither changes a result by more than
# rounding.
TILE = 1 << 17  # elements at most: with far fewer, threads wait for Python's lock too often
MULTIPLICATIONS = 1 << 24  # of attention's products at most, or those of one head or text

einsum = inspect.unwrap(np.einsum)  # without the wrapper that looks through the arguments in Python


def empty_feature_major(shape, dtype):
    """New memory for [... D] in which one feature of all tokens lies together."""
    *others, D = shape
    by_feature = np.empty((D, math.prod(others)), dtype)
    return by_feature.T.reshape(shape)


def feature_major(x):  # [... D] -> [... D]
    """x in that order of memory, which `linear` gives and the kernels keep."""
    rows = x.reshape(-1, x.shape[-1])
    by_feature = np.ascontiguousarray(rows.T)
    return by_feature.T.reshape(x.shape)


def linear(x, W, b=None):  # [... D], [D M], [M] -> [... M]
    """x W + b, computed as W^T x^T.

    This runs at full speed for either memory order of W; x W does not if x has few rows.
    """
    *others, D = x.shape
    M = W.shape[1]
    rows = x.reshape(-1, D)
    y = np.empty((M, rows.shape[0]), x.dtype)

    def chunk(i, j):
        np.matmul(W.T[i:j], rows.T, out=y[i:j])
        if b is not None:
            y[i:j] += b[i:j, None]

    spread(chunk, M, product_step(rows, W))
    return y.T.reshape(*others, M)


def matmul_heads(a, b):  # [B H T d], [B G d S] -> [B H T S]
    """a b for every text and head; several consecutive heads may share theirs of b."""
    B, H, T, _ = a.shape
    G, S = b.shape[1], b.shape[-1]
    out = np.empty((B, H, T, S), a.dtype)
    left, right, result = a, b, out
    if H != G:
        left = by_group(a, G)
        right = by_group(b, G)
        result = by_group(out, G)
    if B == 1:  # the threads share the heads of a single text, or else the texts
        left, right, result = left[0], right[0], result[0]

    def chunk(i, j):
        np.matmul(left[i:j], right[i:j], out=result[i:j])

    spread(chunk, left.shape[0], MULTIPLICATIONS // (left[0].size * S))
    return out


def by_group(x, G):  # [B H T d] -> [B G H/G T d]
    """A view in which heads that share keys and values lie together."""
    return x.reshape(len(x), G, -1, *x.shape[2:])


def split_heads(x, cfg):  # [B T A] -> [B H T d]
    """The features of each head by themselves."""
    B, T, _ = x.shape
    return x.reshape(B, T, -1, cfg.d_head).swapaxes(1, 2)


def join_heads(z):  # [B H T d] -> [B T A]
    """The features of all heads side by side."""
    B, H, T, d = z.shape
    return z.swapaxes(1, 2).reshape(B, T, H * d)


def heads_out(z, W_O):  # [B H T d], [A D] -> [B H T D]
    """What each head writes: z W_O with its own rows of W_O."""
    B, H, _, d = z.shape
    by_head = np.asarray(W_O).reshape(H, d, -1)
    return matmul_heads(z, np.broadcast_to(by_head, (B, *by_head.shape)))


def mean_and_inverse_std(x, eps):  # [B T D] -> [B T], [B T]
    """LayerNorm's two numbers per token: mean, and 1/sqrt(population variance + eps)."""
    D = x.shape[-1]
    mean = np.add.reduce(x, -1) / D
    centred = x - mean[..., None]
    variance = einsum("...d,...d->...", centred, centred) / D
    return mean, 1.0 / np.sqrt(variance + eps)


def normalise(x, mean, scale, w, b):  # [B T D], [B T], [B T], [D], [D] -> [B T D]
    """LayerNorm with its two numbers given: (x - mean) * scale * w + b (Ba et al. 2016)."""
    if x.strides[-1] == x.itemsize and x.size > x.shape[-1]:  # token by token, as edits leave it
        x = feature_major(x)
    out = x - mean[..., None]
    out *= scale[..., None]
    out *= w
    if b is not None:
        out += b
    return out


def inverse_rms(x, eps):  # [B T D] -> [B T]
    """RMSNorm's number per token: 1/sqrt(mean of squares + eps)."""
    square = einsum("...d,...d->...", x, x) / x.shape[-1]
    return 1.0 / np.sqrt(square + eps)


def scaled(x, scale, w):  # [B T D], [B T], [D] -> [B T D]
    """RMSNorm with its number given: x * scale * w (Zhang & Sennrich 2019)."""
    out = empty_feature_major(x.shape, x.dtype)
    np.multiply(x, scale[..., None], out=out)
    out *= w
    return out


def layer_norm(x, w, b, eps):  # [B T D], [D], [D] -> [B T D]
    """LayerNorm of each token."""
    mean, scale = mean_and_inverse_std(x, eps)
    return normalise(x, mean, scale, w, b)


def capped_(x, cap):
    """cap tanh(x / cap): nearly x where it is small, never beyond the cap (Bello et al. 2017)."""
    x /= cap
    np.tanh(x, out=x)
    x *= cap
    return x


@functools.lru_cache(maxsize=8)
def row_of_ones(n, dtype):
    """By which a product takes sums of rows; all layers of a pass have the same one."""
    return np.ones(n, dtype)


def softmax_(x):  # [... S]
    """Rows of exp(x) / sum exp(x); a row of nothing but -inf (no key visible) becomes zeros."""
    S = x.shape[-1]
    rows = x.reshape(-1, S, copy=False)
    n_rows = rows.shape[0]
    ones = row_of_ones(S, x.dtype)

    def chunk(i, j):
        scores = rows[i:j]
        # invalid: OpenBLAS may multiply an infinite e by 0, in a lane that it does not use
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            e = np.exp(scores)
            total = e @ ones
        # near the limits of float32, or if a score is NaN: again, with the largest subtracted
        is_safe = np.minimum.reduce(total) > 1e-20 and np.maximum.reduce(total) < 1e30
        if not is_safe:
            largest = scores.max(-1, keepdims=True)
            largest[np.isneginf(largest)] = 0.0
            scores -= largest
            with np.errstate(invalid="ignore"):  # what lies behind e may be infinite, too
                total = np.exp(scores, out=e) @ ones
            total[total == 0] = 1.0
        np.divide(e, total[:, None], out=scores)

    spread(chunk, n_rows, even_step(n_rows, TILE // S))
    return x
