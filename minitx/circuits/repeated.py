"""Texts of random tokens that are repeated once, beside texts whose second half are others.

Nothing but the repetition tells where a token stood before. B texts, T tokens, n: those that are
repeated, L layers, H heads.
"""

import numpy as np

from ..inputs import check_batch
from ..model import forward
from .measure import mask_id

N_TOKENS, FEWEST = 24, 2


def _duplicate(query, n):
    """The first occurrence."""
    return query - n


def _induction(query, n):
    """The token after the first occurrence."""
    return query - n + 1


def _previous(query, n):
    return query - 1


def _next(query, n):
    return query + 1


def _first(query, n):
    return 0 * query


def _itself(query, n):
    return query


# kind -> the number of the key that a query's head of this kind looks at
REPEATED = {"duplicate": _duplicate, "induction": _induction}
PLACED = {"previous": _previous, "next": _next, "first": _first, "itself": _itself}
LOOKS = REPEATED | PLACED


class RandomTexts:
    """Random tokens that are repeated, or not: [B T], with special tokens around them."""

    def __init__(self, model, n_texts, n_tokens, rng):
        cfg = model.config
        before, after = frame(model)
        self.n = _number(cfg, n_tokens, room(model))
        self.first = len(before)
        first, second = (drawn(words(model), n_texts, self.n, rng) for _ in range(2))
        before = np.tile(before, (n_texts, 1))
        after = np.tile(after, (n_texts, 1))
        self.repeated = np.hstack([before, first, first, after])
        self.others = np.hstack([before, first, second, after])
        self.options = {}
        if model.encoder is not None:
            source = drawn(words(model.encoder), n_texts, self.n, rng)
            self.options = {"source": source}

    def attention(self, model, repeated):  # -> {kind: [L H]}
        """Mean attention to where each kind looks."""
        tokens = self.repeated if repeated else self.others
        tokens = check_batch(model.config, tokens).tokens
        results = {kind: [] for kind in LOOKS}

        def hook(name, x, layer=None):
            if name == "pattern":
                pattern = x.mean(axis=0)  # [H T S]
                for kind, rows in results.items():
                    rows.append(self._mean(pattern, kind))
            return x

        forward(model, tokens, **self.options, hook=hook)
        return {kind: np.array(rows) for kind, rows in results.items()}

    def _mean(self, pattern, kind):  # [H T S] -> [H]
        """Mean attention of the queries that have a key to look at, other than themselves."""
        T = pattern.shape[1]
        query = np.arange(T)
        if kind in REPEATED:
            second = self.first + self.n
            query = query[second : second + self.n]
        key = LOOKS[kind](query, self.n)
        counted = (key >= 0) & (key < T)
        if kind == "first":
            counted &= query > 0
        attention = pattern[:, query[counted], key[counted]]
        return attention.mean(axis=1, dtype=np.float64)


def frame(model):
    """The ids before and after a text: special tokens, or what a decoder starts with."""
    if model.encoder is not None:
        return np.array([model.config.start_id]), np.array([], int)
    return _special_tokens(model.tokenizer)


def room(model):
    """How many tokens the model's longest input holds twice, beside special ones."""
    return (model.config.n_ctx - sum(map(len, frame(model)))) // 2


def _number(cfg, n_tokens, most):
    """How many tokens are repeated. Raises ValueError for more than the model reads."""
    n = min(N_TOKENS, most) if n_tokens is None else n_tokens
    is_whole = isinstance(n, int | np.integer)
    # without a table of positions more can be read
    if not is_whole or n < FEWEST or (cfg.n_pos and n > most):
        text = f"this model reads at most {cfg.n_ctx} tokens"
        raise ValueError(f"n_tokens is {n}; {text}, so that {FEWEST} to {most} can be repeated")
    return n


def _special_tokens(tokenizer):
    """The ids that a tokenizer puts before and after a text; none without a tokenizer."""
    none = np.array([], int)
    if tokenizer is None:
        return none, none
    try:
        text = tokenizer.encode("a", special=False)
    except FileNotFoundError:
        return none, none
    whole = tokenizer.encode("a")
    for start in range(len(whole) - len(text) + 1):
        end = start + len(text)
        if np.array_equal(whole[start:end], text):
            return whole[:start], whole[end:]
    return none, none


def words(model):
    """All ids but those of padding, start, end, mask and special tokens."""
    cfg = model.config
    left_out = [cfg.pad_id, cfg.start_id, cfg.end_id, cfg.no_position_id]
    for ids in _special_tokens(model.tokenizer):
        left_out += [*ids]
    if model.tokenizer is not None:
        left_out.append(mask_id(model.tokenizer))
    words = np.arange(cfg.n_vocab)
    return np.setdiff1d(words, [i for i in left_out if i is not None])


def drawn(ids, n_texts, n, rng):  # -> [B n]
    """Random ids; each at most once in a row, if there are enough."""
    replaced = n > len(ids)
    rows = [rng.choice(ids, n, replace=replaced) for _ in range(n_texts)]
    return np.array(rows)
