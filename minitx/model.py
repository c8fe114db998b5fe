"""The forward pass of a transformer, once for all families.

Read downward: `forward` -> `embed`, `block` -> `attention`, `mlp`, `norm`; then `final_norm` and
`logits`. Every intermediate passes through `x = hook("name", x)`: without a trace that is the
identity, with one it is recorded or replaced (trace.py lists the names); `cfg` are the model's
choices (config.py). Axis letters: B batch, T tokens (queries), S keys, L layers, H heads, D width,
d width of a head, M width inside the MLP, V vocabulary, P positions, N token types, C classes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from . import show
from .cache import Cache
from .config import Config
from .inputs import Batch, Ids, check_batch
from .kernels import (
    ACTIVATIONS,
    empty_feature_major,
    feature_major,
    layer_norm,
    linear,
    matmul_heads,
    mean_and_inverse_std,
    normalise,
    softmax_,
)
from .positions import key_numbers, learned_rows, token_numbers
from .text import Tokenizer

Hook = Callable[..., np.ndarray]  # hook(name, x) or hook(name, x, layer=i) -> what stands for x
Mask = ArrayLike | Callable[[np.ndarray, np.ndarray], np.ndarray]


class Arrays(show.Shown):
    """Arrays by name, as attributes."""

    _summary = show.weights

    def __init__(self, **arrays):
        vars(self).update(arrays)


class Weights(Arrays):
    """A model's arrays outside its layers; None for those that it lacks."""

    W_E: np.ndarray  # [V D]
    W_pos: np.ndarray  # [P D]
    W_type: np.ndarray  # [N D]
    ln_embed_w: np.ndarray  # [D]
    ln_embed_b: np.ndarray
    ln_final_w: np.ndarray  # [D]
    ln_final_b: np.ndarray
    W_head: np.ndarray  # [D D]; from here on the task head
    b_head: np.ndarray
    ln_head_w: np.ndarray  # [D]
    ln_head_b: np.ndarray
    W_U: np.ndarray  # [D V], or [D C]
    b_U: np.ndarray


class Layer(Arrays):
    """The arrays of one layer."""

    index: int  # the layer's number
    W_Q: np.ndarray  # [D D]
    b_Q: np.ndarray
    W_K: np.ndarray  # [D D]
    b_K: np.ndarray
    W_V: np.ndarray  # [D D]
    b_V: np.ndarray
    W_O: np.ndarray  # [D D]
    b_O: np.ndarray
    W_in: np.ndarray  # [D M]
    b_in: np.ndarray
    W_out: np.ndarray  # [M D]
    b_out: np.ndarray
    ln1_w: np.ndarray  # [D]
    ln1_b: np.ndarray
    ln2_w: np.ndarray  # [D]
    ln2_b: np.ndarray


@dataclass(frozen=True, repr=False)
class Model(show.Shown):
    """A checkpoint in memory. Arrays are read-only; matrices are used as x @ W.

    `.weights.W_pos`, `.layers[3].W_Q`: arrays by name, see Weights and Layer.
    `.unused`: tensors of the file that were not read. `.missing`: those that a partial checkpoint
    lacks; they are None, and the model has weights to look at but cannot run.

    >>> import minitx
    >>> model = minitx.load("tiny-roberta")
    >>> model.config.n_ctx, model.weights.W_pos.shape, model.layers[3].W_Q.shape
    (256, (258, 128), (128, 128))
    >>> model.tokenizer.encode("A dog")
    array([  0,  37, 425,  75,   2])
    """

    config: Config
    weights: Weights
    layers: tuple[Layer, ...]
    tokenizer: Tokenizer = None  # type: ignore[assignment]  # minitx.load gives one
    unused: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    _summary = show.model

    def encode(
        self,
        texts: Sequence[str] | Sequence[tuple[str, str]],
        pad: Literal["left", "right"] = "right",
    ) -> Batch:
        """Texts, or pairs of texts -> Batch with .tokens .valid .types [B T]."""
        return self.tokenizer.batch(texts, self.config, pad)


def identity(name, x, layer=None):
    """The hook of a run that nobody watches."""
    return x


