"""How a loss moves back through each kernel: from its gradient by the output to that by the input.

One derivative for each kernel of kernels.py, in the same order. For an output y and a loss, `dy`
stands for the gradient d loss / d y, an array of y's shape; what is returned are such gradients,
too. Nothing is written in place. Axis letters: see model.py; N: rows, all tokens of all texts.
"""

import numpy as np

from ..activations import (
    ACTIVATIONS,
    ERF_AS_TANH,
    gelu_,
    gelu_tanh_,
    quick_gelu_,
    relu_,
    silu_,
    tanh_,
)
from ..kernels import TILE
from ..machine.threads import even_step, spread


def rows_of(x):  # [... D] -> [N D]
    """All tokens of all texts, one after another."""
    return x.reshape(-1, x.shape[-1])


def matrix(x, dy):  # [... D], [... M] -> [D M]
    """y = x W: the gradient by W is x^T dy, a sum over tokens."""
    return rows_of(x).T @ rows_of(dy)


def bias(dy):  # [... M] -> [M]
    """y = x + b: the gradient by b is the sum of dy over tokens."""
    return np.add.reduce(rows_of(dy), 0)


def input_rows(dy, tokens, n):  # [B T D], [B T] or [B T V] -> [n D]
    """The gradient by W_E: of token ids that by a table's rows, of rows of numbers a matrix's."""
    if tokens.ndim < dy.ndim:
        return table(dy, tokens, n)
    return matrix(tokens.astype(dy.dtype), dy)


def table(dy, rows, n):  # [... D], [...] -> [n D]
    """y = W[rows]: row i of the gradient is the sum of dy where row i was read.

    Sorted, so that each row is summed once and always in the same order.
    """
    rows = rows.reshape(-1)
    order = np.argsort(rows, kind="stable")
    used, starts = np.unique(rows[order], return_index=True)
    dW = np.zeros((n, dy.shape[-1]), dy.dtype)
    dW[used] = np.add.reduceat(rows_of(dy)[order], starts)
    return dW


def normalised(dy, x, mean, scale, w):  # [B T D] twice, [B T] twice, [D] -> [B T D], [B T], [B T]
    """y = (x - mean) scale w + b: the gradients by x, by mean and by scale, each by itself."""
    dx = dy * w
    total = np.add.reduce(dx, -1)
    d_scale = np.einsum("...d,...d->...", dx, x) - total * mean
    dx *= scale[..., None]
    return dx, -scale * total, d_scale


def gain(dy, x, mean, scale):  # [B T D] twice, [B T] twice -> [D]
    """The same by w: the sum of dy (x - mean) scale over tokens."""
    normed = (x - mean[..., None]) * scale[..., None]
    return np.einsum("nd,nd->d", rows_of(dy), rows_of(normed))


def mean_and_inverse_std(d_mean, d_scale, x, mean, scale):  # [B T] four times -> [B T D]
    """mean = sum x / D and scale = (var x + eps)^-1/2: their gradients by x, added.

    d scale / d x = -scale^3 (x - mean) / D, since the derivative of x^-1/2 is -x^-3/2 / 2.
    """
    D = x.shape[-1]
    by_variance = -d_scale * scale * scale * scale / D
    constant = d_mean / D - by_variance * mean
    return x * by_variance[..., None] + constant[..., None]


def scaled(dy, x, scale, w):  # [B T D] twice, [B T], [D] -> [B T D], [B T]
    """y = x scale w: the gradients by x and by scale."""
    dx = dy * w
    d_scale = np.einsum("...d,...d->...", dx, x)
    dx *= scale[..., None]
    return dx, d_scale


def inverse_rms(d_scale, x, scale):  # [B T], [B T D], [B T] -> [B T D]
    """scale = (mean of x^2 + eps)^-1/2: -scale^3 x / D."""
    by_square = -d_scale * scale * scale * scale / x.shape[-1]
    return x * by_square[..., None]


def capped(dy, x, cap):
    """y = cap tanh(x / cap): dy (1 - tanh^2(x / cap))."""
    bounded = np.tanh(x / cap)
    return dy * (1.0 - bounded * bounded)


