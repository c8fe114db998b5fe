"""Documents at random places, one in each N-th of a text (Cochran 1977), found by seeking.

So an interval over N documents is one of the whole text; pieces in a row resemble each other. What
lies between is not read. A place is a byte of all files of a text, one after another. A document
begins at the token that is as far into its line as the place is.
"""

from bisect import bisect_right
from collections import deque
from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np

from . import formats, storage

BLOCK = 1 << 16  # bytes in which the beginning of a line is looked for
TIMES = 2  # so many times the bytes of N documents a text has at least; else they are in a row


def _in_a_row(text):
    """Whether a text comes with the project, is drawn as a sample, or is given itself."""
    named = formats.of(text)
    known = named.name in storage.NAMED or named.n
    return known or formats.is_literal(text) or formats.itself(text) is not None


def _can_be_sought(path):
    """Whether every line of a file can be read by itself."""
    return isinstance(path, Path) and path.suffix.lower() not in storage.WHOLE


class Spread:
    """A text in which documents of `size` ordinary tokens [size] are sought.

    is_stream: whether it can only be read from its beginning, as a packed file.
    """

    def __init__(self, model, text, size):
        self.encode = model.tokenizer.encode
        self.text = text
        self.size = size
        paths = [] if _in_a_row(text) else formats.files(text)
        sought = not formats.is_ids(text) and all(map(_can_be_sought, paths))
        self.is_stream = not sought
        self.paths = paths if sought else []
        self.edges = [*accumulate((path.stat().st_size for path in self.paths), initial=0)]

    def fits(self, n):
        """Whether the text is so much longer than n documents that they are spread over it."""
        total = self.edges[-1]
        body, behind = self.document(total // 2)
        return len(body) == self.size and TIMES * n * (behind - total // 2) <= total

    def documents(self, n, seed=0):
        """n of them, one from each n-th of the text; none overlaps another."""
        draws = np.random.default_rng(seed).random(n)
        free = 0
        for i, (first, end) in enumerate(pairwise(self.edges[-1] * i // n for i in range(n + 1))):
            place = max(free, first + int(draws[i] * (end - first)))
            body, behind = self.document(place)
            while len(body) < self.size and place > max(free, first):  # beyond the end of the text
                place = (place + max(free, first)) // 2
                body, behind = self.document(place)
            free = behind
            yield body

    def document(self, place):
        """The tokens [size] from a place on, fewer at the end of the text; the place behind them.

        As bytes of a line are no whole tokens, the place is rounded up.
        """
        wanted, tokens = self.size, []
        for first, end, body in self._lines(place):
            done = -(-len(body) * max(0, place - first) // (end - first))
            taken = body[done : done + wanted]
            wanted -= len(taken)
            tokens.extend(taken)
            if not wanted:
                return np.array(tokens), first + (done + len(taken)) * (end - first) // len(body)
        return np.array(tokens, int), self.edges[-1]

    def _lines(self, place):
        """(place, place behind, tokens) of the line at a place and of every one after it."""
        k = bisect_right(self.edges, place) - 1
        for path, edge in zip(self.paths[k:], self.edges[k:]):
            start = _line_start(path, max(0, place - edge))
            for line in _decoded(path, start):
                behind = start + len(line.encode())
                texts = formats.of_line(path, self.text, line, f"{path.name}, byte {start}")
                bodies = [self.encode(x + "\n", special=False) for x in texts]
                yield (
                    edge + start,
                    edge + behind,
                    [token for body in bodies for token in body.tolist()],
                )
                start = behind


def _decoded(path, start):
    """Lines from the byte on at which one begins."""
    try:
        for _, line in storage.decoded(path, start):
            yield line
    except ValueError:
        deque(storage.decoded(path), 0)  # its error has the number of the line
        raise


def _line_start(path, place):
    """The byte at which the line with this byte begins."""
    with path.open("rb") as file:
        while place:
            block = max(0, place - BLOCK)
            file.seek(block)
            before = file.read(place - block).rfind(b"\n")
            if before >= 0:
                return block + before + 1
            place = block
    return 0
