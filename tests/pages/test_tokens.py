"""One design: its tokens stand in one file, and every page of every kind takes them from there."""

import colorsys
import inspect
import re
from pathlib import Path

import numpy as np
import pytest
from contrasts import contrast, luminance, turned
from matplotlib import colormaps
from matplotlib.colors import to_hex, to_rgb

from minitx import lessons
from minitx.analysis.drawing import draw
from minitx.analysis.pages import assets, atlas, explore, forming, report, tokens
from minitx.lessons import sphinx

THEMES = {"light": tokens.LIGHT, "dark": tokens.DARK, "printed": tokens.PRINTED}
FOLDERS = assets.PAGE, Path(lessons.__file__).parent / "page"
SHEETS = {path.name: path.read_text("utf-8") for folder in FOLDERS for path in folder.glob("*.css")}
OF_THEME = "font-size--small", "color-"  # furo's own
SET_BY_SHEETS = {"room", "late"}  # a length and a delay, by what is shown
SET_BY_PROGRAMS = {*"strong weight of across band columns shape p plot-background scrolled".split()}


# who states them


@pytest.mark.parametrize("name", SHEETS)
def test_a_style_sheet_states_no_colour_or_size_that_is_a_token(name):
    """Nor a value of one: one sheet's blue would part from the others' unseen."""
    rules = re.sub(r"/\*.*?\*/", "", SHEETS[name], flags=re.S)
    values = re.findall(r":\s*([^;{}]*)", rules)
    colours = [x for x in values if re.search(r"#[0-9a-f]{3,8}\b(?!-)|\brgba?\(|\bhsl", x, re.I)]
    assert colours == []
    sizes = re.findall(r"font-size:\s*([^;}\s]*)", rules) + re.findall(r"font: ([\d.]+\w+)", rules)
    assert not {*sizes} & {*tokens.SIZES.values(), *tokens.NARROW.values(), "15px", "16px"}
    headings = re.findall(r"\bh[123] \{[^}]*?font-size: ([^;}\s]*)", rules)
    assert all(size.startswith("var(--") or size.endswith("pt") for size in headings)


def test_every_variable_of_a_style_sheet_is_a_token():
    for name, text in SHEETS.items():
        every = {*re.findall(r"var\(--([\w-]+)", text)}
        used = {name for name in every if not name.startswith(OF_THEME)}
        assert used <= {*tokens.LIGHT, *tokens.SIZES, *SET_BY_PROGRAMS, *SET_BY_SHEETS}, name


def test_programs_state_scales_alone():
    """The colours of the page as they are drawn are the tokens, and lists made for weights."""
    text = (assets.PAGE / "colours.js").read_text("utf-8")
    palettes = text[text.index("const PALETTES") : text.index("};")]
    assert palettes.count("...TOKENS.") == 2
    assert re.sub(r"\[[^]]*\]", "", palettes).count("#") == 0


# who takes them


def test_every_page_has_the_tokens():
    assert report.STYLE.startswith(tokens.css())
    for theme, colours in (("light", tokens.LIGHT), ("dark", tokens.DARK)):
        assert tokens.css().count(f"--text: {colours['text']}") == 1
        given = sphinx.SETTINGS["html_theme_options"][f"{theme}_css_variables"]
        assert given["color-brand-content"] == colours["link"]
        assert given["h1"] == tokens.SIZES["h1"] and given["turned"] == colours["turned"]
    steps = np.arange(2)
    results = dict.fromkeys(("steps", "loss", "gain", "loss_null", "losses"), steps)
    film = forming.page("a", results | {"looks": np.zeros((2, 1, 2, 21))}, [])
    assert tokens.css() in film
    assert explore.style("explore.css").startswith(tokens.css())
    for module in explore, atlas:
        assert "style(*STYLES" in inspect.getsource(module.page)
        assert module.STYLES[0] == "explore.css"


# letters that stand out


@pytest.mark.parametrize("theme", THEMES)
def test_letters_stand_out(theme):
    """Contrast of every colour of text against what it may stand on (WCAG 2: 4.5; of bars 3)."""
    colours = THEMES[theme]
    letters = "text", "soft", "link", "query", "key", "chosen", "more", "less"
    verdicts = "yes", "partly", "bad"
    pairs = [(name, ground) for name in letters for ground in ("back", "card")]
    pairs += [(name, ground) for name in verdicts for ground in ("back", f"{name}-back")]
    for name, ground in pairs:
        assert contrast(colours[name], colours[ground]) >= 4.5, (name, ground)
    assert contrast(colours["bar"], colours["card"]) >= 3


def test_themes_have_the_same_tokens():
    assert [*tokens.LIGHT] == [*tokens.DARK] == [*tokens.PRINTED]


# figures in the dark

COLOURS = "BLUE", "ORANGE", "GREEN", "SKY", "VERMILION", "PURPLE", "GREY"


def test_a_figure_in_the_dark_is_dark_and_its_colours_keep_their_hues():
    """White is the ground, black the brightest; lines stand out as much as WCAG asks (3)."""
    assert tokens.DARK["turned"] == "invert(.9) hue-rotate(180deg)"  # what turned() computes
    ground, ink = turned("#ffffff"), turned("#000000")
    assert luminance(ground) < 0.02 and contrast(ink, ground) > 12
    for name in COLOURS:
        before, after = getattr(draw, name), turned(getattr(draw, name))
        assert contrast(after, ground) >= 3, name
        if name != "GREY":
            apart = abs(hue(before) - hue(after))
            assert min(apart, 1 - apart) < 0.02, name  # measured: 0.011 at most, of orange


@pytest.mark.parametrize("scale", ["PuOr", "RdBu", "RdBu_r", "Blues", "Oranges", "Greys"])
def test_a_map_in_the_dark_orders_its_values_as_on_paper(scale):
    """What stood far from white stands far from the ground, on the side of its own hue."""
    colours = [to_hex(rgb) for rgb in colormaps[scale](np.arange(256))]
    on_paper = [luminance("#ffffff") - luminance(x) for x in colours]
    in_dark = [luminance(turned(x)) - luminance(turned("#ffffff")) for x in colours]
    for half in (slice(0, 128), slice(128, 256)):
        order = np.argsort(on_paper[half], kind="stable")
        assert np.corrcoef(order.argsort(), np.argsort(in_dark[half]).argsort())[0, 1] > 0.95
    if scale in ("PuOr", "RdBu", "RdBu_r"):
        for n in (20, 40, 80, 175, 215, 235):
            apart = abs(hue(colours[n]) - hue(turned(colours[n])))
            assert min(apart, 1 - apart) < 0.01  # measured: 0.006


def hue(colour):
    """Where on the wheel, 0 to 1."""
    return colorsys.rgb_to_hsv(*to_rgb(colour))[0]


def test_what_is_printed_has_the_colours_of_paper_whatever_theme_was_chosen():
    printed = tokens.css().partition("@media print")[2]
    assert printed.count("!important") == printed.count(": ") == 1 + len(tokens.PRINTED)
