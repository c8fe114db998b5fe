"""What the page of `minitx explore` begins with and keeps, and who can use it: make test-page.

Order: the page; the start; the address; lists and steps; a second text; narrow windows; axe.
"""

import re

import explored
import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from explored import click, head, point, ready, settle, tip, tokens, view
from playwright.sync_api import expect

import minitx
from minitx import weights
from minitx.analysis.pages import explore

SENTENCE = "The brown capybara is sleeping now."
OTHER = "The sleeping capybara is brown now."  # as many tokens, else there is no difference
WIDTH = "document.documentElement.scrollWidth"


@pytest.fixture(scope="module")
def model():
    return minitx.load(weights.find("tiny-gpt2"))


@pytest.fixture
def path(tmp_path, model):
    """The page of the sentence."""
    explore.write(model, "tiny-gpt2", SENTENCE, tmp_path / "page.html")
    return tmp_path / "page.html"


@pytest.fixture
def beside(tmp_path, model):
    """The page of two sentences."""
    second = (model, "tiny-gpt2", OTHER)
    explore.write(model, "tiny-gpt2", SENTENCE, tmp_path / "page.html", beside=second)
    return tmp_path / "page.html"


def sharpness(pattern):
    """1 - entropy / log(keys that are seen), mean of queries that see several. [N T T] -> [N]"""
    T = pattern.shape[-1]
    logs = np.log(np.maximum(pattern, 1e-30))
    entropy = -(pattern * logs).sum(axis=-1)[:, 1:]
    return (1 - entropy / np.log(np.arange(2, T + 1))).mean(axis=-1)


def test_it_starts_at_the_sharpest_head(open_page, path, model):
    pattern = minitx.run(model, SENTENCE, keep=["pattern"]).stack("pattern")[:, 0]
    H, T = pattern.shape[1:3]
    values = sharpness(pattern.reshape(-1, T, T))
    layer, number = divmod(int(values.argmax()), H)
    page = ready(open_page(path))
    option = head(page, f"L{layer}H{number}")
    explored.expect_selected(option)
    expect(option).to_have_attribute("aria-label", ending(f"sharpness {values.max():.2f}"))


def ending(text):
    """A pattern for what ends in this text."""
    return re.compile(re.escape(text) + "$")


def test_the_address_brings_the_state_back(open_page, path):
    """After a reload, and in a window that is given the address alone."""
    page = ready(open_page(path))
    click(head(page, "L1H1"))
    tokens(page).nth(3).click()
    page.get_by_label("what looks at it").check()
    page.locator("#lines").get_by_role("button", name="larger").click()
    page.get_by_role("button", name="dark colours").click()
    expect(page).to_have_url(re.compile("#.*theme=dark"))
    address = page.url
    page.reload()
    check_kept(page)
    other = open_page(path)
    other.evaluate("hash => { location.hash = hash; }", address.partition("#")[2])
    check_kept(other)


def check_kept(page):
    """Head, token, side, view and theme are those that were chosen."""
    explored.expect_selected(head(ready(page), "L1H1"))
    settle(page)
    assert explored.choice(page) == (3, "key")
    expect(page.locator("#lines").get_by_role("button", name="smaller")).to_be_visible()
    expect(page.get_by_role("button", name="light colours")).to_be_visible()


@pytest.mark.parametrize("hash_", ["head=L99H0&token=9999&run=7", "view=<b>&side=constructor", "%"])
def test_an_address_that_makes_no_sense_does_no_harm(open_page, path, hash_):
    page = ready(open_page(path))
    page.evaluate("hash => { location.hash = hash; }", hash_)
    settle(page)
    heads = page.get_by_role("listbox", name="Heads")
    expect(heads.locator("[aria-selected=true]")).to_have_count(1)


def test_heads_are_sorted_and_filtered(open_page, path):
    page = ready(open_page(path))
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


def test_a_step_is_explained_with_numbers(open_page, path):
    page = ready(open_page(path))
    settle(page)  # so that the click finds it where it was
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


def test_two_texts_and_their_difference(open_page, beside):
    page = ready(open_page(beside))
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


def test_a_choice_stands_in_the_address_at_once(open_page, beside):
    page = ready(open_page(beside))
    hash_ = page.get_by_label("the difference").evaluate("x => { x.click(); return location.hash }")
    assert "run=difference" in hash_
    page.wait_for_timeout(300)
    hash_ = tokens(page).nth(2).evaluate("x => { x.click(); return location.hash }")
    assert "token=2" in hash_


