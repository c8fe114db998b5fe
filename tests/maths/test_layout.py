"""Bands and lines of one shift, on maps made of one, of the other, and of neither."""

import numpy as np
import pytest

from minitx.analysis.maths import layout, rotation

T, A = 128, 64
F = T // 2 + 1
CENTRES = rotation.bin_centres(A)
EVEN = np.ones(A)
SHIFTS = layout.shifts(T)


def map_at(angles, seed=0):
    """Energy [F A] of any height at one angle for each frequency above 0."""
    energy = np.zeros((F, A))
    heights = np.random.default_rng(seed).uniform(1, 9, F - 1)
    steps = np.rint(A * np.asarray(angles) / (2 * np.pi)).astype(int)
    energy[np.arange(1, F), (steps + A // 2 - 1) % A] = heights
    return energy


def strongest(energy, density=EVEN):
    """Highest sums along bands and lines, what 99% of turned maps stay below, and where."""
    rows = layout.rows_of(energy, density, T)
    along = layout.along_bands(rows), layout.along_lines(rows, SHIFTS)
    chance = np.quantile(layout.by_chance(rows, SHIFTS, 200), 0.99, axis=1)
    best = CENTRES[along[0].argmax()], SHIFTS[along[1].argmax()]
    return [x.max() for x in along], chance.tolist(), best


@pytest.mark.parametrize("shift", [-7, -1, 2, 10, 60])
def test_a_map_of_one_shift_has_a_line_and_no_band(shift):
    angles = 2 * np.pi * np.arange(1, F) * shift / T
    (band, line), (_, line_null), (_, best) = strongest(map_at(angles))
    assert best == shift
    # an angle within half a bin of 0 counts for neither: at most 1 frequency in 5
    assert line > 0.75 > 3 * line_null
    assert band < 0.2
    assert band < line / 3


@pytest.mark.parametrize("angle", [-2.5, -0.2, 1.0, np.pi])
def test_a_map_of_one_angle_has_a_band_and_no_line(angle):
    (band, line), (band_null, _), (best, _) = strongest(map_at(np.full(F - 1, angle)))
    assert abs(np.angle(np.exp(1j * (best - angle)))) <= np.pi / A + 1e-9
    assert band == pytest.approx(1 - 1 / A)
    assert band > 3 * band_null
    assert line < band / 3


def test_a_map_of_any_angles_has_neither():
    is_more = []
    for seed in range(20):
        angles = np.random.default_rng(seed).uniform(-np.pi, np.pi, F - 1)
        along, chance, _ = strongest(map_at(angles))
        is_more.append(np.greater(along, chance))
    assert np.sum(is_more, axis=0).max() <= 2  # wanted 1 in 100 each


def test_energy_at_angle_0_is_no_evidence_for_either():
    along, chance, _ = strongest(map_at(np.zeros(F - 1)))
    assert max(along) <= 0
    assert min(chance) > 0


def test_angles_that_are_many_in_one_bin_make_no_band():
    """The smallest rotation has most of its angles at one place, whatever the head does."""
    density = EVEN + 99 * (np.arange(A) == 20)
    energy = np.tile(density, (F, 1))
    along, _, _ = strongest(energy, density)
    assert max(along) < 1e-12
    (band, _), (band_null, _), _ = strongest(energy)
    assert band > 3 * band_null


def test_frequencies_count_by_their_amplitude_and_those_without_energy_not_at_all():
    energy = map_at(np.full(F - 1, 1.0))
    energy[5:] = 0
    energy[1:5] /= energy[1:5].sum(axis=1, keepdims=True)
    energy[1:5] *= np.array([1, 4, 9, 16])[:, None]
    rows = layout.rows_of(energy, EVEN, T)
    assert rows.weight[:4] == pytest.approx([0.1, 0.2, 0.3, 0.4])
    assert not rows.weight[4:].any()
    assert layout.along_bands(rows).max() == pytest.approx(1 - 1 / A)
    nothing = layout.rows_of(0 * energy, EVEN, T)
    assert not layout.along_bands(nothing).any()


def test_turned_maps_keep_each_frequency_as_it_is():
    """So bands of one turned frequency are those of its own energy, wherever they land."""
    energy = np.random.default_rng(0).uniform(0, 1, (2, A))
    rows = layout.rows_of(energy, EVEN, 2)
    of_bands, _ = layout.by_chance(rows, np.array([1]), 50)
    highest, second = np.sort(rows.excess[0])[[-1, -2]]
    assert set(np.round(of_bands, 12)) <= {round(highest, 12), round(second, 12)}


def test_lines_are_as_far_apart_as_the_frequencies_allow():
    assert [layout.unit(T, last) for last in (64, 8, 5, 1)] == [1, 1, 10, 10]
    assert layout.unit(1024, 2) == 100
    energy = map_at(np.zeros(F - 1))
    energy[21:] = 0
    last = layout.last_frequency(energy)
    assert last <= 20
    assert energy[1 : last + 1].sum() >= 0.99 * energy[1:].sum() > energy[1:last].sum()


def test_shifts_go_by_tokens_then_tens_then_hundreds_as_far_as_half_the_text():
    far = [*range(1, 11), *range(20, 101, 10), *range(200, 501, 100)]
    assert layout.shifts(1024).tolist() == [*(-x for x in far[::-1]), *far]
    assert layout.shifts(9).tolist() == [-4, -3, -2, -1, 1, 2, 3, 4]
