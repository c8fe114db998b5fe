"""Texts as a model reads them.

formats.py finds the documents of a text. `documents` makes full ones: the lines are read one after
another, joined by line breaks, and cut into documents of T tokens, no padding, special tokens at
the ends; a text given itself is read as it stands. Of a text that is much longer they are from all
of its parts (spread.py). `texts` gives the documents themselves, each as
long as it is. Token ids from a file take the place of a text in both.
"""

import sys
import warnings
from itertools import islice

import numpy as np

from . import ids
from .formats import Record, is_ids, itself, lines, of, records, shown
from .refusals import NotApplicable
from .spool import Spool
from .spread import Spread

# of words that bundled tokenizers have whole
SENTENCE = "The old man told his wife that he had found the house, and she went with him."
AS_MANY = 100  # full documents, at most, where their number is not given


def specials(model):
    """The special tokens that the tokenizer puts (before, after) a text; none without tokenizer."""
    if not has_tokenizer(model):
        return np.zeros(0, int), np.zeros(0, int)
    whole = model.tokenizer.encode("a")
    body = model.tokenizer.encode("a", special=False)
    starts = range(len(whole))
    start = next(i for i in starts if np.array_equal(whole[i : i + len(body)], body))
    return whole[:start], whole[start + len(body) :]


def has_tokenizer(model):
    """Whether the model's tokenizer is there and one that minitx can use."""
    if model.tokenizer is None:
        return False
    try:
        model.tokenizer.encode("a")
    except (FileNotFoundError, ValueError):
        return False
    return True


def labels(model, tokens):
    """A readable label for each of these tokens; without tokenizer its number."""
    if has_tokenizer(model):
        return model.tokenizer.pieces(tokens)
    return [f"<{token}>" for token in np.ravel(tokens)]


def bodies(model, text):
    """Every document of a text -> (Record, its tokens without special ones)."""
    if not is_ids(text):
        for record in records(text):
            yield record, model.tokenizer.encode(record.text, special=False)
        return
    if of(text).column or of(text).label:
        raise ValueError(
            f"{shown(text)} has no columns: --column and --label cannot be used with --ids"
        )
    before, after = ids.ends(text, model.config)
    for line in ids.lines(text, model.config):
        body = line.tokens[len(before) : len(line.tokens) - len(after)]
        yield Record("", None, line.where), body


def _of_lines(model, text):
    """The tokens of every line of a text, its line break among them, or of every line of ids.

    Of a text given itself all at once, with no line break that it does not have.
    """
    if is_ids(text):
        for _, body in bodies(model, text):
            yield body
        return
    whole = itself(text)
    if whole is not None:
        yield model.tokenizer.encode(whole, special=False)
        return
    for line in lines(text):
        yield model.tokenizer.encode(line + "\n", special=False)


def tokens_of(model, text):
    """All tokens of a text at once, without special ones."""
    if is_ids(text):
        return np.concatenate([body for _, body in bodies(model, text)])
    return model.tokenizer.encode(whole_text(text), special=False)


def pieces(model, text, size):
    """The tokens of a text in pieces [size] without special tokens; the last, shorter one too."""
    pending = []
    for tokens in _of_lines(model, text):
        pending.extend(tokens.tolist())
        while len(pending) >= size:
            yield np.array(pending[:size])
            del pending[:size]
    yield np.array(pending, int)


class DocumentSet:
    """N documents, the longest of T tokens; they are read once, and kept in a temporary file."""

    spool = None

    def __init__(self, model, text, n, T):
        self.model = model
        self.text = text
        self.n = n
        self.T = T
        self.before, self.after = ends(model, text)
        self.size = T - len(self.before) - len(self.after)  # ordinary tokens of the longest

    def __len__(self):
        return self.n

    def __getstate__(self):
        return vars(self) | {"spool": None}  # another process has no such file

    def __iter__(self):
        bodies = self._ordinary() if self.spool is None else self.spool
        for body in bodies:
            yield np.concatenate([self.before, body, self.after])

    def _ordinary(self):
        """The ordinary tokens of each, from the text."""
        raise NotImplementedError

    def ordinary(self, T=None):
        """The slice of ordinary tokens in a document of T tokens, without T in the longest."""
        return slice(len(self.before), (T or self.T) - len(self.after))

    def shuffled(self, index, document, seed):
        """Document number `index` [T] with its ordinary tokens in random order: no text is left."""
        inner = self.ordinary(len(document))
        mixed = document.copy()
        mixed[inner] = np.random.default_rng((seed, index)).permutation(document[inner])
        return mixed


class Documents(DocumentSet):
    """N documents of T tokens [T] each, special tokens included.

    spread: whether they are from all parts of the text, and not its beginning.
    """

    spread = False

    def _ordinary(self):
        if self.spread:
            return Spread(self.model, self.text, self.size).documents(self.n)
        return islice(pieces(self.model, self.text, self.size), self.n)

    def take(self, n):
        """Keep n of them, or all that a shorter text has; the number of tokens that were read."""
        spread = Spread(self.model, self.text, self.size)
        if spread.fits(n):
            self._keep(spread.documents(n))
            self.spread = self.n == n
        if self.spread:
            return self.n * self.size
        bodies = pieces(self.model, self.text, self.size)
        n_tokens = self._keep(islice(bodies, min(n, sys.maxsize)))
        if self.n == n and spread.is_stream and len(next(bodies, ())) == self.size:
            text = f"{shown(self.text)} is read from its beginning, as no place in it can be sought"
            warnings.warn(f"{text}: intervals are of its first {n} documents", stacklevel=3)
        return n_tokens

    def _keep(self, bodies):
        """Keep the full ones of these; the number of the tokens of all."""
        self.spool = Spool(self.model.config.n_vocab)
        self.n = n_tokens = 0
        for body in bodies:
            n_tokens += len(body)
            if len(body) == self.size:
                self.n += 1
                self.spool.add(body)
        return n_tokens

    def first(self, n=1):
        """The first n of them: [n T]."""
        return np.array([*islice(self, n)])


