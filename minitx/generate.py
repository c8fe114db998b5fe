"""Continue texts with a causal language model, token after token over a cache."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .arrays import Model
from .cache import Cache
from .inputs import Ids, Texts, source_arguments
from .kernels import softmax_
from .model import forward, logits
from .prompts import check_generates, check_room, read_prompts


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
    prompt: Texts | Ids | None = None,
    n: int = 20,
    *,
    source: Texts | Ids | None = None,
    source_valid: ArrayLike | None = None,
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
    source: what an encoder-decoder reads, in the same forms; its prompt may then be left out: the
    start token. The encoder runs once.
    valid: [B T] bool, False on padding, which must be on the left.
    temperature: 0 takes the likeliest token; else one is drawn from softmax(logits / temperature),
    among the top_k likeliest and the smallest set with probability top_p (Holtzman et al. 2020).
    seed: the same seed draws the same tokens.
    stop: a token id that ends a row; in an array, ended rows are filled up with it. In an
    encoder-decoder it is the model's own end token unless another is given.
    Raises ValueError if the prompt or n do not fit the model.

    >>> import minitx
    >>> model = minitx.load("tiny-gpt2")
    >>> ids = minitx.generate(model, "The dog", 6)
    >>> model.tokenizer.decode(ids)
    'The dogs, and the others'
    """
    check_generates(model)
    sampling = Sampling(temperature, top_k, top_p)
    sampling.check(n)
    prompts = read_prompts(model, prompt, valid, source, source_valid)
    check_room(model, prompts.batch, n)
    if stop is None and model.encoder is not None:
        stop = model.config.end_id
    new = _continue(model, prompts, n, stop, sampling, seed)
    rows = [*np.concatenate([prompts.batch.tokens, new], axis=1)]
    if prompts.ragged:
        own = [row[is_token] for row, is_token in zip(prompts.batch.tokens, prompts.batch.valid)]
        rows = [np.concatenate([row, _until(stop, more)]) for row, more in zip(own, new)]
    if prompts.single:
        return rows[0]
    return rows if prompts.ragged else np.array(rows)


def _continue(model, prompts, n, stop, sampling, seed):  # -> [B n], fewer if every row stops early
    """New tokens: source and prompt in one pass, then one token a pass over the cache."""
    tokens, valid = prompts.batch.tokens, prompts.batch.valid
    given = source_arguments(prompts.source)
    forced = forced_tokens(model.config, tokens, n)
    rng = np.random.default_rng(seed)
    cache, new, ended = Cache(), [], np.zeros(len(tokens), bool)
    for i in range(n):
        x = forward(model, tokens, valid=valid, cache=cache, **given)
        y = logits(model, x[:, -1:])  # [B 1 V]
        token = sampling.draw(y[:, 0], rng)
        if i in forced:
            token = np.full_like(token, forced[i])
        if stop is not None:
            token = np.where(ended, stop, token)
            ended |= token == stop
        new.append(token)
        if ended.all():
            break
        tokens, valid, given = token[:, None], None, {}
    return np.stack(new, axis=1) if new else tokens[:, :0]


def forced_tokens(cfg, tokens, n):
    """{number of a new token: the only one that may stand there}, as config.json says."""
    forced = {0: cfg.first_id} if tokens.shape[1] == 1 else {}
    forced[n - 1] = forced.get(n - 1) if cfg.last_id is None else cfg.last_id
    return {i: token for i, token in forced.items() if token is not None}


def _until(stop, row):
    """A row of new ids up to the first `stop`, which is included."""
    if stop is None or stop not in row:
        return row
    return row[: (row == stop).argmax() + 1]
