"""Maps of numbers by layer and head, or by layer and token, side by side with a colour bar.

    SHARE = Scale("share of the answer")
    draw=maps(Map("restored", "restored", SHARE), Map("restored_null", "by chance", SHARE))

A Maps is a part of a figure like those of panels.py.
"""

from dataclasses import dataclass

import numpy as np

from . import draw
from .panels import Part
from .sentences import Names, tell

WRITTEN = 64  # numbers that are written into a map, at most
TICKS = 8  # on each side, at most
LEAST = 4  # rows that a map is as high as, at least
HIGH = 10.0  # from this number on one decimal is enough
LOW = 0.05  # a map of smaller numbers has none: two decimals would say too little
POINT = 1 / 72  # of an inch
SIZE = 10  # of numbers and colour bars, in points
BAR = 1.2  # inches that labels and colour bars take, about
ASPECT = 10  # length of a colour bar below one map, in its heights
DIGITS = {False: 2.3, True: 3.2}  # width of 0.12 and of −0.12, in sizes of the font


@dataclass(frozen=True)
class Scale:
    """What the colours mean: red above 0, blue below where `signed`; `most`: a number, or f(r)."""

    label: str
    most: object = None  # None: the largest size of what is drawn
    signed: bool = True

    def limits(self, arrays, names):
        """Ends of the colours for maps that share it, as matplotlib's `imshow` takes them."""
        most = max(abs(x).max() for x in arrays) if self.most is None else names.value(self.most)
        most = float(most) or 1.0
        low = -most if self.signed else 0.0
        return {"cmap": "RdBu_r" if self.signed else "Blues", "vmin": low, "vmax": most}


@dataclass(frozen=True)
class Map:
    """A result [n m], or a function of the results, as a map: its title, a template, its scale."""

    name: object
    title: object
    scale: Scale

    def is_in(self, r):
        """Whether there is something to draw."""
        return callable(self.name) or self.name in r


@dataclass(frozen=True)
class Maps(Part):
    """Rows of maps; those with one scale share a colour bar, at the right if it is the only one.

    columns, rows: what names the columns and rows of each map: a result, or a function of them; ""
    for their numbers. has_tokens: the columns are tokens of a text; second: where that of a pair
    begins, a function of the results. heading: a template, above them; so are xlabel and ylabel.
    """

    paint: None = None
    height: object = None  # inches; None: by the number of rows
    grid: tuple = ()
    xlabel: object = "head"
    ylabel: object = "layer"
    columns: object = ""
    rows: object = ""
    has_tokens: bool = False
    second: object = None
    heading: object = ""
    needs: str = ""  # the result without which there is nothing to draw

    def is_in(self, r):
        return not self.needs or self.needs in r

    def inches(self, r):
        if self.height is not None:
            return super().inches(r)
        n = max(len(self._values(row[0], Names(r))) for row in self._shown(r))
        return len(self.grid) * (1.8 + 0.38 * max(n, LEAST))

    def into(self, figure, r):
        """Draw the maps of a result into a figure, a scale beside those that share it."""
        shown, names = self._shown(r), Names(r)
        panels = figure.subplots(len(shown), len(shown[0]), sharey=True, squeeze=False)
        pairs = [*zip(panels.ravel(), (each for row in shown for each in row))]
        scales = [*dict.fromkeys(each.scale for _, each in pairs)]
        for scale in scales:
            mine = [(axes, each) for axes, each in pairs if each.scale == scale]
            self._draw(figure, scale, mine, names, "right" if len(scales) == 1 else "bottom")
        for axes in panels[:, 0]:
            axes.set_ylabel(tell(self.ylabel, names))
        for axes in panels[-1]:
            axes.set_xlabel(tell(self.xlabel, names))
        if self.heading:
            heading = tell(self.heading, names)
            figure.suptitle(heading, x=0.01, ha="left", fontsize="medium")

    def _shown(self, r):
        """Rows of those maps that have something to draw."""
        return [[each for each in row if each.is_in(r)] for row in self.grid]

    def _values(self, each, names):
        return np.asarray(names.value(each.name))

    def _draw(self, figure, scale, pairs, names, side):
        """The maps of one scale, and its colour bar."""
        arrays = [self._values(each, names) for _, each in pairs]
        limits = scale.limits(arrays, names)
        n_panels = len(self._shown(names.result)[0])
        are_written = fit(arrays, (figure.bbox.width / figure.dpi - BAR) / n_panels, limits["vmax"])
        for (axes, each), values in zip(pairs, arrays):
            image = axes.imshow(values, **limits, aspect="auto")
            if are_written:
                write(axes, values, limits["vmax"])
            _tick(axes.set_xticks, values.shape[1], self.columns, names, rotation=90)
            if self.has_tokens:
                draw.of_tokens(axes.xaxis)
            draw.border(axes, self.second and self.second(names.result), "x")
            _tick(axes.set_yticks, values.shape[0], self.rows, names)
            axes.tick_params(length=0)
            axes.set_title(tell(each.title, names))
        bar = {"location": side, "label": scale.label}
        bar |= {"aspect": ASPECT * len(pairs) / len(self.grid)} if side == "bottom" else {}
        figure.colorbar(image, ax=[axes for axes, _ in pairs], **bar)


def maps(*row, below=(), **options):
    """A Maps of one row, or of two."""
    grid = (row, tuple(below)) if below else (row,)
    return Maps(grid=grid, **options)


def fit(arrays, width, most):
    """Whether numbers are written into maps so wide (inches)."""
    rows, columns = arrays[0].shape
    if rows * columns > WRITTEN or most < LOW:
        return False
    has_minus = any("−" in number(x, most) for values in arrays for x in values.flat)
    return width / columns >= DIGITS[has_minus] * SIZE * POINT


def number(x, most):
    """A number of a map as text, with a minus that is one, and none before 0."""
    text = f"{x:.{1 if most >= HIGH else 2}f}"
    return text.lstrip("-") if float(text) == 0 else text.replace("-", "−")


def write(axes, values, most):
    """Write the numbers into a map, white on what is dark."""
    style = {"ha": "center", "va": "center", "fontsize": SIZE}
    for (row, column), x in np.ndenumerate(values):
        color = "white" if abs(x) > 0.6 * most else "black"
        axes.text(column, row, number(x, most), color=color, **style)


def _tick(set_ticks, n, labels, names, **style):
    """Ticks for n rows or columns: their labels, or a few of their numbers."""
    if labels:
        set_ticks(range(n), names.value(labels), **style)
    else:
        set_ticks(range(0, n, -(-n // TICKS)))
