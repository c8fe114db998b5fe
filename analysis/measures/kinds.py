"""Kinds of heads, by what they look at on random words that occur twice.

L layers, H heads.
"""

import numpy as np

from minitx import circuits
from minitx.circuits.repeated import FEWEST, room

from ..contract import verdict

KINDS = {  # what a head of a kind looks at
    "induction": "the token after the first occurrence of its own",
    "duplicate": "the first occurrence of its own token",
    "previous": "the token before",
    "next": "the token after it",
    "first": "the first token of the text",
    "itself": "its own position",
}
COPYING = "eigenvalues of the way from a word to its own logit, sum over sum of absolute values"
N_TEXTS = 4  # from which a page labels heads
CLEARLY = 0.4  # mean attention from which a head is said to do it


def kinds_of(model):
    """All kinds of heads; copying where the head's vocabulary, and width, are the embedding's."""
    kinds = [*KINDS]
    w = model.weights
    if w.W_U is not None and w.W_U.shape[1] == len(w.W_E) and w.W_map is None:
        kinds.append("copying")
    return kinds


def labels(model):
    """{kind: {"heads": {number of a head: its score}, "null": what chance reaches}}.

    A head is of a kind if it gives CLEARLY of its attention to what the kind looks at, and more
    than any head of this model does by chance, by the margin of verdict.py. None for a model that
    reads too few tokens for random words.
    """
    if room(model) < FEWEST:
        return None
    scores = circuits.detect_heads(model, [*KINDS], n_texts=N_TEXTS)
    return {kind: _labelled(score) for kind, score in scores.items()}


def _labelled(score):
    """The heads that are of a kind, numbered through all layers."""
    null = float(score.null.max())
    heads = {}
    for i, value in enumerate(np.ravel(score)):
        if verdict.beside(value, null, enough=CLEARLY).verdict == "yes":
            heads[i] = round(float(value), 3)
    return {"heads": heads, "null": round(null, 3)}
