"""The page of `minitx report` in a real browser: make test-page."""

import base64
import io
import itertools
import re
from urllib.parse import quote
from xml.etree import ElementTree

import numpy as np
import pytest
from explored import WIDTH, faults
from matplotlib.image import imread
from planted import answers, bad, giving, good, unfit
from playwright.sync_api import expect

import minitx
from minitx import weights
from minitx.analysis import experiments  # noqa: F401  (fills the registry)
from minitx.analysis.contract import nothing, registry
from minitx.analysis.contract.numbers import Fact, Number
from minitx.analysis.contract.registry import Answer
from minitx.analysis.pages import report, sketch, story
from minitx.analysis.running import single

SVG = "{http://www.w3.org/2000/svg}"
MEANS = "a number with a long meaning that goes on and on, number"
LONG = [Fact(f"n{i}", f"{MEANS} {i}") for i in range(20)]
LONG += [Number("by_layer", f"{MEANS} by layer", "words shuffled", by="layers")]
LONG += [Fact("of_layers", f"{MEANS} of layers", by="layers")]
CELLS = ".numbers td, :is(.sorts, .across) :is(td, th), .answers td"
BROKEN = """cells => {
  const broken = [];
  for (const cell of document.querySelectorAll(cells)) {
    const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    for (let text = texts.nextNode(); text; text = texts.nextNode()) {
      for (const word of text.data.matchAll(/[^\\s-]{1,24}/g)) {
        const range = document.createRange();
        range.setStart(text, word.index);
        range.setEnd(text, word.index + word[0].length);
        const tops = new Set([...range.getClientRects()].map(x => Math.round(x.top)));
        if (tops.size > 1) broken.push(word[0]);
      }
    }
  }
  return broken;
}"""  # words of table cells that stand on more than one line
INSIDE = """all => all.map(x => {
  const box = x.getBoundingClientRect(), whole = x.closest("svg").getBoundingClientRect();
  return box.left >= whole.left && box.right <= whole.right && box.bottom <= whole.bottom;
})"""
DRAWN = sketch.drawn(
    {
        kind: np.linspace(0.9, low, 5)
        for kind, low in (("random", 0.08), ("shuffled", 0), ("trained", 0.76))
    }
)
COMPARED = sketch.compared(
    {
        "predicts": "pseudo-loss",
        "loss": np.log(13.1),
        "loss_zero": np.log(490),
        "loss_null": np.log(279),
        "loss_interval": np.log([[12, 14], [268, 902]]),
    }
)
UNFOLDED = """() => {
  for (const part of document.querySelectorAll("details")) part.open = true;
  for (const part of document.querySelectorAll("[hidden]")) part.hidden = false;
}"""
BACKGROUND = "getComputedStyle(document.body).backgroundColor"


@pytest.fixture
def path(tmp_path, reported, monkeypatch):
    """A report of runs that answer, that fail and that cannot be; long lists in each."""
    lists = {f"n{i}": list(range(40)) for i in range(20)}
    lists |= {name: np.arange(5) / 7 for name in ("by_layer", "by_layer_null", "of_layers")}
    listed = giving("listed", layers=np.array([f"layer {n}" for n in range(5)]), **lists)
    monkeypatch.setattr(report, "several", lambda *_: "2.69 (dial: 8 documents)")
    reported(listed, bad, unfit, good, answer=answers("partly"), numbers=LONG)
    return tmp_path / "index.html"


@pytest.mark.parametrize("width", [320, 390, 800, 1099, 1100, 1280, 1920])
def test_the_page_is_as_wide_as_the_window(open_page, path, width):
    page = open_page(path, width, 900)
    page.evaluate(UNFOLDED)
    assert page.evaluate(WIDTH) <= width


def test_letters_of_figures_can_be_read_on_a_laptop(open_page, path):
    """In the widest figure, with the smallest letters of the style."""
    page = open_page(path, 1280 - 16, 900)  # a scroll bar's width
    image = page.locator("figure img").first
    width = image.bounding_box()["width"]
    assert width >= 1000
    svg = ElementTree.fromstring(base64.b64decode(image.get_attribute("src").partition(",")[2]))
    scale = width / float(svg.get("viewBox").split()[2])
    sizes = [re.search(r"([\d.]+)px", text.get("style"))[1] for text in svg.iter(SVG + "text")]
    heights = [float(size) * scale for size in sizes]
    assert len(heights) > 8
    assert min(heights) >= 11


