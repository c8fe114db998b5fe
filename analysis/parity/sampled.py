"""Sampled values: a few numbers of a large array, at places that are drawn once and then kept.

Of an array with the axes of a point (minitx.POINTS) only real tokens count. `flat` lays them out in
one row [N], text by text and token by token, and `place` says where one of them came from.
"""

import numpy as np

# letter of an axis -> what its number is called; the axis of tokens is always "token"
NAMES = {"H": "head", "G": "head", "d": "dimension", "D": "dimension", "M": "unit"}
NAMES |= {"E": "dimension", "V": "word", "C": "class", "r": "pair"}


def flat(x, axes, valid):
    """The values of an array at real tokens, as one row [N].

    axes: letters such as "B H T d"; valid: of its tokens [B T].
    """
    token = token_axis(x, axes)
    if token is None:
        return x.reshape(-1)
    return np.moveaxis(x, token, 1)[valid].reshape(-1)


def place(number, shape, axes, valid):
    """Where a value of `flat` comes from: {"text": 0, "token": 5, "head": 3, …}."""
    letters = axes.split()
    if len(letters) != len(shape):
        text, *others = np.unravel_index(number, shape)
        return {"text": int(text)} | dict(zip(["class"], map(int, others)))
    token = _of_tokens(letters)
    if token is None:
        text, *others = np.unravel_index(number, shape)
        named = [NAMES.get(letter, "row") for letter in letters[1:]]
        return {"text": int(text)} | dict(zip(named, map(int, others)))
    others = [i for i in range(1, len(shape)) if i != token]
    row, *rest = np.unravel_index(number, (int(valid.sum()), *(shape[i] for i in others)))
    text, of_token = np.argwhere(valid)[row]
    where = {NAMES.get(letters[i], "key"): int(n) for i, n in zip(others, rest)}
    return {"text": int(text), "token": int(of_token)} | where


def token_axis(x, axes):
    """The number of an array's axis of tokens; None: of a classifier's logits, a table."""
    letters = axes.split()
    return _of_tokens(letters) if x.ndim == len(letters) else None


def _of_tokens(letters):
    """The number of the axis of tokens; None where there is none, as in a table of distances."""
    return next((letters.index(letter) for letter in "TS" if letter in letters), None)


def draw(size, n, rng):
    """Sorted numbers below `size`: n of them, or fewer where one is drawn twice; n = 0: all."""
    if not n or size <= n:
        return np.arange(size, dtype=np.uint32)
    return np.unique(rng.integers(size, size=n)).astype(np.uint32)
