"""Draw the next token from its logits: temperature, top-k and top-p.

B rows, V vocabulary, K tokens that may be drawn.
"""

from numbers import Real
from typing import NamedTuple

import numpy as np

from .kernels import softmax_

LEAST = 1e-200  # a lower temperature is as 0: logits divided by it might overflow


class Sampling(NamedTuple):
    """How the next token is drawn from its logits; see `generate`.

    >>> y = np.array([[0.0, 2.0, 1.0, -1.0]])
    >>> ids, p = Sampling(temperature=1.0, top_k=2).probabilities(y)
    >>> ids.tolist(), p.round(2).tolist()
    ([[1, 2]], [[0.73, 0.27]])
    """

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float | None = None

    def check(self, n):
        """Raises ValueError for values out of range; n: new tokens."""
        k = 1 if self.top_k is None else self.top_k
        p = 1 if self.top_p is None else self.top_p
        is_whole = all(isinstance(x, int | np.integer) for x in (n, k))
        is_number = is_whole and all(isinstance(x, Real) for x in (self.temperature, p))
        if not is_number or not (n >= 0 and self.temperature >= 0 and k >= 1 and 0 < p <= 1):
            given = zip(("n", *self._fields), (n, *self))
            text = ", ".join(f"{name}={value!r:.80}" for name, value in given)
            raise ValueError(
                f"{text}; wanted n >= 0, temperature >= 0, top_k >= 1, 0 < top_p <= 1, and n and "
                "top_k whole"
            )

    def probabilities(self, y):  # [B V] -> [B K], [B K]
        """Ids of the tokens that may be drawn, the likeliest first, and their probabilities.

        softmax(y / temperature) of the top_k tokens; 0 for those beyond the smallest set with
        probability top_p; then scaled to sum 1. At temperature 0 (below LEAST) one token has all.
        """
        if self.temperature < LEAST:
            best = y.argmax(axis=-1)[:, None]
            return best, np.ones(best.shape)
        order = np.argsort(-y, axis=-1, kind="stable")[:, : self.top_k]
        likeliest = np.take_along_axis(y, order, axis=-1).astype(np.float64)
        p = softmax_(likeliest / self.temperature)
        if self.top_p is not None:
            before = np.cumsum(p, axis=-1) - p
            p[before >= self.top_p] = 0
        return order, p / p.sum(axis=-1, keepdims=True)

    def draw(self, y, rng):  # [B V] -> [B]
        """A token for each row of logits."""
        order, p = self.probabilities(y)
        cumulative = np.cumsum(p, axis=-1)
        total = cumulative[:, -1:]
        target = rng.random(total.shape) * total
        rank = (cumulative < target).sum(axis=-1, keepdims=True)
        return np.take_along_axis(order, rank, axis=-1)[:, 0]


def generator(seed):
    """NumPy's generator of a seed. Raises ValueError for what is none."""
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError):
        text = f"seed={seed!r:.80}; wanted a whole number of at least 0, or None"
        raise ValueError(text) from None
