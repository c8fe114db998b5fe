"""Queries, keys and the stream as signals over positions: which of their columns are waves.

T tokens, N documents, D width, L layers, H heads, r columns of Q = X U_Q and K = X U_K, F = T//2 +
1 frequencies.

Order: the peaks of a position table; columns of one head; spectra of all heads; the weights alone;
components.
"""

import numpy as np

from . import lags, nulls, spectra, stats

DRAWS = 200  # sets of random directions: two reach beyond their 99% quantile
FOLLOWED = 2  # fast peaks, and slow ones, that are followed through the layers
AS_HIGH = 0.9  # of the highest fast peak: other peaks count as high as it


# the peaks of a position table


def position_peaks(table, seed=0, shuffles=nulls.SHUFFLES):
    """(fast, slow): frequencies of the peaks of a position table [T D] above chance.

    In cycles over its T rows, the highest first; see spectra.peaks_above_chance.

    A table of 128 positions with a wave of 20 cycles:

    >>> table = np.random.default_rng(0).normal(size=(128, 4))
    >>> table += 2 * np.cos(2 * np.pi * 20 * np.arange(128) / 128)[:, None]
    >>> fast, slow = position_peaks(table, shuffles=100)
    >>> fast.tolist(), slow.tolist()
    ([20], [])
    """
    surrogates = nulls.row_shuffles(table, shuffles, seed)
    shuffled = nulls.distribution(spectra.mean_amplitude, surrogates)
    return spectra.peaks_above_chance(spectra.mean_amplitude(table), shuffled, len(table))


def followed(table, seed=0):
    """(frequencies, whether they are peaks) to follow: the highest peak first, up to 2 FOLLOWED.

    The highest fast peaks of a position table [T D], then the highest slow ones; without any the
    largest amplitude at any frequency.

    A table with a wave of 20 cycles, and noise, which has none:

    >>> noise = np.random.default_rng(0).normal(size=(128, 4))
    >>> wave = np.cos(2 * np.pi * 20 * np.arange(128) / 128)[:, None]
    >>> followed(noise + 2 * wave), followed(noise)
    (([20], True), ([43], False))
    """
    fast, slow = position_peaks(table, seed)
    frequencies = [*fast[:FOLLOWED].tolist(), *slow[:FOLLOWED].tolist()]
    if frequencies:
        return frequencies, True
    return [_largest_line(table)], False


def as_high(table, seed=0):
    """Peaks of a position table [T D] that are about as high as the one to follow, which is first.

    Then fast ones and slow ones of AS_HIGH of its amplitude or more, the highest first; without any
    peak the largest amplitude alone. In cycles over its T rows.

    A wave of 20 cycles, one as high of 40, and one that is lower:

    >>> t, noise = np.arange(128)[:, None], np.random.default_rng(0).normal(size=(128, 4))
    >>> waves = [a * np.cos(2 * np.pi * f * t / 128) for f, a in ((20, 4.2), (40, 4), (11, 2))]
    >>> as_high(noise / 4 + sum(waves))
    [20, 40]
    """
    fast, slow = position_peaks(table, seed)
    frequencies = [*fast.tolist(), *slow.tolist()]
    if not frequencies:
        return [_largest_line(table)]
    heights = spectra.mean_amplitude(table)
    return [f for f in frequencies if heights[f] >= AS_HIGH * heights[frequencies[0]]]


def _largest_line(table):
    """The frequency above 0 with the largest mean amplitude."""
    return 1 + int(spectra.mean_amplitude(table)[1:].argmax())


# columns of one head


def carried(q, k, S, low, high):
    """What each column can give to the scores in a band: [T r] twice, [r] -> [r].

    It is s_j times the sum of |q_j(f)| |k_j(f)| over low <= f <= high.

    Columns of query and key are a wave of 3 cycles, of 16 tokens; the weight is 2:

    >>> x = np.cos(2 * np.pi * 3 * np.arange(16) / 16)[:, None]
    >>> carried(x, x, np.array([2.0]), 2, 4).round(9), carried(x, x, np.array([2.0]), 5, 8).round(9)
    (array([128.]), array([0.]))
    """
    products = spectra.amplitude(q) * spectra.amplitude(k)
    return S * products[low : high + 1].sum(axis=0)