def test_letters_of_figures_can_be_read_on_a_phone(open_page, path):
    """9 px at least where a figure is 900 points wide, its letters 10; it scrolls in its box."""
    page = open_page(path, 390, 844)
    page.evaluate("location.hash = 'good'")
    image = page.locator("#good figure img").first
    expect(image).to_be_visible()
    assert image.evaluate("x => x.getBoundingClientRect().width") * 10 / 900 >= 9


def test_what_chance_is_stands_on_a_line_of_its_own(open_page, tmp_path, reported):
    """Also in the list above a table of many entries, where it followed the meaning unspaced."""
    values = {"a": np.arange(9.0), "b": np.arange(9.0), "b_null": np.full(9, 9.5)}
    listed = giving("listed", names=np.array([*"abcdefghi"]), **values)
    numbers = [Fact("a", "the first", by="names"), Number("b", "the second", "none", by="names")]
    reported(listed, numbers=numbers)
    page = open_page(tmp_path / "index.html")
    page.get_by_text("a, b, …: 2 numbers each").click()
    expect(page.locator(".lists li .soft")).to_have_css("display", "block")


@pytest.mark.parametrize("width", [390, 1280])
def test_the_list_of_sections_stays_in_view(open_page, path, width):
    page = open_page(path, width, 700)
    for id_ in ("good", "glossary", "answers"):
        page.evaluate("id => { location.hash = id; }", id_)
        list_ = page.get_by_role("navigation").bounding_box()
        assert list_["y"] == 0
        hidden = 0 if width > 1000 else list_["height"]  # behind the bar on top
        assert hidden <= page.locator(f"#{id_}").bounding_box()["y"] < 700


def test_the_policy_lets_the_style_in_and_nothing_else(open_page, path, complaints):
    page = open_page(path)
    expect(page.get_by_role("navigation")).to_have_css("position", "sticky")
    assert page.evaluate("[...document.images].every(x => x.complete && x.naturalWidth > 0)")
    expect(page.locator("img")).to_have_count(4)
    assert complaints == []
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<p style=\"color: red\">x</p>')")
    expect(page.locator("p").last).not_to_have_css("color", "rgb(255, 0, 0)")
    for _ in range(100):  # Firefox says so a little later
        if complaints:
            break
        page.wait_for_timeout(50)
    assert any("violates the following" in complaint for complaint in complaints)
    complaints.clear()


def test_all_can_be_reached_by_keys(open_page, path):
    page = open_page(path)
    page.keyboard.press("Tab")
    skip = page.locator(".skip")
    expect(skip).to_be_focused()
    assert skip.bounding_box()["x"] >= 0
    seen = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        focus = "document.activeElement.tagName + ' ' + document.activeElement.innerText"
        seen.add(page.evaluate(focus))
    assert {"A Answers", "A Glossary", "SUMMARY 14 more numbers"} <= seen


@pytest.mark.parametrize("kind", ["chromium"], indirect=True)  # which can be told to print
def test_print_has_everything_and_no_list_of_sections(open_page, path):
    page = open_page(path)
    page.emulate_media(media="print", color_scheme="dark")
    expect(page.locator("nav")).to_be_hidden()
    assert page.evaluate(BACKGROUND) == "rgb(255, 255, 255)"
    folded = page.locator("details:not(.making, .whole) > :last-child").all()
    assert folded and min(x.bounding_box()["height"] for x in folded) > 10


@pytest.mark.parametrize("width", [390, 1280])
def test_a_picture_for_each_width_and_theme(open_page, path, width, dark):
    """Nothing is asked for and nothing complained about in any of them."""
    page = open_page(path, width, 900, dark)
    turned = "invert(0.9) hue-rotate(180deg)" if dark else "none"
    expect(page.locator("figure img").first).to_have_css("filter", turned)
    assert page.evaluate(BACKGROUND) == ("rgb(20, 20, 20)" if dark else "rgb(255, 255, 255)")


def test_a_column_of_heads_sorts_up_and_down(open_page, tmp_path, reported):
    """As numbers, by a key or the pointer; the heading says so."""

    def by_head(r):
        return {"head": ["L0H2", "L0H10", "L1H0"], "offset": ["-2", "+10", "+1"]}

    reported(good, by_head=by_head)
    page = open_page(tmp_path / "index.html")
    page.get_by_text("Head by head: 3 heads").click()
    rows = page.locator("table.sorts tbody th")
    offsets = page.locator("table.sorts thead th", has_text="offset")
    for by, state in (
        (["L0H2", "L1H0", "L0H10"], "ascending"),
        (["L0H10", "L1H0", "L0H2"], "descending"),
    ):
        offsets.get_by_role("button").press("Enter")
        expect(rows).to_have_text(by)
        expect(offsets).to_have_attribute("aria-sort", state)
    page.get_by_role("button", name="head").click()
    expect(rows).to_have_text(["L0H2", "L0H10", "L1H0"])


