"""The forward pass of a transformer, once for all families.

Read downward: `forward` -> `block` -> `attention`, `mlp`; then `embed`, `logits`; then what turns a user's input into
arrays. Every intermediate passes through `x = at("name", x)`: without a trace that is the identity, with one it is
recorded or replaced (trace.py lists the names). Axis letters: B batch, T tokens (queries), S keys, L layers,
H heads, D width, d width of a head, M width inside the MLP, V vocabulary, P positions, N token types, C classes.
"""
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace

import numpy as np

from .config import Config, need
from .kernels import ACTIVATIONS, features, linear, moments, normalise, product, softmax_

@dataclass(frozen=True)
class Model:
    """A checkpoint in memory. Arrays are read-only; matrices are used as x @ W.

    `.weights`: W_E [V D], W_pos [P D], W_type [N D], ln_embed_w/b and ln_final_w/b [D], and of the head W_head [D D],
    b_head, ln_head_w/b [D], W_U [D V], b_U [V]; None where a model has none. `.layers[i]`: W_Q W_K W_V W_O [D D],
    W_in [D M], W_out [M D], a b_ for each, ln1_w/b, ln2_w/b. `.unused`: tensors of the file that were not read;
    `.missing`: those that a partial checkpoint lacks (None in their place; it has weights to look at, but cannot run).
    """
    config: Config
    weights: SimpleNamespace
    layers: tuple
    tokenizer: object = None
    unused: tuple = ()
    missing: tuple = ()

    def encode(self, texts, pad="right"):
        """Texts (or pairs of texts) -> batch with .tokens [B T] int, .valid [B T] bool, .types [B T] or None."""
        return self.tokenizer.batch(texts, self.config, pad)

def identity(name, x, layer=None): return x  # the tap of a run that nobody watches

def forward(model, tokens, *, valid=None, types=None, positions=None, mask=None, cache=None, at=identity):
    """tokens [B T] (or [T]) -> final residual stream [B T D], after ln_final where the model has one.

    valid: bool [B T], False on padding, which is hidden from everything and takes no position. types: token types
    [B T]. positions: [T] or [B T], 0 for the first row a token can read; else counted over valid tokens. mask: True
    where a query may look at a key: bool broadcastable to [B H T S], or a function of token numbers (q, k) -> bool.
    cache: a Cache with the tokens before these (causal models). ValueError for input that the model cannot take.
    """
    x, hide = embed(model, tokens, valid, types, positions, mask, cache, at)
    for layer in model.layers:
        x = block(x, layer, hide, model.config, partial(at, layer=layer.index), cache)
    return norm("ln_final", x, model.weights, model.config, at) if model.config.pre_norm else x

def block(x, w, hide, cfg, at, cache=None):  # [B T D] -> [B T D]
    """The one structural difference between the families (Xiong et al. 2020, figure 1)."""
    def attn(h): return at("attn_out", attention(h, w, hide, cfg, at, cache))
    def ffn(h): return at("mlp_out", mlp(h, w, cfg, at))
    def ln1(h): return norm("ln1", h, w, cfg, at)
    def ln2(h): return norm("ln2", h, w, cfg, at)

    x = at("resid_pre", x)
    if cfg.pre_norm:  # GPT-2
        x = at("resid_mid", x + attn(ln1(x)))
        return at("resid_post", x + ffn(ln2(x)))
    x = at("resid_mid", ln1(x + attn(x)))  # BERT, RoBERTa
    return at("resid_post", ln2(x + ffn(x)))

