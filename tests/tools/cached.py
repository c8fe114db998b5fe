"""Passes over a cache: every way to cut a text into pieces, padding, a pass that is broken off."""

from itertools import combinations, pairwise

import numpy as np

import minitx

# which of 6 tokens are text: all of them; padded on the left, in the middle, on the right
PADDED = np.array(
    [[1, 1, 1, 1, 1, 1], [0, 0, 1, 1, 1, 1], [1, 1, 0, 1, 0, 1], [1, 1, 1, 1, 0, 0]], bool
)


def cuts(*edges):
    """The pieces between these places, as slices."""
    return [slice(a, b) for a, b in pairwise(edges)]


def splits(T):
    """Every way to cut T tokens into pieces."""
    for r in range(T):
        for places in combinations(range(1, T), r):
            yield cuts(0, *places, T)


def in_pieces(model, pieces, tokens, own=lambda piece: {}, **first):
    """Last hidden states of a batch that goes through a cache piece by piece.

    own: what each piece brings; first: what the first brings alone.
    """
    cache, outputs = minitx.Cache(), []
    for piece in pieces:
        given = own(piece) | first
        outputs.append(minitx.forward(model, tokens[:, piece], cache=cache, **given))
        assert len(cache) == piece.stop
        if "valid" in given:
            assert (cache.valid[:, piece] == given["valid"]).all()
        first = {}
    return np.concatenate(outputs, axis=1)


class Failing:
    """A hook that raises an error at its n-th call."""

    def __init__(self, n, error=KeyboardInterrupt):
        self.left, self.error = n, error

    def __call__(self, name, x, layer=None):
        """The intermediate as it is, until the error is due."""
        self.left -= 1
        if self.left < 0:
            raise self.error
        return x
