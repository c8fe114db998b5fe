"""Horizontal bands or lines of one shift in a map over frequency and angle.

A head that moves every wave by Delta tokens has its energy at the angle 2 pi f Delta / T, a line
that rises with the frequency f; a head that turns every wave by one angle has a horizontal band at
that angle at every frequency. The map is summed along both. An angle of 0 is on lines as well as on
bands, so it counts for neither. T tokens, F frequencies with 0, A bins of angles (of
rotation.bin_centres, 0 is the one before A // 2), n candidates.

Order: the map as shares, the sums along bands and lines, the same by chance.
"""

from typing import NamedTuple

import numpy as np

STEPS = np.arange(1, 11)  # the shifts of lines, in tokens, and in tens and hundreds of them
DENSEST = 24  # lines of fewer than T / (DENSEST f) tokens lie on each other up to frequency f
REACHED = 0.99  # of the energy, which the frequencies up to the last one that is drawn hold


class Rows(NamedTuple):
    """A map in which each frequency has its own row.

    >>> Rows(excess=np.zeros((32, 360)), weight=np.ones(32) / 32, T=64).T
    64
    """

    excess: np.ndarray  # [F - 1 A] share of a frequency's energy, less the share of the angles
    weight: np.ndarray  # [F - 1] amplitude, with sum 1
    T: int


def rows_of(energy, density, T):
    """Rows of a map [F A], as they differ from energy spread evenly over the angles there are.

    density: how many angles there are in each bin [A]. A frequency counts by its amplitude, as it
    is drawn.

    Three times as much energy at one frequency counts as its root, the amplitude:

    >>> energy = np.array([[0.0, 0.0], [1.0, 0.0], [4.0, 0.0]])
    >>> rows = rows_of(energy, np.ones(2), T=4)
    >>> rows.weight.round(2), rows.excess[0]
    (array([0.33, 0.67]), array([ 0.5, -0.5]))
    """
    total = energy[1:].sum(axis=1, keepdims=True)
    share = energy[1:] / np.maximum(total, 1e-300)
    weight = np.sqrt(total[:, 0])
    excess = np.where(total > 0, share - density / density.sum(), 0)
    return Rows(excess, weight / max(weight.sum(), 1e-300), T)


def last_frequency(energy):
    """Frequency up to which a map [F A] has the share REACHED of its energy, frequency 0 left out.

    At least 8, or the highest frequency if there are fewer.

    >>> energy = np.zeros((33, 4))
    >>> energy[20] = 1
    >>> last_frequency(energy)
    20
    """
    total = energy[1:].sum(axis=1).cumsum()
    last = 1 + int(np.searchsorted(total, REACHED * total[-1]))
    return min(max(8, last), len(total))


def unit(T, last):
    """1, 10 or 100 tokens: the least shift whose line up to the frequency `last` stands apart.

    Lines of 1, 2, 3 tokens stand apart up to frequency 16; up to frequency 1 only those of
    tens:

    >>> unit(64, last=16), unit(64, last=1)
    (1, 10)
    """
    return 10 ** max(0, int(np.ceil(np.log10(T / (DENSEST * last)))))


def shifts(T):
    """Shifts in tokens whose lines are tried, at most T / 2, those to the left first: [n].

    >>> shifts(8)
    array([-4, -3, -2, -1,  1,  2,  3,  4])
    """
    all_steps = np.unique(np.outer((1, 10, 100), STEPS))
    within = all_steps[all_steps <= max(T // 2, 1)]
    return np.concatenate([-within[::-1], within])


def along_bands(rows):
    """Mean excess at each angle, nearly 1 if all energy is there: Rows -> [A].

    A band at one angle, whatever the frequency:

    >>> energy = np.zeros((33, 360))
    >>> energy[:, 90] = 1
    >>> sums = along_bands(rows_of(energy, np.ones(360), T=64))
    >>> int(sums.argmax()), round(float(sums.max()), 2)
    (90, 1.0)
    """
    return _without_zero(rows.weight @ rows.excess)


def along_lines(rows, shifts):
    """Mean excess along the line of each of some shifts in tokens: Rows, [n] -> [n].

    >>> T, A = 64, 360
    >>> f = np.arange(T // 2 + 1)
    >>> energy = np.zeros((len(f), A))
    >>> energy[f, (np.rint(A * f * 3 / T).astype(int) + A // 2 - 1) % A] = 1  # a shift by 3 tokens
    >>> rows = rows_of(energy, np.ones(A), T)
    >>> sums = along_lines(rows, shifts(T))
    >>> int(shifts(T)[sums.argmax()]), round(float(sums.max()), 2)
    (3, 1.0)
    """
    bins = _line_bins(rows, shifts)
    values = np.take_along_axis(_without_zero(rows.excess), bins, axis=1)
    return rows.weight @ values


def by_chance(rows, shifts, n, seed=0):
    """The largest sums along bands [n] and along lines [n], each row turned by a random angle.

    Each frequency keeps the form of its row; the angle that the frequencies have in common, or the
    shift that they have in common, is lost.

    What one frequency in 32 has at its angle the others have elsewhere:

    >>> T, A = 64, 360
    >>> f = np.arange(T // 2 + 1)
    >>> energy = np.zeros((len(f), A))
    >>> energy[f, (np.rint(A * f * 3 / T).astype(int) + A // 2 - 1) % A] = 1  # a shift by 3 tokens
    >>> rows = rows_of(energy, np.ones(A), T)
    >>> bands, lines = by_chance(rows, shifts(T), n=20)
    >>> bands.shape, bool(lines.max() < 0.5 < along_lines(rows, shifts(T)).max())
    ((20,), True)
    """
    A = rows.excess.shape[1]
    turns = np.random.default_rng(seed).integers(A, size=(n, len(rows.excess)))
    of_bands, of_lines = [], []
    for turn in turns:
        places = (np.arange(A) - turn[:, None]) % A
        excess = np.take_along_axis(rows.excess, places, axis=1)
        turned = rows._replace(excess=excess)
        of_bands.append(along_bands(turned).max())
        of_lines.append(along_lines(turned, shifts).max())
    return np.array(of_bands), np.array(of_lines)


def _line_bins(rows, shifts):
    """The bin in which the line of each shift lies at each frequency: [F - 1 n]."""
    F, A = rows.excess.shape
    f = np.arange(1, F + 1)[:, None]
    steps = np.rint(A * f * shifts / rows.T).astype(int)
    return (steps + A // 2 - 1) % A


def _without_zero(x):
    """x [... A] with 0 in the bin of the angle 0."""
    A = x.shape[-1]
    return np.where(np.arange(A) == A // 2 - 1, 0, x)
