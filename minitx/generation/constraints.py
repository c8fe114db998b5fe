"""What may come next, and at what cost: the processors that settings of generation ask for.

Each changes the scores of the next token, logits or log-probabilities, one after another in the
reference library's order. N rows, V vocabulary, T tokens so far.
"""

from numbers import Real
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

LARGEST = 1000  # penalty of a repetition, and one over the smallest: products stay finite


class Text(NamedTuple):
    """What each row has so far, and how it may end."""

    ids: np.ndarray  # [N T]; -1 on padding, which is on the left
    n_new: int  # of these ids are generated
    n: int  # are generated in the end
    stop: int | None  # ends a row

    @property
    def lengths(self):
        """Tokens of each row that are no padding, [N]."""
        return (self.ids >= 0).sum(axis=1)


class Constraints(NamedTuple):
    """What is asked of n tokens that are generated behind prompts."""

    prompts: np.ndarray  # [B T]; -1 on padding
    n: int
    stop: int | None
    processors: list  # pairs of a function of PROCESSORS and the value of its setting

    def apply(self, new, y):  # [N i], [N V] -> [N V]
        """Scores of the next token behind i new ones; N / B rows go on from each prompt."""
        if not self.processors:
            return y
        rows = np.repeat(self.prompts, len(new) // len(self.prompts), axis=0)
        ids, n_new = np.concatenate([rows, new], axis=1), new.shape[1]
        text = Text(ids, n_new, self.n, self.stop)
        for process, value in self.processors:
            y = process(y, text, value)
        if not np.isfinite(y).any(axis=1).all():
            wanted = f"all {y.shape[1]} tokens as new token {n_new + 1}"
            raise ValueError(f"the settings of generation forbid {wanted} of a text")
        return y


def constraints(settings, batch, n, stop):
    """The Constraints of n new tokens behind the prompts of a batch, of which `stop` ends a text.

    settings: a Generation. Raises ValueError for values that are out of range.
    """
    check(settings)
    if settings.min_new_tokens is not None:  # counts more than the other
        settings = settings._replace(min_length=0)
    unset, values = settings._field_defaults, settings._asdict()
    asked = [name for name in PROCESSORS if values[name] != unset[name]]
    prompts = np.where(batch.valid, batch.tokens, -1)
    return Constraints(prompts, n, stop, [(PROCESSORS[name], values[name]) for name in asked])


def check(settings):
    """Raises ValueError for values that are out of range."""
    penalty = settings.repetition_penalty
    if not isinstance(penalty, Real) or not 1 / LARGEST <= penalty <= LARGEST:
        wanted = f"a number from {1 / LARGEST} to {LARGEST}"
        raise ValueError(f"repetition_penalty={penalty!r:.80}; wanted {wanted}")
    for name in ("no_repeat_ngram_size", "min_length", "min_new_tokens"):
        value = getattr(settings, name)
        is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if value is not None and not (is_whole and value >= 0):
            raise ValueError(f"{name}={value!r:.80}; wanted a whole number of at least 0")


# --- processors


def penalized(y, text, penalty):
    """Scores below 0 of tokens that were there times the penalty, others divided by it.

    Keskar et al. 2019, 4.1.
    """
    worse = np.where(y < 0, y * penalty, y / penalty)
    return np.where(among(text.ids, y.shape[1]), worse, y)


def without_repeats(y, text, n):
    """No token that would end the same n tokens a second time."""
    if text.ids.shape[1] < n:
        return y
    windows = sliding_window_view(text.ids, n, axis=1)  # [N T-n+1 n]
    latest = text.ids[:, text.ids.shape[1] - n + 1 :]  # [N n-1]
    is_same = (windows[..., :-1] == latest[:, None]).all(axis=2)
    banned = np.where(is_same, windows[..., -1], -1)
    return np.where(among(banned, y.shape[1]), -np.inf, y)


def without_words(y, text, words):
    """No token that would end one of these words, tuples of ids; the end of a text is none."""
    y = y.copy()
    for *first, last in words:
        start = text.ids.shape[1] - len(first)
        if start >= 0 and (first or last != text.stop):
            rows = (text.ids[:, start:] == first).all(axis=1)
            y[rows, last] = -np.inf
    return y


def no_shorter(y, text, least):
    """No end of a text, its prompt included, before the least length."""
    return without_end(y, text, text.lengths < least)


def going_on(y, text, least):
    """No end before as many new tokens."""
    return without_end(y, text, np.full(len(y), text.n_new < least))


def without_end(y, text, rows):
    """Scores of these rows without the end, if there is one."""
    is_end = np.arange(y.shape[1]) == text.stop
    return np.where(rows[:, None] & is_end, -np.inf, y)


def begun(y, text, token):
    """This token alone behind the first."""
    return np.where(text.lengths[:, None] == 1, forced(y, token), y)


def ended(y, text, token):
    """This token alone as the last."""
    return forced(y, token) if text.n_new == text.n - 1 else y


def forced(y, token):
    """Scores that leave one token, which costs nothing as a log-probability."""
    y = np.full_like(y, -np.inf)
    y[:, token] = 0
    return y


def log_softmax(y):  # [N V] -> [N V], in float64
    """Log-probabilities of logits."""
    y = y.astype(np.float64)
    y -= y.max(axis=-1, keepdims=True)
    total = np.exp(y).sum(axis=-1, keepdims=True)
    return y - np.log(total)


PROCESSORS = {  # field of Generation -> its processor, in the reference library's order
    "repetition_penalty": penalized,
    "no_repeat_ngram_size": without_repeats,
    "bad_words_ids": without_words,
    "min_length": no_shorter,
    "min_new_tokens": going_on,
    "forced_bos_token_id": begun,
    "forced_eos_token_id": ended,
    "renormalize_logits": lambda y, *_: log_softmax(y),
}


# --- ids


def among(ids, V):  # [N K] -> [N V] bool
    """Which tokens are among the ids of each row; -1 is none."""
    marks = np.zeros((len(ids), V + 1), bool)
    np.put_along_axis(marks, ids, True, axis=1)
    return marks[:, :V]


def until(stop, row):
    """A row of new ids up to the first `stop`, which is included."""
    if stop is None or stop not in row:
        return row
    return row[: (row == stop).argmax() + 1]
