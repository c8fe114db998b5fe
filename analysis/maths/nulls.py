"""What chance alone gives: the same statistic on surrogates of the data that lack the effect.

Order: two kinds of surrogate, the distribution of a statistic over them; then permuted pairs. All
are seeded.
"""

import numpy as np

CHANCE = 0.99  # quantile of what surrogates reach, above which something is more than chance
SHUFFLES = 500  # of a table: five reach beyond that quantile, so it is not their maximum


def row_shuffles(x, n, seed):
    """n copies of [T D] with rows in random order: every row is kept, only their order is lost."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        yield rng.permutation(x)


def gaussian(x, n, seed):
    """n arrays of Gaussian noise with the mean and variance of each column of [T D]."""
    rng = np.random.default_rng(seed)
    mean = x.mean(axis=0)
    deviation = x.std(axis=0)
    for _ in range(n):
        yield mean + deviation * rng.standard_normal(x.shape)


def distribution(statistic, surrogates):
    """statistic(surrogate) for each surrogate: [n ...]."""
    return np.array([statistic(surrogate) for surrogate in surrogates])


def matches(a, b, seed, n=1000):
    """Share of equal pairs of [N] and [N]; its mean and 99 % quantile when b is permuted n times.

    Without pairs all are 0.
    """
    rng = np.random.default_rng(seed)
    pairs = max(len(a), 1)
    by_chance = []
    for _ in range(n):
        is_equal = a == rng.permutation(b)
        by_chance.append(is_equal.sum() / pairs)
    share = (a == b).sum() / pairs
    return share, np.array([np.mean(by_chance), np.quantile(by_chance, 0.99)])
