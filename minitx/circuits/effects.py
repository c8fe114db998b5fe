"""What a patch restores, or takes away, as a share of the difference between clean and corrupt.

Of pairs of texts, the share is one of sums: that of (patched - corrupt) over that of (clean -
corrupt), since the difference of a single pair may be near 0. N: pairs of texts; pieces [...]: the
layers and heads, or places, that are patched, one at a time.
"""

from typing import NamedTuple

import numpy as np

from ..machine import show
from ..sampling import generator

DRAWS = 1000  # of the bootstrap
LEVEL = 0.95


class Patched(NamedTuple):
    """A measure of each pair in runs of one direction, each with one piece patched."""

    values: np.ndarray  # [N ...]
    null: np.ndarray  # [N ...]: patched from an unrelated pair; of R of them for each [N ... R]


def check_into(into):
    """Raise ValueError for directions that there are not."""
    if into not in ("both", "corrupt", "clean"):
        raise ValueError(f"into is {into!r}; wanted 'both', 'corrupt' or 'clean'")


def without_gaps(*sides):
    """Both directions as Patched, NaN where nothing was run."""
    run = next(side for side in sides if side is not None)
    missing = Patched(*(np.full_like(x, np.nan) for x in run))
    return [missing if side is None else side for side in sides]


class Effects(show.Shown):
    """Shares of the clean answer that patches restore and that they remove.

    `.effects` [...]: clean activations into the corrupt runs, (patched - corrupt) / (clean -
    corrupt): 0 changes nothing, 1 restores all. `.lost` [...]: corrupt activations into the clean
    runs, (clean - patched) / (clean - corrupt): 1 loses all. The two differ where components back
    each other up. effects[i] and np.asarray(effects) read `.effects`.
    `.intervals`, `.lost_intervals` [2 ...]: 95% bootstrap over pairs; with a single pair both ends
    are the effect. `.null`, `.lost_null` [...]: activations of an unrelated pair; [... R] for R of
    them. `.clean`, `.corrupt` [N]: the measure of each text.
    The measure of each patched run: `.into_corrupt`, `.into_clean` [N ...], and, for unrelated
    pairs, `.into_corrupt_null`, `.into_clean_null`.

    >>> import numpy as np
    >>> from minitx.circuits.effects import Patched
    >>> clean, corrupt = np.array([3.0, 5.0]), np.array([1.0, 1.0])
    >>> into_corrupt = Patched(np.array([[2.0], [3.0]]), np.array([[1.0], [1.0]]))
    >>> into_clean = Patched(np.array([[0.0], [5.0]]), np.array([[3.0], [5.0]]))
    >>> effects = Effects(clean, corrupt, into_corrupt, into_clean)
    >>> effects.effects, effects.lost, effects.null
    (array([0.5]), array([0.5]), array([0.]))
    """

    def __init__(
        self,
        clean: np.ndarray,
        corrupt: np.ndarray,
        into_corrupt: Patched,
        into_clean: Patched,
        seed: int = 0,
    ):
        check_differ(clean, corrupt)
        self.clean, self.corrupt = clean, corrupt
        self.into_corrupt, self.into_clean = into_corrupt.values, into_clean.values
        self.into_corrupt_null, self.into_clean_null = into_corrupt.null, into_clean.null
        self.effects = share(self.into_corrupt, corrupt, clean)
        self.lost = share(self.into_clean, clean, corrupt)
        self.null = share(into_corrupt.null, corrupt, clean)
        self.lost_null = share(into_clean.null, clean, corrupt)
        self.intervals = interval(self.into_corrupt, corrupt, clean, seed)
        self.lost_intervals = interval(self.into_clean, clean, corrupt, seed)

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the effects."""
        return np.shape(self.effects)

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        return np.array(self.effects, dtype)

    def __getitem__(self, index) -> np.ndarray:
        return self.effects[index]

    def __len__(self) -> int:
        return len(self.effects)

    def __float__(self) -> float:
        return float(self.effects)

    def _summary(self):
        flat = np.ravel(self.effects)
        largest = np.argsort(-abs(np.nan_to_num(flat)), kind="stable")[:10]
        n = len(self.clean)
        title = f"Effects {list(self.shape)} on {n} pair{'s' * (n > 1)} of texts"
        header = "piece", "restored", "95%", "by chance", "lost", "by chance"
        rows = [self._cells(i) for i in largest]
        return show.Summary(title, ["  ".join(cells) for cells in rows], header, rows)

    def _cells(self, i):
        """One piece as text: restored with its interval and null, lost with its null."""
        piece = ", ".join(map(str, np.unravel_index(i, self.shape))) if self.shape else "all"
        low, high = (f"{np.ravel(end)[i]:.3f}" for end in self.intervals)
        interval = f"{low} to {high}" if len(self.clean) > 1 else "one pair"
        parts = self.effects, self.null, self.lost, self.lost_null
        effect, null, lost, lost_null = (f"{np.ravel(part)[i]:.3f}" for part in parts)
        return [piece, effect, interval, null, lost, lost_null]


def check_differ(clean, corrupt):
    """Raises ValueError where the measure does not tell clean from corrupt texts."""
    difference = float((clean - corrupt).sum())
    if difference == 0 or not np.isfinite(difference):
        raise ValueError(
            f"the measure of clean texts is {clean.mean():g} on average, of corrupt ones "
            f"{corrupt.mean():g}; wanted a difference: effects are shares of it"
        )


def share(values, start, end):  # [N ...], [N], [N] -> [...]
    """How far the values are on the way from start to end, over all pairs."""
    return (values.sum(axis=0) - start.sum()) / (end - start).sum()


def interval(values, start, end, seed):  # [N ...], [N], [N] -> [2 ...]
    """The same with pairs resampled: quantiles that 95% of the draws are between."""
    N = len(values)
    if np.isnan(values).all():  # nothing was run
        return np.full((2, *values.shape[1:]), np.nan)
    rng = generator(seed)
    times = rng.multinomial(N, np.full(N, 1 / N), size=DRAWS).astype(np.float64)
    above = np.tensordot(times, values, 1)
    start_sum, whole = times @ start, times @ (end - start)
    others = (1,) * (above.ndim - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        drawn = (above - start_sum.reshape(-1, *others)) / whole.reshape(-1, *others)
    ends = (1 - LEVEL) / 2, (1 + LEVEL) / 2
    return np.nanquantile(drawn, ends, axis=0)


def partners(inputs, seed):  # -> [N], or None where a pair has no other of its length
    """For each text the number of another one with as many tokens."""
    lengths = inputs.texts.valid.sum(axis=1)
    rng = generator(seed)
    partner = np.arange(len(lengths))
    for length in np.unique(lengths):
        same = rng.permutation(np.flatnonzero(lengths == length))
        if len(same) == 1:
            return None
        partner[same] = np.roll(same, 1)
    return partner


def random_texts(model, inputs, seed):
    """Texts of the same lengths, whose tokens are drawn from those of all these texts.

    If they have only one kind of token, they are drawn from the vocabulary.
    """
    tokens, valid, _ = inputs.texts
    rng = generator(seed)
    pool = np.unique(tokens[valid])
    if len(pool) == 1:
        pool = np.arange((model.encoder or model).config.n_vocab)
    return inputs.with_texts(np.where(valid, rng.choice(pool, tokens.shape), tokens))
