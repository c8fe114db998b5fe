"""What distances add to the scores, walked backward: one bias for all layers, or DeBERTa's terms.

The twins are in distances.py and, of the terms, in model.py. Axis letters: see model.py.
"""

from typing import NamedTuple

import numpy as np

from ..distances import heads_by_rows, relative_bias
from ..kernels import join_heads, matmul_heads, mean_and_inverse_std
from ..masks import Keys
from ..positions import token_numbers
from . import derivatives
from .backward_steps import layer_norm_back, linear_back


def add_to_bias(d_scores, stack):  # [B H T S]
    """A layer's part of the gradient by the one bias that is added in all layers."""
    is_shared = len(stack.value("pos_bias")) == 1
    if is_shared:
        d_scores = d_scores.sum(axis=0, keepdims=True)
    stack.add("d_bias", d_scores)


def relative_bias_back(batch, positions, back):
    """Row r of W_rel gets what was added to the scores for its distances; ALiBi has no table."""
    d_bias = back.kept[back.key("d_bias")]  # [1 H T S], or [B H T S]
    d_bias = back.point("pos_bias", d_bias)
    d_bias = d_bias.transpose(0, 2, 3, 1)
    if back.w.W_rel is None:
        return
    n_rows = len(back.w.W_rel)
    numbers = token_numbers(back.cfg, batch, batch.valid)
    keys = Keys(numbers, batch.valid)
    row = np.arange(n_rows)  # in the place of W_rel: which row was read
    rows = relative_bias(
        back.cfg,
        row[:, None],
        numbers,
        keys,
        positions,
    )
    back.weight("W_rel", derivatives.table, d_bias, rows, n_rows)


class Terms(NamedTuple):
    """What the terms of the scores hand back to queries and keys, each [B H T d]."""

    q: np.ndarray
    k: np.ndarray


def terms_back(d_scores, back):  # [B H T S] -> Terms
    """scores = c2c + c2p + p2c: each term gets the whole gradient."""
    row = back.of_stack().value("pos_row")
    row = row.astype(np.intp)
    of_query = of_key = 0.0
    if "c2p" in back.cfg.pos_terms:
        d_c2p = back.point("c2p", d_scores)
        d_products = by_distance_back(d_c2p, row, back)
        of_query = products_back("q", "k_pos", d_products, back)
    if "p2c" in back.cfg.pos_terms:
        d_p2c = back.point("p2c", d_scores)
        d_products = by_distance_back(
            d_p2c.swapaxes(-1, -2),
            row.swapaxes(-1, -2),
            back,
        )
        of_key = products_back("k", "q_pos", d_products, back)
    return Terms(of_query, of_key)


def products_back(name, rows_name, d_products, back):  # [B H T R] -> [B H T d]
    """Products of queries with keys of distances, or of keys with their queries."""
    scale = back.cfg.attn_scale(back.layer)
    x = back.value(name) * scale
    by_text = matmul_heads(d_products.swapaxes(-1, -2), x)
    d_rows = by_text.sum(axis=0, keepdims=True)
    d_rows = back.point(rows_name, d_rows)
    of_distances_back(rows_name[0].upper(), join_heads(d_rows), back)
    rows = back.value(rows_name) * scale
    return heads_by_rows(d_products, rows.swapaxes(-1, -2))


def of_distances_back(letter, dy, back):  # [1 R A]
    """The queries, or keys, of distances hand to the table, which all layers read."""
    array = letter
    if back.cfg.own_distances:
        array = f"{letter}_pos"
    stack = back.of_stack()
    embed = stack.value("dist_embed")
    d_embed = linear_back(array, dy, embed, back)
    stack.add("d_dist", d_embed)


def by_distance_back(dy, row, back):  # [B H T S], [1 T S] or [B T S] -> [B H T R]
    """Each row gets what all keys at its distance hand back."""
    B, H, T, S = dy.shape
    R = back.cfg.n_distances
    n = len(row)
    first = R * np.arange(n * T)
    cell = row + first.reshape(n, T, 1)  # [n T S]: the product that a score is
    order = np.argsort(cell, axis=None, kind="stable")
    used, starts = np.unique(cell.ravel()[order], return_index=True)
    # texts that share their distances beside the heads, the others one after another
    by_text = dy.reshape(B // n, n, H, T * S)
    by_text = by_text.swapaxes(1, 2)
    flat = by_text.reshape(-1, n * T * S)
    summed = np.zeros((len(flat), n * T * R), dy.dtype)
    summed[:, used] = np.add.reduceat(
        flat[:, order],
        starts,
        axis=1,
    )
    by_head = summed.reshape(B // n, H, n, T, R)
    by_head = by_head.swapaxes(1, 2)
    return by_head.reshape(B, H, T, R)


def distances_back(back):
    """The table of distances, in v2 and v3 behind a norm."""
    d_embed = back.kept[back.key("d_dist")]
    d_embed = back.point("dist_embed", d_embed)
    no_slope = np.zeros_like(back.value("pos_row"))  # rows are numbers of a table
    back.point("pos_row", no_slope)
    if back.w.ln_dist_w is not None:
        table = back.w.W_dist[None]
        mean, scale = mean_and_inverse_std(table, back.cfg.eps)
        d_embed = layer_norm_back(
            "ln_dist",
            d_embed,
            table,
            mean,
            scale,
            back,
        )
    back.weight("W_dist", np.squeeze, d_embed, 0)
