"""The joint space as the note on AttentionViz made it: one number a added to all keys, and c.

    q -> c q        k -> (k + a) / c        a a number, the same for every component

The note took the pair with the strongest correlation of products and cosine distances, either sign.
In that order c cancels in products and in cosines, so it chooses nothing; and the farther a may go,
the more both are decided by the query alone, and the keys stand on one spot far from the queries.
Where distances are those in the plane of the first two principal components, which the note left
open, c does choose. T queries and keys, d width, ... any axes before them.

Order: the correlation, the note's a, how far all has collapsed, c by distance in the plane.
"""

from typing import NamedTuple

import numpy as np

from . import joint

STEPS = 41  # values of a tried on its range, 0 among them
SCALES = joint.SCALES[::4]  # 1 is among them


def correlation(x, y, seen):
    """Pearson's correlation over the pairs seen: [... T T] twice, [T T] -> [...]; 0 without any."""
    x, y = x[..., seen], y[..., seen]
    x = x - x.mean(axis=-1, keepdims=True)
    y = y - y.mean(axis=-1, keepdims=True)
    norm = np.sqrt((x * x).sum(axis=-1) * (y * y).sum(axis=-1))
    return (x * y).sum(axis=-1) / np.maximum(norm, joint.TINY)


def of_scalar(q, k, a, seen, c=1.0):
    """Correlation of products and cosine distances: [... T d] twice -> [...]; a a number."""
    q, k = c * q, (k + a) / c
    return correlation(q @ k.swapaxes(-1, -2), joint.distances(q, k, "cosine"), seen)


class Found(NamedTuple):
    """What a search for a found."""

    a: np.ndarray  # [...]
    correlation: np.ndarray  # [...]


def search(q, k, reach, seen):
    """The a from -reach to reach with the strongest correlation, either sign -> Found."""
    values = np.linspace(-reach, reach, STEPS)
    correlations = np.array([of_scalar(q, k, a, seen) for a in values])
    best = abs(correlations).argmax(axis=0)
    strongest = np.take_along_axis(correlations, best[None], 0)[0]
    return Found(values[best], strongest)


def effect_of_scale(q, k, a, seen):
    """Largest change of the correlation by any c: [... T d] twice, a [...] -> [...]."""
    a = a[..., None, None]
    plain = of_scalar(q, k, a, seen)
    return np.max([abs(of_scalar(q, k, a, seen, c) - plain) for c in SCALES], axis=0)


def gathered(q, k):
    """Spread of the queries, as a share of the distance from their mean to that of the keys: [...].

    Root of the mean square; near 0 all queries stand on one spot, seen from the keys.
    """
    mean = q.mean(axis=-2, keepdims=True)
    spread = np.sqrt(np.square(q - mean).sum(axis=-1).mean(axis=-1))
    apart = np.linalg.norm(mean[..., 0, :] - k.mean(axis=-2), axis=-1)
    return spread / np.maximum(apart, joint.TINY)


def in_plane(q, k):
    """Distances in the plane of the first two principal components of both: [... T T]."""
    x = np.concatenate([q, k], axis=-2)
    x = x - x.mean(axis=-2, keepdims=True)
    points = x @ joint.plane(x.swapaxes(-1, -2) @ x)
    T = q.shape[-2]
    return joint.distances(points[..., :T, :], points[..., T:, :], "euclidean")


def by_scale(q, k, seen):
    """Correlation of products and distances in the plane for every c of SCALES: [C ...].

    The means of queries and keys are moved together first.
    """
    a = joint.translation(q.mean(axis=-2), k.mean(axis=-2), 1.0, "euclidean")
    curve = []
    for c in SCALES:
        moved = joint.normalised(q, k, c, a)
        product = moved[0] @ moved[1].swapaxes(-1, -2)
        curve.append(correlation(joint.centred(product, seen), in_plane(*moved), seen))
    return np.array(curve)
