"""What attention can see of its weights: W_A = W_Q W_K^T as U_Q S U_K^T, and components of the stream beside it.

Unscaled scores are (X W_Q)(X W_K)^T = X W_A X^T: W_Q and W_K matter through their product alone (Elhage et al.
2021); with Q = X U_Q and K = X U_K they are Q S K^T. T tokens, D model width, d head width, r = min(D, d);
... any heads.
Order: the thin SVD, its QR, eigenvalues; what it sees of a stream, biases; principal and independent components.
"""

from contextlib import suppress

import numpy as np


def svd(W_Q, W_K, b_Q=None, b_K=None):
    """Thin SVD of W_A = W_Q W_K^T: [... D d] twice -> U_Q [... D r], S [... r] falling, U_K [... D r].

    QR of both factors, then the SVD of the small R_Q R_K^T: no D x D matrix is formed. Each column of U_Q has
    its largest entry positive. With both biases [... d] a row of them stands below each W, so that U_Q and U_K
    have D + 1 rows and with_ones(X) U_Q S U_K^T with_ones(X)^T are the unscaled scores, biases included. Only
    one bias: ValueError.
    """
    if (b_Q is None) != (b_K is None):
        raise ValueError(f"both biases or none are wanted, b_{'Q' if b_Q is None else 'K'} is missing")
    if b_Q is not None:
        W_Q, W_K = (np.concatenate([W, b[..., None, :]], -2) for W, b in ((W_Q, b_Q), (W_K, b_K)))
    (Q_Q, R_Q), (Q_K, R_K) = qr(W_Q), qr(W_K)
    left, S, right = np.linalg.svd(R_Q @ R_K.swapaxes(-1, -2))
    U_Q, U_K = Q_Q @ left, Q_K @ right.swapaxes(-1, -2)
    sign = signs(U_Q)
    return U_Q * sign, S, U_K * sign


def qr(W):
    """W = Q R: W [... D d] -> orthonormal columns Q [... D r], triangular R [... r d]; half of np.linalg.qr's time.

    By Cholesky of W^T W in float64, and again of what came out until it is orthonormal (Yamamoto et al. 2015);
    np.linalg.qr itself where columns depend on each other too nearly for that, or are more than rows.
    """
    I, W = np.eye(W.shape[-1]), W if W.dtype.kind == "f" else W.astype(np.float64)
    near = max(np.finfo(W.dtype).eps, 100 * np.finfo(np.float64).eps)
    Q, R = W.astype(np.float64), np.broadcast_to(I, (*W.shape[:-2], *I.shape))
    with suppress(np.linalg.LinAlgError):
        for _ in range(3):
            squares = Q.swapaxes(-1, -2) @ Q
            if abs(squares - I).max(initial=0) < near:
                return Q.astype(W.dtype), R.astype(W.dtype)
            L = np.linalg.cholesky(squares)
            Q, R = Q @ np.linalg.inv(L).swapaxes(-1, -2), L.swapaxes(-1, -2) @ R
    return np.linalg.qr(W)


def eigenvalues(A, B):
    """Those of A B^T [D D] that are not 0, from the small B^T A, which has the same: [... D d] twice -> [... d]."""
    return np.linalg.eigvals(B.swapaxes(-1, -2) @ A)


def signs(U):
    """+1 or -1 for each column, the sign of its largest entry: [... D r] -> [... 1 r]."""
    largest = np.take_along_axis(U, abs(U).argmax(axis=-2, keepdims=True), -2)
    return np.where(largest < 0, -1, 1).astype(U.dtype)


def seen(X, W_Q, W_K):
    """What queries read of X [T D], each direction as heavy as it is in the scores: X U_Q S U_Q^T [T D]."""
    U_Q, S, _ = svd(W_Q, W_K)
    return X @ U_Q * S @ U_Q.T


def with_ones(X):
    """X with a last column of ones, which meets the row of biases: [... T D] -> [... T D + 1]."""
    return np.concatenate([X, np.ones_like(X[..., :1])], -1)


def pca(x, n):
    """Principal components of the centred columns of [T D]: scores [T n], directions [n D], share of variance [n].

    Each direction has its largest entry positive. More than min(T, D) components: ValueError.
    """
    x = np.asarray(x, np.float64)
    if not 0 < n <= min(x.shape):
        raise ValueError(f"{n} components wanted of {x.shape[0]} tokens and {x.shape[1]} columns")
    U, S, V = np.linalg.svd(x - x.mean(axis=0), full_matrices=False)
    sign = signs(V.T)[0]
    scores, variance = U * S * sign, S * S
    return scores[:, :n], (V * sign[:, None])[:n], variance[:n] / max(variance.sum(), 1e-300)


def ica(x, n, seed=0):
    """Independent components of [T D] by FastICA (Hyvärinen 1999): sources [T n] of unit variance.

    Their order means nothing; each has its largest entry positive. Without scikit-learn: ValueError.
    """
    try:
        from sklearn.decomposition import FastICA
    except ImportError as error:
        raise ValueError(f"ICA needs scikit-learn ({error}): pip install 'minitx[ica]'") from None
    fast = FastICA(n_components=n, whiten="unit-variance", max_iter=1000, random_state=seed)
    sources = fast.fit_transform(np.asarray(x, np.float64))
    return sources * signs(sources)
