"""What a step learns from: rows of a text, and the word to predict in each place that counts.

The text is cut into rows of one length. They are gone through in a random order, then again in
another. Batch number i is a function of the seed and i alone, so a loop may go on from any of them.
B rows of a batch, T tokens.
"""

import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from .gradients import UNCOUNTED

NOTHING: Mapping = MappingProxyType({})
FATES = 0.8, 0.9  # of the words to predict: hidden; another up to here; the rest as they are


MOST = 1 << 28  # tokens of a step: their ids alone take 2 GiB


class Batch(NamedTuple):
    """What `minitx.gradients` is given."""

    tokens: np.ndarray  # [B T]
    targets: np.ndarray  # [B T]
    others: Mapping = NOTHING  # what else it takes: types, a source


class Words:
    """Rows of a Stream; a masked model predicts hidden words, a causal one the next.

    share: of a row's words, those to predict; span: the mean number of them side by side.
    """

    def __init__(self, stream, T, share, span):
        self.stream = stream
        self.share = share
        self.span = span
        self.is_masked = stream.mask_id is not None
        n_ids = len(stream.ids)
        n_ends = len(stream.before) + len(stream.after)
        step = T - n_ends
        length = step
        if not self.is_masked:
            length = T + 1  # the last of them is predicted alone
        if step < 1:
            text = f"context is {T}, of which {n_ends} are special tokens"
            raise ValueError(f"{text}; wanted {n_ends + 1} or more, with room for a word")
        if n_ids < length:
            text = f"the text has {n_ids} tokens; an input of {T} wants {length}"
            raise ValueError(f"{text}: take a longer text or a shorter context")
        last = n_ids - length
        self.starts = np.arange(0, last + 1, step)
        self.length = length

    def batch(self, step, size, seed):
        """The Batch of a step."""
        numbers = drawn(len(self.starts), step, size, seed)
        starts = self.starts[numbers]
        places = starts[:, None] + np.arange(self.length)
        body = self.stream.ids[places]
        if self.is_masked:
            rng = np.random.default_rng((seed, step, 1))
            return self.hidden(body, rng)
        tokens = body[:, :-1]
        targets = body[:, 1:]
        return Batch(tokens, targets)

    def hidden(self, body, rng):
        """Rows with words hidden, between special tokens.

        Of the words to predict 80% are hidden, 10% are others of the text, 10% stay (Devlin et
        al. 2018).
        """
        ids = self.stream.ids
        is_asked = in_spans(body.shape, self.share, self.span, rng)
        is_asked[0, 0] |= not is_asked.any()
        fate = rng.random(body.shape)
        others = ids[rng.integers(0, len(ids), body.shape)]
        is_hidden = is_asked & (fate < FATES[0])
        is_other = is_asked & (fate >= FATES[1])
        tokens = body.copy()
        tokens[is_hidden] = self.stream.mask_id
        tokens[is_other] = others[is_other]
        targets = np.where(is_asked, body, UNCOUNTED)
        ends = self.stream.before, self.stream.after
        uncounted = [np.full_like(x, UNCOUNTED) for x in ends]
        return Batch(
            framed(tokens, *ends),
            framed(targets, *uncounted),
        )


def framed(rows, before, after):
    """Rows [B t] between the same ids."""
    n = len(rows)
    parts = [
        np.tile(before, (n, 1)),
        rows,
        np.tile(after, (n, 1)),
    ]
    return np.concatenate(parts, axis=1)


def in_spans(shape, share, span, rng):
    """Which places [B T] are in spans of that mean length, a share of all; bool.

    With n spans beginning at each place, a place is in none with probability exp(-n span).
    """
    if span == 1:
        return rng.random(shape) < share
    n_begun = -np.log(1 - share) / span
    begins = rng.random(shape) < n_begun
    lengths = rng.geometric(1 / span, shape)
    t = np.arange(shape[1])
    ends = np.where(begins, t + lengths, 0)
    reached = np.maximum.accumulate(ends, axis=1)
    return reached > t


def check_size(batch, T):
    """Raises ValueError for more inputs of T tokens than a step can hold."""
    if batch * T > MOST:
        raise ValueError(f"batch is {batch}, of {T} tokens each; wanted at most {MOST // T}")


def drawn(n, step, size, seed):
    """Numbers of the rows of one step: all n in a random order, then all again in another."""
    first = step * size
    counted = np.arange(first, first + size)
    times, places = np.divmod(counted, n)
    picked = []
    for k, i in zip(times.tolist(), places):
        picked.append(order(n, seed, k)[i])
    return np.array(picked)


@functools.lru_cache(maxsize=4)
def order(n, seed, k):
    """The order of n rows when they are gone through for the k-th time."""
    rng = np.random.default_rng((seed, n, k))
    return rng.permutation(n)
