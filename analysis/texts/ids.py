"""Token ids from a file, for any model: also one whose tokenizer is missing, or refused.

One document per line: whole numbers between blanks or commas, in brackets or not. They are what the
model reads, and nothing is added to them. The first or the last token counts as special if it is
the same in all lines, of which there must be at least two.
"""

import functools
import re
from itertools import islice
from typing import NamedTuple

import numpy as np

from . import formats, sampling, storage

NUMBER = re.compile("[0-9]{1,18}")


class Line(NamedTuple):
    """One document as it stands in its file."""

    tokens: np.ndarray  # [T]
    where: str  # file and line


def lines(text, config):
    """Every document of a file of ids -> Line; blank lines are passed over.

    text: a Text of ids. Raises ValueError that names file and line for what is no whole
    number, is not in the vocabulary, or is padding.
    """
    choice, n = formats.sample_of(text, lambda: _count(storage.stamp(text), text))
    for words, where in islice(_each(text, choice), n):
        yield Line(np.array([_id(word, config, where) for word in words]), where)


def _each(text, choice):
    """(the words of a line, file and line) of every document that is taken."""
    for path in storage.files(text):
        for number, line in storage.decoded(path):
            words = re.sub(r"[\[\],]", " ", line).split()
            if words and choice.takes():
                yield words, f"{path.name}, line {number}"


@functools.lru_cache(64)
def _count(stamp, text):
    counter = sampling.Count()
    for _ in _each(text, counter):
        pass
    return counter.n


def _id(word, config, where):
    """A word as the id of a token."""
    if not NUMBER.fullmatch(word):
        raise ValueError(
            f"{where}: {word[:20]!r} is not a token id; wanted whole numbers, one document per line"
        )
    token = int(word)
    if token >= config.n_vocab:
        raise ValueError(
            f"{where}: {token} is not in this model's vocabulary; wanted 0 to {config.n_vocab - 1}"
        )
    if token == config.no_position_id:
        raise ValueError(
            f"{where}: {token} is padding; leave it out; documents may have any length"
        )
    return token


def ends(text, config):
    """The special tokens before and after every document of a file: two arrays, [0] or [1]."""
    first, last = set(), set()
    n = 0
    for line in lines(text, config):
        n += 1
        first.add(int(line.tokens[0]))
        last.add(int(line.tokens[-1]) if len(line.tokens) > 1 else None)
    return _common(first, n), _common(last, n)


def _common(tokens, n):
    """The token that all of n lines have, as an array; an empty one if they have none."""
    is_common = n > 1 and len(tokens) == 1 and None not in tokens
    return np.array([*tokens] if is_common else [], int)