def forward(
    model: Model,
    tokens: Ids,
    *,
    valid: ArrayLike | None = None,
    types: ArrayLike | None = None,
    positions: ArrayLike | None = None,
    mask: Mask | None = None,
    cache: Cache | None = None,
    hook: Hook = identity,
) -> np.ndarray:
    """Token ids [B T] (or [T]) -> final residual stream [B T D], after ln_final where there is one.

    valid: [B T] bool, False on padding, which no query sees and which takes no position.
    types: [B T] token types.
    positions: [T] or [B T], counted from 0; by default each text's valid tokens are counted.
    mask: True where a query may look at a key: bool of a shape that broadcasts to [B H T S], or a
    function of token numbers (q, k) -> bool.
    cache: a Cache that holds the tokens before these (causal models only).
    Raises ValueError for input that the model cannot take.

    Padding changes nothing for the tokens before it:

    >>> import minitx
    >>> model = minitx.load("tiny-roberta")
    >>> batch = model.encode(["A dog", "A dog ran"])
    >>> x = minitx.forward(model, batch.tokens, valid=batch.valid)
    >>> alone = minitx.forward(model, batch.tokens[:1, :5])
    >>> x.shape, np.allclose(x[0, :5], alone[0], atol=1e-5)
    ((2, 7, 128), True)
    """
    cfg = model.config
    if model.missing:
        missing = ", ".join(model.missing[:4])
        raise ValueError(f"a partial checkpoint cannot run; missing: {missing} …")
    if cache is not None and not cfg.causal:
        text = f"a cache needs a causal model; in {cfg.model_type} old tokens see new ones"
        raise ValueError(text)
    batch = check_batch(cfg, tokens, valid, types)
    key_valid = batch.valid if cache is None else cache.with_new(batch.valid)  # [B S]
    numbers = token_numbers(cfg, batch, key_valid)
    rows = learned_rows(cfg, batch, numbers, positions)
    attn_bias = attention_bias(cfg, numbers, key_valid, mask, model.weights.W_E.dtype)
    x = embed(batch, rows, model.weights, cfg, hook)
    for layer in model.layers:
        layer_hook = partial(hook, layer=layer.index)
        x = block(x, layer, attn_bias, cfg, layer_hook, cache)
    x = final_norm(model, x, hook=hook)
    if cache is not None:
        cache.valid = key_valid  # last: a pass that is interrupted adds nothing
    return x


def attention_bias(cfg, numbers, key_valid, mask, dtype):  # -> [B H T S] or None
    """What is added to the scores: 0 where a query may see a key, -inf where it may not.

    Padding, the future in a causal model, and the user's mask are hidden. Axes along which all is
    equal have length 1; None stands for zeros alone.
    """
    S, T = key_valid.shape[1], numbers.shape[1]
    visible = key_valid[:, None, None, :]
    if cfg.causal:
        query_column = np.arange(S - T, S)[:, None]
        visible = visible & (np.arange(S) <= query_column)
    if mask is not None:
        visible = visible & _user_mask(cfg, numbers, key_valid, mask)
    if visible.all():
        return None
    return np.where(visible, 0.0, -np.inf).astype(dtype)


def _user_mask(cfg, numbers, key_valid, mask):
    """The user's mask as a checked boolean array that broadcasts to [B H T S]."""
    B, T = numbers.shape
    S = key_valid.shape[1]
    if callable(mask):
        keys = key_numbers(numbers, key_valid)
        mask = mask(numbers[:, None, :, None], keys[:, None, None, :])
    mask = np.asarray(mask)
    wanted = [B, cfg.n_heads, T, S]
    pairs = zip(mask.shape[::-1], wanted[::-1])
    fits = mask.ndim <= 4 and all(size in (1, full) for size, full in pairs)
    if mask.dtype != bool or not fits:
        raise ValueError(
            f"mask is {mask.dtype} {list(mask.shape)}; wanted bool, True where a query may look at "
            f"a key, of a shape that broadcasts to [B H T S] = {wanted}"
        )
    return mask


def embed(batch, rows, w, cfg, hook):  # [B T] -> [B T D]
    """Sum of the rows of words, positions and token types; in BERT a LayerNorm of the sum."""
    x = hook("embed", w.W_E[batch.tokens]) + hook("pos_embed", w.W_pos[rows])
    if batch.types is not None:
        x = x + hook("type_embed", w.W_type[batch.types])
    x = feature_major(x)
    if w.ln_embed_w is not None:
        x = norm("ln_embed", x, w, cfg, hook)
    return x


def block(x, w, attn_bias, cfg, hook, cache=None):  # [B T D] -> [B T D]
    """Attention, then the MLP, add to the residual stream (Xiong et al. 2020, figure 1).

    Here families differ only in where the norm stands: before each of the two (GPT-2), or after
    each addition (BERT).
    """

    def attend(x):
        return hook("attn_out", attention(x, w, attn_bias, cfg, hook, cache))

    def feed_forward(x):
        return hook("mlp_out", mlp(x, w, cfg, hook))

    x = hook("resid_pre", x)
    for write, ln, point in ((attend, "ln1", "resid_mid"), (feed_forward, "ln2", "resid_post")):
        if cfg.pre_norm:
            x = x + write(norm(ln, x, w, cfg, hook))
        else:
            x = norm(ln, x + write(x), w, cfg, hook)
        x = hook(point, x)
    return x


def attention(x, w, attn_bias, cfg, hook, cache=None):  # [B T D] -> [B T D]
    """softmax(q k^T / sqrt(d)) v per head, heads joined by W_O (Vaswani et al. 2017, 3.2)."""
    q = hook("q", split_heads(linear(x, w.W_Q, w.b_Q), cfg))  # [B H T d]
    k = hook("k", split_heads(linear(x, w.W_K, w.b_K), cfg))
    v = hook("v", split_heads(linear(x, w.W_V, w.b_V), cfg))
    if cache is not None:
        k, v = cache.append(w.index, k, v)  # [B H S d]
    scores = matmul_heads(q * cfg.attn_scale(w.index), k.swapaxes(-1, -2))  # [B H T S]
    if attn_bias is not None:
        scores += attn_bias
    pattern = hook("pattern", softmax_(hook("scores", scores)))
    # a view by heads of memory that join_heads gives back without a copy
    out = split_heads(empty_feature_major(x.shape, x.dtype), cfg)
    z = hook("z", matmul_heads(pattern, v, out))  # [B H T d]
    return linear(join_heads(z), w.W_O, w.b_O)


