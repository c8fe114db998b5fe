"""What the heads of one part of a model look at on one text, and what the model makes of it.

A part is a single stack; of an encoder-decoder its encoder, the decoder's attention to what it has
said, or its cross-attention. T queries, S keys, L layers, H heads, D width, d width of a head.

`options`: further keywords of `minitx.run`, for a run that is changed (edits, mask, positions).
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy

import minitx
from minitx import head_weights

from ..maths import profiles
from ..measures import decoder_texts, outputs
from ..measures.outputs import Outputs
from ..texts import joined

PARTS = "encoder", "decoder", "cross"
HEADS = "q", "k", "v", "scores", "pattern"


class Look(NamedTuple):
    """Attention of all heads of a part, and what it is computed from, in float64."""

    model: minitx.Model  # the stack whose heads these are
    weights: Sequence[Any]  # of each layer: W_Q, W_K
    queries: np.ndarray  # [T] ids
    keys: np.ndarray  # [S] ids
    q: np.ndarray  # [L H T d]
    k: np.ndarray  # [L H S d]
    v: np.ndarray  # [L H S d]
    total: np.ndarray  # [L H T]: log of the sum of exp of a query's scores
    pattern: np.ndarray  # [L H T S]
    X_q: np.ndarray  # [L T D] what queries are computed from
    X_k: np.ndarray  # [L S D]
    sees: np.ndarray  # [T S] bool
    outputs: Outputs | None = None  # None in cross-attention: the decoder has them
    # numbers of the first query and the first key of a second text; None: there is no second
    seconds: tuple = (None, None)
    words: np.ndarray | None = None  # [T] number of each token's word, where words were given

    @property
    def is_cross(self):
        """Whether queries and keys are of different texts."""
        return self.weights[0] is not self.model.layers[0]

    @property
    def has_offsets(self):
        """Whether queries and keys stand in one line, so that there are distances."""
        return not self.is_cross and self.model.config.picture is None


def of_text(model, tokens, lens=True, **options):
    """The Look of a single stack at a text, ids [T] or a Joined.

    lens: whether there are guesses by layer.
    """
    text = joined.of(tokens)
    run = partial(minitx.run, model, text.ids, **text.options | options)
    own = outputs.following(text.ids) if model.config.causal else text.ids
    look = _of_stack(model, run, text.ids, own, lens=lens)
    return look._replace(seconds=(text.second, text.second), words=text.words)


def of_encoder(model, said, **options):
    """The Look of an encoder at the source."""
    run = partial(decoder_texts.traced, model, said, **options)
    look = _of_stack(model.encoder, run, said.source, said.source, "enc_")
    return look._replace(seconds=(_second(said), _second(said)))


def of_decoder(model, said, lens=True, **options):
    """The Look of a decoder at what it has said."""
    run = partial(decoder_texts.traced, model, said, **options)
    return _of_stack(model, run, said.inputs, said.outputs, lens=lens)


def _of_stack(stack, run, ids, own, prefix="", lens=True):
    """The Look of a stack at its own tokens; run(points) gives the trace that has them."""
    stream = prefix + _stream(stack)
    names = [prefix + name for name in HEADS]
    points = dict.fromkeys([*names, stream, *outputs.points(stack, prefix)])  # each once
    trace = run([*points])
    X = _stacked(trace, stream)
    look = _look(stack, stack.layers, (ids, ids), _heads(trace, prefix), (X, X))
    return look._replace(outputs=outputs.of_trace(stack, trace, own, prefix, lens))


def of_cross(model, said, **options):
    """The Look of a decoder at its source."""
    stream, last = "resid_mid", ("enc_resid_post", -1)
    if model.config.pre_norm:
        stream, last = "ln_cross", "enc_ln_final"
    names = [f"cross_{name}" for name in HEADS]
    trace = decoder_texts.traced(model, said, [*names, stream, last], **options)
    source = np.broadcast_to(trace[last], (len(model.layers), *trace[last].shape[1:]))
    crosses = [layer.cross for layer in model.layers]
    X = _stacked(trace, stream), np.asarray(source, np.float64)
    look = _look(model, crosses, (said.inputs, said.source), _heads(trace, "cross_"), X)
    return look._replace(seconds=(None, _second(said)))


def _second(said):
    """Where the second of two texts of a source begins, or None."""
    return joined.Joined(said.source, None, said.sequences).second


def of_parts(model, said, lens=True, **options):
    """{part: Look} of an encoder-decoder."""
    decoder = of_decoder(model, said, lens, **options)
    looks = of_encoder(model, said, **options), decoder, of_cross(model, said, **options)
    return dict(zip(PARTS, looks))


def _stream(model):
    """The point that attention reads."""
    return "ln1" if model.config.pre_norm else "resid_pre"


def _stacked(trace, name):
    """A point of all layers, in float64."""
    return np.asarray(trace.stack(name)[:, 0], np.float64)


def _heads(trace, prefix=""):
    q, k, v, scores, pattern = (_stacked(trace, prefix + name) for name in HEADS)
    k, v = (head_weights.for_each_head(x, q.shape[1], axis=1) for x in (k, v))
    total = scipy.special.logsumexp(scores, axis=-1)
    return q, k, v, total, pattern


def _look(model, weights, ids, heads, streams):
    """A Look, with the keys that a query sees."""
    T, S = heads[-1].shape[-2:]
    is_cross = weights[0] is not model.layers[0]
    visible = profiles.visible(T, model.config.causal) if not is_cross else np.ones((T, S), bool)
    # a mask takes out keys to which no head gives any weight
    sees = visible & (heads[-1] > 0).any(axis=(0, 1))
    return Look(model, weights, *ids, *heads, *streams, sees)
