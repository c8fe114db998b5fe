"""Positions and attention moved by known amounts, and where a head looks then.

Positions are moved round: a key that is moved by s reads the position s places further on, and the
last s keys those of the first; what came round the end is left out of what is measured. S shifts, H
heads, n places, R = 2 reach + 1 offsets.

Order: moving, attention between some queries and keys, slopes and their null; attention turned.
"""

import numpy as np

from . import nulls, profiles

DRAWS = 1000  # of the shifts, dealt to other shifts


def rolled(x, s):
    """Row j is row j + s, round the end: [n D] -> [n D]; s: a number, or [n] one for each row.

    >>> rolled(np.arange(5), 2)
    array([2, 3, 4, 0, 1])
    >>> rolled(np.arange(5), -1)
    array([4, 0, 1, 2, 3])
    """
    return x[(np.arange(len(x)) + s) % len(x)]


def not_round(places, s):
    """Those of a slice of places whose positions did not come round the end.

    Of ten keys that read the position two places further on, the last two read those of the
    first:

    >>> not_round(slice(0, 10), 2), not_round(slice(0, 10), -2)
    (slice(0, 8, None), slice(2, 10, None))
    """
    return slice(places.start + max(0, -s), places.stop - max(0, s))


def attention_between(pattern, queries, keys, reach=profiles.REACH):
    """Mean attention by offset, of these queries to these keys: [... T S], two slices -> [... R].

    The mean is over pairs of both that are so far apart; 0 where there are none.

    A head that looks one token back:

    >>> pattern = np.eye(6, k=-1)
    >>> attention_between(pattern, slice(2, 5), slice(0, 6), reach=2)  # offsets -2 ... 2
    array([0., 1., 0., 0., 0.])
    """
    part = pattern[..., queries, keys]
    n, m = part.shape[-2:]
    diagonals = profiles.offsets(reach) - (keys.start - queries.start)
    sums = [np.trace(part, t, axis1=-2, axis2=-1, dtype=np.float64) for t in diagonals]
    pairs = np.minimum(n, m - diagonals) - np.maximum(0, -diagonals)
    return np.stack(sums, -1) / np.maximum(pairs, 1)


def cells(offset, shifts, follows, causal):
    """Offset that each head should attend to, [S H], and where that can be told, bool [S H].

    offset: [H], without a shift. follows: tokens that the offset moves for each token of the shift.
    It can be told at shifts other than 0, in a causal model only of keys that are not later.

    A head at offset -1, whose keys are moved by -2 ... 2 tokens, in a causal model:

    >>> shifts = np.array([-2, -1, 0, 1, 2])
    >>> expected, is_told = cells(np.array([-1]), shifts, follows=-1, causal=True)
    >>> expected[:, 0], is_told[:, 0]
    (array([ 1,  0, -1, -2, -3]), array([False,  True, False,  True,  True]))
    """
    expected = offset + follows * shifts[:, None]
    is_visible = (expected <= 0) | (not causal)
    return expected, is_visible & (shifts != 0)[:, None]


def slopes(attended, shifts, is_told):
    """Tokens that each head's attended offset moves for each token of the shift: [S H] -> [H].

    Least squares over the cells that are told, and no shift; 0 where only that is left.

    One head that follows the shift, one that stays:

    >>> shifts = np.array([-1, 0, 1])
    >>> attended = np.array([[0, -1], [-1, -1], [-2, -1]])
    >>> slopes(attended, shifts, np.ones((3, 2), bool))
    array([-1.,  0.])
    """
    weight = is_told | (shifts == 0)[:, None]
    n = np.maximum(weight.sum(axis=0), 1)
    s = shifts[:, None]
    means = (weight * s).sum(axis=0) / n
    x = s - means
    squares = (weight * x * x).sum(axis=0)
    products = (weight * x * attended).sum(axis=0)
    return products / np.where(squares > 0, squares, 1)


def by_chance(attended, expected, is_told, shifts, seed, draws=DRAWS):
    """(cells exactly as expected, |mean slope|) that 99 % of draws do not surpass.

    Each draw deals what a head attended to at one shift to another shift of the cells that are
    told, [S H]; nothing then moves with the shift.

    Four heads that follow exactly at six shifts: 24 cells are more than chance gives.

    >>> shifts = np.array([-3, -2, -1, 0, 1, 2, 3])
    >>> offset = np.array([-1, 1, -2, 2])
    >>> expected, is_told = cells(offset, shifts, follows=-1, causal=False)
    >>> n_exact, slope = by_chance(expected, expected, is_told, shifts, seed=0)
    >>> int(is_told.sum()), float(n_exact), round(float(slope), 2)
    (24, 9.0, 0.56)
    """
    if not is_told.any():
        return 0.0, 0.0
    rng = np.random.default_rng(seed)
    n_exact, mean_slopes = [], []
    for _ in range(draws):
        permuted = _permuted(attended, is_told, rng)
        is_exact = (permuted == expected) & is_told
        of_heads = slopes(permuted, shifts, is_told)
        n_exact.append(is_exact.sum())
        mean_slopes.append(abs(of_heads[is_told.any(axis=0)].mean()))
    return tuple(np.quantile([n_exact, mean_slopes], nulls.CHANCE, axis=1))


def _permuted(attended, is_told, rng):
    """Columns of [S H] with their cells that are told in random order."""
    keys = np.where(is_told, rng.random(attended.shape), -1.0)
    order = np.argsort(keys, axis=0)
    places = np.argsort(is_told, axis=0, kind="stable")  # first those that stay
    permuted = np.empty_like(attended)
    np.put_along_axis(permuted, places, np.take_along_axis(attended, order, axis=0), axis=0)
    np.copyto(permuted, attended, where=~is_told)
    return permuted


def turned(pattern, s, causal=False):
    """Attention [... n n] that looks s tokens further to the right, s below 0: to the left.

    What would go beyond the first key, or the last that a query sees, stays there: rows keep their
    sums.

    Each token looked at itself, and now at the one before; the first has none.

    >>> turned(np.eye(3), -1)
    array([[1., 0., 0.],
           [1., 0., 0.],
           [0., 1., 0.]])
    """
    new = np.zeros_like(pattern)
    n = pattern.shape[-1]
    if abs(s) < n:
        source = slice(max(-s, 0), n - max(s, 0))
        target = slice(max(s, 0), n + min(s, 0))
        new[..., target] = pattern[..., source]
    if causal:
        new = np.tril(new)
    rows = np.arange(n)
    end = 0 if s < 0 else n - 1
    last = rows if causal and s > 0 else np.full(n, end)
    new[..., rows, last] += pattern.sum(axis=-1) - new.sum(axis=-1)
    return new


def mean_key(pattern):
    """Mean number of the key looked at, times how much is looked at all: [... n n] -> [...].

    >>> float(mean_key(np.eye(5))), float(mean_key(turned(np.eye(5), 1)))
    (2.0, 2.8)
    """
    return (pattern @ np.arange(pattern.shape[-1], dtype=pattern.dtype)).mean(axis=-1)
