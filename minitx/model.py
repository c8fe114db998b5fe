"""The forward pass of a transformer, once for all families.

Read downward: `forward` -> `embed`, `block` -> `attention`, `mlp`, `norm`; then `final_norm` and
`logits`. Every intermediate passes through `x = hook("name", x)`: without a trace that is the
identity, with one it is recorded or replaced (points.py lists the names); `cfg` are the model's
choices (config.py). An encoder-decoder is two such stacks: the model itself is the decoder, and
`model.encoder` a model of its own, whose last stream the decoder's cross-attention reads.

Axis letters: B batch, T tokens (queries), S keys, L layers, H heads, D width, d width of a head,
E width of the embeddings (D but in ALBERT),
A = H d, G heads of keys and values (G = H but where several heads share theirs), K = G d, M width
inside the MLP, V vocabulary, P positions, R relative positions or buckets of them, r pairs of
features that are turned, N token types, C classes.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .activations import ACTIVATIONS
from .arrays import Model, checked_scale
from .cache import Cache
from .distances import place_terms
from .heads import classified_token, is_pooled, require_head
from .hooks import Hook, Prefixed, asks, identity
from .inputs import Ids, check_batch, check_model, check_runs, check_source, head_tokens
from .kernels import (
    capped_,
    feature_major,
    heads_out,
    inverse_rms,
    join_heads,
    linear,
    matmul_heads,
    mean_and_inverse_std,
    normalise,
    scaled,
    softmax_,
    split_heads,
)
from .longer import is_outgrown, run_again
from .machine.threads import passes
from .masks import Keys, Mask, attention_bias, user_mask
from .positions import key_numbers, places, position_rows, token_numbers, turned
from .side_by_side import qkv

ENCODER, CROSS = "enc_", "cross_"  # how the points of an encoder and of cross-attention begin


class Source(NamedTuple):
    """The encoder's output, as a decoder reads it."""

    x: np.ndarray  # [B S D]: the encoder's last stream
    keys: Keys
    cached: dict[int, tuple]  # layer -> its keys and values, once they are computed
    bias: np.ndarray | None = None  # what is added to the scores of cross-attention


class Start(NamedTuple):
    """Where a pass begins whose first layers are known."""

    layer: int
    x: np.ndarray  # [B T D]: the stream before this layer


def forward(
    model: Model,
    tokens: Ids,
    *,
    source: Ids | None = None,
    source_valid: ArrayLike | None = None,
    valid: ArrayLike | None = None,
    types: ArrayLike | None = None,
    positions: ArrayLike | None = None,
    mask: Mask | None = None,
    enc_mask: Mask | None = None,
    cross_mask: Mask | None = None,
    cache: Cache | None = None,
    start: Start | None = None,
    hook: Hook = identity,
) -> np.ndarray:
    """Token ids [B T] or [T] -> final residual stream [B T D], after ln_final if there is one.

    tokens: in a model of pictures the rows of numbers [B T V] that `model.encode(images=…)` gives.

    source: ids [B S] that the encoder of an encoder-decoder reads; tokens are then the decoder's.
    valid, source_valid: bool, False on padding, which no query sees and which takes no position.
    types: [B T] token types.
    positions: [T] or [B T], counted from 0; by default each text's valid tokens are counted.
    mask: True where a query may look at a key: bool of a shape that broadcasts to [B H T S], or a
    function of token numbers (q, k) -> bool. enc_mask, cross_mask: the same for an encoder, and
    for cross-attention.
    cache: a Cache that holds the tokens before these (causal models only), and the source.
    hook: f(name, x), or f(name, x, layer=i) -> x or its replacement, at every point of the pass.
    start: a layer and the stream before it, if known; earlier layers are skipped.
    Raises ValueError for input that the model cannot take.

    Padding changes nothing for the tokens before it:

    >>> import minitx
    >>> model = minitx.load("tiny-roberta")
    >>> batch = model.encode(["A dog", "A dog ran"])
    >>> x = minitx.forward(model, batch.tokens, valid=batch.valid)
    >>> alone = minitx.forward(model, batch.tokens[:1, :5])
    >>> x.shape, np.allclose(x[0, :5], alone[0], atol=1e-5)
    ((2, 7, 128), True)

    One token at a time with a cache; a hook sees each point, here the attention of the last layer
    to all tokens so far, and returns x or its replacement:

    >>> model, cache, rows = minitx.load("tiny-gpt2"), minitx.Cache(), []
    >>> def hook(name, x, layer=None):
    ...     if name == "pattern" and layer == 3:
    ...         rows.append(x.shape)
    ...     return x * 0.5 if name == "mlp_out" else x
    >>> for token in model.tokenizer.encode("A dog"):
    ...     x = minitx.forward(model, [token], cache=cache, hook=hook)
    >>> rows
    [(1, 4, 1, 1), (1, 4, 1, 2), (1, 4, 1, 3)]
    """
    check_runs(model, cache)
    cfg, w = model.config, model.weights
    batch = check_batch(cfg, tokens, valid, types)
    key_valid = batch.valid if cache is None else cache.with_new(batch.valid)  # [B S]
    if cache is not None and cfg.rotary:
        if is_outgrown(cache, cfg, batch.tokens, key_valid):
            return run_again(forward, model, cache, key_valid, hook, (positions, mask))
    numbers = token_numbers(cfg, batch, key_valid)
    rows = position_rows(cfg, batch, numbers, positions)
    seen = read_source(model, len(batch.tokens), source, source_valid, enc_mask, cache, hook)
    if seen is not None:
        seen = seen._replace(
            bias=attention_bias(cfg, numbers, seen.keys, cross_mask, name="cross_mask")
        )
    keys = Keys(key_numbers(numbers, key_valid), key_valid)
    with passes.running():
        first, x = start or (0, embed(batch, rows, w, cfg, hook))
        place = places(model, numbers, keys, hook, positions, mask)
        for layer in model.layers[first:]:
            layer_hook = hook if hook is identity else partial(hook, layer=layer.index)
            x = block(x, layer, place[layer.index], cfg, layer_hook, cache, seen)
        x = final_norm(model, x, hook=hook)
    if cache is not None:
        cache.valid, cache.source = key_valid, seen  # last: an interrupted pass adds nothing
    return x


