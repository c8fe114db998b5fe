"""The rotation that turns queries into keys, angle by angle, and how much of it is an arbitrary choice.

U_K = U_Q R, so K = X U_K = Q R. For complete bases [D D] R is orthogonal, and an eigenvector p with eigenvalue
exp(i theta) gives K p = exp(i theta) Q p: theta is the phase between two waves. Sign: where Q p goes like
exp(2 pi i f t / T), f > 0, K p is Q p moved by Delta = T theta / (2 pi f) tokens, k[t] = q[t + Delta], so that the
query at t meets its like at the key t - Delta: Delta > 0 is attention to the left, at the key offset -Delta.

W_A fixes only r <= d of the D columns of each basis (those with a singular value); the rest is any basis of its
null space. T tokens, D model width, d head width, n angles, F = T//2 + 1.
Order: bases, angles, maps over frequency and angle, sums of a map; then how far a map moves with the free choice.
"""

import numpy as np
from scipy.fft import rfft
from scipy.linalg import schur

from . import factors


def complete(W_Q, W_K, how="procrustes", seed=0):
    """Bases U_Q, U_K of W_Q, W_K [D d], each [D D] in float64; how: one of COMPLETIONS, another name: ValueError.

    The seed is that of the null-space bases: "random" takes them as they are, "procrustes" starts from them and
    ends at the same rotation whatever they are; "lapack" has its own, "thin" none: [D r], what is determined.
    """
    if how not in COMPLETIONS:
        raise ValueError(f"no completion {how!r}, there are {', '.join(COMPLETIONS)}")
    W_Q, W_K = np.asarray(W_Q, np.float64), np.asarray(W_K, np.float64)
    return COMPLETIONS[how](W_Q, W_K, np.random.default_rng(seed))


def _thin(W_Q, W_K, rng):
    """The columns that W_A determines."""
    U_Q, S, U_K = factors.svd(W_Q, W_K)
    kept = S > len(W_Q) * np.finfo(S.dtype).eps * S[0]
    return U_Q[:, kept], U_K[:, kept]


def _random(W_Q, W_K, rng):
    """Any basis of each null space."""
    return tuple(np.hstack([U, _rest(U, rng)]) for U in _thin(W_Q, W_K, rng))


def _rest(U, rng):
    """A random orthonormal basis of what the orthonormal columns [D r] leave: [D D - r]."""
    D, r = U.shape
    return np.linalg.qr(np.hstack([U, rng.standard_normal((D, D - r))]))[0][:, r:]


def _procrustes(W_Q, W_K, rng):
    """The null-space basis of U_K turned nearest to that of U_Q (orthogonal Procrustes): the R nearest to 1."""
    U_Q, U_K = _thin(W_Q, W_K, rng)
    N_Q, N_K = _rest(U_Q, rng), _rest(U_K, rng)
    left, _, right = np.linalg.svd(N_K.T @ N_Q)
    return np.hstack([U_Q, N_Q]), np.hstack([U_K, N_K @ left @ right])


def _lapack(W_Q, W_K, rng):
    """What the library happens to return for the null space of the dense W_A: the published way."""
    U_Q, _, U_K = np.linalg.svd(W_Q @ W_K.T)
    return U_Q, U_K.T


COMPLETIONS = {"procrustes": _procrustes, "lapack": _lapack, "random": _random, "thin": _thin}


def angles(U_Q, U_K):
    """Eigenvalues of R = U_Q^T U_K (eqs 9, 10): theta [n] rising in (-pi, pi], eigenvectors P [n n], modulus [n].

    Complete bases: P is unitary, every modulus 1; where R is a reflection (determinant -1) one angle is pi and one
    more than otherwise 0. Thin bases: R only contracts, its modulus <= 1 falls with the part of K that Q has not,
    and P is not orthogonal.
    """
    R = U_Q.T @ U_K
    values, P = _normal(R) if U_Q.shape[0] == U_Q.shape[1] else np.linalg.eig(R)
    theta = np.angle(values)
    order = np.argsort(theta, kind="stable")
    return theta[order], P[:, order], abs(values)[order]


def _normal(R):
    """Eigenvalues, orthonormal eigenvectors of an orthogonal R: its real Schur form has blocks of 1 and 2 alone.

    Most angles of a completed R are zero, and the vectors that eig finds for one eigenvalue are not orthogonal,
    not even independent (measured, D = 768: condition 3e19).
    """
    blocks, Z = schur(R)
    values, P = np.diag(blocks).astype(complex), Z.astype(complex)
    sine = np.diag(blocks, -1)
    i = np.flatnonzero(sine)  # the first row of each 2 x 2 block [[cos, -sin], [sin, cos]]
    values[i] += 1j * sine[i]
    values[i + 1] = values[i].conj()
    P[:, i] = (Z[:, i] - 1j * Z[:, i + 1]) / np.sqrt(2)
    P[:, i + 1] = P[:, i].conj()
    return values, P


