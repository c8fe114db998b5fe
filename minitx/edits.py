"""What an edit puts in the place of a point: an array, or a function of what was there."""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import ArrayLike

from .inputs import check_unmasked
from .points import expand

Edit = ArrayLike | Callable[[np.ndarray], ArrayLike]


def edited(key, x, edit):
    """What an edit puts in the place of x: an array of its shape or of x[0]'s, or one number."""
    value = edit(x.copy(order="K")) if callable(edit) else edit
    check_unmasked(f"the edit of {key!r}", value)
    try:
        value = np.asarray(value)
    except ValueError:  # rows of different lengths
        value = np.asarray(value, object)
    new = np.empty_like(x)
    fits = value.shape in (x.shape, x.shape[1:], ())
    fits = fits and np.can_cast(value.dtype, x.dtype, "same_kind")
    if not fits or value.dtype == object:
        given, wanted = (f"{y.dtype} {list(y.shape)}" for y in (value, x))
        text = f"the edit of {key!r} returns {given}; wanted {wanted}"
        raise ValueError(f"{text}, {list(x.shape[1:])} for all texts, or one number")
    new[...] = value
    return new


def edits_by_point(edits, available, model):
    """{point: edit}; an edit of one layer wins against one of the same point in all layers."""
    if not isinstance(edits, Mapping):
        raise ValueError(
            f"edits is {edits!r:.80}; wanted a dictionary: {{point: array or function}}"
        )
    by_point = {}
    general_first = sorted(edits, key=lambda key: isinstance(key, tuple))
    for key in general_first:
        for point in expand([key], available, model):
            by_point[point] = edits[key]
    return by_point
