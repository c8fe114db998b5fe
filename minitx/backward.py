"""The forward pass, walked backward: from the gradient by the last stream to those by all before.

Read downward beside model.py, whose functions come here in the opposite order: `stack_back` ->
`block_back` -> `mlp_back`, `attention_back`, `norm_back`; then `embed_back`. `dx` stands for the
gradient d loss / d x, an array of x's shape. Each function takes the gradient by what its twin
returned and gives that by what its twin read. On the way `back.point("q", dq)` meets the gradient
by each point, and `back.weight("W_Q", ...)` that by each array; what is wanted is kept (tape.py).
The formulas are in derivatives.py; axis letters: see model.py.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from . import derivatives
from .activations import ACTIVATIONS
from .distances import relative_bias
from .kernels import linear, matmul_heads
from .masks import Keys
from .model import ENCODER, join_heads, split_heads
from .positions import position_rows, token_numbers, turned


def stack_back(dx, model, batch, positions, back):  # [B T D]
    """From the gradient by a stack's last stream to all before it, as far as any is wanted."""
    if model.config.pre_norm:
        last = back.trace[f"{back.prefix}resid_post", -1]
        dx = norm_back("ln_final", dx, last, back)
    lowest = back.lowest()
    for layer in reversed(model.layers[max(0, lowest) :]):
        dx = block_back(dx, back.of_layer(layer))
    if lowest >= 0:
        return
    if back.has("pos_bias"):
        relative_bias_back(batch, positions, back)
    embed_back(dx, batch, positions, back)


class Writer(NamedTuple):
    """One of the functions that write to the residual stream, and the points around it."""

    back: Callable
    norm: str
    before: str  # the stream that it reads
    out: str  # what it writes
    after: str  # the stream with it


def writers(w):
    """Those of a layer, in the order of the forward pass."""
    attend = Writer(
        self_attention_back,
        norm="ln1",
        before="resid_pre",
        out="attn_out",
        after="resid_mid",
    )
    feed_forward = Writer(
        mlp_back,
        norm="ln2",
        before="resid_mid",
        out="mlp_out",
        after="resid_post",
    )
    if w.cross is None:
        return attend, feed_forward
    attend_source = Writer(
        cross_attention_back,
        norm="ln_cross",
        before="resid_mid",
        out="cross_out",
        after="resid_cross",
    )
    return attend, attend_source, feed_forward._replace(before="resid_cross")


def block_back(dx, back):  # [B T D] -> [B T D]
    """Who wrote to the stream last comes first.

    An addition x + write(x) hands its gradient to both of its parts.
    """
    if back.cfg.parallel:
        return parallel_back(dx, back)
    for writer in reversed(writers(back.w)):
        dx = back.point(writer.after, dx)
        x = back.value(writer.before)
        if back.cfg.norm_residual:
            normed = back.value(writer.norm)
            d_normed = dx + writer.back(dx, normed, back)
            dx = norm_back(writer.norm, d_normed, x, back)
        elif back.cfg.pre_norm:
            normed = back.value(writer.norm)
            d_normed = writer.back(dx, normed, back)
            dx = dx + norm_back(writer.norm, d_normed, x, back)
        else:
            added = x + back.value(writer.out)
            dx = norm_back(writer.norm, dx, added, back)
            dx = dx + writer.back(dx, x, back)
    return back.point("resid_pre", dx)


def parallel_back(dx, back):  # [B T D] -> [B T D]
    """All read the same stream, so it gets what each of them hands back."""
    x = back.value("resid_pre")
    dx = back.point("resid_post", dx)
    total = dx
    for writer in reversed(writers(back.w)):
        normed = back.value(writer.norm)
        d_normed = writer.back(dx, normed, back)
        total = total + norm_back(writer.norm, d_normed, x, back)
    return back.point("resid_pre", total)


def linear_back(name, dy, x, back):  # [... M], [... D] -> [... D]
    """y = x W + b, of the arrays W_name and b_name: the gradient by x is dy W^T."""
    back.weight(f"W_{name}", derivatives.matrix, x, dy)
    back.weight(f"b_{name}", derivatives.bias, dy)
    return linear(dy, back.array(f"W_{name}").T)


def mlp_back(dy, x, back):  # [B T D] -> [B T D]
    """y = act(x W_in + b_in) W_out + b_out; or with a gate."""
    dy = written_back("mlp_out", dy, "out", back.value("post"), back)
    d_post = linear_back("out", dy, back.value("post"), back)
    d_post = back.point("post", d_post)
    if back.cfg.gated:
        return gate_back(d_post, x, back)
    post = None if back.key("post") in back.edited else back.value("post")
    d_pre = derivatives.activation(d_post, back.value("pre"), back.cfg.act, post)
    return linear_back("in", back.point("pre", d_pre), x, back)


