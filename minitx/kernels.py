"""The arithmetic of a transformer on plain arrays; a trailing underscore means: writes in place.

Two things make it fast and neither changes a formula. `linear` multiplies from the weight's side,
so its result lies feature after feature in memory, and every later step keeps that order. Large
work is spread over threads (threads.py). Each kernel has its plain float64 twin in the tests. Axis
letters: see model.py.
"""

import math

import numpy as np

from .threads import product_step, spread

# When work is split into chunks for several threads, and how large a chunk is at least. Measured;
# none of these changes a result by more than rounding.
TILE = 1 << 18  # elements in a chunk: with fewer, threads wait for Python's lock too often
MULTIPLICATIONS = 1 << 24  # in a chunk of attention's products


def empty_feature_major(shape, dtype):
    """New memory for [... D] in which one feature of all tokens lies together."""
    by_feature = np.empty((shape[-1], math.prod(shape[:-1])), dtype)
    return by_feature.T.reshape(shape)


def feature_major(x):  # [... D] -> [... D]
    """x in that order of memory, which `linear` gives and the kernels keep."""
    by_feature = np.ascontiguousarray(x.reshape(-1, x.shape[-1]).T)
    return by_feature.T.reshape(x.shape)


def linear(x, W, b=None):  # [... D], [D M], [M] -> [... M]
    """x W + b, computed as W^T x^T.

    This runs at full speed for either memory order of W; x W does not if x has few rows.
    """
    rows = x.reshape(-1, x.shape[-1])
    y = np.empty((W.shape[1], len(rows)), x.dtype)

    def chunk(i, j):
        np.matmul(W.T[i:j], rows.T, out=y[i:j])
        if b is not None:
            y[i:j] += b[i:j, None]

    spread(chunk, len(y), product_step(rows, W))
    return y.T.reshape(*x.shape[:-1], W.shape[1])


