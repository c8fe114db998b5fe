"""What a guess comes from, in a browser: make test-page."""

import re

import explored
import numpy as np
import pytest
from explored import faults, minus, tokens, view
from playwright.sync_api import expect
from scipy.stats import spearmanr

from minitx.analysis.pages import explore, packing

MODEL = "tiny-roberta"
SENTENCE = "The old man <mask> down the road."
BARS = "[aria-label=rect] :is(rect, path)"


@pytest.fixture
def opened(explored_page):
    """opened(dark, …) -> the page of the sentence with all its views drawn."""

    def opened(dark=False, attribution=True):
        page = explored_page(MODEL, SENTENCE, dark=dark, attribution=attribution)
        page.evaluate("minitx.drawAll()")
        return page

    return opened


def heights(page):
    """Height of each token's bar, below the axis negative."""
    script = """bars => {
      const less = getComputedStyle(document.documentElement).getPropertyValue("--less").trim();
      return bars.map(bar => (bar.getAttribute("fill") === less ? -1 : 1) *
        bar.getBoundingClientRect().height);
    }"""
    plot = view(page, "pushes").locator("svg").first
    return np.array(plot.locator(BARS).evaluate_all(script))


def test_bars_and_cells_are_the_numbers(opened, model):
    page = opened()
    content = explore.pushes.of_text(model, explore.readable(model, SENTENCE))
    wanted = packing.unpack(content["tokens"])
    assert np.corrcoef(heights(page), wanted[0, 0])[0, 1] > 0.999
    page.get_by_label("Of which weights").select_option("random weights (chance)")
    explored.settle(page)
    assert np.corrcoef(heights(page), wanted[1, 0])[0, 1] > 0.999
    page.get_by_label("How it is measured").select_option("lost without it")
    explored.settle(page)
    assert np.corrcoef(heights(page), wanted[1, 2])[0, 1] > 0.999
    shown = view(page, "pushes").locator("svg").nth(1).locator("text").all_text_contents()
    heads = packing.unpack(content["heads"])[1, 2]
    assert minus(heads[0, 1], "+.2f") in " ".join(shown)


def test_the_gap_and_the_null_are_said(opened):
    page = opened()
    hint = page.locator("#pushes .hint")
    expect(hint).to_contain_text("up to a gap of 0.0")
    expect(hint).to_contain_text("at token 4, “<mask>”")
    expect(hint).not_to_contain_text("nothing was learned")
    page.get_by_label("Of which weights").select_option("random weights (chance)")
    expect(hint).to_contain_text("nothing was learned")
    page.get_by_label("How it is measured").select_option("gradient × input")
    expect(hint).to_contain_text("need not add up")
    expect(hint).not_to_contain_text("gap")


def test_how_far_a_way_agrees_with_what_is_lost_is_said(opened, model):
    page = opened()
    hint = page.locator("#pushes .hint")
    content = explore.pushes.of_text(model, explore.readable(model, SENTENCE))
    by_way = packing.unpack(content["tokens"])[0]
    for i, way in enumerate(("integrated gradients", "gradient × input")):
        page.get_by_label("How it is measured").select_option(way)
        expect(hint).to_contain_text(f"correlation of {spearmanr(by_way[i], by_way[2])[0]:.2f}.")
    page.get_by_label("How it is measured").select_option("lost without it")
    expect(hint).not_to_contain_text("correlation")


def test_a_link_keeps_what_was_chosen(opened):
    page = opened()
    page.get_by_label("How it is measured").select_option("lost without it")
    expect(page).to_have_url(re.compile("way=lost"))
    page.reload()
    expect(page.get_by_label("How it is measured")).to_have_value("lost without it")


def test_a_head_and_a_token_are_chosen_by_a_click_and_by_keys(opened):
    page = opened()
    tokens(page).nth(2).click()
    explored.expect_selected(tokens(page).nth(2))
    outlined = view(page, "pushes").locator("svg").first.locator("[aria-label=rect]").nth(1)
    expect(outlined.locator(":is(rect, path)")).to_have_count(1)
    select = page.get_by_label("Of which weights")
    select.focus()
    page.keyboard.press("ArrowDown")
    expect(select).to_have_value("random weights (chance)")


def test_axe_finds_nothing_wrong(opened, dark):
    assert faults(opened(dark), "#pushes") == {}


def test_a_page_without_it_has_no_such_view(opened):
    expect(opened(attribution=False).locator("#pushes")).to_be_hidden()
