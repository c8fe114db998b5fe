"""Labels beside points: none covers another, a point or the edge; the nearest place is taken."""

import numpy as np
import pytest
from matplotlib.text import Text

from minitx.analysis.drawing import draw, labels


@pytest.fixture(autouse=True)
def _style():
    with draw.style():
        yield


def panel(points, width=4, height=4):
    """Axes around points [n 2], of a figure that is laid out."""
    figure = draw.figure(width, height)
    axes = figure.subplots()
    axes.plot(*np.transpose(points), "o", markersize=3.5)
    axes.margins(0.2)
    draw.measure(figure)
    return axes


def boxes(written):
    """Left, bottom, right and top of each label in pixels: [n 4]."""
    draw.measure(written[0].figure)
    return np.array([Text.get_window_extent(label).extents for label in written])


def overlap(a, b):
    """Whether extents [n 4] and [m 4] overlap: [n m]."""
    low = np.maximum(a[:, None, :2], b[None, :, :2])
    high = np.minimum(a[:, None, 2:], b[None, :, 2:])
    return (high > low).all(axis=-1)


def test_labels_of_a_crowd_overlap_neither_each_other_nor_points():
    points = np.random.default_rng(0).normal(size=(40, 2)) * (1, 0.3)
    axes = panel(points, 5, 5)
    written = labels.place(axes, points, [f"w{i}" for i in range(40)], ["black"] * 40)
    assert len(written) == 40
    own = boxes(written)
    assert not np.triu(overlap(own, own), 1).any()
    centers = axes.transData.transform(points)
    assert not overlap(own, np.hstack([centers - 2, centers + 2])).any()
    inside = axes.get_window_extent().extents
    assert (own[:, :2] >= inside[:2]).all() and (own[:, 2:] <= inside[2:]).all()


def test_a_label_alone_stands_at_the_upper_right_of_its_point():
    axes = panel([(0, 0), (1, 1)])
    (label,) = labels.place(axes, np.array([(0.3, 0.3)]), ["alone"], ["black"])
    left, bottom, *_ = boxes([label])[0]
    x, y = axes.transData.transform((0.3, 0.3))
    near = 5 * axes.figure.dpi / 72
    assert 0 < left - x < near
    assert 0 < bottom - y < near
    assert label.arrow_patch is None


def test_a_label_far_from_its_point_has_a_line_to_it():
    points = np.full((12, 2), 0.5)
    axes = panel([(0, 0), (1, 1)])
    written = labels.place(axes, points, [f"word {i}" for i in range(12)], ["black"] * 12)
    assert len(written) == 12
    center = axes.transData.transform(points).mean(axis=0)
    own = boxes(written)
    gaps = np.maximum(own[:, :2] - center, center - own[:, 2:]).max(axis=1)
    has_line = [label.arrow_patch is not None for label in written]
    assert any(has_line) and not all(has_line)
    assert min(gaps[has_line]) >= max(gaps[np.logical_not(has_line)])


def test_a_label_that_fits_nowhere_is_left_out():
    axes = panel([(0, 0), (1, 1)], 1, 1)
    points = np.array([(0.5, 0.5), (0.4, 0.4)])
    written = labels.place(axes, points, ["far too long for its panel", "x"], ["black"] * 2)
    assert [label.get_text() for label in written] == ["x"]
    assert len(axes.texts) == 1


@pytest.mark.parametrize("n", [0, 1])
def test_few_labels(n):
    axes = panel([(0, 0), (1, 1)])
    assert len(labels.place(axes, np.zeros((n, 2)) + 0.5, ["x"] * n, ["black"] * n)) == n
