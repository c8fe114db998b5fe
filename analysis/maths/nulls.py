"""What chance alone gives: the same statistic on surrogates of the data that lack the effect.

Order: two kinds of surrogate, the distribution of a statistic over them; permuted pairs; counts;
random signs; partners that are drawn. All are seeded.
"""

import numpy as np

CHANCE = 0.99  # quantile of what surrogates reach, above which something is more than chance
FLIPS = 1000  # sets of random signs
SHUFFLES = 500  # of a table: five reach beyond that quantile, so it is not their maximum


def row_shuffles(x, n, seed):
    """n copies of [T D] with rows in random order: every row is kept, only their order is lost.

    The rows stay whole:

    >>> next(row_shuffles(np.array([[1, 10], [2, 20], [3, 30]]), n=1, seed=0))
    array([[ 3, 30],
           [ 1, 10],
           [ 2, 20]])
    """
    rng = np.random.default_rng(seed)
    for _ in range(n):
        yield rng.permutation(x)


def gaussian(x, n, seed):
    """n arrays of Gaussian noise with the mean and variance of each column of [T D].

    Noise with the mean and the spread of the data, and no other property of it:

    >>> x = np.arange(10000.0)[:, None]
    >>> noise = next(gaussian(x, n=1, seed=0))
    >>> [float(n.round(-2)) for n in (x.mean(), noise.mean(), x.std(), noise.std())]
    [5000.0, 5000.0, 2900.0, 2900.0]
    """
    rng = np.random.default_rng(seed)
    mean = x.mean(axis=0)
    deviation = x.std(axis=0)
    for _ in range(n):
        yield mean + deviation * rng.standard_normal(x.shape)


def distribution(statistic, surrogates):
    """statistic(surrogate) for each surrogate: [n ...].

    A table rises by 9 over its rows; so does 1 of 90 random orders, so this is not more than
    chance:

    >>> table = np.arange(10.0)[:, None]
    >>> rises = distribution(lambda x: x[-1, 0] - x[0, 0], row_shuffles(table, 500, seed=0))
    >>> rises.shape, float(np.quantile(rises, CHANCE))
    ((500,), 9.0)
    """
    return np.array([statistic(surrogate) for surrogate in surrogates])


def matches(a, b, seed, n=1000):
    """Share of equal pairs of [N] and [N]; its mean and 99% quantile when b is permuted n times.

    Without pairs all are 0.

    Two labellings that agree everywhere; by chance a half would agree:

    >>> labels = np.array([0, 1] * 50)
    >>> share, (mean, line) = matches(labels, labels, seed=0)
    >>> float(share), round(float(mean), 1), bool(line < share)
    (1.0, 0.5, True)
    """
    rng = np.random.default_rng(seed)
    pairs = max(len(a), 1)
    by_chance = []
    for _ in range(n):
        is_equal = a == rng.permutation(b)
        by_chance.append(is_equal.sum() / pairs)
    share = (a == b).sum() / pairs
    return share, np.array([np.mean(by_chance), np.quantile(by_chance, 0.99)])


def count(n, p):
    """How many of n tries succeed in 99 of 100 cases at most, each with probability p: [...].

    Two heads that peak at the same of 21 offsets are more than chance, one is not; of 12 heads 3
    may:

    >>> count([1, 2, 12], 1 / 21).tolist()
    [1.0, 1.0, 3.0]
    """
    n = np.asarray(n)
    import scipy  # here: every command reads this file, few need SciPy

    return np.where(n > 0, np.ceil(scipy.special.bdtrik(CHANCE, np.maximum(n, 1), p)), 0)


def random_signs(changes, n, seed):
    """Size of the mean change when each document's sign is drawn: [N ...] -> [FLIPS ...].

    changes: sums over a document; n: all that they are sums of. A change that chance alone made
    could have gone either way in each document.

    Ten documents that all change by 1 are more than chance:

    >>> by_chance = random_signs(np.ones(10), 10, seed=0)
    >>> by_chance.shape, bool(np.quantile(by_chance, CHANCE) < 1)
    ((1000,), True)
    """
    signs = np.random.default_rng(seed).choice([-1, 1], (FLIPS, len(changes)))
    return abs(signs @ changes / n)


def largest_of_partners(x, seed):
    """99% quantile of the largest |sum over pairs| of M columns, partners drawn: [R N M].

    x: what each of N pairs has of each of R partners. Their deviations from the mean of R are
    sqrt(R / (R - 1)) times too small, since it is their own mean.

    One head and 100 pairs, in which it has 1 from one partner and -1 from the other; sums of 100
    signs, of which 99% are at most 24, times the square root of 2:

    >>> x = np.ones((2, 100, 1))
    >>> x[1] = -1
    >>> round(largest_of_partners(x, seed=0))
    34
    """
    R, N, _ = x.shape
    mean = x.mean(axis=0)
    x = mean + (x - mean) * (R / max(R - 1, 1)) ** 0.5
    partner = np.random.default_rng(seed).integers(R, size=(FLIPS, N))
    sums = sum((partner == r).astype(np.float64) @ x[r] for r in range(R))
    return float(np.quantile(abs(sums).max(axis=1), CHANCE))
