"""How far two arrays are from each other."""

import numpy as np


def max_error(a, b):
    return np.abs(a - b).max()
