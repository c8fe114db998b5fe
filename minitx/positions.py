"""How a token's position enters the model.

There are two mechanisms. A table has a row for each position, which is added to the word embedding
(`position_rows`, then `embed` in model.py): learned, or in Marian computed once (`sinusoids`). T5
adds a number to the scores instead, by head and by the distance of key and query
(`relative_bias`); MPNet has both. A third is usual: rotary positions turn queries and keys by an
angle that grows with the token's number. Axis letters: see model.py.
"""

import math

import numpy as np

from .inputs import whole_numbers


def takes_position(cfg, batch):  # -> [B T] bool
    """True for tokens that are counted: not padding, and in RoBERTa no padding id inside a text."""
    if cfg.no_position_id is None:
        return batch.valid
    is_padding_id = batch.tokens == cfg.no_position_id
    return batch.valid & ~is_padding_id


def token_numbers(cfg, batch, key_valid):  # -> [B T]
    """Number of each token in its text, from 0; padding is not counted, cached tokens are.

    key_valid: [B S] bool, False on padding; the cached tokens, then those of the batch.
    """
    n_cached = key_valid.shape[1] - batch.tokens.shape[1]
    cached = key_valid[:, :n_cached].sum(axis=1, keepdims=True)
    return cached + np.cumsum(takes_position(cfg, batch), axis=1) - 1


def key_numbers(numbers, key_valid):  # -> [B S]
    """The same for all keys, as a user's mask sees them: those of the batch, and of any cache."""
    if numbers.shape == key_valid.shape:
        return numbers
    return np.cumsum(key_valid, axis=1) - 1


def position_rows(cfg, batch, numbers, positions=None):  # -> [B T], or None without a table
    """Row of the position table W_pos that each token reads: its number plus the family's offset.

    positions: [T] or [B T] in place of the tokens' own numbers. Raises ValueError if the table has
    no such row.
    """
    if not cfg.n_pos:
        return None
    n_tokens = numbers.max() + 1
    if n_tokens > cfg.n_ctx:
        raise ValueError(f"{n_tokens} tokens; this model reads at most {cfg.n_ctx}")
    if positions is None:
        # a RoBERTa padding id inside a text reads the row of its own number; elsewhere only padding
        # comes here, which no query sees, so any row will do
        uncounted_row = cfg.no_position_id or 0
        counted = takes_position(cfg, batch)
        return np.where(counted, numbers + cfg.offset, uncounted_row)
    positions = whole_numbers("positions", positions, cfg.n_ctx)
    if positions.shape not in (numbers.shape, numbers.shape[1:]):
        given = list(positions.shape)
        wanted = list(numbers.shape)
        raise ValueError(f"positions are {given}; wanted [T] or [B T] for tokens {wanted}")
    return np.broadcast_to(positions + cfg.offset, numbers.shape)


def sinusoids(n, D):  # -> [n D]
    """sin(p / 10000^(2i/D)), then the cosines of the same (Vaswani et al. 2017, 3.5).

    All sines come first, as in Marian; of an odd width they have one more. They are rounded to
    float32, with which such models were trained.
    """
    i = np.arange((D + 1) // 2)
    angle = np.arange(n)[:, None] / 10000 ** (2 * i / D)
    table = np.concatenate([np.sin(angle), np.cos(angle[:, : D // 2])], axis=1)
    return table.astype(np.float32)


def relative_bias(cfg, W_rel, numbers, keys, positions=None):  # -> [1 H T S], or [B H T S]
    """What is added to the scores, by distance of key and query (Raffel et al. 2019, 2.1).

    A distance is counted in columns, padding included, so that it is the same in every text.
    positions: [S] or [B S] in place of the columns; where there is a table as well (MPNet), they
    are for that alone, as in the reference library.
    """
    B, T = numbers.shape
    S = keys.valid.shape[1]
    column = np.arange(S)
    if positions is not None and not cfg.n_pos:
        column = np.asarray(positions)
    column = np.atleast_2d(column)  # [1 S] or [B S]
    if column.shape not in ((1, S), (B, S)):
        given, wanted = list(column.shape), [B, S]
        raise ValueError(f"positions are {given}; wanted [S] or [B S] for keys {wanted}")
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
