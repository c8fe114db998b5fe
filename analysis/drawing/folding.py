"""Where a figure of many panels is folded: its first rows are shown, the others where asked for.

A row is what stands side by side, with titles, labels and keys; the fold crosses nothing. A figure
as SVG says where it is. Order: the fold of a figure, its rows; what an SVG says.
"""

import re
from typing import NamedTuple

import numpy as np

SHOWN = 4  # panels, at most, above the fold, or the first row
LEAST = 30  # points; what is narrower or lower is a colour bar
APART = 15  # points between the frames of two rows; closer ones share an axis, and are one
FOLD = re.compile(r'data-fold="([\d.]+) (\d+)"')
SIZE = re.compile(r'viewBox="[-\d.]+ [-\d.]+ ([\d.]+) ([\d.]+)"')


class Cut(NamedTuple):
    """Size in points of a figure, the height that is shown, and how many panels are not."""

    width: float
    whole: float
    height: float
    n_folded: int


def fold(figure):
    """Height above the fold, and panels below it, of a figure with its layout; None: no fold.

    In dots of the figure.
    """
    bands = rows(figure)
    n_panels = np.cumsum([n for *_, n in bands])
    first = int((n_panels > 0).argmax())  # the first row of panels
    last = max(first, int((n_panels <= SHOWN).sum()) - 1)
    n_folded = int(n_panels[-1] - n_panels[last])
    if not n_folded:
        return None
    fold_at = (bands[last][0] + bands[last + 1][1]) / 2
    return figure.bbox.height - fold_at, n_folded


def rows(figure):
    """[[bottom, top, number of panels]] of what overlaps in height, from the top."""
    bands = []
    for bottom, top, n in sorted(_parts(figure), key=lambda part: -part[1]):
        if bands and top > bands[-1][0]:
            low, _, before = bands[-1]
            bands[-1] = [min(bottom, low), bands[-1][1], before + n]
        else:
            bands.append([bottom, top, n])
    return bands


def _parts(figure):
    """(bottom, top, 1 for a panel) of all axes, and of words and keys with the axes by them."""
    whole = {axes: axes.get_tightbbox() for axes in figure.axes if axes.get_visible()}
    frames = {tuple(axes.bbox.extents.round()): axes for axes in whole}  # twins are one
    for axes, box in whole.items():
        frame, near = axes.bbox, APART / 2
        is_panel = min(frame.width, frame.height) >= LEAST and axes in frames.values()
        lowest = min(box.y0, frame.y0 - near, _numbered(axes).bbox.y0)
        yield lowest, max(box.y1, frame.y1 + near), int(is_panel)
    for part in _figures(figure):
        near = [axes.bbox for axes in part.axes]
        for words in filter(lambda words: words.get_visible(), [*part.texts, *part.legends]):
            box = words.get_window_extent()
            next_to = min(near, key=lambda other: max(other.y0 - box.y1, box.y0 - other.y1))
            yield min(box.y0, next_to.y0), max(box.y1, next_to.y1), 0


def _numbered(axes):
    """The axes below, on whose numbers a shared x axis relies; itself if it has numbers."""
    if axes.xaxis.get_tick_params().get("labelbottom", True):
        return axes
    return min(axes.get_shared_x_axes().get_siblings(axes), key=lambda other: other.bbox.y0)


def _figures(figure):
    """A figure and the parts of it that have axes."""
    if figure.axes:
        yield figure
    for part in figure.subfigs:
        yield from _figures(part)


def marked(svg, place):
    """SVG that says where its fold is; place: what `fold` gives, in points."""
    if place is None:
        return svg
    height, n_folded = place
    return svg.replace("<svg ", f'<svg data-fold="{height:.1f} {n_folded}" ', 1)


def cut(svg):
    """The Cut of a figure as SVG text; None where all is shown."""
    said = FOLD.search(svg[:2000])
    if said is None:
        return None
    width, whole = map(float, SIZE.search(svg).groups())
    return Cut(width, whole, float(said[1]), int(said[2]))
