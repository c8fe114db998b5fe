"""Continue texts with a causal language model, token after token over a cache."""
import numpy as np

from .cache import Cache
from .config import need
from .kernels import softmax_
from .model import check_input, forward, logits

def generate(model, prompt, n, *, valid=None, temperature=0.0, top_k=None, top_p=None, seed=None, stop=None):
    """The prompt followed by up to n new tokens, as ids.

    prompt: ids [T] or [B T] (valid: False on padding, which must be on the left) -> ids [T+n] or [B T+n]; or a text,
    a list of texts, or id lists of different lengths -> one array of ids per prompt, unpadded. temperature 0 takes
    the likeliest token; else one is drawn from softmax(logits / temperature), among the top_k likeliest and the
    smallest set that holds probability top_p (Holtzman et al. 2020); same seed, same tokens. stop: an id that ends
    a row; in an array, ended rows are filled up with it. ValueError if prompt or n do not fit the model.
    """
    need((head := model.config.head) == "causal", f"generate needs a causal language model; this one has head {head!r}")
    k, p = (1 if limit is None else limit for limit in (top_k, top_p))
    need(all(isinstance(count, (int, np.integer)) for count in (n, k)) and n >= 0 and temperature >= 0 and k >= 1
         and 0 < p <= 1, f"n={n}, temperature={temperature}, top_k={top_k}, top_p={top_p}; wanted n >= 0, "
         "temperature >= 0, top_k >= 1, 0 < top_p <= 1, and n and top_k whole")
    tokens, valid, ragged = _prompts(model, prompt, valid)
    if (longest := int(valid.sum(1).max())) + n - 1 > model.config.n_ctx:
        raise ValueError(f"{longest} tokens and {n} new ones; this model reads at most {model.config.n_ctx}")
    new = _continue(model, tokens, valid, n, stop, temperature, top_k, top_p, np.random.default_rng(seed))
    if ragged:
        ends = [(row == stop).argmax() + 1 if stop in row else len(row) for row in new]
        rows = [np.concatenate([t[seen], row[:end]]) for t, seen, row, end in zip(tokens, valid, new, ends)]
        return rows[0] if isinstance(prompt, str) else rows
    return np.concatenate([tokens, new], 1)[0 if np.ndim(prompt) == 1 else ...]

def _continue(model, tokens, valid, n, stop, *rules):  # -> [B n], fewer columns if every row stops early
    cache, new, ended = Cache(), [], np.zeros(len(tokens), bool)
    for _ in range(n):
        token = _pick(logits(model, forward(model, tokens, valid=valid, cache=cache)[:, -1:])[:, 0], *rules)
        if stop is not None:
            token = np.where(ended, stop, token)
            ended |= token == stop
        new.append(token)
        if ended.all():
            break
        tokens, valid = token[:, None], None
    return np.stack(new, 1) if new else tokens[:, :0]

def _pick(y, temperature, top_k, top_p, rng):  # [B V] -> [B], by the rules of `generate`
    if temperature == 0:
        return y.argmax(-1)
    order = np.argsort(-y, -1, kind="stable")[:, :top_k]
    p = softmax_(np.take_along_axis(y, order, -1).astype(np.float64) / temperature)
    if top_p is not None:
        p[np.cumsum(p, -1) - p >= top_p] = 0  # what comes before a token already holds top_p
    held = np.cumsum(p, -1)
    drawn = (held < rng.random((len(p), 1)) * held[:, -1:]).sum(-1, keepdims=True)
    return np.take_along_axis(order, drawn, -1)[:, 0]

def _prompts(model, prompt, valid):  # any form -> tokens [B T], valid [B T], and whether to give back unpadded rows
    rows = [prompt] if isinstance(prompt, str) else prompt
    if texts := len(rows) and isinstance(rows[0], str):
        rows = [model.tokenizer.encode(text) for text in rows]
    ragged = texts or len(rows) and np.ndim(rows[0]) and len({len(row) for row in rows}) > 1
    if ragged:
        need(valid is None, "valid goes with an array of token ids; texts and rows of several lengths are padded here")
        lengths = [len(row) for row in rows]
        need(all(lengths), f"prompt {lengths.index(min(lengths))} is empty; wanted at least one token")
        gaps = [max(lengths) - length for length in lengths]
        valid = [[False] * gap + [True] * length for gap, length in zip(gaps, lengths)]
        rows = [[model.config.pad_token] * gap + list(row) for gap, row in zip(gaps, rows)]
    tokens, valid, _ = check_input(model.config, rows, valid, None)
    need(valid[:, -1].all(), "a row ends in padding; pad prompts on the left to continue them")
    return tokens, valid, ragged