def documents(model, text="sample", n=0, tokens=0, most=AS_MANY, any_length=True):
    """Documents of a text, all of the same length.

    n: how many (0: all that the text holds, at most `most`). tokens: length of each (0: the model's
    longest). any_length: whether --tokens may ask for another.
    Raises ValueError, before any work, if the model cannot read them, NotApplicable if the text is
    too short.
    """
    least, longest = shortest(model, text), model.config.n_ctx
    if tokens and not least <= tokens <= longest:
        raise ValueError(
            f"--tokens {tokens}: this model reads {least} to {longest} tokens, "
            "special tokens included"
        )
    _at_least("documents", n, 1)
    full = Documents(model, text, n, tokens or longest)
    n_tokens = full.take(n or most)
    if full.n < max(n, 1):
        raise NotApplicable(_too_short(full, n or 1, n_tokens, least if any_length else np.inf))
    return full


def _too_short(full, n, n_tokens, least):
    """What is said of a text of fewer than n documents: what it has, is to have, and would do.

    Its tokens are those that a trace of it has: the special ones are among them, once.
    """
    n_special = full.T - full.size
    special = f" ({n_special} of them special)" if n_special else ""
    hints = [f"--documents {full.n}"] if full.n > 1 else []  # some experiments need two
    for fewer in (n, 2):
        tokens = n_tokens // fewer + n_special
        if tokens >= least:
            fit = f"--documents {fewer} " if fewer < n else ""
            hints.append(f"{fit}--tokens {tokens}")
            break
    hints.append(f"a text of {n * full.size + n_special:,} tokens or more")
    return (
        f"{shown(full.text)} has {n_tokens + n_special} tokens{special}, {_counted(full.n)} of "
        f"{full.T} tokens each; wanted {n if n > 1 else 'at least 1'}: {', or '.join(hints)}"
    )


def _counted(n):
    return f"{n} document{'s' * (n != 1)}"


class Texts(DocumentSet):
    """N real documents [T_i] of a text, special tokens included, at most T tokens long.

    labels: of each, as in formats.Record. skipped: how many were left out, by reason. cut: how many
    were cut.
    """

    def __init__(self, model, text, n, tokens):
        super().__init__(model, text, n, tokens)
        self.labels = []
        self.skipped = {"empty": 0, "of one token": 0}
        self.cut = 0
        longest = 0
        unknown = None if is_ids(text) else model.tokenizer.unknown_id
        spool = Spool(model.config.n_vocab)
        for record, body in islice(self._bodies(self.skipped), min(n, sys.maxsize) or None):
            if unknown is not None and unknown in body:
                model.tokenizer.warn_of_unknown(record.text)
            # interned: the labels of many documents are a few strings
            self.labels.append(record.label and sys.intern(record.label))
            length = len(body)
            if tokens and length > self.size:
                self.cut += 1
                length = self.size
            longest = max(longest, length)
            spool.add(body[:length])
        self.spool = spool
        self.n = len(self.labels)
        self.size = longest
        self.T = longest + len(self.before) + len(self.after)

    def _bodies(self, skipped):
        """(record, ordinary tokens) of documents with two tokens or more; others are counted."""
        for record, body in bodies(self.model, self.text):
            if len(body) >= 2:
                yield record, body
            elif len(body) == 1:
                skipped["of one token"] += 1
            else:
                skipped["empty"] += 1

    def _ordinary(self):
        for _, body in islice(self._bodies(dict(self.skipped)), self.n):
            yield body[: self.size]

    def first(self):
        """The first of them [T_0]."""
        return next(iter(self))


def texts(model, text, documents=0, tokens=0):
    """The documents of a text as they are, each as long as it is.

    documents: how many (0: all). tokens: only the first of each, this many with special ones (0:
    all of it, which may be more than the model reads at once). Raises NotApplicable, before any
    work, if there are too few.
    """
    _at_least("documents", documents, 1)
    _at_least("tokens", tokens, shortest(model, text))
    real = Texts(model, text, documents, tokens)
    if len(real) < max(documents, 1):
        counts = ", ".join(f"{n} {reason}" for reason, n in real.skipped.items() if n)
        left_out = f" (left out: {counts})" if counts else ""
        raise NotApplicable(
            f"{shown(text)} has {_counted(len(real))}{left_out}; wanted {documents or 'at least 1'}"
        )
    return real


def shortest(model, text="sample"):
    """Tokens of the shortest document of a text: two ordinary ones and the special ones."""
    return 2 + sum(map(len, ends(model, text)))


def ends(model, text):
    """The special tokens (before, after) a document of this text."""
    return ids.ends(text, model.config) if is_ids(text) else specials(model)


def whole_text(text):
    """The whole of a text, its lines joined by line breaks; one given itself as it stands."""
    whole = itself(text)
    return "\n".join(lines(text)) if whole is None else whole


def _at_least(name, value, least):
    """Raise ValueError unless an option is 0, which stands for all, or `least` or more."""
    if value and value < least:
        raise ValueError(f"--{name} is {value}; wanted {least} or more")
