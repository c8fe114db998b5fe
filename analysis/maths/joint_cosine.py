"""The search for the scale c of a joint space by cosine distance, all scales of all heads at once.

The keys move to k + a = k' + c² m, where k' are the keys less their mean and m is the mean of the
queries. So the cosine of query i and key j is (q̂_i·k'_j + c² q̂_i·m) / |k'_j + c² m|, q̂ being the
query's direction: a polynomial in c² over a length that belongs to the key alone. Sums over the
queries are taken once, and each scale costs a product for each key.

T queries, S keys, d width of a head, C scales, ... any heads.
"""

import numpy as np

from . import joint


def scan(q, k, means, weights, seen):
    """What joint.scan(..., "cosine", "centred") gives, in a sixth of its time: [1 + C ... 6].

    >>> q, k = np.random.default_rng(0).normal(size=(2, 20, 4))
    >>> seen = np.ones((20, 20), bool)
    >>> given = q, k, (q.mean(axis=0), k.mean(axis=0)), seen, seen
    >>> np.allclose(scan(*given), joint.scan(*given, "cosine", "centred"))
    True
    """
    q = np.asarray(q, np.float64)
    k = np.asarray(k, np.float64)
    mean_q = np.asarray(means[0], np.float64)[..., None, :]  # [... 1 d]
    mean_k = np.asarray(means[1], np.float64)[..., None, :]
    products = q @ k.swapaxes(-1, -2)
    pairs = _Pairs(weights, joint.centred(products, seen), _directions(q))
    unmoved = pairs.sums(k, np.zeros_like(mean_q), np.zeros(1))
    moved = pairs.sums(k - mean_k, mean_q, joint.SCALES**2)
    return np.concatenate([unmoved, moved])


def _directions(x):
    """Vectors of length 1: [... d] -> [... d]."""
    length = np.linalg.norm(x, axis=-1, keepdims=True)
    return x / np.maximum(length, joint.TINY)


class _Pairs:
    """Pairs of a query and a key: their weights w, centred products s, and queries' directions."""

    def __init__(self, w, s, unit):
        self.w = w
        self.s = s
        self.ws = w * s
        self.unit = unit

    def sums(self, k, m, squares):
        """The six sums of joint.scan for keys k + c² m, whose c² are `squares`: [C ... 6]."""
        w = self.w
        s = self.s
        ws = self.ws
        u = self.unit @ k.swapaxes(-1, -2)  # [... T S]
        r = self.unit @ m.swapaxes(-1, -2)  # [... T 1]
        wu = w * u
        wr = w * r
        wru = wr * u
        squares = squares.reshape(-1, *(1,) * (k.ndim - 1))
        factor = _factors(k, m, squares)  # [C ... S]
        # the sums with the cosine x in place of the distance 1 - x
        x = _over_keys(factor, squares, wu, wr)
        xx = _over_keys(factor**2, squares, wu * u, 2 * wru, wr * r)
        sx = _over_keys(factor, squares, wu * s, wr * s)
        no_x = np.zeros_like(x)
        of_w = no_x + _total(w, s)
        of_s = no_x + _total(ws, s)
        of_ss = no_x + _total(ws * s, s)
        d = of_w - x
        dd = d - x + xx
        sd = of_s - sx
        return np.stack([of_w, of_s, d, of_ss, dd, sd], -1)


def _total(x, like):
    """The sum over all pairs of x, which broadcasts to the shape of `like` [... T S]: [...]."""
    return np.broadcast_to(x, like.shape).sum(axis=(-2, -1))


def _over_keys(factor, squares, *columns):
    """Sum over keys of a factor [C ... S] times a polynomial in c², coefficients [... T S]."""
    total = 0
    for power, column in enumerate(columns):
        total = total + squares**power * column.sum(axis=-2)
    return np.einsum("...s,...s->...", factor, total)


def _factors(k, m, squares):
    """1 / |k + c² m|: [... S d], [... 1 d], [C ... 1] -> [C ... S]."""
    own = (k * k).sum(axis=-1)
    across = (k * m).sum(axis=-1)
    of_m = (m * m).sum(axis=-1)
    length = own + 2 * squares * across + squares**2 * of_m
    return 1 / np.sqrt(np.maximum(length, joint.TINY))
