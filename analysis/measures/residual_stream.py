"""The residual stream of one text, layer by layer. T tokens, L layers, D width."""

import numpy as np

from minitx import forward

from . import losses


def states(model, tokens, condition=None, **options):
    """Residual stream after the embeddings and after every layer: [L+1 T D].

    The last is after the final norm. condition, options: as for the losses.
    """
    stream = []
    condition_hook = losses.tap(model, condition)

    def hook(name, x, layer=None):
        x = condition_hook(name, x, layer)
        if name == "resid_post" or (name == "resid_pre" and layer == 0):
            stream.append(x[0].copy())
        return x

    final = forward(model, tokens, hook=hook, **options)[0]
    return np.array([*stream[:-1], final])  # the last layer's stream as the final norm leaves it


def unit_vectors(x):
    """Vectors of length 1, in float64: [... D] -> [... D]."""
    x = np.asarray(x, np.float64)
    return x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-30)
