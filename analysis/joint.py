"""Queries and keys in one space, by changes that attention cannot see, so that nearness tells attention.

    q -> c q        k -> (k + a) / c

c cancels in every product. a adds q.a to all scores of a query alike, those of hidden keys too, which stay at minus
infinity: the softmax over the keys that a query sees takes it off again. a moves the mean of the keys onto that of
the queries (Yeh et al. 2023, section 5.1.1); of SCALES that c is taken for which products and distances go most
against each other. Where none does better than no change, there is none: a = 0, c = 1.

T queries, S keys, d width of a head, C scales; ... any axes before them, but [... L H] are all layers and heads.
Order: the changes, distances and products, the search for c; then how near the strongest key is, and the plane in
which all is drawn.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import softmax
from scipy.stats import rankdata

from .factors import signs

SCALES = 2.0 ** (np.arange(-48, 49) / 16)  # from 1/8 to 8 in steps of 4.4 %; 1 is one of them
SAME = 1e-12  # correlations that differ by less are one
TINY = 1e-300


def normalised(q, k, c=1.0, a=0.0):
    """c q and (k + a) / c: [... T d], [... S d] with c a number or [...], a [... d] -> the same shapes."""
    c = np.asarray(c, np.float64)[..., None, None]
    return c * q, (k + np.atleast_1d(a)[..., None, :]) / c


def translation(mean_q, mean_k, c, distance):
    """a [... d], by which the keys move so that their mean stands on that of the queries.

    Their means meet before the scaling, as published, where distances are Euclidean. With cosine distances they
    meet after it: c would do nothing else, since no scale changes a direction.
    """
    return np.asarray(c, np.float64)[..., None] ** DISTANCES[distance].power * mean_q - mean_k


def chosen(number, means, distance):
    """c [L H] and a [L H d] of candidate 0, which changes nothing, or 1 + C, which moves and scales by SCALES[C]."""
    c = np.array([1, *SCALES])[number]
    return {"c": c, "a": np.where(number[..., None] > 0, translation(*means, c, distance), 0)}


def attention(q, k, scale, seen):
    """softmax(scale q.k) over the keys that are seen [T S], in float64: [... T d], [... S d] -> [... T S]."""
    return softmax(np.where(seen, scale * _products(q, k), -np.inf), axis=-1)


def changes(q, k, c, a, scale, seen):
    """What must not change, and by how much it does: largest difference [...] of attention, and of products.

    Of attention under both changes; of products under the scale alone, as a share of the largest product.
    """
    before, alone = _products(q, k), _products(*normalised(q, k, c))
    largest = np.maximum(abs(before).max(axis=(-2, -1)), TINY)
    other = attention(*normalised(q, k, c, a), scale, seen)
    return abs(other - attention(q, k, scale, seen)).max(axis=(-2, -1)), \
        abs(alone - before).max(axis=(-2, -1)) / largest


def _products(q, k):
    return np.asarray(q, np.float64) @ np.asarray(k, np.float64).swapaxes(-1, -2)


class Distance(NamedTuple):
    """How far apart a query and a key are."""
    of: Callable     # (products [... T S], lengths of queries [... T 1] and of keys [... 1 S]) -> [... T S]
    drawn: Callable  # vectors whose Euclidean distances stand in the order of these
    power: int       # the mean of the keys moves onto c ** power times that of the queries


def _unit(x):
    return x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), TINY)


DISTANCES = {
    "cosine": Distance(lambda qk, q, k: 1 - qk * (1 / np.maximum(q, TINY)) * (1 / np.maximum(k, TINY)), _unit, 2),
    "euclidean": Distance(lambda qk, q, k: np.sqrt(np.maximum(q * q + k * k - 2 * qk, 0)), lambda x: x, 0)}


def distances(q, k, distance):
    """Distance of every query to every key: [... T d], [... S d] -> [... T S]."""
    return DISTANCES[distance].of(_products(q, k), _length(q)[..., None], _length(k)[..., None, :])


def _length(x):
    return np.linalg.norm(x, axis=-1)


def centred(qk, seen):
    """Products less the mean over the keys that each query sees: the logarithm of attention, up to one factor and a
    constant for each query; no translation changes it. [... T S], [T S] -> [... T S]."""
    return qk - np.where(seen, qk, 0).sum(axis=-1, keepdims=True) / seen.sum(axis=-1, keepdims=True)


class Products(NamedTuple):
    """What distances are correlated with."""
    of: Callable   # (products [... T S], keys that are seen [T S]) -> [... T S]
    moves: float   # how much of what a translation adds to a row shows in them


PRODUCTS = {"centred": Products(centred, 0.0), "plain": Products(lambda qk, seen: qk, 1.0)}


def scan(q, k, means, weights, seen, distance, products):
    """Sums behind the correlation of products and distances, as they are and then at each scale: [1 + C ... 6].

    means: of queries and of keys [... d] each; weights [... T S] of the pairs, 0 where a key is not seen. Sums of
    several documents are added, then given to `correlation`.
    """
    q, k = np.asarray(q, np.float64), np.asarray(k, np.float64)
    qk, of, length = _products(q, k), DISTANCES[distance].of, _length(q)[..., None]
    w = np.broadcast_to(np.asarray(weights, np.float64), qk.shape)
    sums = _Sums(w, PRODUCTS[products].of(qk, seen))

    def at(c, a):
        added = q @ a[..., None]
        d = of(qk + added, c * length, _length(k + a[..., None, :])[..., None, :] / c)
        return sums(added[..., 0] * PRODUCTS[products].moves, d)
    return np.array([at(1.0, np.zeros(np.shape(means[0]))), *(at(c, translation(*means, c, distance)) for c in SCALES)])


class _Sums:
    """Sums over pairs of w, w s, w d, w s s, w d d, w s d: [... 6], where only rows of s change."""

    def __init__(self, w, s):
        self.w, self.ws = w, w * s
        self.rows, self.s, self.ss = w.sum(axis=-1), self.ws.sum(axis=-1), (self.ws * s).sum(axis=(-2, -1))

    def __call__(self, added, d):
        """added [... T] to each row of s; d [... T S]."""
        wd = self.w * d
        d_rows = wd.sum(axis=-1)
        return np.stack([
            self.rows.sum(axis=-1), (self.s + added * self.rows).sum(axis=-1), d_rows.sum(axis=-1),
            self.ss + (added * (2 * self.s + added * self.rows)).sum(axis=-1), np.einsum("...ts,...ts->...", wd, d),
            np.einsum("...ts,...ts->...", self.ws, d) + (added * d_rows).sum(axis=-1)], -1)


def correlation(sums):
    """Pearson's correlation from the sums of `scan`, weighted as they are: [... 6] -> [...]; 0 where nothing varies."""
    s, d, ss, dd, sd = np.moveaxis(sums[..., 1:] / np.maximum(sums[..., :1], TINY), -1, 0)
    vary = (ss - s * s > 1e-13 * ss) & (dd - d * d > 1e-13 * dd)
    return np.where(vary, (sd - s * d) / np.sqrt(np.where(vary, (ss - s * s) * (dd - d * d), 1)), 0)


