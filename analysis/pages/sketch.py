"""A small picture beside the report's first sentences: how well a position is read, by layer.

R² of the linear probe of `minitx run probe`: trained weights, random ones, shuffled positions.
It is part of the page, so that it takes its colours.
"""

from html import escape

import numpy as np

from ..contract import nothing
from ..drawing.draw import printable
from ..machine.language import filled, translated
from ..running import single

LINES = {  # class: (result, its row)
    "random": ("r2", "random weights, on"),
    "shuffled": ("r2_shuffled", "positions on"),
    "trained": ("r2", "positions on"),
}
NAMES = {"random": "random weights", "shuffled": "chance", "trained": "this model"}
LEFT, TOP, WIDE, HIGH = 26, 8, 172, 118  # of the axes, in units of the picture
SIZE = 340, 160
LETTER = 13  # units between two names, at least
MOST = 8  # numbers of layers below the axis
TITLE = "How well a linear probe reads a token's position (R²), by layer"


def figure(runs):
    """The picture of a report's runs as HTML; "" where the probe gave no numbers."""
    given = [outcome for experiment, outcome, _ in runs if experiment.name == "probe"]
    if not given or isinstance(given[0], single.Failure) or nothing.KIND in given[0].result:
        return ""
    curves = rows(given[0].result)
    return drawn(curves) if len(curves) == len(LINES) else ""


def drawn(curves):
    """The picture of {kind: R² before layer 0 and after each layer}."""
    shown = "".join(_curve(kind, y) for kind, y in curves.items())
    names = dict(zip(curves, apart([_y(y[-1]) for y in curves.values()])))
    for kind, y in curves.items():
        text = f"{translated(NAMES[kind])} {y[-1]:.2f}".replace("-0.00", "0.00")
        shown += _text(LEFT + WIDE + 8, names[kind] + 4, escape(text), f"name {kind}")
    said = "; ".join(_said(kind, y) for kind, y in curves.items())
    box = f'viewBox="0 0 {SIZE[0]} {SIZE[1]}" role="img" aria-label="{escape(printable(said))}"'
    svg = f"<svg {box}>{_axes(len(curves['trained']))}{shown}</svg>"
    caption = f'<a href="#probe">{escape(translated(TITLE))}</a>'
    return f'<figure class="sketch">{svg}<figcaption>{caption}</figcaption></figure>'


def rows(result):
    """{kind: R² before layer 0 and after each layer} of the lines that a result has."""
    conditions = np.asarray(result["conditions"]).tolist()
    curves = {}
    for kind, (name, condition) in LINES.items():
        if name in result and condition in conditions:
            curves[kind] = np.asarray(result[name])[conditions.index(condition)]
    return curves


def apart(heights):
    """Heights moved down as little as keeps names readable, in the order in which they came.

    >>> apart([20, 24, 90])
    [20, 33, 90]
    """
    order = np.argsort(heights, kind="stable")
    moved, last = list(heights), -np.inf
    for n in order:
        last = moved[n] = max(heights[n], last + LETTER)
    return moved


def _said(kind, y):
    """A line in words, for those who do not see it."""
    return f"{translated(NAMES[kind])}: {', '.join(f'{value:.2f}' for value in y)}"


def _curve(kind, y):
    """A line over the layers."""
    points = " ".join(f"{x:.1f},{_y(value):.1f}" for x, value in zip(_xs(len(y)), y))
    return f'<polyline class="{kind}" points="{points}"/>'


def _axes(n):
    """Lines at R² 0, 0.5 and 1, and what the probe reads below them: the input, or a layer."""
    html = ""
    for value in (0, 0.5, 1):
        y = _y(value)
        html += f'<line x1="{LEFT}" x2="{LEFT + WIDE}" y1="{y:.1f}" y2="{y:.1f}"/>'
        html += _text(LEFT - 5, y + 4, f"{value:g}", "end")
    step = -(-n // MOST)
    for layer in range(0, n, step):
        name = filled("layer {n}", n=layer - 1) if layer == n - 1 else f"{layer - 1}"
        name = name if layer else translated("input")
        html += _text(_xs(n)[layer], TOP + HIGH + 18, escape(name), "middle")
    return html


def _text(x, y, text, kind):
    """A text at a place; its classes say where it begins."""
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}">{text}</text>'


def _xs(n):
    """Where n readings stand."""
    return LEFT + WIDE * (np.arange(n) + 0.5) / n


def _y(value):
    """How far down a value stands; below 0 is no better than 0."""
    return float(TOP + HIGH * (1 - np.clip(value, 0, 1)))
