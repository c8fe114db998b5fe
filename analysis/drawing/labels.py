"""Labels beside points that cover neither each other nor a point: each at the nearest free place.

A box is (x, y, half its width, half its height) in points, 72 to the inch.
"""

import numpy as np

from . import draw, fonts

RADII = 3.2, 7, 12, 18, 25, 33, 42, 52, 63, 75, 90, 110  # from the point to the label
DIRECTIONS = np.array(  # a label at a corner first, then beside its point, then above it
    [
        *((1, 1), (-1, 1), (1, -1), (-1, -1), (1, 0), (-1, 0), (0, 1), (0, -1)),
        *((0.4, 1), (-0.4, 1), (0.4, -1), (-0.4, -1), (1, 0.4), (-1, 0.4), (1, -0.4), (-1, -0.4)),
    ]
)
SIZE = 10  # of the font
GAP = 0.8  # between two labels
MARKER = 2.2  # half the width of a point
LED = 10  # from this radius on a thin line leads to the point


def place(axes, points, texts, colors):
    """Write texts beside points [n 2] of axes whose figure is laid out; returns the annotations.

    Those in a crowd choose first. A label without a free place is left out.
    """
    scale = 72 / axes.figure.dpi
    centers = axes.transData.transform(points) * scale
    panel = _box(axes.get_window_extent(), scale)
    taken = [np.array([*point, MARKER, MARKER]) for point in centers]
    labels = []
    for i in _crowded_first(centers):
        half = _half_of_size(axes, texts[i], scale)
        for radius, box in _boxes_around(centers[i], half):
            if _is_inside(box, panel) and not _overlaps(box, taken):
                offset = box[:2] - centers[i]
                labels.append(_write(axes, texts[i], points[i], offset, radius, colors[i]))
                taken.append(box)
                break
    return labels


def _write(axes, text, point, offset, radius, color):
    """A label at an offset in points, with a line to its point if it is far from it."""
    style = {"fontsize": SIZE, "color": color}
    if radius >= LED:
        line = {"arrowstyle": "-", "linewidth": 0.4, "color": color, "alpha": 0.6}
        style = style | {"arrowprops": line | {"shrinkA": 0, "shrinkB": 2}}
    beside = {"textcoords": "offset points", "ha": "center", "va": "center", "zorder": 4}
    beside["bbox"] = draw.OVER_LINES
    label = draw.of_tokens(axes.annotate(text, point, offset, **beside, **style))
    label.set_in_layout(False)  # the panel stays as large as it was measured
    return label


def _half_of_size(axes, text, scale):
    """Half the width and height of a text, in points: [2]."""
    measured = draw.of_tokens(axes.text(0, 0, text, fontsize=SIZE))
    fonts.cover(measured)
    with fonts.without_warnings():
        extent = measured.get_window_extent()
    measured.remove()
    return np.array([extent.width, extent.height]) * scale / 2


def _box(extent, scale):
    x, y, width, height = np.array(extent.bounds) * scale
    return np.array([x + width / 2, y + height / 2, width / 2, height / 2])


def _crowded_first(centers):
    """Numbers of the points [n 2], those with the most others nearby first."""
    distances = np.linalg.norm(centers[:, None] - centers, axis=-1)
    crowd = np.exp(-distances / 20).sum(axis=1).round(6)
    return np.argsort(-crowd, kind="stable").tolist()


def _boxes_around(point, half):
    """(radius, box) of every place around a point [2], the nearest first."""
    for radius in RADII:
        for direction in DIRECTIONS:
            yield radius, np.concatenate([point + direction * (half + radius), half])


def _is_inside(box, panel):
    return bool((abs(box[:2] - panel[:2]) + box[2:] <= panel[2:]).all())


def _overlaps(box, taken):
    """Whether a box comes nearer than GAP to one of the others."""
    others = np.array(taken)
    distances = abs(box[:2] - others[:, :2])
    return bool((distances < box[2:] + others[:, 2:] + GAP).all(axis=1).any())
