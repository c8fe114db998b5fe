"""How far estimated effects are from those that patching measures: ranks, and the first k."""

from typing import NamedTuple

import numpy as np

FIRST = 10, 50, 200


class Agreement(NamedTuple):
    """Agreement of n estimated effects with those measured by patching, on the same pairs of texts.

    rank_correlation: Spearman's; NaN if one side does not vary. overlap: {k: share of the k
    estimates of largest size that are among the k effects of largest size}, for k < n. chance: the
    same for k drawn at random, k / n.

    >>> import numpy as np
    >>> from minitx.circuits.agreement import agreement
    >>> agreement(np.array([0.9, 0.0, 0.2]), np.array([1.0, 0.1, 0.2]), first=[2])
    Agreement(rank_correlation=1.0, overlap={2: 1.0}, chance={2: 0.6666666666666666})
    """

    rank_correlation: float  # Spearman's, of the scores
    overlap: dict[int, float]  # k -> share of the k largest scores that are the k largest effects
    chance: dict[int, float]  # the same for k drawn at random: k / n


def agreement(scores, exact, first=FIRST) -> Agreement:  # [n], [n]
    """How estimates agree with exact effects; the largest are those of the largest size."""
    n = len(scores)
    overlap = {}
    for k in first:
        if k < n:
            shared = _largest(scores, k) & _largest(exact, k)
            overlap[k] = len(shared) / k
    chance = {k: k / n for k in overlap}
    return Agreement(_correlation(ranks(scores), ranks(exact)), overlap, chance)


def _largest(values, k):
    """The numbers of the k values of the largest size."""
    order = np.argsort(-abs(values), kind="stable")
    return {*order[:k].tolist()}


def _correlation(x, y):  # [n], [n]
    """Pearson's correlation; NaN if one does not vary."""
    x = x - x.mean()
    y = y - y.mean()
    size = np.sqrt((x @ x) * (y @ y))
    if size == 0:
        return float("nan")
    return float(x @ y / size)


def ranks(values):  # [n] -> [n]
    """Ranks from 0; equal values share the mean of theirs."""
    _, which, counts = np.unique(
        values,
        return_inverse=True,
        return_counts=True,
    )
    last = np.cumsum(counts)
    mean = last - (counts + 1) / 2
    return mean[which]
