"""How a token's place enters the model: one of five ways, or none (`Config.mechanisms`).

| mechanism | what it does | here | point |
|---|---|---|---|
| learned | a row of a table is added to the word embedding | `position_rows` | pos_embed |
| sinusoidal | the same, but the table is computed (Marian) | `sinusoids` | pos_embed |
| rotary | queries and keys are turned by an angle (Llama) | `angles`, `turned` | pos_angle |
| buckets | a learned number is added to scores (T5) | `relative_bias` | pos_bias |
| alibi | scores fall with the distance (BLOOM) | `slopes`, `alibi` | pos_bias |

MPNet has a learned table and buckets. A causal model without any still knows places: its mask shows
each token one key more than the token before it. Axis letters: see model.py; r pairs of features.
"""

import functools
import math
from typing import NamedTuple

import numpy as np

from .inputs import check_positions
from .masks import attention_bias


class Place(NamedTuple):
    """How attention knows the places of tokens, and what a query may see."""

    angle: np.ndarray | None  # [B T r]: by which queries and keys are turned
    scale: float  # factor on what is turned
    bias: np.ndarray | None  # what is added to the scores; -inf hides a key


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
    T = batch.tokens.shape[1]
    cached = key_valid[:, :-T].sum(axis=1, keepdims=True)
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
    rows = check_positions(positions, numbers.shape, cfg.n_ctx) + cfg.offset
    return np.broadcast_to(rows, numbers.shape)


def sinusoids(n, D):  # -> [n D]
    """sin(p / 10000^(2i/D)), then the cosines of the same (Vaswani et al. 2017, 3.5).

    All sines come first, as in Marian; of an odd width they have one more. They are rounded to
    float32, with which such models were trained.
    """
    i = np.arange((D + 1) // 2)
    angle = np.arange(n)[:, None] / 10000 ** (2 * i / D)
    table = np.concatenate([np.sin(angle), np.cos(angle[:, : D // 2])], axis=1)
    return table.astype(np.float32)


def frequencies(base, width):  # -> [r]
    """base^(-2i/width): radians from token to token of each pair of features (Su et al. 2021).

    The first pair turns once in 2 pi tokens, the last once in nearly 2 pi base. rotary.py has known
    changes of these, for longer texts.
    """
    two_i = np.arange(0, width, 2)
    return base ** (-two_i / width)


def angles(frequencies, numbers, dtype):  # [B T] -> [B T r]
    """Number of each token times the frequency of each pair of features."""
    by_feature = np.multiply.outer(frequencies, numbers).astype(dtype)
    return by_feature.transpose(1, 2, 0)


def turned(x, angle, scale=1.0):  # [B H T d], [B T r] -> [B H T d]
    """Queries or keys, each pair of features (x_i, x_{r+i}) turned by its angle (Su et al. 2021).

    So the product of a query and a key depends on their distance alone. Features from 2r on stay
    as they are (GPT-NeoX).
    """
    r = angle.shape[-1]
    angle = angle[:, None]  # [B 1 T r]
    cos = scale * np.cos(angle)
    sin = scale * np.sin(angle)
    first = x[..., :r]
    second = x[..., r : 2 * r]
    out = np.copy(x, order="K")
    out[..., :r] = first * cos - second * sin
    out[..., r : 2 * r] = second * cos + first * sin
    return out


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


def places(model, numbers, keys, hook, positions=None, mask=None):
    """The Place of every layer; layers that see as far and are turned alike have the same one.

    numbers: of the queries [B T]. positions, mask: as for `forward`.
    """
    cfg, dtype = model.config, model.weights.W_E.dtype
    by_distance = None
    if cfg.alibi:
        by_distance = alibi(cfg, numbers, keys, positions).astype(dtype)
    elif model.weights.W_rel is not None:
        by_distance = relative_bias(cfg, model.weights.W_rel, numbers, keys, positions)
    if by_distance is not None:
        by_distance = hook("pos_bias", by_distance)
    if positions is not None and cfg.rotary:
        numbers = check_positions(positions, numbers.shape)

    @functools.cache
    def place(rotary, window):
        bias = attention_bias(cfg, numbers, keys, mask, cfg.causal, window=window)
        if by_distance is not None:
            bias = by_distance if bias is None else by_distance + bias
        if rotary is None:
            return Place(None, 1.0, bias)
        return Place(angles(rotary.frequencies, numbers, dtype), rotary.scale, bias)

    everywhere = (None,) * cfg.n_layers
    return [*map(place, cfg.rotary or everywhere, cfg.windows or everywhere)]
