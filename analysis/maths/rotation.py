"""The rotation that turns queries into keys, angle by angle, and how much of it is arbitrary.

U_K = U_Q R, so K = X U_K = Q R. For complete bases [D D] R is orthogonal, and an eigenvector p with
eigenvalue exp(i theta) gives K p = exp(i theta) Q p: theta is the phase between two waves. Sign:
where Q p goes like exp(2 pi i f t / T), f > 0, K p is Q p moved by Delta = T theta / (2 pi f)
tokens, k[t] = q[t + Delta], so that the query at t matches the key at t - Delta: Delta > 0
is attention to the left, at the key offset -Delta.

W_A fixes only r <= d of the D columns of each basis (those with a singular value); the rest is any
basis of its null space (gauge.py: how much a map depends on it). T tokens, D model width, d head
width, n angles, F = T//2 + 1, R key offsets or lags.

Order: bases, angles, the rotation of a head, maps over frequency and angle; then what is read off a
map: shares by lag, those that chance gives, the matched filter, the fit.
"""

from typing import NamedTuple

import numpy as np
import scipy

from . import factors

ZERO = 1e-6  # radians below which an angle counts as zero
ROUNDING = 1e-9  # in entries of an orthogonal matrix; measured 7e-14


def complete(W_Q, W_K, completion="procrustes", seed=0):
    """Bases U_Q, U_K of W_Q, W_K [D d], each [D D] in float64.

    completion: one of COMPLETIONS. The seed draws the null-space bases: "random" takes them as they
    are, "procrustes" starts from them and ends at the same rotation for every seed; "lapack" has
    its own bases, and "thin" has none: it gives [D r], the part that is determined. Raises
    ValueError for another name.

    Square orthogonal bases, of which the weights determine the first 2 columns:

    >>> W_Q, W_K = np.random.default_rng(0).normal(size=(2, 6, 2))
    >>> U_Q, U_K = complete(W_Q, W_K)
    >>> U_Q.shape, np.allclose(U_Q.T @ U_Q, np.eye(6))
    ((6, 6), True)
    >>> complete(W_Q, W_K, "thin")[0].shape
    (6, 2)
    """
    if completion not in COMPLETIONS:
        raise ValueError(f"no completion {completion!r}; available: {', '.join(COMPLETIONS)}")
    W_Q = np.asarray(W_Q, np.float64)
    W_K = np.asarray(W_K, np.float64)
    return COMPLETIONS[completion](W_Q, W_K, np.random.default_rng(seed))


def _thin(W_Q, W_K, rng):
    """The columns that W_A determines."""
    U_Q, S, U_K = factors.svd(W_Q, W_K)
    rounding = len(W_Q) * np.finfo(S.dtype).eps * S[0]
    is_determined = S > rounding
    return U_Q[:, is_determined], U_K[:, is_determined]


def _random(W_Q, W_K, rng):
    """Any basis of each null space."""
    U_Q, U_K = _thin(W_Q, W_K, rng)
    N_Q = _null_space_basis(U_Q, rng)
    N_K = _null_space_basis(U_K, rng)
    return np.hstack([U_Q, N_Q]), np.hstack([U_K, N_K])


def _null_space_basis(U, rng):
    """A random orthonormal basis of what the orthonormal columns [D r] leave: [D D - r]."""
    D, r = U.shape
    noise = rng.standard_normal((D, D - r))
    Q, _ = np.linalg.qr(np.hstack([U, noise]))
    return Q[:, r:]


def _procrustes(W_Q, W_K, rng):
    """The null-space basis of U_K turned nearest to that of U_Q (orthogonal Procrustes).

    This gives the R nearest to 1.
    """
    U_Q, U_K = _thin(W_Q, W_K, rng)
    N_Q = _null_space_basis(U_Q, rng)
    N_K = _null_space_basis(U_K, rng)
    left, _, right = np.linalg.svd(N_K.T @ N_Q)
    turned = N_K @ left @ right
    return np.hstack([U_Q, N_Q]), np.hstack([U_K, turned])


def _lapack(W_Q, W_K, rng):
    """What the library happens to return for the null space of the dense W_A: the published way."""
    W_A = W_Q @ W_K.T
    U_Q, _, U_K = np.linalg.svd(W_A)
    return U_Q, U_K.T


COMPLETIONS = {"procrustes": _procrustes, "lapack": _lapack, "random": _random, "thin": _thin}


