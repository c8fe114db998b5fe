"""Random pairs of texts for golden models, and what is asked of them."""

import numpy as np
import tiny

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
