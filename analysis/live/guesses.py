"""What a model says at the places that a page shows, as it is, changed and by chance.

A causal model says what comes next, a masked model what is hidden, an encoder-decoder each token of
its target. n places, V vocabulary, k likeliest tokens.
"""

import numpy as np

import minitx
from minitx.kernels import softmax_
from minitx.sampling import Sampling

from ..measures.outputs import GUESSES, likeliest
from ..pages.writers import visible

SHOWN = 8  # likeliest tokens of a place
PLAIN = Sampling(temperature=1.0)
HEADS = "causal", "masked"  # that say tokens


def places(model, tokens, hidden):
    """Numbers of the tokens at which something is said: [n]."""
    if model.config.task_head not in HEADS:
        return []
    if model.encoder is not None:
        return list(range(len(tokens.ids)))
    if model.config.task_head == "causal":
        return [len(tokens.ids) - 1]
    return sorted(set(hidden))


def logits(model, tokens, request, edits):
    """Logits at the places of a request, with these edits: [n V]."""
    rows = places(model, tokens, request.hidden)
    if not rows:
        return np.zeros((0, model.config.n_vocab), np.float32)
    last = ("resid_post", -1)
    trace = minitx.run(model, tokens.ids, [last], edits, **tokens.options)
    x = minitx.final_norm(model, trace[last][:, rows])
    return minitx.logits(model, x)[0]


def probabilities(y, sampling):
    """Of logits [n V], in float64, as a Sampling of `minitx.generate` draws from them: [n V].

    softmax(y / temperature), 0 for what top_k and top_p leave out; at temperature 0 all on the
    largest.
    """
    y = np.asarray(y, np.float64)
    if sampling.temperature > 0 and sampling.top_k is None and sampling.top_p is None:
        return softmax_((y - y.max(axis=-1, keepdims=True)) / sampling.temperature)
    ids, kept = sampling.probabilities(y)
    p = np.zeros_like(y)
    np.put_along_axis(p, ids, kept, axis=-1)
    return p


def beside(model, tokens, request, outputs):
    """For each place the likeliest tokens of every run, and what stood or was said there.

    outputs: logits [n V] of each run. Returns {"kind", "places": [...]}. Of several runs "in_all"
    has, as the model gives it, what a list of their differences needs.
    """
    rows = places(model, tokens, request.hidden)
    by_run = [probabilities(y, request.sampling) for y in outputs]
    shown = [_place(model, n, i, by_run, tokens) for i, n in enumerate(rows)]
    if len(outputs) > 1:
        plain = by_run if request.sampling == PLAIN else [probabilities(y, PLAIN) for y in outputs]
        for i, place in enumerate(shown):
            place["in_all"] = _in_all(model, [p[i] for p in plain])
    kind = "said" if model.encoder is not None else model.config.task_head
    return {"kind": kind, "places": shown}


def _place(model, n, i, by_run, tokens):
    """What is said at place n, row i of the probabilities."""
    place = {"place": int(n), "best": [_likeliest(model, p[i]) for p in by_run]}
    if model.encoder is not None:
        said = int(tokens.said.outputs[i])
        place["asks"], place["said"] = model.tokenizer.pieces([tokens.ids[i], said])
        place["of_said"] = [float(p[i, said]) for p in by_run]
    return place


def _likeliest(model, p):
    """The most probable tokens [V] -> [[id, piece, probability]]; of those that are possible."""
    best = np.argsort(-p, kind="stable")[:SHOWN]
    best = best[p[best] > 0]
    pieces = model.tokenizer.pieces(best)
    return [[int(t), piece, float(p[t])] for t, piece in zip(best, pieces)]


def _in_all(model, by_run):
    """What is among the first guesses of a run, with its probability in all: [[piece, [p ...]]]."""
    ids = np.unique([likeliest(p[None], GUESSES).ids for p in by_run])
    shown = visible(model.tokenizer.pieces(ids))
    return [[piece, [float(p[t]) for p in by_run]] for t, piece in zip(ids, shown)]


def continues(model):
    """Whether a model goes on with a text."""
    return model.encoder is None and model.config.task_head == "causal"


def check_continues(model):
    """Raise ValueError for a model that does not go on with a text."""
    if not continues(model):
        what = (
            "an encoder-decoder" if model.encoder else f"a model with head {model.config.task_head}"
        )
        raise ValueError(
            f"only a causal model without an encoder predicts a next token; this is {what}"
        )


def draw(y, sampling, seed):
    """The next token of a causal model from its logits [1 V]; the same seed draws the same."""
    p = probabilities(y, sampling)[0]
    return int(np.random.default_rng(seed).choice(len(p), p=p / p.sum()))