def attention(x, w, hide, cfg, at, cache=None):  # [B T D] -> [B T D]
    """softmax(q k^T / sqrt(d) + hide) v per head, heads joined by W_O (Vaswani et al. 2017, 3.2)."""
    q, k, v = (at(name, heads(linear(x, W, b), cfg)) for name, W, b in
               (("q", w.W_Q, w.b_Q), ("k", w.W_K, w.b_K), ("v", w.W_V, w.b_V)))
    if cache is not None:
        k, v = cache.append(w.index, k, v)
    scores = product(q * cfg.attn_scale(w.index), k.swapaxes(-1, -2))
    if hide is not None:
        scores += hide
    pattern = at("pattern", softmax_(at("scores", scores)))
    z = at("z", product(pattern, v, heads(features(x.shape, x.dtype), cfg)))
    return linear(z.swapaxes(1, 2).reshape(x.shape), w.W_O, w.b_O)

def heads(x, cfg): return x.reshape(*x.shape[:2], cfg.n_heads, cfg.d_head).swapaxes(1, 2)  # [B T D] -> [B H T d]

def mlp(x, w, cfg, at):  # [B T D] -> [B T D]
    """act(x W_in + b_in) W_out + b_out."""
    post = ACTIVATIONS[cfg.act](at("pre", linear(x, w.W_in, w.b_in)))
    return linear(at("post", post), w.W_out, w.b_out)

def norm(name, x, w, cfg, at):  # [B T D] -> [B T D]
    """LayerNorm `name`, its mean and scale per token being points of their own."""
    mean, scale = moments(x, cfg.eps)
    mean, scale = at(f"{name}_mean", mean), at(f"{name}_scale", scale)
    return at(name, normalise(x, mean, scale, getattr(w, f"{name}_w"), getattr(w, f"{name}_b")))

def embed(model, tokens, valid, types, positions, mask, cache, at):
    """Input -> x [B T D] = word + position + type (+ LayerNorm), and what is hidden [B H T S] or None."""
    cfg, w = model.config, model.weights
    need(not model.missing, f"a partial checkpoint cannot run; missing: {', '.join(model.missing[:4])} …")
    need(cache is None or cfg.causal, f"a cache needs a causal model; in {cfg.model_type} old tokens see new ones")
    tokens, valid, types = check_input(cfg, tokens, valid, types)
    takes_position = valid if cfg.pad is None else valid & (tokens != cfg.pad)
    keys = valid if cache is None else cache.with_new(valid)
    past = keys[:, :keys.shape[1] - valid.shape[1]].sum(1, keepdims=True)
    numbers = past + np.cumsum(takes_position, 1) - 1  # [B T], first token: 0
    rows = position_rows(cfg, numbers, takes_position, positions)
    hide = hidden(cfg, numbers, keys, mask, w.W_E.dtype)
    if cache is not None:
        cache.valid = keys  # nothing can fail from here on
    x = at("embed", w.W_E[tokens]) + at("pos_embed", w.W_pos[rows])
    if types is not None:
        x = x + at("type_embed", w.W_type[types])
    x = np.ascontiguousarray(x.reshape(-1, cfg.d_model).T).T.reshape(x.shape)  # the order in memory that linear gives
    return (norm("ln_embed", x, w, cfg, at) if w.ln_embed_w is not None else x), hide

def position_rows(cfg, numbers, takes_position, positions):  # -> [B T] rows of W_pos
    """Row of the position table for every token; ValueError where there is none."""
    need(numbers.max() < cfg.n_ctx, f"{numbers.max() + 1} tokens; this model reads at most {cfg.n_ctx}")
    if positions is None:
        return np.where(takes_position, numbers + cfg.offset, cfg.pad or 0)  # what padding reads, nobody sees
    positions = whole_numbers("positions", positions, cfg.n_ctx)
    need(positions.shape in (numbers.shape, numbers.shape[1:]),
         f"positions are {list(positions.shape)}; wanted [T] or [B T] for tokens {list(numbers.shape)}")
    return np.broadcast_to(positions + cfg.offset, numbers.shape)

