"""Continue texts with a causal language model, token after token over a cache."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .cache import Cache
from .inputs import Ids, Texts, check_batch
from .kernels import softmax_
from .model import Model, forward, logits


class Sampling(NamedTuple):
    """How the next token is drawn from its logits; see `generate`."""

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float | None = None

    def check(self, n):
        """Raises ValueError for values out of range; n: new tokens."""
        k = 1 if self.top_k is None else self.top_k
        p = 1 if self.top_p is None else self.top_p
        whole = all(isinstance(x, int | np.integer) for x in (n, k))
        if not (whole and n >= 0 and self.temperature >= 0 and k >= 1 and 0 < p <= 1):
            raise ValueError(
                f"n={n}, temperature={self.temperature}, top_k={self.top_k}, top_p={self.top_p}; "
                "wanted n >= 0, temperature >= 0, top_k >= 1, 0 < top_p <= 1, and n and top_k whole"
            )

    def draw(self, y, rng):  # [B V] -> [B]
        """A token for each row of logits."""
        if self.temperature == 0:
            return y.argmax(axis=-1)
        order = np.argsort(-y, axis=-1, kind="stable")[:, : self.top_k]
        likeliest = np.take_along_axis(y, order, axis=-1).astype(np.float64)
        p = softmax_(likeliest / self.temperature)
        if self.top_p is not None:
            before = np.cumsum(p, axis=-1) - p
            p[before >= self.top_p] = 0
        cumulative = np.cumsum(p, axis=-1)
        target = rng.random((len(p), 1)) * cumulative[:, -1:]
        rank = (cumulative < target).sum(axis=-1, keepdims=True)
        return np.take_along_axis(order, rank, axis=-1)[:, 0]


def generate(
    model: Model,
    prompt: Texts | Ids,
    n: int,
    *,
    valid: ArrayLike | None = None,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int | None = None,
    stop: int | None = None,
) -> np.ndarray | Any:  # Any: a list of arrays, for several prompts
    """The prompt followed by up to n new tokens, as ids.

    prompt: ids [T] or [B T] -> ids [T+n] or [B T+n]. Or a text, a list of texts, or lists of ids of
    different lengths -> one array of ids for each prompt, without padding.
    valid: [B T] bool, False on padding, which must be on the left.
    temperature: 0 takes the likeliest token; else one is drawn from softmax(logits / temperature),
    among the top_k likeliest and the smallest set with probability top_p (Holtzman et al. 2020).
    seed: the same seed draws the same tokens.
    stop: a token id that ends a row; in an array, ended rows are filled up with it.
    Raises ValueError if the prompt or n do not fit the model.

    >>> import minitx
    >>> model = minitx.load("tiny-gpt2")
    >>> ids = minitx.generate(model, "The dog", 6)
    >>> model.tokenizer.decode(ids)
    'The dogs, and the others'
    """
    task_head = model.config.task_head
    if task_head != "causal":
        text = f"generate needs a causal language model; this one has head {task_head!r}"
        raise ValueError(text)
    sampling = Sampling(temperature, top_k, top_p)
    sampling.check(n)
    rows = _rows_of_ids(model, prompt)
    if rows is None:
        batch = _check_prompt(model, prompt, valid, n)
        new = _continue(model, batch, n, stop, sampling, seed)
        ids = np.concatenate([batch.tokens, new], axis=1)
        return ids[0] if np.ndim(prompt) == 1 else ids
    if valid is not None:
        text = "valid goes with an array of token ids; texts and rows of several lengths are padded"
        raise ValueError(f"{text} here")
    tokens, is_token = _pad_left(rows, model.config.pad_id)
    batch = _check_prompt(model, tokens, is_token, n)
    new = _continue(model, batch, n, stop, sampling, seed)
    continued = [np.concatenate([row, _until(stop, more)]) for row, more in zip(rows, new)]
    return continued[0] if isinstance(prompt, str) else continued


def _rows_of_ids(model, prompt):
    """Ids of each prompt, if these are texts or of several lengths; None for an array of ids."""
    rows = [prompt] if isinstance(prompt, str) else prompt
    if not len(rows):
        return None
    if isinstance(rows[0], str):
        return [model.tokenizer.encode(text) for text in rows]
    several_lengths = np.ndim(rows[0]) > 0 and len({len(row) for row in rows}) > 1
    return rows if several_lengths else None


def _pad_left(rows, pad_id):
    """Rows of ids -> tokens and valid [B T]."""
    lengths = [len(row) for row in rows]
    if not all(lengths):
        raise ValueError(f"prompt {lengths.index(0)} is empty; wanted at least one token")
    T = max(lengths)
    tokens = [[pad_id] * (T - len(row)) + list(row) for row in rows]
    valid = [[False] * (T - n) + [True] * n for n in lengths]
    return tokens, valid


def _check_prompt(model, tokens, valid, n):
    """A prompt as a Batch. Raises ValueError if it, with n new tokens, does not fit the model."""
    batch = check_batch(model.config, tokens, valid)
    if not batch.valid[:, -1].all():
        raise ValueError("a row ends in padding; pad prompts on the left to continue them")
    longest, n_ctx = int(batch.valid.sum(axis=1).max()), model.config.n_ctx
    if longest + n - 1 > n_ctx:  # the last new token is not read
        raise ValueError(f"{longest} tokens and {n} new ones; this model reads at most {n_ctx}")
    return batch


def _continue(model, batch, n, stop, sampling, seed):  # -> [B n], fewer if every row stops early
    """New tokens: the prompt in one pass, then one token a pass over the cache."""
    tokens, valid = batch.tokens, batch.valid
    rng = np.random.default_rng(seed)
    cache, new, ended = Cache(), [], np.zeros(len(tokens), bool)
    for _ in range(n):
        x = forward(model, tokens, valid=valid, cache=cache)
        y = logits(model, x[:, -1:])  # [B 1 V]
        token = sampling.draw(y[:, 0], rng)
        if stop is not None:
            token = np.where(ended, stop, token)
            ended |= token == stop
        new.append(token)
        if ended.all():
            break
        tokens, valid = token[:, None], None
    return np.stack(new, axis=1) if new else batch.tokens[:, :0]


def _until(stop, row):
    """A row of new ids up to the first `stop`, and with it."""
    if stop is None or stop not in row:
        return row
    return row[: (row == stop).argmax() + 1]
