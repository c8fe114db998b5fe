"""Queries, keys and the stream as signals over positions: which of their columns are waves, whose, and by chance.

T tokens, N documents, D width, L layers, H heads, r columns of Q = X U_Q and K = X U_K, F = T//2 + 1 frequencies.
Order: the peak of a position table; columns of one head; spectra of all heads; the weights alone; components.
"""

import numpy as np

from . import lags, nulls, spectra

SLOW = 4    # cycles over a document: slower waves tell near from far, not one token from the next
DRAWS = 50  # sets of random directions


# the peak of a position table

def position_peak(table, seed=0, shuffles=100):
    """(f, whether it is a peak) of a position table [T D], f in cycles over its T rows.

    The largest local maximum of the mean amplitude, of more than SLOW cycles, that stands above what 99.9 % of the
    row shuffles reach anywhere. Without one the largest amplitude at any frequency.
    """
    def mean(x):
        return spectra.amplitude(x).mean(axis=1)
    largest = nulls.distribution(lambda x: mean(x)[1:].max(), nulls.row_shuffles(table, shuffles, seed))
    found = [int(f) for f in spectra.maxima(mean(table), np.quantile(largest, 0.999)) if f > SLOW]
    return (found[0], True) if found else (1 + int(mean(table)[1:].argmax()), False)


# columns of one head

def carried(q, k, S, low, high):
    """What each column can give to the scores in a band, s_j sum of |q_j(f)| |k_j(f)|: [T r] twice, [r] -> [r]."""
    return S * (spectra.amplitude(q) * spectra.amplitude(k))[low:high + 1].sum(axis=0)


def correlation(q, k, reach):
    """Cross-correlation (eq 12) at the lags -reach ... reach: [T c] twice -> [2 reach + 1 c]."""
    T = len(q)
    return lags.xcorr(q, k)[T - 1 - reach:T + reach]


def by_chance(x, q, r, low, high, reach, seed=0):
    """95 % quantile, over random directions, of the highest correlation with each query column: [T D], [T c] -> [c].

    In each draw r orthonormal directions take the place of U_K, and the one that carries most of the band together
    with the query's column is compared, so that the null is chosen as the columns are.
    """
    rng, found = np.random.default_rng(seed), []
    of_q = spectra.amplitude(q)[low:high + 1]
    for _ in range(DRAWS):
        k = x @ np.linalg.qr(rng.standard_normal((x.shape[1], r)))[0]
        most = (of_q.T @ spectra.amplitude(k)[low:high + 1]).argmax(axis=1)
        found.append(correlation(q, k[:, most], reach).max(axis=0))
    return np.quantile(found, 0.95, axis=0)


def periodic(q, k, shuffles, seed=0):
    """How many columns have an amplitude at f >= 2 that no row shuffle reaches, in q and k both: [T r] twice.

    Second: the most columns in which one shuffle surpasses all the others, in q and k both: what chance gives.
    """
    def largest(both):
        return spectra.amplitude(both)[2:].max(axis=0).reshape(2, q.shape[1])
    both = np.hstack([q, k])
    shuffled = nulls.distribution(largest, nulls.row_shuffles(both, shuffles, seed))  # [shuffles 2 r]
    winners = shuffled.argmax(axis=0)
    alike = winners[0][winners[0] == winners[1]]
    return (largest(both) > shuffled.max(axis=0)).all(axis=0).sum(), np.bincount(alike, minlength=1).max()


def replaced(x, W_Q, W_K):
    """Largest change of x W_Q (x W_K)^T, over its largest entry, when (W_A, I) takes the place of (W_Q, W_K).

    [T D], [D d] twice -> a number: rounding, as only W_A = W_Q W_K^T matters.
    """
    W_A, one = W_Q @ W_K.T, np.eye(len(W_Q))
    before, after = (x @ left @ (x @ right).T for left, right in ((W_Q, W_K), (W_A, one)))
    return abs(after - before).max() / max(abs(before).max(), 1e-300)


# spectra of all heads

def largest(X, U=None):
    """Largest amplitude of any column, of X or of X U over all heads, at each f: [L T D], [L H D r] -> [L F]."""
    if U is None:
        return np.array([spectra.amplitude(x).max(axis=1) for x in X])
    return np.array([np.max([spectra.amplitude(x @ one).max(axis=1) for one in u], axis=0) for x, u in zip(X, U)])


def contrast(curve, f):
    """Height at f over the median height at all frequencies but 0: [... F] -> [...]."""
    return curve[..., f] / np.maximum(np.median(curve[..., 1:], axis=-1), 1e-300)


def alike(curve, other):
    """Correlation of two spectra [F] over all frequencies but 0; 0 where one of them is flat."""
    a, b = (np.asarray(x[1:], np.float64) - np.mean(x[1:], dtype=np.float64) for x in (curve, other))
    return a @ b / max(np.linalg.norm(a) * np.linalg.norm(b), 1e-300)


# the weights alone

def effective_rank(S):
    """Participation ratio of the squared singular values, (sum s^2)^2 / sum s^4: [... r] -> [...], 1 to r."""
    squares = np.square(S) / np.maximum(np.square(S).sum(axis=-1, keepdims=True), 1e-300)
    return 1 / np.maximum(np.square(squares).sum(axis=-1), 1e-300)


def between(V, W_Q, W_K):
    """Share of W_A that joins a space to itself, |V^T W_A V|^2 / |W_A|^2 (Frobenius).

    V [D n] orthonormal, [H D d] twice -> [H]. No D x D matrix is formed: |W_A|^2 is the sum over the entries of
    (W_Q^T W_Q) (W_K^T W_K), entry by entry.
    """
    inner = (V.T @ W_Q) @ (V.T @ W_K).swapaxes(-1, -2)
    whole = ((W_Q.swapaxes(-1, -2) @ W_Q) * (W_K.swapaxes(-1, -2) @ W_K)).sum(axis=(-1, -2))
    return np.square(inner).sum(axis=(-1, -2)) / np.maximum(whole, 1e-300)


# components

def position_share(total, squares, N):
    """Share of the variance of each series that position explains: sums over N > 1 documents [... T C] -> [... C].

    total: sum of the series, squares [... C]: sum of their squares over the tokens too. The variance over positions
    of the mean over documents, over the whole variance; as the mean of N independent values keeps 1/N of theirs,
    (N share - 1) / (N - 1): 1 for a function of position, and without any 0 on average, at times below. A constant
    has 0.
    """
    mean = total.mean(axis=-2) / N
    whole = squares / (N * total.shape[-2]) - np.square(mean)
    still = whole <= 1e-12 * np.square(mean)
    share = np.square(total / N - mean[..., None, :]).mean(axis=-2) / np.where(still, 1, whole)
    return np.where(still, 0, (N * share - 1) / (N - 1))
