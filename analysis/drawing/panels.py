"""The panels that figures are made of, and how they are laid side by side and below each other.

    draw=row(
        curves("correlations", null="correlations_null", names="layer_names"),
        lines(Line("mean", "held out"), Line("mean_null", "null: shuffled", "--", draw.GREY)),
        widths=(1.25, 1),
    )

A panel is a function of axes and of the results. A row of panels, a part that an experiment draws
by itself on a figure, and a column of these are functions of the results that give a figure. Titles
are templates (sentences.py).
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from ..maths import nulls
from . import draw
from .sentences import Names, tell

WIDTH = 12.5  # inches of a figure
TICKS = 16  # layers named below an axis, at most
LETTERS = 90  # of names below an axis, if each were as long as the longest: more are turned
TEXTS = "title", "xlabel", "ylabel"
CURVES = 6  # of an order, such as layers, that have a colour in one panel, at most


@dataclass(frozen=True)
class Part:
    """What an experiment draws by itself: paint(figure, r); height: inches, or a function of r."""

    paint: Callable
    height: object = 4.5

    def __call__(self, r):
        """A figure of its own."""
        picture = draw.figure(WIDTH, self.inches(r))
        self.into(picture, r)
        return picture

    def inches(self, r):
        """Its height."""
        return self.height(r) if callable(self.height) else self.height

    def is_in(self, r):
        """Whether there is something to draw; if not, a column leaves it out."""
        return True

    def into(self, figure, r):
        """Draw on a figure, or on a part of one."""
        self.paint(figure, r)

    def apart(self, r):
        """Figures of its own: itself."""
        return [self(r)]


@dataclass(frozen=True)
class Row(Part):
    """Panels side by side."""

    paint: Callable | None = None
    panels: tuple = ()
    subplots: dict = field(default_factory=dict)

    def into(self, figure, r):
        grid = figure.subplots(1, len(self.panels), squeeze=False, **self.subplots)[0]
        for panel, axes in zip(self.panels, grid):
            panel(axes, r)


@dataclass(frozen=True)
class Column(Part):
    """Parts below each other, as high as each is."""

    paint: Callable | None = None
    height: object = None
    parts: tuple = ()

    def inches(self, r):
        return sum(part.inches(r) for part in self._shown(r))

    def into(self, figure, r):
        shown = self._shown(r)
        heights = [part.inches(r) for part in shown]
        pieces = figure.subfigures(len(shown), 1, squeeze=False, height_ratios=heights)[:, 0]
        for part, piece in zip(shown, pieces):
            part.into(piece, r)

    def _shown(self, r):
        return [part for part in self.parts if part.is_in(r)]


@dataclass(frozen=True)
class Figures(Column):
    """Parts that are figures of their own, the first of which answers; as one, a Column.

    In place of a part may stand a function of the results that gives a list of them.
    """

    def apart(self, r):
        return [part(r) for part in self._shown(r)]

    def _shown(self, r):
        given = [[part] if isinstance(part, Part) else part(r) for part in self.parts]
        return [part for parts in given for part in parts if part.is_in(r)]


@dataclass(frozen=True)
class Beside(Part):
    """Parts side by side, as wide as the ratios say; a ratio may be a function of the results."""

    paint: Callable | None = None
    parts: tuple = ()
    widths: tuple = ()

    def into(self, figure, r):
        widths = [Names(r).value(width) for width in self.widths]
        pieces = figure.subfigures(1, len(self.parts), width_ratios=widths)
        for part, piece in zip(self.parts, pieces):
            part.into(piece, r)


def row(*panels, widths=None, height=4.5, **subplots):
    """A Row; widths are ratios, further options those of matplotlib's `subplots`."""
    subplots |= {} if widths is None else {"width_ratios": widths}
    return Row(panels=panels, height=height, subplots=subplots)


def column(*parts):
    """A Column."""
    return Column(parts=parts)


def figures(*parts):
    """A Figures."""
    return Figures(parts=parts)


def each(paint, height, count):
    """A function of the results for `figures`: a Part for each i, which paints (figure, r, i).

    height: inches of each. count: the result with an entry for each, or a function of the results.
    """

    def parts(r):
        n = count(r) if callable(count) else len(r[count])
        return [Part(partial(paint, i=i), height) for i in range(n)]

    return parts


