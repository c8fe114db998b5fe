"""Random jobs on the bundled models: what is called, with what, and what it gives.

A job is its seed and number, so another process can draw the same one. Called again, in any thread
or process, it gives the same bytes.
"""

import hashlib
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

import minitx

NAMES = "tiny-roberta", "tiny-gpt2", "tiny-bart"
WORDS = "the dog ran and cat sat on a long road but nobody saw what she had left there".split()


class Job(NamedTuple):
    """One call, and how the log names it."""

    name: str
    call: Callable


def load():
    return {name: minitx.load(name) for name in NAMES}


def draw(models, seed, number):
    """A job by its seed and number; the kinds take turns."""
    rng = np.random.default_rng([seed, number])
    kind = KINDS[number % len(KINDS)]
    return Job(f"{number} ({kind.__name__})", kind(models, rng))


def arrays(result):
    if isinstance(result, Mapping):
        return [result[name] for name in result]
    return result if isinstance(result, list) else [result]


def digest(result):
    sha256 = hashlib.sha256()
    for x in arrays(result):
        sha256.update(f"{x.dtype.str} {x.shape}".encode())
        sha256.update(x.tobytes())
    return sha256.hexdigest()


def distance(result, expected):
    """The largest difference of two results, for the message; inf if their shapes differ."""
    pairs = [*zip(arrays(result), arrays(expected))]
    if any(x.shape != y.shape for x, y in pairs):
        return np.inf
    return max(np.abs(x.astype(float) - y).max(initial=0) for x, y in pairs)


# --- kinds: (models, rng) -> a function without arguments


def recorded(models, rng):
    """`run` with some points kept, one edited, and a mask."""
    model = models["tiny-roberta"]
    said = texts(rng, 3)
    names = ["q", "k", "pattern", "resid_post", "pre", "logits", ("scores", 2), ("z", -1)]
    keep = [names[i] for i in rng.permutation(len(names))[:3]]
    edits = [{}, {"pos_embed": np.zeros_like}, {("scores", 1): halved, "z": without_head}]
    masks = [None, near, None]
    edit, mask = edits[rng.integers(3)], masks[rng.integers(3)]
    return lambda: minitx.run(model, said, keep, edit, mask=mask)


def all_points(models, rng):
    model = models["tiny-roberta"]
    said = texts(rng, 1)
    return lambda: minitx.run(model, said)


def long_pass(models, rng):
    """`forward` of two long padded texts: enough rows that products are done in chunks."""
    model = models["tiny-roberta"]
    T = int(rng.integers(200, 250))
    tokens = rng.integers(3, model.config.n_vocab, (2, T))
    valid = np.arange(T) < [[T], [T - 20]]
    return lambda: minitx.logits(model, minitx.forward(model, tokens, valid=valid), valid=valid)


def encoded(models, rng):
    model = models["tiny-roberta"]
    said = texts(rng, 4)

    def call():
        batch = model.encode(said, pad="left")
        return [batch.tokens, batch.valid, batch.types]

    return call


def said(models, rng):
    """`generate`: the likeliest tokens, drawn ones, or beams."""
    model = models["tiny-gpt2"]
    prompts = texts(rng, 2)
    ways = [{}, {"temperature": 1.0, "seed": 7, "top_p": 0.9}, {"num_beams": 3}]
    way = ways[rng.integers(3)]
    return lambda: minitx.generate(model, prompts, 8, **way)


def translated(models, rng):
    model = models["tiny-bart"]
    sources = texts(rng, 2, longest=7)  # it reads 64 tokens, many of one letter
    beams = int(rng.integers(1, 4))
    return lambda: minitx.generate(model, n=8, source=sources, num_beams=beams)


def both_stacks(models, rng):
    """`run` of an encoder-decoder, with masks on all three attentions."""
    model = models["tiny-bart"]
    source, target = texts(rng, 2, longest=7)
    keep = ["enc_pattern", "cross_pattern", "logits"]
    masks = {"enc_mask": near, "cross_mask": lambda q, k: k < 9}
    return lambda: minitx.run(model, target, keep, source=source, **masks)


def swept(models, rng):
    """`sweep`: one run for each layer and token."""
    model = models["tiny-gpt2"]
    text, source = rng.integers(0, model.config.n_vocab, (2, 4))
    return lambda: minitx.sweep(model, text, source, lambda y: y[0, -1].max())


KINDS = recorded, all_points, long_pass, encoded, said, translated, both_stacks, swept


def texts(rng, n, longest=14):
    return [" ".join(rng.choice(WORDS, rng.integers(3, longest + 1))) for _ in range(n)]


def near(q, k):
    return abs(q - k) <= 4


def halved(x):
    return x / 2


def without_head(z):
    z[:, 0] = 0
    return z


def streamed(model, tokens, cache, n):
    """A generator of logits [B V]: tokens [B T], then the likeliest one after another."""
    for _ in range(n):
        y = minitx.logits(model, minitx.forward(model, tokens, cache=cache)[:, -1:])[:, 0]
        tokens = y.argmax(axis=-1)[:, None]
        yield y
