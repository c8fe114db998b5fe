"""Logistic regression on frozen features, and intervals of its accuracy on held-out documents.

    p(class k) = softmax(x W + b)_k
    W, b = argmin -sum ln p(own class) + |W|^2 / (2 C),  b free

Two classes: the usual logistic regression with w = W_1 - W_0 and its C twice this one. N rows, F
features, K classes, M held-out rows.

Order: the fit, the choice of C, the whole probe; accuracies.
"""

import functools

import numpy as np
import scipy

STRENGTHS = tuple(10.0**k for k in range(-4, 3))  # C from which one is chosen
VALIDATION = 0.25  # share of the training rows that choose it
FLAT = 1e-8  # largest gradient of the mean loss at which a fit ends
STEPS, ROUNDED = 100, 1e-12  # at most; a loss that rises by less does not rise
Z = 1.959963984540054  # normal quantile of a 95% interval


def loss(W, X, y, C):
    """Mean loss with the penalty, and its gradient [F+1 K], of weights W [F+1 K].

    The intercept is the last row of W; y [N] is in 0 ... K-1.

    Weights of 0 give each of two classes half, a loss of ln 2:

    >>> X, y = np.array([[-1.0], [1.0]]), np.array([0, 1])
    >>> value, gradient = loss(np.zeros((2, 2)), X, y, C=1.0)
    >>> round(float(value), 3), gradient[0].round(9)
    (0.693, array([ 0.5, -0.5]))
    """
    N = len(X)
    K = W.shape[1]
    logp = scipy.special.log_softmax(X @ W[:-1] + W[-1], axis=1)
    own_logp = logp[np.arange(N), y]
    penalty = W[:-1] / (C * N)
    value = -own_logp.mean() + 0.5 * (penalty * W[:-1]).sum()
    own_class = np.eye(K)[y]
    error = (np.exp(logp) - own_class) / N
    gradient = X.T @ error + penalty
    return value, np.vstack([gradient, error.sum(axis=0)])


def curvature(W, V, X, C):
    """Second derivative of the loss at W along V: [F+1 K].

    How the gradient changes, to first order, with a small step:

    >>> X, y = np.array([[-1.0], [1.0]]), np.array([0, 1])
    >>> W, V = np.zeros((2, 2)), np.array([[1.0, -1.0], [0.0, 0.0]])
    >>> step = (loss(W + 1e-6 * V, X, y, 1.0)[1] - loss(W, X, y, 1.0)[1]) / 1e-6
    >>> np.allclose(step, curvature(W, V, X, 1.0))
    True
    """
    return curvature_of(probabilities(W, X), V, X, C)


def probabilities(W, X):
    """Of each class for each row: [N K].

    Weights of 0 give each of two classes half:

    >>> probabilities(np.zeros((2, 2)), np.array([[-1.0], [1.0]]))
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """
    return np.exp(scipy.special.log_softmax(X @ W[:-1] + W[-1], axis=1))


def curvature_of(p, V, X, C):
    """`curvature` where the probabilities [N K] at W are known.

    >>> X, V = np.array([[-1.0], [1.0]]), np.array([[1.0, -1.0], [0.0, 0.0]])
    >>> W = np.zeros((2, 2))
    >>> np.allclose(curvature_of(probabilities(W, X), V, X, 1.0), curvature(W, V, X, 1.0))
    True
    """
    change = X @ V[:-1] + V[-1]
    mean_change = (p * change).sum(axis=1, keepdims=True)
    error = p * (change - mean_change) / len(X)
    gradient = np.empty_like(V)
    gradient[:-1] = X.T @ error + V[:-1] / (C * len(X))
    gradient[-1] = error.sum(axis=0)
    return gradient