def angles(U_Q, U_K, distinct=False):
    """Angles theta [n], eigenvectors P [n n] and moduli [n] of R = U_Q^T U_K (eqs 9, 10).

    theta rises in (-pi, pi]. Complete bases: P is unitary and every modulus is 1; where R is a
    reflection (determinant -1), one angle is pi and one more is 0 than otherwise. Thin bases: R is
    a contraction, moduli <= 1 fall with the part of K that is not in Q, and P is not orthogonal.
    distinct: no two angles are expected to be equal, as in random bases, which takes a fifth of the
    time.

    Queries in a plane are turned by 1 radian into keys:

    >>> turn = np.array([[np.cos(1), -np.sin(1)], [np.sin(1), np.cos(1)]])
    >>> theta, P, moduli = angles(np.eye(2), turn)
    >>> theta.round(9), moduli.round(9)
    (array([-1.,  1.]), array([1., 1.]))
    """
    R = U_Q.T @ U_K
    D, n = U_Q.shape
    if n < D:
        values, P = np.linalg.eig(R)
    else:
        values, P = _eig_orthogonal(R, distinct)
    theta = np.angle(values)
    order = np.argsort(theta, kind="stable")
    moduli = abs(values)
    return theta[order], P[:, order], moduli[order]


def _eig_orthogonal(R, distinct):
    """Eigenvalues and orthonormal eigenvectors of an orthogonal R.

    Most angles of a completed R can be zero, and the vectors that eig finds for one eigenvalue are
    not orthogonal, not even independent (measured at D = 768: condition 3e19).
    """
    planes = _planes_of_distinct(R) if distinct else None
    cosine, sine, Z = planes or _planes(R)
    values = cosine.astype(complex)
    P = Z.astype(complex)
    i = np.flatnonzero(sine)  # the first row of each 2 x 2 block [[cos, -sin], [sin, cos]]
    values[i] += 1j * sine[i]
    values[i + 1] = values[i].conj()
    first = Z[:, i]
    second = Z[:, i + 1]
    P[:, i] = (first - 1j * second) / np.sqrt(2)
    P[:, i + 1] = P[:, i].conj()
    return values, P


def _planes(R):
    """Diagonal [n] and line below it [n - 1] of Z^T R Z, whose blocks are of 1 and 2, and Z [n n].

    This is the real Schur form.
    """
    blocks, Z = scipy.linalg.schur(R)
    return np.diag(blocks), np.diag(blocks, -1), Z


def _planes_of_distinct(R):
    """`_planes` by the eigenvectors of R + R^T, in a fifth of the time; None where that fails.

    They stand in pairs, one for each 2 cos theta, unless two angles are equal or opposite.
    """
    _, Z = np.linalg.eigh(R + R.T)
    turned = R @ Z
    cosine = np.sum(Z * turned, axis=0)
    sine = np.sum(Z[:, 1:] * turned[:, :-1], axis=0)
    sine[abs(sine) < ZERO] = 0
    rest = turned - Z * cosine
    rest[:, :-1] -= Z[:, 1:] * sine
    rest[:, 1:] += Z[:, :-1] * sine
    return (cosine, sine, Z) if abs(rest).max() < ROUNDING else None


class Rotation(NamedTuple):
    """How a head's queries turn into its keys, given a basis of each.

    What `of_head` returns; R can be computed from it:

    >>> W_Q, W_K = np.random.default_rng(0).normal(size=(2, 6, 2))
    >>> U_Q, U_K, theta, P, modulus = of_head(W_Q, W_K, "procrustes")
    >>> R = (P * modulus * np.exp(1j * theta)) @ P.conj().T
    >>> np.allclose(R, U_Q.T @ U_K)
    True
    """

    U_Q: np.ndarray  # [D n]
    U_K: np.ndarray  # [D n]
    theta: np.ndarray  # [n] angles, rising
    P: np.ndarray  # [n n] eigenvectors
    modulus: np.ndarray  # [n] of the eigenvalues


def of_head(W_Q, W_K, completion, seed=0):
    """The Rotation of a head with weights [D d]; completion: one of COMPLETIONS.

    The weights fix one of four directions; turning it takes a plane, and the others stay:

    >>> W_Q, W_K = np.random.default_rng(0).normal(size=(2, 4, 1))
    >>> abs(of_head(W_Q, W_K, "procrustes").theta).round(2)
    array([0.8, 0. , 0. , 0.8])
    """
    U_Q, U_K = complete(W_Q, W_K, completion, seed)
    return Rotation(U_Q, U_K, *angles(U_Q, U_K, distinct=completion == "random"))


