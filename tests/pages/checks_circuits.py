"""Who wrote a guess, kinds of heads, patching, heads that are off, in a browser: make test-page."""

import re

import explored
import pytest
from explored import faults, minus, part, tokens, view
from playwright.sync_api import expect

import minitx
from minitx.analysis.pages import logit_attribution

SENTENCE = "cat dog red milk cat dog"
TEXT = "The old man said that he"
MODELS = "tiny-gpt2", "tiny-induction"


@pytest.fixture
def open_writers(explored_page):
    """open_writers(dark) -> the page of the sentence, with all its views drawn."""

    def open_writers(dark=False):
        page = explored_page("tiny-induction", SENTENCE, dark=dark)
        explored.head_by_head(page)
        page.evaluate("minitx.drawAll()")
        return page

    return open_writers


@pytest.fixture
def page(open_writers):
    return open_writers()


def panel(page):
    """What is said of the chosen head."""
    return view(page, "writers").locator(".written")


def test_a_click_on_a_head_says_what_it_wrote(page):
    model = minitx.load("tiny-induction")
    ids = model.tokenizer.encode(SENTENCE)
    last = len(ids) - 1
    (place,) = logit_attribution.of_text(model, ids, [last])
    numbers = [f"L{layer}H{head}" for _, layer, head in logit_attribution.components(model)[:16]]
    for k in (0, 3):
        component = place.heads[k]
        explored.click(explored.head(page, numbers[component]))
        text = panel(page)
        wrote = minus(place.parts[0, component], "+.2f")
        expect(text).to_contain_text(f"{numbers[component]} wrote {wrote}")
        word = model.tokenizer.pieces(place.words[k])[0].replace(" ", "␣")
        raised = minus(place.raised[k, 0], "+.2f")
        expect(text).to_contain_text(f"Raises most “{word}” {raised}")
        label = tokens(page).nth(int(place.sources[k, 0])).text_content()
        expect(text).to_contain_text(f"Took that from “{label}” ({int(place.sources[k, 0])})")


def test_a_click_in_the_map_chooses_its_head(page):
    cells = view(page, "writers").locator("svg [aria-label=rect]").first.locator(":is(rect, path)")
    explored.click(cells.nth(10))
    explored.expect_selected(explored.head(page, "L1H2"))
    expect(panel(page)).to_contain_text("L1H2 wrote")


def test_another_guess_and_another_token(page):
    page.locator("#writers").get_by_label("Which guess").select_option("second guess")
    second = view(page, "guesses").locator(".bars li").nth(1).locator("span").first.text_content()
    expect(panel(page)).to_contain_text(f"towards “{second}”")
    view(page, "guesses").locator(".bars li").nth(2).click()
    expect(page.locator("#writers").get_by_label("Which guess")).to_have_value("third guess")
    tokens(page).nth(2).click()
    expect(page.locator("#writers .hint")).to_contain_text("(2)")


def test_heads_of_a_kind_are_labelled_and_listed(page):
    letters = view(page, "heads").locator("svg [aria-label=text]").get_by_text("I", exact=True)
    expect(letters).to_have_count(8)
    page.get_by_label("Only heads of one kind").select_option("induction heads")
    expect(explored.heads(page)).to_have_count(8)
    explored.click(explored.heads(page).first)
    expect(explored.readout(page)).to_contain_text(re.compile(r"induction heads: .* 99.0% of its"))
    page.get_by_label("Only heads of one kind").select_option("duplicate heads")
    expect(explored.heads(page)).to_have_count(0)
    expect(page).to_have_url(re.compile("kind=duplicate"))


def test_axe_finds_nothing_wrong(open_writers, dark):
    page = open_writers(dark)
    for name in "#writers", "#heads":
        assert faults(page, name) == {}


# the live page


def test_writers_and_kinds_come_from_the_server(live):
    page = live()
    explored.head_by_head(page)
    page.evaluate("minitx.drawAll()")
    expect(panel(page)).to_contain_text(" wrote ")
    expect(page.locator("#heads .hint")).to_contain_text("such as −1, the token before")
    part(page, "model").select_option("tiny-induction")
    part(page, "text").fill(SENTENCE)
    expect(page.locator("#heads .hint")).to_contain_text("I induction")