def beside(*parts, widths, height):
    """A Beside."""
    return Beside(parts=parts, widths=widths, height=height)


@dataclass(frozen=True)
class Line:
    """A result [n] as a line: how it is called, matplotlib's format, its colour and width.

    A result that is one number is a level line, one of [n K] is K lines. band: the result [n 2]
    between whose columns is shaded. In place of a result may stand one row of it, `x[0]`, or a
    function of the results.
    """

    name: object
    label: str | None
    style: str = "o-"
    color: str = draw.BLUE
    width: float | None = None
    band: object = None

    def is_in(self, r):
        """Whether there is something to draw."""
        return callable(self.name) or re.match(r"\w+", self.name)[0] in r


def lines(*by_name, x=None, first=0, xticks=None, legend=draw.ABOVE, **labels):
    """Panel: results as lines over the result `x`, or over their entries, counted from `first`.

    xticks: the result that names the entries, or a function of axes and number of entries, such as
    `stream_layers`. labels: of the axes, as matplotlib's `set` takes them; texts are templates.
    Lines that are not in a result are left out.
    """

    def panel(axes, r):
        names = Names(r)
        shown = [line for line in by_name if line.is_in(r)]
        n = max(len(np.atleast_1d(names.value(line.name))) for line in shown)
        places = first + np.arange(n) if x is None else r[x]
        for line in shown:
            _draw_line(axes, line, places, names)
        axes.locator_params(axis="x", integer=True)
        if callable(xticks):
            xticks(axes, n)
        elif xticks is not None:
            axes.set_xticks(places, r[xticks])
        _label(axes, r, labels, legend)

    return panel


def _draw_line(axes, line, places, names):
    """A line, or several, over their places, or a level line; its band."""
    values = np.asarray(names.value(line.name))
    style = {"color": line.color, "label": line.label, "linewidth": line.width}
    if line.band is not None:
        low, high = names.value(line.band).T
        axes.fill_between(places, low, high, color=line.color, alpha=0.25, linewidth=0)
    if values.ndim:
        axes.plot(places, values, line.style, markersize=4, **style)
    else:
        axes.axhline(values, linestyle=line.style, **style)


@dataclass(frozen=True)
class Bar:
    """A result [n] as bars: how it is called, its colour, or the function of r that gives them.

    interval: the result [n 2] between whose columns a whisker stands. null: the result [n] that a
    dash marks. In place of a result may stand a function of the results.
    """

    name: object
    label: str | None
    color: object = draw.BLUE
    interval: object = None
    null: object = None


def bars(*by_name, levels=(), ticks=None, null=None, legend=draw.ABOVE, **labels):
    """Panel: results as bars side by side, their entries named by the result `ticks`.

    levels: of these Lines, each one number. null: what the dashes are. labels: as for `lines`.
    """

    def panel(axes, r):
        names = Names(r)
        width = 0.8 / len(by_name)
        for i, bar in enumerate(by_name):
            n = len(names.value(bar.name))
            places = np.arange(n) + width * (i - (len(by_name) - 1) / 2)
            _draw_bars(axes, bar, places, width, names)
        axes.axhline(0, color="black", linewidth=0.6)
        for level in levels:
            _draw_line(axes, level, None, names)
        if null is not None:
            axes.plot([], [], "_", color="black", markersize=11, label=null)
        axes.locator_params(axis="x", integer=True)
        if ticks is not None:
            words = [str(word) for word in names.value(ticks)]
            axes.set_xticks(range(n), words, rotation=90 * _are_crowded(words))
            if ticks == "pieces":
                draw.of_tokens(axes.xaxis)
        _label(axes, r, labels, legend)

    return panel


def _are_crowded(words):
    """Whether names of several lines are too many, or too long, to stand side by side."""
    longest = max(len(line) for word in words for line in word.split("\n"))
    return len(words) > TICKS or len(words) * longest > LETTERS


def _draw_bars(axes, bar, places, width, names):
    """One set of bars, with its whiskers and its null."""
    values = names.value(bar.name)
    color = names.value(bar.color) if callable(bar.color) else bar.color
    style = {"color": color, "label": bar.label}
    if bar.interval is not None:
        style |= {"yerr": whiskers(values, *names.value(bar.interval).T), "capsize": 2}
    axes.bar(places, values, 0.94 * width, **style)
    if bar.null is not None:
        axes.plot(places, names.value(bar.null), "_", color="black", markersize=11)