def split_heads(x, cfg):  # [B T D] -> [B H T d]
    """The features of each head by themselves."""
    B, T, _ = x.shape
    return x.reshape(B, T, cfg.n_heads, cfg.d_head).swapaxes(1, 2)


def join_heads(z):  # [B H T d] -> [B T D]
    """The features of all heads side by side."""
    B, H, T, d = z.shape
    return z.swapaxes(1, 2).reshape(B, T, H * d)


def mlp(x, w, cfg, hook):  # [B T D] -> [B T D]
    """act(x W_in + b_in) W_out + b_out."""
    pre = hook("pre", linear(x, w.W_in, w.b_in))  # [B T M]
    post = hook("post", ACTIVATIONS[cfg.act](pre))
    return linear(post, w.W_out, w.b_out)


def norm(name, x, w, cfg, hook):  # [B T D] -> [B T D]
    """LayerNorm `name`; a hook sees, and may change, its mean and scale per token too."""
    mean, scale = mean_and_inverse_std(x, cfg.eps)
    mean = hook(f"{name}_mean", mean)
    scale = hook(f"{name}_scale", scale)
    gain, bias = getattr(w, f"{name}_w"), getattr(w, f"{name}_b")
    return hook(name, normalise(x, mean, scale, gain, bias))


def final_norm(model: Model, x: np.ndarray, *, hook: Hook = identity) -> np.ndarray:  # [B T D]
    """Residual stream of any layer -> as the task head reads it; `logits` then gives a logit lens.

    A stream that nothing norms before the end (config.pre_norm: GPT-2) goes through ln_final. One
    that is normed after each addition (BERT) is returned as it is. So this is right in all
    families, and at the last layer gives the model's own logits:

    >>> import minitx
    >>> model = minitx.load("tiny-gpt2")
    >>> trace = minitx.run(model, "A dog")
    >>> lens = minitx.logits(model, minitx.final_norm(model, trace["resid_post", -1]))
    >>> bool((lens == trace["logits"]).all())
    True
    """
    if not model.config.pre_norm:
        return x
    return norm("ln_final", x, model.weights, model.config, hook)


def logits(
    model: Model,
    x: np.ndarray,
    *,
    valid: ArrayLike | None = None,
    hook: Hook = identity,
) -> np.ndarray:
    """Final residual stream [B T D] -> [B T V] over the vocabulary, or [B C] over classes.

    x is what `forward` gives; a stream from inside goes through `final_norm` first, which nothing
    here can notice if it is left out. A classifier reads the first valid token, or the last in a
    causal model, so a padded batch needs `valid` [B T]. Raises ValueError if the checkpoint has no
    task head.

    What a masked model reads at the masked place, the likeliest of 1024 words:

    >>> import minitx
    >>> model = minitx.load("tiny-roberta")
    >>> batch = model.encode(["The cat sat on the<mask>."])
    >>> y = minitx.logits(model, minitx.forward(model, batch.tokens))
    >>> y.shape, model.tokenizer.decode([y[0, -3].argmax()])
    ((1, 11, 1024), ' left')
    """
    cfg, w = model.config, model.weights
    require_head(model)
    if cfg.task_head == "sequence":
        x = _classified_token(x, valid, cfg)  # [B 1 D]
    if w.W_head is not None:
        x = ACTIVATIONS[cfg.head_act](linear(x, w.W_head, w.b_head))
    if w.ln_head_w is not None:
        x = layer_norm(x, w.ln_head_w, w.ln_head_b, cfg.eps)
    y = linear(x, w.W_U, w.b_U)
    if cfg.task_head == "sequence":
        y = y[:, 0]
    return hook("logits", y)


def require_head(model):
    """Raises ValueError if the model has no head that gives logits."""
    cfg = model.config
    if not cfg.task_head:
        unused = ", ".join(model.unused[:6]) or "none"
        raise ValueError(
            f"this checkpoint ({cfg.architecture or cfg.model_type}) has no head that gives logits;"
            f" tensors that were not read: {unused}"
        )


def _classified_token(x, valid, cfg):  # [B T D] -> [B 1 D]
    """The stream at each text's first valid token, or at its last in a causal model."""
    B, T, _ = x.shape
    valid = np.ones((B, T), bool) if valid is None else np.atleast_2d(np.asarray(valid, bool))
    token = T - 1 - valid[:, ::-1].argmax(axis=1) if cfg.causal else valid.argmax(axis=1)
    return np.take_along_axis(x, token[:, None, None], axis=1)
