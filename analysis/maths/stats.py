"""Intervals, regression and directions at random, for numbers that were measured on documents.

N documents, n rows, D columns. "Sums" are the products [x 1 y]^T [x 1 y], [D+2 D+2]: those of two
sets of rows are added.

Order: intervals over documents; correlation, what arrays have in common; entropy; ridge regression
from sums that add up; cosines of random vectors.
"""

import numpy as np
import scipy

LEVEL = 0.95  # of an interval
PAIRS = 1000  # of random vectors held at once
# of ridge regression, in mean variances of a column
PENALTIES = tuple(10.0**k for k in range(-8, 3))


def interval(values, weights=None):
    """95% interval of r = sum(values) / sum(weights) over documents: [N ...] -> [2 ...].

        r ± t sqrt(N / (N - 1) sum(e²)) / |sum(weights)|,  e = values - r weights

    with Student's t of N - 1 degrees of freedom (Cochran 1977, 6.4). weights: a number for each
    document [N], or [N ...] like the values; None: 1 for each. Of one document both ends are nan.

    Losses of 4 documents and their numbers of tokens; the mean loss of a token is 2.5:

    >>> losses, tokens = np.array([20.0, 30.0, 60.0, 90.0]), np.array([10, 10, 20, 40])
    >>> float(losses.sum() / tokens.sum()), interval(losses, tokens).round(2)
    (2.5, array([1.77, 3.23]))
    """
    ratio, reach = _ratio(values, weights)
    return np.stack([ratio - reach, ratio + reach])


def positive_interval(values, weights=None):
    """`interval` of a ratio that cannot be negative, r e^(±h/r): that of its logarithm.

    >>> positive_interval(np.array([20.0, 30.0, 60.0, 90.0]), np.array([10, 10, 20, 40])).round(2)
    array([1.87, 3.34])
    """
    ratio, reach = _ratio(values, weights)
    times = np.exp(reach / np.where(ratio > 0, ratio, 1))
    return np.stack([ratio / times, ratio * times])


def _ratio(values, weights):
    """The ratio of sums over documents [N ...], and half the width of its interval: [...] twice."""
    values = np.asarray(values, np.float64)
    weights = np.ones(len(values)) if weights is None else np.asarray(weights, np.float64)
    weights = weights.reshape(weights.shape + (1,) * (values.ndim - weights.ndim))
    N, whole = len(values), weights.sum(axis=0)
    ratio = values.sum(axis=0) / whole
    if N == 1:
        return ratio, np.full_like(ratio, np.nan)
    squares = np.square(values - ratio * weights).sum(axis=0)
    t = scipy.special.stdtrit(N - 1, (1 + LEVEL) / 2)
    return ratio, t * np.sqrt(N / (N - 1) * squares) / abs(whole)


def stacked(records):
    """Records of one shape, one for each layer, say: a list of {name: x} -> {name: [n ...]}.

    >>> stacked([{"mean": 1.0}, {"mean": 3.0}])
    {'mean': array([1., 3.])}
    """
    return {name: np.array([record[name] for record in records]) for name in records[0]}


def pearson(x, y):
    """Pearson's correlation along the last axis: [... n] twice -> [...]; 0 if one does not vary.

    >>> float(pearson(np.array([1.0, 2.0, 3.0]), np.array([3.0, 2.0, 1.0])))
    -1.0
    """
    x = x - x.mean(axis=-1, keepdims=True)
    y = y - y.mean(axis=-1, keepdims=True)
    squares = (x * x).sum(axis=-1) * (y * y).sum(axis=-1)
    lengths = np.sqrt(squares)
    return (x * y).sum(axis=-1) / np.where(lengths > 0, lengths, 1)


def common_share(total, squares, n):
    """Share of the sum of squares of n arrays that they have in common, from sums over them.

    total: their sum [T D ...]; squares: the sum of the squares of all their numbers [...]. It is
    the mean product of two different ones over the mean square, so independent ones have 0.

    Arrays that are one signal and as much noise of their own:

    >>> rng = np.random.default_rng(0)
    >>> signal, noise = rng.normal(size=(50, 20)), rng.normal(size=(8, 50, 20))
    >>> arrays = signal + noise
    >>> round(float(common_share(arrays.sum(axis=0), np.square(arrays).sum(), 8)), 1)
    0.5
    """
    between = np.square(total).sum(axis=(0, 1)) - squares
    return between / np.maximum((n - 1) * squares, 1e-300)


def entropy(counts):
    """Entropy in nats of counts [V]: the loss of a guess that knows these frequencies alone.

    Four tokens that are equally frequent, ln 4:

    >>> round(float(entropy(np.array([5, 5, 5, 5, 0]))), 4)
    1.3863
    """
    p = counts[counts > 0] / counts.sum()
    return -(p * np.log(p)).sum()


def sums(x, y):
    """All that ridge regression of y [n] on x [n D] needs of these rows: [D+2 D+2] in float64.

    Those of two parts of the rows add up to those of all:

    >>> x, y = np.arange(6.0).reshape(6, 1), np.array([1.0, 3.0, 5.0, 7.0, 9.0, 11.0])
    >>> np.array_equal(sums(x[:2], y[:2]) + sums(x[2:], y[2:]), sums(x, y))
    True
    """
    ones = np.ones(len(x))
    rows = np.column_stack([x, ones, y]).astype(np.float64)
    return rows.T @ rows


