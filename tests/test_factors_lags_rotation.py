"""Queries and keys as waves, on constructed cases with known answers: filter, factors, rotation, lags.

Bounds in float64 are those of sums and orthogonal steps in another order: 1e-11 to 1e-13 where 1e-13 to 1e-15 was
measured, relative where the numbers are large. Others say what was measured.
"""
import sys
import types

import numpy as np
import pytest

from analysis import factors, lags, profiles, rotation, spectra

T, D, d = 64, 24, 6
F, DELTA = (3, 5, 9), 2  # frequencies of the planted waves; queries meet their like DELTA tokens to the left


def draw(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def wave(T, f, phase=0.0):
    return np.cos(2 * np.pi * f * np.arange(T) / T + phase)


def turn(angles):
    """[2n 2n] that turns n pairs of columns (cos, sin) on: cos(x) cos(a) - sin(x) sin(a) = cos(x + a)."""
    R = np.zeros((2 * len(angles), 2 * len(angles)))
    for i, a in enumerate(angles):
        R[2 * i:2 * i + 2, 2 * i:2 * i + 2] = [[np.cos(a), np.sin(a)], [-np.sin(a), np.cos(a)]]
    return R


def planted(D=D, delta=DELTA):
    """x [T D], W_Q, W_K [D 6]: x is waves along 6 of D directions; a key is like the query delta tokens later."""
    E = np.linalg.qr(draw(D, 2 * len(F)))[0]  # k[t] = q[t + delta] up to heights, so the like is delta to the left
    x = np.stack([wave(T, f, phase) for f in F for phase in (0, -np.pi / 2)], 1) @ E.T
    W_Q = E * [6, 5, 4, 3, 2, 1]
    return x, W_Q, E @ turn([2 * np.pi * f * delta / T for f in F])


# filter

def test_bandpass_keeps_a_wave_with_its_phase_and_takes_out_the_rest():
    kept = np.stack([wave(T, 5, 0.7), wave(T, 7, -2)], 1)
    rest = np.stack([wave(T, 4, 1) + 3, wave(T, 8, 2) + wave(T, 32)], 1)
    assert np.abs(spectra.bandpass(kept + rest, 5, 7) - kept).max() < 1e-13  # measured 2e-15: an FFT and back
    assert np.abs(spectra.bandpass(kept + rest, 8, 32)[:, 1] - rest[:, 1]).max() < 1e-13
    assert np.abs(spectra.bandpass(kept + rest, 0, 3) - [3, 0]).max() < 1e-13
    assert np.abs(spectra.bandpass(kept + rest, 0.5, 3)).max() < 1e-13


@pytest.mark.parametrize("T", [15, 16])
def test_bandpass_of_all_frequencies_changes_nothing_but_the_mean(T):
    x = draw(T, 3)
    assert np.abs(spectra.bandpass(x, 0, T) - x).max() < 1e-13
    assert np.abs(spectra.bandpass(x, 1, T) - (x - x.mean(axis=0))).max() < 1e-13
    assert spectra.bandpass(x.astype(np.float32), 1, 4).dtype == np.float32


def test_bandpass_wants_a_band():
    with pytest.raises(ValueError, match="from 9 to 3 is given"):
        spectra.bandpass(draw(T, 2), 9, 3)


# factors

@pytest.mark.parametrize("dtype, bound", [(np.float32, 1e-6), (np.float64, 1e-13)])
def test_thin_svd_is_the_dense_one(dtype, bound):
    """Same singular values (relative to the largest) and, by projectors, the same subspaces.

    Measured 7e-8 and 2e-15 for the values, 1.3e-7 and 2e-15 for the subspaces: rounding of either type.
    """
    W_Q, W_K = draw(2, 200, 16).astype(dtype)
    U_Q, S, U_K = factors.svd(W_Q, W_K)
    assert U_Q.dtype == S.dtype == U_K.dtype == dtype
    left, dense, right = np.linalg.svd(W_Q.astype(np.float64) @ W_K.T)
    assert np.abs(S - dense[:16]).max() < bound * dense[0]
    for thin, full in ((U_Q, left[:, :16]), (U_K, right[:16].T)):
        assert np.linalg.norm(thin @ thin.T - full @ full.T) < bound * np.linalg.norm(full @ full.T)
        assert np.abs(thin.T @ thin - np.eye(16)).max() < bound
    assert np.abs(U_Q * S @ U_K.T - W_Q.astype(np.float64) @ W_K.T).max() < bound * dense[0]


def graded(condition, D=200, d=16, heads=3):
    """[heads D d] whose singular values fall from 1 to 1 / condition."""
    U, V = np.linalg.qr(draw(heads, D, d))[0], np.linalg.qr(draw(heads, d, d, seed=1))[0]
    return U * np.geomspace(1, 1 / condition, d) @ V


QR = {"ordinary": draw(3, 200, 16), "orthonormal": graded(1), "condition 1e3": graded(1e3),
      "condition 3e5": graded(3e5), "whole numbers": np.arange(3 * 200 * 16).reshape(3, 200, 16) % 97,
      "no heads": np.zeros((0, 200, 16)),
      "condition 1e7": graded(1e7), "condition 1e12": graded(1e12), "nothing": np.zeros((3, 200, 16)),
      "columns of any size": graded(10) * 10.0 ** -np.arange(16),
      "dependent columns": draw(3, 200, 16)[..., [0, 0, *range(14)]],
      "wide": draw(3, 10, 16), "one row": draw(3, 1, 16), "one head": draw(200, 16)}


@pytest.mark.parametrize("name", QR)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_qr_is_orthonormal_times_triangular(name, dtype):
    """Measured at most 2.1e-14 and 1.9e-15 in float64, 8.3e-7 and 1.2e-7 in float32, by Cholesky or not."""
    bound = {np.float32: 2e-6, np.float64: 5e-14}[dtype]
    W = QR[name] if name == "whole numbers" and dtype == np.float64 else QR[name].astype(dtype)
    Q, R = factors.qr(W)
    assert Q.dtype == R.dtype == dtype and Q.shape[:-1] == W.shape[:-1] and R.shape[:-2] == W.shape[:-2]
    assert np.abs(Q.swapaxes(-1, -2) @ Q - np.eye(Q.shape[-1])).max(initial=0) < bound
    size = np.maximum(np.linalg.norm(W, axis=-2, keepdims=True), 1e-300)  # of each column
    assert (np.abs(Q @ R - W) <= bound * size).all() and not np.tril(R, -1).any()


@pytest.mark.parametrize("name, fast", [("ordinary", True), ("condition 1e3", True), ("condition 1e12", False)])
def test_qr_leaves_only_nearly_dependent_columns_to_numpy(name, fast, monkeypatch):
    asked, real = [], np.linalg.qr
    monkeypatch.setattr(np.linalg, "qr", lambda W: asked.append(W) or real(W))
    factors.qr(QR[name])
    assert bool(asked) != fast


def test_eigenvalues_are_the_dense_ones_that_are_not_zero():
    W_Q, W_K = draw(2, 3, 200, 16)
    found = factors.eigenvalues(W_Q, W_K)
    assert found.shape == (3, 16)
    for some, dense in zip(found, np.linalg.eigvals(W_Q @ W_K.swapaxes(-1, -2))):
        largest = dense[np.argsort(-abs(dense))[:16]]
        far = abs(some[:, None] - largest).min(axis=0)
        assert far.max() < 1e-11 * abs(largest).max() and abs(dense).min() < 1e-11  # measured 2e-15


def test_thin_svd_takes_all_heads_at_once_and_fixes_the_signs():
    W_Q, W_K = draw(2, 3, 4, D, d)
    U_Q, S, U_K = factors.svd(W_Q, W_K)
    one = factors.svd(W_Q[2, 1], W_K[2, 1])
    assert [a.shape for a in (U_Q, S, U_K)] == [(3, 4, D, d), (3, 4, d), (3, 4, D, d)]
    assert all(np.array_equal(many[2, 1], single) for many, single in zip((U_Q, S, U_K), one))
    assert (np.take_along_axis(U_Q, abs(U_Q).argmax(-2)[..., None, :], -2) > 0).all()
    flipped = factors.svd(-W_Q, W_K)
    assert np.abs(flipped[0] - U_Q).max() < 1e-12 and np.abs(flipped[2] + U_K).max() < 1e-12


def test_scores_depend_on_the_product_of_the_weights_alone():
    x, (W_Q, W_K) = draw(T, D), draw(2, D, d, seed=1)
    scores = x @ W_Q @ (x @ W_K).T
    U_Q, S, U_K = factors.svd(W_Q, W_K)
    for other in (x @ (W_Q @ W_K.T) @ (x @ np.eye(D)).T, x @ U_Q * S @ (x @ U_K).T):
        assert np.abs(other - scores).max() < 1e-13 * np.abs(scores).max()
    assert np.abs(x @ W_Q @ (x @ W_K[:, ::-1]).T - scores).max() > 0.1 * np.abs(scores).max()


def test_with_biases_the_factors_give_the_exact_scores():
    x, (W_Q, W_K), (b_Q, b_K) = draw(T, D), draw(2, 5, D, d, seed=1), draw(2, 5, d, seed=2) + 3
    scores = (x @ W_Q + b_Q[:, None]) @ (x @ W_K + b_K[:, None]).swapaxes(1, 2)
    U_Q, S, U_K = factors.svd(W_Q, W_K, b_Q, b_K)
    ones = factors.with_ones(x)
    assert ones.shape == (T, D + 1) and U_Q.shape == (5, D + 1, d)
    ours = ones @ U_Q * S[:, None] @ (ones @ U_K).swapaxes(1, 2)
    assert np.abs(ours - scores).max() < 1e-13 * np.abs(scores).max()
    assert np.abs(x @ W_Q @ (x @ W_K).swapaxes(1, 2) - scores).max() > 0.1 * np.abs(scores).max()
    with pytest.raises(ValueError, match="both biases or none are wanted, b_K is missing"):
        factors.svd(W_Q, W_K, b_Q)


def test_pca_finds_the_directions_it_was_made_of():
    E = np.linalg.qr(draw(D, 2))[0]
    E = E * factors.signs(E)
    height = np.stack([3 * wave(T, 4), wave(T, 6)], 1)
    scores, directions, share = factors.pca(height @ E.T + 7, 2)
    assert np.abs(directions - E.T).max() < 1e-13 and np.abs(scores - height).max() < 1e-12
    assert share == pytest.approx([0.9, 0.1], abs=1e-13)
    assert np.abs(share.cumsum() - spectra.explained(height @ E.T)[:2]).max() < 1e-13
    with pytest.raises(ValueError, match="25 components wanted of 64 tokens and 24 columns"):
        factors.pca(draw(T, D), 25)


class Fast:
    """Stands in for scikit-learn's FastICA: gives columns back with the wrong sign, keeps what it was told."""

    def __init__(self, **options):
        Fast.options = options

    def fit_transform(self, x):
        return -x[:, :Fast.options["n_components"]]


def test_ica_tells_the_library_what_is_wanted_and_fixes_the_signs(monkeypatch):
    fake = types.ModuleType("sklearn.decomposition")
    fake.FastICA = Fast
    monkeypatch.setitem(sys.modules, "sklearn", types.ModuleType("sklearn"))
    monkeypatch.setitem(sys.modules, "sklearn.decomposition", fake)
    x = draw(T, D)
    assert np.array_equal(factors.ica(x, 3, seed=5), x[:, :3] * factors.signs(x[:, :3]))
    assert Fast.options["random_state"] == 5 and Fast.options["whiten"] == "unit-variance"


def test_ica_without_the_library_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.decomposition", None)  # what an absent module looks like to import
    with pytest.raises(ValueError, match=r"pip install 'minitx\[ica\]'"):
        factors.ica(draw(T, D), 3)


# rotation

@pytest.mark.parametrize("how", rotation.COMPLETIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bases_are_orthonormal_and_give_the_scores(how, dtype):
    W_Q, W_K = draw(2, D, d).astype(dtype)
    U_Q, U_K = rotation.complete(W_Q, W_K, how, seed=3)
    n = d if how == "thin" else D
    assert U_Q.shape == U_K.shape == (D, n) and U_Q.dtype == U_K.dtype == np.float64
    for U in (U_Q, U_K):
        assert np.abs(U.T @ U - np.eye(n)).max() < 1e-13
    S = factors.svd(W_Q.astype(np.float64), W_K.astype(np.float64))[1]
    assert np.abs(U_Q[:, :d] * S @ U_K[:, :d].T - W_Q.astype(np.float64) @ W_K.T).max() < 1e-12
    assert all(map(np.array_equal, rotation.complete(W_Q, W_K, how, seed=3), (U_Q, U_K)))


def test_only_columns_with_a_singular_value_are_determined():
    W_Q, W_K = draw(2, D, d)
    W_K[:, 3:] = W_K[:, :3]  # rank 3
    W_Q[:, 3:] = 0
    assert rotation.complete(W_Q, W_K, "thin")[0].shape == (D, 3)
    assert rotation.complete(W_Q, W_K)[0].shape == (D, D)


def test_an_unknown_completion_is_refused():
    with pytest.raises(ValueError, match="no completion 'full', there are procrustes, lapack, random, thin"):
        rotation.complete(*draw(2, D, d), "full")


@pytest.mark.parametrize("how", rotation.COMPLETIONS)
def test_angles_are_those_of_the_rotation(how):
    """R P = P exp(i theta); for complete bases P is unitary, though most angles are equal."""
    U_Q, U_K = rotation.complete(*draw(2, 60, d), how)
    theta, P, modulus = rotation.angles(U_Q, U_K)
    assert (np.diff(theta) >= 0).all() and -np.pi < theta[0] and theta[-1] <= np.pi
    assert np.abs(U_Q.T @ U_K @ P - P * (modulus * np.exp(1j * theta))).max() < 1e-12  # measured 2e-15
    if how == "thin":
        assert modulus.max() < 0.9
    else:
        assert np.abs(P.conj().T @ P - np.eye(60)).max() < 1e-12  # measured 3e-15; by np.linalg.eig 0.99
        assert np.abs(modulus - 1).max() < 1e-12


def test_angles_of_reflections_are_pi_and_never_minus_pi():
    R = np.diag([1.0, -1, -1, 1])
    basis = np.linalg.qr(draw(4, 4))[0]
    theta, P, _ = rotation.angles(basis, basis @ R)
    assert np.abs(theta - [0, 0, np.pi, np.pi]).max() < 1e-12
    bins = rotation.binned(np.ones((1, 4)), np.array([-np.pi + 1e-15, 0, 1e-15, np.pi]), 4)
    assert bins.tolist() == [[0, 2, 0, 2]] and rotation.bin_centres(4)[[1, 3]] == pytest.approx([0, np.pi])


@pytest.mark.parametrize("how", rotation.COMPLETIONS)
@pytest.mark.parametrize("D", [6, 24])
def test_a_rotation_built_in_comes_back_where_it_is_determined(how, D):
    """Fully for D = d; for D > d where queries and keys read one 6-dimensional space, among free angles."""
    _, W_Q, W_K = planted(D)
    theta, _, modulus = rotation.angles(*rotation.complete(W_Q, W_K, how))
    built = np.array([sign * 2 * np.pi * f * DELTA / T for f in F for sign in (1, -1)])
    assert np.abs(theta - built[:, None]).min(axis=1).max() < 1e-12  # measured 9e-16
    assert np.abs(modulus - 1).max() < 1e-12
    free = np.sort(np.abs(theta - built[:, None]).min(axis=0))[6:]
    assert (free > 1e-3).all() and len(free) == (0 if how == "thin" else D - 6)
    if how == "procrustes":
        assert np.sum(np.abs(theta) < 1e-12) == D - 6  # the smallest rotation leaves the rest alone


@pytest.mark.parametrize("how", rotation.COMPLETIONS)
@pytest.mark.parametrize("delta", [-3, -1, 2])
def test_a_shift_built_in_is_where_its_angle_and_frequency_meet(how, delta):
    """theta = 2 pi f Delta / T at each planted f, and nowhere else; the scores peak at the key offset -Delta."""
    x, W_Q, W_K = planted(delta=delta)
    U_Q, U_K = rotation.complete(W_Q, W_K, how)
    theta, P, _ = rotation.angles(U_Q, U_K)
    g = rotation.phase_map(x, U_Q, P)
    assert np.abs(g - rotation.phase_map(x, U_K, P)).max() < 1e-10  # K p is Q p with another phase
    f, i = np.nonzero(g > 1e-9)
    assert set(f) == set(F)
    assert np.abs(rotation.lag_curve(theta[i], T, delta) - f).max() < 1e-11
    assert np.abs(rotation.shift(theta, T)[f - 1, i] - delta).max() < 1e-11
    assert rotation.by_lag(g, theta, T, reach=4) == pytest.approx(1.0 * (np.arange(-4, 5) == delta), abs=1e-12)
    scores = profiles.profile(x @ W_Q @ (x @ W_K).T, reach=9)
    assert profiles.offsets(9)[scores.argmax()] == -delta


def test_phase_map_is_the_plain_transform_of_complex_series():
    x, U = draw(T, D), np.linalg.qr(draw(D, D, seed=1))[0]
    P = draw(D, D, seed=2) + 1j * draw(D, D, seed=3)
    slow = abs(np.fft.fft(x @ U @ P, axis=0))[:T // 2 + 1]
    assert np.abs(rotation.phase_map(x, U, P) - slow).max() < 1e-13 * slow.max()


def test_binned_energy_is_kept_and_forgets_the_basis_of_equal_angles():
    U_Q, U_K = rotation.complete(*draw(2, D, d, seed=4))
    x, (theta, P, _) = draw(T, D, seed=1), rotation.angles(U_Q, U_K)
    free = np.flatnonzero(np.abs(theta) < 1e-9)
    assert len(free) == D - 2 * d
    other = P.copy()
    other[:, free] = P[:, free] @ np.linalg.qr(draw(len(free), len(free), seed=2))[0]
    g, h = rotation.phase_map(x, U_Q, P), rotation.phase_map(x, U_Q, other)
    assert np.abs(g - h).max() > 1
    assert np.abs(rotation.binned(g, theta) - rotation.binned(h, theta)).max() < 1e-11 * np.square(g).max()
    assert rotation.binned(g, theta, 8).sum() == pytest.approx(np.square(g).sum(), rel=1e-12)
    with pytest.raises(ValueError, match="an even number of bins is wanted, 7 is given"):
        rotation.binned(g, theta, 7)


def test_what_neither_sees_is_gone_from_the_map_of_the_seen_part():
    W_Q, W_K = draw(2, D, d, seed=4)
    U_Q, U_K = rotation.complete(W_Q, W_K)
    x, (theta, P, _) = draw(T, D, seed=1), rotation.angles(U_Q, U_K)
    free, seen = np.abs(theta) < 1e-9, factors.seen(x, W_Q, W_K)
    assert rotation.phase_map(x, U_Q, P)[:, free].max() > 1
    assert rotation.phase_map(seen, U_Q, P)[:, free].max() < 1e-10
    scores = seen @ U_Q[:, :d] @ (x @ U_K[:, :d]).T
    assert np.abs(scores - x @ W_Q @ (x @ W_K).T).max() < 1e-13 * np.abs(scores).max()


def test_by_lag_leaves_out_the_mean_and_counts_lags_beyond_reach_in_the_whole():
    theta, g = np.array([0.0, np.pi / 2]), np.zeros((T // 2 + 1, 2))
    g[0], g[4, 0], g[8, 1], g[1, 1] = 99, 1, 2, 3  # mean; Delta 0; Delta T/4/8 = 2; Delta 16
    assert rotation.by_lag(g, theta, T, 3).tolist() == [0, 0, 0, 1 / 14, 0, 4 / 14, 0]
    assert not rotation.by_lag(0 * g, theta, T).any()


def test_gauge_only_procrustes_gives_one_map():
    W_Q, W_K = draw(2, 48, 6)
    x = np.cumsum(draw(T, 48, seed=1), axis=0)
    moved = {how: rotation.gauge(W_Q, W_K, x, how, n=4) for how in rotation.COMPLETIONS}
    assert all(values.shape == (4,) for values in moved.values())
    assert moved["procrustes"].min() > 1 - 1e-9 and moved["thin"].min() > 1 - 1e-9  # measured 1 - 2e-16
    assert moved["random"].max() < 0.5 and moved["lapack"].max() < 0.5  # measured 0.02 to 0.15, -0.18 to 0.26
    assert abs(moved["random"].mean() - moved["lapack"].mean()) < 0.1  # measured 0.03: one more arbitrary choice
    assert rotation.gauge(W_Q, W_K, x + 100, "random", n=4) == pytest.approx(moved["random"])  # no mean in it


def test_maps_are_compared_without_the_spectrum_that_all_of_them_share():
    W_Q, W_K = draw(2, 48, 6)
    steep = np.exp(np.cumsum(-np.ones(T // 2 + 1)) / 4)[:, None]
    x = np.fft.irfft(np.fft.rfft(draw(T, 48, seed=1), axis=0) * steep, T, axis=0)
    whole = [np.sqrt(rotation.binned(rotation.phase_map(x, U, P), theta))[1:].ravel() for U, theta, P in (
        basis(W_Q, W_K, "random", seed) for seed in (0, 1))]
    assert np.corrcoef(whole)[0, 1] > 0.4                                # measured 0.60
    assert abs(rotation.gauge(W_Q, W_K, x, "random", n=5).mean()) < 0.2  # measured 0.06
    rows = rotation.shape(x, *basis(W_Q, W_K))
    assert np.abs(rows.sum(axis=1)).max() < 1e-12 and np.linalg.norm(rows, axis=1) == pytest.approx(1)
    assert rotation.alike(rows, rows) == pytest.approx(1) and rotation.alike(rows, 0 * rows) == 0


def basis(*of):
    U_Q, U_K = rotation.complete(*of)
    return U_Q, *rotation.angles(U_Q, U_K)[:2]


def test_gauge_is_free_of_the_choice_where_all_is_determined():
    x, W_Q, W_K = planted(D=6)
    for how in rotation.COMPLETIONS:
        assert rotation.gauge(W_Q, W_K, x, how, n=2).min() > 1 - 1e-9


def test_fit_is_one_for_a_rotation_and_high_for_noise_with_as_many_columns_as_tokens():
    q = draw(T, D) + 5
    assert rotation.fit(q, 3 * q @ np.linalg.qr(draw(D, D, seed=1))[0] - 1) == pytest.approx(1, abs=1e-12)
    many, few = rotation.fit(draw(64, 96), draw(64, 96, seed=1)), rotation.fit(draw(64, 4), draw(64, 4, seed=1))
    assert 0.6 < many < 0.8 and few < 0.1  # measured 0.70 and 0.03; in the large T x 1.5 T gives 0.69
    assert rotation.fit(q, 0 * q) == 0


# lags

@pytest.mark.parametrize("T", [1, 2, 13, 32])
def test_covariance_is_the_plain_sum(T):
    q, k = draw(2, 3, T, 4)
    slow = np.array([sum(q[:, i] * k[:, i + t] for i in range(T) if 0 <= i + t < T) for t in range(1 - T, T)])
    fast = lags.xcov(q.astype(np.float32), k)
    assert fast.dtype == np.float64
    assert np.abs(lags.xcov(q, k) - slow.swapaxes(0, 1)).max() < 1e-13
    norms = np.linalg.norm(q, axis=1) * np.linalg.norm(k, axis=1)
    assert np.abs(lags.xcorr(q, k) - ((slow - slow.mean(axis=0)) / norms).swapaxes(0, 1)).max() < 1e-13
    assert lags.all_lags(T).tolist() == list(range(1 - T, T))


def test_weighted_covariance_is_the_sum_of_all_scores_at_each_lag():
    """Equations 13-15, for two heads at once: 1e-9 relative is asked, 1e-13 bound, 1e-15 measured."""
    x, (W_Q, W_K) = draw(T, D), draw(2, 2, D, d, seed=1)
    U_Q, S, U_K = factors.svd(W_Q, W_K)
    Q, K = x @ U_Q, x @ U_K
    traces = profiles.profile(Q * S[:, None] @ K.swapaxes(1, 2), reach=T - 1)
    ours = lags.weighted(lags.xcov(Q, K), S)
    assert np.abs(ours - traces).max() < 1e-13 * np.abs(traces).max()


def test_correlation_peaks_at_the_shift_between_two_waves_and_zeros_stay_zeros():
    q = np.stack([wave(T, 4), draw(T), np.zeros(T)], 1)
    k = np.roll(q, -3, axis=0)  # k[i] = q[i + 3]: the like of a query is 3 to its left
    curve = lags.xcorr(q, k)
    for j in (0, 1):
        assert lags.peak(curve[:, j])[0] == -3
    assert not curve[:, 2].any()
    assert np.abs(curve.mean(axis=0)).max() < 1e-15
    assert lags.xcorr(7 * q, k) == pytest.approx(curve, abs=1e-14)


def test_mean_score_of_constant_scores_is_that_constant_at_every_lag():
    total = lags.weighted(lags.xcov(np.ones((T, 2)), np.ones((T, 2))), np.array([2.0, 3]))
    assert np.abs(profiles.mean_attention(total, T) - 5).max() < 1e-12  # the triangle is gone


def test_peak_and_how_sharp_it_is():
    t = lags.all_lags(T)
    spike, cosine = (t == -1) * 2.0 + 5, np.cos(2 * np.pi * (t - 1) / 7)
    lag, sharp = lags.peak(np.stack([spike, cosine, np.ones(2 * T - 1), 1e3 * (t == 12) + (t == 2)]))
    assert lag.tolist() == [-1, 1, 0, 2]
    assert sharp[[0, 2, 3]] == pytest.approx([21 / np.sqrt(20), 0, 21 / np.sqrt(20)])
    assert lags.peak(np.cos(2 * np.pi * t / 8), reach=T)[1] == pytest.approx(2 ** 0.5, rel=0.02)
    assert lags.peak(-3 * spike, reach=4)[0] == 0  # nearest to 0 among equals
    assert lags.peak(spike[::-1], causal=True) == (0, 0)  # what lies to the right is not asked for
    assert lags.peak(spike[T - 4:T + 3])[0] == -1  # fewer lags than reach: all of them
