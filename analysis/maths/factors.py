"""What attention can see of its weights, W_A = W_Q W_K^T as U_Q S U_K^T; components of a stream.

Unscaled scores are (X W_Q)(X W_K)^T = X W_A X^T: W_Q and W_K matter through their product alone
(Elhage et al. 2021); with Q = X U_Q and K = X U_K they are Q S K^T. T tokens, D model width, d head
width, r = min(D, d); ... any heads.

Order: the thin SVD, its QR, eigenvalues; the part of a stream that queries see, biases; principal
and independent components.
"""

from contextlib import suppress

import numpy as np


def svd(W_Q, W_K, b_Q=None, b_K=None):
    """Thin SVD of W_A = W_Q W_K^T: [... D d] twice -> U_Q [... D r], S [... r], U_K [... D r].

    S falls; each column of U_Q has its largest entry positive. QR of both factors, then the SVD of
    the small R_Q R_K^T: no D x D matrix is formed. With both biases [... d] they become a last row
    of each W, so that U_Q and U_K have D + 1 rows and with_ones(X) U_Q S U_K^T with_ones(X)^T are
    the unscaled scores, biases included. Raises ValueError if only one bias is given.

    A head of width 4 reads at most 4 of 50 directions of the stream:

    >>> W_Q, W_K = np.random.default_rng(0).normal(size=(2, 50, 4))
    >>> U_Q, S, U_K = svd(W_Q, W_K)
    >>> U_Q.shape, S.shape
    ((50, 4), (4,))
    >>> np.allclose(U_Q * S @ U_K.T, W_Q @ W_K.T)
    True
    """
    if (b_Q is None) != (b_K is None):
        missing = "Q" if b_Q is None else "K"
        raise ValueError(f"wanted both biases or none; b_{missing} is missing")
    if b_Q is not None:
        W_Q = _with_bias_row(W_Q, b_Q)
        W_K = _with_bias_row(W_K, b_K)
    Q_Q, R_Q = qr(W_Q)
    Q_K, R_K = qr(W_K)
    left, S, right = np.linalg.svd(R_Q @ R_K.swapaxes(-1, -2))
    U_Q = Q_Q @ left
    U_K = Q_K @ right.swapaxes(-1, -2)
    sign = signs(U_Q)
    return U_Q * sign, S, U_K * sign


def _with_bias_row(W, b):
    """The bias as a last row: [... D d], [... d] -> [... D + 1 d]."""
    return np.concatenate([W, b[..., None, :]], -2)


def qr(W):
    """W = Q R: W [... D d] -> Q [... D r] with orthonormal columns, triangular R [... r d].

    Takes half the time of np.linalg.qr: by Cholesky of W^T W in float64, repeated on the result
    until its columns are orthonormal (Yamamoto et al. 2015). np.linalg.qr itself is used where the
    columns are too nearly dependent for that, or outnumber the rows.

    >>> W = np.random.default_rng(0).normal(size=(50, 4))
    >>> Q, R = qr(W)
    >>> np.allclose(Q @ R, W), np.allclose(Q.T @ Q, np.eye(4))
    (True, True)
    """
    identity = np.eye(W.shape[-1])
    if W.dtype.kind != "f":
        W = W.astype(np.float64)
    tolerance = max(np.finfo(W.dtype).eps, 100 * np.finfo(np.float64).eps)
    Q = W.astype(np.float64)
    R = np.broadcast_to(identity, (*W.shape[:-2], *identity.shape))
    with suppress(np.linalg.LinAlgError):
        for _ in range(3):
            squares = Q.swapaxes(-1, -2) @ Q
            if abs(squares - identity).max(initial=0) < tolerance:
                return Q.astype(W.dtype), R.astype(W.dtype)
            L = np.linalg.cholesky(squares)
            Q = Q @ np.linalg.inv(L).swapaxes(-1, -2)
            R = L.swapaxes(-1, -2) @ R
    return np.linalg.qr(W)


