"""When a curve formed: planted curves, chance, seeds."""

import numpy as np
import pytest

from minitx.analysis.maths import onsets

STEPS = np.array([0, 10, 20, 40, 80, 160, 320, 640])


def curve(rise, steps=STEPS, least=0.0, most=1.0):
    """A curve that rises from one value to the other at a step."""
    return np.where(steps >= rise, most, least)


@pytest.mark.parametrize(("rise", "before"), [(20, 10), (160, 80), (640, 320)])
def test_a_planted_step_is_found_between_its_snapshots(rise, before):
    step = onsets.formed(STEPS, curve(rise), np.full(8, 0.1))
    assert before < step < rise
    log = np.log1p([before, step, rise])
    assert abs((log[1] - log[0]) / (log[2] - log[0]) - 0.5) < 1e-9  # half of the way


def test_what_chance_gives_has_not_formed():
    rng = np.random.default_rng(0)
    assert np.isnan(onsets.formed(STEPS, curve(40), np.full(8, 1.0)))
    assert np.isnan(onsets.formed(STEPS, np.full(8, 0.7), np.full(8, 0.1)))  # it was there
    assert np.isnan(onsets.formed(STEPS, curve(40)[::-1], np.full(8, 0.1)))  # it went
    noise = [onsets.formed(STEPS, rng.random(8), np.full(8, 1.0)) for _ in range(50)]
    assert np.isnan(noise).all()


def test_what_falls_back_counts_from_its_last_rise():
    values = curve(20)
    values[4] = 0.2  # after 80 steps
    assert 80 < onsets.formed(STEPS, values, np.zeros(8)) < 160


def test_the_null_may_come_after_half_of_the_way():
    values = np.linspace(0, 1, 8)
    early, late = (onsets.formed(STEPS, values, np.full(8, null)) for null in (0.1, 0.8))
    assert 40 < early < 80 and 160 < late < 320


def test_later_is_a_quotient_with_an_interval():
    first = np.array([100.0, 110.0, 90.0])
    mean, low, high = onsets.later(first, 3 * first * [1.1, 1.0, 0.9])
    assert abs(mean - 3) < 0.05 and 1 < low < 3 < high
    _, low, high = onsets.later(first, first * [0.5, 1.0, 2.0])
    assert low < 1 < high
    assert np.isnan(onsets.later(first, [200.0, np.nan, 180.0])).all()
    assert np.isnan(onsets.later(first[:1], first[:1])).all()


def test_one_seed_has_a_mean_and_no_interval():
    mean, low, high = onsets.interval(np.array([[1.0, 2.0]]))
    assert mean.tolist() == [1, 2] and np.isnan([low, high]).all()
