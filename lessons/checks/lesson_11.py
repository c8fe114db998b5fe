"""Checks of lesson 11: a score by lag, the slopes of eight heads, rows without positions."""

from functools import cache

import numpy as np

import minitx

from . import NOT_YET, Wrong
from .arrays import is_close, needs_function, refuse

OMEGA = 0.4  # radians a token
HEADS = 8
SAME, ROUNDING = 10, 1e-3  # tokens that are alike; rows that differ by less are one


def check_score(answer):
    """The score of two turned arrows by their lag: q times k turned by OMEGA lag."""
    if answer is ...:
        return NOT_YET
    needs_function(answer, "lambda q, k, lag: q @ k + lag")
    rng = np.random.default_rng(0)
    q, k = rng.normal(size=(2, 2))
    lags = np.arange(-5, 3)
    got = np.array([_called(answer, q, k, lag) for lag in lags])
    right = np.array([q @ _turned(k, OMEGA * lag) for lag in lags])
    refuse(
        got, np.full(len(lags), q @ k), "this is the score at lag 0: it has to change with the lag"
    )
    refuse(
        got,
        np.array([q @ _turned(k, -OMEGA * lag) for lag in lags]),
        "this turns the wrong way: a key further on is turned further, the query is not turned",
    )
    refuse(
        got,
        np.array([q @ _turned(k, lag) for lag in lags]),
        "each token of lag turns by OMEGA, not by 1",
    )
    if not is_close(got, right):
        shown = q @ _turned(k, OMEGA)
        raise Wrong(f"at lag 1 it gives {got[lags == 1][0]:.3f} where turning gives {shown:.3f}")
    return "right: turning one by the lag equals turning both by their positions"


def check_slopes(answer):
    """2^(-8i/H) for H = 8 heads, i from 1."""
    if answer is ...:
        return NOT_YET
    got = np.ravel(answer).astype(float)
    if len(got) != HEADS:
        raise Wrong(f"wanted {HEADS} numbers, one a head; these are {len(got)}")
    i = np.arange(1, HEADS + 1)
    refuse(got, -(2.0**-i), "a slope is positive: the minus is in front of it")
    refuse(got, 2.0 ** -(i - 1), "i begins at 1, so the first slope is less than 1")
    refuse(got, 4.0**-i, "-8/4 belonged to four heads: with eight the exponent is -8i/8")
    if not is_close(np.sort(got), np.sort(2.0**-i)):
        raise Wrong("put H = 8 into 2^(-8i/H), for i = 1 to 8; each is the same share of the last")
    return "right: from 1/2 to 1/256"


def check_rows(answer):
    """How many rows of causal-none differ: of ten equal tokens, and with another before them."""
    if answer is ...:
        return NOT_YET
    if np.shape(answer) != (2,):
        raise Wrong("wanted two numbers: without the other token, and with it")
    n_alike, n_started = counts()
    if answer[0] == SAME:
        raise Wrong("a mean of equal rows is that row, whether it is of two or of ten")
    if answer[1] == 2:
        raise Wrong("how much of what a token gets comes from the first: the same for all?")
    if answer[1] == SAME:
        raise Wrong("the token in front has a row, too")
    if tuple(answer) != (n_alike, n_started):
        raise Wrong(f"{answer!r} is not it: run both, and count rows that differ")
    return f"right: {n_alike}, and {n_started} with another token before them"


@cache
def counts():
    """Rows that differ after the last layer: without the token in front, and with it."""
    model = minitx.load("zoo/causal-none")
    start, the = model.tokenizer.encode("The the")
    numbers = []
    for tokens in ([the] * SAME, [start] + [the] * SAME):
        rows = minitx.run(model, np.array(tokens), ["resid_post"])["resid_post", -1][0]
        numbers.append(_n_different(rows))
    return tuple(numbers)


def _n_different(rows):
    """How many rows [T D] differ by more than rounding from all before them."""
    kept = rows[:1]
    for row in rows[1:]:
        if abs(kept - row).max(axis=1).min() > ROUNDING:
            kept = np.concatenate([kept, row[None]])
    return len(kept)


def _turned(arrow, angle):
    """An arrow of two numbers, turned."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([c * arrow[0] - s * arrow[1], s * arrow[0] + c * arrow[1]])


def _called(answer, q, k, lag):
    """The score that a function gives, one number."""
    got = np.asarray(answer(q.copy(), k.copy(), lag), float)
    if got.shape:
        raise Wrong(f"the function gives {list(got.shape)}; a score is one number")
    return got
