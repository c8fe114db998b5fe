"""Frequencies and principal components of a table whose rows are positions.

T rows, D columns, F = T//2 + 1. A peak is a local maximum of a spectrum; a frequency below
`lowest(T)` is drift or a slow wave, not a peak "away from 0".

Order: amplitude spectrum, a filter, its summary over columns, its peaks, peaks above chance; then
principal components.
"""

import numpy as np
import scipy
from numpy.lib.stride_tricks import sliding_window_view

from . import nulls

QUARTILES = (0.25, 0.5, 0.75)
DRIFT = 4  # cycles over a table: up to this number a wave and a drift look the same
BANDS = 16  # of neighbouring frequencies, over which `rise` takes means: single lines are noisy
EMPTY = 1e-6  # of the highest band: what is lower than this counts as this
SLOW = 16  # tokens: waves of a longer period separate near from far, not one token from the next


def amplitude(x):
    """|rfft| of each column, no window: [T D] -> [F D]; row f is f cycles in T tokens.

    A wave of 3 cycles in 16 rows:

    >>> x = np.cos(2 * np.pi * 3 * np.arange(16) / 16)[:, None]
    >>> amplitude(x)[:, 0].round(3)
    array([0., 0., 0., 8., 0., 0., 0., 0., 0.])
    """
    return np.abs(scipy.fft.rfft(np.asarray(x), axis=0))


def mean_amplitude(x):
    """Amplitude at each f, mean over the columns: [T D] -> [F].

    >>> turns = 2 * np.pi * np.arange(16) / 16
    >>> mean_amplitude(np.column_stack([np.cos(3 * turns), np.sin(5 * turns)])).round(3)
    array([0., 0., 0., 4., 0., 4., 0., 0., 0.])
    """
    return amplitude(x).mean(axis=1)


def bandpass(x, low, high):
    """Each column of [T D] with only its frequencies low <= f <= high, in cycles in T tokens.

    No phase is moved. The mean, f = 0, is removed unless low is 0. Raises ValueError if low > high.

    From a mean of 5 and a wave of 3 cycles, the wave is left:

    >>> wave = np.cos(2 * np.pi * 3 * np.arange(16) / 16)[:, None]
    >>> np.allclose(bandpass(5 + wave, 3, 3), wave)
    True
    """
    if low > high:
        raise ValueError(f"the band is from {low} to {high}; wanted low before high")
    lines = scipy.fft.rfft(np.asarray(x), axis=0)
    f = np.arange(len(lines))
    lines[(f < low) | (f > high)] = 0
    return scipy.fft.irfft(lines, len(x), axis=0)


def summary(amplitudes):
    """Mean [F] and quartiles [3 F] over the columns of [F D].

    >>> mean, quartiles = summary(np.array([[0.0, 1.0, 2.0, 3.0, 4.0], [5.0, 5.0, 5.0, 5.0, 5.0]]))
    >>> mean, quartiles
    (array([2., 5.]), array([[1., 5.],
           [2., 5.],
           [3., 5.]]))
    """
    return amplitudes.mean(axis=1), np.quantile(amplitudes, QUARTILES, axis=1)


def period(frequency, T):
    """Tokens in one cycle, T / frequency; infinite for frequency 0.

    >>> period(np.array([0, 4, 32]), T=512)
    array([ inf, 128.,  16.])
    """
    with np.errstate(divide="ignore"):
        return T / np.asarray(frequency, float)


def peaks(spectrum, times=5.0):
    """Frequencies of the local maxima of [F] above `times` its median, the highest first.

    Frequency 0 is left out.

    >>> peaks([9, 1, 1, 8, 1, 1, 20, 1, 1, 1, 1])
    array([6, 3])
    """
    return maxima(spectrum, times * np.median(np.asarray(spectrum)[1:]))


def line_shares(amplitudes):
    """Share of each column's power in its strongest line, and its frequency: [F D] -> [D], [D].

    A line is a frequency with its two neighbours, into which a wave leaks if its number of cycles
    is not an integer. Frequency 0 is left out; both are 0 for a column that does not vary.

    A wave of 5 cycles, and noise:

    >>> noise = np.random.default_rng(0).standard_normal(64)
    >>> x = np.stack([np.cos(2 * np.pi * 5 * np.arange(64) / 64), noise], axis=1)
    >>> shares, frequencies = line_shares(amplitude(x))
    >>> shares.round(2), frequencies
    (array([1.  , 0.19]), array([5, 3]))
    """
    power = np.square(amplitudes, dtype=np.float64)
    power[0] = 0
    frequencies = power.argmax(axis=0)
    padded = np.vstack([power, np.zeros_like(power[:1])])
    columns = np.arange(power.shape[1])
    line = sum(padded[frequencies + step, columns] for step in (-1, 0, 1))
    total = power.sum(axis=0)
    return np.divide(line, total, out=np.zeros_like(total), where=total > 0), frequencies


