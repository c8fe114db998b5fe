"""Maps of numbers by layer and head, or by layer and place: blue above 0, red below."""

import numpy as np

WRITTEN = 64  # numbers that are written into a map, at most
TICKS = 8  # on each side, at most


def draw_map(axes, scores, largest=1.0, written=WRITTEN):
    """A map [L H], blue above 0 and red below, with numbers where there are few."""
    image = axes.imshow(scores, cmap="RdBu", vmin=-largest, vmax=largest, aspect="auto")
    if scores.size <= written:
        for (row, column), score in np.ndenumerate(scores):
            color = "white" if abs(score) > 0.6 * largest else "black"
            place = {"ha": "center", "va": "center", "fontsize": 10, "color": color}
            axes.text(column, row, f"{score:.1f}".replace("-0.0", "0.0"), **place)
    rows, columns = scores.shape
    axes.set_xticks(range(0, columns, -(-columns // TICKS)))
    axes.set_yticks(range(0, rows, -(-rows // TICKS)))
    axes.tick_params(length=0)
    return image