@pytest.mark.parametrize("width, height", [(1280, 800), (1920, 1000)])
def test_the_first_screen_says_what_the_model_does_with_positions(
    open_page, tmp_path, reported, monkeypatch, width, height
):
    """Whole, before any answer is counted."""
    lines = [
        (f"Topic {n}", "A sentence of some length with a number in it. " * 3, "good")
        for n in range(5)
    ]
    monkeypatch.setattr(story, "lines_of", lambda model, runs: lines)
    reported(good)
    page = open_page(tmp_path / "index.html", width, height)
    last = page.locator("#story li").last.bounding_box()
    assert last["y"] + last["height"] < height
    assert last["y"] < page.locator(".tally").first.bounding_box()["y"]


@pytest.mark.parametrize("width", [390, 1280])
def test_no_value_is_broken_inside_a_word(open_page, path, width):
    """Numbers, heads and short words of the tables stand on one line each."""
    page = open_page(path, width, 900)
    page.evaluate(UNFOLDED)
    assert page.evaluate(BROKEN, CELLS) == []
    facts = page.locator(".facts")
    assert facts.evaluate("x => x.offsetWidth <= x.parentElement.clientWidth")


@pytest.mark.parametrize("kind", ["chromium"], indirect=True)  # a picture needs a style in Firefox
@pytest.mark.parametrize("what", ["figure img", ".thumbnail img"])
def test_figures_are_dark_where_the_page_is(open_page, path, what):
    """Not a white sheet on a black page: the ground of the picture is nearly the page's."""
    page = open_page(path, 1280, 900, dark=True)
    image = page.locator(what).first
    image.scroll_into_view_if_needed()
    pixels = imread(io.BytesIO(image.screenshot(caret="initial")))[..., :3]
    assert np.median(pixels) < 0.15  # 0.1; 0.86 and 0.72 before
    assert (pixels.mean(axis=-1) > 0.8).mean() < 0.1


@pytest.fixture
def every(tmp_path, monkeypatch):
    """A report as long as a bundled model's: every question, five sentences, two drawings."""
    kinds = itertools.cycle(("yes", "partly", "no", "undecided", "yes"))
    svg = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 900 300" height="300"></svg>'
    runs = []
    for experiment, kind in zip(registry.EXPERIMENTS.values(), kinds):
        answer = Answer(kind, f"what is measured in {experiment.name}", "7 of 9", "1 of 9")
        outcome = single.Outcome({}, {nothing.KIND: ""}, "It says so.", {}, (svg,), answer)
        runs.append((experiment, outcome, 0.1))
    names = "profiles", "kernel", "dial", "probe", "relearn"
    lines = [
        (f"How it does {x}", "A sentence with **9 of 16** numbers in it. " * 7, x) for x in names
    ]
    monkeypatch.setattr(story, "lines_of", lambda model, runs: lines)
    monkeypatch.setattr(story, "in_short", lambda lines, runs: "In short: " + lines[0][1])
    monkeypatch.setattr(sketch, "figure", lambda runs: f"<div>{DRAWN}{COMPARED}</div>")
    model = minitx.load(weights.find("tiny-roberta"))
    path = tmp_path / "every.html"
    path.write_text(report.page(model, "tiny-roberta", runs, [], 1.0), encoding="utf-8")
    return path


def opened(page):
    """The ids of the sections of questions that are shown."""
    return page.locator(".experiment:not([hidden])").evaluate_all("all => all.map(x => x.id)")


def heights(page, selector):
    """How high what this selects is, in pixels."""
    return page.locator(selector).evaluate_all(
        "all => all.map(x => x.getBoundingClientRect().height)"
    )


def test_a_telephone_shows_the_report_in_3000_pixels(open_page, every):
    """It had 81,014 of deep-roberta once, and 7,495 with a line for each section."""
    page = open_page(every, 390, 844)
    assert 2000 < page.evaluate("document.documentElement.scrollHeight") <= 3000
    groups = page.locator(".answers .theme")
    assert groups.count() == 9 and opened(page) == []
    for group in groups.all():
        expect(group.locator(".mark").first).to_be_visible()
        assert group.bounding_box()["height"] >= 44  # what a thumb can hit
    assert {*heights(page, ".answers tbody tr:not(.theme)")} == {0}


