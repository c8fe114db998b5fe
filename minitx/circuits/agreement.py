"""How far estimated effects are from those that patching measures: ranks, and the first k."""

from typing import NamedTuple

import numpy as np

FIRST = 10, 50, 200


class Agreement(NamedTuple):
    """Estimates beside what patching gives, on the same pairs.

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
    largest = [np.argsort(-abs(x), kind="stable") for x in (scores, exact)]
    overlap = {k: len({*largest[0][:k]} & {*largest[1][:k]}) / k for k in first if k < n}
    ranks_of_both = np.array([ranks(scores), ranks(exact)])
    centred = ranks_of_both - ranks_of_both.mean(axis=1, keepdims=True)
    size = np.sqrt((centred**2).sum(axis=1).prod())
    correlation = float(centred.prod(axis=0).sum() / size) if size else float("nan")
    return Agreement(correlation, overlap, {k: k / n for k in overlap})


def ranks(values):  # [n] -> [n]
    """Ranks from 0; equal values share the mean of theirs."""
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts + 1) / 2)[which]
