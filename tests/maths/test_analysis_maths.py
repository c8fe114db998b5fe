"""The array-only maths on constructed cases whose answer is known beforehand."""

import numpy as np
import pytest
from distance import max_error

from minitx.analysis.maths import nulls, profiles, spectra


def wave(T, frequency, D=4):
    """[T D], each column one cosine of the same frequency with its own phase."""
    t = np.arange(T)[:, None]
    phases = np.arange(D)
    return np.cos(2 * np.pi * frequency * t / T + phases)


def noise(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def uniform(*shape, seed=0):
    return np.random.default_rng(seed).random(shape)


# spectra


def test_a_pure_wave_is_one_line():
    amplitudes = spectra.amplitude(wave(64, 5) + 3.0)
    expected = np.zeros((33, 4))
    expected[0] = 3 * 64  # the mean, times T
    expected[5] = 32  # T/2 for a wave of height 1
    assert max_error(amplitudes, expected) < 1e-11  # measured 1.3e-14: float64 sums of 64 terms
    mean, quartiles = spectra.summary(amplitudes)
    peaks = spectra.peaks(mean)
    assert peaks.tolist() == [5]
    assert spectra.largest(mean) == mean[5]
    assert spectra.period(5, 64) == 12.8
    assert mean.shape == (33,)
    assert quartiles.shape == (3, 33)


def test_amplitude_is_the_plain_sum():
    x = noise(15, 3)
    t = np.arange(15)
    slow = [abs(np.exp(-2j * np.pi * f * t / 15) @ x) for f in range(8)]
    # measured 6e-15: another order of summation
    assert max_error(spectra.amplitude(x), slow) < 1e-12


def test_peaks_are_local_maxima_above_five_medians_without_frequency_zero():
    spectrum = np.ones(40)
    heights = {0: 99, 1: 7, 10: 5.1, 20: 5.0, 39: 9}
    for f, height in heights.items():
        spectrum[f] = height
    spectrum[30:33] = 6  # a plateau is one peak
    peaks = spectra.peaks(spectrum)
    assert peaks.tolist() == [39, 1, 30, 10]
    highest = spectra.peaks(spectrum, times=8)
    assert highest.tolist() == [39]


def test_quartiles_are_over_columns():
    rising = [1.0, 2, 3, 4, 5]
    constant = [5.0] * 5
    _, quartiles = spectra.summary(np.array([rising, constant]))
    first, second = quartiles.T.tolist()
    assert first == [2, 3, 4]
    assert second == [5, 5, 5]


def test_explained_variance_of_a_plane_is_reached_by_two_components():
    draw = np.random.default_rng(1)
    heights = draw.standard_normal((50, 2)) * [3, 1]
    axes = np.linalg.qr(draw.standard_normal((8, 2)))[0]
    plane = heights @ axes.T
    explained = spectra.explained(plane + 100)  # the offset is no variance: columns are centred
    rising = np.linalg.eigvalsh(np.cov(plane.T))
    variances = rising[::-1]
    expected = variances.cumsum() / variances.sum()
    assert max_error(explained, expected) < 1e-12  # measured 2e-16: another decomposition
    assert explained[0] < 0.99
    assert explained[1] == pytest.approx(1, abs=1e-12)


# nulls


def test_row_shuffles_keep_the_rows_and_lose_their_order():
    x = np.arange(30.0).reshape(10, 3)
    first, second = nulls.row_shuffles(x, 2, seed=0)
    assert not np.array_equal(first, x)
    assert not np.array_equal(first, second)
    order = np.argsort(first[:, 0])
    assert np.array_equal(first[order], x)
    same_seed = next(nulls.row_shuffles(x, 1, seed=0))
    other_seed = next(nulls.row_shuffles(x, 1, seed=1))
    assert np.array_equal(first, same_seed)
    assert not np.array_equal(first, other_seed)


def test_gaussian_noise_has_the_columns_mean_and_variance():
    deviations = [1, 5, 0.1]
    means = [0, 7, -3]
    x = noise(4000, 3, seed=2) * deviations + means
    null = next(nulls.gaussian(x, 1, seed=0))
    # of a mean over 4000 rows; 5 of them are next to impossible
    error = x.std(axis=0) / np.sqrt(4000)
    mean_difference = null.mean(axis=0) - x.mean(axis=0)
    std_difference = null.std(axis=0) - x.std(axis=0)
    assert (np.abs(mean_difference) < 5 * error).all()
    assert (np.abs(std_difference) < 5 * error).all()


def test_the_shuffled_null_is_passed_by_a_wave_and_not_by_noise():
    draw = np.random.default_rng(3)

    def statistic(x):
        mean = spectra.amplitude(x).mean(axis=1)
        return spectra.largest(mean)

    def quantile(x, q, n):
        shuffles = nulls.row_shuffles(x, n, seed=0)
        values = nulls.distribution(statistic, shuffles)
        return np.quantile(values, q)

    passed = 0
    samples = [draw.standard_normal((32, 6)) for _ in range(60)]
    for x in samples:
        passed += statistic(x) > quantile(x, 0.9, 60)
    assert 0 < passed < 16  # 6 expected, here 4; outside in 2 of 1000 draws
    planted = draw.standard_normal((64, 6)) + wave(64, 9, 6)
    assert statistic(planted) > 1.5 * quantile(planted, 0.999, 300)  # measured 1.82 times


# profiles


@pytest.mark.parametrize("T", [4, 13, 30])
def test_profile_is_the_plain_sum(T):
    """Equation 7, diagonal by diagonal."""
    a = uniform(2, 3, T, T, seed=T)
    fast = profiles.profile(a)
    assert fast.shape == (2, 3, 21)
    slow = [np.trace(a, t, axis1=-2, axis2=-1) for t in range(-10, 11)]
    slow = np.moveaxis(slow, 0, -1)
    assert max_error(fast, slow) < 1e-12  # measured 4e-15: another order of summation


def test_profile_sums_float32_in_float64_and_takes_any_layout():
    a = uniform(3, 40, 40).astype(np.float32)
    profile = profiles.profile(a)
    in_float64 = profiles.profile(a.astype(np.float64))
    assert np.array_equal(profile, in_float64)
    transposed = profiles.profile(a.swapaxes(1, 2))
    assert np.array_equal(transposed, profile[:, ::-1])


@pytest.mark.parametrize("causal", [False, True])
def test_a_head_with_a_direction_gives_one_other_token_five_times_uniform_attention(causal):
    """In short documents; in long ones LEAST is more."""
    T = 32
    uniform_attention = profiles.mean_attention(profiles.uniform(T, causal), T)
    left = np.arange(21) == 9
    itself = np.arange(21) == 10
    enough = np.where(left, 5.01 * uniform_attention, 0)
    too_little = np.where(left, 4.99 * uniform_attention, 0)
    assert too_little.max() > profiles.LEAST
    own = np.where(itself, 0.9, 0.05)
    more_to_itself = np.where(itself, 0.6, 0.5 * (np.arange(21) == 0))
    rows = np.array([enough, too_little, own, np.where(left, 0.9, 0), more_to_itself])
    directed = profiles.directed(rows, T, causal=causal)
    assert directed.tolist() == [True, False, False, True, False]
    far = np.zeros(41)
    far[0] = 1  # beyond what is looked at
    far[19] = 0.5
    assert profiles.directed(far, T, 10, causal)
    assert not profiles.directed(np.roll(far, 1), T, 10, causal)


def test_uniform_attention_gives_the_triangle_exactly():
    t = profiles.offsets()
    triangle = (64 - abs(t)) / 64
    assert np.array_equal(profiles.uniform(64), triangle)
    # query i of a causal model sees i + 1 keys, and none to its right
    causal = np.zeros(len(t))
    for place, offset in enumerate(t):
        if offset <= 0:
            keys_seen = range(1 - offset, 65)
            causal[place] = sum(1 / n for n in keys_seen)
    difference = profiles.uniform(64, causal=True) - causal
    assert np.abs(difference).max() < 1e-13  # measured 1.8e-15: another order of summation
    attention = profiles.mean_attention(triangle, 64)
    assert np.array_equal(attention, np.full(21, 1 / 64))


@pytest.mark.parametrize("offset", [-10, -2, 0, 1, 7])
def test_a_head_that_looks_at_one_offset_has_all_its_attention_there(offset):
    profile = profiles.profile(np.eye(30, k=offset))
    attention = profiles.mean_attention(profile, 30)
    assert np.array_equal(attention, profiles.offsets() == offset)


CENTRES = np.array([-6, -2, -1, 0, 1, 4])  # offsets that the planted profiles look at


def planted(n, noise=0.02):
    """n noisy copies of six profiles, shuffled: (profiles [6n R], which of the six)."""
    draw = np.random.default_rng(7)
    truth = draw.permutation(np.repeat(np.arange(6), n))
    t = profiles.offsets()
    distances = t - CENTRES[:, None]
    shapes = np.exp(-(distances**2) / 1.5)
    x = shapes[truth]
    return x + noise * draw.random(x.shape), truth


def test_planted_profiles_are_recovered_and_ordered_from_left_to_right():
    x, truth = planted(50)
    centres, labels = profiles.clusters(x, 6, seed=0)
    assert np.array_equal(labels, truth)
    sides = profiles.sides(centres, 1)
    assert set(sides) == {"left", "even", "right"}
    assert sorted(sides["left"]) == [0, 1, 2]
    assert sorted(sides["even"]) == [3]
    assert sorted(sides["right"]) == [4, 5]
    assert np.array_equal(profiles.nearest(x, centres), labels)
    means = [x[truth == i].mean(axis=0) for i in range(6)]
    assert max_error(centres, means) < 1e-12  # measured 0: the same sums


def test_clusters_depend_on_the_seed_alone():
    x, _ = planted(10, noise=1.0)
    first, _ = profiles.clusters(x, 6, seed=3)
    second, _ = profiles.clusters(x, 6, seed=3)
    assert np.array_equal(first, second)


def test_the_best_of_the_restarts_is_kept():
    x = uniform(120, 21)  # no clusters: every start ends elsewhere

    def spread(restarts, seed):
        centres, labels = profiles.clusters(x, 6, seed, restarts)
        distances = x - centres[labels]
        return np.square(distances).sum()

    single = [spread(1, seed) for seed in range(10)]
    mean = np.mean(single)
    assert spread(10, 0) < mean
    assert mean < max(single)


@pytest.mark.parametrize(
    "offsets, attention, names",
    [
        ([-6, -1, -2], [0.3, 0.9, 0.2], "left, -6; left, -1; left, -2"),
        ([-1, -1, 1], [0.7, 0.9, 0.5], "left, -1 (0.70); left, -1 (0.90); right, +1"),
        ([2, 2, 0], [0.251, 0.254, 0.9], "right, +2 (0.25) 2; right, +2 (0.25) 1; even"),
        ([0, 0, 1], [0.8, 0.9, 0.249], "even 2; even 1; right, +1"),
        ([-1, 1], [0.099, 0.11], "even; right, +1"),
    ],
)
def test_names_follow_the_attention_to_one_offset(offsets, attention, names):
    """Centres that look at one offset each, and how much of the attention is there."""
    T = 100
    rows = np.zeros((len(offsets), 21))
    for row, t, share in zip(rows, offsets, attention):
        row[t + profiles.REACH] = share * (T - abs(t))
    best, strong = profiles.best_on_side(rows, T)
    looks_away = np.array(offsets) != 0
    assert (best == offsets)[looks_away].all()
    assert strong[looks_away] == pytest.approx(np.array(attention)[looks_away])
    assert profiles.names(rows, T) == names.split("; ")


def test_a_centre_that_looks_to_both_sides_alike_is_even():
    centre = np.zeros((1, 21))
    centre[0, [9, 11]] = 40, 45  # mean offset 5/85: within a quarter
    assert profiles.names(centre, 100) == ["even"]
    centre[0, 9] = 20  # 25/65: beyond it
    assert profiles.names(centre, 100) == ["right, +1"]


def test_too_few_different_profiles_for_the_clusters():
    two = np.repeat(np.eye(2, 21), 9, axis=0)
    with pytest.raises(ValueError, match="6 clusters requested for 2 different profiles"):
        profiles.clusters(two, 6)


def test_shares_count_each_label_per_head():
    first_head = [0, 0, 0, 1]  # of 4 documents
    second_head = [2, 1, 1, 1]
    labels = np.array([first_head, second_head]).T
    first, second = profiles.label_frequencies(labels, 3).tolist()
    assert first == [0.75, 0.25, 0]
    assert second == [0, 0.75, 0.25]


def test_a_centre_without_an_offset_of_its_own_is_even_however_a_causal_model_bends_it():
    T = 64
    sharp = np.zeros(21)
    sharp[9] = 0.9 * (T - 1)  # 0.9 of the attention at -1
    centres = np.array([profiles.uniform(T, causal=True), sharp])
    assert abs(profiles.centre_of_mass(centres)).min() > 0.25  # by that alone both would look left
    assert profiles.names(centres, T) == ["even", "left, -1"]


def test_in_long_documents_a_head_has_a_direction_from_a_tenth_of_its_attention():
    """Five times uniform attention is 0.01 there, which a head that hardly looks anywhere has."""
    T = 512
    heads = np.zeros((3, 21))
    heads[:, 9] = 0.02, profiles.LEAST * 0.999, profiles.LEAST
    for causal in (False, True):
        assert profiles.directed(heads, T, causal=causal).tolist() == [False, False, True]
    itself = np.roll(heads, 1, axis=-1)
    assert profiles.stands_out(itself, T).tolist() == [False, False, True]


def test_heads_are_counted_in_the_band_that_their_attention_reaches():
    attention = np.array([[0.02, 0.1, 0.2499], [0.25, 0.5, 0.3]])
    counted = np.array([[False, True, True], [True, True, False]])
    assert profiles.by_strength(attention, counted).tolist() == [2, 1, 1]
    assert profiles.by_strength(attention, counted & False).tolist() == [0, 0, 0]
    assert min(profiles.STRENGTHS.values()) == profiles.LEAST  # no head falls out of the bands


def test_maxima_lie_above_a_line_and_leave_out_frequency_0():
    spectrum = np.array([9.0, 1, 3, 1, 2, 1.5, 5, 1])
    maxima = spectra.maxima(spectrum, 2.5)
    assert maxima.tolist() == [6, 2]
    assert len(spectra.maxima(spectrum, 5)) == 0
    assert spectra.maxima(spectrum, 1, least=3).tolist() == [6, 4]


def test_the_highest_peak_is_a_local_maximum_away_from_0():
    slope = np.array([99.0, 50, 20, 10, 8, 5, 4, 2, 1, 0.5])
    assert spectra.highest_peak(slope, 3) == (0, 0)  # the highest from 3 on is no summit
    slope[[3, 6]] = 25, 6
    assert spectra.highest_peak(slope, 3) == (25, 3)
    assert spectra.highest_peak(slope, 4) == (6, 6)


@pytest.mark.parametrize(
    "T, lowest", [(1024, 64), (512, 32), (257, 17), (256, 16), (64, 5), (8, 5)]
)
def test_a_peak_has_more_than_four_cycles_and_sixteen_tokens_at_most(T, lowest):
    assert spectra.lowest(T) == lowest


def peaks(table):
    """(fast, slow) peaks of a table above 200 shuffles."""
    shuffles = nulls.row_shuffles(table, 200, seed=0)
    shuffled = nulls.distribution(spectra.mean_amplitude, shuffles)
    return spectra.peaks_above_chance(spectra.mean_amplitude(table), shuffled, len(table))


def test_waves_have_peaks_and_drifts_and_noise_have_none():
    """Drift of one, two and four cycles, random walks, noise: in none of 30 tables of each."""
    T, D = 128, 24
    table = noise(T, D) + 2 * (wave(T, 1, D) + wave(T, 7, D) + wave(T, 40, D))
    fast, slow = peaks(table)
    assert (fast.tolist(), slow.tolist()) == ([40], [7])
    for seed in range(30):
        walk = noise(T, D, seed=seed).cumsum(axis=0)
        drift = noise(T, D, seed=seed) + 9 * sum(wave(T, f, D) for f in (1, 2, 4))
        assert not len(peaks(walk)[0])
        assert not len(peaks(drift)[0])
    passed = sum(len(peaks(noise(T, D, seed=seed))[0]) > 0 for seed in range(60))
    assert passed <= 4  # 0.6 expected; 5 and more in 4 of 10,000 draws


def test_a_spectrum_rises_again_where_a_fast_wave_stands_and_never_on_a_slope():
    T, D = 256, 24
    f = np.arange(1, T // 2 + 1)
    assert spectra.rise(np.r_[9, 1 / f]) == 1
    assert spectra.rise(np.r_[0, f]) == pytest.approx((121 + 128) / (1 + 8))  # bands of 8 means
    assert spectra.rise(np.zeros(T // 2 + 1)) == 1
    bump = np.where(abs(f - 20) < 5, 3.0, 1.0)
    assert spectra.rise(np.r_[0, bump]) == 3
    assert spectra.rise(np.r_[0, bump], least=30) == 1
    slope = sum(wave(T, i, D) / i for i in range(1, 60))
    assert rise_and_null(slope + 0.3 * wave(T, 20, D)) == [False]  # a line on a slope
    assert rise_and_null(slope + 0.3 * wave(T, 90, D)) == [True]
    assert rise_and_null(*(noise(T, D, seed=seed).cumsum(axis=0) for seed in range(10))) == [False]


def rise_and_null(*tables):
    """All answers to whether the spectrum of a table rises more than those of its shuffled rows."""
    answers = set()
    for table in tables:
        shuffles = nulls.row_shuffles(table, 100, seed=0)
        line = spectra.rise_null(nulls.distribution(spectra.mean_amplitude, shuffles))
        answers.add(bool(spectra.rise(spectra.mean_amplitude(table)) > line))
    return sorted(answers)
