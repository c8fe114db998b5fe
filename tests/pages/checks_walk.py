"""The walk through the model, in `minitx explore` and `minitx serve`: make test-page."""

import re
from pathlib import Path

import explored
import pytest
from explored import faults, minus, settle
from playwright.sync_api import expect

import minitx
from minitx.analysis.machine import language

ZOO = Path(__file__).parents[2] / "weights/zoo"
TEXT = "The old man said that he"
MODELS = ("tiny-gpt2",)
STEPS = 10
SEEN = """x => { const {top, bottom} = x.getBoundingClientRect(),
  {top: end} = document.querySelector("#walk").getBoundingClientRect();
  return top >= 0 && top < end && bottom > 0; }"""


@pytest.fixture
def walk(explored_page):
    """walk(model, hash, language, …) -> (the page of `minitx explore`, its walk)."""

    def walk(name="tiny-gpt2", hash_="", of="en", text=TEXT, width=1280, **theme):
        with language.using(of):
            page = explored_page(name, text, width, 800, **theme)
        if hash_:
            page.evaluate(f"location.hash = '{hash_}'")
        return settle(page), page.locator("#walk")

    return walk


def lit(page):
    """The one thing that is lit, which is in sight; its id."""
    settle(page)
    page.evaluate(explored.FRAMES)
    expect(page.locator(".lit")).to_have_count(1)
    assert page.locator(".lit").evaluate(SEEN)
    return page.locator(".lit").get_attribute("id")


LIT = "tokens stream joint overview matrix values stream stream lens guesses".split()


def said(walk):
    """What a step says."""
    return walk.locator("p").text_content()


# its numbers


def test_steps_say_the_numbers_of_this_text(walk):
    """Those that NumPy gives, of the last token in the sharpest head."""
    page, box = walk()
    page.locator("#to-walk").click()
    model = minitx.load("tiny-gpt2")
    trace = minitx.run(model, TEXT)
    head = page.evaluate("minitx.state.head")
    layer, own = divmod(head, model.config.n_heads)
    row = trace["pattern", layer][0, own, -1]
    key = int(row.argmax())
    score = trace["scores", layer][0, own, -1, key]
    length = {name: (trace[name][0, -1] ** 2).sum() ** 0.5 for name in ("embed", "pos_embed")}
    mlp = (trace["mlp_out", layer][0, -1] ** 2).sum() ** 0.5
    guess = trace["logits"][0, -1].argmax()
    lengths = [f"{length[name]:.2f}" for name in ("embed", "pos_embed")]
    piece = model.tokenizer.pieces([guess])[0].replace(" ", "␣")
    wanted = {1: f"has length {lengths[0]}"}
    wanted[2] = "one of length {1} to one of length {0}".format(*lengths)
    wanted[3] = f"({key}) gets the most weight of the query"
    wanted[4] = f"({key}): {minus(score, '.2f')}"
    wanted[5] = f"= {row[key]:.2f}, the weight of"
    wanted |= {6: f"takes {row[key]:.2f} of", 8: f"a vector of length {mlp:.2f}", 10: piece}
    for step in range(1, STEPS + 1):
        expect(box.locator("h2")).to_have_text(re.compile(f"^Step {step} of {STEPS}: "))
        assert wanted.get(step, "") in said(box)
        if step < STEPS:
            box.get_by_role("button", name="next").click()


# without the mouse, without the keyboard


