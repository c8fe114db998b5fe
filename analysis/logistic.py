"""Logistic regression on frozen features, and how sure its accuracy on held-out documents is.

    p(class k) = softmax(x W + b)_k,    W, b = argmin -sum ln p(own class) + |W|^2 / (2 C),    b free

Two classes: the usual logistic regression with w = W_1 - W_0 and its C twice this one. Order: the fit, the choice of C,
the whole probe; accuracies. N rows, F features, K classes, M held-out rows.
"""

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax

STRENGTHS = tuple(10.0 ** k for k in range(-4, 3))  # C from which one is chosen
VALIDATION = 0.25                                   # share of the training rows that choose it
FLAT = 1e-8                                         # largest gradient of the mean loss at which a fit ends
Z = 1.959963984540054                               # normal quantile of a 95 % interval


def loss(W, X, y, C):
    """(mean loss with the penalty, its gradient [F+1 K]) of weights [F+1 K], the intercept last; y [N] in 0 ... K-1."""
    N, K = len(X), W.shape[1]
    logp, penalty = log_softmax(X @ W[:-1] + W[-1], axis=1), W[:-1] / (C * N)
    error = (np.exp(logp) - np.eye(K)[y]) / N
    value = -logp[np.arange(N), y].mean() + 0.5 * (penalty * W[:-1]).sum()
    return value, np.vstack([X.T @ error + penalty, error.sum(axis=0)])


def curvature(W, V, X, C):
    """Second derivative of the loss at W along V: [F+1 K]."""
    p = np.exp(log_softmax(X @ W[:-1] + W[-1], axis=1))
    change = X @ V[:-1] + V[-1]
    error = p * (change - (p * change).sum(axis=1, keepdims=True)) / len(X)
    return np.vstack([X.T @ error + V[:-1] / (C * len(X)), error.sum(axis=0)])


def fit(X, y, C):
    """Weights [F+1 K] at the minimum, by Newton steps in a trust region; ValueError for NaN or one class only."""
    X, K = np.asarray(X, np.float64), int(np.max(y)) + 1
    if not np.isfinite(X).all():
        raise ValueError(f"the features of {(~np.isfinite(X)).any(axis=1).sum()} of {len(X)} rows are not finite")
    if len(np.unique(y)) < 2:
        raise ValueError(f"all {len(y)} labels are the same; wanted two classes or more")
    shape = X.shape[1] + 1, K

    def flat(x):
        return x.reshape(shape)

    def value(w):
        found, slope = loss(flat(w), X, y, C)
        return found, slope.ravel()
    found = minimize(value, np.zeros(np.prod(shape)), jac=True, method="trust-ncg", options={"gtol": FLAT},
                     hessp=lambda w, v: curvature(flat(w), flat(v), X, C).ravel())
    if np.abs(found.jac).max() > 100 * FLAT:
        raise RuntimeError(f"no minimum found: the gradient is still {np.abs(found.jac).max():.2g} ({found.message})")
    return flat(found.x)


def standards(X):
    """(mean [F], scale [F]) of the columns; a constant column has scale 1."""
    X = np.asarray(X, np.float64)
    deviation = X.std(axis=0)
    return X.mean(axis=0), np.where(deviation > 1e-12 * np.abs(X).max(initial=1e-300), deviation, 1.0)


def stratified(y, share, rng):
    """Which rows are set aside [N]: a share of each class, at least one row of it, and not all."""
    aside = np.zeros(len(y), bool)
    for k in np.unique(y):
        rows = rng.permutation(np.flatnonzero(y == k))
        aside[rows[:min(max(round(share * len(rows)), 1), len(rows) - 1)]] = True
    return aside


def chosen(X, y, seed=0, strengths=STRENGTHS):
    """The C whose fit on a part of the rows gives the rest the least loss."""
    rest = stratified(y, VALIDATION, np.random.default_rng(seed))
    mean, scale = standards(X[~rest])
    X = (X - mean) / scale

    def error(C):
        return loss(fit(X[~rest], y[~rest], C), X[rest], y[rest], np.inf)[0]
    return min(strengths, key=error)


def probe(X, y, held_out, C=0.0, seed=0):
    """Classes of held-out rows [M F] from training rows [N F] with classes y [N], and C (0: chosen on a part of these).

    Features are standardised by the training rows alone.
    """
    X, held_out = np.asarray(X, np.float64), np.asarray(held_out, np.float64)
    C = C or chosen(X, y, seed)
    mean, scale = standards(X)
    W = fit((X - mean) / scale, y, C)
    return ((held_out - mean) / scale @ W[:-1] + W[-1]).argmax(axis=1), C


def shuffled(X, y, held_out, truth, C, n, seed):
    """Held-out accuracies of n probes whose training labels were dealt anew: [n]."""
    rng = np.random.default_rng(seed)
    return np.array([(probe(X, rng.permutation(y), held_out, C)[0] == truth).mean() for _ in range(n)])


def wilson(right):
    """95 % interval of a share, from right [M] bool (Wilson 1927): [2]."""
    n, share = len(right), np.mean(right)
    middle, half = share + Z * Z / (2 * n), Z * np.sqrt(share * (1 - share) / n + Z * Z / (4 * n * n))
    return np.clip([middle - half, middle + half], 0, 1 + Z * Z / n) / (1 + Z * Z / n)


def paired(a, b):
    """95 % interval of mean(a) - mean(b), right or wrong on the same M documents: [2].

    Wald's with half a document added to each of the four cases (Agresti and Min 2005).
    """
    n, only_a, only_b = len(a) + 2, np.sum(a & ~b) + 0.5, np.sum(b & ~a) + 0.5
    middle, half = (only_a - only_b) / n, Z * np.sqrt(only_a + only_b - (only_a - only_b) ** 2 / n) / n
    return np.clip([middle - half, middle + half], -1, 1)
