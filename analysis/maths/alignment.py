"""Where attention from one text to another lies: [... T S], T steps, S positions of the source.

Order: the strongest position, shares of steps, the null, how even and how diagonal attention is.
"""

import numpy as np
import scipy


def hits(strongest, wanted):
    """Number of steps whose strongest position is wanted: [... T] positions, [T S] bool -> [...].

    Two of three steps look where they should:

    >>> int(hits(np.array([0, 1, 1]), np.eye(3, dtype=bool)))
    2
    """
    steps = np.arange(len(wanted))
    return wanted[steps, strongest].sum(axis=-1)


def permutations(is_own, n, seed):
    """n random orders of the positions where is_own [S] is true; the others stay: [n S].

    >>> permutations(np.array([False, True, True, False]), 1, seed=1).tolist()
    [[0, 1, 2, 3]]
    """
    rng = np.random.default_rng(seed)
    orders = np.tile(np.arange(len(is_own)), (n, 1))
    orders[:, is_own] = rng.permuted(orders[:, is_own], axis=1)
    return orders


def evenness(pattern):
    """Entropy of each row over that of even attention: [... T S] -> [... T], 1 where it is even.

    >>> evenness(np.array([[0.5, 0.5], [1.0, 0.0]])).tolist()
    [1.0, 0.0]
    """
    entropy = scipy.special.entr(pattern.astype(np.float64)).sum(axis=-1)
    return entropy / np.log(max(pattern.shape[-1], 2))


def diagonality(pattern, places=None):
    """Correlation of a step's number with the mean position it looks at: [... T S] -> [...].

    places: numbers of the positions [S], by default in order. 0 where all steps look at one
    position.

    >>> float(diagonality(np.eye(4)).round(6)), float(diagonality(np.eye(4)[::-1]).round(6))
    (1.0, -1.0)
    """
    T, S = pattern.shape[-2:]
    if places is None:
        places = np.arange(S)
    centre = pattern @ places.astype(np.float64)
    centre = centre - centre.mean(axis=-1, keepdims=True)
    step = np.arange(T) - (T - 1) / 2
    size = np.sqrt((centre * centre).sum(axis=-1) * (step * step).sum())
    return (centre @ step) / np.maximum(size, 1e-9 * S * T)
