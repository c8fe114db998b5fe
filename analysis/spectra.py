"""Frequencies and principal components of a table whose rows are positions: T rows, D columns, F = T//2 + 1.

Order: amplitude spectrum, a filter, its summary over columns, its peaks; then principal components.
"""

import numpy as np
from scipy.fft import irfft, rfft

QUARTILES = (0.25, 0.5, 0.75)


def amplitude(x):
    """|rfft| of each column, no window: [T D] -> [F D]; row f is f cycles in T tokens."""
    return np.abs(rfft(np.asarray(x), axis=0))


def bandpass(x, low, high):
    """Each column of [T D] with only its frequencies low <= f <= high, cycles in T tokens; no phase is moved.

    The mean, f = 0, goes unless low is 0. low > high: ValueError.
    """
    if low > high:
        raise ValueError(f"a band from low to high is wanted, from {low} to {high} is given")
    lines = rfft(np.asarray(x), axis=0)
    f = np.arange(len(lines))
    lines[(f < low) | (f > high)] = 0
    return irfft(lines, len(x), axis=0)


def summary(amplitudes):
    """Mean [F] and quartiles [3 F] over the columns of [F D]."""
    return amplitudes.mean(axis=1), np.quantile(amplitudes, QUARTILES, axis=1)


def period(frequency, T):
    """Tokens in one cycle, T / frequency; infinite for frequency 0."""
    with np.errstate(divide="ignore"):
        return T / np.asarray(frequency, float)


def peaks(spectrum, times=5.0):
    """Frequencies of the local maxima of [F] above `times` its median, the highest first; 0 is left out."""
    return maxima(spectrum, times * np.median(np.asarray(spectrum)[1:]))


def above(spectrum, line):
    """Frequencies of [F] at which it is above a line, ascending; 0 is left out."""
    return 1 + np.flatnonzero(np.asarray(spectrum)[1:] > line)


def maxima(spectrum, line):
    """Frequencies of the local maxima of [F] above a line, the highest first; 0 is left out."""
    rest = np.asarray(spectrum)[1:]
    left, right = np.r_[-np.inf, rest[:-1]], np.r_[rest[1:], -np.inf]
    found = np.flatnonzero((rest > left) & (rest >= right) & (rest > line))
    return found[np.argsort(-rest[found], kind="stable")] + 1


def largest(spectrum):
    """Largest value of [F ...] at a frequency other than 0."""
    return spectrum[1:].max()


def explained(x):
    """Share of variance in the first 1, 2, ... components of the centred columns: [T D] -> [min(T, D)]."""
    x = np.asarray(x, np.float64)
    variance = np.linalg.svd(x - x.mean(axis=0), compute_uv=False) ** 2
    return variance.cumsum() / variance.sum()