def ridge(sums, penalty):
    """Weights w, b that minimise |y - x w - b|^2 / n + penalty v |w|^2: [D+2 D+2] -> [D+1].

    The intercept b is last. v: mean variance of the columns of x, so that the penalty has no unit;
    b is not penalised. From (C + penalty v I) w = c, the covariances of x with itself and with y
    (Hoerl and Kennard 1970).

    y = 2 x + 1, without a penalty and with one:

    >>> x, y = np.arange(6.0).reshape(6, 1), np.array([1.0, 3.0, 5.0, 7.0, 9.0, 11.0])
    >>> ridge(sums(x, y), 0.0).round(9), ridge(sums(x, y), 1.0).round(9)
    (array([2., 1.]), array([1. , 3.5]))
    """
    n = sums[-2, -2]
    mean = sums[-2] / n
    covariance = sums / n - np.outer(mean, mean)
    C = covariance[:-2, :-2]
    c = covariance[:-2, -1]
    v = np.trace(C) / len(C) or 1.0  # 1: nothing varies
    penalised = C + penalty * v * np.eye(len(C))
    w = scipy.linalg.solve(penalised, c, assume_a="pos")
    b = mean[-1] - mean[:-2] @ w
    return np.append(w, b)


def squared_error(sums, w):
    """Sum of (y - x w - b)^2 over the rows behind these sums.

    Of the fit 2 x where y is 2 x + 1, on three rows:

    >>> x, y = np.arange(3.0).reshape(3, 1), np.array([1.0, 3.0, 5.0])
    >>> float(squared_error(sums(x, y), np.array([2.0, 0.0])))
    3.0
    """
    v = np.append(w, -1.0)
    return max(v @ sums @ v, 0.0)


def variation(sums):
    """Sum of (y - mean y)^2 over the rows behind these sums.

    >>> x, y = np.arange(3.0).reshape(3, 1), np.array([1.0, 3.0, 5.0])
    >>> float(variation(sums(x, y)))
    8.0
    """
    n = sums[-2, -2]
    y = sums[-2, -1]
    yy = sums[-1, -1]
    return yy - y**2 / n


def choose_ridge(train, validation, penalties=PENALTIES):
    """Weights [D+1] from the sums `train` with the least error on `validation`, and the penalty.

    Noise gets the largest penalty, and so weights near 0; for y = x the weights are 1 and 0:

    >>> x, noise = np.arange(20.0)[:, None], np.random.default_rng(0).normal(size=20)
    >>> weights, penalty = choose_ridge(sums(x[::2], noise[::2]), sums(x[1::2], noise[1::2]))
    >>> penalty
    100.0
    >>> choose_ridge(sums(x[::2], x[::2]), sums(x[1::2], x[1::2]))[0].round(3)
    array([1., 0.])
    """
    fits = [(ridge(train, penalty), penalty) for penalty in penalties]
    return min(fits, key=lambda fit: squared_error(validation, fit[0]))


def r2(sums, w):
    """Coefficient of determination on the rows behind these sums: 1 - squared error / variation.

    For the weights that fit, and for a constant, the mean:

    >>> x, y = np.arange(3.0).reshape(3, 1), np.array([1.0, 3.0, 5.0])
    >>> float(r2(sums(x, y), np.array([2.0, 1.0]))), float(r2(sums(x, y), np.array([0.0, 3.0])))
    (1.0, 0.0)
    """
    return 1 - squared_error(sums, w) / variation(sums)


def cosine_density(x, D):
    """Density of the cosine x of two random directions in D >= 2 dimensions.

    It is c (1 - x^2)^((D-3)/2).

    In three dimensions all cosines are equally likely; in 64 most are near 0:

    >>> x = np.array([0.0, 0.5])
    >>> cosine_density(x, 3).round(3), cosine_density(x, 64).round(3)
    (array([0.5, 0.5]), array([3.154, 0.   ]))
    """
    log_ratio = scipy.special.gammaln(D / 2) - scipy.special.gammaln((D - 1) / 2)
    c = np.exp(log_ratio) / np.pi**0.5
    power = (D - 3) / 2
    return c * (1 - np.square(x)) ** power


def cosine_quantile(q, D):
    """The cosine that two random directions in D dimensions stay below with probability q.

    99 of 100 random directions of a head's 64 dimensions have less than this:

    >>> round(float(cosine_quantile(0.99, 64)), 3)
    0.288
    """
    half = (D - 1) / 2
    return 2 * scipy.special.betaincinv(half, half, q) - 1


def random_cosines(D, n, seed):
    """Cosines of n pairs of Gaussian vectors in D dimensions [n], drawn PAIRS at a time.

    Of 5,000 pairs one in a hundred has more than theory says:

    >>> cosines = random_cosines(64, 5000, seed=0)
    >>> round(float(np.quantile(cosines, 0.99)), 2), round(float(cosine_quantile(0.99, 64)), 2)
    (0.29, 0.29)
    """
    rng = np.random.default_rng(seed)
    cosines = []
    for i in range(0, n, PAIRS):
        pairs = min(PAIRS, n - i)
        x, y = rng.standard_normal((2, pairs, D))
        products = (x * y).sum(axis=1)
        lengths = np.linalg.norm(x, axis=1) * np.linalg.norm(y, axis=1)
        cosines.append(products / lengths)
    return np.concatenate(cosines)
