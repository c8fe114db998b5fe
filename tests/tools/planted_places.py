"""Models whose places alone decide where heads look: the answer of each mechanism is planted.

Queries and keys of zoo models are made constant; where they look then follows from the mechanism.
"""

import numpy as np
import tiny

import minitx
from minitx import distances

BACK = 3  # tokens to the left, where every head of the rotary model looks
NEAR = -1, 1, 2, -2  # where each head of the model with buckets looks


def with_layers(model, change):
    """A model whose layers have the arrays that change(layer) gives, by name."""
    return tiny.with_weights(model, {w.index: change(w) for w in model.layers})


def constant(w, b_Q=0.0, b_K=0.0):
    """Arrays of a layer whose queries are b_Q and whose keys are b_K, whatever the words."""
    zeros = {name: np.zeros_like(getattr(w, name)) for name in ("W_Q", "W_K")}
    width = w.W_Q.shape[1]
    dtype = w.W_Q.dtype
    biases = {"b_Q": np.zeros(width, dtype) + b_Q, "b_K": np.zeros(width, dtype) + b_K}
    return zeros | {name: x.astype(dtype) for name, x in biases.items()}


def alibi():
    """The slopes alone."""
    return with_layers(minitx.load("zoo/causal-alibi"), constant)


def buckets():
    """Head number h gives all its attention to the offset NEAR[h]."""
    model = with_layers(minitx.load("zoo/masked-buckets"), constant)
    cfg = model.config
    W_rel = np.zeros_like(model.weights.W_rel)
    for head, offset in enumerate(NEAR):
        W_rel[distances.bucket(cfg, np.array(offset)), head] = 12
    return tiny.with_weights(model, W_rel=W_rel)


def rotary(back=BACK, pairs=slice(None)):
    """Keys that are ahead of their queries by as much as `back` tokens turn them.

    pairs: those of queries and keys that are not 0; of fewer each is larger.
    """
    model = minitx.load("zoo/causal-rotary")

    def change(w):
        omega = np.array(model.config.rotary[w.index].frequencies)
        r, d = len(omega), model.config.d_head
        query, key = np.zeros((2, d))
        size = np.zeros(r)
        size[pairs] = 4 * (r / len(size[pairs])) ** 0.5
        query[:r] = size
        key[:r], key[r : 2 * r] = size * np.cos(back * omega), size * np.sin(back * omega)
        H = model.config.n_heads
        return constant(w, np.tile(query, H), np.tile(key, H))

    return with_layers(model, change)


def none():
    """A causal model that is told no places."""
    return minitx.load("zoo/causal-none")
