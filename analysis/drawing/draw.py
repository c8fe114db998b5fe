"""What the figures share: style, colours, labels, and files that are the same bytes every time.

matplotlib is imported where something is drawn, never when this module is.
"""

import contextlib
import gc
import io
import re
import textwrap
import threading
import unicodedata
from functools import partial
from html import escape

from ..machine import language
from . import fonts

# Okabe and Ito's palette: distinct with every common kind of colour vision; orange and sky darker,
# so that a line has a contrast of 3 with its ground, in a dark page too
BLUE = "#0072B2"
ORANGE = "#C98300"
GREEN = "#009E73"
SKY = "#439ACF"
VERMILION = "#D55E00"
PURPLE = "#CC79A7"
GREY = "#7F7F7F"
MANY = "plasma_r", 0.36  # a scale, and where its colours begin to have that contrast

STYLE = {
    "font.family": ["DejaVu Sans", "sans-serif"],
    "font.size": 10.5,  # 12.5 inches are shown on 1,000 pixels, so 10 is the least
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.titlepad": 6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.labelcolor": "#222222",
    "lines.linewidth": 1.5,
    "legend.frameon": False,
    "legend.fontsize": 10,
    "xtick.labelsize": 10,
    "ytick.labelsize": 10,
    "figure.facecolor": "white",
    "svg.fonttype": "none",  # text stays text: small files, also in scripts that no font here has
    "svg.hashsalt": "minitx",
    "image.interpolation": "nearest",
}

_drawing = threading.RLock()
SVG_DPI = 72  # what matplotlib draws SVG in
PIXELS = 110  # per inch of what is drawn as pixels in it
PANEL = 0.15  # of a figure, at least, is the width and height of a panel that is shown alone
PHRASE = re.compile("(?<=[ぁ-ん、。 ])(?=[^ぁ-ん、。])")  # where a line of Japanese may end
SIZE = re.compile(r'width="[\d.]+pt" height="[\d.]+pt" viewBox="0 0 ([\d.]+) ([\d.]+)"')
CALL = re.compile(r"(\w+)\((\w+=[\w=., ]*)\)")
GIVEN = {"half_life": "half-life", "low": "least", "n": "width"}  # parameters, for readers
NAMED = re.compile(r'\bid="|href="#|url\(#')
TOLD = 6  # panels of a figure, at most, that its description names
STRIP = 24  # points: height of the strip with a figure's title
EXACT = re.compile(r' (?:d|x|y)="[^"]*"')  # where a coordinate has more digits than an eye sees
FURTHER = re.compile(r"(?<=\.\d\d)\d+|\n")  # than a hundredth of a point
GRID = 7  # digits of an axes' place, in widths of the figure

MINUS = re.compile(r"(?:(?<![A-Za-z0-9.-])|(?<=\de))-(?=\d)")  # not in L0-L2, nor in 2023-01
OF_RIGHT = "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]"  # letters of Hebrew, Arabic and others
RIGHT_TO_LEFT = re.compile(f"{OF_RIGHT}+(?:[ ␣]+{OF_RIGHT}+)*")

# all but tab, line break and return (XML 1.0, 2.2); C1 controls, which do nothing good either, and
# those that turn the direction of writing, which show a name as another one
TURNS = "\\u202a-\\u202e\\u2066-\\u2069"
NO_XML = re.compile(
    f"[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f{TURNS}\\ud800-\\udfff\\ufffe\\uffff]"
)


def shade(i, n):
    """The colour of number i of n in an order, such as layers: from orange to dark blue."""
    from matplotlib import colormaps

    name, least = MANY
    return colormaps[name](least + (1 - least) * i / max(n - 1, 1))


@contextlib.contextmanager
def style():
    """Context in which figures are made and saved: one at a time, since matplotlib's style is."""
    from matplotlib import rc_context

    with _drawing, rc_context(STYLE), _garbage_kept():
        yield


@contextlib.contextmanager
def _garbage_kept():
    """Context without searches for garbage: a figure is many objects, and nearly all are in use.

    Such searches are a tenth of the time that the figures of a report take.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def figure(width, height):
    """An empty figure, size in inches, that lays itself out."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def svg(picture):
    """A figure as SVG text, without date or program name. It keeps the layout that it gets here."""
    buffer = io.StringIO()
    translate(picture)
    fonts.cover(picture)
    with fonts.without_warnings():  # the viewer's fonts will have it
        lay_out(picture)
        about = {"Date": None, "Creator": None, "Title": printable(described(picture))}
        picture.savefig(buffer, format="svg", dpi=PIXELS, metadata=about)
    return settled(printable(buffer.getvalue()))


