"""Pages on a projector, with ?projector in the address: make test-page."""

import re

import pytest
from explored import ready, settle
from playwright.sync_api import expect

SEEN = """[...document.querySelectorAll("main figure")]
  .filter(x => x.checkVisibility()).map(x => x.id)"""

# pixels of what is lit that the walk covers, and of the smallest letters in a picture that is seen
BEHIND = """document.querySelector(".lit").getBoundingClientRect().bottom
  - document.querySelector("#walk").getBoundingClientRect().top"""
SMALLEST = """Math.min(...[...document.querySelectorAll("main svg text")]
  .filter(x => x.textContent.trim() && x.getBoundingClientRect().width)
  .map(x => [parseFloat(getComputedStyle(x).fontSize), x.ownerSVGElement])
  .map(([size, svg]) => size * svg.getBoundingClientRect().width / svg.getAttribute("width")),
  99)"""


@pytest.fixture
def page(explored_page):
    """The page of a sentence, as a room sees it."""
    page = explored_page("tiny-gpt2", "The old man said that he", 1280, 720)
    page.goto(page.url.partition("#")[0] + "?projector#head=L0H3")
    return settle(ready(page))


def test_one_picture_is_seen_and_a_remote_control_shows_the_next(page):
    """Nothing scrolls sideways; letters of a picture are half as large again as elsewhere."""
    assert page.evaluate(SEEN) == ["heads"]
    page.keyboard.press("PageDown")
    settle(page)
    assert page.evaluate(SEEN) == ["matrix"]  # without what stands above it
    expect(page.locator("header")).to_be_hidden()
    expect(page).to_have_url(re.compile("view=matrix"))
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    letters = page.locator("#matrix svg").last.locator("text").first
    assert letters.evaluate("x => x.getBoundingClientRect().height") > 16
    page.locator("#turn").get_by_role("button", name="back").click()
    expect(page.locator("header")).to_be_visible()


def test_it_begins_with_what_is_seen_and_ends_where_one_is(page):
    page.goto(page.url.partition("?")[0] + "#head=L1H2&view=matrix")
    page.get_by_role("link", name="On a projector").click()
    expect(page).to_have_url(re.compile(r"\?projector#.*head=L1H2.*view=matrix"))
    settle(page)
    page.keyboard.press("PageDown")
    expect(page).to_have_url(re.compile("view=(?!matrix)"))
    page.locator("#turn").get_by_role("link", name="the whole page").click()
    expect(page).to_have_url(re.compile(r"\?#.*head=L1H2.*view=(?!matrix)"))
    expect(page.locator("header")).to_be_visible()
    page.get_by_role("link", name="On a projector").click()
    expect(page).to_have_url(re.compile(r"\?projector#"))
    settle(page)
    page.keyboard.press("Escape")
    expect(page).to_have_url(re.compile(r"\?#.*head=L1H2"))


@pytest.mark.parametrize(("width", "height", "letters"), [(1920, 1080, 24), (1280, 720, 16)])
def test_no_step_stands_behind_its_text_and_letters_are_read_from_afar(
    page, width, height, letters
):
    page.set_viewport_size({"width": width, "height": height})
    page.goto(page.url.partition("#")[0] + "#walk=1")
    page.reload()
    for step in range(1, 11):
        expect(page.get_by_role("heading", name=f"Step {step} of")).to_be_visible()
        settle(page)
        assert page.evaluate(BEHIND) <= 0
        assert page.evaluate(SMALLEST) >= letters
        page.keyboard.press("PageDown")


@pytest.mark.parametrize(("width", "height"), [(1920, 1080), (1280, 720)])
@pytest.mark.parametrize("view", ["matrix", "lines", "layer", "joint", "profile", "heads"])
def test_a_picture_is_whole_on_the_screen(page, width, height, view):
    page.set_viewport_size({"width": width, "height": height})
    page.goto(page.url.partition("#")[0] + f"#view={view}")
    page.reload()
    settle(page)
    bottom = f"document.querySelector('#{view} .plot > svg:last-of-type').getBoundingClientRect()"
    assert page.evaluate(f"{bottom}.bottom") <= height


@pytest.mark.parametrize(("width", "height"), [(1920, 1080), (1280, 720)])
def test_the_guesses_after_every_layer_fit(page, width, height):
    page.set_viewport_size({"width": width, "height": height})
    page.goto(page.url.partition("#")[0] + "#view=lens")
    page.reload()
    settle(page)
    assert page.locator("#lens .plot").evaluate("x => x.scrollWidth <= x.clientWidth")


def test_the_walk_shows_what_it_lights(page):
    page.goto(page.url.partition("#")[0] + "#walk=5")
    page.reload()
    expect(page.get_by_role("heading", name="Step 5 of")).to_be_visible()
    settle(page)
    assert page.evaluate(SEEN) == ["matrix"]
    page.keyboard.press("PageDown")
    expect(page.get_by_role("heading", name="Step 6 of")).to_be_visible()
    assert page.evaluate(SEEN) == ["values"]