def matmul_heads(a, b, out=None):  # [B H T d], [B H d S] -> [B H T S]
    """a b for every text and head, into `out` if it is given."""
    if out is None:
        out = np.empty((*a.shape[:-1], b.shape[-1]), a.dtype)
    left, right, result = a, b, out
    if len(a) == 1:  # the threads share the heads of a single text, or else the texts
        left, right, result = a[0], b[0], out[0]

    def chunk(i, j):
        np.matmul(left[i:j], right[i:j], out=result[i:j])

    n_multiplications = left[0].size * right.shape[-1]
    spread(chunk, len(left), max(1, MULTIPLICATIONS // n_multiplications))
    return out


def mean_and_inverse_std(x, eps):  # [B T D] -> [B T], [B T]
    """LayerNorm's two numbers per token: mean, and 1/sqrt(population variance + eps)."""
    D = x.shape[-1]
    mean = np.add.reduce(x, -1) / D
    centred = x - mean[..., None]
    variance = np.einsum("...d,...d->...", centred, centred) / D
    return mean, 1.0 / np.sqrt(variance + eps)


def normalise(x, mean, scale, w, b):  # [B T D], [B T], [B T], [D], [D] -> [B T D]
    """LayerNorm with its two numbers given: (x - mean) * scale * w + b (Ba et al. 2016)."""
    out = np.subtract(x, mean[..., None], out=empty_feature_major(x.shape, x.dtype))
    out *= scale[..., None]
    out *= w
    out += b
    return out


def inverse_rms(x, eps):  # [B T D] -> [B T]
    """RMSNorm's number per token: 1/sqrt(mean of squares + eps)."""
    square = np.einsum("...d,...d->...", x, x) / x.shape[-1]
    return 1.0 / np.sqrt(square + eps)


def scaled(x, scale, w):  # [B T D], [B T], [D] -> [B T D]
    """RMSNorm with its number given: x * scale * w (Zhang & Sennrich 2019)."""
    out = np.multiply(x, scale[..., None], out=empty_feature_major(x.shape, x.dtype))
    out *= w
    return out


def layer_norm(x, w, b, eps):  # [B T D], [D], [D] -> [B T D]
    """LayerNorm of each token."""
    mean, scale = mean_and_inverse_std(x, eps)
    return normalise(x, mean, scale, w, b)


def softmax_(x):  # [... S]
    """Rows of exp(x) / sum exp(x); a row of nothing but -inf (no key visible) becomes zeros."""
    S = x.shape[-1]
    rows = x.reshape(-1, S, copy=False)
    ones = np.ones(S, x.dtype)

    def chunk(i, j):
        scores = rows[i:j]
        with np.errstate(over="ignore", under="ignore"):
            e = np.exp(scores)
            total = e @ ones
        # near the limits of float32, or if a score is NaN: again, with the largest subtracted
        if not (total.min() > 1e-20 and total.max() < 1e30):
            largest = scores.max(-1, keepdims=True)
            largest[np.isneginf(largest)] = 0.0
            np.subtract(scores, largest, out=scores)
            total = np.exp(scores, out=e) @ ones
            total[total == 0] = 1.0
        np.divide(e, total[:, None], out=scores)

    spread(chunk, len(rows), max(1, TILE // S))
    return x


# NumPy has no erf, but a fast tanh: the normal distribution function Phi(x) is (1 + tanh(x R)) / 2
# with R = atanh(erf(x / sqrt 2)) / x. Its coefficients, in powers of x^2 from the lowest, are a
# minimax fit for |x| < 5.
ERF_AS_TANH = (
    0.7978860305,
    0.0363320649,
    -3.174149980e-05,
    -5.560394082e-05,
    4.012598966e-06,
    -1.357302752e-07,
    1.846657204e-09,
)


def gelu_(x):
    """x Phi(x) (Hendrycks & Gimpel 2016). In float32 at most 6e-7 off."""
    if x.dtype == np.float64:
        from scipy.special import erf  # 0.3 s to import, and only reference runs need it

        return np.multiply(x, 0.5 * (1.0 + erf(x * 0.5**0.5)), out=x)

    def factor(x):
        square = x * x
        np.clip(square, 0.0, 36.0, out=square)  # beyond, tanh is 1 to the last bit
        r = square * ERF_AS_TANH[-1]
        for coefficient in ERF_AS_TANH[-2:0:-1]:
            r += coefficient
            r *= square
        return np.add(r, ERF_AS_TANH[0], out=r)

    return gate_(x, factor)


def gelu_tanh_(x):
    """x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2: GPT-2's form (Hendrycks & Gimpel 2016)."""

    def factor(x):
        r = x * x
        r *= 0.044715 * (2.0 / np.pi) ** 0.5
        r += (2.0 / np.pi) ** 0.5
        return r

    return gate_(x, factor)


def silu_(x, slope=1.0):
    """x sigmoid(slope x) = x (1 + tanh(slope x / 2)) / 2, which never overflows."""
    return gate_(x, lambda x: np.full_like(x, 0.5 * slope))


def gate_(x, factor):
    """x <- x (1 + tanh(x factor(x))) / 2, tile by tile; `factor` gives a new array."""
    flat = x.ravel(order="K")  # whatever the order of the axes in memory
    if not np.may_share_memory(flat, x):
        text = f"an in-place kernel needs an array without gaps; strides are {x.strides}"
        raise ValueError(text)

    def chunk(i, j):
        tile = flat[i:j]
        gate = factor(tile)
        gate *= tile
        np.tanh(gate, out=gate)
        gate += 1.0
        gate *= 0.5
        tile *= gate

    spread(chunk, flat.size, TILE)
    return x


def relu_(x):
    """max(x, 0)."""
    return np.maximum(x, 0.0, out=x)


def tanh_(x):
    """tanh x."""
    return np.tanh(x, out=x)


def quick_gelu_(x):
    """x sigmoid(1.702 x)."""
    return silu_(x, 1.702)


ACTIVATIONS: dict = {  # name in a config.json -> kernel
    "gelu": gelu_,
    "gelu_python": gelu_,
    "gelu_new": gelu_tanh_,
    "gelu_fast": gelu_tanh_,
    "gelu_pytorch_tanh": gelu_tanh_,
    "silu": silu_,
    "swish": silu_,
    "quick_gelu": quick_gelu_,
    "relu": relu_,
    "tanh": tanh_,
}
