"""What the heads of one part of a model look at on one text, with the queries and keys behind it.

A part is a single stack; of an encoder-decoder its encoder, the decoder's attention to what it has
said, or its cross-attention. T queries, S keys, L layers, H heads, D width, d width of a head.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import minitx

from ..maths import profiles
from . import spoken

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


def of_text(model, tokens, **options):
    """The Look of a single stack at a text [T]. options: further keywords of `minitx.run`."""
    stream = _stream(model)
    names = "q", "k", "pattern", stream, stream
    trace = minitx.run(model, tokens, keep=[*dict.fromkeys(names)], **options)
    arrays = _exact(*(trace.stack(name)[:, 0] for name in names))
    sees = _seen(profiles.visible(len(tokens), model.config.causal), arrays[2])
    return Look(model, model.layers, tokens, tokens, *arrays, sees)


def _stream(model):
    """The point that attention reads."""
    return "ln1" if model.config.pre_norm else "resid_pre"


def _seen(visible, pattern):
    """Which keys a query sees [T S]: those in its sight to which some head [L H T S] gives weight.

    A mask takes others out.
    """
    return visible & (pattern > 0).any(axis=(0, 1))


def of_decoder(model, said, **options):
    """The Look of a decoder at what it has said."""
    stream = _stream(model)
    names = "q", "k", "pattern", stream, stream
    trace = spoken.traced(model, said, [*dict.fromkeys(names)], **options)
    arrays = _exact(*(trace.stack(name)[:, 0] for name in names))
    sees = _seen(profiles.visible(len(said.inputs), causal=True), arrays[2])
    return Look(model, model.layers, said.inputs, said.inputs, *arrays, sees)


def of_cross(model, said, **options):
    """The Look of a decoder at its source."""
    stream, last = "resid_mid", ("enc_resid_post", -1)
    if model.config.pre_norm:
        stream, last = "ln_cross", "enc_ln_final"
    names = "cross_q", "cross_k", "cross_pattern", stream
    trace = spoken.traced(model, said, [*names, last], **options)
    source = np.broadcast_to(trace[last], (len(model.layers), *trace[last].shape[1:]))
    arrays = _exact(*(trace.stack(name)[:, 0] for name in names), source)
    sees = _seen(np.ones(arrays[2].shape[-2:], bool), arrays[2])
    crosses = [layer.cross for layer in model.layers]
    return Look(model, crosses, said.inputs, said.source, *arrays, sees)


def of_encoder(model, said, **options):
    """The Look of an encoder at the source."""
    names = "q", "k", "pattern", _stream(model.encoder), _stream(model.encoder)
    keep = [f"enc_{name}" for name in names]
    trace = spoken.traced(model, said, [*dict.fromkeys(keep)], **options)
    arrays = _exact(*(trace.stack(name)[:, 0] for name in keep))
    sees = _seen(np.ones(arrays[2].shape[-2:], bool), arrays[2])
    return Look(model.encoder, model.encoder.layers, said.source, said.source, *arrays, sees)


def of_parts(model, said, **options):
    """{part: Look} of an encoder-decoder."""
    looks = [of(model, said, **options) for of in (of_encoder, of_decoder, of_cross)]
    return dict(zip(PARTS, looks))


def _exact(*arrays):
    """The same in float64."""
    return [np.asarray(x, np.float64) for x in arrays]
