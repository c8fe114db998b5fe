"""Maps of heads: the numbers in them, the scales that they share, and what is left out."""

import numpy as np
import pytest

from minitx.analysis.drawing import draw
from minitx.analysis.drawing.maps import Map, Scale, fit, maps, number
from minitx.analysis.drawing.panels import Part, beside, column

R = {"a": np.array([[0.25, 0.5]]), "b": np.array([[-0.04, 0.001]]), "words": ["x", "y"]}
SHARE = Scale("share")
ATTENTION = Scale("attention", most=1, signed=False)


def texts(axes):
    return [text.get_text() for text in axes.texts]


@pytest.mark.parametrize(
    ("x", "most", "text"),
    [(0.043, 1, "0.04"), (-0.25, 1, "−0.25"), (-0.001, 1, "0.00"), (-12.34, 13, "−12.3")],
)
def test_numbers_have_two_decimals_unless_they_are_large(x, most, text):
    assert number(x, most) == text


def test_numbers_are_left_out_where_cells_are_narrow_or_they_say_nothing():
    small, signed = np.full((2, 8), 0.5), np.full((2, 8), -0.5)
    assert fit([small], 3.0, 1) and not fit([signed], 3.0, 1)  # they were turned
    assert not fit([small], 1.5, 1)
    assert not fit([small], 3.0, 0.01)
    assert not fit([np.zeros((12, 12))], 12.0, 1)


def test_maps_of_one_scale_have_the_same_ends_and_one_colour_bar():
    shown = maps(Map("b", "b", SHARE), Map("a", "of {words}", SHARE), columns="words")
    picture = shown(R)
    second, first, bar = picture.axes  # the larger numbers are of the second map
    assert first.images[0].get_clim() == second.images[0].get_clim() == (-0.5, 0.5)
    assert first.get_title() == "of x, y"
    assert texts(first) == ["0.25", "0.50"] and texts(second) == ["−0.04", "0.00"]
    assert [label.get_text() for label in second.get_xticklabels()] == ["x", "y"]
    assert bar.get_ylabel() == "share"


def test_each_scale_has_its_colour_bar_and_begins_at_0_where_nothing_is_negative():
    first, absent = Map("a", "a", ATTENTION), Map("absent", "absent", SHARE)
    picture = maps(first, Map("b", "b", SHARE), absent, below=[first])(R)
    with draw.style():
        draw.svg(picture)
    named = {axes.get_title(): axes for axes in picture.axes if axes.images}
    assert named["a"].images[0].get_clim() == (0, 1)
    assert named["b"].images[0].get_clim() == (-0.04, 0.04)
    assert {"attention", "share"} <= {axes.get_xlabel() for axes in picture.axes}
    assert "absent" not in named


def test_a_column_leaves_out_what_has_no_result():
    only = maps(Map("a", "a", SHARE))
    whole = column(only, maps(Map("absent", "", SHARE), needs="absent"))
    assert whole(R).get_size_inches().tolist() == only(R).get_size_inches().tolist()
    assert len(whole(R).subfigs) == 1


def test_parts_stand_side_by_side_as_wide_as_the_results_say():
    part = Part(lambda figure, r: figure.subplots())
    picture = beside(part, part, widths=(1, lambda r: len(r["words"])), height=3)(R)
    left, right = (part.bbox.width for part in picture.subfigs)
    assert right == pytest.approx(2 * left)
