"""Where changes are made: one stack of a model, reading one text.

T tokens, n of them the text's own.
"""

from typing import NamedTuple

import numpy as np

import minitx

from ..measures import decoder_texts, position_edits

STACKS = "", "encoder", "decoder", "cross"
PREFIX = {"": "", "encoder": "enc_", "decoder": "", "cross": "cross_"}


class Place(NamedTuple):
    """One stack of a model, reading one text."""

    name: str  # of the stack, one of STACKS
    model: minitx.Model  # the whole of it
    stack: minitx.Model  # whose positions, layers and heads these are
    tokens: np.ndarray  # [T] that this stack reads
    said: np.ndarray | None  # [T] what the decoder reads; None in a single stack
    source: np.ndarray | None  # [S]; None in a single stack

    @property
    def T(self):
        """Tokens that the stack reads."""
        return len(self.tokens)

    def point(self, name):
        """The name of a point in this stack."""
        return PREFIX[self.name] + name

    @property
    def positions(self):
        """The points at which positions enter: rows of a table, angles, a term of the scores."""
        return [self.point(name) for name in position_edits.points(self.stack.config)]

    @property
    def is_by_distance(self):
        """Whether only a term of the scores says where tokens are."""
        return self.positions in ([self.point("pos_bias")], [self.point("pos_row")])

    def own(self):
        """Places of the text's own tokens, without special ones, or of patches: [n]."""
        if self.stack.config.picture is not None:
            return np.arange(self.stack.config.picture.specials, self.T)
        return np.flatnonzero(decoder_texts.ordinary(self.stack, self.tokens))

    def run(self, keep, edits):
        """A Trace of the whole model."""
        if self.source is None:
            return minitx.run(self.model, self.tokens, keep, edits)
        return minitx.run(self.model, self.said, keep, edits, source=self.source)

    def check_positions(self):
        """Raise ValueError if the stack has no positions to change."""
        if not self.positions:
            raise ValueError(f"this {self.stack.config.model_type} has no positions to change")


def stack_of(model, name):
    """The stack of that name; ValueError for one that this model does not have."""
    wanted = STACKS[1:] if model.encoder is not None else STACKS[:1]
    if name not in wanted:
        names = ", ".join(map(repr, wanted))
        raise ValueError(f"stack is {name!r}; this {model.config.model_type} has {names}")
    return model.encoder if name == "encoder" else model


def place(name, model, tokens, source=None):
    """The Place of a stack; tokens [T]: of an encoder-decoder what its decoder reads."""
    stack = stack_of(model, name)
    reads = source if name == "encoder" else tokens
    said = None if source is None else tokens
    return Place(name, model, stack, np.asarray(reads), said, source)
