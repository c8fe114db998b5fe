"""What kind of thing an answer is: an array, compared up to rounding, or a function."""

import numpy as np

from . import Wrong

ROUNDING = 1e-4  # of the largest number; float32 gives 1e-6 in a pass of these models


def is_close(x, y):
    """Whether two arrays have one shape, and differ by rounding alone."""
    if np.shape(x) != np.shape(y):
        return False
    return bool(np.abs(np.subtract(x, y)).max() <= ROUNDING * np.abs(y).max())


def refuse(answer, wrong, hint):
    """Raise Wrong with a hint if the answer is this wrong one."""
    if is_close(answer, wrong):
        raise Wrong(hint)


def needs_function(answer, example):
    """Raise Wrong if the answer cannot be called; the hint shows how one is written."""
    if not callable(answer):
        kind = type(answer).__name__
        raise Wrong(f"wanted a function, such as {example}; this is a value ({kind})")
