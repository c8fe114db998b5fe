"""The page of `minitx report` in a real browser: make test-page.

Order: the pages; widths; what stays in view; letters; the policy; print.
"""

import base64
import re
from xml.etree import ElementTree

import pytest
from browser import Tab
from planted import answers, bad, good, plant, unfit, write_report

SVG = "{http://www.w3.org/2000/svg}"
READY = "document.readyState === 'complete'"
LONG = {f"n{i}": f"a number with a long meaning that goes on and on, number {i}" for i in range(20)}

pytestmark = pytest.mark.usefixtures("program")


def listed(model, run):
    """Has long lists."""
    return good(model, run) | {f"n{i}": list(range(40)) for i in range(20)}


@pytest.fixture
def path(tmp_path, monkeypatch):
    """A report of runs that answer, that fail and that cannot be; long lists in each."""
    plant(monkeypatch, listed, bad, unfit, good, answer=answers("partly"), numbers=LONG)
    write_report(tmp_path)
    return tmp_path / "index.html"


def sized(tab, width, height=900):
    """The tab in a window of this size."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    tab.call("Emulation.setDeviceMetricsOverride", **size)
    tab.settle()


@pytest.mark.parametrize("width", [320, 390, 800, 1099, 1100, 1280, 1920])
def test_the_page_is_as_wide_as_the_window(tab, path, width):
    sized(tab, width)
    tab.open(path, READY)
    tab.js("document.querySelectorAll('details').forEach(x => { x.open = true; })")
    assert tab.js("document.documentElement.scrollWidth") <= width


def test_letters_of_figures_can_be_read_on_a_laptop(tab, path):
    """In the widest figure, with the smallest letters of the style."""
    sized(tab, 1280 - 16)  # a scroll bar's width
    tab.open(path, READY)
    width = tab.js("document.querySelector('figure img').clientWidth")
    assert width >= 1000
    source = tab.js("document.querySelector('figure img').src")
    svg = ElementTree.fromstring(base64.b64decode(source.partition(",")[2]))
    scale = width / float(svg.get("viewBox").split()[2])
    sizes = [re.search(r"([\d.]+)px", text.get("style"))[1] for text in svg.iter(SVG + "text")]
    heights = [float(size) * scale for size in sizes]
    assert len(heights) > 8
    assert min(heights) >= 11


@pytest.mark.parametrize("width", [390, 1280])
def test_the_list_of_sections_stays_in_view(tab, path, width):
    sized(tab, width, 700)
    tab.open(path, READY)
    for id_ in ("good", "glossary", "answers"):
        tab.js(f"location.hash = '#{id_}'; 0")
        tab.settle()
        box = "document.querySelector('nav').getBoundingClientRect()"
        assert tab.js(f"{box}.top") == 0
        hidden = 0 if width > 1000 else tab.js(f"{box}.bottom")  # behind the bar on top
        heading = tab.js(f"document.querySelector('#{id_}').getBoundingClientRect().top")
        assert hidden <= heading < 700


def test_the_policy_lets_the_style_in_and_nothing_else(tab, path):
    tab.open(path, READY)
    assert tab.js("getComputedStyle(document.querySelector('nav')).position") == "sticky"
    images = "[...document.images].every(x => x.complete && x.naturalWidth > 0)"
    assert tab.js(images) and tab.js("document.images.length") == 4
    assert tab.complaints == []
    tab.js("document.body.insertAdjacentHTML('beforeend', '<p style=\"color: red\">x</p>')")
    tab.settle()
    assert any("Content Security Policy" in complaint for complaint in tab.complaints)
    tab.complaints.clear()


def test_all_can_be_reached_by_keys(tab, path):
    tab.open(path, READY)
    tab.press("Tab")
    assert tab.js("document.activeElement.className") == "skip"
    assert tab.js("document.activeElement.getBoundingClientRect().left") >= 0
    seen = set()
    for _ in range(60):
        tab.press("Tab")
        seen.add(tab.js("document.activeElement.tagName + ' ' + document.activeElement.innerText"))
    assert {"A Answers", "A Glossary", "SUMMARY 14 more numbers"} <= seen


def test_print_has_everything_and_no_list_of_sections(tab, path):
    tab.open(path, READY)
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    tab.call("Emulation.setEmulatedMedia", media="print", features=dark)
    tab.settle()
    assert tab.js("getComputedStyle(document.querySelector('nav')).display") == "none"
    assert tab.js("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    folded = "[...document.querySelectorAll('details:not(.making) > :last-child')]"
    assert tab.js(f"Math.min(...{folded}.map(x => x.getBoundingClientRect().height))") > 10


def test_a_picture_for_each_width_and_theme(tmp_path, path):
    """Nothing is asked for and nothing complained about in any of them."""
    for width in (390, 1280):
        tab = Tab(tmp_path / f"browser-{width}", width, 900)
        for dark in (False, True):
            tab.open(path, READY)
            tab.dark(dark)
            back = tab.js("getComputedStyle(document.body).backgroundColor")
            assert back == ("rgb(22, 22, 22)" if dark else "rgb(255, 255, 255)")
        assert tab.complaints == []
        tab.close()
