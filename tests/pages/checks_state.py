"""What the page of `minitx explore` begins with and keeps, and who can use it: make test-page."""

import re
from functools import partial

import explored
import numpy as np
import pytest
from explored import (
    WIDTH,
    click,
    faults,
    head,
    minus,
    number,
    point,
    ready,
    settle,
    tip,
    tokens,
    view,
)
from playwright.sync_api import expect
from scipy.special import softmax

import minitx

MODEL = "tiny-gpt2"
SENTENCE = "The brown capybara is sleeping now."
OTHER = "The sleeping capybara is brown now."  # as many tokens, else there is no difference


@pytest.fixture
def shown(explored_page):
    """shown(width, …) -> the page of the sentence."""
    return partial(explored_page, MODEL, SENTENCE)


@pytest.fixture
def compared(shown, model):
    """compared(text, width, …) -> the page of the sentence and another text."""

    def compared(text, *size, **theme):
        return shown(*size, beside=(model, MODEL, text), **theme)

    return compared


def sharpness(pattern):
    """1 - entropy / log(keys that are seen), mean of queries that see several. [N T T] -> [N]"""
    T = pattern.shape[-1]
    logs = np.log(np.maximum(pattern, 1e-30))
    entropy = -(pattern * logs).sum(axis=-1)[:, 1:]
    return (1 - entropy / np.log(np.arange(2, T + 1))).mean(axis=-1)


def test_it_starts_at_the_sharpest_head(shown, model):
    pattern = minitx.run(model, SENTENCE, keep=["pattern"]).stack("pattern")[:, 0]
    H, T = pattern.shape[1:3]
    values = sharpness(pattern.reshape(-1, T, T))
    layer, number = divmod(int(values.argmax()), H)
    page = shown()
    option = head(page, f"L{layer}H{number}")
    explored.expect_selected(option)
    expect(option).to_have_attribute("aria-label", ending(f"sharpness {values.max():.2f}"))


def ending(text):
    """A pattern for what ends in this text."""
    return re.compile(re.escape(text) + "$")


def test_the_address_brings_the_state_back(shown):
    """After a reload, and in a window that is given the address alone."""
    page = shown()
    click(head(page, "L1H1"))
    tokens(page).nth(3).click()
    page.get_by_label("what looks at it").check()
    page.locator("#lines").get_by_role("button", name="larger").click()
    page.get_by_role("button", name="dark colours").click()
    expect(page).to_have_url(re.compile("#.*theme=dark"))
    address = page.url
    page.reload()
    check_kept(page)
    other = shown()
    other.evaluate("hash => { location.hash = hash; }", address.partition("#")[2])
    check_kept(other)


def check_kept(page):
    """Head, token, side, view and theme are those that were chosen."""
    explored.expect_selected(head(settle(ready(page)), "L1H1"))
    assert explored.choice(page) == (3, "key")
    expect(page.locator("#lines").get_by_role("button", name="smaller")).to_be_visible()
    expect(page.get_by_role("button", name="light colours")).to_be_visible()


@pytest.mark.parametrize("hash_", ["head=L99H0&token=9999&run=7", "view=<b>&side=constructor", "%"])
def test_an_address_that_makes_no_sense_does_no_harm(shown, hash_):
    page = shown()
    page.evaluate("hash => { location.hash = hash; }", hash_)
    settle(page)
    heads = page.get_by_role("listbox", name="Heads")
    expect(heads.locator("[aria-selected=true]")).to_have_count(1)


def test_heads_are_sorted_and_filtered(shown):
    page = shown()
    heads = page.get_by_role("listbox", name="Heads").get_by_role("option")
    total = heads.count()
    page.get_by_label("In which order").select_option("sharpest first")
    settle(page)
    names = [option.get_attribute("aria-label") for option in heads.all()]
    values = [float(re.search(r"sharpness ([\d.]+)", name)[1]) for name in names]
    assert len(values) == total and values == sorted(values, reverse=True)
    page.get_by_label("Only heads of one layer").select_option("layer 1")
    settle(page)
    names = [option.get_attribute("aria-label") for option in heads.all()]
    assert 0 < len(names) < total and all(name.startswith("L1H") for name in names)


