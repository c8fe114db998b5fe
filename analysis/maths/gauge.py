"""How far a map over frequency and angle is settled by the weights, and how far by a free choice.

The weights of a head determine d of the D columns of each basis (rotation.py). Maps from several
random completions share what these columns give; where the maps differ, any one of them shows a
choice. The gauge is the mean correlation of two such maps within a frequency. G maps, F frequencies
with 0, A bins of angles, T tokens, D model width.

Order: the maps, their mean and spread; their gauge; how much of a signal the head reads.
"""

import numpy as np
import scipy

from . import rotation

LEAST = 1e-6  # of the largest, below which a number is rounding


def energies(maps):
    """Binned energy of each of G maps, (g [F n], theta [n]) as phase_map gives them: [G F A].

    Two maps of 2 frequencies and 3 angles, in 64 bins:

    >>> g, theta = np.ones((2, 3)), np.array([-1.0, 0.0, 1.0])
    >>> E = energies([(g, theta), (g, -theta)])
    >>> E.shape, E.sum(axis=-1)
    ((2, 2, 64), array([[3., 3.],
           [3., 3.]]))
    """
    return np.array([rotation.binned(g, theta) for g, theta in maps])


def spread(energy):
    """Standard deviation over the maps [G F A], over their mean: [F A].

    It is 0 where a map does not depend on the choice.

    The choice moves the energy of the second frequency between two angles, not that of the
    first:

    >>> E = np.array([[[1.0, 1.0], [2.0, 0.0]], [[1.0, 1.0], [0.0, 2.0]]])
    >>> spread(E)
    array([[0., 0.],
           [1., 1.]])
    """
    mean = energy.mean(axis=0)
    return energy.std(axis=0) / np.maximum(mean, max(LEAST * mean.max(), 1e-300))


def shape(energy):
    """How amplitudes are spread over the angles at each f > 0: [... F A] -> [... F - 1 A].

    Rows have mean 0 and norm 1. The spectrum, which all maps of one input share, is taken out. Rows
    below LEAST of the largest are rounding: they stay small.

    A flat row, which has no shape, is 0; so is frequency 0, which is left out:

    >>> shape(np.array([[4.0, 0.0], [1.0, 1.0], [9.0, 1.0]])).round(3)
    array([[ 0.   ,  0.   ],
           [ 0.707, -0.707]])
    """
    rows = np.sqrt(energy)[..., 1:, :]
    rows = rows - rows.mean(axis=-1, keepdims=True)
    norm = np.linalg.norm(rows, axis=-1, keepdims=True)
    largest = norm.max(axis=(-2, -1), keepdims=True)
    return rows / np.maximum(norm, np.maximum(LEAST * largest, 1e-300))


def by_frequency(shapes, other=None):
    """Mean correlation at each f > 0 of two of the shapes [G F - 1 A], or of each with another one.

    other [F - 1 A]. Returns [F - 1].

    Two maps agree at the first frequency and are opposite at the second:

    >>> shapes = shape(np.array([[[1, 1], [4, 0], [4, 0]], [[1, 1], [4, 0], [0, 4]]]))
    >>> by_frequency(shapes).round(9)
    array([ 1., -1.])
    """
    if other is not None:
        return np.sum(shapes.mean(axis=0) * other, axis=-1)
    n = len(shapes)
    # the square of a sum holds each pair twice, and each shape with itself
    of_sum = np.square(shapes.sum(axis=0)).sum(axis=-1)
    with_itself = np.square(shapes).sum(axis=(0, -1))
    return (of_sum - with_itself) / (n * (n - 1))


def gauge(shapes, other=None, frequencies=None):
    """`by_frequency`, averaged over some frequencies [n] above 0, or over all alike.

    1: the choice does not matter. Frequencies at which the input has no energy do not count.

    Two maps that agree at two of three frequencies and are opposite at the third:

    >>> first, second = [[1, 1], [4, 0], [4, 0], [4, 0]], [[1, 1], [4, 0], [4, 0], [0, 4]]
    >>> shapes = shape(np.array([first, second]))
    >>> round(float(gauge(shapes)), 3), round(float(gauge(shapes, frequencies=np.array([1, 2]))), 3)
    (0.333, 1.0)
    """
    correlations = by_frequency(shapes, other)
    has_energy = np.square(shapes).sum(axis=-1).mean(axis=0)  # 1, or about 0
    if frequencies is not None:
        correlations = correlations[frequencies - 1]
        has_energy = has_energy[frequencies - 1]
    return correlations.sum() / max(has_energy.sum(), 1e-300)


def share_read(x, U_Q):
    """Share of the energy of x [T D] at each f > 0 that lies in the span of U_Q [D r]: [F - 1].

    A head that reads the first of two waves, one of 2 and one of 4 cycles in 16 tokens:

    >>> turns = 2 * np.pi * np.arange(16) / 16
    >>> x = np.column_stack([np.cos(2 * turns), np.cos(4 * turns)])
    >>> share_read(x, np.array([[1.0], [0.0]])).round(3)[[1, 3]]
    array([1., 0.])
    """
    whole = np.square(abs(scipy.fft.rfft(x, axis=0)[1:])).sum(axis=1)
    inside = np.square(abs(scipy.fft.rfft(x @ U_Q, axis=0)[1:])).sum(axis=1)
    return inside / np.maximum(whole, max(LEAST**2 * whole.max(), 1e-300))
