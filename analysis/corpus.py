"""Texts as a model reads them.

A text file has one paragraph a line; 'sample' is the held-out book that comes with the project. Order: the
text, its documents, the same with tokens in random order, heads by name.
"""

import re
from pathlib import Path

import numpy as np

SAMPLE = Path(__file__).with_name("sample.txt")


def path(text):
    """File behind the option --text."""
    found = SAMPLE if text == "sample" else Path(text).expanduser()
    if not found.is_file():
        raise FileNotFoundError(f"no text file {str(found)!r}: wanted one paragraph a line, or 'sample'")
    return found


def read(text):
    """The paragraphs of a text file, joined by line breaks."""
    try:
        lines = path(text).read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise ValueError(f"{text!r} is no UTF-8 text ({error.reason} at byte {error.start})") from None
    return "\n".join(line.strip() for line in lines if line.strip())


def specials(model):
    """The special tokens that the tokenizer puts (before, after) a text."""
    whole, body = model.tokenizer.encode("a"), model.tokenizer.encode("a", special=False)
    before = next(i for i in range(len(whole)) if np.array_equal(whole[i:i + len(body)], body))
    return whole[:before], whole[before + len(body):]


def documents(model, text, n):
    """Up to n documents, each of the longest input the model reads, special tokens included: [N T]."""
    at_least("documents", n, 1)
    before, after = specials(model)
    body = model.config.n_ctx - len(before) - len(after)
    stream = model.tokenizer.encode(read(text), special=False)
    n = min(n, len(stream) // body)
    if n < 1:
        raise ValueError(f"{text!r} has {len(stream)} tokens; one document of this model takes {body}")
    rows = stream[:n * body].reshape(n, body)
    return np.concatenate([np.tile(before, (n, 1)), rows, np.tile(after, (n, 1))], axis=1)


def shuffled(model, tokens, seed):
    """[N T] with the ordinary tokens of each document in random order: the same words, no text."""
    before, after = specials(model)
    inner = slice(len(before), tokens.shape[1] - len(after))
    mixed = tokens.copy()
    mixed[:, inner] = np.random.default_rng(seed).permuted(tokens[:, inner], axis=1)
    return mixed


def at_least(name, value, least):
    """ValueError unless an option is `least` or more."""
    if value < least:
        raise ValueError(f"--{name} is {value}; wanted {least} or more")


def within(name, value, least, most):
    """ValueError unless an option is in least ... most: more would be no figure to look at."""
    if not least <= value <= most:
        raise ValueError(f"--{name} is {value}; wanted {least} to {most}")


def head_name(layer, head):
    """L0H0, counted from 0."""
    return f"L{layer}H{head}"


def heads(names, config):
    """'L0H0,L2H3' -> [(0, 0), (2, 3)], each checked against the model."""
    found = []
    for name in filter(None, re.split(r"[,\s]+", names)):
        parts = re.fullmatch(r"L(\d+)H(\d+)", name)
        pair = tuple(map(int, parts.groups())) if parts else (config.n_layers, 0)
        if pair[0] >= config.n_layers or pair[1] >= config.n_heads:
            last = head_name(config.n_layers - 1, config.n_heads - 1)
            raise ValueError(f"{name!r} is no head of this model: wanted L0H0 to {last}, joined by commas")
        found.append(pair)
    return found
