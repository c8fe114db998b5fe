"""The arithmetic of a transformer on plain arrays; a trailing underscore means: writes in place.

Two things make it fast and neither changes a formula: `linear` multiplies from the weight's side, so its result lies
feature after feature in memory, and every later step keeps that order; costly elementwise work runs in tiles that
fit a core's cache. Each kernel has its plain float64 twin in the tests. Axis letters: see model.py.
"""
import numpy as np

TILE = 1 << 16  # elements; 256 KiB of float32, a quarter of a present core's second-level cache

def linear(x, W, b=None):  # [... D], [D M], [M] -> [... M]
    """x W + b. W.T @ x.T is at full speed for either memory layout of W; x @ W is not for a few rows."""
    y = W.T @ x.reshape(-1, x.shape[-1]).T
    if b is not None:
        y += b[:, None]
    return y.T.reshape(*x.shape[:-1], W.shape[1])

def moments(x, eps):  # [B T D] -> [B T], [B T]
    """LayerNorm's two numbers per token: the mean, and the scale 1/sqrt(population variance + eps)."""
    mean = x.mean(-1)
    centred = x - mean[..., None]
    return mean, 1.0 / np.sqrt(np.einsum("...d,...d->...", centred, centred) / x.shape[-1] + eps)

def normalise(x, mean, scale, w, b):  # [B T D], [B T], [B T], [D], [D] -> [B T D]
    """LayerNorm with its two numbers given: (x - mean) * scale * w + b (Ba et al. 2016)."""
    out = x - mean[..., None]
    out *= scale[..., None]
    out *= w
    out += b
    return out

def softmax_(x):  # [... S]
    """Rows of exp(x) / sum exp(x); a row of nothing but -inf (every key hidden) becomes zeros."""
    rows = x.reshape(-1, x.shape[-1], copy=False)
    step = max(1, TILE // x.shape[-1])
    for r in (rows[i:i + step] for i in range(0, len(rows), step)):
        top = r.max(-1, keepdims=True)
        top[np.isneginf(top)] = 0.0
        np.exp(np.subtract(r, top, out=r), out=r)
        total = r.sum(-1, keepdims=True)
        total[total == 0] = 1.0
        r /= total
    return x

# atanh(erf(x / sqrt 2)) / x as a polynomial in x*x, lowest power first: a minimax fit for |x| < 5.
_ERF_AS_TANH = (0.7978860305, 0.0363320649, -3.174149980e-05, -5.560394082e-05,
                4.012598966e-06, -1.357302752e-07, 1.846657204e-09)

def gelu_(x):
    """x Phi(x), Phi the normal distribution function (Hendrycks & Gimpel 2016): "gelu" without an approximation.

    float32: x (1 + tanh(x R(x^2))) / 2, at most 6e-7 from the exact value. float64: scipy's erf.
    """
    if x.dtype == np.float64:
        from scipy.special import erf  # 0.3 s to import, and only reference runs need it
        x *= 0.5 * (1.0 + erf(x * 0.5 ** 0.5))
        return x
    for t in _tiles(x):
        c = np.clip(t, -6.0, 6.0)  # there tanh is 1 to the last bit; far beyond, the polynomial would turn
        square = c * c
        r = np.full_like(t, _ERF_AS_TANH[-1])
        for coefficient in _ERF_AS_TANH[-2::-1]:
            r *= square
            r += coefficient
        r *= c
        _gate_(t, r)
    return x

def gelu_tanh_(x):
    """x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2: GPT-2's approximation (Hendrycks & Gimpel 2016)."""
    for t in _tiles(x):
        r = t * t
        r *= 0.044715
        r += 1.0
        r *= t
        r *= (2.0 / np.pi) ** 0.5
        _gate_(t, r)
    return x

def silu_(x, slope=1.0):
    """x sigmoid(slope x) = x (1 + tanh(slope x / 2)) / 2, which overflows for no x."""
    for t in _tiles(x):
        _gate_(t, t * (0.5 * slope))
    return x

def _tiles(x):
    flat = x.ravel(order="K")  # whatever the order of the axes in memory
    if not np.may_share_memory(flat, x):
        raise ValueError(f"an in-place kernel needs an array without gaps; strides are {x.strides}")
    return (flat[i:i + TILE] for i in range(0, flat.size, TILE))

def _gate_(t, r):
    """t <- t (1 + tanh r) / 2, using up r."""
    np.tanh(r, out=r)
    r += 1.0
    r *= 0.5
    t *= r

ACTIVATIONS = {
    "gelu": gelu_, "gelu_python": gelu_, "gelu_new": gelu_tanh_, "gelu_fast": gelu_tanh_,
    "gelu_pytorch_tanh": gelu_tanh_, "silu": silu_, "swish": silu_, "quick_gelu": lambda x: silu_(x, 1.702),
    "relu": lambda x: np.maximum(x, 0.0, out=x), "tanh": lambda x: np.tanh(x, out=x)}