SCOPES = {"head": (), "layer": (-1,), "model": (-2, -1)}  # axes of [L H] that share one c


def best(correlations, scope):
    """Candidate [L H] with the lowest mean correlation over the heads that share it: [1 + C L H] of `scan` -> [L H].

    Each head counts the same. Of scales that do equally well the one nearest to 1 is taken, and before it no change at
    all, so that nothing is done for nothing. That is candidate 0: the mean is never above the one before, though with
    a shared scale a single head's may be.
    """
    mean = correlations.mean(axis=SCOPES[scope], keepdims=True)
    low = mean <= mean.min(axis=0) + SAME
    far = abs(np.log([1, *SCALES])).reshape(-1, *(1,) * (mean.ndim - 1))
    return np.broadcast_to(np.where(low, far, np.inf).argmin(axis=0), correlations.shape[1:])


def told(c):
    """A scale for people, who are told where the search ended before a better one could be found."""
    ends = {SCALES[0]: "the least", SCALES[-1]: "the largest"}
    return f"{c:.3g} ({ends[c]} tried)" if c in ends else f"{c:.2f}"


def ranks(distances, seen):
    """Rank of each key by distance among those that a query sees, 1 for the nearest: [... T S], [T S] -> [... T S].

    Keys equally far share the mean of their ranks, so that points on one spot are not near; hidden keys come last.
    """
    return rankdata(np.where(seen, distances, np.inf), axis=-1)


def nearness(ranks, keys, seen):
    """Sum over queries of 1 / rank of one key of each, and of rank 1: [... T S], [... T], [T S] -> [2 ...].

    Queries that see one key only are left out.
    """
    rank = np.take_along_axis(ranks, keys[..., None], -1)[..., seen.sum(axis=-1) > 1, 0]
    return np.stack([(1 / rank).sum(axis=-1), (rank == 1).sum(axis=-1)])


def dealt(seen, n, rng):
    """n times a key in place of each key that a query sees, which are the first ones of its row: [n T S].

    Keys in random order, of which a query takes those it sees: where all are seen, the same order for all queries.
    """
    orders = [np.where(seen, rng.permutation(seen.shape[-1]), np.inf) for _ in range(n)]
    return np.array([order.argsort(axis=-1) for order in orders], int).reshape(n, *seen.shape)


def plane(covariance):
    """Directions of the largest and the second largest variance: [... d d] -> [... d 2], largest entry positive."""
    U = np.linalg.eigh(covariance)[1][..., :-3:-1]
    return U * signs(U)
