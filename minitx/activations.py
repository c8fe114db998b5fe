"""The activations of an MLP or a task head, each a kernel that writes in place, by its name.

They are computed tile by tile, as threads share them; each has its plain float64 twin in the tests.
"""

import numpy as np

from .kernels import TILE
from .machine.threads import even_step, spread

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
    if flat.flags.owndata:  # a copy
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

    spread(chunk, flat.size, even_step(flat.size, TILE))
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
