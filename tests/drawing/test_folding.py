"""Where figures are folded: between two rows, with all that belongs to the first."""

import numpy as np

from minitx.analysis.drawing import draw, folding


def drawn_in_rows(*rows):
    """SVG of a figure with so many panels in each row, labelled on both axes."""
    with draw.style():
        figure = draw.figure(8, 2 * len(rows))
        for part, n in zip(np.atleast_1d(figure.subfigures(len(rows), 1)), rows, strict=True):
            for axes in np.atleast_1d(part.subplots(1, n)):
                axes.set(title="title", xlabel="offset", ylabel="attention")
        return draw.svg(figure)


def test_of_many_panels_the_first_rows_are_shown():
    """A row is whole, and four panels or fewer are all shown."""
    assert folding.cut(drawn_in_rows(2, 2)) is None and folding.cut(drawn_in_rows(6)) is None
    cut = folding.cut(drawn_in_rows(3, 1, 2))
    assert (cut.width, cut.whole, cut.n_folded) == (8 * 72, 6 * 72, 2)
    assert 0.62 < cut.height / cut.whole < 0.7  # two of three rows
    assert folding.cut(drawn_in_rows(6, 1)).n_folded == 1


def test_a_legend_stays_with_its_panels():
    with draw.style():
        figure = draw.figure(8, 6)
        above, below = figure.subfigures(2, 1)
        for n, axes in enumerate([*above.subplots(1, 3), *below.subplots(1, 2)]):
            axes.plot([0, 1], label=f"line {n}")
        for axes in above.axes:
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.4))
        below.suptitle("of the lower row")
        cut = folding.cut(draw.svg(figure))
        figure.dpi = draw.SVG_DPI
        lowest = min(axes.get_legend().get_window_extent().y0 for axes in above.axes)
        highest = below.texts[0].get_window_extent().y1
    assert cut.n_folded == 2 and highest < cut.whole - cut.height < lowest


def test_rows_that_share_the_numbers_of_the_last_are_not_parted():
    def folded(shared):
        figure = draw.figure(8, 9)
        figure.subplots(4, 2, sharex=shared)
        return folding.cut(draw.svg(figure))

    assert folded(False).n_folded == 4
    assert folded(True) is None


def test_a_colour_bar_and_a_second_axis_are_no_panels():
    with draw.style():
        figure = draw.figure(8, 3)
        left, right = figure.subplots(1, 2)
        left.twinx()
        figure.colorbar(right.imshow(np.eye(3)), ax=right)
        draw.svg(figure)
        assert [n for *_, n in folding.rows(figure)] == [2]