def fit(X, y, C):
    """Weights [F+1 K] at the minimum, by Newton steps.

    Raises ValueError for features that are not finite or labels of one class only, RuntimeError if
    no minimum is reached.

    The smaller the penalty, the larger the weights:

    >>> X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([0, 0, 1, 1])
    >>> fit(X, y, C=0.1)[0].round(2), fit(X, y, C=10)[0].round(2)
    (array([-0.2,  0.2]), array([-1.37,  1.37]))
    """
    X, y = np.asarray(X, np.float64), np.asarray(y, int)
    _validate(X, y)
    if y.max() > 1:
        return _fit_many(X, y, C)
    if len(X) >= X.shape[1]:
        return _fit_two(X, y, C)
    Q, R = np.linalg.qr(X.T)  # the weights are a sum of rows: as many unknowns as rows
    W = _fit_two(R.T, y, C)
    return np.vstack([Q @ W[:-1], W[-1]])


def _fit_two(X, y, C):
    """Of two classes: steps of w = W_1 - W_0 by the exact curvature, halved where it rises."""
    N = len(X)
    X = np.column_stack([X, np.ones(N)])
    side = 2 * y - 1
    penalty = np.full(X.shape[1], 1 / (2 * C * N))
    penalty[-1] = 0  # of the intercept

    def value_of(w):
        return np.logaddexp(0, -side * (X @ w)).mean() + 0.5 * (penalty * w) @ w

    w = np.zeros(X.shape[1])
    for _ in range(STEPS):
        p = scipy.special.expit(X @ w)
        gradient = X.T @ (p - y) / N + penalty * w
        if np.linalg.norm(gradient) < FLAT:
            break
        curvature = (X.T * (p * (1 - p) / N)) @ X + np.diag(penalty)
        step = np.linalg.solve(curvature, gradient)
        while value_of(w - step) > value_of(w) + ROUNDED:
            step = step / 2
        w = w - step
    _check_flat(gradient, f"after {STEPS} steps")
    return np.column_stack([-w, w]) / 2


def _fit_many(X, y, C):
    """Of any number of classes: steps in a trust region, by products with the curvature."""
    K = int(np.max(y)) + 1
    shape = (X.shape[1] + 1, K)

    def value_and_gradient(w):
        value, gradient = loss(w.reshape(shape), X, y, C)
        return value, gradient.ravel()

    @functools.lru_cache(1)
    def probabilities_at(w):  # bytes: the search asks for many directions at the same weights
        return probabilities(np.frombuffer(w).reshape(shape), X)

    def curvature_along(w, v):
        return curvature_of(probabilities_at(w.tobytes()), v.reshape(shape), X, C).ravel()

    start = np.zeros(np.prod(shape))
    minimum = scipy.optimize.minimize(
        value_and_gradient,
        start,
        jac=True,
        method="trust-ncg",
        options={"gtol": FLAT},
        hessp=curvature_along,
    )
    _check_flat(minimum.jac, minimum.message)
    return minimum.x.reshape(shape)


def _check_flat(gradient, how):
    """Raise RuntimeError where a fit did not end at a minimum."""
    steepest = np.abs(gradient).max()
    if steepest > 100 * FLAT:
        raise RuntimeError(f"no minimum found: the gradient is still {steepest:.2g} ({how})")


def _validate(X, y):
    """Raise ValueError for features that are not finite or labels of one class only."""
    if not np.isfinite(X).all():
        bad_rows = (~np.isfinite(X)).any(axis=1).sum()
        raise ValueError(f"the features of {bad_rows} of {len(X)} rows are not finite")
    if len(np.unique(y)) < 2:
        raise ValueError(f"all {len(y)} labels are the same; wanted two classes or more")


def standards(X):
    """Mean [F] and scale [F] of the columns; a constant column has scale 1.

    The second column is constant:

    >>> standards(np.array([[1.0, 5.0], [3.0, 5.0]]))
    (array([2., 5.]), array([1., 1.]))
    """
    X = np.asarray(X, np.float64)
    deviation = X.std(axis=0)
    varies = deviation > 1e-12 * np.abs(X).max(initial=1e-300)
    scale = np.where(varies, deviation, 1.0)
    return X.mean(axis=0), scale


