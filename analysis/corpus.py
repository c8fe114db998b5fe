"""Texts as a model reads them.

A text is a file, a folder of .txt files, '-' (standard input), or 'sample', the held-out book that comes with the
project. Its lines (documents or paragraphs, or the layout of WikiText) are read one after another, joined by line
breaks, and cut into documents of T tokens, so that every one is full: no padding, special tokens at its ends.
Order: the files, their lines, the documents, the same with tokens in random order, checks of options.
"""

import functools
import hashlib
import shutil
import sys
import tempfile
from itertools import islice
from pathlib import Path

import numpy as np

SAMPLE = Path(__file__).with_name("sample.txt")
AS_MANY = 100  # documents, at most, where their number is not given


def files(text):
    """The files behind the option --text, in the order of their names."""
    if text == "-":
        return [Path(_standard_input().name)]
    found = SAMPLE if text == "sample" else Path(text).expanduser()
    inside = sorted(found.rglob("*.txt")) if text and found.is_dir() else [found]
    if not inside or not all(path.is_file() for path in inside):
        what = "no .txt file in the folder" if text and found.is_dir() else "no text file"
        raise FileNotFoundError(f"{what} {str(text)!r}: wanted a file with one document or paragraph a line, a "
                                "folder of such files, '-' for standard input, or 'sample'")
    return inside


@functools.cache
def _standard_input():
    """Standard input as a file, so that it can be read more than once."""
    spool = tempfile.NamedTemporaryFile(prefix="minitx-", suffix=".txt")  # gone when the process ends
    shutil.copyfileobj(sys.stdin.buffer, spool)
    spool.flush()
    return spool


def described(text):
    """What the settings say about a text: its name, the number of its files, sha256 over all of them."""
    paths, digest = files(text), hashlib.sha256()
    for path in paths:
        with open(path, "rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    name = {"-": "standard input", "sample": SAMPLE.name}.get(text, Path(text).name)
    return {"name": name, "files": len(paths), "sha256": digest.hexdigest()}


def lines(text):
    """Every line that is not blank, without the blanks around it; ValueError for what is no UTF-8."""
    for path in files(text):
        with open(path, "rb") as file:
            start = 0
            for number, raw in enumerate(file, 1):
                try:
                    line = raw.decode("utf-8-sig" if number == 1 else "utf-8").strip()
                except UnicodeDecodeError as error:
                    raise ValueError(f"{path.name!r} is no UTF-8 text: line {number}, byte {start + error.start} of "
                                     f"the file ({error.reason})") from None
                start += len(raw)
                if line:
                    yield line


def specials(model):
    """The special tokens that the tokenizer puts (before, after) a text."""
    whole, body = model.tokenizer.encode("a"), model.tokenizer.encode("a", special=False)
    before = next(i for i in range(len(whole)) if np.array_equal(whole[i:i + len(body)], body))
    return whole[:before], whole[before + len(body):]


def pieces(model, text, size):
    """The tokens of a text in pieces [size] without special tokens; the last, shorter one too."""
    left = []
    for line in lines(text):
        left.extend(model.tokenizer.encode(line + "\n", special=False).tolist())
        while len(left) >= size:
            yield np.array(left[:size])
            del left[:size]
    yield np.array(left, int)


class Documents:
    """N documents of T tokens [T] each, special tokens included, cut anew from the text at every pass."""

    def __init__(self, model, text, n, T):
        self.model, self.text, self.n, self.T = model, text, n, T
        self.before, self.after = specials(model)
        self.size = T - len(self.before) - len(self.after)

    def __len__(self):
        return self.n

    def __iter__(self):
        for piece in islice(pieces(self.model, self.text, self.size), self.n):
            yield np.concatenate([self.before, piece, self.after])

    def first(self, n=1):
        """The first n of them: [n T]."""
        return np.array([*islice(self, n)])

    def shuffled(self, index, document, seed):
        """Document number `index` with its ordinary tokens in random order [T]: the same words, no text."""
        inner = slice(len(self.before), self.T - len(self.after))
        mixed = document.copy()
        mixed[inner] = np.random.default_rng((seed, index)).permutation(document[inner])
        return mixed


def documents(model, text="sample", n=0, tokens=0):
    """Documents of a text; ValueError, before any work, if the model cannot read them or the text is too short.

    n: how many (0: all that the text holds, at most AS_MANY). tokens: length of each (0: the model's longest).
    """
    least, most = 2 + sum(map(len, specials(model))), model.config.n_ctx
    if tokens and not least <= tokens <= most:
        raise ValueError(f"--tokens {tokens}: this model reads {least} to {most} tokens, special tokens included")
    if n:
        at_least("documents", n, 1)
    found = Documents(model, text, n, tokens or most)
    lengths = [len(piece) for piece in islice(pieces(model, text, found.size), n or AS_MANY)]
    there = sum(length == found.size for length in lengths)
    if there < max(n, 1):
        raise ValueError(f"{text!r} has {sum(lengths)} tokens, {there} documents of {found.T} tokens each; wanted "
                         f"{n or 'at least 1'}: take fewer --documents, fewer --tokens, or a longer text")
    found.n = there
    return found


def read(text):
    """The whole of a text, its lines joined by line breaks."""
    return "\n".join(lines(text))


def at_least(name, value, least):
    """ValueError unless an option is `least` or more."""
    if value < least:
        raise ValueError(f"--{name} is {value}; wanted {least} or more")


def within(name, value, least, most):
    """ValueError unless an option is in least ... most: more would be no figure to look at."""
    if not least <= value <= most:
        raise ValueError(f"--{name} is {value}; wanted {least} to {most}")
