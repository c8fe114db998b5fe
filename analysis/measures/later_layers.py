"""The forward pass from one layer on, and what a change there costs.

A change in layer l leaves the layers before it as they were, so a pass begins with the stream that
layer l gets. A loss is computed for many tokens at once: for a masked model one in EVERY ordinary
tokens is hidden, all in the same pass; for a causal model each token but the first counts.

B batch, T tokens, D width, n tokens that count.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from minitx import final_norm
from minitx.masks import Keys
from minitx.model import block, identity
from minitx.positions import places

from . import losses, position_tables

EVERY = 8  # of this many ordinary tokens one is hidden


def onward(model, x, first, hook=identity):
    """Residual stream [B T D] before layer `first` -> final features [B T D]."""
    numbers = np.arange(x.shape[1])[None]
    keys = Keys(numbers, np.ones_like(numbers, bool))
    place = places(model, numbers, keys, identity)
    for w in model.layers[first:]:
        x = block(x, w, place[w.index], model.config, partial(hook, layer=w.index))
    return final_norm(model, x, hook=hook)


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

    stream: [T D] before that layer. points: {(name, layer): array}.
    """

    def hook(name, x, layer=None):
        return points.get((name, layer), x)

    x = onward(model, stream[None], first, hook)[0]
    return losses.surprisal(model, x[given.places], given.truth).mean()
