"""One number of each token at a point: of a neuron or a head, along a direction, or a function.

T tokens, F numbers of a token: H heads stand side by side.
"""

import numpy as np

from ..inputs import whole_numbers
from .passes import axes_of, encode, vectors


def read_feature(model, point, feature):
    """f(x [T F]) -> [T], and what it is called. Raises ValueError for one that is not there."""
    if callable(feature):
        return checked(feature), f"a function of {point!r}"
    F = vectors(model, encode(model, [0], 0), [point])[point].shape[1]
    values = np.asarray(feature)
    if values.dtype.kind == "f":
        return along(point, values, F), f"a direction at {point!r}"
    axis = axes_of(model, point)[1]
    if axis == "T":
        (i,) = whole_numbers("feature", np.atleast_1d(values), F)
        return column(i), f"number {i} of {point!r}"
    H = model.config.n_kv if axis == "G" else model.config.n_heads
    return of_head(point, values, H, F // H)


def along(point, direction, F):
    """The dot product with a direction [F]."""
    if direction.shape != (F,):
        text = f"the direction is {list(direction.shape)}"
        raise ValueError(f"{text}; {point!r} has {F} numbers a token: expected [{F}]")
    return lambda x: x @ direction


def column(i):
    """One of the numbers."""
    return lambda x: x[:, i]


def of_head(point, values, H, width):
    """The length of a head's vector, or one of its numbers, (head, column)."""
    if values.shape not in ((), (2,)):
        text = f"feature is {values.tolist()!r:.80}"
        raise ValueError(f"{text}; expected a head, or (head, column), at {point!r}")
    head = int(whole_numbers("head", values.ravel()[:1], H)[0])
    if values.ndim:
        i = int(whole_numbers("column", values[1:], width)[0])
        return column(head * width + i), f"head {head}, column {i} of {point!r}"
    own = slice(head * width, (head + 1) * width)
    return lambda x: np.linalg.norm(x[:, own], axis=1), f"length of head {head} at {point!r}"


def checked(function):
    """A user's f(x [T F]) -> [T]. It raises ValueError where it returns something else."""

    def measure(x):
        values = np.asarray(function(x))
        if values.shape != x.shape[:1] or values.dtype.kind not in "fiub":
            text = f"the feature returns {values.dtype} {list(values.shape)} for {list(x.shape)}"
            raise ValueError(f"{text}; expected one number for each token")
        return values

    return measure
