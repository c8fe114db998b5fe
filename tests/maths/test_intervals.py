"""Intervals over documents: how often they contain the truth, and what few documents give."""

import interval_coverage
import numpy as np
import pytest
from scipy import stats as reference

from minitx.analysis.maths import stats

DRAWS = 4000
SIZES = 4, 8, 12, 20, 60


def share_that_contain(ends, truth):
    low, high = ends
    return ((low < truth) & (truth < high)).mean()


@pytest.mark.parametrize("N", SIZES)
def test_intervals_contain_the_truth_as_often_as_they_say(N):
    """Means, and ratios of sums where a document's length is between one and twice another's."""
    rng = np.random.default_rng(N)
    lengths = rng.integers(100, 200, (N, DRAWS))
    values = lengths * (3 + 0.3 * rng.normal(size=(N, DRAWS)))
    for ends in (stats.interval(values / lengths), stats.interval(values, lengths)):
        # 3 deviations of a share of 4,000 draws are .010; measured .946 to .957
        assert abs(share_that_contain(ends, 3) - 0.95) < 0.015


@pytest.mark.parametrize("N", SIZES)
def test_half_widths_are_those_of_students_t(N):
    """1.59, .84, .64, .47 and .26 standard deviations of a document."""
    values = np.random.default_rng(N).normal(size=N)
    reach = reference.t.ppf(0.975, N - 1) * values.std(ddof=1) / np.sqrt(N)
    expected = values.mean() + np.array([-reach, reach])
    assert abs(stats.interval(values) - expected).max() < 1e-12  # measured 1e-15


def test_the_ratio_is_that_of_sums_and_has_any_axes():
    rng = np.random.default_rng(0)
    n = rng.integers(1, 9, 30)
    values = rng.normal(size=(30, 2, 3))
    ends = stats.interval(values, n)
    assert ends.shape == (2, 2, 3) and (ends[0] < ends[1]).all()
    middle = values.sum(axis=0) / n.sum()
    assert abs(ends.mean(axis=0) - middle).max() < 1e-12  # measured 1e-16
    for i, j in np.ndindex(2, 3):
        assert abs(ends[:, i, j] - stats.interval(values[:, i, j], n)).max() < 1e-12
    each = np.broadcast_to(n[:, None, None], values.shape)
    assert np.array_equal(ends, stats.interval(values, each))


def test_long_documents_weigh_more_in_a_ratio():
    """Nine tokens of loss 1 in half of the documents, one of loss 0 in the others: 0.9, not 0.5."""
    weights = np.tile([9.0, 1.0], 100)
    losses = np.tile([9.0, 0.0], 100)
    low, high = stats.interval(losses, weights)
    assert 0.85 < low < 0.9 < high < 0.95


def test_one_document_has_no_interval_and_equal_ones_have_no_width():
    assert np.isnan(stats.interval(np.ones((1, 3)))).all()
    assert np.isnan(stats.positive_interval([2.0], [3.0])).all()
    assert stats.interval(np.full(5, 6.0), np.full(5, 2.0)).tolist() == [3, 3]


@pytest.mark.parametrize("N", SIZES)
def test_the_interval_of_what_cannot_be_negative_covers_and_is_not(N):
    """A share of the variance left unexplained, as a probe of positions leaves it: 1 - R²."""
    rng = np.random.default_rng(N)
    left = rng.gamma(4, 0.05, (N, DRAWS))  # 0.2 on average
    ends = stats.positive_interval(left, np.ones(N))
    assert (ends[0] > 0).all()
    assert 0.92 < share_that_contain(ends, 0.2) < 0.965  # measured .939 to .945


def correlated_text(n, rng):
    """Losses of the n pieces of a text whose subject changes: neighbours correlate by 0.5."""
    subject = np.repeat(rng.normal(size=n // 20 + 1), 20)[:n]
    return 3 + 0.3 * (subject + rng.normal(size=n))


@pytest.mark.parametrize("N", SIZES)
def test_documents_from_the_whole_text_cover_its_mean_and_neighbours_do_not(N):
    """One piece from each N-th of a text of 2,000 pieces, beside N in a row."""
    rng = np.random.default_rng(N)
    values = correlated_text(2000, rng)
    covered = {}
    for draw in (interval_coverage.spaced, interval_coverage.in_a_row):
        numbers = draw(len(values), N, rng)
        assert (np.diff(numbers, axis=0) > 0).all() and 0 <= numbers.min() <= numbers.max() < 2000
        ends = stats.interval(values[numbers])
        covered[draw.__name__] = share_that_contain(ends, values.mean())
    assert covered["spaced"] > 0.925  # measured .951 to .968
    assert covered["in_a_row"] < 0.8  # measured .744 with 4 documents, .389 with 60
