"""Models of pictures for tests: one in which heads look at a neighbour, others with random weights.

Planted: a table of three waves down and three across a grid of 8 × 8 patches; head 0 looks one
patch up, head 1 one to the left; what the pictures show plays a small part.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import tiny

from minitx import weights
from minitx.images import Preprocessor
from minitx.learning.start import start

WAVES = 1, 2, 3
SIDE = 8
CONFIG = {
    "model_type": "vit",
    "hidden_size": 24,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 4,
    "image_size": 32,
    "patch_size": 4,
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-12,
}


def waves(move):
    """Cosines and sines of each place [64 12], of the place so far down and across."""
    y, x = np.indices((SIDE, SIDE)).reshape(2, -1)
    places = y + move[0], x + move[1]
    angles = [2 * np.pi * f * n / SIDE for n in places for f in WAVES]
    return np.stack([part(a) for a in angles for part in (np.cos, np.sin)], axis=1)


@cache
def model():
    empty = start(CONFIG, 0, "float64").model
    table = np.zeros((65, 24))
    table[1:, :12], table[1:, 12:] = waves((0, 0)), -waves((0, 0))
    W_Q, W_K = np.zeros((24, 24)), np.zeros((24, 24))
    for head, move in enumerate([(1, 0), (0, 1)]):
        columns = slice(12 * head, 12 * head + 12)
        W_Q[:12, columns] = 2 * np.eye(12)
        W_K[:12, columns] = np.linalg.lstsq(waves((0, 0)), waves(move), rcond=None)[0]
    rng = np.random.default_rng(0)
    W_E = 0.01 * rng.standard_normal(empty.weights.W_E.shape)
    own = tiny.with_weights(empty, {0: {"W_Q": W_Q, "W_K": W_K}}, W_pos=table, W_E=W_E)
    return _reading(own)


def untrained(seed):
    """A model of two layers with random weights, its queries and keys as large as trained ones."""
    config = CONFIG | {"num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 32}
    random = start(config, seed, "float64").model
    large = {layer: {} for layer in range(2)}
    for layer, own in large.items():
        for name in ("W_Q", "W_K"):
            own[name] = 10 * getattr(random.layers[layer], name)
    return _reading(tiny.with_weights(random, large))


def _reading(own):
    """The model with tiny-vit's preprocessing."""
    return replace(own, preprocessor=Preprocessor(weights.find("tiny-vit")))
