"""Random pairs of texts for golden models, and what is asked of them."""

import numpy as np
import tiny

import minitx
from minitx.circuits.graph import Graph
from minitx.circuits.measure import read_measure
from minitx.circuits.texts import read_pairs

ANSWER = 5, 9


def pairs_of(model, lengths=(6, 6, 4)):
    """Clean and corrupt rows of ids, which differ in two tokens."""
    reader = model.encoder or model
    clean = [tiny.ids(reader, n, seed=i) for i, n in enumerate(lengths)]
    other = [tiny.ids(reader, n, seed=50 + i) for i, n in enumerate(lengths)]
    corrupt = [np.where(np.arange(len(row)) % 3 == 1, b, row) for row, b in zip(clean, other)]
    return clean, corrupt


def given(model):
    """What `patch` takes beside the texts: the place, and what a decoder has said."""
    if model.encoder is not None:
        return {"prefix": [3, 4, 5]}
    return {} if model.config.causal else {"place": 2}


def answer(model):
    """Two tokens, or classes."""
    return ANSWER if model.weights.W_U.shape[1] > 9 else (0, 1)


def contrast(model, y):
    """The first answer over the second, in scores of both [V]."""
    first, second = answer(model)
    return y[first] - y[second]


def record(model, ids, keep, edits=None):
    """A run of one text; the decoder of an encoder-decoder has said `given`."""
    if model.encoder is None:
        return minitx.run(model, ids, keep, edits)
    return minitx.run(model, given(model)["prefix"], keep, edits, source=ids)


def prepared(model, lengths=(6, 4)):
    """The graph, the pairs and the measure of some random texts."""
    clean, corrupt = pairs_of(model, lengths)
    options = given(model)
    pairs = read_pairs(model, clean, corrupt, options.get("prefix"))
    number = read_measure(model, answer(model), pairs.clean, options.get("place"))
    return Graph(model), pairs, number
