"""Positions and attention moved by known amounts, and where a head looks then.

Positions are moved cyclically: a key that is moved by s reads the position s positions further on,
and the last s keys read the first s positions; the positions that came round the end are not
measured. S shifts, H heads, n positions, R = 2 reach + 1 offsets.

Order: moving, attention between some queries and keys, slopes and their null; attention turned.
"""

import numpy as np

from . import nulls, profiles

DRAWS = 1000  # permutations of the shifts


def rolled(x, s):
    """Row j becomes row j + s, cyclically: [n D] -> [n D]; s: a number, or [n] one for each row.

    >>> rolled(np.arange(5), 2)
    array([2, 3, 4, 0, 1])
    >>> rolled(np.arange(5), -1)
    array([4, 0, 1, 2, 3])
    """
    return x[(np.arange(len(x)) + s) % len(x)]


def not_round(places, s):
    """Those of a slice of positions whose positions did not come round the end.

    Of ten keys that read the position two positions further on, the last two read the first two
    positions:

    >>> not_round(slice(0, 10), 2), not_round(slice(0, 10), -2)
    (slice(0, 8, None), slice(2, 10, None))
    """
    return slice(places.start + max(0, -s), places.stop - max(0, s))


def attention_between(pattern, queries, keys, reach=profiles.REACH):
    """Mean attention by offset, of these queries to these keys: [... T S], two slices -> [... R].

    The mean is over the pairs with that offset; 0 where there are none.

    A head that looks one token back:

    >>> pattern = np.eye(6, k=-1)
    >>> attention_between(pattern, slice(2, 5), slice(0, 6), reach=2)  # offsets -2 ... 2
    array([0., 1., 0., 0., 0.])
    """
    part = pattern[..., queries, keys]
    n, m = part.shape[-2:]
    diagonals = profiles.offsets(reach) - (keys.start - queries.start)
    sums = [part.trace(t, -2, -1, np.float64) for t in diagonals]
    pairs = np.minimum(n, m - diagonals) - np.maximum(0, -diagonals)
    return np.stack(sums, -1) / np.maximum(pairs, 1)


def cells(offset, shifts, follows, causal):
    """Offset that each head should attend to, [S H], and where that can be tested, bool [S H].

    offset: [H], without a shift. shifts: [S]. follows: tokens by which the offset should move for
    each token of the shift. A shift of 0 tests nothing, nor does a later key in a causal model.

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
    """Tokens that a head's attended offset moves for each token of the shift: [... S H] -> [... H].

    Least squares over the tested cells and the cells without a shift; 0 where there are only those.

    One head follows the shift, one stays:

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
    products = (weight * x * attended).sum(axis=-2)
    return products / np.where(squares > 0, squares, 1)


def by_chance(attended, expected, is_told, shifts, seed, draws=DRAWS):
    """(cells exactly as expected, |mean slope|) that 99% of draws do not surpass.

    Each draw permutes what a head attended to over the shifts of its tested cells, [S H]; nothing
    then moves with the shift.

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
    permuted = _permuted(attended, is_told, np.random.default_rng(seed), draws)
    is_exact = (permuted == expected) & is_told
    of_heads = slopes(permuted, shifts, is_told)
    mean_slopes = of_heads.compress(is_told.any(axis=0), axis=1).mean(axis=1)
    n_exact = is_exact.sum(axis=(1, 2))
    return tuple(np.quantile([n_exact, abs(mean_slopes)], nulls.CHANCE, axis=1))


def _permuted(attended, is_told, rng, n):
    """Columns of [S H] with their tested cells in random order, n times: [n S H]."""
    attended = np.broadcast_to(attended, (n, *attended.shape))
    keys = np.where(is_told, rng.random(attended.shape), -1.0)
    order = np.argsort(keys, axis=1)
    places = np.argsort(is_told, axis=0, kind="stable")[None]  # first those that stay
    permuted = np.empty_like(attended)
    np.put_along_axis(permuted, places, np.take_along_axis(attended, order, axis=1), axis=1)
    np.copyto(permuted, attended, where=~is_told)
    return permuted


def turned(pattern, s, causal=False):
    """Attention [... n n] that looks s tokens further to the right, s below 0: to the left.

    Attention that would go beyond the first key, or beyond the last that a query sees, stops there:
    rows keep their sums.

    Each token looked at itself and now looks at the token before it; the first has none.

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
