"""How far other pictures than the plane can be trusted: which strongest keys are near in them.

As nearness in the plane (heads.py), but from points that are drawn: t-SNE and UMAP know no others.
L layers, H heads, n queries, m keys, T queries and S keys of a sentence, O orders of the keys.
"""

import numpy as np

from ..maths import joint
from . import heads


def of_projection(x, sentences, strongest, causal, seed):
    """Share of the strongest keys among the nearest, and with shuffled keys: [2 L H].

    x: points [L H n+m C]; sentences: of the queries [n] and of the keys [m]; strongest: the
    strongest key of each query [L H n], -1 without one.
    """
    n, sums, total = len(sentences[0]), 0, 0
    for number in np.unique(sentences[0]):
        rows, keys = (np.flatnonzero(x == number) for x in sentences)
        seen = np.ones((len(rows), len(keys)), bool)
        seen = np.tril(seen) if causal else seen
        several = np.flatnonzero(seen.sum(axis=1) > 1)
        orders = joint.shuffled_keys(seen, heads.SHUFFLES, np.random.default_rng((seed, number)))
        best = (strongest[..., rows] - keys[0])[..., several]
        pair = x[:, :, rows].astype(np.float64), x[:, :, n + keys].astype(np.float64)
        sums += near(pair, seen, several, best, orders)
        total += len(several)
    own, null = sums[0], sums[1:].mean(axis=0)
    return np.stack([own, null]) / max(total, 1)


def near(pair, seen, rows, best, orders):
    """How many of the keys `best` [L H t] of rows [t] are near, their own and shuffled: [O L H]."""
    is_near = joint.ranks(joint.distances(*pair, "euclidean"), seen) <= heads.NEAREST
    keys = np.concatenate([best[None], orders[:, rows, best]])  # [O L H t]
    taken = np.take_along_axis(is_near[None][..., rows, :], keys[..., None], axis=-1)
    return taken[..., 0].sum(axis=-1)
