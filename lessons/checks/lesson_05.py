"""Checks of lesson 5: a fixed vector as attention, attention blindfolded, attention and order."""

import numpy as np

from minitx.analysis.toys import gru

from . import NOT_YET, Wrong

PLACES = 6  # of the example that a look is tried on
WORDS = "same", "turned", "new"


def check_look(answer):
    """look(s, h) with all weight on the last position."""
    if answer is ...:
        return NOT_YET
    if not callable(answer):
        raise Wrong("wanted a function: def look(s, h): … return weights")
    s, h = np.ones(4), np.eye(PLACES, 4)
    weights = np.asarray(answer(s, h), float)
    if weights.shape != (PLACES,):
        raise Wrong(f"wanted one weight per letter, {PLACES} here; yours are {weights.shape}")
    if not np.isclose(weights.sum(), 1):
        raise Wrong(f"weights sum to 1, yours to {weights.sum():.2f}")
    if weights[0] == 1:
        raise Wrong("that is the first letter's state; wanted is the state after the last")
    if weights[-1] != 1:
        raise Wrong("other positions still get some weight; which state is passed on?")
    return "right: a fixed vector is attention that cannot move."


def check_uniform(answer):
    """Share of letters right when `dot` gives all positions the same weight."""
    if answer is ...:
        return NOT_YET
    right = uniform_share()
    if not 0 <= answer <= 1:
        raise Wrong("wanted a share between 0 and 1: np.mean of what is right")
    if answer > 0.9:
        raise Wrong("that is with attention: does your look still use the scores?")
    if abs(answer - right) > 0.03:
        raise Wrong("not that: take every row of `rows`, and 1 / len(h) for every position")
    return "right: it learned to rely on looking back, and is lost without."


def uniform_share():
    """What check_uniform expects: [200 20] rows of the lesson, `dot` with equal weights."""
    w = gru.load()["dot"]
    rows = np.random.default_rng(3).integers(0, 16, (200, 20))
    h = gru.encode(w, rows)
    context = h.mean(axis=1)
    s, letter = h[:, -1], np.full(len(rows), 16)
    right = []
    for letters in rows.T:
        s = gru.step(w, "decoder", w["W_E"][letter], s)
        x = np.tanh(np.concatenate([s, context], axis=-1) @ w["W_out"] + w["b_out"])
        letter = (x @ w["W_U"] + w["b_U"]).argmax(axis=-1)
        right.append(letter == letters)
    return np.mean(right)


def check_order(answer):
    """What turning the squares round does to (weights, mean)."""
    if answer is ...:
        return NOT_YET
    is_pair = isinstance(answer, tuple | list) and len(answer) == 2
    if not is_pair or not set(answer) <= set(WORDS):
        raise Wrong(f"wanted a pair of words, each of them one of {', '.join(WORDS)}")
    weights, mean = answer
    if weights != "turned":
        raise Wrong("the weights: each score belongs to one state, and moves with it")
    if mean != "same":
        raise Wrong("the mean: does a sum change when its terms are added in another order?")
    return "right: attention is a weighted mean, and a mean knows no order."
