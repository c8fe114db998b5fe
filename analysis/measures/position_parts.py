"""What each attention layer reads of a document, with its positions as a part that can be changed.

Layer 0 reads positions exactly: rows of the position table, which are added to the words and go
through the norms with their own statistics. In deeper layers the position part is the mean at a
position over the *other* documents; it is changed, and all else stays as it was. Special tokens at
the ends keep their positions, since their places always hold the same word.

T tokens, n ordinary ones, D width, L layers, H heads, N documents.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from minitx import head_weights
from minitx.kernels import matmul_heads, softmax_

from ..running import passes
from . import inputs


class Pass(NamedTuple):
    """Embeddings, streams and inputs of one forward pass."""

    words: np.ndarray  # [T D] words and token types, before positions are added
    rows: np.ndarray  # [T D] of the position table
    streams: np.ndarray  # [L T D] residual stream before each layer
    inputs: np.ndarray  # [L T D] what each attention layer reads


def of_document(model, document):
    """The Pass of one document [T]."""
    return passes.value(of_document_read(model, document))


def of_document_read(model, document):
    """The Reading of `of_document`."""
    points = {"embed": [], "type_embed": [], "pos_embed": [], "resid_pre": [], "ln1": []}

    def watch(name, x, layer=None):
        if name in points:
            points[name].append(x[0])

    def value(_):
        streams = np.array(points["resid_pre"])
        layer_inputs = np.array(points["ln1"]) if model.config.pre_norm else streams
        words = sum(points["embed"] + points["type_embed"])
        return Pass(words, points["pos_embed"][0], streams, layer_inputs)

    return passes.Reading(model, document, watch, value)


def total(model, documents, run, what):
    """Sum over the documents of what every attention layer reads: [L T D] in float64.

    what: words for the progress; an experiment that asks twice needs two.
    """

    def measure(_, document):
        return {"inputs": (yield of_document_read(model, document)).inputs}

    return run.gather(measure, documents, f"mean input of each position, {what}")["inputs"]


class Reading(NamedTuple):
    """What one attention layer reads of one document, as it is and with other positions."""

    layer: int
    x: np.ndarray  # [T D]
    positions: np.ndarray  # [n D] the position part at the ordinary places
    put: Callable  # positions [n D] -> x [T D] with them


def readings(model, passed, others, places, layers=None):
    """A Reading for each of these layers, or for all.

    passed: the document's Pass. others: [L T D] mean over the other documents. places: slice of the
    ordinary ones.
    """
    if layers is None:
        layers = range(model.config.n_layers)
    for layer in layers:
        x = passed.inputs[layer]
        if layer == 0:
            yield Reading(0, x, passed.rows[places], _put_rows(model, passed, places))
        else:
            positions = others[layer, places].astype(x.dtype)
            yield Reading(layer, x, positions, _put_part(x, positions, places))


def _put_rows(model, passed, places):
    """positions [n D] -> what layer 0 reads with them, through its norms."""

    def put(positions):
        rows = passed.rows.copy()
        rows[places] = positions
        return inputs.normed(model, passed.words + rows)

    return put


def _put_part(x, before, places):
    """positions [n D] -> x [T D] with them in place of the previous ones."""

    def put(positions):
        changed = x.copy()
        changed[places] += positions - before
        return changed

    return put


def alone(model, layers, T):
    """Readings of T positions without words, for each of these layers.

    They are what a layer reads if the layers before it write nothing. A checkpoint without words
    can show no more than this.
    """
    rows = inputs.reachable(model)[:T]
    for layer in layers:
        x = inputs.of_positions(model, layer, T)  # raises NotApplicable if its norm is missing
        yield Reading(layer, x, rows, partial(inputs.of_rows, model, layer=layer))


def queries(model, layer, x):
    """Queries of a layer that reads x [T D]: [1 H T d]."""
    return head_weights.projected(x[None], model.layers[layer], model.config, "Q")


def keys(model, layer, x):
    """Keys of a layer that reads x [T D]: [1 G T d]."""
    return head_weights.projected(x[None], model.layers[layer], model.config, "K")


def pattern(model, layer, q, k):
    """Attention of a layer with these queries and keys [1 H T d]: [H T T]."""
    scores = matmul_heads(q * model.config.attn_scale(layer), k.swapaxes(-1, -2))
    if model.config.causal:
        is_seen = np.tri(scores.shape[-1], dtype=bool)
        scores += np.where(is_seen, 0.0, -np.inf).astype(scores.dtype)
    return softmax_(scores)[0]