def read_source(model, n, source, valid, mask, cache, hook):  # -> Source; None in a single stack
    """What the encoder makes of the source, or what the cache holds of it."""
    if cache is not None and cache.source is not None:
        if source is not None:
            raise ValueError("the cache already has a source; give it only with the first tokens")
        return cache.source
    check_source(model, source)
    if source is None:
        return None
    batch = check_batch(model.encoder.config, source, valid)
    if len(batch.tokens) != n:
        text = f"the source has {len(batch.tokens)} texts, the decoder's tokens {n}"
        raise ValueError(f"{text}; wanted one source for each")
    numbers = token_numbers(model.encoder.config, batch, batch.valid)
    keys = Keys(numbers, batch.valid)
    if mask is not None:
        mask = user_mask(model.encoder.config, numbers, keys, mask, "enc_mask")
    encode = Prefixed(ENCODER, hook)
    x = forward(model.encoder, batch.tokens, valid=batch.valid, mask=mask, hook=encode)
    return Source(x, keys, cached={})


def embed(batch, rows, w, cfg, hook):  # [B T] -> [B T D]
    """Sum of the rows of words, positions and token types; in BERT a LayerNorm of the sum.

    In ALBERT these have the width E, and a matrix maps them to D.
    """
    x = hook("embed", input_rows(batch.tokens, w.W_E) * cfg.embed_scale)
    if rows is not None:
        x = x + hook("pos_embed", w.W_pos[rows])
    if batch.types is not None:
        x = x + hook("type_embed", w.W_type[batch.types])
    x = feature_major(x)
    if w.ln_embed_w is not None:
        x = norm("ln_embed", x, w, cfg, hook)
    if w.W_map is not None:
        x = linear(x, w.W_map, w.b_map)
    return x


def input_rows(tokens, W_E):  # [B T] or [B T V], [V E] -> [B T E]
    """The row of each token id. A patch is V numbers, and an id like a 1 among zeros: x W_E."""
    return W_E[tokens] if tokens.ndim == 2 else linear(tokens.astype(W_E.dtype), W_E)


def block(x, w, place, cfg, hook, cache=None, source=None):  # [B T D] -> [B T D]
    """Attention, then the MLP, add to the residual stream (Xiong et al. 2020, figure 1).

    Between them a decoder adds cross-attention, whose keys and values come from the source
    (Vaswani et al. 2017, figure 1). Families differ in where the norm stands: before each of these
    (GPT-2), or after each addition (BERT). In GPT-NeoX all of them read the same stream.
    """

    def attend(x):
        return self_attention(x, w, place, cfg, hook, cache)

    def attend_source(x):
        return cross_attention(x, source, w.cross, cfg, Prefixed(CROSS, hook))

    def feed_forward(x):
        return norm("mlp_out", mlp(x, w, cfg, hook), w, cfg, hook)

    x = hook("resid_pre", x)
    if cfg.parallel:
        attended = attend(norm("ln1", x, w, cfg, hook))
        return hook("resid_post", x + attended + feed_forward(norm("ln2", x, w, cfg, hook)))
    writers = [(attend, "ln1", w, "resid_mid"), (feed_forward, "ln2", w, "resid_post")]
    if source is not None:
        writers.insert(1, (attend_source, "ln_cross", w.cross, "resid_cross"))
    for write, ln, arrays, point in writers:
        if cfg.pre_norm:
            normed = norm(ln, x, arrays, cfg, hook)
            x = (normed if cfg.norm_residual else x) + write(normed)
        else:
            x = norm(ln, x + write(x), arrays, cfg, hook)
        x = hook(point, x)
    return x


