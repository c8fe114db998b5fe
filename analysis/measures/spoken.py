"""What an encoder-decoder says of a source, token by token, and what it looks at for each.

A step reads one token and says the next: the query of a step is that of the token *before* the one
that is said. L layers, H heads, T steps, S tokens of the source.
"""

from typing import NamedTuple

import numpy as np

import minitx

from ..texts import corpus

LONGEST = 64  # tokens that a model says of a source, at most


class Spoken(NamedTuple):
    """A source and what is said of it."""

    source: np.ndarray  # [S] ids
    inputs: np.ndarray  # [T] ids that the decoder reads, the start token first
    outputs: np.ndarray  # [T] the id that it says behind each


def greedy(model, source):
    """What the model says of a source [S] or text, its likeliest token at each step."""
    tokens = _ids(model.encoder, source)
    n = min(LONGEST, model.config.n_ctx)
    row = minitx.generate(model, n=n, source=tokens)
    return Spoken(tokens, row[:-1], row[1:])


def forced(model, source, target):
    """A given target, text or ids, that the decoder reads whatever it would say by itself."""
    outputs = _ids(model, target)
    inputs = np.array([model.config.start_id, *outputs[:-1]])
    return Spoken(_ids(model.encoder, source), inputs, outputs)


def _ids(model, given):
    """Ids [T] of a text, or ids as they are; raises ValueError for more than the model reads."""
    tokens = model.tokenizer.encode(given) if isinstance(given, str) else np.asarray(given)
    n = model.config.n_ctx
    if len(tokens) > n:
        raise ValueError(f"{given!r} has {len(tokens)} tokens; this model reads at most {n}")
    return tokens


def traced(model, said, keep, edits=None, **options):
    """The Trace of a Spoken. options: further keywords of `minitx.run`."""
    return minitx.run(model, said.inputs, keep, edits, source=said.source, **options)


def ordinary(model, tokens):
    """Which of a text's tokens are its own, not put there by the tokenizer: [S] bool."""
    before, after = corpus.specials(model)
    is_own = np.ones(len(tokens), bool)
    if len(before) and np.array_equal(tokens[: len(before)], before):
        is_own[: len(before)] = False
    if len(after) and np.array_equal(tokens[len(tokens) - len(after) :], after):
        is_own[len(tokens) - len(after) :] = False
    return is_own


def steps(model, said):
    """A label for each step: the token that is read, an arrow, the token that is said."""
    inputs, outputs = (corpus.labels(model, tokens) for tokens in said[1:])
    return [f"{a}→{b}" for a, b in zip(inputs, outputs)]


def shares_pieces(model):
    """Whether source and target are written with the same pieces."""
    own, of_source = model.weights.W_E, model.encoder.weights.W_E
    return own.shape == of_source.shape and np.array_equal(own, of_source)
