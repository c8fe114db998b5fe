"""What a model makes of a text: guesses at every token, guesses by layer, lengths in the stream.

A guess is of the next token in a causal model or a decoder, of the token itself in a masked one. By
layer it is the logit lens (nostalgebraist 2020): what the model would say if the layers behind did
nothing. T tokens, L layers, D width, V vocabulary, G guesses.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy

import minitx
from minitx.heads import is_pooled, of_classes, read_in
from minitx.loading import labels

from ..texts import corpus

GUESSES, LENS = 5, 2  # guesses of the last layer, and of each layer
CLASSIFIERS = "sequence", "next_sentence", "image", "taught"  # of a whole text, or a picture
WRITERS = "attn_out", "cross_out", "mlp_out"
ROWS = "embed", "pos_embed"  # of the words' table, and of the positions'


class Guesses(NamedTuple):
    """The likeliest tokens [... T G], and how likely they are."""

    ids: np.ndarray
    probabilities: np.ndarray


class Outputs(NamedTuple):
    """What a stack makes of a text; None for what its task head does not give."""

    stream: np.ndarray  # [L+1 T] length of the stream, before the first layer and after each
    writes: dict[str, np.ndarray]  # of WRITERS: [L T] length of what is added to the stream
    rows: dict[str, np.ndarray]  # of ROWS: [T] length of what a token is looked up as
    guesses: Guesses | None = None  # [T G]
    lens: Guesses | None = None  # [L+1 T G]
    own: np.ndarray | None = None  # [T] what the text has where the model guesses; -1: nothing
    actual: np.ndarray | None = None  # [T] probability of the text's own token; nan: there is none
    classes: np.ndarray | None = None  # [C] probabilities of a classifier


def points(model, prefix=""):
    """The points that `of_trace` reads."""
    writers = [name for name in WRITERS if name != "cross_out" or model.encoder is not None]
    last = ["ln_final"] if model.config.pre_norm else []
    names = "resid_pre", "resid_post", *writers, *_rows(model), *last
    return [prefix + name for name in names]


def _rows(model):
    """Those of ROWS that a model has."""
    return ROWS if model.weights.W_pos is not None else ROWS[:1]


def of_trace(model, trace, tokens, prefix="", lens=True):
    """Outputs from a trace of `points`; a head for the class of each token guesses classes.

    tokens: ids [T] of what the text has where the model guesses, -1 for none. lens: whether there
    are guesses by layer.
    """
    once = [*_rows(model), "ln_final"]
    names = [name for name in points(model, prefix) if name.removeprefix(prefix) not in once]
    kept = {name: trace.stack(name)[:, 0] for name in names}
    stream = np.concatenate([kept[f"{prefix}resid_pre"][:1], kept[f"{prefix}resid_post"]])
    writes = {name: _length(kept[prefix + name]) for name in WRITERS if prefix + name in kept}
    rows = {name: _length(trace[prefix + name][0]) for name in _rows(model)}
    outputs = Outputs(_length(stream), writes, rows)
    last = trace[f"{prefix}ln_final"][0] if model.config.pre_norm else stream[-1]
    if model.config.task_head is None or prefix:
        return outputs
    if model.config.task_head in CLASSIFIERS:
        classes = minitx.logits(model, last[None], valid=read_in(trace, model))[0]
        classes = classes.astype(np.float64)
        return outputs._replace(classes=scipy.special.softmax(classes))
    if is_pooled(model.config.task_head):  # a fit, or a vector that is compared with others
        return outputs
    p = probabilities(model, last)
    if of_classes(model.config.task_head):
        tokens = np.full(len(p), -1)
    outputs = outputs._replace(guesses=likeliest(p, GUESSES), own=tokens)
    outputs = outputs._replace(actual=of_tokens(p, tokens))
    return outputs._replace(lens=by_layer(model, stream[:-1], p)) if lens else outputs


def _length(x):
    """Length of vectors: [... D] -> [...], in float64."""
    return np.linalg.norm(np.asarray(x, np.float64), axis=-1)


def probabilities(model, x):
    """Of every token of the vocabulary: the stream as the task head reads it [T D] -> [T V].

    Of a head for classes [T C]: one of them at each token; the start and the end of an answer are
    each at one of the tokens, and each token is replaced or not.
    """
    y = minitx.logits(model, x[None])[0].astype(np.float64)
    if model.config.task_head == "replaced":
        return scipy.special.expit(y)
    return scipy.special.softmax(y, axis=0 if model.config.task_head == "question" else -1)


def likeliest(p, n):
    """The n likeliest tokens, the likeliest first: [T V] -> Guesses [T G]."""
    n = min(n, p.shape[-1])
    ids = np.argpartition(-p, n - 1, axis=-1)[:, :n]
    order = np.argsort(-np.take_along_axis(p, ids, -1), axis=-1, kind="stable")
    ids = np.take_along_axis(ids, order, -1)
    return Guesses(ids, np.take_along_axis(p, ids, -1))


def of_tokens(p, tokens):
    """Probability of these tokens, nan for -1: [T V], [T] -> [T]."""
    own = np.take_along_axis(p, np.maximum(tokens, 0)[:, None], -1)[:, 0]
    return np.where(tokens < 0, np.nan, own)


def by_layer(model, stream, p):
    """Guesses from the stream [L T D] before each layer, and those of the last layer, p [T V]."""
    layers = []
    for x in stream:
        normed = minitx.final_norm(model, x[None])[0]
        layers.append(likeliest(probabilities(model, normed), LENS))
    layers.append(likeliest(p, LENS))
    return Guesses(*(np.stack(part) for part in zip(*layers)))


def following(tokens: np.ndarray) -> Any:
    """The token behind each, -1 behind the last: [T] -> [T]."""
    return np.append(tokens[1:], -1)


def predicted(model, ids):
    """A readable label for each of these predicted tokens, or the name of each class."""
    if of_classes(model.config.task_head):
        return labels.predicted(model, ids)
    return corpus.labels(model, np.asarray(ids))
