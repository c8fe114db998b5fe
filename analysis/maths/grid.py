"""Waves, offsets and cosines of positions that form a grid: patches of a picture.

A position is a row and a column; tables have a row for each position, row by row. Frequencies are
in cycles over the grid, down and across; (f_y, f_x) and (-f_y, -f_x) are one wave, so f_x runs from
0 to C // 2 and f_y over all. Offsets are of a key from its query: (-1, 0) is one patch up.

T = R C positions of R rows and C columns, D columns of a table, H heads.
"""

import numpy as np


def amplitudes(table, rows, columns):  # [T D] -> [R C//2+1 D]
    """|FFT2| of each column of a table over the grid, the mean of the column taken off.

    f_y is in the order -(R // 2) … (R - 1) // 2, so that slow waves stand in the middle.

    >>> y, x = np.indices((8, 8)).reshape(2, -1)
    >>> wave = np.cos(2 * np.pi * (2 * y + 3 * x) / 8)[:, None]
    >>> spectrum = amplitudes(wave, 8, 8)[..., 0]
    >>> highest(spectrum)[1:], round(float(spectrum.max()), 6)
    ((2, 3), 32.0)
    """
    x = np.asarray(table, np.float64)
    x = (x - x.mean(axis=0)).reshape(rows, columns, -1)
    return abs(np.fft.fftshift(np.fft.rfft2(x, axes=(0, 1)), axes=0))


def frequencies(rows, columns):  # -> [R], [C//2+1]
    """Cycles over the grid along both axes of `amplitudes`: down f_y, across f_x.

    >>> frequencies(4, 4)
    (array([-2, -1,  0,  1]), array([0, 1, 2]))
    """
    return np.arange(rows) - rows // 2, np.arange(columns // 2 + 1)


def distinct(rows, columns):  # -> [R C//2+1] bool
    """False where a frequency is one that is there already: (-f_y, 0) is (f_y, 0).

    >>> distinct(4, 4).astype(int)
    array([[1, 1, 1],
           [0, 1, 0],
           [1, 1, 1],
           [1, 1, 1]])
    """
    down, across = frequencies(rows, columns)
    is_own_mirror = (across == 0) | (2 * across == columns)
    is_twice = (down < 0) & (2 * down != -rows)
    return ~(is_twice[:, None] & is_own_mirror)


def rms_amplitude(table, rows, columns):  # [T D] -> [R C//2+1]
    """The root mean square of `amplitudes` over the columns of a table, 0 at frequency (0, 0).

    Not the mean: on a grid of few positions a wave in some of the columns would be lost in it.

    >>> float(rms_amplitude(np.ones((16, 3)), 4, 4).max())
    0.0
    """
    return np.sqrt((amplitudes(table, rows, columns) ** 2).mean(axis=-1))


def highest(spectrum):  # [R C//2+1] -> (amplitude, f_y, f_x)
    """The highest amplitude of a spectrum, and its cycles down and across; f_y counts from 0.

    >>> highest(np.array([[0.0, 1.0], [0.0, 3.0]]))
    (3.0, 0, 1)
    """
    row, column = np.unravel_index(spectrum.argmax(), spectrum.shape)
    return float(spectrum.max()), int(row) - len(spectrum) // 2, int(column)


def pairs(rows, columns):  # -> [T T], [T T]
    """How far down and across each key stands from each query.

    >>> down, across = pairs(2, 2)
    >>> down[0].tolist(), across[0].tolist()
    ([0, 0, 1, 1], [0, 1, 0, 1])
    """
    y, x = np.indices((rows, columns)).reshape(2, -1)
    return y - y[:, None], x - x[:, None]


def profile(pattern, rows, columns):  # [H T T] -> [H 2R-1 2C-1]
    """Mean attention to the key at each offset, over the queries that have a key there.

    Row dy + R - 1 and column dx + C - 1 are of the offset (dy, dx). Uniform attention gives 1 / T
    everywhere.

    >>> up = np.eye(4)[[0, 1, 0, 1]]  # both patches of the second row look one up
    >>> profile(up[None], 2, 2)[0]
    array([[0. , 1. , 0. ],
           [0. , 0.5, 0. ],
           [0. , 0. , 0. ]])
    """
    down, across = pairs(rows, columns)
    width = 2 * columns - 1
    number = (down + rows - 1) * width + across + columns - 1
    size = (2 * rows - 1) * width
    count = np.bincount(number.ravel(), minlength=size)
    totals = [np.bincount(number.ravel(), weights=head.ravel(), minlength=size) for head in pattern]
    return (np.array(totals) / count).reshape(-1, 2 * rows - 1, width)


