"""Queries and keys as waves, on constructed cases whose answers are known.

Order: filter, factors, rotation, its gauge, lags.

Bounds in float64 are those of sums and orthogonal steps in another order: 1e-11 to 1e-13 where
1e-13 to 1e-15 was measured, relative where the numbers are large. Others say what was measured.
"""

import sys
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
from distance import max_error
from scipy.linalg import block_diag

from minitx.analysis.maths import factors, gauge, lags, profiles, rotation, spectra

T, D, d = 64, 24, 6
F = (3, 5, 9)  # frequencies of the planted waves
DELTA = 2  # queries meet their like this number of tokens to the left


def draw(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def orthonormal(*shape, seed=0):
    Q, _ = np.linalg.qr(draw(*shape, seed=seed))
    return Q


def wave(T, f, phase=0.0):
    t = np.arange(T)
    return np.cos(2 * np.pi * f * t / T + phase)


def turn(angles):
    """[2n 2n] that turns n pairs of columns, (cos x, sin x) into (cos(x + a), sin(x + a))."""
    blocks = []
    for a in angles:
        c, s = np.cos(a), np.sin(a)
        blocks.append([[c, s], [-s, c]])
    return block_diag(*blocks)


def scores_of(x, W_Q, W_K):
    return x @ W_Q @ (x @ W_K).swapaxes(-1, -2)


def relative_error(a, b):
    """The largest difference of two arrays over the largest number of the second."""
    return max_error(a, b) / np.abs(b).max()


def planted(D=D, delta=DELTA):
    """x [T D], W_Q, W_K [D 6]: a key is like the query delta tokens later.

    x is waves along 6 of D directions.
    """
    # k[t] = q[t + delta] up to heights, so the like is delta to the left
    E = orthonormal(D, 2 * len(F))
    waves = [wave(T, f, phase) for f in F for phase in (0, -np.pi / 2)]
    x = np.stack(waves, 1) @ E.T
    W_Q = E * [6, 5, 4, 3, 2, 1]
    W_K = E @ turn(angles_of(delta))
    return x, W_Q, W_K


def angles_of(delta):
    """By how much each planted wave turns in delta tokens."""
    return 2 * np.pi * np.array(F) * delta / T


# filter


def test_bandpass_keeps_a_wave_with_its_phase_and_takes_out_the_rest():
    within = np.stack([wave(T, 5, 0.7), wave(T, 7, -2)], 1)
    slower = wave(T, 4, 1) + 3
    faster = wave(T, 8, 2) + wave(T, 32)
    x = within + np.stack([slower, faster], 1)
    # measured 2e-15: an FFT and back
    assert max_error(spectra.bandpass(x, 5, 7), within) < 1e-13
    high = spectra.bandpass(x, 8, 32)
    assert max_error(high[:, 1], faster) < 1e-13
    means = spectra.bandpass(x, 0, 3)
    assert max_error(means, [3, 0]) < 1e-13
    nothing = spectra.bandpass(x, 0.5, 3)
    assert max_error(nothing, 0) < 1e-13


@pytest.mark.parametrize("T", [15, 16])
def test_bandpass_of_all_frequencies_changes_nothing_but_the_mean(T):
    x = draw(T, 3)
    assert max_error(spectra.bandpass(x, 0, T), x) < 1e-13
    centred = x - x.mean(axis=0)
    assert max_error(spectra.bandpass(x, 1, T), centred) < 1e-13
    single = spectra.bandpass(x.astype(np.float32), 1, 4)
    assert single.dtype == np.float32


def test_bandpass_wants_a_band():
    with pytest.raises(ValueError, match="the band is from 9 to 3; wanted low before high"):
        spectra.bandpass(draw(T, 2), 9, 3)


# factors


@pytest.mark.parametrize("dtype, bound", [(np.float32, 1e-6), (np.float64, 1e-13)])
def test_thin_svd_is_the_dense_one(dtype, bound):
    """Same singular values (relative to the largest) and, by projectors, the same subspaces.

    Measured 7e-8 and 2e-15 for the values, 1.3e-7 and 2e-15 for the subspaces: rounding of either
    type.
    """
    W_Q, W_K = draw(2, 200, 16).astype(dtype)
    U_Q, S, U_K = factors.svd(W_Q, W_K)
    assert U_Q.dtype == S.dtype == U_K.dtype == dtype
    product = W_Q.astype(np.float64) @ W_K.T
    left, dense, right = np.linalg.svd(product)
    assert max_error(S, dense[:16]) < bound * dense[0]
    for thin, full in ((U_Q, left[:, :16]), (U_K, right[:16].T)):
        projector = full @ full.T
        difference = thin @ thin.T - projector
        assert np.linalg.norm(difference) < bound * np.linalg.norm(projector)
        assert max_error(thin.T @ thin, np.eye(16)) < bound
    assert max_error(U_Q * S @ U_K.T, product) < bound * dense[0]


def graded(condition, D=200, d=16, heads=3):
    """[heads D d] whose singular values fall from 1 to 1 / condition."""
    U = orthonormal(heads, D, d)
    V = orthonormal(heads, d, d, seed=1)
    S = np.geomspace(1, 1 / condition, d)
    return U * S @ V


QR = {
    "ordinary": draw(3, 200, 16),
    "orthonormal": graded(1),
    "condition 1e3": graded(1e3),
    "condition 3e5": graded(3e5),
    "whole numbers": np.arange(3 * 200 * 16).reshape(3, 200, 16) % 97,
    "no heads": np.zeros((0, 200, 16)),
    "condition 1e7": graded(1e7),
    "condition 1e12": graded(1e12),
    "nothing": np.zeros((3, 200, 16)),
    "columns of any size": graded(10) * 10.0 ** -np.arange(16),
    "dependent columns": draw(3, 200, 16)[..., [0, 0, *range(14)]],
    "wide": draw(3, 10, 16),
    "one row": draw(3, 1, 16),
    "one head": draw(200, 16),
}


@pytest.mark.parametrize("name", QR)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_qr_is_orthonormal_times_triangular(name, dtype):
    """By Cholesky or not: at most 2.1e-14 and 1.9e-15 in float64, 8.3e-7 and 1.2e-7 in float32."""
    bound = {np.float32: 2e-6, np.float64: 5e-14}[dtype]
    W = QR[name]
    if name != "whole numbers" or dtype != np.float64:
        W = W.astype(dtype)  # whole numbers go in as they are: the result is float64
    Q, R = factors.qr(W)
    assert Q.dtype == R.dtype == dtype
    assert Q.shape[:-1] == W.shape[:-1]
    assert R.shape[:-2] == W.shape[:-2]
    gram = Q.swapaxes(-1, -2) @ Q
    identity = np.eye(Q.shape[-1])
    assert np.abs(gram - identity).max(initial=0) < bound
    lengths = np.linalg.norm(W, axis=-2, keepdims=True)  # of the columns
    size = np.maximum(lengths, 1e-300)
    difference = np.abs(Q @ R - W)
    assert (difference <= bound * size).all()
    assert not np.tril(R, -1).any()


@pytest.mark.parametrize(
    "name, fast", [("ordinary", True), ("condition 1e3", True), ("condition 1e12", False)]
)
def test_qr_leaves_only_nearly_dependent_columns_to_numpy(name, fast, monkeypatch):
    counted = Mock(wraps=np.linalg.qr)
    monkeypatch.setattr(np.linalg, "qr", counted)
    factors.qr(QR[name])
    assert counted.called != fast


def test_eigenvalues_are_the_dense_ones_that_are_not_zero():
    W_Q, W_K = draw(2, 3, 200, 16)
    small = factors.eigenvalues(W_Q, W_K)
    assert small.shape == (3, 16)
    products = W_Q @ W_K.swapaxes(-1, -2)
    for ours, dense in zip(small, np.linalg.eigvals(products)):
        order = np.argsort(-abs(dense))
        largest = dense[order[:16]]
        distances = abs(ours[:, None] - largest)
        far = distances.min(axis=0)
        assert far.max() < 1e-11 * abs(largest).max()  # measured 2e-15
        assert abs(dense).min() < 1e-11


def test_thin_svd_takes_all_heads_at_once_and_fixes_the_signs():
    W_Q, W_K = draw(2, 3, 4, D, d)
    U_Q, S, U_K = factors.svd(W_Q, W_K)
    assert U_Q.shape == U_K.shape == (3, 4, D, d)
    assert S.shape == (3, 4, d)
    alone = factors.svd(W_Q[2, 1], W_K[2, 1])
    for whole, part in zip((U_Q, S, U_K), alone):
        assert np.array_equal(whole[2, 1], part)
    rows = abs(U_Q).argmax(-2, keepdims=True)
    largest = np.take_along_axis(U_Q, rows, -2)
    assert (largest > 0).all()
    flipped = factors.svd(-W_Q, W_K)
    assert max_error(flipped[0], U_Q) < 1e-12
    assert np.abs(flipped[2] + U_K).max() < 1e-12


def test_with_biases_the_factors_give_the_exact_scores():
    x = draw(T, D)
    W_Q, W_K = draw(2, 5, D, d, seed=1)
    b_Q, b_K = draw(2, 5, d, seed=2) + 3
    q = x @ W_Q + b_Q[:, None]
    k = x @ W_K + b_K[:, None]
    scores = q @ k.swapaxes(1, 2)
    U_Q, S, U_K = factors.svd(W_Q, W_K, b_Q, b_K)
    ones = factors.with_ones(x)
    assert ones.shape == (T, D + 1)
    assert U_Q.shape == (5, D + 1, d)
    ours = scores_of(ones, U_Q * S[:, None], U_K)
    assert relative_error(ours, scores) < 1e-13
    unbiased = scores_of(x, W_Q, W_K)
    assert relative_error(unbiased, scores) > 0.1
    with pytest.raises(ValueError, match="wanted both biases or none; b_K is missing"):
        factors.svd(W_Q, W_K, b_Q)


def test_pca_finds_the_directions_it_was_made_of():
    E = orthonormal(D, 2)
    E = E * factors.signs(E)
    height = np.stack([3 * wave(T, 4), wave(T, 6)], 1)
    plane = height @ E.T
    scores, directions, share = factors.pca(plane + 7, 2)
    assert max_error(directions, E.T) < 1e-13
    assert max_error(scores, height) < 1e-12
    assert share == pytest.approx([0.9, 0.1], abs=1e-13)
    explained = spectra.explained(plane)
    assert max_error(share.cumsum(), explained[:2]) < 1e-13
    with pytest.raises(ValueError, match="25 components requested for 64 tokens and 24 columns"):
        factors.pca(draw(T, D), 25)


def test_ica_tells_the_library_what_is_wanted_and_fixes_the_signs(monkeypatch):
    """In place of scikit-learn's FastICA stands one that gives columns with wrong signs."""
    x = draw(T, D)
    columns = x[:, :3]
    FastICA = Mock()
    FastICA.return_value.fit_transform.return_value = -columns
    monkeypatch.setitem(sys.modules, "sklearn", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "sklearn.decomposition", SimpleNamespace(FastICA=FastICA))
    ours = factors.ica(x, 3, seed=5)
    assert np.array_equal(ours, columns * factors.signs(columns))
    options = FastICA.call_args.kwargs
    assert (options["n_components"], options["random_state"]) == (3, 5)
    assert options["whiten"] == "unit-variance"


def test_ica_without_the_library_says_what_to_install(monkeypatch):
    # what an absent module looks like to import
    monkeypatch.setitem(sys.modules, "sklearn.decomposition", None)
    with pytest.raises(ValueError, match=r"pip install 'minitx\[ica\]'"):
        factors.ica(draw(T, D), 3)


# rotation


@pytest.mark.parametrize("completion", rotation.COMPLETIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bases_are_orthonormal_and_give_the_scores(completion, dtype):
    W_Q, W_K = draw(2, D, d).astype(dtype)
    U_Q, U_K = rotation.complete(W_Q, W_K, completion, seed=3)
    n = d if completion == "thin" else D
    assert U_Q.shape == U_K.shape == (D, n)
    assert U_Q.dtype == U_K.dtype == np.float64
    for U in (U_Q, U_K):
        assert max_error(U.T @ U, np.eye(n)) < 1e-13
    again = rotation.complete(W_Q, W_K, completion, seed=3)
    assert np.array_equal(again, [U_Q, U_K])
    W_Q, W_K = W_Q.astype(np.float64), W_K.astype(np.float64)
    _, S, _ = factors.svd(W_Q, W_K)
    product = U_Q[:, :d] * S @ U_K[:, :d].T
    assert max_error(product, W_Q @ W_K.T) < 1e-12


def test_only_columns_with_a_singular_value_are_determined():
    W_Q, W_K = draw(2, D, d)
    W_K[:, 3:] = W_K[:, :3]  # rank 3
    W_Q[:, 3:] = 0
    thin, _ = rotation.complete(W_Q, W_K, "thin")
    assert thin.shape == (D, 3)
    complete, _ = rotation.complete(W_Q, W_K)
    assert complete.shape == (D, D)


def test_an_unknown_completion_is_refused():
    W_Q, W_K = draw(2, D, d)
    message = "no completion 'full'; available: procrustes, lapack, random, thin"
    with pytest.raises(ValueError, match=message):
        rotation.complete(W_Q, W_K, "full")


@pytest.mark.parametrize("completion", rotation.COMPLETIONS)
def test_angles_are_those_of_the_rotation(completion):
    """R P = P exp(i theta); for complete bases P is unitary, though most angles are equal."""
    U_Q, U_K = rotation.complete(*draw(2, 60, d), completion)
    theta, P, modulus = rotation.angles(U_Q, U_K)
    assert (np.diff(theta) >= 0).all()
    assert -np.pi < theta[0] <= theta[-1] <= np.pi
    rotated = U_Q.T @ U_K @ P
    eigenvalues = modulus * np.exp(1j * theta)
    assert max_error(rotated, P * eigenvalues) < 1e-12  # measured 2e-15
    if completion == "thin":
        assert modulus.max() < 0.9
    else:
        # measured 3e-15; by np.linalg.eig 0.99
        assert max_error(P.conj().T @ P, np.eye(60)) < 1e-12
        assert max_error(modulus, 1) < 1e-12


def test_angles_of_reflections_are_pi_and_never_minus_pi():
    pi = np.pi
    R = np.diag([1.0, -1, -1, 1])
    U = orthonormal(4, 4)
    theta, _, _ = rotation.angles(U, U @ R)
    assert max_error(theta, [0, 0, pi, pi]) < 1e-12
    near_the_edges = np.array([-pi + 1e-15, 0, 1e-15, pi])
    ones = np.ones((1, 4))
    bins = rotation.binned(ones, near_the_edges, 4)
    assert bins.tolist() == [[0, 2, 0, 2]]
    centres = rotation.bin_centres(4)
    assert centres[1] == pytest.approx(0)
    assert centres[3] == pytest.approx(pi)


@pytest.mark.parametrize("completion", rotation.COMPLETIONS)
@pytest.mark.parametrize("D", [6, 24])
def test_a_rotation_built_in_comes_back_where_it_is_determined(completion, D):
    """Fully for D = d; for D > d among free angles.

    Queries and keys read one space of 6 dimensions.
    """
    _, W_Q, W_K = planted(D)
    U_Q, U_K = rotation.complete(W_Q, W_K, completion)
    theta, _, modulus = rotation.angles(U_Q, U_K)
    angles = angles_of(DELTA)
    built = np.concatenate([angles, -angles])
    distances = np.abs(theta - built[:, None])
    assert distances.min(axis=1).max() < 1e-12  # measured 9e-16
    assert max_error(modulus, 1) < 1e-12
    nearest = np.sort(distances.min(axis=0))
    free = nearest[6:]
    assert (free > 1e-3).all()
    assert len(free) == (0 if completion == "thin" else D - 6)
    if completion == "procrustes":
        # the smallest rotation leaves all other directions alone
        assert np.sum(np.abs(theta) < 1e-12) == D - 6


@pytest.mark.parametrize("completion", rotation.COMPLETIONS)
@pytest.mark.parametrize("delta", [-3, -1, 2])
def test_a_shift_built_in_is_where_its_angle_and_frequency_meet(completion, delta):
    """theta = 2 pi f Delta / T at each planted f and nowhere else; scores peak at offset -Delta."""
    x, W_Q, W_K = planted(delta=delta)
    U_Q, U_K, theta, P, _ = rotation.of_head(W_Q, W_K, completion)
    g = rotation.phase_map(x, U_Q, P)
    assert max_error(g, rotation.phase_map(x, U_K, P)) < 1e-10  # K p is Q p with another phase
    f, i = np.nonzero(g > 1e-9)
    assert set(f) == set(F)
    curve = rotation.lag_curve(theta[i], T, delta)
    assert max_error(curve, f) < 1e-11
    shift = rotation.shift(theta, T)
    assert max_error(shift[f - 1, i], delta) < 1e-11
    expected = 1.0 * (np.arange(-4, 5) == delta)
    share = rotation.by_lag(g, theta, T, reach=4)
    assert share == pytest.approx(expected, abs=1e-12)
    profile = profiles.profile(scores_of(x, W_Q, W_K), reach=9)
    assert profiles.offsets(9)[profile.argmax()] == -delta


def test_phase_map_is_the_plain_transform_of_complex_series():
    x = draw(T, D)
    U = orthonormal(D, D, seed=1)
    real = draw(D, D, seed=2)
    imaginary = draw(D, D, seed=3)
    P = real + 1j * imaginary
    amplitudes = abs(np.fft.fft(x @ U @ P, axis=0))
    slow = amplitudes[: T // 2 + 1]
    assert relative_error(rotation.phase_map(x, U, P), slow) < 1e-13


def test_binned_energy_is_kept_and_forgets_the_basis_of_equal_angles():
    U_Q, _, theta, P, _ = rotation.of_head(*draw(2, D, d, seed=4), "procrustes")
    x = draw(T, D, seed=1)
    free = np.flatnonzero(np.abs(theta) < 1e-9)
    assert len(free) == D - 2 * d
    turned = P.copy()
    turned[:, free] = P[:, free] @ orthonormal(len(free), len(free), seed=2)
    g = rotation.phase_map(x, U_Q, P)
    h = rotation.phase_map(x, U_Q, turned)
    assert max_error(g, h) > 1
    g_bins = rotation.binned(g, theta)
    h_bins = rotation.binned(h, theta)
    energy = np.square(g)
    assert max_error(g_bins, h_bins) < 1e-11 * energy.max()
    eight_bins = rotation.binned(g, theta, 8)
    assert eight_bins.sum() == pytest.approx(energy.sum(), rel=1e-12)
    with pytest.raises(ValueError, match="bins is 7; wanted an even number"):
        rotation.binned(g, theta, 7)


def test_what_neither_sees_is_gone_from_the_map_of_the_seen_part():
    W_Q, W_K = draw(2, D, d, seed=4)
    U_Q, U_K, theta, P, _ = rotation.of_head(W_Q, W_K, "procrustes")
    free = np.abs(theta) < 1e-9
    x = draw(T, D, seed=1)
    seen = factors.seen(x, W_Q, W_K)
    map_of_all = rotation.phase_map(x, U_Q, P)
    map_of_seen = rotation.phase_map(seen, U_Q, P)
    assert map_of_all[:, free].max() > 1
    assert map_of_seen[:, free].max() < 1e-10
    q = seen @ U_Q[:, :d]
    k = x @ U_K[:, :d]
    scores = scores_of(x, W_Q, W_K)
    assert relative_error(scores, q @ k.T) < 1e-13


def test_by_lag_leaves_out_the_mean_and_counts_lags_beyond_reach_in_the_whole():
    theta = np.array([0.0, np.pi / 2])
    g = np.zeros((T // 2 + 1, 2))
    g[0] = 99  # the mean
    g[4, 0] = 1  # Delta 0
    g[8, 1] = 2  # Delta T/4/8 = 2
    g[1, 1] = 3  # Delta 16
    share = rotation.by_lag(g, theta, T, 3)
    assert share.tolist() == [0, 0, 0, 1 / 14, 0, 4 / 14, 0]
    nothing = rotation.by_lag(0 * g, theta, T)
    assert not nothing.any()


@pytest.mark.parametrize("D", [23, 24, 60])
@pytest.mark.parametrize("seed", range(3))
def test_angles_of_random_bases_are_those_of_the_schur_form(D, seed):
    """An odd D leaves one real eigenvalue, an even one two where R is a reflection."""
    r = rotation.of_head(*draw(2, D, d, seed=seed), "random", seed)
    U_Q, U_K, theta, P, modulus = r
    slow, _, _ = rotation.angles(U_Q, U_K)
    from_pi = np.sort(np.where(slow > np.pi - 1e-9, slow - 2 * np.pi, slow))
    ours = np.sort(np.where(theta > np.pi - 1e-9, theta - 2 * np.pi, theta))
    assert max_error(ours, from_pi) < 1e-9  # near 0 and pi half of the digits: measured 2e-14
    assert max_error(modulus, 1) < 1e-12
    assert max_error(P.conj().T @ P, np.eye(D)) < 1e-12
    assert max_error(U_Q.T @ U_K @ P, P * np.exp(1j * theta)) < 1e-10  # measured 6e-14


def test_equal_angles_are_not_taken_for_distinct_ones():
    two_planes = turn([0.3, 0.3, 0.9])
    U = orthonormal(6, 6)
    mixed = orthonormal(6, 6, seed=1)
    R = mixed @ two_planes @ mixed.T
    theta, P, _ = rotation.angles(U, U @ R, distinct=True)
    assert max_error(theta, [-0.9, -0.3, -0.3, 0.3, 0.3, 0.9]) < 1e-12
    assert max_error(R @ P, P * np.exp(1j * theta)) < 1e-12


def test_shares_of_dealt_angles_are_by_lag_of_maps_with_other_frequencies_angles():
    x = draw(T, D)
    r = rotation.of_head(*draw(2, D, d), "random")
    g = rotation.phase_map(x, r.U_Q, r.P)
    g[7] = 0  # a frequency without energy takes no part
    by_deal = rotation.dealt_by_lag(g, r.theta, T, 400, seed=2)
    present = np.flatnonzero(np.arange(1, T // 2 + 1) != 7)
    orders = np.random.default_rng(2).permuted(np.tile(present, (400, 1)), axis=1)
    norm = np.linalg.norm(g[1:], axis=1, keepdims=True)
    rows = g[1:] / np.maximum(norm, 1e-300)
    for order, by_lag in zip(orders[:5], by_deal):
        mixed = np.zeros_like(g)
        mixed[1 + present] = norm[present] * rows[order]
        assert max_error(rotation.by_lag(mixed, r.theta, T), by_lag) < 1e-13
    expected = rotation.expected_by_lag(g, r.theta, T)
    assert max_error(by_deal.mean(axis=0), expected) < 5e-3  # measured 4e-4
    assert expected.sum() < 1


def test_energy_at_one_angle_whatever_the_frequency_is_no_offset():
    """It is one phase, not one shift: by the shares alone an offset stands out."""
    theta = np.linspace(-3, 3, 61)
    g = np.zeros((T // 2 + 1, 61))
    g[1:, 35] = 1
    share = rotation.by_lag(g, theta, T)
    assert share.max() > 0.5
    assert max_error(share, rotation.expected_by_lag(g, theta, T)) < 1e-13
    by_deal = rotation.dealt_by_lag(g, theta, T, 3)
    assert max_error(by_deal, np.tile(share, (3, 1))) < 1e-13


def circular(q, k, o):
    """Sum of q[t] k[t + o] over all columns and tokens, round the end, columns without mean."""
    centred_q = q - q.mean(axis=0)
    centred_k = k - k.mean(axis=0)
    return np.sum(centred_q * np.roll(centred_k, -o, axis=0))


@pytest.mark.parametrize("completion", ["random", "lapack", "procrustes"])
@pytest.mark.parametrize("T", [31, 32])
def test_the_matched_filter_is_the_circular_correlation_of_queries_and_keys(completion, T):
    x = draw(T, D)
    r = rotation.of_head(*draw(2, D, d, seed=1), completion)
    g = rotation.phase_map(x, r.U_Q, r.P)
    ours = rotation.matched_filter(g, r.theta, T, reach=9)
    q = x @ r.U_Q
    k = x @ r.U_K
    norm = circular(q, q, 0)
    plain = [circular(q, k, o) / norm for o in range(-9, 10)]
    assert max_error(ours, plain) < 1e-13


def test_over_random_bases_the_matched_filter_is_that_of_the_settled_columns():
    """The others cancel: for each choice of them there is one with the other sign."""
    x = draw(T, D)
    W_Q, W_K = draw(2, D, d, seed=1)
    U_Q, U_K = rotation.complete(W_Q, W_K, "random")
    q = x @ U_Q[:, :d]
    k = x @ U_K[:, :d]
    plain = np.array([circular(q, k, o) for o in range(-10, 11)]) / circular(x, x, 0)
    by_sign = []
    for sign in (1, -1):
        other = np.hstack([U_K[:, :d], sign * U_K[:, d:]])
        theta, P, _ = rotation.angles(U_Q, other)
        g = rotation.phase_map(x, U_Q, P)
        by_sign.append(rotation.matched_filter(g, theta, T))
    assert max_error(np.mean(by_sign, axis=0), plain) < 1e-13
    assert max_error(by_sign[0], plain) > 0.01


@pytest.mark.parametrize("offset", [-2, 2])
def test_fast_waves_are_miscounted_by_the_nearest_offset_and_not_by_the_filter(offset):
    """A wave of 2.9 tokens moved by 2 is one moved by 0.9 the other way."""
    T, f = 58, 20
    angle = 2 * np.pi * f * -offset / T
    within_a_turn = np.angle(np.exp(1j * angle))
    theta = np.array([-within_a_turn, within_a_turn])
    g = np.zeros((T // 2 + 1, 2))
    g[f, 1] = 1
    share = rotation.by_lag(g, theta, T)[::-1]
    assert profiles.offsets()[share.argmax()] == -np.sign(offset)
    fit = rotation.matched_filter(g, theta, T)
    assert profiles.offsets()[fit.argmax()] == offset
    assert fit.max() == pytest.approx(1)


# its gauge


def energies_of(x, W_Q, W_K, completion="random", n=8):
    """Of the maps over n draws of the bases."""
    rotations = [rotation.of_head(W_Q, W_K, completion, seed) for seed in range(n)]
    return gauge.energies(rotation.maps(x, rotations))


def shapes_of(*given, **options):
    return gauge.shape(energies_of(*given, **options))


def test_the_gauge_is_the_mean_correlation_of_all_pairs_of_maps():
    W_Q, W_K = draw(2, D, d)
    x = draw(T, D, seed=1)
    shapes = shapes_of(x, W_Q, W_K, n=4)
    amplitudes = np.sqrt(energies_of(x, W_Q, W_K, n=4))[:, 1:]
    pairs = np.tril_indices(4, -1)
    plain = [np.corrcoef(rows)[pairs].mean() for rows in amplitudes.swapaxes(0, 1)]
    assert max_error(gauge.by_frequency(shapes), plain) < 1e-13
    assert gauge.gauge(shapes) == pytest.approx(np.mean(plain))
    some = np.array([3, 7])
    assert gauge.gauge(shapes, None, some) == pytest.approx((plain[2] + plain[6]) / 2)
    first, others = shapes[0], shapes[1:]
    with_first = [np.corrcoef(first[2], other[2])[0, 1] for other in others]
    assert gauge.by_frequency(others, first)[2] == pytest.approx(np.mean(with_first))


def test_only_procrustes_and_thin_bases_give_one_map_whatever_the_null_space():
    W_Q, W_K = draw(2, 48, 6)
    x = np.cumsum(draw(T, 48, seed=1), axis=0)
    for name in ("procrustes", "thin"):
        assert gauge.gauge(shapes_of(x, W_Q, W_K, name)) > 1 - 1e-9
    at_random = gauge.gauge(shapes_of(x, W_Q, W_K))
    assert at_random < 0.3  # measured 0.05
    shifted = gauge.gauge(shapes_of(x + 100, W_Q, W_K))
    assert shifted == pytest.approx(at_random)  # no mean in it


def test_the_published_map_is_as_near_to_random_ones_as_these_to_each_other_settled_or_not():
    """So that nearness decides nothing; how high both are does."""
    for heard in (0.0, 1.0):
        W_Q, W_K = draw(2, D, d)
        outside = draw(T, D, seed=1)
        U_Q = rotation.of_head(W_Q, W_K, "thin").U_Q
        inside = outside @ U_Q @ U_Q.T
        x = heard * inside + (1 - heard) * (outside - inside)
        shapes = shapes_of(x, W_Q, W_Q)  # keys read what queries read
        published = shapes_of(x, W_Q, W_Q, "lapack", n=1)[0]
        among_random = gauge.gauge(shapes)
        assert abs(gauge.gauge(shapes, published) - among_random) < 0.1
        assert (among_random > 0.9) == (heard == 1)
        assert gauge.share_read(x, U_Q) == pytest.approx(heard)


def test_the_gauge_rises_with_the_share_that_the_head_reads():
    W_Q, W_K = draw(2, 60, 12)
    x = draw(T, 60, seed=1)
    U_Q = rotation.of_head(W_Q, W_K, "thin").U_Q
    inside = x @ U_Q @ U_Q.T
    share_read, gauges = [], []
    for weight in (0.0, 0.5, 1, 2, 4):
        mixed = x - inside + weight * inside
        share_read.append(gauge.share_read(mixed, U_Q).mean())
        gauges.append(gauge.gauge(shapes_of(mixed, W_Q, W_K)))
    assert np.corrcoef(share_read, gauges)[0, 1] > 0.9  # measured 0.95
    assert (np.diff(gauges) > 0).all()


def test_spread_is_zero_where_all_is_settled_and_the_deviation_elsewhere():
    energy = np.array([[[1.0, 2, 0]], [[1.0, 4, 1e-9]]])
    assert gauge.spread(energy).tolist() == [[0, 1 / 3, pytest.approx(1.7e-4, rel=0.1)]]
    x, W_Q, W_K = planted(D=6)
    assert gauge.spread(energies_of(x, W_Q, W_K, n=3)).max() < 1e-6


def test_maps_are_compared_without_the_spectrum_that_all_of_them_share():
    W_Q, W_K = draw(2, 48, 6)
    f = np.arange(1, T // 2 + 2)
    steep = np.exp(-f / 4)
    spectrum = np.fft.rfft(draw(T, 48, seed=1), axis=0)
    x = np.fft.irfft(spectrum * steep[:, None], T, axis=0)
    energy = energies_of(x, W_Q, W_K)
    whole = np.sqrt(energy[:2, 1:]).reshape(2, -1)
    assert np.corrcoef(whole)[0, 1] > 0.4  # measured 0.60
    shapes = gauge.shape(energy)
    assert abs(gauge.gauge(shapes)) < 0.2  # measured 0.06
    assert max_error(shapes.sum(axis=-1), 0) < 1e-12
    assert np.linalg.norm(shapes, axis=-1) == pytest.approx(1)
    same = np.stack([shapes[0]] * 2)
    assert gauge.gauge(same) == pytest.approx(1)
    assert gauge.gauge(0 * same) == 0


def test_the_gauge_is_1_where_all_is_determined_and_frequencies_without_energy_do_not_count():
    x, W_Q, W_K = planted(D=6)
    for completion in rotation.COMPLETIONS:
        assert gauge.gauge(shapes_of(x, W_Q, W_K, completion, n=2)) > 1 - 1e-9


def test_fit_is_one_for_a_rotation_and_high_for_noise_with_as_many_columns_as_tokens():
    q = draw(T, D) + 5
    R = orthonormal(D, D, seed=1)
    k = 3 * q @ R - 1
    assert rotation.fit(q, k) == pytest.approx(1, abs=1e-12)

    def fit_of_noise(columns):
        return rotation.fit(draw(64, columns), draw(64, columns, seed=1))

    many = fit_of_noise(96)
    few = fit_of_noise(4)
    # measured 0.70 and 0.03; in the large T x 1.5 T gives 0.69
    assert 0.6 < many < 0.8
    assert few < 0.1
    assert rotation.fit(q, 0 * q) == 0


# lags


@pytest.mark.parametrize("T", [1, 2, 13, 32])
def test_covariance_is_the_plain_sum(T):
    q, k = draw(2, 3, T, 4)
    slow = np.zeros((3, 2 * T - 1, 4))  # [head lag column]
    for i, j in np.ndindex(T, T):
        lag = j - i
        slow[:, lag + T - 1] += q[:, i] * k[:, j]
    fast = lags.xcov(q.astype(np.float32), k)
    assert fast.dtype == np.float64
    assert max_error(lags.xcov(q, k), slow) < 1e-13
    q_norms = np.linalg.norm(q, axis=1)
    k_norms = np.linalg.norm(k, axis=1)
    centred = slow - slow.mean(axis=1, keepdims=True)
    correlations = centred / (q_norms * k_norms)[:, None]
    assert max_error(lags.xcorr(q, k), correlations) < 1e-13
    assert lags.all_lags(T).tolist() == list(range(1 - T, T))


def test_weighted_covariance_is_the_sum_of_all_scores_at_each_lag():
    """Equations 13-15, for two heads at once: wanted 1e-9 relative, bound 1e-13, measured 1e-15."""
    x = draw(T, D)
    W_Q, W_K = draw(2, 2, D, d, seed=1)
    U_Q, S, U_K = factors.svd(W_Q, W_K)
    Q = x @ U_Q
    K = x @ U_K
    scores = Q * S[:, None] @ K.swapaxes(1, 2)
    traces = profiles.profile(scores, reach=T - 1)
    ours = lags.weighted(lags.xcov(Q, K), S)
    assert relative_error(ours, traces) < 1e-13


def test_correlation_peaks_at_the_shift_between_two_waves_and_zeros_stay_zeros():
    q = np.stack([wave(T, 4), draw(T), np.zeros(T)], 1)
    k = np.roll(q, -3, axis=0)  # k[i] = q[i + 3]: the like of a query is 3 to its left
    curve = lags.xcorr(q, k)
    for j in (0, 1):
        assert lags.peak(curve[:, j])[0] == -3
    assert not curve[:, 2].any()
    assert max_error(curve.mean(axis=0), 0) < 1e-15
    longer = lags.xcorr(7 * q, k)
    assert longer == pytest.approx(curve, abs=1e-14)


def test_peak_and_how_sharp_it_is():
    t = lags.all_lags(T)
    spike = (t == -1) * 2.0 + 5
    cosine = np.cos(2 * np.pi * (t - 1) / 7)
    flat = np.ones(2 * T - 1)
    beyond_reach = 1e3 * (t == 12) + (t == 2)
    curves = np.stack([spike, cosine, flat, beyond_reach])
    lag, sharp = lags.peak(curves)
    assert lag.tolist() == [-1, 1, 0, 2]
    of_a_spike = pytest.approx(21 / np.sqrt(20))
    assert sharp[0] == of_a_spike
    assert sharp[2] == pytest.approx(0)
    assert sharp[3] == of_a_spike


def test_a_cosine_is_as_sharp_as_the_root_of_two():
    t = lags.all_lags(T)
    cosine = np.cos(2 * np.pi * t / 8)
    _, sharp = lags.peak(cosine, reach=T)
    assert sharp == pytest.approx(2**0.5, rel=0.02)


def test_where_a_peak_is_looked_for():
    spike = (lags.all_lags(T) == -1) * 2.0 + 5
    lag, _ = lags.peak(-3 * spike, reach=4)
    assert lag == 0  # nearest to 0 among equals
    to_the_right = spike[::-1]
    assert lags.peak(to_the_right, causal=True) == (0, 0)  # it is not asked for
    lag, _ = lags.peak(spike[T - 4 : T + 3])
    assert lag == -1  # fewer lags than reach: all of them


def test_the_share_of_a_peak_is_that_of_heights_above_the_medians():
    rng = np.random.default_rng(0)
    whole = rng.standard_normal((3, 2 * T - 1))
    middle = T - 1
    whole[:, middle + 2] = 50
    part = 0.25 * whole + 7  # a constant is no peak
    assert lags.peak_share(part, whole) == pytest.approx(0.25, abs=1e-12)
    assert lags.peak_share(whole, whole) == pytest.approx(1)
    # a part that is highest elsewhere holds nothing of the peak
    aside = np.zeros(whole.shape)
    aside[:, middle - 4] = 90
    assert not lags.peak_share(aside, whole).any()
    assert not lags.peak_share(part, 0 * whole).any()
    lag, height = lags.peak(whole)[0], lags.height(whole, np.full(3, 2))
    assert (lag == 2).all()
    inside = whole[:, middle - 10 : middle + 11]
    assert height == pytest.approx(50 - np.median(inside, axis=1))
    # behind a mask the peak to the right is not asked for
    assert lags.peak_share(part, whole, causal=True) == pytest.approx(0.25, abs=1e-12)
