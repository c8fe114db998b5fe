"""The live page says what a guess depends on, what fits, what it does not show: make test-page."""

import re
from itertools import pairwise
from urllib.parse import quote

import explored
import numpy as np
import pytest
from explored import faults, minus, number, part, ready, settle
from playwright.sync_api import expect
from scipy.stats import spearmanr

from minitx.analysis.measures import attributions

TEXT = "The old man said that he"
LONG = "The old man told his wife that he had found the house, and she went with him. " * 11
MODELS = "tiny-gpt2", "tiny-bart", "tiny-vit"


def test_a_guess_says_which_tokens_it_depends_on(live, models):
    page = live()
    flow = page.locator("#flow")
    flow.get_by_role("button", name="Which tokens does it depend on?").click()
    expect(flow).to_contain_text("The two rank the 6 tokens alike by")
    expect(flow).to_contain_text(re.compile("random weights: up to .*Spearman"))
    expect(flow).to_contain_text(
        re.compile("(above|none is above) a model of random weights by both measures")
    )
    model = models["tiny-gpt2"]
    ids = model.tokenizer.encode(TEXT)
    wanted = attributions.asked(model, ids, place=5)
    parts = attributions.of_tokens(model, wanted, model.weights.W_E.mean(axis=0))
    correlation = spearmanr(parts.integrated, parts.ablated).statistic
    said = re.search("alike by (−?[0-9.]+), with", flow.text_content())[1]
    assert number(said) == pytest.approx(correlation, abs=0.006)
    most = int(abs(parts.integrated).argmax())
    assert f"({most}) {minus(parts.integrated[most], '+.2f')}" in flow.text_content()
    lost = attributions.of_heads(model, wanted).ablated
    layer, head = np.unravel_index(abs(lost).argmax(), lost.shape)
    largest = f"L{layer}H{head} {minus(lost[layer, head], '+.2f')}"
    expect(flow).to_contain_text(f"Heads: lost without each alone: {largest}")
    lost = attributions.lost_by_mlps(model, wanted)
    largest = f"MLP {abs(lost).argmax()} {minus(max(lost, key=abs), '+.2f')}"
    expect(flow).to_contain_text(f"MLPs: lost without each alone: {largest}")
    expect(page.locator("#pushes")).to_be_visible()  # the same, drawn
    assert faults(page, "#flow") == {}


def test_an_address_of_a_model_alone_begins_with_a_text_that_it_reads(live):
    for name, text in ("tiny-bart", "Friday the 3rd of May, 1912"), ("tiny-vit", "sample:0"):
        page = live(f"model={name}")
        expect(part(page, "status")).to_contain_text("Model unchanged")
        expect(part(page, "text")).to_have_value(text)


def test_a_text_that_is_too_long_is_cut_on_request(live, models):
    page = live(f"model=tiny-gpt2&text={quote(LONG * 2)}")
    expect(part(page, "status")).to_contain_text("at most 256")
    expect(page.locator("body")).to_have_class(re.compile("refused"))
    part(page, "status").get_by_role("button", name="cut it to what fits").click()
    expect(part(page, "status")).to_contain_text("Model unchanged")
    text = part(page, "text").input_value()
    assert (LONG * 2).startswith(text)
    n = len(models["tiny-gpt2"].tokenizer.encode(text))
    assert 240 < n <= 256 and f"{n} tokens" in part(page, "status").text_content()


def test_texts_that_fit_are_offered_and_one_click_compares(live, models):
    page = live()
    part(page, "patch").locator("summary").click()
    offers = part(page, "fits").get_by_role("button")
    expect(offers).to_have_count(3)  # examples, before anything is typed
    part(page, "other").fill("The old woman said that he")
    expect(part(page, "patch-says")).to_contain_text(
        "7 tokens; the first text has 6, and as many are needed. They differ in “␣man” (1) and"
    )
    expect(offers.first).to_contain_text("The old")
    tokenizer = models["tiny-gpt2"].tokenizer
    rows = np.array([tokenizer.encode(text) for text in offers.all_text_contents()])
    assert ((rows != tokenizer.encode(TEXT)).sum(axis=1) == 1).all()
    other = offers.first.text_content()
    offers.first.click()
    expect(part(page, "other")).to_have_value(other)
    expect(part(page, "patch-says")).to_contain_text(re.compile("Measured|same prediction"))
    assert faults(page, "#live-patch") == {}