def test_answers_have_a_look_each(open_page, every, dark):
    """A ground or a frame of its own; three of the greys were one."""
    page = open_page(every, 1280, 800, dark)
    page.evaluate("""() => {
      const mark = document.querySelector(".tally .mark");
      for (const kind of ["bad", "none"]) {
        mark.after(Object.assign(mark.cloneNode(), { className: `mark ${kind}` }));
      }
    }""")
    looks = page.locator(".tally .mark").evaluate_all("""all => all.map(x => {
      const look = getComputedStyle(x);
      return [look.backgroundColor, look.boxShadow].join(" ");
    })""")
    assert len({*looks}) == 6  # yes, partly, no, undecided; failed, left out


def test_a_tap_opens_a_group_of_answers(open_page, every):
    """Or Enter; what is folded is left out by Tab; on a wide screen nothing is folded."""
    page = open_page(every, 390, 844)
    first, second = page.locator(".theme button").all()[:2]
    link = page.locator('.answers a[href="#positions"]')
    measured = page.get_by_text("what is measured in positions")
    expect(first).to_have_attribute("aria-expanded", "false")
    first.focus()
    page.keyboard.press("Tab")
    expect(second).to_be_focused()
    first.click()
    expect(first).to_have_attribute("aria-expanded", "true")
    expect(measured.first).to_be_in_viewport()
    page.keyboard.press("Tab")
    expect(link).to_be_focused()
    first.press("Enter")
    expect(first).to_have_attribute("aria-expanded", "false")
    expect(link).not_to_be_in_viewport()
    page.set_viewport_size({"width": 1280, "height": 800})
    expect(page.locator(".theme button")).to_have_count(0)
    expect(page.locator(".counts").first).to_be_hidden()
    assert page.locator("[hidden]").count() == 0


def test_a_link_shows_a_section_on_a_phone_and_back_returns(open_page, every):
    """From its question, from the first sentences, from the bar; an address does."""
    page = open_page(every, 390, 844)
    page.locator(".theme button").nth(1).click()
    question = page.locator('.answers a[href="#profiles"]')
    question.click()
    expect(page.locator("#profiles .answer")).to_be_in_viewport()
    assert opened(page) == ["profiles"]
    page.evaluate("history.back()")
    expect(question).to_be_in_viewport()
    page.evaluate("history.forward()")
    expect(page.locator("#profiles .answer")).to_be_in_viewport()
    page.locator('.sketch a[href="#probe"]').first.click()
    expect(page.locator("#probe .answer")).to_be_in_viewport()
    for link, id_ in (
        ('.story a[href="#theme-2"]', "theme-2"),
        ('nav a[href="#theme-3"]', "theme-3"),
    ):
        page.locator(link).click()
        expect(page.locator(f"#{id_} button")).to_have_attribute("aria-expanded", "true")
        expect(page.locator(f"#{id_}")).to_be_in_viewport()
    page.goto(f"{every.as_uri()}#circuit")
    page.reload()
    expect(page.locator("#circuit .answer")).to_be_in_viewport()
    assert opened(page) == ["circuit"]


def test_print_shows_all_that_a_phone_folds(open_page, every):
    """And folds it again."""
    page = open_page(every, 390, 844)
    before = page.evaluate("document.documentElement.scrollHeight")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("[hidden], .whole:not([open]), .theme button").count() == 0
    assert min(heights(page, ".experiment, .answers tbody tr:not(.theme)")) > 40
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate("document.documentElement.scrollHeight") == before


def test_links_open_what_is_folded_on_a_phone(open_page, path):
    """Sections, and terms of the glossary; nothing else opens with them."""
    page = open_page(path, 390, 844)
    page.evaluate("location.hash = 'term-null'")
    expect(page.locator("#term-null")).to_be_in_viewport()
    assert opened(page) == [] and page.locator("#published .whole[open]").count() == 0
    page.goto(f"{path.as_uri()}#bad")
    page.reload()
    expect(page.locator("#bad .answer")).to_be_in_viewport()
    page.locator("#bad .whole > summary").click()  # folded by hand
    page.evaluate("location.hash = ''")
    page.evaluate("location.hash = 'bad'")
    expect(page.locator("#bad .answer")).to_be_in_viewport()
    page.set_viewport_size({"width": 1280, "height": 800})
    assert all(page.locator(".whole").evaluate_all("all => all.map(x => x.open)"))


@pytest.mark.parametrize("kind", ["chromium"], indirect=True)  # any does; one is enough
def test_without_a_program_a_phone_has_everything(launch, kind, every):
    page = launch(kind, False).new_page(
        java_script_enabled=False, viewport={"width": 390, "height": 844}
    )
    page.goto(every.as_uri())
    assert min(heights(page, ".experiment, .answers tbody tr")) > 40
    page.close()