def curves(name, *, names, null=None, ticks=None, legend=draw.BESIDE, **labels):
    """Panel: a line for each row of the result [n K], light to dark, called by the result `names`.

    Of more than CURVES rows the others are grey. null: the result [n K], or [n shuffles K] of which
    99% are lower, dashed in the same colours. ticks: the result that names the K entries.
    """

    def panel(axes, r):
        n, K = r[name].shape
        places = np.arange(1, 1 + K)
        others = np.delete(r[name], few(n), axis=0)
        for i, line in enumerate(others):
            label = "_" if i else "the others"
            axes.plot(places, line, color=draw.GREY, linewidth=0.6, label=label)
        for i in few(n):
            color, label = draw.shade(i, n), str(r[names][i])
            axes.plot(places, r[name][i], "o-", color=color, markersize=3, label=label)
            if null is not None:
                axes.plot(places, _reached(r[null][i]), "--", color=color, linewidth=0.8)
        axes.axhline(0, color="black", linewidth=0.7)
        if ticks is not None:
            axes.set_xticks(places, r[ticks], rotation=30, ha="right")
        _label(axes, r, labels, legend)

    return panel


def few(n, most=CURVES):
    """Numbers of at most so many of n in an order, the first and the last among them.

    >>> few(13).tolist()
    [0, 2, 5, 7, 10, 12]
    """
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(int))


def _reached(null):
    """A null [K], or what 99% of it [shuffles K] stay below."""
    return null if null.ndim == 1 else np.quantile(null, nulls.CHANCE, axis=0)


def head_map(name, title, *, darkest=1.0, times=1):
    """Panel: a number for every layer and head of the result [L H], darker for more.

    darkest: the value that is dark, or the result that holds it. times: what numbers are written
    and drawn in, 100 for %. The result `layers` names the layers.
    """

    def panel(axes, r):
        values = times * r[name]
        most = times * (r[darkest] if isinstance(darkest, str) else darkest)
        axes.imshow(values, cmap="Blues", vmin=0, vmax=1.4 * most, aspect="auto")
        for (layer, head), value in np.ndenumerate(values):
            text = f"{value:.0f}" if value >= 10 else f"{value:.1f}"
            axes.text(head, layer, text, ha="center", va="center", fontsize=10)
        axes.set_xticks(range(values.shape[1]))
        axes.set_yticks(range(len(values)), r["layers"])
        axes.set(xlabel="head (the paper counts from 1)", ylabel="layer")
        axes.tick_params(length=0)
        axes.set_title(tell(title, Names(r)))

    return panel


def layer_ticks(axes, n):
    """Ticks for n layers, and what they are."""
    axes.set_xticks(range(0, n, -(-n // TICKS)))
    axes.set_xlabel("layer")


def token_ticks(set_ticks, pieces, most=None, **style):
    """Tokens along one side of a map, at most so many; set_ticks: of the axes, along x or y."""
    labels = [draw.label(piece) for piece in pieces]
    step = 1 if most is None else -(-len(labels) // most)
    set_ticks(range(0, len(labels), step), labels[::step], **style)
    axis = "xaxis" if set_ticks.__name__ == "set_xticks" else "yaxis"
    draw.of_tokens(getattr(set_ticks.__self__, axis))


def stream_layers(axes, n):
    """Ticks for the n places of the stream: before each layer, and `out`."""
    layers = range(0, n - 1, -(-n // TICKS))
    axes.set_xticks([*layers, n - 1], [*map(str, layers), "out"])


def _label(axes, r, labels, legend):
    """Labels, limits and title of axes, whose texts are templates, and a legend if it has any."""
    texts = {name: tell(labels[name], Names(r)) for name in TEXTS if name in labels}
    axes.set(**labels | texts)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(**legend)


def whiskers(values, low, high):
    """How far intervals reach below and above their values [n], as matplotlib's `yerr`: [2 n]."""
    return np.maximum([values - low, high - values], 0)


def line_sample(label, **style):
    """What a legend shows for a line."""
    from matplotlib.lines import Line2D

    return Line2D([], [], label=label, **style)


def bar_sample(label, **style):
    """What a legend shows for bars."""
    from matplotlib.patches import Patch

    return Patch(label=label, linewidth=0, **style)
