"""The sentences of a text as a model reads them, and what is known of each of their tokens."""

import re
from itertools import islice, pairwise
from typing import Any, NamedTuple

import numpy as np

from ..texts import corpus, formats, joined, words
from .records import Points

USUAL = 200  # sentences
LONGEST = 64  # tokens of a sentence unless asked otherwise
SHORTEST = 4  # ordinary tokens: fewer are a heading more often than a sentence
DRAWN = 10_000  # tokens: sentences are drawn until one more would exceed it
ENDS = re.compile(r"(?<=[.!?])(?<!\bMr\.)(?<!\bMrs\.)(?<!\bMs\.)(?<!\bDr\.)(?<!\bSt\.)\s+")
TYPES = ["special", "word start", "continuation", "number", "punctuation"]
SPECIAL, START, CONTINUATION, NUMBER, PUNCTUATION = range(len(TYPES))
TITLE = 60  # characters
# what is drawn, by what a document is
ALL = {
    "sentence": "All {n} sentences are drawn.",
    "pair": "All {n} pairs of sentences are drawn.",
    "picture": "All {n} pictures are drawn; points are their patches.",
}
REST = "scales, planes, flags of attention and nearness are of all."
SOME = {
    "sentence": f"Of {{n}} sentences {{drawn}} are drawn, by seed {{seed}}; {REST}",
    "pair": f"Of {{n}} pairs of sentences {{drawn}} are drawn, by seed {{seed}}; {REST}",
    "picture": f"Of {{n}} pictures {{drawn}} are drawn, by seed {{seed}}; {REST}",
}


class Texts(NamedTuple):
    """The sentences of an atlas, as one of the stacks of a model reads them."""

    reader: Any
    documents: list  # of ids [T], or of a Joined for each pair
    noun: str = "sentence"
    source: str = "text"
    token: str = "tokens"

    def shown(self, numbers):
        """The tokens of the sentences with these numbers, and their titles."""
        documents = [joined.of(x).ids for x in self.documents]
        drawn = [documents[i] for i in numbers]
        table = Words(self.reader, documents).table(drawn, Named({}, []))
        return tokens_of(table), titles(self.reader, drawn)


def texts(model, text, n, tokens=0):
    """The Texts of a model: an encoder-decoder's are those of its encoder.

    text: its column of labels, if one is named, has the second text of each pair.
    """
    reader = model if model.encoder is None else model.encoder
    if not formats.of(text).label:
        return Texts(reader, sentences(reader, text, n, tokens))
    documents = pairs(reader, text, n, tokens)
    if reader is not model:  # whose decoder is given a source's ids
        documents = [x.ids for x in documents]
    return Texts(reader, documents, "pair")


def pairs(model, text, n, tokens=0):
    """The first n pairs of a table's rows, as `sentences` gives sentences: a list of Joined."""
    longest = tokens or min(LONGEST, model.config.n_ctx)
    rows = islice(formats.records(text), USUAL if n is None else n or None)
    kept = [_pair(model, row).cut(longest) for row in rows]
    if len(kept) < (n or 1):
        wanted = f"wanted {n or 'at least 1'}"
        raise ValueError(f"{formats.shown(text)} has {len(kept)} pairs; {wanted}")
    return kept


def sentences(model, text, n, tokens=0):
    """The first n sentences of a text, special tokens included: a list of [T].

    n: 0 for all, None for USUAL or as many as there are. tokens: of each, longer ones are cut (0:
    64, or the model's longest). Raises ValueError for a text that has fewer, or for more tokens
    than the model reads.
    """
    longest = model.config.n_ctx
    if tokens > longest:
        raise ValueError(f"--tokens {tokens}: this model reads at most {longest}")
    least = corpus.shortest(model, text)
    if tokens and tokens < least:
        raise ValueError(f"--tokens is {tokens}; wanted {least} or more")
    cut = (tokens or min(LONGEST, longest)) - least + 2
    before, after = corpus.ends(model, text)
    own = islice(bodies(model, text), USUAL if n is None else n or None)
    kept = [np.concatenate([before, x[:cut], after]) for x in own]
    if len(kept) < max(n or 0, 1):
        raise ValueError(
            f"{formats.shown(text)} has {len(kept)} sentences of {SHORTEST} tokens or more; "
            f"wanted {n or 'at least 1'}"
        )
    return kept


def _pair(model, row):
    """A Record whose label is a second text, as a Joined; errors say where it stands."""
    try:
        return joined.encode(model, (row.text, row.label))
    except ValueError as error:
        raise ValueError(f"{row.where}: {error}") from None