def test_a_step_is_explained_with_numbers(shown):
    page = shown()
    page.get_by_role("heading", name="The whole pass, step by step").click()
    steps = page.get_by_role("group", name="The whole pass").get_by_role("button")
    said = page.locator("#overview").get_by_role("status")
    expect(steps.first).to_be_visible()  # once it is drawn
    sentences = set()
    for n in range(steps.count()):
        steps.nth(n).click()
        sentences.add(said.text_content())
    assert len(sentences) == steps.count() >= 4
    assert all(re.search(r"\d", sentence) for sentence in sentences)


def test_two_texts_and_their_difference(compared):
    page = compared(OTHER)
    click(head(page, "L0H0"))
    runs = page.get_by_role("group", name="Show", exact=True).get_by_role("radio")
    expect(runs).to_have_count(3)
    seen = []
    for n in range(3):
        runs.nth(n).check()
        settle(page)
        explored.expect_selected(head(page, "L0H0"))  # the head stays
        seen.append(view(page, "matrix").inner_html())
    assert len(set(seen)) == 3
    expect(page.locator("#matrix .hint")).to_contain_text("adds up to 0")


def test_a_choice_stands_in_the_address_at_once(compared):
    page = compared(OTHER)
    hash_ = page.get_by_label("the difference").evaluate("x => { x.click(); return location.hash }")
    assert "run=difference" in hash_
    page.wait_for_timeout(300)
    hash_ = tokens(page).nth(2).evaluate("x => { x.click(); return location.hash }")
    assert "token=2" in hash_


def test_the_difference_of_guesses_is_one_list_of_signed_numbers(compared, model):
    """What is likeliest in one of the runs, and what stands in the text."""
    page = compared(OTHER)
    page.get_by_label("the difference").check()
    tokens(page).nth(3).click()
    settle(page)
    y = [minitx.run(model, text, "logits")["logits"][0, 3] for text in (SENTENCE, OTHER)]
    p = softmax(np.array(y, float), axis=1)
    best = [{*row.argsort()[-5:].tolist()} for row in p]
    expect(page.locator("#guesses .hint")).to_contain_text("not among the five likeliest")
    rows = page.locator(".changed-guesses tr").all()[1:]
    assert len(rows) == len(best[0] | best[1])
    said = {row.locator("td").first.text_content(): row for row in rows}
    for token in best[0] & best[1]:
        (piece,) = model.tokenizer.pieces([token])
        change = 100 * (p[1] - p[0])[token]
        expect(said[piece.replace(" ", "␣")].locator("td").nth(3)).to_have_text(
            minus(change, "+.1f")
        )
    for token in best[0] ^ best[1]:  # of which one run does not say how likely it is
        (piece,) = model.tokenizer.pieces([token])
        cell = said[piece.replace(" ", "␣")].locator("td").nth(3).text_content()
        numbers = [number(x) for x in re.findall(r"[+−]\d+\.\d", cell)]
        change = 100 * (p[1] - p[0])[token]
        if len(numbers) == 1:  # an end alone
            numbers.insert(1 if numbers[0] > 0 else 0, 100 * np.sign(numbers[0]))
        assert numbers[0] - 0.06 <= change <= numbers[1] + 0.06


LONGER = "The big brown capybara is not sleeping now."


def test_texts_of_unequal_length_are_aligned(compared, model):
    """A weight less that of its partners; what one text alone has is blank."""
    page = compared(LONGER)
    page.get_by_label("the difference").check()
    click(head(page, "L0H3"))
    texts = SENTENCE, LONGER
    pieces = [model.tokenizer.pieces(model.tokenizer.encode(text)) for text in texts]
    patterns = [minitx.run(model, text, ("pattern", 0))["pattern", 0][0, 3] for text in texts]
    (before, after), last = (row.index(" is") for row in pieces), [len(row) - 1 for row in pieces]
    tokens(page).nth(last[1]).click()
    change = patterns[1][last[1], after] - patterns[0][last[0], before]
    wanted = ending(f"weight {minus(change, '+.3f')}")
    expect(tokens(page).nth(after)).to_have_attribute("aria-label", wanted)
    alone = tokens(page).nth(pieces[1].index(" not"))
    expect(alone).to_have_attribute("aria-label", ending("weight –"))
    alone.click()
    expect(explored.readout(page)).to_contain_text(f"stands in “{LONGER[:30]}")
    expect(page.locator("#matrix .hint")).to_contain_text("aligned")


