"""Where scores come from: queries and keys are sums over sources, so a score is a sum of products.

q_i = sum of q^a_i and k_j = sum of k^b_j give q_i . k_j = sum of q^a_i . k^b_j, one term for each
pair of sources. Lag t = key position - query position. C sources, T tokens, d width of a head, R
lags, 2 reach + 1 of them; ... heads.

Order: the terms by lag, the peak and the parts of it; the variance of scores, what of it the terms
and what the lag explains; the sources in bands of periods.
"""

from itertools import pairwise

import numpy as np
import scipy

# periods in tokens that part the bands of waves, half an octave each; slower ones are together
EDGES = tuple(2 * 2 ** (k / 2) for k in range(7))


def lag_sums(q, k, reach):
    """Sum over i of q^a_i . k^b_{i + t} for every pair: [A ... T d], [C ... T d] -> [A C ... R].

    Computed in float64.

    >>> q = np.array([[[1.0], [2.0], [3.0]]])  # one source, three tokens
    >>> lag_sums(q, q, 1)[0, 0].round(9).tolist()  # 1*2 + 2*3 one to the left and right, 1 + 4 + 9
    [8.0, 14.0, 8.0]
    """
    T = q.shape[-2]
    n = scipy.fft.next_fast_len(T + reach, real=True)  # long enough that nothing wraps within reach
    Q = _spectra(q, n)
    K = _spectra(k, n)
    products = Q.conj() @ K.swapaxes(-1, -2)
    circular = scipy.fft.irfft(products, n, axis=-3)  # [... n A C]
    from_lowest = np.roll(circular, reach, axis=-3)
    near = from_lowest[..., : 2 * reach + 1, :, :]
    return np.moveaxis(near, (-2, -1), (0, 1))


def _spectra(x, n):
    """Fourier lines of every source: [A ... T d] -> [... F A d]."""
    lines = scipy.fft.rfft(np.asarray(x, np.float64), n, axis=-2)
    return np.moveaxis(lines, 0, -2)


def rise(curve, lag, causal=False):
    """How far curves stand at one lag above their mean over the others: [... R], [...] -> [...].

    It is linear: the rises of terms sum to the rise of their sum. causal: only t <= 0 counts.

    >>> float(rise(np.array([1.0, 5.0, 3.0]), 0))
    3.0
    >>> float(rise(np.array([1.0, 5.0, 3.0]), 0, causal=True))
    4.0
    """
    reach = curve.shape[-1] // 2
    if causal:
        curve = curve[..., : reach + 1]
    place = np.asarray(lag) + reach
    place = np.broadcast_to(place, curve.shape[:-1])
    height = np.take_along_axis(curve, place[..., None], axis=-1)[..., 0]
    others = curve.sum(axis=-1) - height
    n_others = curve.shape[-1] - 1
    return height - others / n_others


def peak_parts(terms, lag, causal=False):
    """Share of each term in the rise of their sum at a lag: [A C ... R], [...] -> [A C ...].

    They sum to 1; one is below 0 where a term is lower there than elsewhere. 0 where the sum does
    not rise.

    >>> terms = np.array([[[0.0, 3.0, 0.0], [1.0, 2.0, 1.0]]])  # two of them, by lag -1, 0, 1
    >>> peak_parts(terms, 0).tolist()
    [[0.75, 0.25]]
    """
    rises = rise(terms, lag, causal)
    return over(rises, rises.sum(axis=(0, 1)))


def over(part, whole):
    """part / whole, 0 where the whole is not above 0.

    >>> over(np.array([1.0, 1.0]), np.array([2.0, 0.0])).tolist()
    [0.5, 0.0]
    """
    is_some = whole > 0
    quotient = part / np.where(is_some, whole, 1)
    return np.where(is_some, quotient, 0)


def within_rows(scores, visible):
    """Scores less the mean of their row over what is visible, 0 elsewhere: [... T T] -> [... T T].

    What is added to a whole row of scores changes no attention. visible: [T T] bool.

    >>> within_rows(np.array([[1.0, 3.0], [7.0, 5.0]]), np.ones((2, 2), bool)).tolist()
    [[-1.0, 1.0], [1.0, -1.0]]
    >>> within_rows(np.array([[1.0, 3.0], [7.0, 5.0]]), np.tri(2, dtype=bool)).tolist()
    [[0.0, 0.0], [1.0, -1.0]]
    """
    inside = np.where(visible, scores, 0)
    totals = inside.sum(axis=-1, keepdims=True)
    counts = visible.sum(axis=-1, keepdims=True)
    return np.where(visible, inside - totals / counts, 0)