def test_a_head_that_is_off_looks_off(live):
    page = live()
    explored.head_by_head(page)
    explored.click(explored.head(page, "L0H1"))
    page.get_by_text("Change the model", exact=True).click()
    part(page, "heads_off").click()
    expect(page.locator("#matrix")).to_have_class(re.compile("off"))
    expect(page.locator("#matrix .hint")).to_contain_text("off: what it reads is not written")
    expect(explored.readout(page)).to_contain_text("off: what it reads is not written")
    expect(page.locator("#compared")).to_contain_text(
        "(it is off there: what it reads is not written)"
    )
    expect(panel(page)).to_contain_text("L0H1 wrote 0.00")
    explored.click(explored.head(page, "L0H2"))
    expect(page.locator("#matrix")).not_to_have_class(re.compile("off"))


def test_two_texts_are_patched_or_refused(live):
    page = live()
    page.get_by_text("Compare with a second text").click()
    part(page, "other").fill(f"{TEXT} is")
    expect(part(page, "patch-says")).to_contain_text("7 tokens; the first text has 6")
    part(page, "patch-go").click()
    expect(part(page, "patch-says")).to_contain_text("the first text has 6 tokens, the second 7")
    part(page, "other").fill("The old man went so she")
    part(page, "patch-go").click()
    expect(part(page, "patch-says")).to_contain_text("logit of “␣was” minus logit of “␣went”")
    maps = part(page, "patch-maps").get_by_role("img")
    expect(maps).to_have_count(4)
    expect(part(page, "patch-maps")).to_contain_text("second text into the first")
    expect(part(page, "patch-maps")).to_contain_text("Most in a frame: before layer")
    expect(part(page, "patch-maps")).to_contain_text("differ carry all of it before layer 0")
    explored.click(
        maps.first.locator("svg [aria-label=rect]").first.locator(":is(rect, path)").nth(6)
    )
    explored.expect_selected(explored.head(page, "L1H2"))
    assert faults(page, "#live-patch") == {}
    page.reload()  # the second text stands in the address
    expect(part(page, "other")).to_have_value("The old man went so she")
    expect(part(page, "patch-maps").get_by_role("img")).to_have_count(4)
    part(page, "python").click()
    expect(part(page, "code")).to_contain_text("effects = circuits.patch(model, first, second")
    page.keyboard.press("Escape")
    part(page, "text").fill(f"{TEXT} and")  # whose maps these are not
    expect(part(page, "patch-maps").get_by_role("img")).to_have_count(0)
    expect(part(page, "patch-says")).to_contain_text("compare again")


def test_a_refused_comparison_is_forgotten_with_its_text(live):
    page = live()
    page.get_by_text("Compare with a second text").click()
    part(page, "other").fill(TEXT)
    part(page, "patch-go").click()
    expect(part(page, "patch-says")).to_contain_text("both texts are the same")
    part(page, "text").fill(f"{TEXT} is")  # so that they are no longer
    expect(part(page, "patch-says")).not_to_have_class(re.compile("failed"))


def test_the_tab_tells_model_and_text_and_a_refused_text_fades_the_views(live):
    page = live()
    part(page, "text").fill("She was old")
    expect(page).to_have_title(re.compile("tiny-gpt2: She was old"))
    part(page, "text").fill("a " * 400)
    expect(page.locator("body.refused")).to_have_count(1)
    for of_text in "#views", "#tokens", "#readout", "#live-guesses":
        expect(page.locator(of_text)).to_have_css("opacity", "0.35")
    part(page, "text").fill("She was")
    expect(page.locator("body.refused")).to_have_count(0)


def test_a_slow_server_fades_what_is_of_the_text_before(live):
    page = live()
    tokens, slow = page.locator("#tokens"), []

    def hold(route):
        slow.append(route)

    page.route("**/api/run", hold)
    part(page, "text").fill("She was old")
    expect(part(page, "status")).to_have_class("waits")
    expect(tokens).to_have_css("opacity", "1")
    expect(tokens).to_have_css("opacity", "0.35")  # after a second
    slow.pop().continue_()
    expect(tokens).to_have_css("opacity", "1")
    expect(tokens).to_contain_text("␣old")