def central(profiles, reach):  # [... 2R-1 2C-1] -> [... 2r+1 2r+1]
    """The offsets of up to `reach` patches: few queries have a key that is far away.

    >>> central(np.arange(25).reshape(5, 5), 1).tolist()
    [[6, 7, 8], [11, 12, 13], [16, 17, 18]]
    """
    middle_y, middle_x = profiles.shape[-2] // 2, profiles.shape[-1] // 2
    down = slice(middle_y - reach, middle_y + reach + 1)
    across = slice(middle_x - reach, middle_x + reach + 1)
    return profiles[..., down, across]


def near_profiles(pattern, rows, columns, reach, orders):  # [H T T], S of [T] -> [S H 2r+1 2r+1]
    """`central` of `profile`, with the positions of the grid in each of these orders.

    Position i is then where position orders[s][i] is. Only pairs of near positions are read.

    >>> pattern = np.random.default_rng(0).random((2, 9, 9))
    >>> own = near_profiles(pattern, 3, 3, 1, [np.arange(9)])[0]
    >>> bool(np.allclose(own, central(profile(pattern, 3, 3), 1)))
    True
    """
    side = 2 * reach + 1
    down, across = pairs(rows, columns)
    queries, keys = np.nonzero((abs(down) <= reach) & (abs(across) <= reach))
    number = (down[queries, keys] + reach) * side + across[queries, keys] + reach
    by_offset = number.argsort(kind="stable")
    queries, keys = queries[by_offset], keys[by_offset]
    starts = np.searchsorted(number[by_offset], np.arange(side**2))
    count = np.bincount(number)
    at_pairs = (pattern[:, order[queries], order[keys]] for order in orders)
    means = [np.add.reduceat(x, starts, axis=1) / count for x in at_pairs]
    return np.reshape(means, (len(orders), -1, side, side))


def peak(profile):  # [2r+1 2r+1] -> (height, dy, dx)
    """The offset at which a central profile is highest.

    >>> peak(np.array([[0, 2, 0], [0, 1, 0], [0, 0, 0]]))
    (2.0, -1, 0)
    """
    row, column = np.unravel_index(profile.argmax(), profile.shape)
    reach = len(profile) // 2
    return float(profile.max()), int(row) - reach, int(column) - reach


def moved(table, rows, columns, down, across):  # [T D] -> [T D]
    """A table in which each position has the row of the position so far down and across.

    At the edges, where there is none, that of the nearest position.

    >>> moved(np.arange(4)[:, None], 2, 2, 1, 0).ravel()
    array([2, 3, 2, 3])
    """
    y, x = np.indices((rows, columns)).reshape(2, -1)
    y = np.clip(y + down, 0, rows - 1)
    x = np.clip(x + across, 0, columns - 1)
    return table[y * columns + x]


def cosines(rows, columns, K):  # -> [T K]
    """The K slowest products of a cosine down and one across, without the constant; orthonormal.

    The basis of the two-dimensional cosine transform, in the order of the sum of half cycles.

    >>> basis = cosines(4, 4, 5)
    >>> bool(np.allclose(basis.T @ basis, np.eye(5)))
    True
    """
    waves = [(a, b) for a in range(rows) for b in range(columns)]
    slowest = sorted(waves, key=lambda pair: (sum(pair), pair))[1 : K + 1]
    if len(slowest) < K:
        raise ValueError(
            f"{K} waves requested, {rows * columns - 1} exist over {rows} × {columns} patches"
        )
    y = (np.arange(rows) + 0.5) * np.pi / rows
    x = (np.arange(columns) + 0.5) * np.pi / columns
    products = [np.outer(np.cos(a * y), np.cos(b * x)).ravel() for a, b in slowest]
    basis = np.array(products).T
    return basis / np.linalg.norm(basis, axis=0)