def gate_back(d_post, x, back):  # [B T M] -> [B T D]
    """post = act(x W_gate) (x W_in): each factor gets what the other lets through."""
    pre, act = back.value("pre"), back.cfg.act
    active = ACTIVATIONS[act](pre.copy(order="K"))
    d_linear = back.point("pre_linear", d_post * active)
    d_active = d_post * back.value("pre_linear")
    d_pre = back.point("pre", derivatives.activation(d_active, pre, act, active))
    return linear_back("in", d_linear, x, back) + linear_back("gate", d_pre, x, back)


def written_back(name, dy, letter, x, back):  # [B T D] -> [B T D]
    """What is written is x W + b, in some families normed."""
    if back.array(f"{name}_w") is None:
        return back.point(name, dy)
    W = back.array(f"W_{letter}")
    b = back.array(f"b_{letter}")
    written = linear(x, W, b)  # not recorded
    return norm_back(name, dy, written, back)


def self_attention_back(dy, x, back):  # [B T D] -> [B T D]
    """The stream is read three times: as queries, as keys, as values."""
    dy = written_back("attn_out", dy, "O", join_heads(back.value("z")), back)
    dq, dk, dv, d_scores = attention_back(dy, back)
    if back.of_stack().has("pos_bias"):
        add_to_bias(d_scores, back.of_stack())
    dx = linear_back("V", join_heads(dv), x, back)
    dx += placed_back("q", dq, x, back)
    dx += placed_back("k", dk, x, back)
    return dx


def placed_back(name, dy, x, back):  # [B H T d], [B T D] -> [B T D]
    """Queries or keys: a turn is undone by one of the opposite angle, then their norms.

    d turned / d angle is what was turned, a quarter turn further.
    """
    if back.has("pos_angle"):
        angle = back.value("pos_angle")
        scale = back.cfg.rotary[back.layer].scale
        d_angle = quarter_turn_product(dy, back.value(name), angle.shape[-1])
        back.add("pos_angle", d_angle)
        dy = back.point(f"{name}_in", turned(dy, -angle, scale))
    return linear_back(name.upper(), projected_back(name, dy, x, back), x, back)


def projected_back(name, dy, x, back):  # [B H T d], [B T D] -> [B T A]
    """The gradient by x W + b from that by the norm of each head, or of all together."""
    cfg, letter = back.cfg, name.upper()
    if not (cfg.qk_norm or cfg.qk_norm_all):
        return join_heads(dy)
    before = linear(x, back.array(f"W_{letter}"), back.array(f"b_{letter}"))  # not recorded
    if cfg.qk_norm_all:
        return norm_back(f"ln_all_{name}", join_heads(dy), before, back)
    return join_heads(norm_back(f"ln_{name}", dy, split_heads(before, cfg), back))


def cross_attention_back(dy, x, back):  # [B T D] -> [B T D]
    """Queries come from the decoder's stream; keys and values from the encoder's last stream."""
    cross = back.of_cross()
    dq, dk, dv, _ = attention_back(cross.point("out", dy), cross)
    source = last_of_encoder(back.trace)
    back.of_stack().add("source", linear_back("K", join_heads(dk), source, cross))
    back.of_stack().add("source", linear_back("V", join_heads(dv), source, cross))
    return linear_back("Q", join_heads(dq), x, cross)


def last_of_encoder(trace):  # [B S D]
    """What the decoder reads of the encoder."""
    name = f"{ENCODER}ln_final"
    return trace[name] if name in trace else trace[f"{ENCODER}resid_post", -1]


def attention_back(dy, back):  # [B T D] -> [B H T d], [B G S d], [B G S d], [B H T S]
    """scores = scale q k^T, pattern = softmax(scores), z = pattern v, y = z W_O + b_O.

    A product a b hands dy b^T to a, and a^T dy to b. Capped scores c have the slope 1 - (c/cap)^2.
    """
    q = back.value("q")
    n = q.shape[1] // back.value("k").shape[1]  # heads that share keys and values
    k = repeated(n, back.value("k"))
    v = repeated(n, back.value("v"))
    pattern = back.value("pattern")
    scale = back.cfg.attn_scale(back.layer)
    dz = linear_back("O", dy, join_heads(back.value("z")), back)
    dz = back.point("z", split_heads(dz, back.cfg))
    dv = matmul_heads(pattern.swapaxes(-1, -2), dz)
    d_pattern = back.point("pattern", matmul_heads(dz, v.swapaxes(-1, -2)))
    d_scores = back.point("scores", derivatives.softmax(d_pattern, pattern))
    d_product = d_scores
    if back.cfg.score_cap:
        product = matmul_heads(q * scale, k.swapaxes(-1, -2))  # not recorded
        d_product = derivatives.capped(d_scores, product, back.cfg.score_cap)
    dq = matmul_heads(d_product, k * scale)
    dk = matmul_heads(d_product.swapaxes(-1, -2), q * scale)
    dq = back.point("q", dq)
    dk = back.point("k", summed_by(n, dk))
    dv = back.point("v", summed_by(n, dv))
    return dq, dk, dv, d_scores


