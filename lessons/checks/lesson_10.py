"""Checks of lesson 10: changes that attention does not see, the keys' move, a scale that wins."""

import numpy as np
import scipy

import minitx

from . import NOT_YET, Wrong
from .arrays import needs_function

SENTENCE = "The old man told her, and she told him what she had found in the room."
HINTS = {  # letters of changes that are not free
    "b": "b adds a·k to the product with key k, another number for each key",
    "d": "d doubles all products: e to twice the product prefers the largest share even more",
}
MISSING = {
    "a": "a adds the same q·a to all products of a query",
    "c": "in c the factors 2 and 1/2 cancel in every product",
    "e": "a rotation keeps the lengths and angles of all rows, so it keeps products",
    "f": "a product is a sum over numbers, in any order",
}


def check_free(answer):
    """The letters of the changes that leave attention as it is."""
    if answer is ...:
        return NOT_YET
    if not isinstance(answer, str) or not set(answer) <= set("abcdef"):
        raise Wrong(f"{answer!r}: wanted a string of letters from a to f")
    for letter, hint in HINTS.items():
        if letter in answer:
            raise Wrong(hint)
    for letter, hint in MISSING.items():
        if letter not in answer:
            raise Wrong(f"there are more: {hint}")
    return "right: whatever keeps products, or adds one number to all products of a query"


def check_translation(answer):
    """The row by which the keys move so that their mean is the mean of the queries."""
    if answer is ...:
        return NOT_YET
    needs_function(answer, "lambda q, k: q[0] - k[0]")
    rng = np.random.default_rng(0)
    q, k = rng.normal(1, 1, (7, 4)), rng.normal(-2, 1, (9, 4))
    a, wanted = np.asarray(answer(q, k), float), q.mean(axis=0) - k.mean(axis=0)
    if a.shape != wanted.shape:
        raise Wrong(f"a is {list(a.shape)}; wanted one row {list(wanted.shape)} for all keys")
    if np.allclose(a, -wanted):
        raise Wrong("this moves the keys away from the queries: which way do the keys have to go?")
    if not np.allclose(a, wanted):
        raise Wrong("after this move the mean of the keys is not the mean of the queries")
    return "right: the means lie on one another, and attention is as it was"


def check_scale(answer):
    """A scale with which the nearest key is the strongest one in every head of layer 0."""
    if answer is ...:
        return NOT_YET
    if not np.isscalar(answer) or not np.isreal(answer) or answer <= 0:
        raise Wrong(f"c is {answer!r}; wanted a number above 0")
    share, keys = count_nearest(float(answer))
    if share < 1 and keys == 1:
        raise Wrong(
            f"with c = {answer:g} all queries have the same nearest key, the shortest: which part "
            "of c²|q|² + |k|²/c² - 2 q·k decides?"
        )
    if share < 1:
        raise Wrong(
            f"with c = {answer:g} the nearest key is the strongest for {share:.0%} of the queries: "
            "make |k|²/c² matter less"
        )
    return f"right: with c = {answer:g} near means attended, always, and the picture shows nothing"


def count_nearest(c):
    """Share of queries whose nearest key is the strongest; most keys that are nearest in a head."""
    trace = minitx.run(minitx.load("tiny-bert"), SENTENCE, [("q", 0), ("k", 0)])
    hits, keys = [], []
    for q, k in zip(trace["q", 0][0].astype(float), trace["k", 0][0].astype(float)):
        nearest = scipy.spatial.distance.cdist(c * q, k / c).argmin(axis=1)
        hits.append(nearest == (q @ k.T).argmax(axis=1))
        keys.append(len(set(nearest.tolist())))
    return np.mean(hits), max(keys)