def described(picture):
    """What the panels of a figure are called, and what their axes are, for those who do not see it.

    >>> picture = figure(4, 3)
    >>> picture.subplots().set(title="weights", xlabel="offset", ylabel="mean")[0].get_text()
    'weights'
    >>> _ = picture.suptitle("by chance")
    >>> described(picture)
    'by chance: weights: offset, mean'
    """
    panels = {}  # each once, in their order
    for axes in picture.axes:
        title = "".join(axes.get_title(loc=loc) for loc in ("left", "center", "right"))
        names = filter(None, (axes.get_xlabel(), axes.get_ylabel()))
        said = ": ".join(filter(None, (title, ", ".join(names))))
        panels[" ".join(said.replace("\\$", "$").split())] = None
    said = "; ".join([*filter(None, panels)][:TOLD])
    return ": ".join(filter(None, (picture.get_suptitle(), said)))


def lay_out(picture):
    """Place the axes of a figure for good, on a grid: the last bits of a layout vary.

    matplotlib would lay it out by itself, but draw it once more for that.
    """
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    engine = picture.get_layout_engine()
    if engine is None:
        return
    canvas, dpi = picture.canvas, picture.dpi
    FigureCanvasSVG(picture)  # which measures texts as an SVG has them
    picture.dpi = SVG_DPI
    engine.execute(picture)
    picture.set_layout_engine(None)
    _settle_parts(picture)
    for axes in picture.axes:
        place = axes.get_position(original=True).bounds
        axes.set_position([round(x, GRID) for x in place])
    picture.dpi = dpi
    picture.set_canvas(canvas)


def _settle_parts(picture):
    for part in picture.subfigs:
        edges = part.bbox_relative
        edges.set_points(edges.get_points().round(GRID))
        _settle_parts(part)


def thumbnail(picture, width=200):
    """The first panel of a drawn figure, or many small ones, as a PNG of at most `width` pixels.

    Words and empty rims are left out. The figure loses them for good, so this is called last.
    """
    from matplotlib.axis import Axis
    from matplotlib.image import imread, imsave
    from matplotlib.legend import Legend
    from matplotlib.text import Text

    for axis in picture.findobj(Axis):
        axis.set_visible(False)
    for legend in picture.findobj(Legend):
        legend.set_visible(False)
    for words in picture.findobj(Text):
        words.set_text("")  # the arrow that points from one stays
    part = _first_panel_alone(picture)
    dots = width / max(part * picture.get_size_inches())
    drawn = imread(io.BytesIO(_png(picture, dpi=dots)))
    is_drawn = (drawn != drawn[0, 0]).any(axis=-1)
    rows, columns = (_around(is_drawn.any(axis=axis).nonzero()[0]) for axis in (1, 0))
    buffer = io.BytesIO()
    imsave(buffer, drawn[rows, columns], format="png", metadata={"Software": None})
    return buffer.getvalue()


def _first_panel_alone(picture):
    """Hide all but the first panel, top left, and what shares its place; its share of the size.

    Panels that are many and small are one picture, and stay.
    """
    in_figure = picture.transFigure.inverted()  # not in the part of it that an axes belongs to
    boxes = {axes: axes.bbox.transformed(in_figure) for axes in picture.axes}
    panels = {axes: box for axes, box in boxes.items() if min(box.width, box.height) > PANEL}
    if not panels:
        return 1
    first = max(panels.values(), key=lambda box: (round(box.y1, 1), -box.x0))
    for axes, box in boxes.items():
        axes.set_visible(first.contains(*(box.min + box.max) / 2))
    return first.size


def _around(numbers):
    """A slice over all of these numbers and a rim."""
    if not len(numbers):
        return slice(None)
    return slice(max(0, numbers[0] - 1), numbers[-1] + 2)


def settled(text):
    """SVG without the last bits of what matplotlib computes, which vary.

    Names that it hashes from them are numbered instead, coordinates end at a hundredth of a point,
    and -0 inside a tag becomes 0.
    """
    names = {}

    def numbered(match):
        return names.setdefault(match[0], f"{match[1]}{len(names)}")

    def without_minus_zero(tag):
        return re.sub(r"(?<![\w.])-0(?:\.00?)?(?![\w.])", "0", tag[0])

    text = re.sub(r'(?<=["#])([a-zA-Z]\w*?)[0-9a-f]{10}\b', numbered, text)
    text = EXACT.sub(lambda match: FURTHER.sub("", match[0]), text)
    return re.sub(r"<[^>]*>", without_minus_zero, text)