def self_attention(x, w, place, cfg, hook, cache=None):  # [B T D] -> [B T D]
    """Attention of tokens to each other, and to those of the cache."""
    turn = None
    if place.angle is not None:
        turn = partial(turned, angle=hook("pos_angle", place.angle), scale=place.scale)
    products = qkv(x, w)
    if cfg.qkv_limit:
        products = (limited(y, cfg) for y in products)
    q = placed("q", next(products), w, cfg, hook, turn)
    k = placed("k", next(products), w, cfg, hook, turn)
    v = hook("v", split_heads(next(products), cfg))
    if cache is not None:
        k, v = cache.append(w.index, k, v)
    attn_bias = place.bias
    if place.distances is not None:
        attn_bias = place_terms(q, k, w, place, cfg, hook)  # of content and place
    return norm("attn_out", attention(q, k, v, w, attn_bias, cfg, hook), w, cfg, hook)


def cross_attention(x, source, w, cfg, hook):  # [B T D], [B S D] -> [B T D]
    """Attention of a decoder's tokens to those of the source, whose keys a cache computes once."""
    q = queries(x, w, cfg, hook)
    if w.index not in source.cached:
        source.cached[w.index] = keys_values(source.x, w, cfg, hook)
    k, v = source.cached[w.index]
    return hook("out", attention(q, k, v, w, source.bias, cfg, hook))


def queries(x, w, cfg, hook):  # [B T D] -> [B H T d]
    """Queries of each token."""
    return placed("q", linear(x, w.W_Q, w.b_Q), w, cfg, hook)


def keys_values(x, w, cfg, hook):  # [B S D] -> [B G S d] twice
    """Keys and values of each token."""
    k = placed("k", linear(x, w.W_K, w.b_K), w, cfg, hook)
    v = hook("v", split_heads(linear(x, w.W_V, w.b_V), cfg))
    return k, v


def placed(name, x, w, cfg, hook, turn=None):  # [B T A] -> [B H T d], or [B T K] -> [B G T d]
    """Queries or keys by head; normed if the model does, and turned by position if `turn` is given.

    Norms are of all heads together (OLMo 2), or of each head (Qwen3).
    """
    if cfg.qk_norm_all:
        x = norm(f"ln_all_{name}", x, w, cfg, hook)
    x = split_heads(x, cfg)
    if cfg.qk_norm:
        x = norm(f"ln_{name}", x, w, cfg, hook)
    if turn is not None:
        x = turn(hook(f"{name}_in", x))
    return hook(name, x)


def limited(x, cfg):  # [B T A] -> [B T A]
    """Queries, keys or values, none of whose numbers is beyond a limit (OLMo)."""
    return np.clip(x, -cfg.qkv_limit, cfg.qkv_limit)


def attention(q, k, v, w, attn_bias, cfg, hook):  # [B H T d], [B G S d] twice -> [B T D]
    """softmax(q k^T / sqrt(d)) v per head, heads joined by W_O (Vaswani et al. 2017, 3.2).

    Several consecutive heads may share keys and values (Ainslie et al. 2023). What each head adds
    to that sum is computed for a hook that asks for it.
    """
    pattern = attention_pattern(q, k, w, attn_bias, cfg, hook)
    z = matmul_heads(pattern, v)
    del pattern  # the largest array of a pass
    z = hook("z", z)
    out = linear(join_heads(z), w.W_O, w.b_O)
    if hook is not identity and asks(hook, "head_out"):
        heads = heads_out(z, w.W_O)
        total = heads.sum(1)
        out += hook("head_out", heads).sum(1) - total  # exactly 0 where nothing is changed
    return out


def attention_pattern(q, k, w, attn_bias, cfg, hook):  # [B H T d], [B G S d] -> [B H T S]
    """softmax(q k^T / sqrt(d)): how much of each key a query takes."""
    q = q * cfg.attn_scale(w.index)
    scores = matmul_heads(q, k.swapaxes(-1, -2))
    if cfg.pos_terms:
        scores = hook("c2c", scores)
    if cfg.score_cap:
        scores = capped_(scores, cfg.score_cap)
    if attn_bias is not None:
        scores += attn_bias
    return hook("pattern", softmax_(hook("scores", scores)))


