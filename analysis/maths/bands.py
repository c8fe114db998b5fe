"""Bands of a position table's waves, or of turned pairs: without one band, or one band alone.

n rows (positions), D columns. Frequencies are cycles in n tokens; the mean over the positions,
frequency 0, is in no band and stays.
"""

import numpy as np


def octaves(n, bands):
    """(low, high) of bands with periods from 2 tokens up, each twice as long: the slowest first.

    The slowest band takes all remaining frequencies. Raises ValueError if a band would hold no
    frequency of a table of n rows.

    For 64 positions, in cycles: periods over 8 tokens, 4 to 8, and 2 to 4.

    >>> octaves(64, 3)
    [(1, 8), (9, 16), (17, 32)]
    """
    edges = [n / 2**i for i in range(bands, 0, -1)]  # frequencies at which one band ends
    lows = [1, *(int(edge) + 1 for edge in edges[:-1])]
    highs = [*(int(edge) for edge in edges[:-1]), n // 2]
    if any(low > high for low, high in zip(lows, highs)):
        most = most_octaves(n)
        raise ValueError(f"{bands} bands are too many for {n} positions; wanted 1 to {most}")
    return list(zip(lows, highs))


def most_octaves(n):
    """How many bands a table of n rows has at most, with a frequency in each.

    >>> most_octaves(64)
    5
    """
    return max(1, int(np.log2(n)) - 1)


def names(bands):
    """Names by period in tokens: 'over 16', '8 to 16', '4 to 8', '2 to 4'; of one band 'all'.

    >>> names(3)
    ['over 8', '4 to 8', '2 to 4']
    """
    if bands == 1:
        return ["all"]
    octave = [f"{2 ** (i - 1)} to {2**i}" for i in range(bands, 1, -1)]
    return [f"over {2**bands}", *octave]


def periods(fastest, bands):
    """(least, most) periods in tokens of bands of turned pairs: the slowest first, then all.

    Each is twice as long as the next; the last but one begins at the period of the fastest pair, of
    so many radians a token, and the first takes all slower ones.

    >>> [(round(low, 1), round(high, 1)) for low, high in periods(np.pi, 2)]
    [(4.0, inf), (2.0, 4.0), (0.0, inf)]
    """
    edges = [2 * np.pi / fastest * 2**i * (1 - 1e-9) for i in range(bands)]
    octaves = list(zip(edges, [*edges[1:], np.inf]))
    return [*octaves[::-1], (0.0, np.inf)]


def period_names(limits):
    """Names of such bands: 'over 13', '6 to 13'.

    >>> period_names([(4.0, np.inf), (2.0, 4.0)])
    ['over 4', '2 to 4']
    """
    return [f"over {a:.0f}" if np.isinf(b) else f"{a:.0f} to {b:.0f}" for a, b in limits]


def pairs_inside(frequencies, limits):
    """Which of r turned pairs have a period in each band: bool [K r].

    >>> pairs_inside([1.0, 0.9, 0.1, 0.09], [(20, np.inf)]).astype(int).tolist()
    [[0, 0, 1, 1]]
    """
    period = 2 * np.pi / np.asarray(frequencies)
    return np.array([(period >= low) & (period < high) for low, high in limits])


def turns(frequencies, n):
    """What n positions make of each of r pairs, e^(i omega t): complex mean, and variance [r].

    A pair that turns once in the n positions has mean 0, a slow one hardly any variance:

    >>> mean, variance = turns([np.pi / 4, 1e-3], 8)
    >>> abs(mean).round(3).tolist(), variance.round(3).tolist()
    ([0.0, 1.0], [1.0, 0.0])
    """
    waves = np.exp(1j * np.multiply.outer(frequencies, np.arange(n)))
    mean = waves.mean(axis=1)
    return mean, 1 - abs(mean) ** 2


def without(x, part):
    """A table [n D] without a part of its waves, as spectra.bandpass gives it.

    From a wave and a constant, the constant is left:

    >>> x = np.cos(2 * np.pi * 3 * np.arange(24) / 24)[:, None]  # 3 cycles in 24 places
    >>> round(float(np.ptp(without(x + 5, part=x))), 9)
    0.0
    """
    return x - part


def alone(x, part):
    """A table [n D] with this part of its waves only, and its mean.

    The wave of 3 cycles, with the mean of both:

    >>> x = np.cos(2 * np.pi * 3 * np.arange(24) / 24)[:, None]  # 3 cycles in 24 places
    >>> y = np.cos(2 * np.pi * 5 * np.arange(24) / 24)[:, None]
    >>> bool(np.allclose(alone(x + y + 2, part=x), x + 2))
    True
    """
    return x.mean(axis=0) + part


def evenly_without(x, part):
    """A table [n D] that has lost as much energy as `without`, evenly from all frequencies.

    Half of the energy is taken, equally from both waves:

    >>> x = np.cos(2 * np.pi * 3 * np.arange(24) / 24)[:, None]  # 3 cycles in 24 places
    >>> y = np.cos(2 * np.pi * 5 * np.arange(24) / 24)[:, None]
    >>> bool(np.allclose(evenly_without(x + y, part=x), 0.5**0.5 * (x + y)))
    True
    """
    mean = x.mean(axis=0)
    left = 1 - energy(x, part)
    return mean + left**0.5 * (x - mean)


def energy(x, part):
    """Share of the energy of a table's waves [n D] that lies in a part of them.

    Each of two waves of the same height has half:

    >>> x = np.cos(2 * np.pi * 3 * np.arange(24) / 24)[:, None]  # 3 cycles in 24 places
    >>> y = np.cos(2 * np.pi * 5 * np.arange(24) / 24)[:, None]
    >>> round(energy(x + y, part=x), 9)
    0.5
    """
    deviations = np.square(x - x.mean(axis=0)).sum(dtype=np.float64)
    inside = np.square(part).sum(dtype=np.float64)
    return float(min(inside / max(deviations, 1e-300), 1.0))