def lowest(T):
    """Lowest frequency of a peak away from 0: more than DRIFT cycles, a period of SLOW or less.

    Of tables with 64 and with 512 rows:

    >>> lowest(64), lowest(512)
    (5, 32)
    """
    return max(DRIFT + 1, -(-T // SLOW))


def above(spectrum, line):
    """Frequencies at which a spectrum [F] is above a line, ascending; 0 is left out.

    >>> above([9, 1, 6, 7, 2], line=5)
    array([2, 3])
    """
    return 1 + np.flatnonzero(np.asarray(spectrum)[1:] > line)


def maxima(spectrum, line, least=1):
    """Frequencies of the local maxima of [F] above a line, the highest first.

    Frequencies below `least` are left out, and 0 always.

    7 is not a maximum: its neighbour is higher:

    >>> maxima([0, 1, 7, 8, 2, 3, 1], line=1)
    array([3, 5])
    """
    heights = np.asarray(spectrum)[1:]
    left = np.r_[-np.inf, heights[:-1]]
    right = np.r_[heights[1:], -np.inf]
    is_summit = (heights > left) & (heights >= right) & (heights > line)
    summits = np.flatnonzero(is_summit)
    highest_first = np.argsort(-heights[summits], kind="stable")
    frequencies = summits[highest_first] + 1
    return frequencies[frequencies >= least]


def highest_peak(spectrum, least):
    """(height, frequency) of the highest local maximum of [F] from `least` on; 0, 0 if none.

    The highest peak is at 2, from 3 on it is at 5:

    >>> spectrum = np.array([0.0, 1.0, 9.0, 2.0, 1.0, 4.0, 3.0])
    >>> height, frequency = highest_peak(spectrum, least=3)
    >>> float(height), int(frequency)
    (4.0, 5)
    """
    frequencies = maxima(spectrum, -np.inf, least)
    if not len(frequencies):
        return 0.0, 0
    return spectrum[frequencies[0]], frequencies[0]


def peak_null(shuffled, least):
    """Height that the highest peak of 99% of the spectra [n F] does not surpass.

    Noise alone seldom has a peak above this:

    >>> noise = np.random.default_rng(0).normal(size=(500, 64, 8))
    >>> line = peak_null([mean_amplitude(x) for x in noise], least=5)
    >>> round(float(line), 1)
    12.0
    """
    return np.quantile([highest_peak(spectrum, least)[0] for spectrum in shuffled], nulls.CHANCE)


def rise(spectrum, least=1):
    """How far a spectrum [F] rises again towards its waves from `least` on; 1 if it only falls.

    The largest quotient of a band's mean amplitude and the least mean amplitude of the slower
    bands. A drift or a random walk gives about 1, even if a line stands out of its slope; frequency
    0 is left out.

    A spectrum that only falls, and one that rises to a wave:

    >>> falling = 1 / np.arange(1.0, 65)
    >>> float(rise(falling)), round(float(rise(falling + 3 * (np.arange(64) // 8 == 5))), 1)
    (1.0, 117.9)
    """
    heights = np.asarray(spectrum, np.float64)[1:]
    width = min(len(heights), max(3, len(heights) // BANDS))
    means = sliding_window_view(heights, width).mean(axis=1)
    if not means.any():
        return 1.0
    means = np.maximum(means, EMPTY * means.max())
    quotients = means / np.minimum.accumulate(means)
    return quotients[least - 1 :].max(initial=1.0)


def rise_null(shuffled, least=1):
    """Rise that 99% of the spectra [n F] do not surpass.

    Noise alone seldom rises more:

    >>> noise = np.random.default_rng(0).normal(size=(500, 64, 8))
    >>> round(float(rise_null([mean_amplitude(x) for x in noise])), 1)
    1.8
    """
    return np.quantile([rise(spectrum, least) for spectrum in shuffled], nulls.CHANCE)


def peaks_above_chance(spectrum, shuffled, T):
    """(fast, slow): frequencies of the peaks of [F] that those of shuffled rows [n F] do not reach.

    The highest first. Fast ones are away from 0, slow ones between these and the drift.

    A wave of 20 cycles in noise:

    >>> x = np.random.default_rng(0).normal(size=(128, 4))
    >>> x += 2 * np.cos(2 * np.pi * 20 * np.arange(128) / 128)[:, None]
    >>> shuffled = nulls.distribution(mean_amplitude, nulls.row_shuffles(x, 200, seed=0))
    >>> fast, slow = peaks_above_chance(mean_amplitude(x), shuffled, T=128)
    >>> fast.tolist(), slow.tolist()
    ([20], [])
    """
    fast = maxima(spectrum, peak_null(shuffled, lowest(T)), lowest(T))
    no_drift = maxima(spectrum, peak_null(shuffled, DRIFT + 1), DRIFT + 1)
    return fast, no_drift[no_drift < lowest(T)]


def largest(spectrum):
    """Largest value of [F ...] at a frequency other than 0.

    >>> float(largest(np.array([9.0, 1.0, 3.0])))
    3.0
    """
    return spectrum[1:].max()


def explained(x):
    """Share of variance in the first 1, 2, ... components: [T D] -> [min(T, D)].

    Columns are centred first.

    Two waves of the same frequency, a circle, need two components; the third column is a copy:

    >>> turns = 2 * np.pi * np.arange(16) / 16
    >>> explained(np.column_stack([np.cos(turns), np.sin(turns), np.cos(turns)])).round(3)
    array([0.667, 1.   , 1.   ])
    """
    x = np.asarray(x, np.float64)
    variance = np.linalg.svd(x - x.mean(axis=0), compute_uv=False) ** 2
    return variance.cumsum() / variance.sum()