def repeated(n, x):  # [B G S d] -> [B G*n S d]
    """Every head n times, as n heads of queries read it."""
    return x if n == 1 else np.repeat(x, n, axis=1)


def summed_by(n, x):  # [B H S d] -> [B H/n S d]
    """The sum of every n heads."""
    if n == 1:
        return x
    B, H, S, d = x.shape
    by_group = x.reshape(B, H // n, n, S, d)
    return by_group.sum(axis=2)


def quarter_turn_product(dy, y, r):  # [B H T d] twice -> [B T r]
    """The product of dy and y, a quarter turn further, in the features that are turned."""
    first = dy[..., r : 2 * r] * y[..., :r]
    second = dy[..., :r] * y[..., r : 2 * r]
    return (first - second).sum(axis=1)


def norm_back(name, dy, x, back):  # [B T D] -> [B T D]
    """y = norm(x): the gradient by x directly, and by the numbers that are made of x."""
    dy = back.point(name, dy)
    if back.array(f"{name}_w") is None:
        return dy  # ModernBERT's first
    scale = back.value(f"{name}_scale")
    if not back.cfg.rms_norm:
        return layer_norm_back(name, dy, x, back.value(f"{name}_mean"), scale, back)
    back.weight(f"{name}_w", derivatives.gain, dy, x, np.zeros_like(scale), scale)
    dx, d_scale = derivatives.scaled(dy, x, scale, back.array(f"{name}_w"))
    d_scale = back.point(f"{name}_scale", d_scale)
    return dx + derivatives.inverse_rms(d_scale, x, scale)


def layer_norm_back(name, dy, x, mean, scale, back):  # [B T D] -> [B T D]
    """The same for y = (x - mean) scale w + b."""
    back.weight(f"{name}_w", derivatives.gain, dy, x, mean, scale)
    back.weight(f"{name}_b", derivatives.bias, dy)
    w = back.array(f"{name}_w")
    dx, d_mean, d_scale = derivatives.normalised(dy, x, mean, scale, w)
    d_mean = back.point(f"{name}_mean", d_mean)
    d_scale = back.point(f"{name}_scale", d_scale)
    return dx + derivatives.mean_and_inverse_std(d_mean, d_scale, x, mean, scale)


def add_to_bias(d_scores, stack):  # [B H T S]
    """A layer's part of the gradient by the one bias that is added in all layers."""
    if len(stack.value("pos_bias")) == 1:
        d_scores = d_scores.sum(axis=0, keepdims=True)
    stack.add("d_bias", d_scores)


def relative_bias_back(batch, positions, back):
    """Row r of W_rel gets what was added to the scores for its distances; ALiBi has no table."""
    d_bias = back.kept[back.key("d_bias")]  # [1 H T S], or [B H T S]
    d_bias = back.point("pos_bias", d_bias).transpose(0, 2, 3, 1)
    if back.w.W_rel is None:
        return
    n_rows = len(back.w.W_rel)
    numbers = token_numbers(back.cfg, batch, batch.valid)
    keys = Keys(numbers, batch.valid)
    row = np.arange(n_rows)[:, None]  # in the place of W_rel: which row was read
    rows = relative_bias(back.cfg, row, numbers, keys, positions)
    back.weight("W_rel", derivatives.table, d_bias, rows, n_rows)


def embed_back(dx, batch, positions, back):  # [B T D]
    """A sum of rows of words, positions and token types: each gets the whole gradient."""
    names = [name for name in ("embed", "pos_embed", "type_embed") if back.has(name)]
    if back.w.ln_embed_w is not None:
        added = sum(back.value(name) for name in names)
        dx = norm_back("ln_embed", dx, added, back)
    by_rows = {name: back.point(name, dx) for name in names}
    d_words = by_rows["embed"] * back.cfg.embed_scale
    back.weight("W_E", derivatives.input_rows, d_words, batch.tokens, len(back.w.W_E))
    if "type_embed" in by_rows:
        d_types = by_rows["type_embed"]
        back.weight("W_type", derivatives.table, d_types, batch.types, len(back.w.W_type))
    if "pos_embed" in by_rows:
        numbers = token_numbers(back.cfg, batch, batch.valid)
        rows = position_rows(back.cfg, batch, numbers, positions)
        n_rows = len(back.w.W_pos)
        back.weight("W_pos", derivatives.table, by_rows["pos_embed"], rows, n_rows)
