"""What is added to the scores by the distance of key and query: buckets (T5), ALiBi (BLOOM).

Axis letters: see model.py.
"""

import math

import numpy as np

from .inputs import check_positions


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
    """What is added to the scores, by distance of key and query (Raffel et al. 2019, 2.1).

    A distance is counted in columns, padding included, so that it is the same in every text.
    positions: [S] or [B S] in place of the columns; where there is a table as well (MPNet), they
    are for that alone, as in the reference library.
    """
    B, T = numbers.shape
    S = keys.valid.shape[1]
    column = np.arange(S)[None]  # [1 S], or [B S]
    if positions is not None and not cfg.n_pos:
        column = check_positions(positions, (B, S), axis="S", name="keys")
    query_column = column[:, S - T :]
    distance = column[:, None, :] - query_column[:, :, None]
    bias = W_rel[bucket(cfg, distance)]  # [1 T S H]
    return bias.transpose(0, 3, 1, 2)


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
