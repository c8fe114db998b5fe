"""Queries and keys as signals over positions: their correlation when one is moved along the other.

Lag t = key position - query position, in tokens: t > 0 looks right. T tokens, n columns, 2T - 1
lags, ... heads.

Order: covariance and correlation at all lags, their weighted sum, which is the scores' sum, and how
far its parts add up; then its peak, and the share of it that a part of the scores holds.
"""

import numpy as np
import scipy


def all_lags(T):
    """-(T - 1) ... T - 1.

    >>> all_lags(3)
    array([-2, -1,  0,  1,  2])
    """
    return np.arange(1 - T, T)


def xcov(q, k):
    """Sum of q[i] k[i + t] over i for every lag t (eq 11): [... T n] twice -> [... 2T - 1 n].

    Computed in float64.

    The key repeats what the query had two tokens before, so that the lag is +2:

    >>> q = np.array([[1.0], [0.0], [0.0], [0.0]])
    >>> k = np.array([[0.0], [0.0], [1.0], [0.0]])
    >>> covariance = xcov(q, k)[:, 0]
    >>> int(all_lags(4)[covariance.argmax()]), abs(covariance).round(9)
    (2, array([0., 0., 0., 0., 0., 1., 0.]))
    """
    T = q.shape[-2]
    n = scipy.fft.next_fast_len(2 * T - 1, real=True)
    Q = scipy.fft.rfft(np.asarray(q, np.float64), n, axis=-2)
    K = scipy.fft.rfft(np.asarray(k, np.float64), n, axis=-2)
    circular = scipy.fft.irfft(Q.conj() * K, n, axis=-2)  # lag 0 first, negative lags last
    from_lowest = np.roll(circular, T - 1, axis=-2)
    return from_lowest[..., : 2 * T - 1, :]


def xcorr(q, k):
    """xcov less its mean over all lags, over |q| |k| (eq 12): [... T n] twice -> [... 2T - 1 n].

    A column of zeros gives zeros.

    It has no unit; noise moved by one token:

    >>> q = np.random.default_rng(0).normal(size=(100, 1))
    >>> curve = xcorr(q, np.roll(q, 1, axis=0))[:, 0]
    >>> int(all_lags(100)[curve.argmax()]), round(float(curve.max()), 2)
    (1, 0.98)
    """
    covariance = xcov(q, k)
    centred = covariance - covariance.mean(axis=-2, keepdims=True)
    norms = _norm(q) * _norm(k)
    return centred / np.maximum(norms, 1e-300)


def _norm(x):
    return np.linalg.norm(np.asarray(x, np.float64), axis=-2, keepdims=True)


def weighted(covariance, s):
    """Sum of s_j xcov_j(t), which is the sum of all scores at lag t, tr_t(Q S K^T) (eqs 13-15).

    [... 2T - 1 n], [... n] -> [... 2T - 1].

    It is the sum over each diagonal of the scores Q S K^T, computed without these scores:

    >>> Q, K = np.random.default_rng(0).normal(size=(2, 5, 3))
    >>> S = np.array([3.0, 2.0, 1.0])
    >>> curve = weighted(xcov(Q, K), S)
    >>> np.allclose(curve, [np.trace(Q * S @ K.T, t) for t in all_lags(5)])
    True
    """
    return (covariance @ s[..., None])[..., 0]


def adding(parts):
    """How far n parts add up at each lag, from 0 (they cancel) to 1: [... n R] -> [... R].

    |sum| over the sum of their sizes; 0 where all parts are 0.

    Two columns that both peak at one lag, and are opposite at the next:

    >>> adding(np.array([[3.0, 1.0, 0.0], [1.0, -1.0, 0.0]]))
    array([1., 0., 0.])
    """
    sizes = abs(parts).sum(axis=-2)
    return abs(parts.sum(axis=-2)) / np.where(sizes > 0, sizes, 1)


def peak(curve, reach=10, causal=False):
    """Lag and sharpness of the highest point with |t| <= reach: [... 2T - 1] -> [...] each.

    causal: only t <= 0 counts. Sharpness: how far the peak stands above the median of those points,
    in their standard deviations. A cosine over whole periods has 1.4, one spike among m points
    has m / sqrt(m - 1) (4.7 for the 21 within 10 tokens), and no curve has more; a constant has 0.
    Of equal heights the one nearest to lag 0 is taken.

    One spike among 5 lags, one token to the left:

    >>> lag, sharpness = peak(np.array([0.0, 1.0, 0.0, 0.0, 0.0]), reach=2)
    >>> int(lag), round(float(sharpness), 9)
    (-1, 2.5)
    """
    t, inside = _compared(curve, reach, causal)
    nearest_first = np.argsort(abs(t[inside]), kind="stable")
    inside = inside[nearest_first]  # argmax takes the first: nearest 0
    heights = curve[..., inside]
    above = heights.max(axis=-1) - np.median(heights, axis=-1)
    spread = heights.std(axis=-1)
    lag = t[inside][heights.argmax(axis=-1)]
    sharpness = above / np.where(spread > 0, spread, 1)
    return lag, sharpness


def _compared(curve, reach, causal):
    """All lags [2T - 1] of a curve, and the positions of those that are compared."""
    t = all_lags(curve.shape[-1] // 2 + 1)
    within_reach = abs(t) <= reach
    if causal:
        within_reach &= t <= 0
    return t, np.flatnonzero(within_reach)


def height(curve, lag, reach=10, causal=False):
    """Height of a curve at one lag above its median over |t| <= reach.

    [... 2T - 1], [...] -> [...].

    >>> float(height(np.array([1.0, 5.0, 1.0, 1.0, 1.0]), -1, reach=2))
    4.0
    """
    t, inside = _compared(curve, reach, causal)
    place = np.asarray(lag)[..., None] - t[0]
    return np.take_along_axis(curve, place, axis=-1)[..., 0] - np.median(curve[..., inside], -1)


def peak_share(part, whole, reach=10, causal=False):
    """Share of the peak of `whole` that `part` holds: [... 2T - 1] twice -> [...].

    Both are measured at the lag where `whole` is highest, each above its own median within reach.
    It is 0 where `whole` is flat.

    Positions alone give 3 of the 4 by which the peak stands out:

    >>> whole = np.array([1.0, 5.0, 1.0, 1.0, 1.0])
    >>> positions = np.array([0.0, 3.0, 0.0, 0.0, 0.0])
    >>> float(peak_share(positions, whole, reach=2))
    0.75
    """
    lag, _ = peak(whole, reach, causal)
    of_whole = height(whole, lag, reach, causal)
    share = height(part, lag, reach, causal) / np.where(of_whole > 0, of_whole, 1)
    return np.where(of_whole > 0, share, 0)
