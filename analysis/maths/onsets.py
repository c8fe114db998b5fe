"""When something formed in a training: where its curve rises above chance and past its half.

S snapshots, N seeds. Order: the step of one curve, the steps of two compared over seeds.
"""

import numpy as np

from . import stats

NEVER = np.nan


def formed(steps, values, null, half=0.5):
    """The step from which a curve stays above chance and past `half` of its way to its last value.

    steps: [S], rising; values, null: [S]. Between two snapshots the step is read off a line against
    the logarithm of 1 + step. NEVER where the last value is within chance, or no higher than the
    first.

    A curve that rises from 0 to 1 between 100 and 1,000 steps, and one that chance gives:

    >>> steps = np.array([0, 1, 10, 100, 1000])
    >>> rising = np.array([0.0, 0.0, 0.0, 0.0, 1.0])
    >>> round(float(formed(steps, rising, np.full(5, 0.1))))
    317
    >>> float(formed(steps, rising, np.full(5, 2.0)))
    nan
    """
    values, null = np.asarray(values, np.float64), np.asarray(null, np.float64)
    level = values[0] + half * (values[-1] - values[0])
    margin = values - np.maximum(level, null)
    if not (margin[-1] > 0 and values[-1] > values[0]):
        return NEVER
    below = np.flatnonzero(margin <= 0)
    if not len(below):
        return float(steps[0])
    i = below[-1]
    logs = np.log1p(np.asarray(steps, np.float64)[i : i + 2])
    share = -margin[i] / (margin[i + 1] - margin[i])
    return float(np.expm1(logs[0] + share * (logs[1] - logs[0])))


def later(first, second):
    """How many times later `second` formed than `first`: (mean, low, high), over seeds [N].

    The mean is of logarithms of quotients, the interval Student's t of these. NEVER, with any
    interval, where one of them did not form in every seed, or there is one seed.

    Twice as late in each of three seeds:

    >>> later(np.array([100, 200, 400]), np.array([200, 400, 800])).round(3)
    array([2., 2., 2.])
    """
    quotients = np.log(np.asarray(second, np.float64) / np.asarray(first, np.float64))
    n = len(quotients)
    if n < 2 or not np.isfinite(quotients).all():
        return np.full(3, NEVER)
    return np.exp(interval(quotients))


def interval(values):
    """Mean of values over seeds [N ...] and its interval by Student's t: [3 ...]; nan of one seed.

    >>> interval(np.array([1.0, 2.0, 3.0])).round(2)
    array([ 2.  , -0.48,  4.48])
    """
    return np.stack([np.mean(values, axis=0), *stats.interval(values)])
