"""A lesson's page in a real browser, with the theme of the documentation (needs [docs])."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from minitx import lessons
from minitx.lessons import build

FADED_IN = "Promise.all(document.getAnimations().map(x => x.finished)).then(() => null)"
WIDTH = "document.documentElement.scrollWidth"


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """The page of the lesson on temperature: code, tables, formulas, figures."""
    return build.page(lessons.get(18), tmp_path_factory.mktemp("lesson"))


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [320, 390, 1280])
def test_axe_has_no_complaint_of_a_lesson_and_none_is_too_wide(launch, kind, path, width, dark):
    context = launch(kind, dark).new_context(
        viewport={"width": width, "height": 844}, color_scheme="dark" if dark else "light"
    )
    page = context.new_page()
    page.goto(path.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(x => { x.open = true; })")
    page.evaluate(FADED_IN)
    assert page.evaluate(WIDTH) <= width
    report = Axe().run(page).response
    assert {x["id"]: [node["html"] for node in x["nodes"]] for x in report["violations"]} == {}
    image = page.locator(".cell_output img").first
    assert image.evaluate("x => getComputedStyle(x).filter").startswith(
        "invert" if dark else "none"
    )
    if width == 390:  # its letters can be read
        assert image.bounding_box()["width"] > 500
    context.close()


@pytest.mark.parametrize("kind", ["chromium"], indirect=True)  # which can be told to print
def test_print_has_no_link_that_skips_to_the_text(launch, kind, path):
    """It stood on the last lines of each page."""
    page = launch(kind, False).new_page()
    page.goto(path.as_uri())
    page.emulate_media(media="print")
    expect(page.locator(".skip-to-content")).to_be_hidden()
    page.context.close()
