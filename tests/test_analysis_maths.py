"""The array-only maths on constructed cases whose answer is known beforehand."""
import numpy as np
import pytest

from analysis import nulls, profiles, spectra, stats


def wave(T, frequency, D=4):
    """[T D], each column one cosine of the same frequency with its own phase."""
    return np.cos(2 * np.pi * frequency * np.arange(T)[:, None] / T + np.arange(D))


# spectra

def test_a_pure_wave_is_one_line():
    amplitudes = spectra.amplitude(wave(64, 5) + 3.0)
    expected = np.zeros((33, 4))
    expected[5], expected[0] = 32, 3 * 64  # T/2 for a wave of height 1; the mean, times T
    assert np.abs(amplitudes - expected).max() < 1e-11  # measured 1.3e-14: float64 sums of 64 terms
    mean, quartiles = spectra.summary(amplitudes)
    assert spectra.peaks(mean).tolist() == [5]
    assert spectra.largest(mean) == mean[5]
    assert spectra.period(5, 64) == 12.8
    assert mean.shape == (33,) and quartiles.shape == (3, 33)


def test_amplitude_is_the_plain_sum():
    x = np.random.default_rng(0).standard_normal((15, 3))
    t = np.arange(15)
    slow = [[abs(sum(x[:, i] * np.exp(-2j * np.pi * f * t / 15))) for i in range(3)] for f in range(8)]
    assert np.abs(spectra.amplitude(x) - slow).max() < 1e-12  # measured 6e-15: another order of summation


def test_peaks_are_local_maxima_above_five_medians_without_frequency_zero():
    spectrum = np.ones(40)
    spectrum[0], spectrum[1], spectrum[10], spectrum[20], spectrum[39] = 99, 7, 5.1, 5.0, 9
    spectrum[30:33] = 6  # a plateau is one peak
    assert spectra.peaks(spectrum).tolist() == [39, 1, 30, 10]
    assert spectra.peaks(spectrum, times=8).tolist() == [39]


def test_quartiles_are_over_columns():
    _, quartiles = spectra.summary(np.array([[1.0, 2, 3, 4, 5], [5, 5, 5, 5, 5]]))
    assert quartiles.T.tolist() == [[2, 3, 4], [5, 5, 5]]


def test_explained_variance_of_a_plane_is_reached_by_two_components():
    draw = np.random.default_rng(1)
    plane = draw.standard_normal((50, 2)) * [3, 1] @ np.linalg.qr(draw.standard_normal((8, 2)))[0].T
    explained = spectra.explained(plane + 100)  # the offset is no variance: columns are centred
    deviations = np.sort(np.linalg.eigvalsh(np.cov(plane.T)))[::-1]
    shares = deviations.cumsum() / deviations.sum()
    assert np.abs(explained - shares).max() < 1e-12  # measured 2e-16: another decomposition
    assert explained[0] < 0.99 and explained[1] == pytest.approx(1, abs=1e-12)


# nulls

def test_row_shuffles_keep_the_rows_and_lose_their_order():
    x = np.arange(30.0).reshape(10, 3)
    first, second = nulls.row_shuffles(x, 2, seed=0)
    assert not np.array_equal(first, x) and not np.array_equal(first, second)
    assert np.array_equal(first[np.argsort(first[:, 0])], x)
    assert np.array_equal(first, next(nulls.row_shuffles(x, 1, seed=0)))
    assert not np.array_equal(first, next(nulls.row_shuffles(x, 1, seed=1)))


def test_gaussian_noise_has_the_columns_mean_and_variance():
    x = np.random.default_rng(2).standard_normal((4000, 3)) * [1, 5, 0.1] + [0, 7, -3]
    noise = next(nulls.gaussian(x, 1, seed=0))
    error = x.std(axis=0) / np.sqrt(4000)  # of a mean over 4000 rows; 5 of them are next to impossible
    assert (np.abs(noise.mean(axis=0) - x.mean(axis=0)) < 5 * error).all()
    assert (np.abs(noise.std(axis=0) - x.std(axis=0)) < 5 * error).all()


def test_the_shuffled_null_is_passed_by_a_wave_and_not_by_noise():
    draw = np.random.default_rng(3)

    def statistic(x):
        return spectra.largest(spectra.amplitude(x).mean(axis=1))

    def quantile(x, q, n):
        return np.quantile(nulls.distribution(statistic, nulls.row_shuffles(x, n, seed=0)), q)
    noise = [draw.standard_normal((32, 6)) for _ in range(60)]
    passed = sum(statistic(x) > quantile(x, 0.9, 60) for x in noise)
    assert 0 < passed < 16  # 6 expected, here 4; outside in 2 of 1000 draws
    planted = draw.standard_normal((64, 6)) + wave(64, 9, 6)
    assert statistic(planted) > 1.5 * quantile(planted, 0.999, 300)  # measured 1.82 times


# profiles

def slow_profile(a, reach):
    """Equation 7 as it is written, one sum at a time."""
    T = len(a)
    return [sum(a[i, i + t] for i in range(T) if 0 <= i + t < T) for t in range(-reach, reach + 1)]


@pytest.mark.parametrize("T", [4, 13, 30])
def test_profile_is_the_plain_sum(T):
    a = np.random.default_rng(T).random((2, 3, T, T))
    fast = profiles.profile(a)
    assert fast.shape == (2, 3, 21)
    slow = np.array([[slow_profile(a[b, h], 10) for h in range(3)] for b in range(2)])
    assert np.abs(fast - slow).max() < 1e-12  # measured 4e-15: another order of summation


def test_profile_sums_float32_in_float64_and_takes_any_layout():
    a = np.random.default_rng(0).random((3, 40, 40)).astype(np.float32)
    assert np.array_equal(profiles.profile(a), profiles.profile(a.astype(np.float64)))
    assert np.array_equal(profiles.profile(a.swapaxes(1, 2)), profiles.profile(a)[:, ::-1])


