"""Checks of lesson 18: what a temperature does to two tokens and to four, top-p by hand."""

import numpy as np

from . import NOT_YET, Wrong
from .arrays import needs_function

LOGITS = np.array([3.0, 2.0, 1.0, 0.0])
WANTED, NEAR = 2.0, 0.02  # size of the choice
RATIOS = (4.0, 0.5), (9.0, 2.0), (3.0, 4.0), (5.0, 1.0)  # ratio, temperature
LIKELY = (  # wrong ratios -> hint
    (lambda ratio, T: ratio**T, "upside down: a low temperature sharpens"),
    (lambda ratio, T: ratio / T, "logits are divided by T, and probabilities are e to their power"),
    (lambda ratio, T: ratio * T, "a low temperature makes the ratio larger, not smaller"),
    (lambda ratio, T: ratio, "the ratio changes; only the order stays"),
    (lambda ratio, T: np.exp(ratio / T), "ratio is already e to the difference of two logits"),
)
P = np.array([0.05, 0.4, 0.1, 0.25, 0.2])
SHARES = 0.3, 0.6, 0.8, 1.0


def check_ratio(answer):
    """ratio ** (1 / T): the difference of two logits is divided by T."""
    if answer is ...:
        return NOT_YET
    needs_function(answer, "lambda ratio, T: ratio * T")
    for ratio, T in RATIOS:
        given = float(answer(ratio, T))
        if np.isclose(given, ratio ** (1 / T)):
            continue
        for wrong, hint in LIKELY:
            if np.isclose(given, wrong(ratio, T)):
                raise Wrong(f"ratio {ratio:g}, T = {T:g}: {given:.3g} is not it; {hint}")
        raise Wrong(f"ratio {ratio:g}, T = {T:g}: wanted {ratio ** (1 / T):.3g}, not {given:.3g}")
    return "right: twice the temperature, the square root of the ratio"


def check_two(answer):
    """A temperature at which these four logits are a choice of two."""
    if answer is ...:
        return NOT_YET
    T = float(answer)
    if not T > 0:
        raise Wrong(f"{T:g}: wanted a temperature above 0")
    size = choice(LOGITS, T)
    if size > WANTED + NEAR:
        raise Wrong(f"at {T:g} the choice is among {size:.2f} tokens: too flat, go lower")
    if size < WANTED - NEAR:
        raise Wrong(f"at {T:g} the choice is among {size:.2f} tokens: too sharp, go higher")
    return f"right: among {size:.2f} tokens"


def choice(y, T):
    """e to the entropy of softmax(y / T)."""
    p = np.exp((y - y.max()) / T)
    p /= p.sum()
    return np.exp(-(p * np.log(p + 1e-300)).sum())


def check_nucleus(answer):
    """Probabilities of the smallest set with top_p, 1 in sum; the others are 0."""
    if answer is ...:
        return NOT_YET
    needs_function(answer, "lambda p, top_p: p")
    for top_p in SHARES:
        given = np.asarray(answer(P.copy(), top_p), float)
        if given.shape != P.shape:
            raise Wrong(f"wanted {list(P.shape)}, a number for each token; got {list(given.shape)}")
        kept = given > 0
        _of_the_right_tokens(kept, top_p)
        if np.allclose(given[kept], P[kept]) and not np.isclose(given.sum(), 1):
            raise Wrong(f"top_p {top_p}: the sum is {given.sum():.2f}; divide by it")
        if not np.allclose(given, np.where(kept, P, 0) / P[kept].sum()):
            raise Wrong(f"top_p {top_p}: the ratios among the tokens that stay must stay, too")
    return "right: the token that reaches top_p is the last that stays"


def _of_the_right_tokens(kept, top_p):
    """Raise Wrong with a hint unless these are the smallest set with top_p."""
    order = np.argsort(-P)
    n = int((np.cumsum(P[order]) - P[order] < top_p - 1e-12).sum())
    if set(np.flatnonzero(kept)) == set(order[:n]):
        return
    said = f"top_p {top_p}: {kept.sum()} tokens stay, wanted {n}"
    if kept.sum() == n:
        raise Wrong(f"top_p {top_p}: not the most probable ones; p is in no order, sort it first")
    if kept.sum() == n - 1:
        raise Wrong(f"{said}: their sum is below top_p; the token that reaches it stays, too")
    raise Wrong(f"{said}: the smallest set whose sum is at least top_p")
