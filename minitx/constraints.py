"""Which tokens may come next: the first and the last may be forced, some never come."""

from typing import NamedTuple

import numpy as np


class Constraints(NamedTuple):
    """What a folder's generation settings allow at each place of a text that is generated."""

    forced: dict[int, int]  # number of a new token -> the only one that may stand there
    suppressed: list[int]  # tokens that stand nowhere

    def apply(self, i, y):  # [N V] -> [N V]
        """Logits or log-probabilities of the i-th new token, -inf for tokens that may not come.

        A forced token has 0, so that it costs nothing as a log-probability.
        """
        if i in self.forced:
            y = np.full_like(y, -np.inf)
            y[:, self.forced[i]] = 0
        elif self.suppressed:
            y = y.copy()
            y[:, self.suppressed] = -np.inf
        return y


def constraints(cfg, given, n, stop):
    """The Constraints of n new tokens behind `given` tokens, of which `stop` ends the text.

    Raises ValueError for words of several tokens that may not come.
    """
    longer = [word for word in cfg.bad_words if len(word) != 1]
    if longer:
        text = f"bad_words_ids has {list(longer[0])}; only single tokens are kept from coming"
        raise ValueError(text)
    forced = {0: cfg.first_id if given == 1 else None}
    if cfg.last_id is not None:
        forced[n - 1] = cfg.last_id
    forced = {i: token for i, token in forced.items() if token is not None}
    return Constraints(forced, [token for [token] in cfg.bad_words if token != stop])


def until(stop, row):
    """A row of new ids up to the first `stop`, which is included."""
    if stop is None or stop not in row:
        return row
    return row[: (row == stop).argmax() + 1]
