"""Maps of numbers by layer and head, or by layer and place: blue above 0, red below."""

import numpy as np

WRITTEN = 64  # numbers that are written into a map, at most
TICKS = 8  # on each side, at most
SMALL = 0.6  # the largest number, below which one decimal says too little


def draw_map(axes, scores, largest=1.0, written=WRITTEN):
    """A map [L H], blue above 0 and red below, with numbers where there are few.

    Where all are small they have two decimals.
    """
    image = axes.imshow(scores, cmap="RdBu", vmin=-largest, vmax=largest, aspect="auto")
    decimals = 2 if largest < SMALL else 1
    size = 8 if scores.shape[1] > 4 and decimals > 1 else 10
    if scores.size <= written:
        for (row, column), score in np.ndenumerate(scores):
            color = "white" if abs(score) > 0.6 * largest else "black"
            place = {"ha": "center", "va": "center", "fontsize": size, "color": color}
            number = f"{score:.{decimals}f}"
            axes.text(column, row, number.lstrip("-") if float(number) == 0 else number, **place)
    rows, columns = scores.shape
    axes.set_xticks(range(0, columns, -(-columns // TICKS)))
    axes.set_yticks(range(0, rows, -(-rows // TICKS)))
    axes.tick_params(length=0)
    return image