def test_uniform_attention_gives_the_triangle_exactly():
    t = profiles.offsets()
    assert np.array_equal(profiles.uniform(64), (64 - abs(t)) / 64)
    causal = [sum(1 / (i + 1) for i in range(-o, 64)) if o <= 0 else 0 for o in t]
    difference = profiles.uniform(64, causal=True) - causal
    assert np.abs(difference).max() < 1e-13  # measured 1.8e-15: another order of summation
    assert np.array_equal(profiles.mean_attention(profiles.uniform(64), 64), np.full(21, 1 / 64))


@pytest.mark.parametrize("offset", [-10, -2, 0, 1, 7])
def test_a_head_that_looks_at_one_offset_has_all_its_attention_there(offset):
    attention = profiles.mean_attention(profiles.profile(np.eye(30, k=offset)), 30)
    assert np.array_equal(attention, profiles.offsets() == offset)


def planted(n, noise=0.02, centres=(-6, -2, -1, 0, 1, 4)):
    """n noisy copies of six profiles, shuffled: (profiles [6n R], which of the six)."""
    draw = np.random.default_rng(7)
    truth = draw.permutation(np.repeat(np.arange(6), n))
    t = profiles.offsets()
    shapes = np.array([np.exp(-(t - centre) ** 2 / 1.5) for centre in centres])
    return shapes[truth] + noise * draw.random((len(truth), len(t))), truth


def test_planted_profiles_are_found_and_ordered_from_left_to_right():
    x, truth = planted(50)
    centres, labels = profiles.clusters(x, 6, seed=0)
    assert np.array_equal(labels, truth)
    assert {side: sorted(of) for side, of in profiles.sides(centres, 1).items()} == {
        "left": [0, 1, 2], "even": [3], "right": [4, 5]}
    assert np.array_equal(profiles.nearest(x, centres), labels)
    means = [x[truth == i].mean(axis=0) for i in range(6)]
    assert np.abs(centres - means).max() < 1e-12  # measured 0: the same sums


def test_clusters_depend_on_the_seed_alone():
    x, _ = planted(10, noise=1.0)
    again = [profiles.clusters(x, 6, seed=3)[0] for _ in range(2)]
    assert np.array_equal(*again)


def test_the_best_of_the_restarts_is_kept():
    x = np.random.default_rng(0).random((120, 21))  # no clusters: every start ends elsewhere

    def spread(restarts, seed):
        centres, labels = profiles.clusters(x, 6, seed, restarts)
        return np.square(x - centres[labels]).sum()
    single = [spread(1, seed) for seed in range(10)]
    assert spread(10, 0) < np.mean(single) < max(single)


@pytest.mark.parametrize("centres, named", [
    ([(-6, 0.3), (-1, 0.9), (-2, 0.2)], ["left", "strong left", "weak left"]),  # strength, not distance
    ([(-2, 0.7), (-1, 0.9), (1, 0.5)], ["strong left 2", "strong left 1", "strong right"]),
    ([(0, 0.9), (1, 0.249), (1, 0.25)], ["even", "weak right", "right"]),
    ([(-1, 0.099), (1, 0.11)], ["even", "weak right"])])
def test_names_follow_the_attention_to_one_offset(centres, named):
    found = np.zeros((len(centres), 21))
    for row, (t, attention) in zip(found, centres):
        row[t + profiles.REACH] = attention * (100 - abs(t))
    assert profiles.strength(found, 100) == pytest.approx([attention for t, attention in centres])
    assert profiles.names(found, 100) == named


def test_a_centre_that_looks_to_both_sides_alike_is_even():
    both = np.zeros((1, 21))
    both[0, [9, 11]] = 40, 45  # mean offset 5/85: within a quarter
    assert profiles.names(both, 100) == ["even"]
    both[0, 9] = 20  # 25/65: beyond it
    assert profiles.names(both, 100) == ["right"]


def test_too_few_different_profiles_for_the_clusters():
    with pytest.raises(ValueError, match="6 clusters wanted from 2 different profiles"):
        profiles.clusters(np.repeat(np.eye(2, 21), 9, axis=0), 6)


def test_shares_count_each_label_per_head():
    labels = np.array([[0, 2], [0, 1], [0, 1], [1, 1]])  # 4 documents, 2 heads
    assert profiles.shares(labels, 3).tolist() == [[0.75, 0.25, 0], [0, 0.75, 0.25]]


def test_a_centre_without_an_offset_of_its_own_is_even_however_a_causal_model_bends_it():
    T = 64
    sharp = np.zeros(21)
    sharp[9] = 0.9 * (T - 1)  # 0.9 of the attention at -1
    centres = np.array([profiles.uniform(T, causal=True), sharp])
    assert abs(profiles.centre_of_mass(centres)).min() > 0.25  # by that alone both would look left
    assert profiles.names(centres, T) == ["even", "strong left"]


def test_maxima_lie_above_a_line_and_leave_out_frequency_0():
    spectrum = np.array([9.0, 1, 3, 1, 2, 1.5, 5, 1])
    assert spectra.maxima(spectrum, 2.5).tolist() == [6, 2]
    assert spectra.maxima(spectrum, 5).tolist() == []


# intervals

def test_long_documents_weigh_more_in_a_ratio():
    """Half of the documents have nine tokens, each of loss 1, half one token of loss 0: 0.9 per token, not 0.5."""
    weights = np.tile([9.0, 1.0], 100)
    low, high = stats.bootstrap(np.tile([9.0, 0.0], 100), weights)
    assert 0.85 < low < 0.9 < high < 0.95
