"""Checks of lesson 19: LayerNorm by hand, what it does not see, a matrix that centres."""

import numpy as np

from . import NOT_YET, Wrong
from .arrays import is_close, needs_function, refuse

UNSEEN = {"times 3", "plus 1 everywhere"}
SEEN = {  # changes that the norm does see -> hint
    "times -1": "the direction is turned round: every number of the result changes its sign",
    "plus 1 in one place": "that turns the row, unless all other numbers get the same",
    "reversed": "mean and length stay, but that is why the norm keeps the new order",
}


def check_norm(answer):
    """(x - mean) / std * gain + bias, over the last axis."""
    if answer is ...:
        return NOT_YET
    needs_function(answer, "lambda x, gain, bias: x * gain + bias")
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3, 5, 8)) + 2
    gain, bias = rng.standard_normal((2, 8))
    given = np.asarray(answer(x.copy(), gain, bias))
    if given.shape != x.shape:
        raise Wrong(f"wanted {list(x.shape)}, like x; this gives {list(given.shape)}")
    for wrong, hint in likely_norms(x, gain, bias):
        refuse(given, wrong, hint)
    if not is_close(given, normed(x) * gain + bias):
        raise Wrong(
            "not it: take the mean off, divide by the standard deviation, then * gain + bias"
        )
    return "right: of each row its direction is left"


def normed(x):
    """x without its mean, divided by its standard deviation, row by row."""
    return (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)


def likely_norms(x, gain, bias):
    """(wrong result, hint) of likely mistakes."""
    centred = x - x.mean(-1, keepdims=True)
    n = normed(x)
    yield n, "gain and bias are left out"
    yield n * gain, "the bias is left out"
    yield (n + bias) * gain, "the gain comes first, then the bias"
    yield centred * gain + bias, "the length is still there: divide by the standard deviation"
    yield centred / x.var(-1, keepdims=True) * gain + bias, "divide by the root of the variance"
    rms = np.sqrt((x**2).mean(-1, keepdims=True))
    yield x / rms * gain + bias, "this is an RMSNorm: the mean is still there"
    sample = x.std(-1, keepdims=True, ddof=1)
    yield centred / sample * gain + bias, "the variance is a mean over D numbers, not over D - 1"
    yield centred / np.linalg.norm(centred, axis=-1, keepdims=True) * gain + bias, LENGTH
    whole = (x - x.mean()) / x.std()
    yield whole * gain + bias, "mean and standard deviation of each row, not of all numbers"


LENGTH = "these rows have length 1; divided by the standard deviation it is the root of D"


def check_unseen(answer):
    """The changes that leave LayerNorm's result as it is."""
    if answer is ...:
        return NOT_YET
    if not isinstance(answer, set | frozenset | list | tuple):
        raise Wrong(f"{answer!r}: wanted a set of names, such as {{'times -1'}}")
    given = set(answer)
    unknown = sorted(given - UNSEEN - set(SEEN))
    if unknown:
        raise Wrong(f"{unknown[0]!r} is not in the list: {', '.join(sorted(UNSEEN | set(SEEN)))}")
    for name, hint in SEEN.items():
        if name in given:
            raise Wrong(f"{name}: {hint}")
    if given != UNSEEN:
        raise Wrong("one is missing: try each on a row, with your function of exercise 1")
    return "right: the norm removes length and mean, and nothing else"


def check_fold(answer):
    """W less the mean of each row: x @ W then has mean 0."""
    if answer is ...:
        return NOT_YET
    needs_function(answer, "lambda W: W")
    rng = np.random.default_rng(0)
    x, W = rng.standard_normal((4, 6)), rng.standard_normal((6, 8)) + 1
    given = np.asarray(answer(W.copy()))
    if given.shape != W.shape:
        raise Wrong(f"wanted {list(W.shape)}, like W; this gives {list(given.shape)}")
    refuse(given, W - W.mean(axis=0), "this centres columns; mean 0 is wanted over D, along a row")
    refuse(given, W - W.mean(), "this centres the matrix as a whole; each row needs its own mean")
    y = x @ given
    if not np.allclose(y.mean(axis=-1), 0):
        raise Wrong(f"the rows of x @ W have means up to {np.abs(y.mean(axis=-1)).max():.2g}")
    if not is_close(y, x @ W - (x @ W).mean(axis=-1, keepdims=True)):
        raise Wrong("the mean is 0, but more than the mean has changed")
    return "right: the mean is taken off before it is made"
