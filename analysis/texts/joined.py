"""Two texts that a model reads together, as a premise and a hypothesis: ids, types, and the border.

A given text is a str, or a tuple of two of them; a Words is one that is cut into words. T tokens.
"""

from typing import NamedTuple

import numpy as np


class Words(str):
    """A text that is cut into words already: what stands between its blanks, each encoded alone.

    >>> print(repr(Words("New York")))
    ['New', 'York']
    """

    def __repr__(self):
        return repr(self.split())


class Joined(NamedTuple):
    """A text, or a pair of texts, as a model reads it."""

    ids: np.ndarray  # [T]
    types: np.ndarray | None = None  # [T] token types; None: those of a single text
    sequences: np.ndarray | None = None  # [T] 0, 1, special: -1; None: a single text
    words: np.ndarray | None = None  # [T] number of each token's word; None: they are not given

    @property
    def second(self):
        """The number of the second text's first token; None of a single text."""
        return None if self.sequences is None else int(np.argmax(self.sequences == 1))

    @property
    def options(self):
        """The further keyword of `minitx.run`."""
        return {} if self.types is None else {"types": self.types}

    def cut(self, n):
        """Its first n tokens."""
        return Joined(*(None if x is None else x[:n] for x in self))


def check(text):
    """Raise ValueError for what is neither a text nor a pair of texts."""
    is_pair = isinstance(text, tuple) and len(text) == 2  # a list is two texts, as of `run`
    if not isinstance(text, str) and not (is_pair and all(isinstance(x, str) for x in text)):
        raise ValueError(
            f"the text is {text!r:.80}; wanted a str, or a tuple of two: the page shows one text, "
            "or a pair that the model reads together"
        )


def of(tokens):
    """Ids [T], or a Joined, as a Joined."""
    return tokens if isinstance(tokens, Joined) else Joined(tokens)


def encoding(model, text):
    """A text, or a pair, as a Joined."""
    return of(encode(model, text))


def encode(model, text):
    """The ids [T] of a text, or of a pair the Joined; raises ValueError for a text of no tokens."""
    if isinstance(parts(text)[0], Words):
        return _of_words(model, parts(text))
    if isinstance(text, str):
        model.tokenizer.warn_of_unknown(text)
        return model.tokenizer.encode(text)
    batch = model.encode([text])
    types = None if batch.types is None else batch.types[0]
    sequences = model.tokenizer.sequences(*text)
    for number, part in enumerate(text):
        if number not in sequences:
            raise ValueError(f"text {number} of the pair, {part!r:.80}, has no tokens")
    return Joined(batch.tokens[0], types, sequences)


def _of_words(model, texts):
    """One or two Words as a Joined; a special token is a word of its own."""
    lists, tokenizer = [text.split() for text in texts], model.tokenizer
    given = lists[0] if len(lists) == 1 else tuple(lists)
    tokens, _, types = model.encode([given], is_split_into_words=True)
    numbers = [tokenizer.word_numbers(words) for words in lists]
    is_pair = len(lists) == 2
    sequences = tokenizer.sequences(*lists) if is_pair else np.minimum(numbers[0], 0)
    begins = np.ones(len(sequences), bool)
    for i, of_text in enumerate(numbers):
        begins[sequences == i] = np.diff(of_text[of_text >= 0], prepend=-1) != 0
    types = types[0] if is_pair and types is not None else None
    return Joined(tokens[0], types, sequences if is_pair else None, begins.cumsum() - 1)


def pieces_of(model, text):
    """How many tokens a text, or a pair, has, and how many without special ones."""
    given = [part.split() if isinstance(part, Words) else part for part in parts(text)]
    return [len(model.tokenizer.encode(*given, special=special)) for special in (True, False)]


def shown(text):
    """A text, or both of a pair, in one line."""
    return text if isinstance(text, str) else " / ".join(text)


def parts(text):
    """The texts of a given text: one or two."""
    return (text,) if isinstance(text, str) else text


def typed_separator(model, text):
    """The separator of a pair that stands inside one text, where a pair has other token types.

    "" where there is none.
    """
    if not isinstance(text, str) or model.config.n_types < 2:
        return ""
    encode = model.tokenizer.encode
    separators = {*encode("a")} - {*encode("a", special=False)}
    typed = [token for token in encode(text, special=False) if token in separators]
    return model.tokenizer.pieces(typed)[0] if typed else ""