def bodies(model, text):
    """The tokens of every sentence, without special ones; of ids, every document is one."""
    if formats.is_ids(text):
        yield from (body for _, body in corpus.bodies(model, text) if len(body) >= SHORTEST)
        return
    for record in formats.records(text):
        for line in record.text.splitlines():
            for sentence in ENDS.split(line.strip()):
                body = model.tokenizer.encode(sentence, special=False)
                if len(body) >= SHORTEST:
                    yield body


def drawn(documents, seed, most):
    """Numbers of the documents that are drawn, in their order: all, or as many as `most` tokens.

    >>> drawn([np.zeros(6)] * 3, seed=0, most=18)
    [0, 1, 2]
    >>> len(drawn([np.zeros(6)] * 3, seed=0, most=12))
    2
    """
    order = np.random.default_rng(seed).permutation(len(documents))
    totals = np.cumsum([len(documents[i]) for i in order])
    n = max(1, np.searchsorted(totals, most, side="right"))
    return sorted(order[:n].tolist())


class Named(NamedTuple):
    """Words and their classes, as a user's file has them."""

    by_word: dict[str, int]
    classes: list[str]


def classes_of(path):
    """The word classes of a file with a word, a tab and its class in each line.

    Raises ValueError that names the line without both.
    """
    if not path:
        return Named({}, [])
    by_word: dict[str, str] = {}
    for _, number, line in _lines_of(path):
        word, tab, name = line.partition("\t")
        if not (tab and word.strip() and name.strip()):
            raise ValueError(
                f"--word-classes {path}, line {number}: {line!r}; wanted a word, a tab, its class"
            )
        by_word[word.strip().lower()] = name.strip()
    names = sorted({*by_word.values()})
    return Named({word: names.index(name) for word, name in by_word.items()}, names)


def _lines_of(path):
    """(file, number, text) of the lines of a file that are not blank."""
    for file in formats.files(path):
        for number, line in formats.decoded(file):
            if line.strip():
                yield file, number, line.rstrip("\n")


class Words:
    """The vocabulary of some documents, and how often each of its tokens is there."""

    def __init__(self, model, documents):
        self.model = model
        self.ids, counts = np.unique(np.concatenate(documents), return_counts=True)
        self.share = counts / counts.sum()
        self.pieces = [str(x) for x in corpus.labels(model, self.ids)]

    def table(self, documents, classes):
        """The Points of documents: their tokens one after another."""
        token = np.searchsorted(self.ids, np.concatenate(documents))
        lengths = [len(x) for x in documents]
        of_class = [classes.by_word.get(_word(piece), -1) for piece in self.pieces]
        fields = {"sentence": np.repeat(np.arange(len(documents)), lengths)}
        fields |= {"position": np.concatenate([np.arange(n) for n in lengths]), "token": token}
        fields |= {"type": np.concatenate([self.types(x) for x in documents])}
        fields |= {"length": np.repeat(lengths, lengths), "frequency": self.share[token]}
        fields |= {"word_class": np.array(of_class)[token], "vocabulary": self.pieces}
        return Points(**fields, types=TYPES, word_classes=classes.classes)

    def types(self, document):
        """The type of each token of a document: [T] -> [T]."""
        pieces = [self.pieces[i] for i in np.searchsorted(self.ids, document)]
        if not corpus.has_tokenizer(self.model):
            return np.full(len(document), START)
        decode = self.model.tokenizer.decode
        word = words.numbers(document, decode)
        goes_on = np.diff(word, prepend=-1) == 0
        is_special = [not decode([token]) for token in document.tolist()]
        kinds = [*map(_kind, pieces, is_special, goes_on.tolist())]
        return np.array(kinds)


def _kind(piece, is_special, goes_on):
    text = _word(piece)
    if is_special:
        return SPECIAL
    if text and not any(x.isalnum() for x in text):
        return PUNCTUATION
    if text and all(x.isdigit() for x in text):
        return NUMBER
    return CONTINUATION if goes_on else START


def _word(piece):
    """A piece without what marks where words begin or go on."""
    return piece.strip().removeprefix("##").strip("▁").lower()


def tokens_of(table):
    """The tokens of each sentence of a table."""
    pieces = [table.vocabulary[i] for i in table.token.tolist()]
    ends = np.flatnonzero(np.diff(table.sentence)) + 1
    edges = [0, *ends.tolist(), len(pieces)]
    return [pieces[a:b] for a, b in pairwise(edges)]


def titles(model, documents):
    """The beginning of each sentence."""
    if not corpus.has_tokenizer(model):
        return [" ".join(map(str, x[:8].tolist())) for x in documents]
    texts = [" ".join(model.tokenizer.decode(x).split()) for x in documents]
    return [text if len(text) <= TITLE else f"{text[:TITLE]}…" for text in texts]