def hidden(cfg, numbers, keys, mask, dtype):  # -> [B H T S] (axes of length 1 where equal) or None
    """0 where a query may see a key, -inf where padding, the future or the user's mask hides it."""
    B, S, T = *keys.shape, numbers.shape[1]
    seen = keys[:, None, None, :]
    if cfg.causal:
        seen = seen & (np.arange(S) <= np.arange(S - T, S)[:, None])
    if mask is not None:
        counted = numbers if S == T else np.cumsum(keys, 1) - 1
        mask = np.asarray(mask(numbers[:, None, :, None], counted[:, None, None, :]) if callable(mask) else mask)
        fits = mask.ndim <= 4 and all(n in (1, m) for n, m in zip(mask.shape[::-1], (S, T, cfg.n_heads, B)))
        need(mask.dtype == bool and fits, f"mask is {mask.dtype} {list(mask.shape)}; wanted bool, True where a query "
             f"may look at a key, of a shape that broadcasts to [B H T S] = {[B, cfg.n_heads, T, S]}")
        seen = seen & mask
    return None if seen.all() else np.where(seen, 0.0, -np.inf).astype(dtype)

def logits(model, x, *, valid=None, at=identity):
    """Final residual stream [B T D] -> [B T V] over the vocabulary, or [B C] over classes.

    A classifier reads the first valid token (the last, if causal): a padded batch needs `valid`. ValueError: no head.
    """
    cfg, w = model.config, model.weights
    need(cfg.head, f"this checkpoint ({cfg.architecture or cfg.model_type}) has no head that gives logits; "
         f"tensors that were not read: {', '.join(model.unused[:6]) or 'none'}")
    if cfg.head == "sequence":
        valid = np.ones(x.shape[:2], bool) if valid is None else np.atleast_2d(np.asarray(valid, bool))
        token = x.shape[1] - 1 - valid[:, ::-1].argmax(1) if cfg.causal else valid.argmax(1)
        x = np.take_along_axis(x, token[:, None, None], 1)  # [B 1 D]
    if w.W_head is not None:
        x = ACTIVATIONS[cfg.head_act](linear(x, w.W_head, w.b_head))
    if w.ln_head_w is not None:
        x = normalise(x, *moments(x, cfg.eps), w.ln_head_w, w.ln_head_b)
    y = linear(x, w.W_U, w.b_U)
    return at("logits", y[:, 0] if cfg.head == "sequence" else y)

def check_input(cfg, tokens, valid, types):
    """tokens, valid and types as [B T] arrays; ValueError says which value does not fit, and why."""
    tokens = whole_numbers("token ids", tokens, cfg.n_vocab)
    need(tokens.ndim in (1, 2) and tokens.size,
         f"tokens are {list(tokens.shape)}; wanted [T] or [B T], with at least one token")
    tokens = np.atleast_2d(tokens)
    valid = np.atleast_2d(np.ones(tokens.shape, bool) if valid is None else whole_numbers("valid", valid, 2, "iub"))
    need(types is None or cfg.n_types, f"types given, but {cfg.model_type} has no token types")
    if types is not None or cfg.default_type is not None:
        types = np.full(tokens.shape, cfg.default_type) if types is None else types
        types = np.atleast_2d(whole_numbers("token types", types, cfg.n_types))
    for name, array in (("valid", valid), ("types", types)):
        need(array is None or array.shape == tokens.shape,
             f"{name} is {list(np.shape(array))}; wanted the shape of tokens, {list(tokens.shape)}")
    return tokens, valid.astype(bool), types

def whole_numbers(name, values, n, kinds="iu"):
    """Values as an index array; ValueError unless all are whole and in 0 to n - 1."""
    try:
        array = np.asarray(values)
    except ValueError:
        raise ValueError(f"{name} come in rows of different lengths; pad them (model.encode does)") from None
    need(not array.size or array.dtype.kind in kinds, f"{name} are {array.dtype}; wanted whole numbers")
    if (bad := array[(array < 0) | (array >= n)]).size:
        raise ValueError(f"{name}: {bad[0]} is out of range; wanted 0 to {n - 1}")
    return array.astype(np.intp)