def below(pictures):
    """One SVG of several, below each other; names that they refer to stay apart."""
    sizes = [tuple(map(float, SIZE.search(picture).groups())) for picture in pictures]
    width, height = max(w for w, _ in sizes), sum(h for _, h in sizes)
    size = f'width="{width:g}pt" height="{height:g}pt" viewBox="0 0 {width:g} {height:g}"'
    start, inside, y = pictures[0].partition("<svg ")[0], "", 0
    for i, (picture, (w, h)) in enumerate(zip(pictures, sizes)):
        own = NAMED.sub(rf"\g<0>f{i}-", picture[picture.index("<svg ") :])
        inside += SIZE.sub(f'y="{y:g}" width="{w:g}" height="{h:g}" viewBox="0 0 {w:g} {h:g}"', own)
        y += h
    links = 'xmlns:xlink="http://www.w3.org/1999/xlink" xmlns="http://www.w3.org/2000/svg"'
    return f'{start}<svg {links} {size} version="1.1">\n<metadata></metadata>\n{inside}</svg>\n'


def exported(picture, title, format):
    """What a file of a figure with its title holds, an SVG or a PNG."""
    return png(picture, title) if format == "png" else titled(svg(picture), title)


def titled(picture, title):
    """The SVG of a figure with a title on a strip of its own."""
    width, height = map(float, SIZE.search(picture).groups())
    taller = f'width="{width:g}pt" height="{height + STRIP:g}pt" '
    taller += f'viewBox="0 {-STRIP} {width:g} {height + STRIP:g}"'
    font = "font: bold 10.5px 'DejaVu Sans', sans-serif"
    strip = (
        f'<rect y="{-STRIP}" width="{width:g}" height="{STRIP + 1}" fill="white"/>'
        f'<text x="8" y="-7" style="{font}">{escape(printable(title))}</text>'
    )
    start, metadata, content = SIZE.sub(taller, picture, count=1).partition("<metadata>")
    return start + strip + metadata + content


def nothing(axes, reason):
    """Why a chart has nothing to show, in its place."""
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    style = {"ha": "center", "va": "center", "color": GREY}
    axes.text(0.5, 0.5, reason, transform=axes.transAxes, **style)


def plain_log(axis):
    """Name 1, 2 and 5 times each power of ten on a logarithmic axis, as numbers are written."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_formatter(NullFormatter())


def translate(picture):
    """Put the texts of a figure into the current language, with `signs`; tokens of a text stay."""
    from matplotlib.axis import Axis
    from matplotlib.text import Text

    for axis in picture.findobj(Axis):
        if not getattr(axis, "has_tokens", False):
            _translate_ticks(axis)
    for words in picture.findobj(Text):
        if not getattr(words, "has_tokens", False):
            words.set_text(_said(words.get_text()))


def _said(text):
    """A text in the current language; formulas have signs of their own."""
    text = language.label(text)
    return text if "\\math" in text else signs(text)


def signs(text):
    """Text with a minus before numbers below 0.

    >>> signs("at -1, L0-L2")
    'at −1, L0-L2'
    """
    return MINUS.sub("−", text)


def of_tokens(shown):
    """A text or an axis that shows tokens of a text, which no language translates."""
    shown.has_tokens = True
    return shown


def wrapped(text, width):
    """A label in the current language, in lines of so many letters; those of Japanese are wide."""
    said = language.label(text)
    if said == text:
        return textwrap.fill(text, width, break_long_words=False)
    lines = [""]
    for piece in PHRASE.split(said):
        if lines[-1] and columns(lines[-1] + piece) > width:
            lines.append("")
        lines[-1] += piece
    return "\n".join(lines)


def columns(text):
    """How many Latin letters a text is as wide as."""
    return sum(1 + (unicodedata.east_asian_width(letter) in "WF") for letter in text)


def _translate_ticks(axis):
    """Put the names at an axis's ticks into the current language."""
    from matplotlib.category import StrCategoryFormatter
    from matplotlib.ticker import FixedFormatter, FuncFormatter

    form = axis.get_major_formatter()
    if isinstance(form, FixedFormatter):
        form.seq = [_said(str(text)) for text in form.seq]
    elif isinstance(form, StrCategoryFormatter | FuncFormatter):  # which name ticks when drawn
        axis.set_major_formatter(lambda x, i=None: _said(str(form(x, i))))


