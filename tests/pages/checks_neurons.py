"""A query times a key, element by element, in the live page: make test-page."""

import re

import explored
import numpy as np
import pytest
from explored import faults, minus, number, settle
from playwright.sync_api import expect

import minitx

TEXT = "The old man said that he"
MODELS = ("tiny-gpt2",)
SHOWN = 16


def opened(page):
    """The live page with its neurons open."""
    page.locator("#neurons summary").click()
    expect(page.locator("#neurons svg").last).to_be_visible()
    return page


def rows(page):
    """What the bars say: [(element or None, product)]."""
    texts = page.locator("#neurons .plot svg text").all_text_contents()
    names = [text for text in texts if re.match(r"element|\d+ others", text)]
    numbers = [text for text in texts if re.fullmatch(r"−?\d+\.\d\d", text)][-len(names) :]
    return dict(zip(names, map(number, numbers), strict=True))


def test_products_are_those_of_numpy_for_the_key_that_is_chosen(live):
    page = opened(live("head=L1H2&token=4"))
    trace = minitx.run(minitx.load("tiny-gpt2"), TEXT)
    strongest = int(trace["pattern", 1][0, 2, 4].argmax())
    chooser = page.locator("#key-of-0")
    expect(chooser).to_have_value(str(strongest))
    for key in (strongest, 1):
        chooser.select_option(str(key))
        score = minus(trace["scores", 1][0, 2, 4, key], ".2f")
        expect(page.locator("#neurons")).to_contain_text(f"add up to {score}")
        settle(page)
        products = trace["q", 1][0, 2, 4] * trace["k", 1][0, 2, key] / np.sqrt(32)
        largest = np.argsort(-abs(products))[:SHOWN]
        shown = rows(page)
        assert [*shown] == [*(f"element {e}" for e in largest), f"{32 - SHOWN} others"]
        assert [*shown.values()][:SHOWN] == pytest.approx(products[largest], abs=0.0051)
    expect(page).to_have_url(re.compile("partner=1"))
    explored.click(explored.head(page, "L0H1"))
    expect(page).not_to_have_url(re.compile("partner"))


def test_the_walk_opens_and_lights_the_product(live):
    page = live("walk=4", 390, 844)
    expect(page.locator("#neurons svg").first).to_be_in_viewport()
    expect(page.locator("#neurons svg").last).to_be_visible()
    expect(page.locator(".lit")).to_have_attribute("id", "neurons")


@pytest.mark.parametrize("width", [390, 1280])
def test_axe_finds_nothing_wrong(live, width, dark):
    page = opened(live("head=L1H2&token=4", width, dark=dark))
    assert page.evaluate(explored.WIDTH) <= width
    assert faults(page, "#neurons") == {}
