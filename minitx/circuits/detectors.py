"""What kind of head each head is: scores on random tokens that are repeated once.

A head that finds the token after the present one's first occurrence looks for repetition, since
nothing else can tell it where to look (Olsson et al. 2022). L layers, H heads.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, get_args

import numpy as np

from .. import head_weights
from ..arrays import Layer, Model
from ..inputs import check_model
from ..machine.mapped import require_arrays
from ..sampling import generator
from ..trace import run
from .repeated import PLACED, RandomTexts
from .scores import Scores

Kind = Literal["previous", "next", "first", "itself", "duplicate", "induction", "copying"]
N_TEXTS = 16
READ_BY_HEADS = "W_Q", "W_K", "W_V"
WORDS = 1 << 13  # of the vocabulary, that are in float64 at a time
EARLY, LATE = 0.1, 0.9  # of the repeated half: where the in-context score compares losses


def detect_heads(
    model: Model,
    kinds: Kind | Sequence[Kind] = ("previous", "duplicate", "induction"),
    seed: int = 0,
    *,
    n_texts: int = N_TEXTS,
    n_tokens: int | None = None,
) -> dict[str, Scores]:
    """{kind: [L H]}: how strongly each head behaves like each kind of head, with its `.null`.

    Texts are n_tokens random tokens (by default 24, or as many as fit), repeated once, with the
    special tokens of the tokenizer around them; n_texts of them are drawn with `seed`. Scores are
    the mean attention, from 0 to 1, from each repeated token to its first occurrence (duplicate),
    or to the token after that (induction); from every token to the previous one (previous), the
    next one (next; not in a causal model), the first of the text (first), or itself (itself).
    copying: the sum of the eigenvalues of W_E W_V W_O W_U over that of their absolute values, from
    -1 to 1; near 1, what the head reads raises its own logit; norms are left out, and it needs a
    head over the vocabulary. Encoders see both sides, so that the first half can look ahead: only
    queries of the second half count. In an encoder-decoder the heads are those of the decoder's
    self-attention, the target is repeated, and the source is random.

    Nulls [L H]: for duplicate and induction the same heads on texts whose second half has other
    tokens; for the other kinds the same model with the entries of W_Q, W_K and W_V shuffled within
    each matrix. Raises ValueError for an unknown kind, or a model that reads too few tokens.
    Source: Olsson et al. 2022; copying: Elhage et al. 2021.

    >>> import minitx
    >>> from minitx import circuits
    >>> scores = circuits.detect_heads(minitx.load("tiny-gpt2"))
    >>> scores["previous"].shape, scores["induction"].null.shape
    ((4, 4), (4, 4))
    """
    names = [kinds] if isinstance(kinds, str) else list(kinds)
    for kind in names:
        if kind not in get_args(Kind):
            raise ValueError(f"unknown kind {kind!r}; available: {', '.join(get_args(Kind))}")
    check_model(model)
    require_arrays(model, "detect_heads")
    rng = generator(seed)
    texts = RandomTexts(model, n_texts, n_tokens, rng)
    values = texts.attention(model, repeated=True)
    nulls = texts.attention(model, repeated=False)
    shuffled = _shuffled(model, rng)
    if {*names} & {*PLACED}:
        by_shuffled = texts.attention(shuffled, repeated=True)
        nulls |= {kind: by_shuffled[kind] for kind in PLACED}
    if "copying" in names:
        values["copying"] = copying(model)
        nulls["copying"] = copying(shuffled)
    results: dict[str, Scores] = {}
    for kind in names:
        results[kind] = Scores.beside(values[kind], nulls[kind])
    return results


def copying(model: Model) -> np.ndarray:  # [L H]
    """Sum of the eigenvalues of W_E W_V W_O W_U over that of their absolute values.

    Those that are not 0 are the eigenvalues of the [d d] matrix W_O W_U W_E W_V. NaN where it is 0.
    """
    W_E, W_U = model.weights.W_E, model.weights.W_U
    if W_U is None or W_U.shape[1] != len(W_E):
        raise ValueError("copying needs a head over the vocabulary of the embedding W_E")
    if model.weights.W_map is not None:
        text = f"W_E is [V {W_E.shape[1]}] and the stream {model.config.d_model} wide"
        raise ValueError(f"copying needs words as wide as the stream; here {text}")
    middle = np.zeros((len(W_U), len(W_U)))  # W_U W_E, a part of the vocabulary at a time
    for first in range(0, len(W_E), WORDS):
        words = slice(first, first + WORDS)
        middle += W_U[:, words].astype(np.float64) @ W_E[words].astype(np.float64)
    rows = [_copying_of_layer(w, middle, model.config) for w in model.layers]
    return np.array(rows)


def _copying_of_layer(w, middle, cfg):  # [D D] -> [H]
    W_O = head_weights.outputs(w.W_O, cfg.n_heads)
    W_V = head_weights.matrices(w, cfg, "V")  # [H D d]
    eigenvalues = np.linalg.eigvals(W_O @ middle @ W_V)
    size = abs(eigenvalues).sum(axis=-1)
    size[size == 0] = np.nan
    return eigenvalues.sum(axis=-1).real / size


def _shuffled(model, rng):
    """The model with the entries of each layer's W_Q, W_K and W_V in random order."""
    layers = []
    for w in model.layers:
        arrays = dict(vars(w))
        for name in READ_BY_HEADS:
            entries = rng.permutation(arrays[name].ravel())
            arrays[name] = entries.reshape(arrays[name].shape)
        layers.append(Layer(**arrays))
    return replace(model, layers=tuple(layers))


def in_context_score(model: Model, seed: int = 0) -> Scores:
    """Loss of a late repeated token minus that of an early one, in nats: a number with its `.null`.

    Below 0, a causal model predicts repeated tokens better the later they come. The tokens are at
    10% and 90% of the repeated half of 64 texts, made as for `detect_heads`. Null: texts whose
    second half has other tokens. Raises ValueError without a causal head. Source: Olsson et al.
    2022.

    >>> import minitx
    >>> from minitx.circuits import in_context_score
    >>> score = in_context_score(minitx.load("tiny-gpt2"))
    >>> score.shape, score.null.shape
    ((), ())
    """
    check_model(model)
    if model.config.task_head != "causal":
        head = model.config.task_head
        raise ValueError(f"the in-context score needs a causal head; this model's is {head!r}")
    texts = RandomTexts(model, 64, None, generator(seed))
    values = []
    for tokens in (texts.repeated, texts.others):
        logits = run(model, tokens, "logits", **texts.options)["logits"]
        early, late = (_loss(logits, tokens, _place(texts, x)) for x in (EARLY, LATE))
        values.append(late - early)
    return Scores.beside(*values)


def _place(texts, share):
    """A position in the repeated half, by its share."""
    return texts.first + texts.n + round(share * texts.n)


def _loss(logits, tokens, place):
    """Mean loss of the tokens at a position, in nats."""
    y = logits[:, place - 1].astype(np.float64)
    y -= y.max(axis=1, keepdims=True)
    log_sum = np.log(np.exp(y).sum(axis=1))
    row = np.arange(len(y))
    loss = log_sum - y[row, tokens[:, place]]
    return loss.mean()
