"""The joint space as the note on AttentionViz made it: one number a added to all keys, and c.

    q -> c q        k -> (k + a) / c        a a number, the same for every component

The note took the pair (a, c) with the strongest correlation of products and cosine distances, of
either sign. c cancels in products and in cosines, so it has no effect; and the larger a may be, the
more both depend on the query alone, and the keys gather at one place far from the queries. The note
leaves open whether distances are measured in the plane of the first two principal components; there
c has an effect. T queries and keys, d width, ... any axes before them.

Order: the note's a, how far all points have collapsed, c by distance in the plane.
"""

from typing import NamedTuple

import numpy as np

from . import joint, stats

STEPS = 41  # values of a tried on its range, 0 among them
SCALES = joint.SCALES[::4]  # 1 is among them


def of_scalar(q, k, a, seen, c=1.0):
    """Correlation of products and cosine distances: [... T d] twice -> [...]; a a number.

    c cancels:

    >>> rng = np.random.default_rng(0)
    >>> q, k = rng.normal(size=(2, 8, 4))
    >>> seen = np.ones((8, 8), bool)
    >>> of_scalar(q, k, 1.0, seen).round(3), of_scalar(q, k, 1.0, seen, c=3).round(3)
    (np.float64(-0.92), np.float64(-0.92))
    """
    q = c * q
    k = (k + a) / c
    products = q @ k.swapaxes(-1, -2)
    distances = joint.distances(q, k, "cosine")
    return stats.pearson(products[..., seen], distances[..., seen])


class Found(NamedTuple):
    """What a search for a found.

    >>> Found(a=np.array(2.0), correlation=np.array(-0.9)).a
    array(2.)
    """

    a: np.ndarray  # [...]
    correlation: np.ndarray  # [...]


def search(q, k, reach, seen):
    """The a from -reach to reach with the strongest correlation, either sign -> Found.

    The farther a may go, the stronger the correlation:

    >>> rng = np.random.default_rng(0)
    >>> q, k = rng.normal(size=(2, 8, 4))
    >>> seen = np.ones((8, 8), bool)
    >>> [round(float(search(q, k, reach, seen).correlation), 2) for reach in (0, 2, 20)]
    [-0.91, -0.93, -0.93]
    """
    values = np.linspace(-reach, reach, STEPS)
    correlations = np.array([of_scalar(q, k, a, seen) for a in values])
    best = abs(correlations).argmax(axis=0)
    strongest = np.take_along_axis(correlations, best[None], 0)[0]
    return Found(values[best], strongest)


def effect_of_scale(q, k, a, seen):
    """Largest change of the correlation by any c: [... T d] twice, a [...] -> [...].

    >>> rng = np.random.default_rng(0)
    >>> q, k = rng.normal(size=(2, 8, 4))
    >>> bool(effect_of_scale(q, k, np.array(1.0), np.ones((8, 8), bool)) < 1e-12)
    True
    """
    a = a[..., None, None]
    plain = of_scalar(q, k, a, seen)
    scaled = np.array([of_scalar(q, k, a, seen, c) for c in SCALES])
    return abs(scaled - plain).max(axis=0)


def gathered(q, k):
    """Spread of the queries, as a share of the distance from their mean to that of the keys: [...].

    Root of the mean square; near 0 all queries are at one place, seen from the keys.

    Keys a hundred times further away:

    >>> q = np.array([[1.0, 0.0], [-1.0, 0.0]])
    >>> k = np.array([[0.0, 1.0], [0.0, 1.0]])
    >>> float(gathered(q, k)), float(gathered(q, 100 * k))
    (1.0, 0.01)
    """
    mean = q.mean(axis=-2, keepdims=True)
    squares = np.square(q - mean).sum(axis=-1)
    spread = np.sqrt(squares.mean(axis=-1))
    way = mean[..., 0, :] - k.mean(axis=-2)
    apart = np.linalg.norm(way, axis=-1)
    return spread / np.maximum(apart, joint.TINY)


def in_plane(q, k):
    """Euclidean distances of queries and keys in one plane: [... T d] twice -> [... T T].

    The plane is that of the first two principal components of queries and keys together, so points
    that lie in one plane keep their distances; a query and a key:

    >>> q, k = np.eye(3)[:1], np.eye(3)[1:2]
    >>> in_plane(q, k).round(6)
    array([[1.414214]])
    """
    x = np.concatenate([q, k], axis=-2)
    x = x - x.mean(axis=-2, keepdims=True)
    points = x @ joint.plane(x.swapaxes(-1, -2) @ x)
    queries, keys = np.split(points, [q.shape[-2]], axis=-2)
    return joint.distances(queries, keys, "euclidean")


def by_scale(q, k, seen):
    """Correlation of products and distances in the plane for every c of SCALES: [C ...].

    The means of queries and keys are moved together first.

    >>> rng = np.random.default_rng(0)
    >>> q, k = rng.normal(size=(2, 8, 4))
    >>> curve = by_scale(q, k, np.ones((8, 8), bool))
    >>> len(curve) == len(SCALES), bool((abs(curve) <= 1).all())
    (True, True)
    """
    a = joint.translation(q.mean(axis=-2), k.mean(axis=-2), 1.0, "euclidean")
    curve = []
    for c in SCALES:
        q_moved, k_moved = joint.normalised(q, k, c, a)
        products = q_moved @ k_moved.swapaxes(-1, -2)
        centred = joint.centred(products, seen)
        distances = in_plane(q_moved, k_moved)
        curve.append(stats.pearson(centred[..., seen], distances[..., seen]))
    return np.array(curve)