def test_the_signs_of_the_list_are_explained_above_it(open_page, path):
    """Each of them, before the first entry that has one."""
    page = open_page(path, 1280, 800)
    signs = page.locator("nav li .sign").all_inner_texts()
    key = page.locator("nav .key")
    assert {*signs} == {*key.locator(".sign").all_inner_texts()} == {"◐", "!", "–"}
    assert key.inner_text().split() == ["◐", "partly", "!", "failed", "–", "left", "out"]
    bottom = key.bounding_box()["y"] + key.bounding_box()["height"]
    assert bottom <= page.locator("nav .sign").nth(3).bounding_box()["y"] < 200


def test_a_bar_of_sections_that_scrolls_says_so(open_page, path):
    """An arrow at its right end, until nothing more lies there; on wide screens there is none."""
    arrow = "getComputedStyle(document.querySelector('nav'), '::after').content"
    page = open_page(path, 320, 700)
    assert page.evaluate(arrow) == '"\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK}"'
    page.locator("nav ol").evaluate("x => x.scrollTo(x.scrollWidth, 0)")
    expect(page.locator("nav.end")).to_be_attached()
    assert page.evaluate(arrow) == "none"
    page.locator("nav ol").evaluate("x => x.scrollTo(0, 0)")
    expect(page.locator("nav:not(.end)")).to_be_attached()
    page.set_viewport_size({"width": 1280, "height": 800})
    assert page.evaluate(arrow) == "none"


@pytest.mark.parametrize("kind", ["chromium"], indirect=True)  # which knows links to a text
@pytest.mark.parametrize(
    "text, where",
    [
        ("says so", "#positions .says, #positions p"),
        ("measured in models", "#theme-0 button[aria-expanded=true]"),
    ],
)
def test_a_search_opens_what_is_folded_on_a_phone(open_page, every, text, where):
    """A link to a text looks for it as a search in the page does: a section, a group of answers."""
    page = open_page(every, 390, 844)
    page.goto("about:blank")
    page.goto(f"{every.as_uri()}#:~:text={quote(text)}")
    expect(page.locator(where).first).to_be_in_viewport()
    page.goto(every.as_uri())


@pytest.mark.parametrize("width", [390, 1280])
def test_axe_has_no_complaint_of_the_report(open_page, path, width, dark):
    page = open_page(path, width, 900, dark)
    for state in ("() => {}", UNFOLDED):
        page.evaluate(state)
        assert faults(page) == {}


def test_lines_of_prose_are_short(open_page, path):
    """70 widths of a digit at most; answers had 115 letters."""
    page = open_page(path, 1920, 1000)
    wide = """all => all.filter(x => {
      const one = document.createElement("span"); one.textContent = "0".repeat(10); x.append(one);
      const digit = one.getBoundingClientRect().width / 10; one.remove();
      return x.clientWidth > 70.5 * digit;
    }).map(x => x.textContent.slice(0, 40))"""
    assert page.locator(".story li, section p:not(.tally), dd").evaluate_all(wide) == []


def test_links_have_two_looks(open_page, path):
    """What goes somewhere is underlined in the colour of links, what explains a word is dotted."""
    page = open_page(path)
    looks = """all => [...new Set(all.map(x => {
      const look = getComputedStyle(x);
      return [look.textDecorationLine, look.textDecorationStyle, look.color === TEXT].join(" ");
    }))].sort()""".replace("TEXT", "getComputedStyle(x.parentElement).color")
    links = page.locator("main a:not(.thumbnail)")
    assert links.evaluate_all(looks) == ["underline dotted true", "underline solid false"]
    expect(page.locator("main button")).to_have_count(0)


def test_the_first_screen_has_a_picture_that_can_be_read(
    open_page, tmp_path, reported, monkeypatch
):
    """R² by layer, beside the sentences; on a phone below them."""
    both = f'<div class="sketches">{DRAWN}{COMPARED}</div>'
    monkeypatch.setattr(sketch, "figure", lambda runs: both)
    reported(good)
    page = open_page(tmp_path / "index.html", 1280, 800)
    text = page.locator(".story").bounding_box()
    for picture, height in zip(page.locator(".sketch svg").all(), (120, 60), strict=True):
        box = picture.bounding_box()
        assert box["width"] >= 260 and box["height"] >= height
        assert box["x"] > text["x"] + text["width"] and box["y"] + box["height"] < 800
    inside = page.locator(".sketch text").evaluate_all(INSIDE)
    assert len(inside) == 17 and all(inside)