def test_the_difference_of_guesses_is_one_list_of_signed_numbers(open_page, beside, model):
    """What is likeliest in one of the runs, and what stands in the text."""
    page = ready(open_page(beside))
    page.get_by_label("the difference").check()
    tokens(page).nth(3).click()
    settle(page)
    p = []
    for text in (SENTENCE, OTHER):
        y = minitx.run(model, text, "logits")["logits"][0, 3].astype(float)
        p.append(np.exp(y - y.max()) / np.exp(y - y.max()).sum())
    best = [{*row.argsort()[-5:].tolist()} for row in p]
    expect(page.locator("#guesses .hint")).to_contain_text("not among the five likeliest")
    rows = page.locator(".changed-guesses tr").all()[1:]
    assert len(rows) == len(best[0] | best[1])
    said = {row.locator("td").first.text_content(): row for row in rows}
    for token in best[0] & best[1]:
        (piece,) = model.tokenizer.pieces([token])
        change = 100 * (p[1] - p[0])[token]
        expect(said[piece.replace(" ", "␣")].locator("td").nth(3)).to_have_text(
            f"{change:+.1f}".replace("-", "−")
        )
    for token in best[0] ^ best[1]:  # of which one run does not say how likely it is
        (piece,) = model.tokenizer.pieces([token])
        cell = said[piece.replace(" ", "␣")].locator("td").nth(3).text_content()
        numbers = [float(x.replace("−", "-")) for x in re.findall(r"[+−]\d+\.\d", cell)]
        change = 100 * (p[1] - p[0])[token]
        if len(numbers) == 1:  # an end alone
            numbers.insert(1 if numbers[0] > 0 else 0, 100 * np.sign(numbers[0]))
        assert numbers[0] - 0.06 <= change <= numbers[1] + 0.06


LONGER = "The big brown capybara is not sleeping now."


def test_texts_of_unequal_length_are_aligned(open_page, tmp_path, model):
    """A weight less that of its partners; what one text alone has is blank."""
    second = (model, "tiny-gpt2", LONGER)
    explore.write(model, "tiny-gpt2", SENTENCE, tmp_path / "page.html", beside=second)
    page = ready(open_page(tmp_path / "page.html"))
    page.get_by_label("the difference").check()
    click(head(page, "L0H3"))
    texts = SENTENCE, LONGER
    pieces = [model.tokenizer.pieces(model.tokenizer.encode(text)) for text in texts]
    patterns = [minitx.run(model, text, ("pattern", 0))["pattern", 0][0, 3] for text in texts]
    (before, after), last = (row.index(" is") for row in pieces), [len(row) - 1 for row in pieces]
    tokens(page).nth(last[1]).click()
    change = patterns[1][last[1], after] - patterns[0][last[0], before]
    wanted = f"weight {change:+.3f}".replace("-", "−")
    expect(tokens(page).nth(after)).to_have_attribute("aria-label", ending(wanted))
    alone = tokens(page).nth(pieces[1].index(" not"))
    expect(alone).to_have_attribute("aria-label", ending("weight –"))
    alone.click()
    expect(explored.readout(page)).to_contain_text(f"stands in “{LONGER[:30]}")
    expect(page.locator("#matrix .hint")).to_contain_text("aligned")


@pytest.fixture
def apart(tmp_path, model):
    """The page of two models with other numbers of heads: there is no difference."""
    second = (minitx.load("deep-roberta"), "deep-roberta", "A dog ran.")
    explore.write(model, "tiny-gpt2", SENTENCE, tmp_path / "page.html", beside=second)
    return tmp_path / "page.html"


def test_of_two_runs_every_view_shows_both_or_says_which(open_page, apart):
    page = ready(open_page(apart))
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


def test_rows_of_guesses_are_chosen_by_keys(open_page, path):
    page = ready(open_page(path))
    table, last = page.get_by_role("grid"), tokens(page).count() - 1
    table.focus()
    for key, number in [("ArrowDown", 0), ("ArrowDown", 1), ("End", last), ("ArrowUp", last - 1)]:
        page.keyboard.press(key)
        explored.expect_selected(tokens(page).nth(number))
        row = table.get_by_role("row").nth(number + 1)  # below the names of the columns
        explored.expect_selected(row)
        expect(table).to_be_focused()
        expect(table).to_have_attribute("aria-activedescendant", row.get_attribute("id"))
    page.keyboard.press("Escape")
    assert explored.choice(page)[0] is None


def test_a_hover_text_is_not_cut_off(open_page, path):
    """Of the heads, where few are listed, and beside the lines of a narrow window."""
    page = ready(open_page(path, 390, 800))
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


def test_the_first_sentence_leads_to_the_heads(open_page, path):
    page = ready(open_page(path, 1280, 700))
    page.get_by_role("button", name="Choose a head").click()
    expect(page.get_by_role("listbox", name="Heads")).to_be_focused()
    expect(page.get_by_role("heading", name="All heads")).to_be_in_viewport()


@pytest.mark.parametrize("width", [320, 390])
def test_a_telephone_scrolls_in_one_direction(open_page, beside, width):
    """Also while a view is made larger."""
    page = ready(open_page(beside, width, 800))
    settle(page)
    assert page.evaluate(WIDTH) <= width
    page.get_by_label("the difference").check()
    settle(page)
    assert page.evaluate(WIDTH) <= width
    for name in ("heads", "matrix"):
        page.locator(f"#{name}").get_by_role("button", name="larger").click()
        settle(page)
        assert page.evaluate(WIDTH) <= width


@pytest.mark.parametrize("dark", [False, True])
def test_axe_has_no_complaint(open_page, beside, dark):
    """The rules of axe-core that hold for every page (WCAG 2 A and AA, and good practice)."""
    page = ready(open_page(beside, dark=dark))
    tokens(page).nth(3).click()
    settle(page)
    report = Axe().run(page).response
    faults = {x["id"]: [node["html"] for node in x["nodes"]] for x in report["violations"]}
    assert faults == {}
    assert len(report["passes"]) > 20  # it has looked