def softmax(dy, y):  # [... S] twice
    """y = softmax(x): y (dy - sum of y dy). Where y is 0, as on hidden keys, it is exactly 0."""
    along = np.einsum("...s,...s->...", y, dy)
    dx = dy - along[..., None]
    dx *= y
    return dx


def gelu_of(x, y):
    """The derivative of gelu where y = x Phi(x) is known: y / x + x phi(x), at 0 one half."""
    with np.errstate(invalid="ignore"):  # 0 / 0
        slope = y / x
    np.copyto(slope, 0.5, where=x == 0)
    slope += x * density(x)
    return slope


def density(x):
    """phi(x) = exp(-x^2 / 2) / sqrt(2 pi), of the normal distribution."""
    phi = x * x
    phi *= -0.5
    np.exp(phi, out=phi)
    phi *= (0.5 / np.pi) ** 0.5
    return phi


def gelu(x):
    """(x Phi(x))' = Phi(x) + x phi(x), the normal distribution function and its density."""
    if x.dtype == np.float64:
        from scipy.special import erf

        return 0.5 * (1.0 + erf(x * 0.5**0.5)) + x * density(x)
    square = np.minimum(x * x, 36.0)
    r = square * ERF_AS_TANH[-1]
    for coefficient in ERF_AS_TANH[-2:0:-1]:
        r += coefficient
        r *= square
    r += ERF_AS_TANH[0]
    return 0.5 * (1.0 + np.tanh(x * r)) + x * density(x)


def gelu_tanh(x):
    """(x (1 + tanh u) / 2)' = (1 + tanh u) / 2 + x (1 - tanh^2 u) u' / 2, u of gelu_tanh_."""
    factor = (2.0 / np.pi) ** 0.5
    square = x * x
    u = np.tanh(factor * x * (1.0 + 0.044715 * square))
    slope = factor * (1.0 + 3 * 0.044715 * square)
    return 0.5 * (1.0 + u) + 0.5 * x * (1.0 - u * u) * slope


def silu(x, slope=1.0):
    """(x s)' = s + slope x s (1 - s), with s = sigmoid(slope x)."""
    s = 0.5 * (1.0 + np.tanh(0.5 * slope * x))
    return s + slope * x * s * (1.0 - s)


def quick_gelu(x):
    """The same for sigmoid(1.702 x)."""
    return silu(x, 1.702)


def relu(x):
    """1 where x > 0; at 0 it is taken as 0."""
    return (x > 0).astype(x.dtype)


def tanh(x):
    """1 - tanh^2 x."""
    y = np.tanh(x)
    return 1.0 - y * y


SLOPES = {
    gelu_: gelu,
    gelu_tanh_: gelu_tanh,
    silu_: silu,
    quick_gelu_: quick_gelu,
    relu_: relu,
    tanh_: tanh,
}


def activation(dy, x, name, y=None):  # [... M] three times
    """y = act(x), feature by feature: dy act'(x). Computed in tiles, on all threads.

    y: act(x) where it is known; gelu then needs no distribution function.
    """
    slope = SLOPES[ACTIVATIONS[name]]
    dx = np.empty_like(x)
    np.copyto(dx, dy)  # in x's order of memory
    flat_x, flat_dx = x.ravel(order="K"), dx.ravel(order="K")
    if y is not None and slope is gelu and y.strides == x.strides:
        flat_y = y.ravel(order="K")

        def chunk(i, j):
            flat_dx[i:j] *= gelu_of(flat_x[i:j], flat_y[i:j])
    else:

        def chunk(i, j):
            flat_dx[i:j] *= slope(flat_x[i:j])

    spread(chunk, flat_x.size, even_step(flat_x.size, TILE))
    return dx


def cross_entropy(y, targets):  # [N V], [N] -> float, [N V]
    """Sum of -log softmax(y) at the targets, in nats; its gradient softmax(y) - 1 at the target."""
    largest = y.max(-1, keepdims=True)
    p = np.exp(y - largest)
    total = p.sum(-1, keepdims=True)
    row = np.arange(len(y))
    loss = np.log(total[:, 0]) - (y[row, targets] - largest[:, 0])
    p /= total
    p[row, targets] -= 1.0
    return float(loss.sum(dtype=np.float64)), p