def stratified(y, share, rng):
    """Which rows are set aside [N]: a share of each class, at least one row of it, and not all.

    A quarter of each class, though one is three times as large:

    >>> y = np.array([0] * 12 + [1] * 4)
    >>> aside = stratified(y, 0.25, np.random.default_rng(0))
    >>> np.bincount(y[aside])
    array([3, 1])
    """
    aside = np.zeros(len(y), bool)
    for k in np.unique(y):
        rows = rng.permutation(np.flatnonzero(y == k))
        wanted = max(round(share * len(rows)), 1)
        n = min(wanted, len(rows) - 1)
        aside[rows[:n]] = True
    return aside


def choose_C(X, y, seed=0, strengths=STRENGTHS):
    """The C whose fit on a part of the rows has the least loss on the other rows.

    Labels that have nothing to do with the features get a strong penalty:

    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(200, 40)), rng.integers(2, size=200)
    >>> choose_C(X, y), choose_C(X, (X[:, 0] > 0).astype(int))
    (0.0001, 10.0)
    """
    validation = stratified(y, VALIDATION, np.random.default_rng(seed))
    mean, scale = standards(X[~validation])
    X = (X - mean) / scale

    def error(C):
        W = fit(X[~validation], y[~validation], C)
        value, _ = loss(W, X[validation], y[validation], np.inf)
        return value

    return min(strengths, key=error)


def probe(X, y, held_out, C=0.0, seed=0):
    """Classes [M] of held-out rows [M F] from training rows [N F] with classes y [N]; and C.

    C: 0 chooses it on a part of the training rows. Features are standardised by the training rows
    alone.

    The class is the sign of the first feature:

    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> predicted, C = probe(X, y, [[2.0, 0.0, 0.0], [-2.0, 0.0, 0.0]], C=1.0)
    >>> predicted
    array([1, 0])
    """
    X = np.asarray(X, np.float64)
    held_out = np.asarray(held_out, np.float64)
    C = C or choose_C(X, y, seed)
    mean, scale = standards(X)
    W = fit((X - mean) / scale, y, C)
    scores = (held_out - mean) / scale @ W[:-1] + W[-1]
    return scores.argmax(axis=1), C


def shuffled(X, y, held_out, truth, C, n, seed):
    """Held-out accuracies of n probes whose training labels were permuted: [n].

    A probe trained on permuted labels gets about half right for two classes:

    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> accuracies = shuffled(X[:50], y[:50], X[50:], y[50:], C=1.0, n=20, seed=0)
    >>> bool(0.3 < accuracies.mean() < 0.7)
    True
    """
    rng = np.random.default_rng(seed)
    accuracies = []
    for _ in range(n):
        predicted, _ = probe(X, rng.permutation(y), held_out, C)
        accuracies.append((predicted == truth).mean())
    return np.array(accuracies)


def wilson(right):
    """95% interval of a share, from right [M ...] bool (Wilson 1927): [2 ...].

    9 of 10 documents, and 90 of 100:

    >>> wilson(np.arange(10) < 9).round(2), wilson(np.arange(100) < 90).round(2)
    (array([0.6 , 0.98]), array([0.83, 0.94]))
    """
    n = len(right)
    share = np.mean(right, axis=0)
    middle = share + Z * Z / (2 * n)
    variance = share * (1 - share) / n
    half = Z * np.sqrt(variance + Z * Z / (4 * n * n))
    whole = 1 + Z * Z / n
    return np.clip([middle - half, middle + half], 0, whole) / whole


def paired(a, b):
    """95% interval of mean(a) - mean(b), right or wrong on the same M documents: [2].

    Wald's with half a document added to each of the four cases (Agresti and Min 2005).

    One probe is right on 80, the other on 70 of 100 documents, and wherever the second is right,
    the first is too:

    >>> documents = np.arange(100)
    >>> paired(documents < 80, documents < 70).round(3)
    array([0.037, 0.159])
    """
    n = len(a) + 2
    only_a = np.sum(a & ~b) + 0.5
    only_b = np.sum(b & ~a) + 0.5
    middle = (only_a - only_b) / n
    half = Z * np.sqrt(only_a + only_b - (only_a - only_b) ** 2 / n) / n
    return np.clip([middle - half, middle + half], -1, 1)
