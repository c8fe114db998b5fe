"""Scores of heads, with what chance gives beside them."""

import numpy as np


class Scores(np.ndarray):
    """An array of scores, of heads [L H] or of pairs of heads [L H L H], with its `.null`.

    `.null`: what chance gives, an array of the same shape or one number.

    >>> import numpy as np
    >>> from minitx.circuits import Scores
    >>> scores = Scores.beside([[0.1, 0.9]], null=[[0.1, 0.0]])
    >>> float(scores[0, 1]), scores.null
    (0.9, array([[0.1, 0. ]]))
    """

    null: np.ndarray | None

    @classmethod
    def beside(cls, values, null) -> "Scores":
        """Scores with their null."""
        scores = np.asarray(values, np.float64).view(cls)
        scores.null = np.asarray(null, np.float64)
        return scores

    def __array_finalize__(self, other):
        self.null = None  # a part of the scores, or what is computed of them, has none
