"""What a query may not see: padding, the future, what the user hides. Axis letters: model.py."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

Mask = ArrayLike | Callable[[np.ndarray, np.ndarray], np.ndarray]


class Keys(NamedTuple):
    """The tokens that queries may look at."""

    numbers: np.ndarray  # [B S]: of each in its text
    valid: np.ndarray  # [B S] bool: False on padding


def attention_bias(cfg, numbers, keys, mask, causal=False, *, window=None, name="mask"):
    """What is added to the scores: 0 where a query may see a key, -inf where it may not.

    numbers: of the queries [B T]. name: the argument that the mask was given as. Hidden are
    padding, the future where `causal`, keys more than `window` tokens away, and what the user's
    mask hides. The result broadcasts to [B H T S]: an axis along which all values are equal has
    length 1; None means that all are 0.
    """
    T, S = numbers.shape[1], keys.valid.shape[1]
    visible = keys.valid[:, None, None, :]
    query_column, key_column = np.arange(S - T, S)[:, None], np.arange(S)
    if causal:
        visible = visible & (key_column <= query_column)
    if window is not None:
        visible = visible & (abs(key_column - query_column) <= window)
    if mask is not None:
        visible = visible & user_mask(cfg, numbers, keys, mask, name)
    if visible.all():
        return None
    return np.where(visible, np.float32(0), np.float32(-np.inf))


def user_mask(cfg, numbers, keys, mask, name):
    """The user's mask as a boolean array that broadcasts to [B H T S].

    Raises ValueError, with the name of the argument, for any other.
    """
    B, T = numbers.shape
    if callable(mask):
        mask = mask(numbers[:, None, :, None], keys.numbers[:, None, None, :])
    mask = np.asarray(mask)
    wanted = [B, cfg.n_heads, T, keys.valid.shape[1]]
    pairs = zip(mask.shape[::-1], wanted[::-1])
    fits = mask.ndim <= 4 and all(size in (1, full) for size, full in pairs)
    if mask.dtype != bool or not fits:
        raise ValueError(
            f"{name} is {mask.dtype} {list(mask.shape)}; wanted bool, True where a query may look "
            f"at a key, of a shape that broadcasts to [B H T S] = {wanted}"
        )
    return mask
