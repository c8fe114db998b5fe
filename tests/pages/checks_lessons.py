"""A lesson's page in a real browser, with the theme of the documentation (needs [docs])."""

import pytest
from explored import WIDTH, faults
from playwright.sync_api import expect

from minitx import lessons
from minitx.lessons import build

FADED_IN = "Promise.all(document.getAnimations().map(x => x.finished)).then(() => null)"


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """The page of the lesson on temperature: code, tables, formulas, figures."""
    return build.page(lessons.get(18), tmp_path_factory.mktemp("lesson"))


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_axe_has_no_complaint_of_a_lesson_and_none_is_too_wide(new_page, path, width, dark):
    page = new_page(width, 844, dark)
    page.goto(path.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(x => { x.open = true; })")
    page.evaluate(FADED_IN)
    assert page.evaluate(WIDTH) <= width
    assert faults(page) == {}
    image = page.locator(".cell_output img").first
    assert image.evaluate("x => getComputedStyle(x).filter").startswith(
        "invert" if dark else "none"
    )
    if width == 390:  # its letters can be read
        assert image.bounding_box()["width"] > 500


@pytest.mark.parametrize("kind", ["chromium"], indirect=True)  # which can be told to print
def test_print_has_no_link_that_skips_to_the_text(new_page, path):
    """It stood on the last lines of each page."""
    page = new_page(1280, 720)
    page.goto(path.as_uri())
    page.emulate_media(media="print")
    expect(page.locator(".skip-to-content")).to_be_hidden()
