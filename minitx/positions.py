"""How a token's position enters the model.

Today there is one mechanism: a learned table with a row for each position, which is added to the
word embedding (`learned_rows`, then `embed` in model.py). Two others are usual. Rotary positions
turn queries and keys by an angle that grows with the token's number: a function of q, k and
`token_numbers`, called in `attention` once q and k are split into heads. ALiBi and T5 add a number
for each pair of tokens to the scores: a term beside `attn_bias`. Axis letters: see model.py.
"""

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


def learned_rows(cfg, batch, numbers, positions=None):  # -> [B T]
    """Row of the position table W_pos that each token reads: its number plus the family's offset.

    positions: [T] or [B T] in place of the tokens' own numbers. Raises ValueError if the table has
    no such row.
    """
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
