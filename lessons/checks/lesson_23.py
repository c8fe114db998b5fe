"""Checks of lesson 23: the largest k of a row, and the share of a loss that is recovered."""

import numpy as np

from . import NOT_YET, Wrong
from .arrays import needs_function

H = np.array([[3.0, -1.0, 0.5, 2.0], [-4.0, -3.0, -2.0, -1.0], [1.0, 4.0, 3.0, 2.0]])
KEPT = {  # k -> what is left of H
    1: [[3, 0, 0, 0], [0, 0, 0, 0], [0, 4, 0, 0]],
    2: [[3, 0, 0, 2], [0, 0, 0, 0], [0, 4, 3, 0]],
}
ASKED = (2.0, 2.5, 4.0), (1.0, 1.0, 3.0), (1.0, 3.5, 3.0)
LIKELY = (  # wrong shares -> hint
    (lambda loss, own, mean: (own - loss) / (mean - loss), "this is the share that is lost"),
    (lambda loss, own, mean: own / loss, "compare with the mean, too: it is what 0 stands for"),
    (lambda loss, own, mean: loss / own, "compare with the mean, too: it is what 0 stands for"),
    (lambda loss, own, mean: (mean - own) / mean, "divide by what the mean loses, not by its loss"),
)


def check_top_k(answer):
    """The k largest of each row that are above 0."""
    if answer is ...:
        return NOT_YET
    needs_function(answer, "lambda h, k: h")
    for k, wanted in KEPT.items():
        given = np.asarray(answer(H.copy(), k), float)
        if given.shape != H.shape:
            raise Wrong(f"wanted {list(H.shape)}, as h is; this is {list(given.shape)}")
        if (given < 0).any():
            raise Wrong("numbers below 0 are set to 0, even if they are the largest of their row")
        n = (given != 0).sum(axis=1).tolist()
        if max(n) > k:
            raise Wrong(f"k = {k}: {max(n)} numbers are left in a row")
        if not np.allclose(given, wanted):
            raise Wrong(f"k = {k}: row 0 becomes {given[0].tolist()}; wanted {wanted[0]}")
    return "right: a row may keep fewer than k"


def check_recovered(answer):
    """(mean - own) / (mean - loss)."""
    if answer is ...:
        return NOT_YET
    needs_function(answer, "lambda loss, own, mean: own - loss")
    for case in ASKED:
        loss, own, mean = case
        given, wanted = float(answer(*case)), (mean - own) / (mean - loss)
        if np.isclose(given, wanted):
            continue
        said = f"loss = {loss:g}, own = {own:g}, mean = {mean:g}: {given:.3g} is not it"
        for wrong, hint in LIKELY:
            if np.isclose(given, wrong(*case)):
                raise Wrong(f"{said}; {hint}")
        raise Wrong(f"{said}; wanted 1 where own = loss, 0 where own = mean")
    return "right; below 0 where it is worse than the mean"
