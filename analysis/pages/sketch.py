"""Small pictures beside the report's first sentences, part of the page, whose colours they take.

How well a position is read, by layer: R² of the linear probe of `minitx run probe` with trained
weights, random ones, shuffled positions. The loss without positions (`remove-positions`). And what
the stream has of positions, by three measures layer by layer: where these fall, positions were
written over; where they are high and no head reads them, they arrived for nothing.
"""

from html import escape

import numpy as np

from ..contract import nothing
from ..drawing.draw import printable
from ..machine.language import filled, translated
from ..running import single
from . import parts

LINES = {  # class: (result, its row)
    "random": ("r2", "random weights, on"),
    "shuffled": ("r2_shuffled", "positions on"),
    "trained": ("r2", "positions on"),
}
NAMES = {
    "random": "random weights",
    "shuffled": "positions shuffled",
    "trained": "this model",
    "loss": "with its table",
    "loss_zero": "table at zero",
    "loss_null": "guess by frequency",
}
LEFT, TOP, WIDE, HIGH = 26, 8, 156, 118  # of the axes, in units of the picture
SIZE = 340, 160
LETTER = 13  # units between two names, at least
MOST = 8  # numbers of layers below the axis
TITLE = "How well a linear probe reads a token's position (R²), by layer"
BARS = {"loss": "trained", "loss_zero": "zero", "loss_null": "random"}  # result: class
BAR, BETWEEN = 13, 20  # units: how high a bar is, and how far it is to the next
START, LONGEST = 126, 136  # units: where bars begin, and what the longest has
IN_STREAM = "Positions in the stream, layer by layer (in parentheses random weights, or tables)"
STREAM = {  # experiment: what it measures in the stream
    "probe": "probe (R²)",
    "cca": "CCA",
    "residual": "share",
}
OF_HIDDEN = (
    "Pseudo-perplexity of hidden tokens (log scale from 1, a perfect guess; line: 95% interval)"
)
OF_NEXT = "Perplexity of the next token (log scale from 1, a perfect guess; line: 95% interval)"


def figure(runs):
    """The pictures of a report's runs as HTML; "" where neither experiment gave its numbers."""
    outcomes = {experiment.name: outcome for experiment, outcome, _ in runs}
    curves = rows(_result(outcomes, "probe"))
    shown = drawn(curves) if len(curves) == len(LINES) else ""
    r = _result(outcomes, "remove-positions")
    shown += compared(r) if "loss" in r else ""
    shown += by_layer(outcomes)
    return f'<div class="sketches">{shown}</div>' if shown else ""


def _result(outcomes, name):
    """The results of an experiment; none where it failed or found nothing to measure."""
    outcome = outcomes.get(name)
    if outcome is None or isinstance(outcome, single.Failure) or nothing.KIND in outcome.result:
        return {}
    return outcome.result


def by_layer(outcomes):
    """A table that opens: the measures of STREAM and their nulls, of what each layer reads."""
    given = {name: _in_stream(name, _result(outcomes, name)) for name in STREAM}
    n = max((len(own) for own, _ in given.values()), default=0)
    measured = {name: pair for name, pair in given.items() if n and len(pair[0]) == n}
    if len(measured) < 2:
        return ""
    layers = [translated("input"), *(filled("layer {n}", n=layer) for layer in range(n - 1))]
    columns = [map("{:z.2f} ({:z.2f})".format, *pair) for pair in measured.values()]
    titles = "", *(STREAM[name] for name in measured)
    table = parts.table(titles, zip(map(escape, layers), *columns))
    return parts.fold(translated(IN_STREAM), table)


def _in_stream(name, r):
    """A measure of STREAM before layer 0 and after each layer, and its null; empty if missing."""
    if name == "probe" and {"trained", "random"} <= {*rows(r)}:
        return rows(r)["trained"], rows(r)["random"]
    if name == "cca" and "mean_random" in r:
        return r["mean"], r["mean_random"]
    if name == "residual" and "position" in np.asarray(r.get("parts", ())):
        index = np.asarray(r["parts"]).tolist().index("position")
        of_parts = r["shares"], r["shares_null"].mean(axis=1)
        return [x[r["read"], index] for x in of_parts]
    return (), ()


def drawn(curves):
    """The picture of {kind: R² before layer 0 and after each layer}."""
    shown = "".join(_curve(kind, y) for kind, y in curves.items())
    names = dict(zip(curves, apart([_y(y[-1]) for y in curves.values()])))
    for kind, y in curves.items():
        text = f"{translated(NAMES[kind])} {y[-1]:z.2f}"
        shown += _text(LEFT + WIDE + 8, names[kind] + 4, escape(text), f"name {kind}")
    said = "; ".join(_said(kind, y) for kind, y in curves.items())
    shown = _axes(len(curves["trained"])) + shown
    return _framed(shown, SIZE[1], said, translated(TITLE), "probe")


def compared(r):
    """The picture of the losses with positions, without, and by frequencies, as perplexities.

    Bars are as long as the losses in nats; a line is the 95% interval of the one without.
    """
    low, high = np.asarray(r["loss_interval"])[1]
    scale = LONGEST / max(high, *(r[name] for name in BARS))
    ends = {"loss_zero": scale * high}  # where the value of a bar stands
    shown = "".join(_bar(n, name, scale * r[name]) for n, name in enumerate(BARS))
    y = TOP + [*BARS].index("loss_zero") * BETWEEN + BAR / 2
    xs = f'x1="{START + scale * low:.1f}" x2="{START + scale * high:.1f}"'
    shown += f'<line class="range" {xs} y1="{y}" y2="{y}"/>'
    values = {name: f"{np.exp(r[name]):.3g}" for name in BARS}
    values["loss_zero"] += f" ({np.exp(r['loss_zero'] - r['loss']):.0f}×)"
    for n, (name, kind) in enumerate(BARS.items()):
        x = START + ends.get(name, scale * r[name]) + 6
        shown += _text(x, TOP + n * BETWEEN + BAR - 2, values[name], f"name {kind}")
    said = "; ".join(f"{translated(NAMES[name])}: {value}" for name, value in values.items())
    is_pseudo = str(r["predicts"]).startswith("pseudo")
    caption = translated(OF_HIDDEN if is_pseudo else OF_NEXT)
    return _framed(shown, TOP + len(BARS) * BETWEEN, said, caption, "remove-positions")


def _bar(n, name, wide):
    y = TOP + n * BETWEEN
    box = f'x="{START}" y="{y}" width="{wide:.1f}" height="{BAR}"'
    named = _text(START - 7, y + BAR - 2, escape(translated(NAMES[name])), "end")
    return f'{named}<rect class="{BARS[name]}" {box}/>'


def _framed(shown, height, said, caption, experiment):
    """A picture as HTML: what it shows, the same in words, and a caption that links to it."""
    box = f'viewBox="0 0 {SIZE[0]} {height}" role="img" aria-label="{escape(printable(said))}"'
    link = f'<a href="#{experiment}">{escape(caption)}</a>'
    return (
        f'<figure class="sketch"><svg {box}>{shown}</svg><figcaption>{link}</figcaption></figure>'
    )


def rows(result):
    """{kind: R² before layer 0 and after each layer} of the lines that a result has."""
    conditions = np.asarray(result.get("conditions", ())).tolist()
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
    return f"{translated(NAMES[kind])}: {', '.join(f'{value:z.2f}' for value in y)}"


def _curve(kind, y):
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
