"""One head's queries or keys in several bases: how many columns hold positions, and how pure.

A basis is a matrix M [d d]: the columns of Q M are those of Q = X W_Q in it. T tokens, d width of a
head, ... any axes before.

Order: the bases, the part that is position, what is measured of the columns.
"""

import numpy as np

from . import factors

LEAST = 1e-300  # replaces a variance of 0 in a division


def raw(W):
    """The basis that the weights have: [... D d] -> [... d d].

    >>> raw(np.ones((4, 2)))
    array([[1., 0.],
           [0., 1.]])
    """
    d = W.shape[-1]
    return np.broadcast_to(np.eye(d), (*W.shape[:-2], d, d))


def svd(W_Q, W_K):
    """M for queries and for keys, with X W_Q M = X U_Q and X W_K M = X U_K: two of [... d d].

    In it the scores are a sum over the same columns of queries and keys:

    >>> rng = np.random.default_rng(0)
    >>> W_Q, W_K = rng.normal(size=(2, 6, 3))
    >>> M_Q, M_K = svd(W_Q, W_K)
    >>> bool(np.isclose(paired(M_Q, M_K), 1))
    True
    """
    W_Q = np.asarray(W_Q, np.float64)
    W_K = np.asarray(W_K, np.float64)
    U_Q, _, U_K = factors.svd(W_Q, W_K)
    M_Q = np.linalg.pinv(W_Q) @ U_Q
    M_K = np.linalg.pinv(W_K) @ U_K
    return M_Q, M_K


def principal(covariance):
    """Principal axes, those of most variance first: [... d d] -> [... d d].

    >>> principal(np.diag([1.0, 3.0]))[:, 0]
    array([0., 1.])
    """
    _, axes = np.linalg.eigh(covariance)  # variances ascend
    return axes[..., ::-1]


def random(n, d, rng):
    """n random rotations: [n d d].

    >>> Q = random(2, 3, np.random.default_rng(0))
    >>> Q.shape, bool(np.allclose(Q[0].T @ Q[0], np.eye(3)))
    ((2, 3, 3), True)
    """
    Q, R = np.linalg.qr(rng.standard_normal((n, d, d)))
    diagonal = np.diagonal(R, axis1=-2, axis2=-1)
    return Q * np.sign(diagonal)[:, None, :]


def of_position(a, b):
    """Covariance over positions [... d d] of two means over different documents [... T d].

    What both halves of the documents have in common is position. The covariance of one mean alone
    would include the words, which differ from document to document.

    Two means that share one wave, beside words of their own:

    >>> rng = np.random.default_rng(0)
    >>> wave = np.zeros((100, 2))
    >>> wave[:, 0] = np.sqrt(2) * np.cos(2 * np.pi * np.arange(100) / 10)
    >>> a, b = wave + 0.1 * rng.normal(size=(2, 100, 2))
    >>> of_position(a, b).round(1) + 0.0  # which makes 0 of -0
    array([[1., 0.],
           [0., 0.]])
    """
    a = a - a.mean(axis=-2, keepdims=True)
    b = b - b.mean(axis=-2, keepdims=True)
    T = a.shape[-2]
    product = a.swapaxes(-1, -2) @ b / T
    transposed = product.swapaxes(-1, -2)
    return (product + transposed) / 2


def variances(covariance, basis):
    """Variance of each column in a basis: [... d d], [... d d] -> [... d]; not below 0.

    >>> variances(np.diag([4.0, 1.0]), np.eye(2)[:, ::-1])
    array([1., 4.])
    """
    variance = np.einsum("...di,...de,...ei->...i", basis, covariance, basis)
    return np.maximum(variance, 0)


def paired(of_queries, of_keys):
    """How far column j of the queries meets only column j of the keys: [... d d] twice -> [...].

    Scores are Q M B (K M')^T, and this is the diagonal's share of B: 1 for the raw basis, one
    rotation of both, and the SVD; 1/d for two rotations that have nothing to do with each other.

    The raw basis, and two rotations that have nothing to do with each other:

    >>> eye = np.eye(64)
    >>> a, b = random(2, 64, np.random.default_rng(0))
    >>> float(paired(eye, eye)), round(float(paired(a, b)), 2)
    (1.0, 0.02)
    """
    M = np.linalg.pinv(of_queries)  # a pruned head's SVD has no inverse
    N = np.linalg.pinv(of_keys)
    B = M @ N.swapaxes(-1, -2)
    diagonal = np.diagonal(B, axis1=-2, axis2=-1)
    whole = np.square(B).sum(axis=(-2, -1))
    return np.square(diagonal).sum(axis=-1) / np.maximum(whole, LEAST)


def columns(variance):
    """How many columns a variance fills, (sum v)^2 / sum v^2: [... d] -> [...], from 1 to d.

    >>> columns(np.array([[1.0, 0, 0, 0], [1, 1, 1, 1]]))
    array([1., 4.])
    """
    total = variance.sum(axis=-1)
    squares = (variance * variance).sum(axis=-1)
    return total * total / np.maximum(squares, LEAST)


def purity(position, whole):
    """Position's share of a column's variance, mean over columns: [... d] twice -> [...].

    Each column is weighted by the variance of positions in it; 1 if such columns hold nothing else.

    Position fills the first column, and a quarter of the second, which holds less of it:

    >>> float(purity(np.array([3.0, 1.0]), np.array([3.0, 4.0])))
    0.8125
    """
    share = np.minimum(position / np.maximum(whole, LEAST), 1)  # of a column of rounding alone
    total = position.sum(axis=-1)
    return (position * share).sum(axis=-1) / np.maximum(total, LEAST)


def accumulated(variance):
    """Share of a variance in the first 1, 2, ... columns, the largest first: [... d] -> [... d].

    >>> accumulated(np.array([1.0, 6.0, 3.0]))
    array([0.6, 0.9, 1. ])
    """
    falling = -np.sort(-variance, axis=-1)
    total = falling.sum(axis=-1, keepdims=True)
    return falling.cumsum(axis=-1) / np.maximum(total, LEAST)
