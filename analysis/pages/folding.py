"""Where a figure of many panels is cut: its first rows are shown, the others folded.

The figure itself stays whole: a page shows less of its height. A row is what stands side by side,
and is never cut. Order: panels, rows, the cut.
"""

import re
from itertools import pairwise
from typing import NamedTuple

SHOWN = 4  # panels, at most, above the cut, or the first row
LEAST = 30  # points; what is narrower or lower is a colour bar
APART = 15  # points between two rows; closer ones interlock, and are one
SIZE = re.compile(r'viewBox="[-\d.]+ [-\d.]+ ([\d.]+) ([\d.]+)"')
FRAME = re.compile(r'<g id="axes_\d+">\s*<g id="patch_\d+">\s*<path d="([^"]*)"')
POINT = re.compile(r"[ML] ([-\d.]+) ([-\d.]+)")
TEXT = re.compile(r'<text [^>]*\by="([-\d.]+)"|<text [^>]*translate\([-\d.]+ ([-\d.]+)\)')


class Cut(NamedTuple):
    """Size in points of a figure, the height that is shown, and how many panels are not."""

    width: float
    whole: float
    height: float
    n_folded: int


def cut(svg):
    """The Cut of a figure as SVG text; None where all is shown."""
    bands = rows(panels(svg))
    n = shown = 0
    while shown < len(bands) and (not shown or n + bands[shown][2] <= SHOWN):
        n += bands[shown][2]
        shown += 1
    if shown == len(bands):
        return None
    between = bands[shown - 1][1], bands[shown][0]
    n_folded = sum(row[2] for row in bands[shown:])
    size = map(float, SIZE.search(svg).groups())
    return Cut(*size, widest_gap(svg, lowest_text(svg, *between), between[1]), n_folded)


def panels(svg):
    """Top and bottom of every panel, {(left, top): bottom}; twins on one place are one."""
    frames = {}
    for path in FRAME.findall(svg):
        xs, ys = zip(*(map(float, point) for point in POINT.findall(path)))
        if max(xs) - min(xs) >= LEAST and max(ys) - min(ys) >= LEAST:
            frames[round(min(xs)), min(ys)] = max(ys)
    return frames


def rows(frames):
    """[[top, bottom, number of panels]] of panels side by side, from the top.

    >>> rows({(0, 10.0): 50.0, (60, 12.0): 50.0, (0, 80.0): 120.0})
    [[10.0, 50.0, 2], [80.0, 120.0, 1]]
    """
    bands = []
    for (_, top), bottom in sorted(frames.items(), key=lambda frame: frame[0][1]):
        if bands and top < bands[-1][1] + APART:
            bands[-1][1:] = max(bottom, bands[-1][1]), bands[-1][2] + 1
        else:
            bands.append([top, bottom, 1])
    return bands


def lowest_text(svg, bottom, top):
    """How far down the panels above go, with their labels and legends, before the next row."""
    ys = [bottom]
    for panel in re.split(r'(?=<g id="axes_\d+">)', svg)[1:]:
        if all(end <= bottom for end in panels(panel).values()):
            ys += [y for y in baselines(panel) if y < top]
    return max(ys)


def baselines(svg):
    """Heights of all texts."""
    return [float(y or other) for y, other in TEXT.findall(svg)]


def widest_gap(svg, bottom, top):
    """A place in the widest gap between the baselines of texts below a row and above the next."""
    lines = [bottom, *sorted(y for y in baselines(svg) if bottom < y < top), top]
    gaps = [(below - above, above, below) for above, below in pairwise(lines)]
    _, above, below = max(gaps)
    return above + 0.4 * (below - above)  # letters stand above their baseline