def headed(picture, title):
    """A figure with a title on top, made taller for it, and laid out."""
    picture.set_figheight(picture.get_figheight() + STRIP / 72)
    font = {"fontsize": 10.5, "fontweight": "bold"}
    picture.suptitle(literal(title), x=0.01, horizontalalignment="left", **font)
    measure(picture)  # so that ticks, made late, have the style too
    picture._repr_png_ = partial(_png, picture)  # a notebook shows it, without pyplot too
    return picture


def measure(picture):
    """Draw a figure nowhere, so that its parts have their places; it can be laid out once more."""
    translate(picture)
    fonts.cover(picture)
    with fonts.without_warnings():
        picture.draw_without_rendering()


def png(picture, title, dots=160):
    """A figure as PNG of so many dots an inch, with a title on a strip of its own.

    Warns of characters that no font here has.
    """
    from matplotlib.figure import Figure
    from matplotlib.image import imread

    translate(picture)
    lacking = fonts.cover(picture)
    drawn = imread(io.BytesIO(_png(picture, dpi=dots)))
    height, width = drawn.shape[:2]
    height += round(STRIP / 72 * dots)
    sheet = Figure(figsize=(width / dots, height / dots), dpi=dots, facecolor="white")
    sheet.figimage(drawn, 0, 0)
    place = 8 * dots / 72 / width, 1 - STRIP / 2 * dots / 72 / height
    style = {"fontsize": 10.5, "fontweight": "bold", "verticalalignment": "center"}
    sheet.text(*place, literal(title), **style)
    fonts.warn("".join(sorted({*lacking, *fonts.cover(sheet)})))
    return _png(sheet, dpi=dots, metadata={"Software": None})


def _png(picture, **options):
    """A figure as PNG; characters that no font has are boxes."""
    buffer = io.BytesIO()
    with fonts.without_warnings():
        picture.savefig(buffer, format="png", **options)
    return buffer.getvalue()


def period_axis(axes, T):
    """A second axis above a frequency axis: the period in tokens."""
    above = axes.secondary_xaxis("top", functions=(lambda f: f, lambda f: f))
    periods = [p for p in (2, 3, 4, 6, 10, 20, T) if p <= T]
    frequencies = [T / p for p in periods]
    above.set_xticks(frequencies, [f"{p:g}" for p in periods])
    above.set_xlabel("period (tokens)")


def border(axes, second, sides):
    """A line where the second of two texts begins (None: there is one), if axes reach so far.

    sides: x, y, or both.
    """
    for side, line in (("x", axes.axvline), ("y", axes.axhline)):
        end = max(getattr(axes, f"get_{side}lim")())
        if side in sides and second is not None and second < end:
            line(second - 0.5, color=ORANGE, linewidth=1)


def label(piece):
    """A token's piece with its blanks visible."""
    shown = piece.replace(" ", "␣").replace("\n", "⏎").replace("\t", "⇥")
    return sided(literal(shown)) or "∅"


def spelled(text):
    """Text in which a mask's parameters are words.

    >>> spelled("off, exponential(half_life=8, low=0)")
    'off, exponential (half-life 8, least 0)'
    """

    def said(match):
        words = re.sub(r"(\w+)=", lambda name: f"{GIVEN.get(name[1], name[1])} ", match[2])
        return f"{match[1]} ({words})"

    return CALL.sub(said, text)


def sided(text):
    """Text whose words from right to left keep their side of numbers and signs beside them.

    U+200E stands before and behind them, as if a Latin letter did.

    >>> sided("כלב: 0.5") == "\u200eכלב\u200e: 0.5"
    True
    """
    return RIGHT_TO_LEFT.sub("\u200e\\g<0>\u200e", text)


def printable(text):
    """Text in which U+FFFD stands for control characters and the like, which XML does not have."""
    return NO_XML.sub("\ufffd", text)


def literal(text):
    """Text in which no $ begins a formula, and that XML can hold."""
    return printable(text).replace("$", r"\$")


def offset(t):
    """An offset with its sign: -1, 0, +1."""
    return f"{t:+d}" if t else "0"


# the ground of a text that stands over lines
OVER_LINES = {"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 0}
ABOVE = {"loc": "lower left", "bbox_to_anchor": (0, 1), "ncols": 2}  # where a legend hides nothing
BESIDE = {"loc": "center left", "bbox_to_anchor": (1, 0.5)}
STACKED = {"loc": "lower left", "bbox_to_anchor": (0, 1)}
