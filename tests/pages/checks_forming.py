"""The film of a training in a real browser: make test-page."""

import numpy as np
import pytest
from explored import WIDTH, faults
from playwright.sync_api import expect

from minitx.analysis.pages import forming

STEPS = [0, 1, 10, 100, 1000]
NAME = "a </script><b>name"


def results(has_table=True):
    """A fabricated training: one head turns to the token before it."""
    n = len(STEPS)
    rising = np.linspace(0, 1, n)
    r = {"steps": np.array(STEPS), "loss": 5 - 3 * rising, "gain": rising}
    r |= {"loss_null": np.full(n, 4.0), "sharp": rising, "sharp_null": np.full(n, 0.05)}
    looks = np.full((n, 2, 4, 21), 0.05)
    looks[:, 1, 2, 9] = rising
    r["looks"] = looks
    if has_table:
        r |= {"amplitude": np.outer(rising, np.arange(15.0)) + 1, "swing_null": np.full(n, 3.0)}
        r |= {"cca": np.outer(1 - rising / 2, np.ones(3)), "cca_null": np.full((n, 3), 0.2)}
        r |= {"follow": rising, "follow_null": np.full(n, 0.1)}
    return r


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "forming.html"
    path.write_text(forming.page(NAME, results(), ["It learns <b>."]), encoding="utf-8")
    return path


def now(page):
    return page.locator("#now")


def test_keys_move_through_the_training(open_page, path):
    page = open_page(path)
    expect(now(page)).to_contain_text("after 0 steps: loss 5.000, without positions 5.000")
    page.get_by_role("slider").focus()
    page.keyboard.press("ArrowRight")
    expect(now(page)).to_contain_text("after 1 steps")
    page.keyboard.press("End")
    expect(now(page)).to_contain_text("after 1,000 steps: loss 2.000, without positions 3.000")
    label = page.locator("#of-heads svg").get_attribute("aria-label")
    assert "L1H2 −1: 1.00" in label and "L0H0" in label
    page.keyboard.press("Home")
    expect(now(page)).to_contain_text("after 0 steps")


def test_the_address_names_the_step_and_every_axis_has_a_name(open_page, path):
    page = open_page(path)
    page.get_by_role("slider").focus()
    page.keyboard.press("End")
    assert page.evaluate("location.hash") == "#step=1000"
    page.evaluate("location.hash = '#step=50'")  # the last one before it
    expect(now(page)).to_contain_text("after 10 steps")
    page.reload()
    expect(now(page)).to_contain_text("after 10 steps")
    heights = {"loss": "nats", "waves": "amplitude", "image": "cycles", "stream": "corr"}
    for name, height in heights.items():
        expect(page.locator(f"#of-{name} svg")).to_contain_text(f"↑ {height}")


def test_it_plays_to_the_end_and_stops(open_page, path):
    page = open_page(path)
    play = page.get_by_role("button", name="Play")
    play.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Stop")).to_have_attribute("aria-pressed", "true")
    expect(now(page)).to_contain_text("after 1,000 steps")
    expect(page.get_by_role("button", name="Play")).to_have_attribute("aria-pressed", "false")


def test_all_pictures_are_drawn_or_said_to_be_missing(open_page, path):
    page = open_page(path)
    expect(page.locator("figure svg")).to_have_count(5)
    path.write_text(forming.page(NAME, results(has_table=False), []), encoding="utf-8")
    page = open_page(path)
    expect(page.locator("figure:visible svg")).to_have_count(2)


def test_names_are_text(open_page, path):
    page = open_page(path)
    expect(page.get_by_role("heading", level=1)).to_have_text(f"How positions form: {NAME}")
    expect(page.locator("#said")).to_contain_text("It learns <b>.")


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_a_window_scrolls_in_one_direction(open_page, path, width):
    page = open_page(path, width, 800)
    assert page.evaluate(WIDTH) <= width


def test_axe_finds_nothing_wrong(open_page, path, dark):
    assert faults(open_page(path, dark=dark)) == {}
