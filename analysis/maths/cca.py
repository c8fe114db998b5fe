"""Canonical correlations between a stream and a table of places, from sums over documents.

Canonical directions a_k, b_k make x a_k and y b_k as correlated as can be, each pair uncorrelated
with those before (Hotelling 1936; of hidden layers Raghu et al. 2017). The rows x are tokens, the
rows y their places' in a table, again and again for every document: so neither is ever held as a
whole. X^T X and the sums of x at each place tell all; sums of two sets of documents are added.

D width, T places, K columns of the table. Order: sums, their moments, fit, test.
"""

from typing import NamedTuple

import numpy as np

RANK = 1e-9  # variance, of the largest, below which a direction of x counts as constant


class Moments(NamedTuple):
    """What canonical correlations need of some documents, their mean taken off.

    >>> Moments(1, *sums(np.eye(2))).n
    1
    """

    n: int  # documents
    xx: np.ndarray  # [D D] sum of x x^T
    places: np.ndarray  # [T D] sum of the x at a place


class Fit(NamedTuple):
    """Directions of a fit, in the order of its correlations.

    >>> Fit(np.ones(1), np.eye(2)[:, :1], np.eye(1)).a.shape
    (2, 1)
    """

    correlations: np.ndarray  # [K]
    a: np.ndarray  # [D K]
    b: np.ndarray  # [K K]


def sums(x):
    """What is added up of one document [T D]: (x^T x [D D], x [T D]), in float64.

    >>> xx, places = sums(np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> xx.tolist()
    [[10.0, 14.0], [14.0, 20.0]]
    """
    x = np.asarray(x, np.float64)
    return x.T @ x, x


def moments(n, xx, places):
    """Moments of n documents from their sums.

    >>> moments(1, *sums(np.array([[1.0], [3.0]]))).xx.tolist()
    [[2.0]]
    """
    rows = n * len(places)
    mean = places.sum(axis=0) / rows
    return Moments(n, xx - rows * np.outer(mean, mean), places - n * mean)


def columns(table, K):
    """The first K principal components of a table [T D] over its places, orthonormal: [T K].

    Raises ValueError if it has fewer.

    >>> columns(np.array([[0.0, 1], [1, 0], [2, 1], [3, 0]]), 1).shape
    (4, 1)
    """
    x = np.asarray(table, np.float64)
    if K >= min(x.shape):
        raise ValueError(f"{K} components wanted of {x.shape[0]} places and {x.shape[1]} columns")
    U, _, _ = np.linalg.svd(x - x.mean(axis=0), full_matrices=False)
    return U[:, :K]


def whitening(sums):
    """W [D r] that makes x W uncorrelated, of length 1 in each column over the documents.

    From the eigenvectors of X^T X, as a norm leaves x with a direction that is constant, in which
    the R of X = Q R has no inverse.

    >>> W = whitening(moments(1, *sums(np.array([[1.0, 1.0], [3.0, 1.0]]))))
    >>> W.shape  # the second column is constant
    (2, 1)
    """
    variance, directions = np.linalg.eigh(sums.xx)
    inside = variance > RANK * variance[-1]
    return directions[:, inside] / np.sqrt(variance[inside])


def fit(sums, W, y):
    """Fit of Moments to orthonormal columns y [T K]: SVD of the small (X W)^T Y.

    >>> x = np.column_stack([np.arange(6.0), [1, 0, 0, 1, 0, 1]])  # the place, and something else
    >>> one = moments(1, *sums(x))
    >>> fitted = fit(one, whitening(one), columns(np.arange(12.0).reshape(6, 2), 1))
    >>> fitted.correlations.round(9).tolist()
    [1.0]
    """
    small = W.T @ (sums.places.T @ y) / np.sqrt(sums.n)
    left, correlations, right = np.linalg.svd(small, full_matrices=False)
    return Fit(correlations, W @ left, right.T)


def held_out(fitted, sums, y):
    """Correlations of a Fit on other documents: [K]; those it was fitted to have its own.

    >>> x, y = np.arange(6.0)[:, None], columns(np.arange(12.0).reshape(6, 2), 1)
    >>> first, second = (moments(1, *sums(part)) for part in (x, x**2))
    >>> held_out(fit(first, whitening(first), y), second, y).round(3).tolist()
    [0.96]
    """
    a, b = fitted.a, fitted.b
    covariance = np.einsum("dk,dk->k", a, sums.places.T @ (y @ b))
    variance = np.einsum("dk,dk->k", a, sums.xx @ a) * sums.n
    return covariance / np.sqrt(np.maximum(variance, 1e-300))