def test_of_two_runs_every_view_shows_both_or_says_which(shown):
    """Of two models with other numbers of heads: there is no difference."""
    page = shown(beside=(minitx.load("deep-roberta"), "deep-roberta", "A dog ran."))
    page.get_by_role("group", name="Show", exact=True).get_by_role("radio").nth(2).check()
    settle(page)
    both = "joint", "lines", "columns", "matrix", "profile", "values", "guesses", "stream", "lens"
    runs = page.evaluate("page.runs.map(run => run.name)")
    for name in both:
        for text in runs:
            assert view(page, name).get_by_text(text, exact=True).count() >= 1, (name, text)
    expect(page.locator("#joint table th")).to_have_text(runs)
    expect(page.get_by_role("grid")).to_have_count(2)
    for name in ("heads", "overview"):
        expect(page.locator(f"#{name} .hint")).to_contain_text(f" of “{runs[0][:30]}")
    expect(page.locator("#compared")).to_contain_text(f" of “{runs[0]}”")


def test_rows_of_guesses_are_chosen_by_keys(shown):
    page = shown()
    table, last = page.get_by_role("grid"), tokens(page).count() - 1
    table.focus()
    for key, n in [("ArrowDown", 0), ("ArrowDown", 1), ("End", last), ("ArrowUp", last - 1)]:
        page.keyboard.press(key)
        explored.expect_selected(tokens(page).nth(n))
        row = table.get_by_role("row").nth(n + 1)  # below the names of the columns
        explored.expect_selected(row)
        expect(table).to_be_focused()
        expect(table).to_have_attribute("aria-activedescendant", row.get_attribute("id"))
    page.keyboard.press("Escape")
    assert explored.choice(page)[0] is None


def test_a_hover_text_is_not_cut_off(shown):
    """Of the heads, where few are listed, and beside the lines of a narrow window."""
    page = shown(390, 800)
    page.get_by_label("Only heads of one layer").select_option("layer 1")
    settle(page)
    page.get_by_role("heading", name="who looks at whom").click()
    for name, drawn in (
        ("heads", explored.heads(page).first),
        ("lines", explored.names(page, 0).first),
    ):
        point(drawn)
        text, box = (x.bounding_box() for x in (tip(page, name).locator("path"), view(page, name)))
        assert text["width"] > 100
        for side, size in (("x", "width"), ("y", "height")):
            assert text[side] >= box[side] - 3  # its outline and shadow
            assert text[side] + text[size] <= box[side] + box[size] + 3


def test_the_first_sentence_leads_to_the_heads(shown):
    page = shown(1280, 700)
    page.get_by_role("button", name="Choose a head").click()
    expect(page.get_by_role("listbox", name="Heads")).to_be_focused()
    expect(page.get_by_role("heading", name="All heads")).to_be_in_viewport()


@pytest.mark.parametrize("width", [320, 390])
def test_a_telephone_scrolls_in_one_direction(compared, width):
    """Also while a view is made larger."""
    page = compared(OTHER, width, 800)
    assert page.evaluate(WIDTH) <= width
    page.get_by_label("the difference").check()
    settle(page)
    assert page.evaluate(WIDTH) <= width
    for name in ("heads", "matrix"):
        page.locator(f"#{name}").get_by_role("button", name="larger").click()
        settle(page)
        assert page.evaluate(WIDTH) <= width


def test_axe_has_no_complaint(compared, dark):
    page = compared(OTHER, dark=dark)
    tokens(page).nth(3).click()
    assert faults(settle(page)) == {}
