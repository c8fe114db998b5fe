"""What is added to the scores by the distance of key and query: buckets (T5), ALiBi (BLOOM).

And in DeBERTa by what stands at a distance: the rows that queries and keys are compared with. Axis
letters: see model.py.
"""

import math
from typing import NamedTuple

import numpy as np

from .inputs import check_positions
from .kernels import layer_norm, linear, matmul_heads, split_heads


def slopes(H):  # -> [H]
    """By how much the scores of each head fall from key to key: 2^(-8i/H) (Press et al. 2022, 3).

    Where H is no power of two, heads beyond the largest one below it take every other slope of
    twice as many heads, as in the published code.
    """
    n = 1 << (H.bit_length() - 1)
    i = np.arange(n)
    own = 2.0 ** (-8 / n * (i + 1))
    between = 2.0 ** (-8 / n * (i + 0.5))
    return np.append(own, between)[:H]


def alibi(cfg, numbers, keys, positions=None):  # -> [1 H T S], or [B H T S]
    """-slope * distance of key and query, in tokens: what is added to the scores.

    positions: [S] or [B S] in place of the tokens' numbers.
    """
    T = numbers.shape[1]
    places = keys.numbers
    if positions is not None:
        places = check_positions(positions, places.shape, axis="S", name="keys")
        numbers = places[:, -T:]
    if (places == places[:1]).all():  # one for all texts
        places = places[:1]
        numbers = numbers[:1]
    distance = abs(places[:, None, :] - numbers[:, :, None])
    slope = slopes(cfg.n_heads)[:, None, None]
    return -slope * distance[:, None]


def relative_bias(cfg, W_rel, numbers, keys, positions=None):  # -> [1 H T S], or [B H T S]
    """What is added to the scores, by distance of key and query (Raffel et al. 2019, 2.1)."""
    distance = key_distance(cfg, numbers, keys, positions)
    bias = W_rel[bucket(cfg, distance)]  # [1 T S H]
    return bias.transpose(0, 3, 1, 2)


def key_distance(cfg, numbers, keys, positions=None):  # -> [1 T S], or [B T S]
    """Key minus query, counted in columns, padding included: the same in every text.

    positions: [S] or [B S] in place of the columns; where there is a table as well (MPNet), they
    are for that alone, as in the reference library.
    """
    B, T = numbers.shape
    S = keys.valid.shape[1]
    column = np.arange(S)[None]  # [1 S], or [B S]
    if positions is not None and not cfg.n_pos:
        column = check_positions(positions, (B, S), axis="S", name="keys")
    query_column = column[:, S - T :]
    return column[:, None, :] - query_column[:, :, None]


def bucket(cfg, distance):
    """Row of W_rel for each distance key - query.

    Half of the buckets have one distance each; in the other half they grow by a constant factor up
    to `max_distance`, and the last has all that is farther. An encoder has as many again for keys
    after the query; in a decoder there are none.
    """
    n = cfg.n_buckets
    if cfg.causal:
        first = 0
        distance = np.minimum(distance, 0)
    else:
        n //= 2
        first = np.where(distance > 0, n, 0)
    n_exact = n // 2
    far = abs(distance)
    # in float32, as in the reference library: what lies between two buckets is rounded as there
    ratio = np.maximum(far, n_exact).astype(np.float32) / n_exact
    growth = np.log(ratio) / math.log(cfg.max_distance / n_exact)
    coarse = n_exact + (growth * (n - n_exact)).astype(int)
    coarse = np.minimum(coarse, n - 1)
    return first + np.where(far < n_exact, far, coarse)


class Distances(NamedTuple):
    """What stands at each distance (He et al. 2021), as a layer reads it."""

    embed: np.ndarray  # [1 R D]: rows of W_dist, in DeBERTa v2 and v3 normed
    row: np.ndarray  # [1 T S], or [B T S]: which of them a query and a key are apart


def distances(cfg, w, numbers, keys, hook, positions=None):
    """The Distances of a pass; positions: as for `key_distance`."""
    embed = table(cfg, w)
    distance = key_distance(cfg, numbers, keys, positions)
    row = distance_row(cfg, distance)
    row = row.astype(embed.dtype)
    return Distances(
        embed=hook("dist_embed", embed),
        row=hook("pos_row", row),
    )


def table(cfg, w):  # -> [1 R D]
    """W_dist as layers read it."""
    embed = w.W_dist[None]
    if w.ln_dist_w is None:
        return embed
    return layer_norm(embed, w.ln_dist_w, w.ln_dist_b, cfg.eps)


def distance_row(cfg, distance):
    """Row of W_dist for each distance key - query: the middle one for 0, the last for far left.

    What is farther than there are rows reads the last one on its side.
    """
    half = cfg.n_distances // 2
    to_left = -distance
    if cfg.log_distances:
        to_left = log_distance(to_left, half, cfg.max_distance)
    return np.clip(to_left + half, 0, cfg.n_distances - 1)


def log_distance(distance, half, largest):
    """Distances up to half / 2 as they are; others grow by a constant factor, `largest` to half."""
    n_exact = half // 2
    far = abs(distance)
    # in float32, as in the reference library: what lies between two rows is rounded as there
    ratio = np.maximum(far, n_exact).astype(np.float32) / n_exact
    most = np.float32((largest - 1) / n_exact)
    growth = np.log(ratio) / np.log(most)
    steps = np.ceil(growth * (n_exact - 1))
    coarse = n_exact + steps.astype(int)
    return np.where(
        far <= n_exact,
        distance,
        np.sign(distance) * coarse,
    )


def place_terms(q, k, w, place, cfg, hook):  # [B H T d] twice -> [B H T S]
    """Content with position and position with content: terms of scores (He et al. 2021, 3.1).

    A query is compared with the key of its distance to each key, a key with the query of its
    distance to each query.
    """
    scale = cfg.attn_scale(w.index)
    embed, row = place.distances
    terms = [] if place.bias is None else [place.bias]
    if "c2p" in cfg.pos_terms:
        products = heads_by_rows(q * scale, of_distances("K", embed, w, cfg, hook))
        terms.append(hook("c2p", by_distance(products, row)))
    if "p2c" in cfg.pos_terms:
        products = heads_by_rows(k * scale, of_distances("Q", embed, w, cfg, hook))
        p2c = by_distance(products, row.swapaxes(-1, -2))
        terms.append(hook("p2c", p2c.swapaxes(-1, -2)))
    return sum(terms)


def of_distances(letter, embed, w, cfg, hook):  # [1 R D] -> [1 H R d]
    """The queries, or keys, of all distances, by matrices of their own or those of the words."""
    name = f"{letter}_pos" if cfg.own_distances else letter
    y = linear(embed, getattr(w, f"W_{name}"), getattr(w, f"b_{name}"))
    return hook(f"{letter.lower()}_pos", split_heads(y, cfg))


def heads_by_rows(x, rows):  # [B H T d], [1 H R d] -> [B H T R]
    """Each head's products with all of its rows, the same for all texts."""
    shape = len(x), *rows.shape[1:]
    by_text = np.broadcast_to(rows, shape)
    return matmul_heads(x, by_text.swapaxes(-1, -2))


def by_distance(products, row):  # [B H T R], [1 T S] or [B T S] -> [B H T S]
    """Of what a query, or a key, has with each row, that with the row of each distance."""
    of_heads = row[:, None].astype(np.intp)
    return np.take_along_axis(products, of_heads, axis=-1)
