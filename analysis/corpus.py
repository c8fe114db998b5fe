"""Texts as a model reads them.

data.py finds the documents of a text. `documents` makes full ones: the lines are read one after another, joined by
line breaks, and cut into documents of T tokens, no padding, special tokens at the ends. `texts` gives the documents
themselves, each as long as it is. Order: special tokens, full documents, real ones, checks of options.
"""

import sys
from itertools import islice

import numpy as np

from .data import lines, records

SENTENCE = "He looked at her for a moment, and then he went out of the room."  # where one is wanted to look at
AS_MANY = 100  # full documents, at most, where their number is not given


def specials(model):
    """The special tokens that the tokenizer puts (before, after) a text."""
    whole, body = model.tokenizer.encode("a"), model.tokenizer.encode("a", special=False)
    before = next(i for i in range(len(whole)) if np.array_equal(whole[i:i + len(body)], body))
    return whole[:before], whole[before + len(body):]


def pieces(model, text, size, column=""):
    """The tokens of a text in pieces [size] without special tokens; the last, shorter one too."""
    left = []
    for line in lines(text, column):
        left.extend(model.tokenizer.encode(line + "\n", special=False).tolist())
        while len(left) >= size:
            yield np.array(left[:size])
            del left[:size]
    yield np.array(left, int)


class Read:
    """What full and real documents share: N of them, the longest of T tokens; read anew from the text at every pass."""

    def __init__(self, model, text, n, T):
        self.model, self.text, self.n, self.T = model, text, n, T
        self.before, self.after = specials(model)
        self.size = T - len(self.before) - len(self.after)  # ordinary tokens of the longest

    def __len__(self):
        return self.n

    def shuffled(self, index, document, seed):
        """Document number `index` with its ordinary tokens in random order [T]: the same words, no text."""
        inner = slice(len(self.before), len(document) - len(self.after))
        mixed = document.copy()
        mixed[inner] = np.random.default_rng((seed, index)).permutation(document[inner])
        return mixed


class Documents(Read):
    """N documents of T tokens [T] each, special tokens included."""

    def __init__(self, model, text, n, T, column=""):
        super().__init__(model, text, n, T)
        self.column = column

    def __iter__(self):
        for piece in islice(pieces(self.model, self.text, self.size, self.column), self.n):
            yield np.concatenate([self.before, piece, self.after])

    def first(self, n=1):
        """The first n of them: [n T]."""
        return np.array([*islice(self, n)])


def documents(model, text="sample", n=0, tokens=0, most=AS_MANY, column=""):
    """Documents of a text; ValueError, before any work, if the model cannot read them or the text is too short.

    n: how many (0: all that the text holds, at most `most`). tokens: length of each (0: the model's longest).
    column: as for data.records.
    """
    least, longest = shortest(model), model.config.n_ctx
    if tokens and not least <= tokens <= longest:
        raise ValueError(f"--tokens {tokens}: this model reads {least} to {longest} tokens, special tokens included")
    if n:
        at_least("documents", n, 1)
    found = Documents(model, text, n, tokens or longest, column)
    lengths = [len(piece) for piece in islice(pieces(model, text, found.size, column), n or most)]
    there = sum(length == found.size for length in lengths)
    if there < max(n, 1):
        raise ValueError(f"{text!r} has {sum(lengths)} tokens, {there} documents of {found.T} tokens each; wanted "
                         f"{n or 'at least 1'}: take fewer --documents, fewer --tokens, or a longer text")
    found.n = there
    return found


class Texts(Read):
    """N real documents [T_i] of a text, special tokens included, at most T tokens long.

    labels: of each, as in data.Record. skipped: how many were left out, by reason. cut: how many were cut.
    """

    def __init__(self, model, text, n, tokens, column, label):
        super().__init__(model, text, n, tokens)
        self.column, self.label, self.cut, self.labels, lengths = column, label, 0, [], [0]
        self.skipped = {"empty": 0, "of one token": 0}
        for found, body in islice(self._bodies(self.skipped), n or None):
            self.labels.append(found.label and sys.intern(found.label))
            self.cut += self.size < len(body) if tokens else 0
            lengths.append(min(len(body), self.size) if tokens else len(body))
        self.n, self.size = len(self.labels), max(lengths)
        self.T = self.size + len(self.before) + len(self.after)

    def _bodies(self, skipped):
        """(record, ordinary tokens) of every document with at least two of them; the others are counted."""
        for found in records(self.text, self.column, self.label):
            body = self.model.tokenizer.encode(found.text, special=False)
            if len(body) < 2:
                skipped["of one token" if len(body) else "empty"] += 1
            else:
                yield found, body

    def __iter__(self):
        for _, body in islice(self._bodies(dict(self.skipped)), self.n):
            yield np.concatenate([self.before, body[:self.size], self.after])


def texts(model, text, documents=0, tokens=0, column="", label=""):
    """The documents of a text as they are; ValueError, before any work, if there are too few.

    documents: how many (0: all). tokens: only the first so many of each, special ones included (0: all of it, which
    may be more than the model reads at once). column, label: as for data.records.
    """
    if documents:
        at_least("documents", documents, 1)
    if tokens:
        at_least("tokens", tokens, shortest(model))
    found = Texts(model, text, documents, tokens, column, label)
    if len(found) < max(documents, 1):
        left = ", ".join(f"{n} {reason}" for reason, n in found.skipped.items() if n)
        raise ValueError(f"{text!r} has {len(found)} documents{f' (left out: {left})' if left else ''}; wanted "
                         f"{documents or 'at least 1'}")
    return found


def shortest(model):
    """Tokens of the shortest document: two ordinary ones and the special ones."""
    return 2 + sum(map(len, specials(model)))


def read(text):
    """The whole of a text, its lines joined by line breaks."""
    return "\n".join(lines(text))


def at_least(name, value, least):
    """ValueError unless an option is `least` or more."""
    if value < least:
        raise ValueError(f"--{name} is {value}; wanted {least} or more")


def several(documents, least=2):
    """ValueError unless an interval can be drawn: of one document it would have no width."""
    if len(documents) < least:
        raise ValueError(f"--documents: {len(documents)} read; an interval over documents needs at least {least}")


def within(name, value, least, most):
    """ValueError unless an option is in least ... most: more would be no figure to look at."""
    if not least <= value <= most:
        raise ValueError(f"--{name} is {value}; wanted {least} to {most}")
