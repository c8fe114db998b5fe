"""The positional kernel of a head: what its score at a lag is once the words are averaged out.

A score is q_i . k_j, each turned by its place in rotary models, plus a bias in others. With words
drawn independently for query and key its mean is the score of the mean query and the mean key, so
what is left depends on the lag alone wherever a position enters by turning or by a bias. Lag t =
key position - query position; r pairs of features of a head's width d; ... heads.
"""

import numpy as np


def pairs(x, r):
    """Features i and i + r as one complex number: [... d] -> [... r].

    >>> pairs(np.array([1.0, 2.0, 3.0, 4.0]), 2).tolist()
    [(1+3j), (2+4j)]
    """
    first = x[..., :r]
    second = x[..., r : 2 * r]
    return first + 1j * second


def rotary(q, k, frequencies, lags):
    """Score of a query and a key that are turned, at each lag: [... d], [... d] -> [... R].

    The sum over pairs of |c| cos(omega t - arg c) with c = q conj(k) (Su et al. 2021, 3.4), and the
    product of the features that are not turned. Turned by a quarter a token, a query and a key
    that are alike fit at lag 0, and least two tokens away:

    >>> q = np.array([1.0, 0.0])
    >>> rotary(q, q, [np.pi / 2], lags=[-2, -1, 0, 1, 2]).round(9) + 0.0
    array([-1.,  0.,  1.,  0., -1.])
    """
    r = len(frequencies)
    c = pairs(q, r) * pairs(k, r).conj()
    phase = np.outer(frequencies, lags)  # [r R]
    waves = c[..., None] * np.exp(-1j * phase)
    turned = waves.real.sum(axis=-2)
    n_turned = 2 * r
    products = q[..., n_turned:] * k[..., n_turned:]
    still = products.sum(axis=-1)
    return turned + still[..., None]


def preferred(q, k, frequencies):
    """The lag at which each pair fits best, within half of its period to either side: [... r].

    A key that is ahead of its query by an angle fits where the query has turned as far:

    >>> preferred(np.array([1.0, 0.0]), np.array([0.0, 1.0]), [np.pi / 2]).tolist()
    [-1.0]
    """
    r = len(frequencies)
    c = pairs(q, r) * pairs(k, r).conj()
    return np.angle(c) / np.asarray(frequencies)


def mean_by_lag(scores, reach):
    """Mean of [... T T] along each diagonal within reach: [... R].

    >>> mean_by_lag(np.array([[1.0, 5.0], [3.0, 2.0]]), 1).tolist()
    [3.0, 1.5, 5.0]
    """
    means = []
    for lag in range(-reach, reach + 1):
        diagonal = scores.diagonal(lag, -2, -1)
        mean = diagonal.mean(axis=-1, dtype=np.float64)
        means.append(mean)
    return np.stack(means, axis=-1)


def furthest(measured, known):
    """How far curves [... R] are apart, but for a constant of each, as a share of the largest.

    A constant on all scores of a query changes no attention.

    >>> float(furthest(np.array([1.0, 3.0]), np.array([11.0, 13.0])))
    0.0
    """
    measured = measured - measured.mean(axis=-1, keepdims=True)
    known = known - known.mean(axis=-1, keepdims=True)
    smallest = np.finfo(np.float64).tiny
    largest = max(abs(known).max(), smallest)
    difference = abs(measured - known)
    return difference.max(axis=-1) / largest
