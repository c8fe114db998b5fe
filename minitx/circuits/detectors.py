"""What kind of head each head is: scores on random tokens that are repeated once.

Nothing but the repetition can tell a head where to look, so a head that finds the token after the
present one's first occurrence looks for repetition (Olsson et al. 2022). L layers, H heads, n:
tokens that are repeated, B: texts.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, get_args

import numpy as np

from ..arrays import Layer, Model
from ..inputs import check_batch
from ..mapped import require_arrays
from ..trace import run
from .measure import mask_id
from .stream import by_head

Kind = Literal["previous", "next", "first", "itself", "duplicate", "induction", "copying"]
# kind -> from the number of a query, to the key that it looks at; n: tokens that are repeated
REPEATED = {"duplicate": lambda q, n: q - n, "induction": lambda q, n: q - n + 1}
PLACED = {
    "previous": lambda q, n: q - 1,
    "next": lambda q, n: q + 1,
    "first": lambda q, n: 0 * q,
    "itself": lambda q, n: q,
}
N_TEXTS, N_TOKENS = 16, 24
EARLY, LATE = 0.1, 0.9  # of the repeated half: where the in-context score compares losses


class Scores(np.ndarray):
    """An array of scores [L H] with what chance gives, `.null` [L H].

    >>> import numpy as np
    >>> from minitx.circuits import Scores
    >>> scores = Scores.beside([[0.1, 0.9]], null=[[0.1, 0.0]])
    >>> float(scores[0, 1]), scores.null
    (0.9, array([[0.1, 0. ]]))
    """

    null: np.ndarray | None

    @classmethod
    def beside(cls, values, null) -> "Scores":
        """Scores with their null."""
        scores = np.asarray(values, np.float64).view(cls)
        scores.null = np.asarray(null, np.float64)
        return scores

    def __array_finalize__(self, other):
        self.null = None  # a part of the scores, or what is computed of them, has none


def detect_heads(
    model: Model,
    kinds: Sequence[Kind] = ("previous", "duplicate", "induction"),
    seed: int = 0,
    *,
    n_texts: int = N_TEXTS,
    n_tokens: int | None = None,
) -> dict[str, Scores]:
    """{kind: [L H]}: how much each head does what heads of a kind do, each with its `.null`.

    Texts are n_tokens random tokens (by default 24, or as many as fit), repeated once, with the
    special tokens of the tokenizer around them; n_texts of them are drawn with `seed`. Scores are
    the mean attention, from 0 to 1, from each repeated token to its first occurrence (duplicate),
    or to the token after that (induction); from every token to the one before it (previous), after
    it (next; a causal model sees none), to the first of the text (first), or to itself (itself).
    copying: the sum of the eigenvalues of W_E W_V W_O W_U over that of their absolute values, from
    -1 to 1; near 1, what the head reads raises its own logit; norms are left out, and it needs a
    head over the vocabulary. Encoders see both ways, so that the first half can look ahead: only
    queries of the second half count. In an encoder-decoder the heads are those of the decoder's
    self-attention, the target is repeated, and the source is random.

    Nulls [L H]: of duplicate and induction the same heads on texts whose second half are other
    tokens; of the other kinds the same model with the entries of W_Q, W_K and W_V shuffled, each
    matrix by itself. Raises ValueError for an unknown kind, or a model that reads too few tokens.
    Source: Olsson et al. 2022; copying: Elhage et al. 2021.

    >>> import minitx
    >>> from minitx import circuits
    >>> scores = circuits.detect_heads(minitx.load("tiny-gpt2"))
    >>> scores["previous"].shape, scores["induction"].null.shape
    ((4, 4), (4, 4))
    """
    kinds = [kinds] if isinstance(kinds, str) else list(kinds)
    for kind in kinds:
        if kind not in get_args(Kind):
            raise ValueError(f"unknown kind {kind!r}; there are: {', '.join(get_args(Kind))}")
    require_arrays(model, "detect_heads")
    rng = np.random.default_rng(seed)
    texts = RandomTexts(model, n_texts, n_tokens, rng)
    attention = texts.attention(model, repeated=True)
    nulls = {}
    if {*kinds} & {*REPEATED}:
        nulls = texts.attention(model, repeated=False)
    shuffled = _shuffled(model, rng)
    if {*kinds} & {*PLACED}:
        by_shuffled = texts.attention(shuffled, repeated=True)
        nulls |= {kind: by_shuffled[kind] for kind in PLACED}
    if "copying" in kinds:
        attention["copying"], nulls["copying"] = copying(model), copying(shuffled)
    return {kind: Scores.beside(attention[kind], nulls[kind]) for kind in kinds}


class RandomTexts:
    """Random tokens that are repeated, or not: [B T], with special tokens around them."""

    def __init__(self, model, n_texts, n_tokens, rng):
        before, after = _special_tokens(model.tokenizer)
        cfg = model.config
        if model.encoder is not None:
            before, after = np.array([cfg.start_id]), np.array([], int)
        room = (cfg.n_ctx - len(before) - len(after)) // 2 if cfg.n_pos else N_TOKENS
        n = min(N_TOKENS, room) if n_tokens is None else n_tokens
        if not 2 <= n <= room and cfg.n_pos:
            text = f"this model reads at most {cfg.n_ctx} tokens"
            raise ValueError(f"n_tokens is {n}; {text}, so that 2 to {room} can be repeated")
        self.n, self.first = n, len(before)
        words = _words(model)
        halves = _drawn(words, (3, n_texts, n), rng)
        around = [np.tile(tokens, (n_texts, 1)) for tokens in (before, after)]
        self.repeated = np.hstack([around[0], halves[0], halves[0], around[1]])
        self.others = np.hstack([around[0], halves[0], halves[1], around[1]])
        self.options = {}
        if model.encoder is not None:
            self.options = {"source": _drawn(_words(model.encoder), (n_texts, n), rng)}

    def attention(self, model, repeated):  # -> {kind: [L H]}
        """Mean attention to where each kind looks."""
        tokens = check_batch(model.config, self.repeated if repeated else self.others).tokens
        results: dict = {kind: [] for kind in (*REPEATED, *PLACED)}
        for layer in range(model.config.n_layers):
            keep = ("pattern", layer)
            pattern = run(model, tokens, keep, **self.options)[keep].mean(axis=0)  # [H T S]
            for kind, rows in results.items():
                rows.append(self._mean(pattern, kind))
        return {kind: np.array(rows) for kind, rows in results.items()}

    def _mean(self, pattern, kind):  # [H T S] -> [H]
        """Mean attention of the queries that have a key to look at."""
        T = pattern.shape[1]
        query = np.arange(T)
        if kind in REPEATED:
            second = self.first + self.n
            query = query[second : second + self.n]
        key = {**REPEATED, **PLACED}[kind](query, self.n)
        has_key = (key >= 0) & (key < T) & ((kind == "itself") | (key != query))
        return pattern[:, query[has_key], key[has_key]].mean(axis=1, dtype=np.float64)


def _special_tokens(tokenizer):
    """The ids that a tokenizer puts before and after a text; none without a tokenizer."""
    empty = np.array([], int)
    try:
        text = tokenizer.encode("a", special=False)
        whole = tokenizer.encode("a")
    except (AttributeError, FileNotFoundError):
        return empty, empty
    for start in range(len(whole) - len(text) + 1):
        if (whole[start : start + len(text)] == text).all():
            return whole[:start], whole[start + len(text) :]
    return empty, empty


def _words(model):
    """All ids but those of padding, start, end and special tokens."""
    cfg = model.config
    left_out = {cfg.pad_id, cfg.start_id, cfg.end_id, cfg.no_position_id}
    try:
        left_out |= {mask_id(model.tokenizer), *np.ravel(_special_tokens(model.tokenizer)[0])}
        left_out |= {*_special_tokens(model.tokenizer)[1]}
    except AttributeError:  # no tokenizer
        pass
    return np.setdiff1d(np.arange(cfg.n_vocab), [i for i in left_out if i is not None])


def _drawn(words, shape, rng):
    """Random words; along the last axis each at most once, if there are enough."""
    n = shape[-1]
    rows = int(np.prod(shape[:-1]))
    replaced = n > len(words)
    return np.array([rng.choice(words, n, replace=replaced) for _ in range(rows)]).reshape(shape)


def copying(model: Model) -> np.ndarray:  # [L H]
    """Sum of the eigenvalues of W_E W_V W_O W_U over that of their absolute values.

    Those that are not 0 are the eigenvalues of the [d d] matrix W_O W_U W_E W_V. NaN where it is 0.
    """
    W_E, W_U = model.weights.W_E, model.weights.W_U
    if W_U is None or W_U.shape[1] != len(W_E):
        raise ValueError("copying needs a head over the vocabulary of the embedding W_E")
    middle = np.asarray(W_U, np.float64) @ np.asarray(W_E, np.float64)  # [D D]
    return np.array([_copying_of_layer(w, middle, model.config) for w in model.layers])


def _copying_of_layer(w, middle, cfg):
    W_O = by_head(w.W_O, cfg.n_heads)
    W_V = by_head(np.asarray(w.W_V).T, cfg.n_kv)  # [G d D]
    W_V = np.repeat(W_V, cfg.n_heads // cfg.n_kv, axis=0).swapaxes(-1, -2)
    values = np.linalg.eigvals(W_O @ middle @ W_V)
    size = abs(values).sum(axis=-1)
    total = values.sum(axis=-1).real
    return np.divide(total, size, out=np.full(size.shape, np.nan), where=size > 0)


def _shuffled(model, rng):
    """The model with the entries of W_Q, W_K and W_V of each layer in random order."""
    layers = []
    for w in model.layers:
        arrays = {name: getattr(w, name) for name in ("W_Q", "W_K", "W_V")}
        mixed = {name: rng.permutation(W.ravel()).reshape(W.shape) for name, W in arrays.items()}
        layers.append(Layer(**{**vars(w), **mixed}))
    return replace(model, layers=tuple(layers))


def in_context_score(model: Model, seed: int = 0) -> Scores:
    """Loss of a late repeated token minus that of an early one, in nats: a number with its `.null`.

    Below 0, a causal model predicts repeated tokens better as there are more of them. Places: 10 %
    and 90 % of the repeated half, in 64 texts. Null: texts whose second half are other tokens.
    Source: Olsson et al. 2022.

    >>> import minitx
    >>> from minitx.circuits import in_context_score
    >>> score = in_context_score(minitx.load("tiny-gpt2"))
    >>> score.shape, score.null.shape
    ((), ())
    """
    if model.config.task_head != "causal":
        head = model.config.task_head
        raise ValueError(f"the in-context score needs a causal head; this model's is {head!r}")
    texts = RandomTexts(model, 64, None, np.random.default_rng(seed))
    values = []
    for tokens in (texts.repeated, texts.others):
        y = run(model, tokens, "logits", **texts.options)["logits"].astype(np.float64)
        losses = [
            _loss(y, tokens, texts.first + texts.n + round(x * texts.n)) for x in (EARLY, LATE)
        ]
        values.append(losses[1] - losses[0])
    return Scores.beside(*values)


def _loss(y, tokens, place):
    """Mean loss of the tokens at a place, in nats."""
    scores = y[:, place - 1]
    largest = scores.max(axis=1)
    log_sum = largest + np.log(np.exp(scores - largest[:, None]).sum(axis=1))
    return float((log_sum - scores[np.arange(len(y)), tokens[:, place]]).mean())