def eigenvalues(A, B):
    """Eigenvalues of A B^T [D D] other than 0: [... D d] twice -> [... d].

    They are those of the small B^T A.

    Those of W_V W_O show whether a head copies what it reads; with one direction there is one, the
    trace:

    >>> W_V = np.array([[1.0], [2.0]])
    >>> W_O = np.array([[3.0, 4.0]])
    >>> eigenvalues(W_V, W_O.T).real.round(9), float(np.trace(W_V @ W_O))
    (array([11.]), 11.0)
    """
    return np.linalg.eigvals(B.swapaxes(-1, -2) @ A)


def signs(U):
    """+1 or -1 for each column, the sign of its largest entry: [... D r] -> [... 1 r].

    >>> signs(np.array([[0.1, -0.9], [0.8, 0.3]]))
    array([[ 1., -1.]])
    """
    largest = np.take_along_axis(U, abs(U).argmax(axis=-2, keepdims=True), -2)
    return np.where(largest < 0, -1, 1).astype(U.dtype)


def seen(X, W_Q, W_K):
    """The part of X [T D] that queries see, X U_Q S U_Q^T [T D].

    Each direction has the weight that it has in the scores.

    Queries that read the first column alone see nothing of the second:

    >>> X = np.array([[1.0, 5.0], [2.0, 7.0]])
    >>> W = np.array([[1.0], [0.0]])
    >>> abs(seen(X, W, W))
    array([[1., 0.],
           [2., 0.]])
    """
    U_Q, S, _ = svd(W_Q, W_K)
    return X @ U_Q * S @ U_Q.T


def with_ones(X):
    """X with a last column of ones, which meets the row of biases: [... T D] -> [... T D + 1].

    >>> with_ones(np.array([[5.0, 7.0], [6.0, 8.0]]))
    array([[5., 7., 1.],
           [6., 8., 1.]])
    """
    return np.concatenate([X, np.ones_like(X[..., :1])], -1)


def pca(x, n):
    """Principal components of centred columns: [T D] -> scores [T n], directions [n D], shares [n].

    The shares are of the variance. Each direction has its largest entry positive. Raises ValueError
    for more than min(T, D) components.

    Points on a line need one direction:

    >>> scores, directions, shares = pca([[0, 0], [3, 4], [6, 8]], 1)
    >>> directions.round(9), shares.round(9)
    (array([[0.6, 0.8]]), array([1.]))
    >>> abs(scores).round(9)
    array([[5.],
           [0.],
           [5.]])
    """
    x = np.asarray(x, np.float64)
    if not 0 < n <= min(x.shape):
        raise ValueError(
            f"{n} components requested for {x.shape[0]} tokens and {x.shape[1]} columns"
        )
    U, S, V = np.linalg.svd(x - x.mean(axis=0), full_matrices=False)
    sign = signs(V.T)[0]
    scores = U * S * sign
    directions = V * sign[:, None]
    variance = S * S
    return scores[:, :n], directions[:n], variance[:n] / max(variance.sum(), 1e-300)


def ica(x, n, seed=0):
    """Independent components of [T D] by FastICA (Hyvärinen 1999): sources [T n] of unit variance.

    Their order means nothing; each has its largest entry positive. Raises ValueError if
    scikit-learn is not installed.

    Two signals that were mixed are told apart, up to order and sign:

    >>> signals = np.random.default_rng(0).uniform(-1, 1, (1000, 2))
    >>> sources = ica(signals @ [[1.0, 0.5], [0.5, 1.0]], 2)
    >>> abs(np.corrcoef(signals.T, sources.T))[:2, 2:].max(axis=1).round(1)
    array([1., 1.])
    """
    try:
        from sklearn.decomposition import FastICA
    except ImportError as error:
        raise ValueError(f"ICA needs scikit-learn ({error}): pip install 'minitx[ica]'") from None
    fast = FastICA(n_components=n, whiten="unit-variance", max_iter=1000, random_state=seed)
    sources = fast.fit_transform(np.asarray(x, np.float64))
    return sources * signs(sources)
