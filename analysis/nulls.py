"""What chance alone gives: the same statistic on surrogates of the data that lack the effect.

Order: two kinds of surrogate, the distribution of a statistic over them; then pairs dealt anew. All are seeded.
"""

import numpy as np


def row_shuffles(x, n, seed):
    """n copies of [T D] with rows in random order: every row is kept, only their order is lost."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        yield rng.permutation(x)


def gaussian(x, n, seed):
    """n arrays of Gaussian noise with the mean and variance of each column of [T D]."""
    rng = np.random.default_rng(seed)
    mean, deviation = x.mean(axis=0), x.std(axis=0)
    for _ in range(n):
        yield mean + deviation * rng.standard_normal(x.shape)


def distribution(statistic, surrogates):
    """statistic(surrogate) for each surrogate: [n ...]."""
    return np.array([statistic(surrogate) for surrogate in surrogates])


def matches(a, b, seed, n=1000):
    """Share of equal pairs of [N] and [N], then its mean and 95 % quantile when b is dealt anew n times.

    No pairs: 0, with 0 and 0.
    """
    rng, pairs = np.random.default_rng(seed), max(len(a), 1)
    dealt = [(a == rng.permutation(b)).sum() / pairs for _ in range(n)]
    return (a == b).sum() / pairs, np.array([np.mean(dealt), np.quantile(dealt, 0.95)])
