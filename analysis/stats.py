"""Intervals, regression and directions at random, for numbers that were measured on documents.

Order: bootstrap over documents; entropy; ridge regression from sums that add up; cosines of random vectors.
N documents, n rows, D columns. "Sums" are the products [x 1 y]^T [x 1 y], [D+2 D+2]: those of two sets of rows are
added.
"""

import numpy as np
from scipy.linalg import solve
from scipy.special import gammaln
from scipy.stats import beta

DRAWS = 100  # held at once
PENALTIES = tuple(10.0 ** k for k in range(-8, 3))  # of ridge regression, in mean variances of a column
STATISTICS = {  # name -> (what is added up, what that is divided by), from values [N ...] and weights [N ...]
    "ratio": lambda values, weights: (values, weights),           # values are sums, weights their counts
    "mean": lambda values, weights: (values * weights, weights)}  # values are means


def bootstrap(values, weights=None, statistic="ratio", n=2000, seed=0, level=0.95):
    """Percentile interval of sum(values) / sum(weights) over documents drawn with replacement: [N ...] -> [2 ...].

    weights: a number for each document [N], or [N ...] like the values; None: 1 for each. statistic: "ratio", or
    "mean" for sum(weights values) / sum(weights). ValueError for another one.
    """
    if statistic not in STATISTICS:
        raise ValueError(f"statistic is {statistic!r}; there are: {', '.join(STATISTICS)}")
    values = np.asarray(values, np.float64)
    weights = np.asarray(1.0 if weights is None else weights, np.float64)
    weights = weights.reshape(weights.shape + (1,) * (values.ndim - weights.ndim))
    above, below = STATISTICS[statistic](values, np.broadcast_to(weights, values.shape))
    N, rng, found = len(values), np.random.default_rng(seed), []
    for i in range(0, n, DRAWS):
        times = rng.multinomial(N, np.full(N, 1 / N), size=min(DRAWS, n - i)).astype(np.float64)  # of each document
        found.append(np.tensordot(times, above, 1) / np.tensordot(times, below, 1))
    return np.quantile(np.concatenate(found), [(1 - level) / 2, (1 + level) / 2], axis=0)


def entropy(counts):
    """Entropy in nats of what was counted [V]: the loss of a guess that knows nothing but these frequencies."""
    p = counts[counts > 0] / counts.sum()
    return -(p * np.log(p)).sum()


def sums(x, y):
    """All that ridge regression of y [n] on x [n D] needs of these rows, in float64: [D+2 D+2]."""
    rows = np.column_stack([x, np.ones(len(x)), y]).astype(np.float64)
    return rows.T @ rows


def ridge(sums, penalty):
    """Weights, the intercept last, that minimise |y - x w - b|^2 / n + penalty v |w|^2: [D+2 D+2] -> [D+1].

    v: mean variance of the columns of x, so that the penalty has no unit; the intercept b is free. From
    (C + penalty v I) w = c, the covariances of x with itself and with y (Hoerl and Kennard 1970).
    """
    n = sums[-2, -2]
    mean = sums[-2] / n
    covariance = sums / n - np.outer(mean, mean)
    x, y = covariance[:-2, :-2], covariance[:-2, -1]
    v = np.trace(x) / len(x) or 1.0  # 1: nothing varies
    w = solve(x + penalty * v * np.eye(len(x)), y, assume_a="pos")
    return np.append(w, mean[-1] - mean[:-2] @ w)


def squared_error(sums, w):
    """Sum of (y - x w - b)^2 over the rows behind these sums."""
    v = np.append(w, -1.0)
    return max(v @ sums @ v, 0.0)


def variation(sums):
    """Sum of (y - mean y)^2 over the rows behind these sums."""
    return sums[-1, -1] - sums[-2, -1] ** 2 / sums[-2, -2]


def chosen_ridge(train, validation, penalties=PENALTIES):
    """The weights [D+1] from one set of sums that err least on another, and their penalty."""
    found = [(ridge(train, penalty), penalty) for penalty in penalties]
    return min(found, key=lambda pair: squared_error(validation, pair[0]))


def r2(sums, w):
    """Coefficient of determination on the rows behind these sums: 1 - squared error / variation."""
    return 1 - squared_error(sums, w) / variation(sums)


def cosine_density(x, D):
    """Density of the cosine x of two random directions in D dimensions, c (1 - x^2)^((D-3)/2); D is 2 or more."""
    c = np.exp(gammaln(D / 2) - gammaln((D - 1) / 2)) / np.pi ** 0.5
    return c * (1 - np.square(x)) ** ((D - 3) / 2)


def cosine_quantile(q, D):
    """The cosine that two random directions in D dimensions stay below with probability q."""
    return 2 * beta((D - 1) / 2, (D - 1) / 2).ppf(q) - 1


def random_cosines(D, n, seed):
    """Cosines of n pairs of Gaussian vectors in D dimensions [n], drawn 1,000 pairs at a time."""
    rng, found = np.random.default_rng(seed), []
    for i in range(0, n, 1000):
        x, y = rng.standard_normal((2, min(1000, n - i), D))
        found.append((x * y).sum(axis=1) / (np.linalg.norm(x, axis=1) * np.linalg.norm(y, axis=1)))
    return np.concatenate(found)
