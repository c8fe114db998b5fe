"""One head's queries or keys in several bases: in how many columns positions are, and how pure.

A basis is a matrix M [d d]: the columns of Q M are those of Q = X W_Q in it. T tokens, d width of a
head, ... any axes before.

Order: the bases, the part that is position, what is measured of the columns.
"""

import numpy as np

from . import factors


def raw(W):
    """The basis that the weights have: [... D d] -> [... d d]."""
    d = W.shape[-1]
    return np.broadcast_to(np.eye(d), (*W.shape[:-2], d, d))


def svd(W_Q, W_K):
    """M for queries and for keys, with X W_Q M = X U_Q and X W_K M = X U_K: two of [... d d]."""
    W_Q, W_K = np.asarray(W_Q, np.float64), np.asarray(W_K, np.float64)
    U_Q, _, U_K = factors.svd(W_Q, W_K)
    return np.linalg.pinv(W_Q) @ U_Q, np.linalg.pinv(W_K) @ U_K


def principal(covariance):
    """Principal axes, those of most variance first: [... d d] -> [... d d]."""
    _, axes = np.linalg.eigh(covariance)  # variances ascend
    return axes[..., ::-1]


def random(n, d, rng):
    """n random rotations: [n d d]."""
    Q, R = np.linalg.qr(rng.standard_normal((n, d, d)))
    return Q * np.sign(np.diagonal(R, axis1=-2, axis2=-1))[:, None, :]


def of_position(a, b):
    """Covariance over positions [... d d] of two means over different documents [... T d].

    What both halves of the documents have in common is position: of one mean alone the words, of
    which every document has its own, would be a part.
    """
    a = a - a.mean(axis=-2, keepdims=True)
    b = b - b.mean(axis=-2, keepdims=True)
    product = a.swapaxes(-1, -2) @ b / a.shape[-2]
    return (product + product.swapaxes(-1, -2)) / 2


def variances(covariance, basis):
    """Variance of each column in a basis: [... d d], [... d d] -> [... d]; not below 0."""
    return np.maximum(np.einsum("...di,...de,...ei->...i", basis, covariance, basis), 0)


def paired(of_queries, of_keys):
    """How far column j of the queries meets column j of the keys alone: [... d d] twice -> [...].

    Scores are Q M B (K M')^T, and this is the diagonal's share of B: 1 for the raw basis, one
    rotation of both, and the SVD; 1/d for two rotations that have nothing to do with each other.
    """
    B = np.linalg.inv(of_queries) @ np.linalg.inv(of_keys).swapaxes(-1, -2)
    diagonal = np.diagonal(B, axis1=-2, axis2=-1)
    return np.square(diagonal).sum(axis=-1) / np.square(B).sum(axis=(-2, -1))


def columns(variance):
    """In how many columns a variance is, (sum v)^2 / sum v^2: [... d] -> [...], from 1 to d."""
    total = variance.sum(axis=-1)
    squares = (variance * variance).sum(axis=-1)
    return total * total / np.maximum(squares, 1e-300)


def purity(position, whole):
    """Position's share of a column's variance, mean over columns: [... d] twice -> [...].

    Columns count as much as they hold of positions: 1 if these hold nothing else.
    """
    share = position / np.maximum(whole, 1e-300)
    return (position * share).sum(axis=-1) / np.maximum(position.sum(axis=-1), 1e-300)


def accumulated(variance):
    """Share of a variance in the first 1, 2, ... columns, the largest first: [... d] -> [... d]."""
    falling = -np.sort(-variance, axis=-1)
    return falling.cumsum(axis=-1) / np.maximum(falling.sum(axis=-1, keepdims=True), 1e-300)
