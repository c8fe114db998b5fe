"""Where scores come from: queries and keys are sums over sources, so a score is a sum of products.

q_i = sum of q^a_i and k_j = sum of k^b_j give q_i . k_j = sum of q^a_i . k^b_j, one term for each
pair of sources. Lag t = key position - query position. C sources, T tokens, d width of a head, R
lags, 2 reach + 1 of them; ... heads.

Order: the terms by lag, the peak and its parts; the variance of scores, and what terms and the lag
explain of it; the sources in bands of periods.
"""

from itertools import pairwise

import numpy as np
import scipy

# periods in tokens that separate the bands of waves, half an octave each; slower ones share a band
EDGES = tuple(2 * 2 ** (k / 2) for k in range(7))


def lag_sums(q, k, reach):
    """Sum over i of q^a_i . k^b_{i + t} for every pair: [A ... T d], [C ... T d] -> [A C ... R].

    Computed in float64.

    The terms sum to the sums of the scores along their diagonals:

    >>> q, k = np.random.default_rng(0).normal(size=(2, 2, 6, 3))  # two sources of six tokens
    >>> terms = lag_sums(q, k, reach=2)
    >>> scores = q.sum(axis=0) @ k.sum(axis=0).T
    >>> bool(np.allclose(terms.sum(axis=(0, 1)), [np.trace(scores, t) for t in (-2, -1, 0, 1, 2)]))
    True
    """
    T = q.shape[-2]
    n = scipy.fft.next_fast_len(T + reach, real=True)  # long enough that nothing wraps within reach
    Q = _lines(q, n)  # [... F A d]
    K = _lines(k, n)  # [... F C d]
    products = Q.conj() @ K.swapaxes(-1, -2)
    circular = scipy.fft.irfft(products, n, axis=-3)  # [... n A C]
    from_left = np.roll(circular, reach, axis=-3)
    near = from_left[..., : 2 * reach + 1, :, :]
    return np.moveaxis(near, (-2, -1), (0, 1))


def _lines(x, n):
    """Spectrum over n positions of [A ... T d], with the sources beside the width: [... F A d]."""
    spectrum = scipy.fft.rfft(np.asarray(x, np.float64), n, axis=-2)
    return np.moveaxis(spectrum, 0, -2)


def rise(curve, lag, causal=False):
    """Height of curves at one lag above their mean over the others: [... R], [...] -> [...].

    It is linear: the rises of terms sum to the rise of their sum. causal: only t <= 0 counts.

    At lag +1, above the mean of the four others:

    >>> float(rise(np.array([1.0, 1, 1, 5, 1]), lag=1))
    4.0
    """
    reach = curve.shape[-1] // 2
    if causal:
        curve = curve[..., : reach + 1]
    place = np.broadcast_to(np.asarray(lag) + reach, curve.shape[:-1])
    height = np.take_along_axis(curve, place[..., None], axis=-1)[..., 0]
    n_others = curve.shape[-1] - 1
    others = (curve.sum(axis=-1) - height) / n_others
    return height - others


def peak_parts(terms, lag, causal=False):
    """Share of each term in the rise of their sum at a lag: [A C ... R], [...] -> [A C ...].

    They sum to 1; a share is below 0 where a term is lower there than elsewhere. All are 0 where
    the sum does not rise.

    The second source holds three quarters of a peak at lag 0:

    >>> flat, peak = np.zeros(3), np.array([0.0, 1, 0])
    >>> peak_parts(np.array([[peak, flat], [flat, 3 * peak]]), lag=0)
    array([[0.25, 0.  ],
           [0.  , 0.75]])
    """
    rises = rise(terms, lag, causal)
    return over(rises, rises.sum(axis=(0, 1)))


def over(part, whole):
    """part / whole, 0 where the whole is not above 0.

    >>> over(np.array([1.0, 1.0]), np.array([4.0, 0.0]))
    array([0.25, 0.  ])
    """
    is_above = whole > 0
    divisor = np.where(is_above, whole, 1)
    return np.where(is_above, part / divisor, 0)


def within_rows(scores, visible):
    """Scores minus the mean of their row over visible keys, 0 elsewhere: [... T T] -> [... T T].

    What is added to a whole row of scores changes no attention. visible: [T T] bool.

    >>> within_rows(np.array([[1.0, 9.0], [2.0, 4.0]]), visible=np.tri(2, dtype=bool))
    array([[ 0.,  0.],
           [-1.,  1.]])
    """
    inside = np.where(visible, scores, 0)
    totals = inside.sum(axis=-1, keepdims=True)
    n_visible = visible.sum(axis=-1, keepdims=True)
    return np.where(visible, inside - totals / n_visible, 0)


