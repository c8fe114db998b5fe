"""What the heads of one part of a model look at on one text, with the queries and keys behind it.

A part is a single stack; of an encoder-decoder its encoder, the decoder's attention to what it has
said, or its cross-attention. T queries, S keys, L layers, H heads, D width, d width of a head.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import minitx

from ..maths import profiles
from . import inputs, spoken

PARTS = "encoder", "decoder", "cross"


class Look(NamedTuple):
    """Attention of all heads of a part, and what it is computed from, in float64."""

    model: minitx.Model  # the stack whose heads these are
    weights: Sequence[Any]  # of each layer: W_Q, W_K
    queries: np.ndarray  # [T] ids
    keys: np.ndarray  # [S] ids
    q: np.ndarray  # [L H T d]
    k: np.ndarray  # [L H S d]
    pattern: np.ndarray  # [L H T S]
    X_q: np.ndarray  # [L T D] what queries are computed from
    X_k: np.ndarray  # [L S D]
    sees: np.ndarray  # [T S] bool

    @property
    def is_cross(self):
        """Whether queries and keys are of different texts."""
        return self.weights[0] is not self.model.layers[0]


def of_text(model, tokens):
    """The Look of a single stack at a text [T]."""
    names = "q", "k", "pattern"
    trace = minitx.run(model, tokens, keep=names)
    X = inputs.of_text(model, tokens)
    sees = profiles.visible(len(tokens), model.config.causal)
    arrays = _exact(*(trace.stack(name)[:, 0] for name in names), X, X)
    return Look(model, model.layers, tokens, tokens, *arrays, sees)


def of_decoder(model, said):
    """The Look of a decoder at what it has said."""
    stream = "ln1" if model.config.pre_norm else "resid_pre"
    names = "q", "k", "pattern", stream, stream
    trace = spoken.traced(model, said, [*dict.fromkeys(names)])
    arrays = _exact(*(trace.stack(name)[:, 0] for name in names))
    sees = profiles.visible(len(said.inputs), causal=True)
    return Look(model, model.layers, said.inputs, said.inputs, *arrays, sees)


def of_cross(model, said):
    """The Look of a decoder at its source."""
    stream, last = "resid_mid", ("enc_resid_post", -1)
    if model.config.pre_norm:
        stream, last = "ln_cross", "enc_ln_final"
    names = "cross_q", "cross_k", "cross_pattern", stream
    trace = spoken.traced(model, said, [*names, last])
    source = np.broadcast_to(trace[last], (len(model.layers), *trace[last].shape[1:]))
    arrays = _exact(*(trace.stack(name)[:, 0] for name in names), source)
    sees = np.ones(arrays[2].shape[-2:], bool)
    crosses = [layer.cross for layer in model.layers]
    return Look(model, crosses, said.inputs, said.source, *arrays, sees)


def of_parts(model, said):
    """{part: Look} of an encoder-decoder."""
    looks = of_text(model.encoder, said.source), of_decoder(model, said), of_cross(model, said)
    return dict(zip(PARTS, looks))


def _exact(*arrays):
    """The same in float64."""
    return [np.asarray(x, np.float64) for x in arrays]
