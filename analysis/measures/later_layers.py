"""The forward pass from one layer on, and what a change there costs.

A change in layer l leaves the layers before it as they were, so a pass begins with the stream that
layer l gets. Losses are those of many tokens at once: of a masked model one ordinary token in so
many is hidden, all of them together; a causal model pays for each token but the first.

B batch, T tokens, D width, n tokens paid for.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from minitx import final_norm
from minitx.model import block, identity

from . import losses, position_tables, positions_read

EVERY = 8  # ordinary tokens, one of which is hidden


def onward(model, x, first, hook=identity):
    """Residual stream [B T D] before layer `first` -> final features [B T D]."""
    attn_bias = None
    if model.config.causal:
        attn_bias = positions_read.no_future(x.shape[1], x.dtype)
    for w in model.layers[first:]:
        x = block(x, w, attn_bias, model.config, partial(hook, layer=w.index))
    return final_norm(model, x, hook=hook)


def replacing(points):
    """The hook that puts arrays {(name, layer): array} in the place of what a pass gives."""

    def hook(name, x, layer=None):
        return points.get((name, layer), x)

    return hook


class Task(NamedTuple):
    """What a language model is asked to predict in one document."""

    tokens: np.ndarray  # [T] as the model reads them
    places: np.ndarray  # [n] of the features that predict
    truth: np.ndarray  # [n] the tokens that are predicted


def task(model, document, places, start=0):
    """The Task of a document [T]: the next token everywhere, or one in EVERY hidden.

    places: slice of the ordinary tokens; start: the first of them that is hidden. None if the model
    is no language model.
    """
    head = model.config.task_head
    if head not in position_tables.PREDICTS:
        return None
    if head == "causal":
        return Task(document, np.arange(len(document) - 1), document[1:])
    hidden = np.arange(len(document))[places][start % EVERY :: EVERY]
    tokens = document.copy()
    tokens[hidden] = losses.mask_token(model.tokenizer)
    return Task(tokens, hidden, document[hidden])


def loss(model, given, stream, first, points):
    """Mean loss of a Task, in nats, with these points replaced from layer `first` on.

    stream: [T D] before that layer.
    """
    x = onward(model, stream[None], first, replacing(points))[0]
    return losses.surprisal(model, x[given.places], given.truth).mean()