def correlation(q, k, reach):
    """Cross-correlation (eq 12) at the lags -reach ... reach: [T c] twice -> [2 reach + 1 c].

    The key moved by one token to the right, at lags -2 to 2:

    >>> q = np.random.default_rng(0).normal(size=(100, 1))
    >>> correlation(q, np.roll(q, 1, axis=0), reach=2)[:, 0].round(1)
    array([-0.1,  0.1,  0.1,  1. ,  0.1])
    """
    T = len(q)
    curves = lags.xcorr(q, k)
    return curves[T - 1 - reach : T + reach]


def by_chance(x, q, r, low, high, reach, seed=0):
    """Highest correlation of each query column with random directions: [T D], [T c] -> [c].

    The 99% quantile over DRAWS. In each draw r orthonormal directions take the place of U_K, and
    the one that carries most of the band together with the query's column is compared, so that the
    null is chosen in the same way as the columns.

    A column must correlate more than this before it tells anything:

    >>> x = np.random.default_rng(0).normal(size=(64, 8))
    >>> by_chance(x, x[:, :2], r=4, low=5, high=20, reach=10).round(1)
    array([0.6, 0.7])
    """
    rng = np.random.default_rng(seed)
    q_amplitude = spectra.amplitude(q)[low : high + 1]
    highest = []
    for _ in range(DRAWS):
        noise = rng.standard_normal((x.shape[1], r))
        directions, _ = np.linalg.qr(noise)
        k = x @ directions
        k_amplitude = spectra.amplitude(k)[low : high + 1]
        most = (q_amplitude.T @ k_amplitude).argmax(axis=1)
        curves = correlation(q, k[:, most], reach)
        highest.append(curves.max(axis=0))
    return np.quantile(highest, nulls.CHANCE, axis=0)


def periodic(q, k, shuffles, seed=0):
    """Which columns of [T r] twice are periodic in both [r], and how many in each shuffle.

    A column is periodic if its largest amplitude of more than DRIFT cycles is above the 99%
    quantile of that of its shuffled rows. Second: [shuffles]. In float32: shuffles need
    no more.

    The first of two columns is a wave of 10 cycles in queries and keys, the second noise:

    >>> q, k = np.random.default_rng(0).normal(size=(2, 64, 2))
    >>> wave = 2 * np.cos(2 * np.pi * 10 * np.arange(64) / 64)
    >>> q, k = q + wave[:, None] * [1, 0], k + wave[:, None] * [1, 0]
    >>> is_periodic, by_chance = periodic(q, k, shuffles=200)
    >>> is_periodic, float(by_chance.mean())
    (array([ True, False]), 0.0)
    """
    r = q.shape[1]

    def highest(qk):
        heights = spectra.amplitude(qk)[spectra.DRIFT + 1 :].max(axis=0)
        return heights.reshape(2, r)

    qk = np.hstack([q, k]).astype(np.float32)
    shuffled = nulls.distribution(highest, nulls.row_shuffles(qk, shuffles, seed))  # [shuffles 2 r]
    line = np.quantile(shuffled, nulls.CHANCE, axis=0)
    by_chance = (shuffled > line).all(axis=1).sum(axis=1)
    is_periodic = (highest(qk) > line).all(axis=0)
    return is_periodic, by_chance


def replaced(x, W_Q, W_K):
    """Largest change of the scores x W_Q (x W_K)^T when (W_A, I) takes the place of (W_Q, W_K).

    As a share of their largest entry: [T D], [D d] twice -> a number. It is rounding alone, as only
    W_A = W_Q W_K^T matters.

    Only rounding is left:

    >>> x, W_Q, W_K = np.random.default_rng(0).normal(size=(3, 6, 6))
    >>> bool(replaced(x, W_Q[:, :2], W_K[:, :2]) < 1e-12)
    True
    """
    W_A = W_Q @ W_K.T
    identity = np.eye(len(W_Q))
    before = x @ W_Q @ (x @ W_K).T
    after = x @ W_A @ (x @ identity).T
    change = abs(after - before).max()
    return change / max(abs(before).max(), 1e-300)


# spectra of all heads


