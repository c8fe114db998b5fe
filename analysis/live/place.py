"""Where changes are made: one stack of a model, reading one text.

T tokens, n of them the text's own.
"""

from typing import NamedTuple

import numpy as np

import minitx

from ..measures import decoder_texts, position_edits
from ..texts import joined

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
    sequences: np.ndarray | None = None  # [T] of two texts, as a Joined has them
    types: np.ndarray | None = None  # [T] token types of two texts

    @property
    def options(self):
        """The further keyword of `minitx.run`."""
        return {} if self.types is None else {"types": self.types}

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
        if self.sequences is not None:
            return np.flatnonzero(self.sequences >= 0)
        return np.flatnonzero(decoder_texts.ordinary(self.stack, self.tokens))

    def run(self, keep, edits):
        """A Trace of the whole model."""
        if self.source is None:
            return minitx.run(self.model, self.tokens, keep, edits, **self.options)
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
    """The Place of a stack; tokens [T]: of an encoder-decoder what its decoder reads.

    What is read of two texts is a Joined.
    """
    stack = stack_of(model, name)
    reads = joined.of(source if name == "encoder" else tokens)
    said = None if source is None else tokens
    ids = None if source is None else joined.of(source).ids
    more = reads.sequences, reads.types
    return Place(name, model, stack, np.asarray(reads.ids), said, ids, *more)
