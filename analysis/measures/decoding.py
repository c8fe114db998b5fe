"""Greedy decoding, step by step: whose row asks, where it looks in the source, what it says.

The query of a step is that of the token before it, the last one that the decoder has read: it asks
what comes next. The naive reading, in which the token said looks at its own like in the source,
is counted beside it.

n steps, S tokens of the source, k best tokens of a step.
"""

from typing import NamedTuple

import numpy as np
import scipy

import minitx

from ..texts import corpus

BEST = 3  # tokens of each step that are kept with their logits


class Steps(NamedTuple):
    """What `steps` gives: a row for each step."""

    source: np.ndarray  # [S] ids
    source_pieces: np.ndarray  # [S] str
    asking: np.ndarray  # [n] ids: the previous token, whose query it is
    asking_pieces: np.ndarray  # [n] str
    said: np.ndarray  # [n] ids
    said_pieces: np.ndarray  # [n] str
    said_probabilities: np.ndarray  # [n]
    attention: np.ndarray  # [n S]: where the query looks in the source
    best: np.ndarray  # [n k] ids, the likeliest first
    best_pieces: np.ndarray  # [n k] str
    logits: np.ndarray  # [n k]
    probabilities: np.ndarray  # [n k]


def steps(model, source, n=20, *, layer=-1, head=None, ignore_settings=False):
    """Greedy decoding of a source, at most n tokens, as Steps.

    source: a text or ids [S]. layer, head: of cross-attention, counted from 0, -1 for the last;
    None is the mean over a layer's heads. Logits and probabilities are the model's own: a token
    that the folder's settings force, or keep from coming, is said, or not, whatever they are.
    ignore_settings: as for minitx.generate.
    Raises ValueError for a model that is no encoder-decoder with a language model's head.

    To say the 9 of 1912, the query of the 1 before it looks at that 9:

    >>> import minitx
    >>> from minitx.analysis.measures import decoding
    >>> model = minitx.load("tiny-bart")
    >>> decoded = decoding.steps(model, "3 May 1912")
    >>> decoded.asking_pieces[2], decoded.said_pieces[2]
    (np.str_('1'), np.str_('9'))
    >>> decoded.attention.shape, decoded.source_pieces[decoded.attention[2].argmax()]
    ((12, 12), np.str_('9'))
    """
    check(model, layer, head)
    if isinstance(source, str):
        source = model.encoder.tokenizer.encode(source)
    ids = minitx.generate(model, n=n, source=source, ignore_settings=ignore_settings)
    if len(ids) < 2:
        raise ValueError(f"n is {n}; wanted at least one step")
    asking, said = ids[:-1], ids[1:]
    point = "cross_pattern", layer
    trace = minitx.run(model, asking, [point, "logits"], source=source)
    pattern = trace[point][0]  # [H n S]
    attention = pattern.mean(axis=0) if head is None else pattern[head]
    given = np.asarray(source), pieces(model.encoder, source)
    tokens = asking, pieces(model, asking), said, pieces(model, said)
    y = trace["logits"][0].astype(np.float64)  # [n V]
    p = scipy.special.softmax(y, axis=-1)
    p_said = p[np.arange(len(said)), said]
    return Steps(*given, *tokens, p_said, attention, **_likeliest(model, y, p))


def _likeliest(model, y, p):  # [n V] twice
    """The best tokens of each step, with their logits and probabilities, as fields of Steps."""
    best = np.argsort(-y, axis=-1, kind="stable")[:, :BEST]
    fields = {"best": best, "best_pieces": pieces(model, best)}
    fields["logits"] = np.take_along_axis(y, best, axis=-1)
    fields["probabilities"] = np.take_along_axis(p, best, axis=-1)
    return fields


def check(model, layer=-1, head=None):
    """Raises ValueError for a model without cross-attention, or a layer or head that it lacks."""
    cfg = model.config
    if model.encoder is None:
        text = f"decoding reads a source, and {cfg.model_type} has no cross-attention"
        if cfg.causal:
            raise ValueError(f"{text}; minitx.generate(model, prompt) continues a text")
        raise ValueError(f"{text}; wanted an encoder-decoder (BART, Marian, T5)")
    if cfg.task_head != "causal":
        text = "wanted the head of a language model"
        raise ValueError(f"this {cfg.model_type} has head {cfg.task_head!r}; {text}")
    for name, number, size in ("layer", layer, cfg.n_layers), ("head", head, cfg.n_heads):
        if number is not None and not -size <= number < size:
            raise ValueError(f"{name} is {number}; wanted 0 to {size - 1}, or -1 for the last")


def pieces(model, ids):
    """A readable label for each of these ids, in their shape."""
    return np.array(corpus.labels(model, ids)).reshape(np.shape(ids))


class Naive(NamedTuple):
    """How often the strongest source piece of a step is its own like, and by chance."""

    n: int  # steps whose piece is in the source at all
    share: float | None  # of these, steps whose strongest source piece is this piece; None: n is 0
    null: float | None  # the same for a piece of the source drawn at random


def naive(decoded):
    """The two readings of a step: {"said", "asking"} -> Naive.

    If "pen looks at pen", the strongest piece of the source is the token that is said; if the
    previous token's query looked for its like, it would be the asking one. Pieces are compared
    without the blanks around them.
    """
    source = np.char.strip(decoded.source_pieces)
    strongest = source[decoded.attention.argmax(axis=1)]  # [n]
    readings = {}
    for name in "said", "asking":
        own = np.char.strip(getattr(decoded, f"{name}_pieces"))
        same = own[:, None] == source  # [n S]
        is_there = same.any(axis=1)
        readings[name] = Naive(0, None, None)
        if is_there.any():
            share = (strongest == own)[is_there].mean()
            null = same.mean(axis=1)[is_there].mean()
            readings[name] = Naive(int(is_there.sum()), float(share), float(null))
    return readings
