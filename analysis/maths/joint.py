"""Queries and keys in one space, by changes that keep attention, so that nearness shows attention.

    q -> c q        k -> (k + a) / c

c cancels in every product. a adds the same q.a to all scores of a query, those of hidden keys too,
which stay at minus infinity: the softmax over the keys that a query sees removes it again. a moves
the mean of the keys onto the mean of the queries (Yeh et al. 2023, section 5.1.1); c is the value
in SCALES for which products and distances have the lowest correlation. Where no scale gives a lower
one than no change, nothing is changed: a = 0, c = 1.

T queries, S keys, d width of a head, C scales; ... any axes before them, but [... L H] are all
layers and heads.

Order: the changes, distances and products, the search for c; then how near the strongest key is,
and the plane in which all is drawn.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy

from . import stats
from .factors import signs

SCALES = 2.0 ** (np.arange(-48, 49) / 16)  # from 1/8 to 8 in steps of 4.4%; 1 is one of them
SAME = 1e-12  # correlations that differ by less count as equal
TINY = 1e-300


def normalised(q, k, c=1.0, a=0.0):
    """c q and (k + a) / c: [... T d], [... S d] -> the same shapes.

    c is a number or [...], a is [... d].

    The products stay the same, the distances do not:

    >>> q, k = np.array([[1.0, 0.0]]), np.array([[4.0, 0.0]])
    >>> scaled_q, scaled_k = normalised(q, k, c=2.0)
    >>> scaled_q, scaled_k
    (array([[2., 0.]]), array([[2., 0.]]))
    >>> scaled_q @ scaled_k.T == q @ k.T
    array([[ True]])
    """
    c = np.asarray(c, np.float64)[..., None, None]
    moved = k + np.atleast_1d(a)[..., None, :]
    return c * q, moved / c


def translation(mean_q, mean_k, c, distance):
    """a [... d], by which the keys move so that their mean is the mean of the queries.

    Their means meet before the scaling, as published, where distances are Euclidean. With cosine
    distances they meet after it: c would do nothing else, since no scale changes a direction.

    >>> translation(np.array([1.0, 2.0]), np.array([5.0, 5.0]), 1.0, "euclidean")
    array([-4., -3.])
    """
    factor = np.asarray(c, np.float64)[..., None] ** DISTANCES[distance].power
    return factor * mean_q - mean_k


def transform_of(number, means, distance):
    """c [L H] and a [L H d] of the candidates with these numbers [L H].

    Candidate 0 changes nothing; candidate 1 + i moves the keys and scales by SCALES[i].

    Candidate 49 has the scale 1, candidate 0 leaves the keys where they are:

    >>> means = np.array([[[1.0, 2.0]], [[5.0, 5.0]]])
    >>> transform_of(np.array([0]), means, "euclidean")
    {'c': array([1.]), 'a': array([[0., 0.]])}
    >>> transform_of(np.array([49]), means, "euclidean")
    {'c': array([1.]), 'a': array([[-4., -3.]])}
    """
    c = np.array([1, *SCALES])[number]
    a = translation(*means, c, distance)
    is_moved = number[..., None] > 0
    return {"c": c, "a": np.where(is_moved, a, 0)}


def attention(q, k, scale, seen):
    """softmax(scale q.k) in float64 over the keys seen [T S]: [... T d], [... S d] -> [... T S].

    A query and three keys, the last of which it does not see:

    >>> q, k = np.array([[1.0, 0.0]]), np.array([[1.0, 0.0], [1.0, 5.0], [9.0, 0.0]])
    >>> attention(q, k, 0.5, np.array([True, True, False]))
    array([[0.5, 0.5, 0. ]])
    """
    scores = scale * _products(q, k)
    return scipy.special.softmax(np.where(seen, scores, -np.inf), axis=-1)


def changes(q, k, c, a, scale, seen):
    """How much attention and products change, which should not: the largest differences [...] each.

    Attention is compared under both changes; products under the scale alone, as a share of the
    largest product.

    Attention stays the same, to rounding, for any move of the keys:

    >>> q, k = np.random.default_rng(0).normal(size=(2, 6, 4))
    >>> attention, products = changes(q, k, 2.0, np.ones(4), 0.5, np.tri(6, dtype=bool))
    >>> bool(attention < 1e-12), bool(products < 1e-12)
    (True, True)
    """
    attention_before = attention(q, k, scale, seen)
    attention_after = attention(*normalised(q, k, c, a), scale, seen)
    attention_change = _largest(attention_after - attention_before)
    products_before = _products(q, k)
    products_after = _products(*normalised(q, k, c))
    products_change = _largest(products_after - products_before)
    return attention_change, products_change / np.maximum(_largest(products_before), TINY)


def _largest(x):
    """Largest absolute value over the pairs: [... T S] -> [...]."""
    return abs(x).max(axis=(-2, -1))


def _products(q, k):
    q = np.asarray(q, np.float64)
    k = np.asarray(k, np.float64)
    return q @ k.swapaxes(-1, -2)


class Distance(NamedTuple):
    """How far apart a query and a key are.

    DISTANCES lists them by name; each is computed from products and lengths:

    >>> DISTANCES["cosine"].of(np.array([[2.0]]), np.array([[1.0]]), np.array([[4.0]]))
    array([[0.5]])
    """

    # (products [... T S], lengths of queries [... T 1] and of keys [... 1 S]) -> [... T S]
    of: Callable
    drawn: Callable  # vectors whose Euclidean distances stand in the order of these
    power: int  # the mean of the keys moves onto c ** power times that of the queries


def _cosine(qk, q_length, k_length):
    q_factor = 1 / np.maximum(q_length, TINY)
    k_factor = 1 / np.maximum(k_length, TINY)
    cosine = qk * q_factor
    cosine *= k_factor
    return np.subtract(1, cosine, out=cosine)


def _euclidean(qk, q_length, k_length):
    squares = q_length * q_length + k_length * k_length
    return np.sqrt(np.maximum(squares - 2 * qk, 0))


def _unit(x):
    length = np.linalg.norm(x, axis=-1, keepdims=True)
    return x / np.maximum(length, TINY)


def _unchanged(x):
    return x


DISTANCES = {
    "cosine": Distance(_cosine, drawn=_unit, power=2),
    "euclidean": Distance(_euclidean, drawn=_unchanged, power=0),
}


def distances(q, k, distance):
    """Distance of every query to every key: [... T d], [... S d] -> [... T S].

    Two keys in the direction of the query, and one at a right angle to it:

    >>> q, k = np.array([[1.0, 0.0]]), np.array([[1.0, 0.0], [3.0, 0.0], [0.0, 1.0]])
    >>> distances(q, k, "cosine")
    array([[0., 0., 1.]])
    >>> distances(q, k, "euclidean").round(2)
    array([[0.  , 2.  , 1.41]])
    """
    q_length = _length(q)[..., None]
    k_length = _length(k)[..., None, :]
    return DISTANCES[distance].of(_products(q, k), q_length, k_length)


def _length(x):
    return np.linalg.norm(x, axis=-1)


def centred(qk, seen):
    """Products less the mean over the keys that each query sees: [... T S], [T S] -> [... T S].

    They are the logarithm of attention, up to one factor and a constant for each query; no
    translation changes them.

    What a query adds to the products with all its keys is subtracted:

    >>> centred(np.array([[1.0, 3.0], [11.0, 13.0]]), np.ones((2, 2), bool))
    array([[-1.,  1.],
           [-1.,  1.]])
    """
    totals = np.where(seen, qk, 0).sum(axis=-1, keepdims=True)
    counts = seen.sum(axis=-1, keepdims=True)
    return qk - totals / counts


class Products(NamedTuple):
    """What distances are correlated with.

    PRODUCTS has the two kinds by name: each query's mean taken off, or as they are:

    >>> qk, seen = np.array([[1.0, 3.0]]), np.ones((1, 2), bool)
    >>> PRODUCTS["centred"].of(qk, seen), PRODUCTS["plain"].of(qk, seen)
    (array([[-1.,  1.]]), array([[1., 3.]]))
    """

    of: Callable  # (products [... T S], keys that are seen [T S]) -> [... T S]
    moves: float  # how much of what a translation adds to a row shows in them


PRODUCTS = {
    "centred": Products(centred, moves=0.0),
    "plain": Products(lambda qk, seen: qk, moves=1.0),
}


def scan(q, k, means, weights, seen, distance, products):
    """Sums behind the correlation of products and distances, one row a candidate: [1 + C ... 6].

    Candidates are numbered as in `transform_of`. means: of queries and of keys [... d] each.
    weights [... T S]: of the pairs, 0 where a key is not seen. Sums of several documents are added,
    then given to `correlation`.

    Keys far from the queries: no change, then what the best of 97 scales gives:

    >>> q, k = np.random.default_rng(0).normal(size=(2, 20, 4))
    >>> k, seen = k / 10 + 5, np.ones((20, 20), bool)
    >>> sums = scan(q, k, (q.mean(axis=0), k.mean(axis=0)), seen, seen, "euclidean", "centred")
    >>> correlations = correlation(sums)
    >>> sums.shape, correlations[0].round(2).tolist(), correlations.min().round(2).tolist()
    ((98, 6), 0.01, -0.24)
    """
    q = np.asarray(q, np.float64)
    k = np.asarray(k, np.float64)
    qk = _products(q, k)
    q_length = _length(q)[..., None]
    weights = np.asarray(weights, np.float64)
    of, moves = PRODUCTS[products]
    sums = _Sums(np.broadcast_to(weights, qk.shape), of(qk, seen))

    def sums_of(c, a):
        added = q @ a[..., None]
        k_length = _length(k + a[..., None, :])[..., None, :]
        d = DISTANCES[distance].of(qk + added, c * q_length, k_length / c)
        return sums(added[..., 0] * moves, d)

    no_move = np.zeros(np.shape(means[0]))
    rows = [sums_of(1.0, no_move)]
    for c in SCALES:
        a = translation(*means, c, distance)
        rows.append(sums_of(c, a))
    return np.array(rows)


class _Sums:
    """Sums over pairs of w, w s, w d, w s s, w d d, w s d: [... 6], where only rows of s change."""

    def __init__(self, w, s):
        self.w = w
        self.ws = w * s
        wss = self.ws * s
        self.row_w = w.sum(axis=-1)
        self.row_ws = self.ws.sum(axis=-1)
        self.sum_w = self.row_w.sum(axis=-1)
        self.sum_wss = wss.sum(axis=(-2, -1))

    def __call__(self, added, d):
        """The six sums with `added` [... T] added to the rows of s; d [... T S]."""
        wd = self.w * d
        row_wd = wd.sum(axis=-1)
        row_ws = self.row_ws + added * self.row_w
        added_wss = added * (2 * self.row_ws + added * self.row_w)
        added_wsd = added * row_wd
        ws = row_ws.sum(axis=-1)
        wss = self.sum_wss + added_wss.sum(axis=-1)
        wdd = np.einsum("...ts,...ts->...", wd, d)
        wsd = np.einsum("...ts,...ts->...", self.ws, d) + added_wsd.sum(axis=-1)
        return np.stack([self.sum_w, ws, row_wd.sum(axis=-1), wss, wdd, wsd], -1)


def correlation(sums):
    """Pearson's weighted correlation from the sums of `scan`: [... 6] -> [...].

    It is 0 where products or distances do not vary.

    Of the products 1, 2, 3 and the distances 3, 2, 1, each of weight 1:

    >>> s, d = np.array([1.0, 2.0, 3.0]), np.array([3.0, 2.0, 1.0])
    >>> round(float(correlation(np.array([3, s.sum(), d.sum(), s @ s, d @ d, s @ d]))), 9)
    -1.0
    """
    w = np.maximum(sums[..., :1], TINY)
    means = sums[..., 1:] / w
    s, d, ss, dd, sd = np.moveaxis(means, -1, 0)
    s_variance = ss - s * s
    d_variance = dd - d * d
    s_varies = s_variance > 1e-13 * ss
    d_varies = d_variance > 1e-13 * dd
    varies = s_varies & d_varies
    variances = np.where(varies, s_variance * d_variance, 1)
    covariance = sd - s * d
    return np.where(varies, covariance / np.sqrt(variances), 0)


def rank_correlation(s, d, seen):
    """Spearman's correlation of products and distances over the pairs seen: [... T S] -> [...].

    It is 0 where one of them does not vary.

    Any distance that falls where the product rises:

    >>> s = np.array([[1.0, 2.0], [3.0, 9.0]])
    >>> round(float(rank_correlation(s, np.exp(-s), np.ones((2, 2), bool))), 9)
    -1.0
    """
    s_ranks = scipy.stats.rankdata(s[..., seen], axis=-1)
    d_ranks = scipy.stats.rankdata(d[..., seen], axis=-1)
    return stats.pearson(s_ranks, d_ranks)


SCOPES = {"head": (), "layer": (-1,), "model": (-2, -1)}  # axes of [L H] that share one c


def best(correlations, scope):
    """Number of the candidate with the lowest correlation for each head: [1 + C L H] -> [L H].

    Heads that share a scale share the mean of their correlations, in which each counts the same. Of
    scales that do equally well the one nearest to 1 is taken, and before it candidate 0, which
    changes nothing. So the mean never gets higher than without a change; with a shared scale the
    correlation of a single head may.

    Of one head; without a change the correlation is -0.1, at scale 2 (candidate 65) -0.8:

    >>> correlations = np.full((98, 1, 1), -0.1)
    >>> correlations[65] = -0.8
    >>> best(correlations, "head"), float(SCALES[65 - 1])
    (array([[65]]), 2.0)
    """
    mean = correlations.mean(axis=SCOPES[scope], keepdims=True)
    is_lowest = mean <= mean.min(axis=0) + SAME
    far = abs(np.log([1, *SCALES]))  # from a scale of 1
    further_axes = (1,) * (mean.ndim - 1)
    far = far.reshape(-1, *further_axes)
    nearest_to_one = np.where(is_lowest, far, np.inf).argmin(axis=0)
    return np.broadcast_to(nearest_to_one, correlations.shape[1:])


def format_scale(c):
    """A scale as text; it says if this is the least or the largest that was tried.

    >>> format_scale(1.414), format_scale(8.0)
    ('1.41', '8 (the largest tried)')
    """
    ends = {SCALES[0]: "the least", SCALES[-1]: "the largest"}
    if c in ends:
        return f"{c:.3g} ({ends[c]} tried)"
    return f"{c:.2f}"


def ranks(distances, seen):
    """Rank of each key by distance, 1 for the nearest: [... T S], [T S] -> [... T S].

    Keys at the same distance share the mean of their ranks, so that points at the same place are
    not near; keys that a query does not see come last.

    Two keys at the same distance share ranks 1 and 2; the last key is not seen:

    >>> ranks(np.array([[0.5, 0.5, 0.9, 0.1]]), np.array([[True, True, True, False]]))
    array([[1.5, 1.5, 3. , 4. ]])
    """
    return scipy.stats.rankdata(np.where(seen, distances, np.inf), axis=-1)


def nearness(ranks, keys, seen):
    """Sums over queries of 1/rank, and of rank 1: [... T S], [... T], [T S] -> [2 ...].

    keys: the number of the key of each query whose rank counts. Queries that see one key only are
    left out.

    The key of the first query is the nearest to it, the key of the second query the third nearest:

    >>> rank = np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]])
    >>> nearness(rank, np.array([0, 2]), np.ones((2, 3), bool))
    array([1.33333333, 1.        ])
    """
    sees_several = seen.sum(axis=-1) > 1
    rank = np.take_along_axis(ranks, keys[..., None], -1)[..., sees_several, 0]
    reciprocals = (1 / rank).sum(axis=-1)
    firsts = (rank == 1).sum(axis=-1)
    return np.stack([reciprocals, firsts])


def shuffled_keys(seen, n, rng):
    """n shuffles: another key in place of each key that a query sees: [T S] -> [n T S].

    The keys that a query sees are the first of its row. All keys are permuted and each query takes
    those it sees: where all are seen, the order is the same for all queries.

    Three queries that see the keys up to their own:

    >>> shuffled_keys(np.tri(3, dtype=bool), 1, np.random.default_rng(0))
    array([[[0, 1, 2],
            [1, 0, 2],
            [1, 2, 0]]])
    """
    shuffles = []
    for _ in range(n):
        places = rng.permutation(seen.shape[-1])
        places_seen = np.where(seen, places, np.inf)
        shuffles.append(places_seen.argsort(axis=-1))
    return np.array(shuffles, int).reshape(n, *seen.shape)


def plane(covariance):
    """Directions of the two largest variances: [... d d] -> [... d 2], largest entries positive.

    The second and the first column vary most:

    >>> abs(plane(np.diag([2.0, 3.0, 1.0])))
    array([[0., 1.],
           [1., 0.],
           [0., 0.]])
    """
    _, directions = np.linalg.eigh(covariance)  # variances ascend
    U = directions[..., :-3:-1]
    return U * signs(U)