def phase_map(x, U, P):
    """g(f, theta_i) = |FT(x U p_i)| at f = 0 ... T//2 of complex series: [T D], [D n], [n n] -> [F n]."""
    return abs(rfft(np.asarray(x) @ U, axis=0) @ P)


def shift(theta, T):
    """Delta(f, theta) = T theta / (2 pi f) in tokens, for f = 1 ... T//2: [n] -> [F - 1 n]."""
    return T * np.asarray(theta) / (2 * np.pi * np.arange(1, T // 2 + 1)[:, None])


def lag_curve(theta, T, delta):
    """The f at which an angle is a shift by delta tokens, T theta / (2 pi delta); below 0 where signs differ."""
    return T * np.asarray(theta) / (2 * np.pi * delta)


def by_lag(g, theta, T, reach=10):
    """Share of the energy g^2 at f > 0 whose Delta rounds to -reach ... reach: [F n], [n] -> [2 reach + 1].

    Shares of key offsets are these read backwards. An angle of 0 counts at Delta 0; in a completed basis that is
    also what neither query nor key reads: shares that bear on attention are those of factors.seen(x, W_Q, W_K).
    """
    energy = np.square(g[1:])
    delta = np.rint(shift(theta, T))
    near = abs(delta) <= reach
    total = np.bincount((delta[near] + reach).astype(int), energy[near], 2 * reach + 1)
    return total / max(energy.sum(), 1e-300)


def bin_centres(bins=64):
    """Angles [bins] of `binned`, equally spaced in (-pi, pi], 0 and pi among them; an odd number: ValueError."""
    if bins < 2 or bins % 2:
        raise ValueError(f"an even number of bins is wanted, {bins} is given")
    return 2 * np.pi * np.arange(1 - bins // 2, bins // 2 + 1) / bins


def binned(g, theta, bins=64):
    """Energy g^2 summed over the angles nearest to each of bin_centres: [F n], [n] -> [F bins].

    Unlike g it does not depend on which eigenvectors of equal eigenvalues were taken; -pi and pi are one angle.
    """
    nearest = np.rint(np.asarray(theta) * bins / (2 * np.pi)) + bins // 2 - 1
    members = nearest % bins == np.arange(len(bin_centres(bins)))[:, None]
    return np.square(g) @ members.T.astype(float)


def fit(q, k):
    """Share of the variance of k [T n] that an orthogonal map of q [T n] explains, columns centred, best scale.

    One rotation explains much of pure noise where n is not small beside T: to be read beside the fit of noise.
    """
    q, k = q - q.mean(axis=0), k - k.mean(axis=0)
    both = max(np.linalg.norm(q) * np.linalg.norm(k), 1e-300)
    return (np.linalg.svd(q.T @ k, compute_uv=False).sum() / both) ** 2


# completion -> what it makes of null-space bases that were turned at random first; only Procrustes turns them back
TURNED = {"procrustes": "procrustes", "lapack": "random", "random": "random", "thin": "thin"}


def gauge(W_Q, W_K, x, how="procrustes", n=5, seed=0):
    """How far the map of x [T D] moves with the null-space bases: how `alike` [n] it is with n from random ones.

    1 where the free choice does not matter. "random": what two arbitrary choices have in common, which is the
    determined columns. "lapack" no higher than that: the published map is one such choice.
    """
    def drawn(how, seed):
        U_Q, U_K = complete(W_Q, W_K, how, seed)
        return shape(x, U_Q, *angles(U_Q, U_K)[:2])
    first = drawn(how, seed)
    return np.array([alike(first, drawn(TURNED[how], seed + 1 + i)) for i in range(n)])


def shape(x, U, theta, P, bins=64):
    """How the amplitude of a map is spread over the angles at each f > 0: rows of mean 0 and norm 1, [F - 1 bins].

    The spectrum, which all maps of x share, is taken out. Rows below 1e-6 of the largest are rounding: they stay small.
    """
    rows = np.sqrt(binned(phase_map(x, U, P), theta, bins))[1:]
    rows = rows - rows.mean(axis=1, keepdims=True)
    norm = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.maximum(norm, max(1e-6 * norm.max(), 1e-300))


def alike(one, other):
    """Correlation of two `shape`s: the mean over the frequencies of that between their angles."""
    return np.sum(one * other) / max(np.linalg.norm(one) * np.linalg.norm(other), 1e-300)