@pytest.mark.parametrize("of", ["en", "ja"])
def test_the_walk_is_followed_without_the_mouse(walk, of):
    """The focus is seen at every step, and comes back to where the walk began."""
    page, box = walk(of=of)
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(page.locator("#to-walk")).to_be_focused()
    page.keyboard.press("Enter")
    texts = []
    for view in LIT:
        assert lit(page) == view
        texts.append(said(box))
        expect(page.locator(":focus-visible")).to_be_in_viewport(ratio=1)
        assert box.evaluate("x => x.contains(document.activeElement)")
        page.keyboard.press("ArrowRight" if len(texts) % 2 else "Enter")
        if len(texts) == STEPS - 1:  # the last has no next step: the focus is on its end
            expect(box.locator(".end")).to_be_focused()
    assert len({*texts}) == STEPS
    if of == "ja":
        assert all(re.search("[\\u3041-\\u30ff]", text) for text in texts)
    page.keyboard.press("Escape")
    expect(box).to_be_hidden()
    expect(page.locator("#to-walk")).to_be_focused()
    expect(page.locator(".lit")).to_have_count(0)


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("of", ["en", "ja"])
def test_the_walk_is_followed_without_the_keyboard(walk, of, width):
    """There and back; a view that is folded is opened."""
    page, box = walk(of=of, width=width)
    page.locator("#to-walk").click()
    for step, view in enumerate(LIT, 1):
        assert lit(page) == view
        expect(box).to_be_in_viewport()
        if step < STEPS:
            box.locator(".next").click()
    expect(box.locator(".next")).to_be_hidden()
    box.locator(".back").click()
    assert lit(page) == LIT[-2]
    assert page.evaluate(explored.WIDTH) <= width
    box.locator(".end").click()
    expect(box).to_be_hidden()


def test_a_step_is_read_aloud_once(walk):
    page, box = walk()
    page.locator("#to-walk").click()
    expect(box.get_by_role("status")).to_have_attribute("aria-live", "polite")
    page.evaluate(
        "new MutationObserver(all => { window.told = (window.told ?? 0) + all.length })"
        ".observe(document.querySelector('#walk [role=status]'), {subtree: true, childList: true})"
    )
    page.set_viewport_size({"width": 1100, "height": 800})  # all is drawn anew
    settle(page)
    assert page.evaluate("window.told ?? 0") == 0
    box.locator(".next").click()
    assert page.evaluate("window.told") == 2  # its title and its text


@pytest.mark.parametrize("width", [320, 1920])
def test_axe_finds_nothing_wrong(walk, dark, width):
    page, _ = walk(hash_="walk=5", width=width, dark=dark)
    assert lit(page) == "matrix"
    assert page.evaluate(explored.WIDTH) <= width
    assert faults(page) == {}


# its address


def test_a_step_has_an_address_and_the_browser_goes_back(walk):
    page, box = walk()
    page.locator("#to-walk").click()
    box.locator(".next").click()
    expect(page).to_have_url(re.compile("walk=2"))
    page.wait_for_timeout(250)  # what follows at once is the same step of the history
    box.locator(".next").click()
    expect(page).to_have_url(re.compile("walk=3"))
    page.wait_for_timeout(250)
    explored.go(page, -1)
    expect(box.locator("h2")).to_contain_text("Step 2 of")
    page, box = walk(hash_="walk=4&head=L1H2&token=3")
    expect(box.locator("h2")).to_contain_text("Step 4 of")
    assert lit(page) == LIT[3]
    assert "(3)" in said(box)
    page, box = walk(hash_="walk=77")
    expect(box.locator("h2")).to_contain_text(f"Step {STEPS} of {STEPS}")


# other models


def test_what_a_model_lacks_is_left_out_or_said_otherwise(walk):
    """A picture has no guesses by layer; rotary positions have no table."""
    _, box = walk("tiny-vit", "walk=9", text="sample:0")
    expect(box.locator("h2")).to_have_text("Step 9 of 9: guess")
    assert "The likeliest class is" in said(box)
    _, box = walk("tiny-bart", "walk=9", text="the 3rd of May, 1912")
    expect(box.locator("h2")).to_have_text("Step 9 of 9: guess")  # of the encoder
    assert "The decoder reads them" in said(box)
    for name, says in {"rotary": "heads turn queries and keys", "alibi": "fall with the"}.items():
        page, box = walk(ZOO / f"causal-{name}", "walk=2")
        assert lit(page) == "profile"
        assert says in said(box) and "(chance" in said(box)


# the live page


def test_the_live_page_walks_through_what_is_typed(live):
    page = live("walk=10", height=800)
    expect(page.locator("#walk h2")).to_contain_text("Step 10 of 10")
    before = said(page.locator("#walk"))
    page.locator("#live-text").fill("She went into the house and")
    expect(page.locator("#walk p")).not_to_have_text(before)
    expect(page.locator("#walk h2")).to_contain_text("Step 10 of 10")
