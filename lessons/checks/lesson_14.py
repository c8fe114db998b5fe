"""Checks of lesson 14: the induction score, who makes the query, a head that beats chance."""

from typing import get_args

import numpy as np

import minitx
from minitx import circuits
from minitx.circuits.detectors import Kind
from minitx.weights.local import bundled

from . import NOT_YET, Wrong
from .arrays import needs_function

N = 6  # words of the text that is said twice
SENDER, READER = "L0H0", "queries"
MARGIN = 0.1  # attention above the best that chance gives
SEED = 1  # of texts that the lesson has not shown


def check_score(answer):
    """Mean attention of the second half to the token after the first occurrence."""
    if answer is ...:
        return NOT_YET
    needs_function(answer, "lambda pattern, n: pattern.mean()")
    pattern = _pattern()
    score = _number(answer(pattern.copy(), N))
    query = np.arange(N, 2 * N)
    for behind, hint in HINTS.items():
        if np.isclose(score, pattern[query, query - behind].mean()):
            raise Wrong(hint)
    scores = pattern[query, query - N + 1]
    if np.isclose(score, scores.sum()):
        raise Wrong("this is the sum over the second half; wanted the mean")
    diagonal = np.diagonal(pattern, 1 - N)
    if np.isclose(score, diagonal.mean()):
        raise Wrong("the last token of the first half is counted, too: it repeats nothing")
    if not np.isclose(score, scores.mean()):
        raise Wrong(f"{score:.3g} is not it: token t of the second half stood at t - n before")
    return "right: from t to t - n + 1, for each t of the second half"


HINTS = {  # the counted key's distance behind the query
    N: "this is the first occurrence itself (duplicate); what came after it is one further",
    N + 1: "this is the token before the first occurrence; what came after it is wanted",
    1: "this is the token before (previous), however often the text is said",
}


def _pattern():
    """A causal pattern without any order: [2N 2N]."""
    rng = np.random.default_rng(0)
    scores = np.tril(rng.random((2 * N, 2 * N)))
    return scores / scores.sum(axis=1, keepdims=True)


def _number(value):
    """One number as float; Wrong for an array."""
    if np.shape(value) != ():
        raise Wrong(f"the function gives {list(np.shape(value))}; wanted one number")
    return float(value)


def check_query(answer):
    """Who writes what the queries of layer 1 look for, and that queries read it."""
    if answer is ...:
        return NOT_YET
    if not isinstance(answer, tuple | list) or len(answer) != 2:
        raise Wrong(f"{answer!r}: wanted a pair, such as ('L0H7', 'keys')")
    sender, reader = answer
    if reader == "keys":
        raise Wrong("the keys are those of earlier tokens, and only the last token differs here")
    if reader == "values":
        raise Wrong("values are what is copied; here it changes where the head looks")
    if reader != READER:
        raise Wrong(f"{reader!r}: wanted one of queries, keys, values")
    if sender == "words":
        raise Wrong("nearly, but look at the table: the word reaches the query by way of a head")
    if sender != SENDER:
        raise Wrong(f"{sender!r} is not it: print the row of the queries, and find its largest")
    return "right: L0H0 tells the query which word it is, L0H7 the key which word was before"


def check_head(answer):
    """A head of a bundled model that does something more than the best head does by chance."""
    if answer is ...:
        return NOT_YET
    if not isinstance(answer, tuple | list) or len(answer) != 4:
        raise Wrong(f"{answer!r}: wanted (model, kind, layer, head)")
    name, kind, layer, head = answer
    kinds = [x for x in get_args(Kind) if x != "copying"]
    if kind not in kinds:
        raise Wrong(f"{kind!r}: wanted one of {', '.join(kinds)}")
    score = circuits.detect_heads(_loaded(name), kind, seed=SEED)[kind]
    if not (0 <= layer < len(score) and 0 <= head < score.shape[1]):
        raise Wrong(f"L{layer}H{head}: this model has {score.shape[0]} layers of {score.shape[1]}")
    value, own, best = score[layer, head], score.null[layer, head], score.null.max()
    name_of_head = f"L{layer}H{head} gives {value:.2f} of its attention so"
    if value < own + MARGIN:
        raise Wrong(f"{name_of_head}; by chance it gives {own:.2f}: that is no more")
    if value < best + MARGIN:
        raise Wrong(f"{name_of_head}; of all heads the best by chance gives {best:.2f}: too near")
    return f"right: {name_of_head}, on other texts; the best head by chance {best:.2f}"


def _loaded(name):
    """A bundled model; Wrong with the names if there is none of this name."""
    if name not in bundled():
        raise Wrong(f"no bundled model {name!r}; available: {', '.join(bundled())}")
    return minitx.load(name)