def mlp(x, w, cfg, hook):  # [B T D] -> [B T D]
    """act(x W_in + b_in) W_out + b_out; with a gate act(x W_gate) (x W_in) W_out (Shazeer 2020)."""
    activate = ACTIVATIONS[cfg.act]
    if cfg.gated:
        pre = hook("pre", linear(x, w.W_gate, w.b_gate))  # [B T M]
        post = activate(pre) * hook("pre_linear", linear(x, w.W_in, w.b_in))
    else:
        post = activate(hook("pre", linear(x, w.W_in, w.b_in)))
    return linear(hook("post", post), w.W_out, w.b_out)


def norm(name, x, w, cfg, hook):  # [B T D] -> [B T D]
    """LayerNorm `name`, or in T5 an RMSNorm (Zhang & Sennrich 2019), which takes no mean off.

    Where a model has no norm of that name (ModernBERT's first), x as it is: few norm attn_out and
    mlp_out, what attention and MLP write (Gemma 2).

    A hook sees, and may change, the mean and scale per token too. Raises ValueError that names the
    layer where the stream is NaN, infinite, or so large that its variance is.
    """
    gain = getattr(w, f"{name}_w")
    if gain is None:
        return hook(name, x)
    if cfg.rms_norm:
        scale = hook(f"{name}_scale", checked_scale(name, inverse_rms(x, cfg.eps), w))
        return hook(name, scaled(x, scale, gain))
    mean, scale = mean_and_inverse_std(x, cfg.eps)
    mean = hook(f"{name}_mean", mean)
    scale = hook(f"{name}_scale", checked_scale(name, scale, w))
    bias = getattr(w, f"{name}_b", None)
    return hook(name, normalise(x, mean, scale, gain, bias))


def final_norm(model: Model, x: np.ndarray, *, hook: Hook = identity) -> np.ndarray:  # [B T D]
    """The stream of any layer [B T D] as the task head reads it; `logits` of it is a logit lens.

    A pre-norm stream (config.pre_norm: GPT-2) goes through ln_final. A post-norm stream (BERT) is
    returned unchanged. At the last layer, the logits are those of the model, in all families:

    >>> import minitx
    >>> model = minitx.load("tiny-gpt2")
    >>> trace = minitx.run(model, "A dog")
    >>> lens = minitx.logits(model, minitx.final_norm(model, trace["resid_post", -1]))
    >>> bool((lens == trace["logits"]).all())
    True
    """
    check_model(model)
    if not model.config.pre_norm:
        return x
    return norm("ln_final", x, model.weights, model.config, hook)


def logits(
    model: Model,
    x: np.ndarray,
    *,
    valid: ArrayLike | None = None,
    tokens: Ids | None = None,
    hook: Hook = identity,
) -> np.ndarray:
    """Final residual stream [B T D] -> [B T V] over the vocabulary, [B T C] or [B C] over classes.

    x is the output of `forward`; apply `final_norm` first to the stream of an inner layer: its
    omission cannot be detected here. A head that gives [B C] reads the first valid token, or the
    last in a causal model, so a padded batch needs `valid` [B T]. In causal models, BART, T5 and
    CLIP the ids determine that token: the last that is not pad_token_id, or an end token. tokens:
    these ids [B T], of an encoder-decoder the source's; `run` takes them by itself. heads.py lists
    all heads. Raises ValueError if the checkpoint has no task head.

    The most probable of 1024 tokens at the masked position:

    >>> import minitx
    >>> model = minitx.load("tiny-roberta")
    >>> batch = model.encode(["The cat sat on the<mask>."])
    >>> y = minitx.logits(model, minitx.forward(model, batch.tokens))
    >>> y.shape, model.tokenizer.decode([y[0, -3].argmax()])
    ((1, 11, 1024), ' left')
    """
    check_model(model)
    require_head(model)
    cfg, w = model.config, model.weights
    if is_pooled(cfg.task_head):
        x = classified_token(x, head_tokens(cfg, tokens, valid), cfg)  # [B 1 D]
    if w.W_head is not None:
        x = ACTIVATIONS[cfg.head_act](linear(x, w.W_head, w.b_head))
    if w.ln_head_w is not None:
        x = norm("ln_head", x, w, cfg, identity)
    y = linear(x * cfg.unembed_scale, w.W_U, w.b_U)
    if cfg.logit_cap:
        y = capped_(y, cfg.logit_cap)
    if is_pooled(cfg.task_head):
        y = y[:, 0]
    return hook("logits", y)