def test_a_saved_page_says_what_was_patched(live, saved, open_page):
    page = live(f"other={quote('The old man went so she')}")
    expect(part(page, "patch-maps").get_by_role("img")).to_have_count(4)
    path = saved(part(page, "save"))
    alone = ready(open_page(path))
    says = alone.locator("#changed").text_content()
    assert "Compared with “The old man went so she”: logit of “␣was”" in says
    expect(part(page, "patch-maps")).to_contain_text("None of 16 exceeds an unrelated text")
    assert "No head carries 10 points more of the difference into the second text than an" in says
    maps = alone.locator("#patched")
    expect(maps.get_by_role("img")).to_have_count(4)
    expect(maps).to_contain_text("None of 16 exceeds an unrelated text")
    assert maps.locator("figcaption").all_text_contents() == (
        part(page, "patch-maps").locator("figcaption").all_text_contents()
    )
    explored.click(maps.locator("svg [aria-label=rect]").first.locator(":is(rect, path)").nth(6))
    explored.expect_selected(explored.head(alone, "L1H2"))
    other = maps.locator("svg [aria-label=rect]").first.locator(":is(rect, path)").nth(1)
    other.hover(force=True)  # the click pinned no hover text
    expect(maps.locator("[aria-label=tip]").first).to_contain_text("L0H1")
    assert faults(alone, "#patched") == {}


def test_a_saved_page_has_the_tokens_that_were_asked_for(live, saved, open_page):
    page = live()
    flow = page.locator("#flow")
    flow.get_by_role("button", name="Which tokens does it depend on?").click()
    expect(flow).to_contain_text("The two rank the 6 tokens alike by")
    answer = flow.locator("p").filter(has_text="Tokens:").first.text_content()
    alone = ready(open_page(saved(part(page, "save"))))
    settle(alone)
    alone.evaluate("minitx.drawAll()")
    expect(alone.get_by_text("A saved copy")).to_be_visible()
    expect(alone.locator("#flow")).to_contain_text(answer)
    explored.tokens(alone).nth(2).click()
    expect(alone.locator("#flow")).to_contain_text(
        re.compile(r"in this file for the guess at .* \(5\) alone")
    )


def test_an_address_brings_back_the_tokens_that_were_asked_for(live):
    page = live()
    page.locator("#flow").get_by_role("button", name="Which tokens").click()
    expect(page.locator("#flow")).to_contain_text("The two rank the 6 tokens alike by")
    page.wait_for_url(re.compile("pushed=5"))
    other = live(page.url.partition("#")[2])
    expect(other.locator("#flow")).to_contain_text("The two rank the 6 tokens alike by")
    part(other, "text").fill("The old man said that she")  # of another text they are not asked for
    expect(part(other, "status")).to_contain_text("6 tokens")
    expect(other.locator("#flow")).to_contain_text("Which tokens does it depend on?")
    expect(other).not_to_have_url(re.compile("pushed"))


def test_of_a_changed_model_the_page_says_of_which_run_tokens_are_told(live):
    page = live("changes=%7B%22heads_off%22%3A%5B%5B0%2C1%5D%5D%7D&run=1")
    expect(page.locator("#flow")).to_contain_text("told of the model as it is: show that run.")


def test_a_matrix_of_a_long_text_says_what_it_does_not_show(live):
    page = live(f"text={quote(LONG)}&head=L1H2")
    settle(page)
    page.evaluate("minitx.drawAll()")
    matrix = page.locator("#matrix")
    expect(matrix).to_contain_text("keys are wider than this box")
    expect(matrix.locator(".plot")).to_have_class(re.compile("right"))
    looks = "x => [getComputedStyle(x).fontWeight, getComputedStyle(x, '::after').content]"
    assert matrix.locator(".plot").evaluate(looks) == ["400", "none"]  # not of a right guess
    ends = matrix.locator("[aria-label*='x-axis tick label'] text").evaluate_all(
        "all => all.map(x => x.getBoundingClientRect()).map(b => [b.left, b.right])"
    )
    assert all(a[1] + 2 < b[0] for a, b in pairwise(ends))  # no number runs into the next


def test_keys_of_the_larger_matrix_are_words(live):
    page = live()
    page.locator("#matrix .larger").click()
    settle(page)
    expect(page.locator("#matrix [aria-label*='x-axis tick label']")).to_contain_text("␣man")
    assert page.locator("#matrix").get_by_text("scroll").count() == 0


@pytest.mark.parametrize("kind", ["chromium"], indirect=True)  # which can be told to print
@pytest.mark.parametrize("text", [TEXT, LONG])
def test_a_printed_page_cuts_no_picture_and_keeps_titles_with_them(live, text):
    page = live(f"text={quote(text)}&head=L1H2")
    page.evaluate("minitx.drawAll()")
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 718, "height": 1000})  # A4 without its margins
    explored.settle(page)
    wide = page.locator(".plot svg").evaluate_all(
        "all => all.filter(x => x.getBoundingClientRect().right > 719).length"
    )
    assert wide == 0
    tall = page.locator(".plot svg").evaluate_all("all => all.map(x => x.clientHeight)")
    assert max(tall) < 900  # of the 1000 of a page: else its title stands on the page before
    inside = page.locator(".view").evaluate_all(
        "all => all.map(x => getComputedStyle(x).breakInside)"
    )
    assert {*inside} == {"avoid"}
    assert page.locator(":is(.icons, .controls, #live-save, #more, .beyond):visible").count() == 0
