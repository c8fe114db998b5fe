"""How a token's position enters the model: one of six ways, or none (`Config.mechanisms`).

| mechanism | what it does | here | point |
|---|---|---|---|
| learned | a row of a table is added to the word embedding | `position_rows` | pos_embed |
| sinusoidal | the same, but the table is computed (Marian) | `sinusoids` | pos_embed |
| rotary | queries and keys are turned by an angle (Llama) | `angles`, `turned` | pos_angle |
| buckets | a learned number is added to scores (T5) | distances.py | pos_bias |
| alibi | scores fall with the distance (BLOOM) | distances.py | pos_bias |
| disentangled | queries and keys are compared with distances (DeBERTa) | distances.py | c2p, p2c |

MPNet has a learned table and buckets. A causal model without any still knows places: its mask shows
each token one key more than the token before it. Axis letters: see model.py; r pairs of features.
"""

import functools
from typing import NamedTuple

import numpy as np

from .distances import Distances, alibi, distances, relative_bias
from .inputs import TooLong, check_positions
from .masks import attention_bias


class Place(NamedTuple):
    """How attention knows the positions of tokens, and what a query may see."""

    angle: np.ndarray | None  # [B T r]: by which queries and keys are turned
    scale: float  # factor on what is turned
    bias: np.ndarray | None  # what is added to the scores; -inf hides a key
    distances: Distances | None = None  # what queries and keys are compared with


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
    return cached + takes_position(cfg, batch).cumsum(axis=1) - 1


def key_numbers(numbers, key_valid):  # -> [B S]
    """The same for all keys, as a user's mask sees them: those of the batch, and of any cache."""
    if numbers.shape == key_valid.shape:
        return numbers
    return key_valid.cumsum(axis=1) - 1


def position_rows(cfg, batch, numbers, positions=None):  # -> [B T], or None without a table
    """Row of the position table W_pos that each token reads: its number plus the family's offset.

    positions: [T] or [B T] in place of the tokens' own numbers. Raises TooLong for more tokens than
    the table has rows for, ValueError for positions that it does not have.
    """
    if not cfg.n_pos:
        return None
    n_tokens = numbers.max() + 1
    if n_tokens > cfg.n_ctx:
        raise TooLong(f"{n_tokens} tokens; this model reads at most {cfg.n_ctx}")
    if positions is None:
        # the row before the first, as in OPT and RoBERTa, whose heads may read such a token; where
        # the table begins with the first position it is the first: no query sees such a token
        uncounted_row = max(cfg.offset - 1, 0)
        return np.where(takes_position(cfg, batch), numbers + cfg.offset, uncounted_row)
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
    return np.multiply.outer(frequencies, numbers).astype(dtype).transpose(1, 2, 0)


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
    apart = None
    if cfg.n_distances:
        apart = distances(cfg, model.weights, numbers, keys, hook, positions)
    if positions is not None and cfg.rotary:
        numbers = check_positions(positions, numbers.shape)

    @functools.cache
    def place(rotary, window):
        bias = attention_bias(cfg, numbers, keys, mask, cfg.causal, window=window)
        if by_distance is not None:
            bias = by_distance if bias is None else by_distance + bias
        if rotary is None:
            return Place(None, 1.0, bias, apart)
        frequencies = rotary.for_length(int(numbers.max()) + 1).frequencies
        return Place(angles(frequencies, numbers, dtype), rotary.scale, bias)

    everywhere = (None,) * cfg.n_layers
    return [*map(place, cfg.rotary or everywhere, cfg.windows or everywhere)]
