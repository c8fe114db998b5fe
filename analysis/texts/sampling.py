"""Which documents of a corpus are read: all, or a sample drawn by their numbers.

Each document's number and the seed are mixed into 64 bits; the N documents with the smallest are
the sample, in the order of the corpus. So it is the same on every machine, a sample of fewer is
part of one of more with the same seed, and nothing of the corpus is held: a first pass counts its
documents, a second reads those that were drawn.
"""

import numpy as np

BLOCK = 1 << 16  # numbers at once
MASK = (1 << 64) - 1
# of splitmix64 (Steele, Lea and Flood 2014), a bijection of 64 bits: no two documents are equal
GOLDEN = 0x9E3779B97F4A7C15
FIRST, SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


class Every:
    """Takes every document. `takes(n)` is asked once for each next n: which of them, from 0."""

    def takes(self, n=1):
        """Which of the next n documents are read."""
        return range(n)


class Count:
    """Takes none, and counts them."""

    def __init__(self):
        self.n = 0

    def takes(self, n=1):
        """Count n more."""
        self.n += n
        return ()


class Drawn:
    """Takes those with these numbers, in rising order."""

    def __init__(self, numbers):
        self.numbers = numbers
        self.first = 0  # number of the next document
        self.done = 0  # how many of the numbers lie before it
        self.next = self._next()

    def takes(self, n=1):
        """Which of the next n documents are read."""
        first = self.first
        self.first += n
        if self.next >= self.first:
            return ()
        end = int(np.searchsorted(self.numbers, self.first))
        taken = (self.numbers[self.done : end] - first).tolist()
        self.done = end
        self.next = self._next()
        return taken

    def _next(self):
        """The next number that is drawn; beyond all where none is left."""
        return int(self.numbers[self.done]) if self.done < len(self.numbers) else MASK


def mixed(numbers, seed):
    """64 bits of each document's number [N] and a seed: [N] of uint64."""
    start = np.uint64(int(_mix(np.array([seed & MASK], np.uint64))[0]))
    return _mix(start + np.asarray(numbers, np.uint64) * np.uint64(GOLDEN))


def _mix(x):
    """The last step of splitmix64."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(FIRST)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(SECOND)
    return x ^ (x >> np.uint64(31))


def draw(total, n, seed):
    """n of the numbers 0 to total - 1, in rising order [n]; every set of n is as likely."""
    kept = np.zeros(0, np.int64)
    keys = np.zeros(0, np.uint64)
    for first in range(0, total, BLOCK):
        block = np.arange(first, min(first + BLOCK, total))
        kept, keys = np.append(kept, block), np.append(keys, mixed(block, seed))
        if len(keys) > n:
            smallest = np.argpartition(keys, n - 1)[:n]
            kept, keys = kept[smallest], keys[smallest]
    return np.sort(kept)