def term_products(q, k, centred):
    """Sum over i, j of q^a_i . k^b_j times centred scores: [A ... T d], [C ... T d] -> [A C ...].

    Divided by the sum of their squares it is the share of the variance that a term holds: those of
    all terms sum to 1.

    >>> q, k = np.array([[[1.0], [2.0]]]), np.array([[[1.0], [0.0]], [[0.0], [1.0]]])
    >>> term_products(q, k, np.array([[1.0, -1.0], [3.0, -3.0]])).tolist()
    [[7.0, -7.0]]
    """
    queries = _flat(q)
    weighted_keys = _flat(centred @ k)
    products = queries @ weighted_keys.swapaxes(-1, -2)
    return np.moveaxis(products, (-2, -1), (0, 1))


def _flat(x):
    """All tokens and columns of a source in one row: [A ... T d] -> [... A T*d]."""
    by_source = np.moveaxis(x, 0, -3)
    return by_source.reshape(*by_source.shape[:-2], -1)


def diagonal_sums(x):
    """Sum over i of x[i, i + t] for every lag t: [... T T] -> [... 2T - 1], in float64.

    >>> diagonal_sums(np.array([[1, 2], [3, 4]])).tolist()
    [3.0, 5.0, 2.0]
    """
    *heads, T, _ = x.shape
    width = 2 * T - 1
    flat = np.zeros((*heads, T * (width + 1)), x.dtype)
    rows = flat[..., : T * width].reshape(*heads, T, width)
    rows[..., T - 1 :] = x
    # read with rows longer by one, row i stands i further to the left: diagonals are columns
    columns = flat.reshape(*heads, T, width + 1)
    sums = columns.sum(axis=-2, dtype=np.float64)
    return sums[..., :width]


class LagFit:
    """Least squares of row effects plus a function of the lag to scores: r_i + f(j - i).

    It is fitted to what is visible, [T T] bool. A score matrix that is Toeplitz, up to what is
    added to whole rows, is explained by it wholly.

    >>> scores = np.array([[5.0, 3.0, 1.0], [4.0, 5.0, 3.0], [2.0, 4.0, 5.0]])
    >>> visible = np.ones((3, 3), bool)
    >>> centred = within_rows(scores, visible)
    >>> explained = LagFit(visible).explained(diagonal_sums(centred))
    >>> round(float(explained / np.square(centred).sum()), 9)
    1.0
    """

    def __init__(self, visible):
        T = len(visible)
        places = np.arange(T)
        column = places - places[:, None] + T - 1
        seen = np.zeros((T, 2 * T - 1))
        np.put_along_axis(seen, column, visible.astype(float), axis=1)
        self.lags = np.flatnonzero(seen.any(axis=0))
        seen = seen[:, self.lags]
        counts = np.diag(seen.sum(axis=0))
        row_means = seen / seen.sum(axis=1, keepdims=True)
        # what is left of the lags without the rows; a constant f is nothing: the ones fix it
        self.normal = counts - seen.T @ row_means + 1

    def explained(self, sums):
        """Sum of squares that the lag explains, from diagonal sums of `within_rows`.

        [... 2T - 1] -> [...].
        """
        b = sums[..., self.lags]
        b = b.reshape(-1, len(self.lags))
        f = scipy.linalg.solve(self.normal, b.T, assume_a="pos").T
        explained = (b * f).sum(axis=1)
        return explained.reshape(sums.shape[:-1])


def bands(T):
    """Names of the bands of periods of a wave in T tokens, and the band of each frequency [F].

    The band of frequency 0, which is no wave, is -1.

    >>> names, band = bands(16)
    >>> names[band[[8, 4, 1]]].tolist()  # 8, 4 and 1 cycles in 16 tokens
    ['2–2.8', '4–5.7', 'over 11']
    """
    edges = [edge for edge in EDGES if edge < T]
    names = [f"{a:.2g}–{b:.2g}" for a, b in pairwise(edges)]
    names.append(f"over {edges[-1]:.2g}")
    f = np.arange(1, T // 2 + 1)
    period = T / f * (1 + 1e-12)  # a period of 4 is in the band from 4 on, whatever is rounded
    band = np.searchsorted(edges, period, side="right") - 1
    return np.array(names), np.r_[-1, band]


def in_bands(x, band, n):
    """A table in n bands of frequencies, which sum to it less its mean: [T D] -> [n T D].

    >>> wave = np.array([[1.0], [-1.0], [1.0], [-1.0]]) + 7
    >>> in_bands(wave, np.array([-1, 1, 0]), 2)[:, :, 0].round(9).tolist()
    [[1.0, -1.0, 1.0, -1.0], [0.0, 0.0, 0.0, 0.0]]
    """
    lines = scipy.fft.rfft(np.asarray(x, np.float64), axis=0)
    inside = band == np.arange(n)[:, None]  # [n F]
    parts = inside[..., None] * lines
    return scipy.fft.irfft(parts, len(x), axis=1)