def phase_map(x, U, P):
    """g(f, theta_i) = |FT(x U p_i)| at f = 0 ... T//2: [T D], [D n], [n n] -> [F n].

    A wave of 3 cycles along the first of two directions:

    >>> x = np.cos(2 * np.pi * 3 * np.arange(16) / 16)[:, None] * [[1.0, 0.0]]
    >>> g = phase_map(x, np.eye(2), np.eye(2))
    >>> g.shape, g[3].round(9)
    ((9, 2), array([8., 0.]))
    """
    projected = np.asarray(x) @ U
    lines = scipy.fft.rfft(projected, axis=0)
    return abs(lines @ P)


def maps(x, rotations):
    """(g [F n], theta [n]) of x [T D] for each Rotation.

    >>> W_Q, W_K = np.random.default_rng(0).normal(size=(2, 6, 2))
    >>> x = np.random.default_rng(1).normal(size=(16, 6))
    >>> [(g.shape, theta.shape) for g, theta in maps(x, [of_head(W_Q, W_K, "random")])]
    [((9, 6), (6,))]
    """
    return [(phase_map(x, U_Q, P), theta) for U_Q, _, theta, P, _ in rotations]


def shift(theta, T):
    """Delta(f, theta) = T theta / (2 pi f) in tokens, for f = 1 ... T//2: [n] -> [F - 1 n].

    Half a turn of a wave of 4 cycles in 16 tokens, one cycle being 4 tokens, are 2 tokens:

    >>> shift([np.pi], T=16)[4 - 1]
    array([2.])
    """
    f = np.arange(1, T // 2 + 1)[:, None]
    return T * np.asarray(theta) / (2 * np.pi * f)


def lag_curve(theta, T, delta):
    """The f at which an angle is a shift by delta tokens, T theta / (2 pi delta).

    It is below 0 where their signs differ.

    In a map, a shift by 2 tokens is half a turn at frequency 4:

    >>> lag_curve([np.pi], T=16, delta=2)
    array([4.])
    """
    return T * np.asarray(theta) / (2 * np.pi * delta)


def by_lag(g, theta, T, reach=10):
    """Share of the energy at f > 0 by its rounded Delta: [F n], [n] -> [2 reach + 1].

    Energy is g^2, Delta goes from -reach to reach. Shares of key offsets are the same in reverse
    order. An angle of 0 counts at Delta 0; in a completed basis that is also what neither query nor
    key reads: shares that bear on attention are those of factors.seen(x, W_Q, W_K).

    All energy is at frequency 4 and half a turn, a shift by 2 tokens:

    >>> g = np.zeros((9, 1))
    >>> g[4] = 1
    >>> by_lag(g, np.array([np.pi]), T=16, reach=2)
    array([0., 0., 0., 0., 1.])
    """
    energy = np.square(g[1:])
    delta = np.rint(shift(theta, T))
    near = abs(delta) <= reach
    places = (delta[near] + reach).astype(int)
    total = np.bincount(places, energy[near], 2 * reach + 1)
    return total / max(energy.sum(), 1e-300)


def expected_by_lag(g, theta, T, reach=10):
    """by_lag if the angles that hold the energy had nothing to do with the frequency.

    Each frequency keeps its energy, spread over the angles as in the mean over all frequencies. So
    an offset does not stand out merely because a few angles hold the energy at all frequencies.

    Two waves are moved by 2 tokens, each by its own angle; by chance each has the mean of both:

    >>> g, theta = np.zeros((9, 2)), np.array([np.pi / 2, np.pi])
    >>> g[2, 0] = g[4, 1] = 1
    >>> by_lag(g, theta, T=16, reach=4)
    array([0., 0., 0., 0., 0., 0., 1., 0., 0.])
    >>> expected_by_lag(g, theta, T=16, reach=4)
    array([0.  , 0.  , 0.  , 0.  , 0.  , 0.25, 0.5 , 0.  , 0.25])
    """
    total, rows = _energy_and_rows(g)
    even = np.zeros_like(g)
    even[1:] = np.sqrt(total * rows.sum(axis=0) / max((total > 0).sum(), 1))
    return by_lag(even, theta, T, reach)


def dealt_by_lag(g, theta, T, n, seed=0, reach=10):
    """by_lag of n maps in which the frequencies' angles are permuted at random.

    [F m], [m] -> [n 2 reach + 1]. Each keeps its energy; the mean over all permutations
    is `expected_by_lag`.

    Two waves are moved by 2 tokens: they are so with their own angles, not with each other's:

    >>> g, theta = np.zeros((9, 2)), np.array([np.pi / 2, np.pi])
    >>> g[2, 0] = g[4, 1] = 1
    >>> dealt_by_lag(g, theta, T=16, n=8, reach=2)[:, 4]
    array([1., 1., 1., 0., 0., 1., 1., 0.])
    """
    total, rows = _energy_and_rows(g)
    present = np.flatnonzero(total > 0)
    delta = np.rint(shift(theta, T))
    deals = np.tile(present, (n, 1))
    deals = np.random.default_rng(seed).permuted(deals, axis=1)
    by_lag_of_deals = []
    for lag in range(-reach, reach + 1):
        # what each frequency adds to this lag with the angles of each other one
        added = (total * (delta == lag)) @ rows.T
        by_lag_of_deals.append(added[present, deals].sum(axis=1))
    return np.stack(by_lag_of_deals, -1) / max(total.sum(), 1e-300)


def _energy_and_rows(g):
    """Energy at each f > 0, [F - 1 1], and how it is spread over the angles, rows with sum 1.

    Frequencies with no more energy than rounding have none.
    """
    energy = np.square(g[1:])
    total = energy.sum(axis=1, keepdims=True)
    total = np.where(total > ROUNDING**2 * total.max(), total, 0)
    return total, np.where(total > 0, energy / np.maximum(total, 1e-300), 0)


def matched_filter(g, theta, T, reach=10):
    """How well a shift by each key offset fits a map: [F n], [n] -> [2 reach + 1], from -1 to 1.

    The sum of g^2 cos(theta + 2 pi f o / T) over all angles and all frequencies but 0, for each
    offset o, over the sum of g^2; a frequency below T/2 counts twice, as in a spectrum of both
    signs. An angle may be any number of turns, so that waves moved by more than half of one are not
    miscounted, as they are by `by_lag`. In complete bases this is the circular cross-correlation of
    Q and K, all columns together, each without its mean.

    Delta = 2 is attention to the key two tokens before, offset -2:

    >>> g, theta = np.zeros((9, 2)), np.array([np.pi / 2, np.pi])
    >>> g[2, 0] = g[4, 1] = 1
    >>> int(matched_filter(g, theta, T=16, reach=2).argmax()) - 2
    -2
    """
    energy = np.square(g[1:])
    f = np.arange(1, T // 2 + 1)
    both_signs = np.where(2 * f == T, 1, 2)
    phase = 2 * np.pi * f * np.arange(-reach, reach + 1)[:, None] / T
    turned = np.exp(1j * phase) @ (both_signs * (energy @ np.exp(1j * theta)))
    return turned.real / max(both_signs @ energy.sum(axis=1), 1e-300)


def bin_centres(bins=64):
    """Angles [bins] of `binned`, equally spaced in (-pi, pi], 0 and pi among them.

    Raises ValueError for an odd number.

    >>> bin_centres(4)
    array([-1.57079633,  0.        ,  1.57079633,  3.14159265])
    """
    if bins < 2 or bins % 2:
        raise ValueError(f"bins is {bins}; wanted an even number")
    half = bins // 2
    numbers = np.arange(1 - half, half + 1)
    return 2 * np.pi * numbers / bins


def binned(g, theta, bins=64):
    """Energy g^2 summed over the angles nearest to each of bin_centres: [F n], [n] -> [F bins].

    Unlike g it does not depend on which eigenvectors of equal eigenvalues were taken. Raises
    ValueError if bins is odd.

    Angles -pi and pi are one:

    >>> g, theta = np.array([[1.0, 2.0, 3.0]]), np.array([-np.pi, 0.1, np.pi])
    >>> binned(g, theta, bins=4)
    array([[ 0.,  4.,  0., 10.]])
    """
    places = np.arange(len(bin_centres(bins)))
    steps = np.rint(np.asarray(theta) * bins / (2 * np.pi))  # from the bin of angle 0
    nearest = (steps + bins // 2 - 1) % bins
    members = nearest == places[:, None]
    return np.square(g) @ members.T.astype(float)


def fit(q, k):
    """Share of the variance of k [T n] that an orthogonal map of q [T n] explains.

    Columns are centred, and the scale is the best one. One rotation explains much of pure noise
    unless n is small beside T: compare it with the fit of noise.

    Keys that are rotated queries, and keys that are noise:

    >>> q, noise = np.random.default_rng(0).normal(size=(2, 500, 3))
    >>> turn = np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    >>> round(float(fit(q, q @ turn)), 6), round(float(fit(q, noise)), 2)
    (1.0, 0.0)
    """
    q = q - q.mean(axis=0)
    k = k - k.mean(axis=0)
    norms = np.linalg.norm(q) * np.linalg.norm(k)
    S = np.linalg.svd(q.T @ k, compute_uv=False)
    return (S.sum() / max(norms, 1e-300)) ** 2