def largest(X, U=None):
    """Largest amplitude of any column at each f: [L T D], [L H D r] -> [L F].

    The columns are those of X, or of X U over all heads.

    A layer of two tokens and two columns, and what a head of one direction has of it:

    >>> X = np.array([[[3.0, 1.0], [0.0, 1.0]]])
    >>> largest(X), largest(X, np.array([[[[0.0], [1.0]]]]))
    (array([[3., 3.]]), array([[2., 0.]]))
    """
    if U is None:
        return np.array([_largest_of_columns(x) for x in X])
    by_layer = []
    for x, heads in zip(X, U):
        by_head = [_largest_of_columns(x @ directions) for directions in heads]
        by_layer.append(np.max(by_head, axis=0))
    return np.array(by_layer)


def _largest_of_columns(x):
    return spectra.amplitude(x).max(axis=1)


def contrast(curve, f):
    """Amplitude at f over the median amplitude at all frequencies but 0: [... F] -> [...].

    >>> float(contrast(np.array([9.0, 2.0, 8.0, 2.0]), f=2))
    4.0
    """
    median = np.median(curve[..., 1:], axis=-1)
    return curve[..., f] / np.maximum(median, 1e-300)


def spectrum_correlation(curve, other):
    """Correlation of two spectra [F] over all frequencies but 0; 0 where one of them is flat.

    >>> round(float(spectrum_correlation(np.array([9.0, 1, 2, 3]), np.array([0.0, 10, 20, 30]))), 9)
    1.0
    """
    return stats.pearson(np.asarray(curve[1:], np.float64), np.asarray(other[1:], np.float64))


# the weights alone


def effective_rank(S):
    """Participation ratio of the squared singular values, 1 to r, 0 if all are: [... r] -> [...].

    It is (sum s^2)^2 / sum s^4.

    Two equal directions, and two of which one hardly counts:

    >>> effective_rank(np.array([[3.0, 3.0], [3.0, 0.3]])).round(2)
    array([2.  , 1.02])
    """
    squares = np.square(S)
    total = squares.sum(axis=-1, keepdims=True)
    weights = squares / np.maximum(total, 1e-300)
    concentration = np.square(weights).sum(axis=-1)
    return (concentration > 0) / np.maximum(concentration, 1e-300)


def between(V, W_Q, W_K):
    """Share of W_A that joins a space to itself, |V^T W_A V|^2 / |W_A|^2 (Frobenius).

    V [D n] orthonormal, [H D d] twice -> [H]. No D x D matrix is formed: |W_A|^2 is the sum over
    the entries of (W_Q^T W_Q) (W_K^T W_K), entry by entry.

    One head joins the first two of four directions to each other, another the last ones:

    >>> first, last = np.eye(4)[:, :2], np.eye(4)[:, 2:]
    >>> between(first, np.array([first, last]), np.array([first, last]))
    array([1., 0.])
    """
    V_Q = V.T @ W_Q
    V_K = V.T @ W_K
    inside = np.square(V_Q @ V_K.swapaxes(-1, -2)).sum(axis=(-1, -2))
    q_squares = W_Q.swapaxes(-1, -2) @ W_Q
    k_squares = W_K.swapaxes(-1, -2) @ W_K
    whole = (q_squares * k_squares).sum(axis=(-1, -2))
    return inside / np.maximum(whole, 1e-300)


# components


def position_share(total, squares, N):
    """Share of the variance of each series that position explains: [... T C], [... C] -> [... C].

    total: sum of the series over N > 1 documents; squares: sum of their squares, over the tokens
    too. The variance over positions of the mean over documents is divided by the whole variance; as
    the mean of N independent values keeps 1/N of their variance, the result is (N share - 1) /
    (N - 1): 1 for a function of position; 0 on average, at times less, where position explains
    nothing. A constant has 0.

    Two documents of three tokens; one series depends on the position alone, one on the document
    too:

    >>> x = np.array([[[1, 1], [2, 2], [3, 3]], [[1, -1], [2, -2], [3, -3]]], float)
    >>> position_share(x.sum(axis=0), np.square(x).sum(axis=(0, 1)), N=2).round(9)
    array([ 1., -1.])
    """
    mean = total.mean(axis=-2) / N
    mean_square = squares / (N * total.shape[-2])
    whole = mean_square - np.square(mean)
    is_constant = whole <= 1e-12 * np.square(mean)
    deviations = total / N - mean[..., None, :]
    by_position = np.square(deviations).mean(axis=-2)
    share = by_position / np.where(is_constant, 1, whole)
    unbiased = (N * share - 1) / (N - 1)
    return np.where(is_constant, 0, unbiased)
