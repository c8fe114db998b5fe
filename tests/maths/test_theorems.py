"""The theorems behind figure 6, as properties: a rotation of waves is a shift, and a shift one.

Appendix D of Yamamoto and Matsuzaki (2023) proves that an eigenvector p of R = U_Q^T U_K with angle
theta draws two waves Q p, K p out of the stream that are moved against each other by Delta = T
theta / (2 pi f) tokens. In print its equations 28 to 31 give (K p)_t = (Q p)_{t + Delta}, while
equation 25 and theorem 1 say (Q p)_t = (K p)_{t + Delta}. The first follows from K p = exp(i theta)
Q p and is what holds here: for Delta > 0 the query meets its like at the key offset -Delta.

Waves of random frequencies, phases, heights and angles in a stream of random directions; shifts
need not be whole. T tokens, D width, n waves. Bounds: measured 1e-13.
"""

import numpy as np
import pytest
from distance import max_error

from minitx.analysis.maths import lags, rotation

T, D, n = 60, 16, 4
SEEDS = range(6)
CLOSE = 1e-10


def stream(rng):
    """x [T D] of n waves, W_Q [D 2n], whose columns they stand on, and their frequencies."""
    E, _ = np.linalg.qr(rng.standard_normal((D, 2 * n)))
    f = rng.choice(np.arange(1, T // 2), n, replace=False)
    waves = wave(f, np.arange(T), rng.uniform(-np.pi, np.pi, n))
    x = np.hstack([waves.real, waves.imag]) * np.tile(rng.uniform(1, 3, n), 2) @ E.T
    return x, E, f


def wave(f, t, phase):
    """exp(i (2 pi f t / T + phase)) at each time: [n], [T], [n] -> [T n]."""
    return np.exp(1j * (2 * np.pi * f * t[:, None] / T + phase))


def turned(angles):
    """The real matrix that moves each wave on by its angle: [n] -> [2n 2n]."""
    cos, sin = np.diag(np.cos(angles)), np.diag(np.sin(angles))
    return np.block([[cos, sin], [-sin, cos]])


def drawn_out(x, W_Q, W_K):
    """Waves Q p and K p [T m] with energy, their frequencies [m] and shifts Delta [m]."""
    U_Q, U_K = rotation.complete(W_Q, W_K, "thin")
    theta, P, _ = rotation.angles(U_Q, U_K)
    g = rotation.phase_map(x, U_Q, P)
    f, i = np.nonzero(g > 1e-6)
    shift = rotation.shift(theta, T)[f - 1, i]
    return (x @ U_Q @ P)[:, i], (x @ U_K @ P)[:, i], f, shift


def at_frequency(series, f):
    """The part of complex series [T m] at the frequency f > 0 of each, as functions of time."""
    height = np.fft.fft(series, axis=0)[f, range(len(f))] / T
    return lambda t: height * wave(f, np.asarray(t), 0)


@pytest.mark.parametrize("seed", SEEDS)
def test_waves_whose_rotation_has_an_angle_are_moved_by_it(seed):
    """(K p)_t = (Q p)_{t + Delta} at every t, also between the tokens; the other sign does not."""
    rng = np.random.default_rng(seed)
    x, E, f = stream(rng)
    angles = rng.uniform(-np.pi, np.pi, n)
    of_queries, of_keys, frequencies, shift = drawn_out(x, E, E @ turned(angles))
    assert sorted(set(frequencies)) == sorted(f)
    q, k = at_frequency(of_queries, frequencies), at_frequency(of_keys, frequencies)
    for t in rng.uniform(0, T, 5):
        moved_q, moved_k = (np.diagonal(series(t + shift)) for series in (q, k))  # each by its own
        assert max_error(k([t])[0], moved_q) < CLOSE
        assert max_error(q([t])[0], moved_k) > 0.1  # as printed in equation 25


@pytest.mark.parametrize("seed", SEEDS)
def test_keys_that_are_queries_moved_by_some_tokens_have_angles_on_one_line(seed):
    """The converse: k_t = q_{t + Delta} at every frequency gives Delta at each, up to whole turns.

    The map of such a head has its energy on the line of Delta and nowhere else.
    """
    rng = np.random.default_rng(seed)
    x, E, f = stream(rng)
    delta = rng.uniform(-4, 4)
    of_queries, _, frequencies, shift = drawn_out(x, E, E @ turned(2 * np.pi * f * delta / T))
    periods = (shift - delta) * frequencies / T
    assert max_error(periods, np.rint(periods)) < CLOSE
    assert len(shift) == n
    assert np.abs(of_queries).max() > 0.5


@pytest.mark.parametrize("seed", SEEDS)
def test_the_scores_of_such_a_head_are_a_function_of_the_offset_and_highest_at_minus_delta(seed):
    """What the phases do to attention: the sign of the published offsets, head by head."""
    rng = np.random.default_rng(seed)
    x, E, f = stream(rng)
    delta = rng.integers(-4, 5)
    q, k = x @ E, x @ E @ turned(2 * np.pi * f * delta / T)
    scores = q @ k.T
    offset = np.arange(T) - np.arange(T)[:, None]
    powers = np.square(np.abs(np.fft.fft(x @ E, axis=0)[f])).sum(axis=1) / T**2
    by_offset = np.cos(2 * np.pi * f * (offset[..., None] + delta) / T) @ powers * 2
    assert max_error(scores, by_offset) < CLOSE
    highest = scores.max() - CLOSE
    assert (scores[offset == -delta] > highest).all()
    mean = lags.xcov(q, k).sum(axis=1) / (T - abs(lags.all_lags(T)))
    near = abs(lags.all_lags(T)) <= 10
    assert (mean[near] <= mean[lags.all_lags(T) == -delta] + CLOSE).all()


def test_angles_come_in_pairs_each_with_one_wave():
    """R is real: p and its conjugate have opposite angles, and waves of f and -f: one shift."""
    rng = np.random.default_rng(0)
    x, E, f = stream(rng)
    theta, P, _ = rotation.angles(E, E @ turned(rng.uniform(0.1, 3, n)))
    assert max_error(theta + theta[::-1], 0) < CLOSE
    lines = np.abs(np.fft.fft(x @ E @ P, axis=0)) > 1e-6
    assert lines.sum(axis=0).tolist() == [1] * 2 * n
    frequencies = np.fft.fftfreq(T, 1 / T)[lines.argmax(axis=0)]
    assert max_error(frequencies + frequencies[::-1], 0) < CLOSE
    assert sorted(np.abs(frequencies)) == sorted(np.tile(f, 2))