def term_products(q, k, centred):
    """Sum over i, j of q^a_i . k^b_j times centred scores: [A ... T d], [C ... T d] -> [A C ...].

    Divided by the sum of the scores' squares it is the share of the variance that a term holds; the
    shares of all terms sum to 1.

    >>> q, k = np.random.default_rng(0).normal(size=(2, 2, 6, 3))  # two sources of six tokens
    >>> centred = within_rows(q.sum(axis=0) @ k.sum(axis=0).T, np.ones((6, 6), bool))
    >>> parts = term_products(q, k, centred) / np.square(centred).sum()
    >>> parts.shape, round(float(parts.sum()), 9)
    ((2, 2), 1.0)
    """
    queries = _flat(q)  # [... A T*d]
    weighted = _flat(centred @ k)  # [... C T*d]
    products = queries @ weighted.swapaxes(-1, -2)
    return np.moveaxis(products, (-2, -1), (0, 1))


def _flat(x):
    """[A ... T d] -> [... A T*d]."""
    x = np.moveaxis(x, 0, -3)
    return x.reshape(*x.shape[:-2], -1)


def diagonal_sums(x):
    """Sum over i of x[i, i + t] for every lag t: [... T T] -> [... 2T - 1], in float64.

    >>> diagonal_sums(np.array([[1, 2], [3, 4]]))  # lags -1, 0, 1
    array([3., 5., 2.])
    """
    T = x.shape[-1]
    heads = x.shape[:-2]
    n = 2 * T - 1  # lags
    flat = np.zeros((*heads, T * (n + 1)), x.dtype)
    rows = flat[..., : T * n].reshape(*heads, T, n)
    rows[..., T - 1 :] = x
    # read with rows longer by one, row i stands i further to the left: diagonals are columns
    columns = flat.reshape(*heads, T, n + 1)
    sums = columns.sum(axis=-2, dtype=np.float64)
    return sums[..., :n]


class LagFit:
    """Least squares of row effects plus a function of the lag to scores: r_i + f(j - i).

    It is fitted to what is visible, [T T] bool. It fully explains a score matrix that is Toeplitz
    up to a number added to each row.

    Scores that depend on the lag alone, up to a number for each row:

    >>> lag = np.arange(5) - np.arange(5)[:, None]
    >>> visible = np.ones((5, 5), bool)
    >>> scores = within_rows(np.cos(lag) + np.arange(5)[:, None], visible)
    >>> explained = LagFit(visible).explained(diagonal_sums(scores))
    >>> round(float(explained / np.square(scores).sum()), 9)
    1.0
    """

    def __init__(self, visible):
        T = len(visible)
        places = np.arange(T)
        lag = places - places[:, None] + T - 1
        seen = np.zeros((T, 2 * T - 1))
        np.put_along_axis(seen, lag, visible.astype(float), axis=1)
        self.lags = np.flatnonzero(seen.any(axis=0))
        seen = seen[:, self.lags]
        n_seen = seen.sum(axis=0)
        row_means = seen / seen.sum(axis=1, keepdims=True)
        # what is left of the lags without the rows; a constant f is nothing: the ones fix it
        self.normal = np.diag(n_seen) - seen.T @ row_means + 1

    def explained(self, sums):
        """Sum of squares that the lag explains, from diagonal sums of `within_rows`.

        [... 2T - 1] -> [...].
        """
        b = sums[..., self.lags].reshape(-1, len(self.lags))
        f = scipy.linalg.solve(self.normal, b.T, assume_a="pos").T
        return (b * f).sum(axis=1).reshape(sums.shape[:-1])


def bands(T):
    """Names of the bands of periods of a wave in T tokens, and the band of each frequency [F].

    The band of frequency 0, which is no wave, is -1.

    >>> names, band = bands(8)
    >>> names, band
    (array(['2–2.8', '2.8–4', '4–5.7', 'over 5.7'], dtype='<U8'), array([-1,  3,  2,  0,  0]))
    """
    edges = [edge for edge in EDGES if edge < T]
    names = [f"{a:.2g}–{b:.2g}" for a, b in pairwise(edges)]
    names.append(f"over {edges[-1]:.2g}")
    f = np.arange(T // 2 + 1)
    period = T / np.maximum(f, 1)
    period *= 1 + 1e-12  # a period that is an edge lies above it
    band = np.searchsorted(edges, period, side="right") - 1
    return np.array(names), np.where(f > 0, band, -1)


def in_bands(x, band, n):
    """A table in n bands of frequencies, which sum to it less its mean: [T D] -> [n T D].

    >>> x = np.random.default_rng(0).normal(size=(8, 2))
    >>> names, band = bands(8)
    >>> parts = in_bands(x, band, len(names))
    >>> bool(np.allclose(parts.sum(axis=0), x - x.mean(axis=0)))
    True
    """
    lines = scipy.fft.rfft(np.asarray(x, np.float64), axis=0)
    inside = band == np.arange(n)[:, None]  # [n F]
    return scipy.fft.irfft(inside[..., None] * lines, len(x), axis=1)
