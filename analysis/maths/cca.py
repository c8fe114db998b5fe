"""Canonical correlations between a stream and a table of places, from sums over documents.

Canonical directions a_k, b_k make x a_k and y b_k as correlated as can be, each pair uncorrelated
with those before (Hotelling 1936; for hidden layers Raghu et al. 2017). The rows x are tokens; the
rows y are the table's rows at their places, the same for every document, so neither matrix is ever
held whole. X^T X and the sums of x at each place suffice; sums of two sets of documents are added.

D width, T places, K columns of the table. Order: sums, their moments, fit, test.
"""

from typing import NamedTuple

import numpy as np

RANK = 1e-9  # variance, of the largest, below which a direction of x counts as constant


class Moments(NamedTuple):
    """What canonical correlations need of some documents, with their mean subtracted.

    Two documents that are one and the same:

    >>> x = np.eye(3)
    >>> xx, places = sums(x)
    >>> m = moments(2, 2 * xx, 2 * places)
    >>> m.n, m.xx.shape, m.places.shape
    (2, (3, 3), (3, 3))
    """

    n: int  # documents
    xx: np.ndarray  # [D D] sum of x x^T
    places: np.ndarray  # [T D] sum of the x at a place


class Fit(NamedTuple):
    """Directions of a fit, in the order of its correlations.

    >>> x = np.random.default_rng(0).normal(size=(9, 4))
    >>> m = moments(1, *sums(x))
    >>> fitted = fit(m, whitening(m), columns(x, 2))
    >>> fitted.correlations.round(9), fitted.a.shape, fitted.b.shape
    (array([1., 1.]), (4, 2), (2, 2))
    """

    correlations: np.ndarray  # [K]
    a: np.ndarray  # [D K]
    b: np.ndarray  # [K K]


def sums(x):
    """What is added up of one document [... T D]: (x^T x [... D D], x [... T D]), in float64.

    >>> xx, places = sums(np.ones((3, 2)))
    >>> xx, places.shape
    (array([[3., 3.],
           [3., 3.]]), (3, 2))
    """
    x = np.asarray(x, np.float64)
    return x.swapaxes(-1, -2) @ x, x


def moments(n, xx, places):
    """Moments of n documents from their sums.

    Sums of documents are added; three documents of the same tokens have three times the squares.

    >>> x = np.array([[1.0], [3.0]])
    >>> xx, places = sums(x)
    >>> moments(3, 3 * xx, 3 * places).xx, moments(1, xx, places).xx
    (array([[6.]]), array([[2.]]))
    """
    rows = n * len(places)
    mean = places.sum(axis=0) / rows
    return Moments(n, xx - rows * np.outer(mean, mean), places - n * mean)


def columns(table, K):
    """The first K principal components of a table [T D] over its places, orthonormal: [T K].

    Raises ValueError if it has fewer.

    >>> table = np.random.default_rng(0).normal(size=(8, 4))
    >>> y = columns(table, 2)
    >>> bool(np.allclose(y.T @ y, np.eye(2)))
    True
    """
    x = np.asarray(table, np.float64)
    if K >= min(x.shape):
        raise ValueError(
            f"{K} components requested for {x.shape[0]} positions and {x.shape[1]} columns"
        )
    U, _, _ = np.linalg.svd(x - x.mean(axis=0), full_matrices=False)
    return U[:, :K]


def whitening(sums):
    """W [D r] that makes x W uncorrelated, of length 1 in each column over the documents.

    From the eigenvectors of X^T X: after a norm x is constant along one direction, so that the R of
    X = Q R would have no inverse.

    >>> x = np.random.default_rng(0).normal(size=(20, 3)) @ np.diag([5.0, 1.0, 0.1])
    >>> m = moments(1, *sums(x))
    >>> bool(np.allclose(whitening(m).T @ m.xx @ whitening(m), np.eye(3)))
    True
    """
    variance, directions = np.linalg.eigh(sums.xx)
    inside = variance > RANK * variance[-1]
    return directions[:, inside] / np.sqrt(variance[inside])


def fit(sums, W, y):
    """Fit of Moments to orthonormal columns y [T K]: SVD of the small (X W)^T Y.

    A stream that holds the table, and noise beside it:

    >>> table = np.random.default_rng(0).normal(size=(50, 4))
    >>> y = columns(table, 2)
    >>> m = moments(1, *sums(np.c_[table, np.random.default_rng(1).normal(size=(50, 4))]))
    >>> fit(m, whitening(m), y).correlations.round(9)
    array([1., 1.])
    """
    small = W.T @ (sums.places.T @ y) / np.sqrt(sums.n)
    left, correlations, right = np.linalg.svd(small, full_matrices=False)
    return Fit(correlations, W @ left, right.T)


def held_out(fitted, sums, y):
    """Correlations of a Fit on other documents: [K]; on its own documents they are the fitted ones.

    A fit to noise, which shows nothing on other noise:

    >>> rng = np.random.default_rng(0)
    >>> y = columns(rng.normal(size=(30, 4)), 1)
    >>> a, b = (moments(1, *sums(rng.normal(size=(30, 20)))) for _ in range(2))
    >>> fitted = fit(a, whitening(a), y)
    >>> held_out(fitted, a, y).round(2), held_out(fitted, b, y).round(2)
    (array([0.81]), array([0.08]))
    """
    a, b = fitted.a, fitted.b
    covariance = np.einsum("dk,dk->k", a, sums.places.T @ (y @ b))
    variance = np.einsum("dk,dk->k", a, sums.xx @ a) * sums.n
    return covariance / np.sqrt(np.maximum(variance, 1e-300))
