"""The forward pass, walked backward: from the gradient by the last stream to those by all before.

Read downward beside model.py, whose functions come here in the opposite order: `stack_back` ->
`block_back` -> `mlp_back`, `attention_back`, `norm_back`; then `embed_back`. `dx` stands for the
gradient d loss / d x, an array of x's shape. Each function takes the gradient by what its twin
returned and gives that by what its twin read. On the way `back.point("q", dq)` meets the gradient
by each point, and `back.weight("W_Q", ...)` that by each array; what is wanted is kept (tape.py).
The formulas are in derivatives.py, linear layers and norms in backward_steps.py, distances in
backward_distances.py; axis letters: see model.py.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..activations import ACTIVATIONS
from ..kernels import linear, matmul_heads
from ..model import ENCODER, join_heads, split_heads
from ..positions import position_rows, token_numbers, turned
from . import derivatives
from .backward_distances import add_to_bias, distances_back, relative_bias_back, terms_back
from .backward_steps import linear_back, norm_back


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
    if back.has("dist_embed"):
        distances_back(back)
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
    dx = linear_back("V", limited_back("V", join_heads(dv), x, back), x, back)
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
    dy = limited_back(name.upper(), projected_back(name, dy, x, back), x, back)
    return linear_back(name.upper(), dy, x, back)


def projected_back(name, dy, x, back):  # [B H T d], [B T D] -> [B T A]
    """The gradient by x W + b from that by the norm of each head, or of all together."""
    cfg, letter = back.cfg, name.upper()
    if not (cfg.qk_norm or cfg.qk_norm_all):
        return join_heads(dy)
    before = linear(x, back.array(f"W_{letter}"), back.array(f"b_{letter}"))  # not recorded
    if cfg.qk_norm_all:
        return norm_back(f"ln_all_{name}", join_heads(dy), before, back)
    return join_heads(norm_back(f"ln_{name}", dy, split_heads(before, cfg), back))


def limited_back(letter, dy, x, back):  # [B T A], [B T D] -> [B T A]
    """Where x W + b is beyond its limit, nothing comes back (OLMo)."""
    if not back.cfg.qkv_limit:
        return dy
    before = linear(x, back.array(f"W_{letter}"), back.array(f"b_{letter}"))  # not recorded
    return dy * (abs(before) <= back.cfg.qkv_limit)


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
    dz = back.point("z", heads_back(dy, back))
    dv = matmul_heads(pattern.swapaxes(-1, -2), dz)
    d_pattern = back.point("pattern", matmul_heads(dz, v.swapaxes(-1, -2)))
    d_scores = back.point("scores", derivatives.softmax(d_pattern, pattern))
    d_product = d_scores
    if back.cfg.score_cap:
        product = matmul_heads(q * scale, k.swapaxes(-1, -2))  # not recorded
        d_product = derivatives.capped(d_scores, product, back.cfg.score_cap)
    d_product = back.point("c2c", d_product)
    dq = matmul_heads(d_product, k * scale)
    dk = matmul_heads(d_product.swapaxes(-1, -2), q * scale)
    if back.cfg.pos_terms:
        of_places = terms_back(d_scores, back)
        dq, dk = dq + of_places.q, dk + of_places.k
    dq = back.point("q", dq)
    dk = back.point("k", summed_by(n, dk))
    dv = back.point("v", summed_by(n, dv))
    return dq, dk, dv, d_scores


def heads_back(dy, back):  # [B T D] -> [B H T d]
    """A sum over heads hands its gradient to each; where they are edited, none reaches z."""
    z, key = back.value("z"), back.key("head_out")
    if key in back.wanted:
        back.kept[key] = np.repeat(dy[:, None], z.shape[1], axis=1)
    if key in back.edited:
        back.weight("b_O", derivatives.bias, dy)
        return np.zeros_like(z)
    return split_heads(linear_back("O", dy, join_heads(z), back), back.cfg)


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


def embed_back(dx, batch, positions, back):  # [B T D]
    """A sum of rows of words, positions and token types: each gets the whole gradient."""
    names = [name for name in ("embed", "pos_embed", "type_embed") if back.has(name)]
    added = sum(back.value(name) for name in names)
    if back.w.W_map is not None:
        dx = linear_back("map", dx, back.value("ln_embed"), back)
    if back.w.ln_embed_w is not None:
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
