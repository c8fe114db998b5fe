"""How the pages of `minitx serve` and `minitx explore` are laid out: make test-page."""

import re

import explored
import numpy as np
import pytest
from explored import WIDTH, click, faults, head, settle, tokens, view
from playwright.sync_api import expect

import minitx
from minitx.analysis.contract import own_texts
from minitx.analysis.texts import corpus

TEXT = "He looked at her, and then he went out of the room."
MODELS = "tiny-roberta", "tiny-gpt2", "tiny-bart"
LONG = (
    "The old man said that he had never seen such a thing in all his life, and that he would go to "
    "the sea in the morning to look for it again, if the wind was good and the boat was ready when "
    "the sun came up over the hill."
)
HEBREW = "שלום לכולם"
HEIGHT = "document.documentElement.scrollHeight"
LAPTOP = 1280, 800


def bottom(element):
    """How far down an element reaches, in pixels from the top of the window."""
    box = element.bounding_box()
    return box["y"] + box["height"]


# what is seen first


def test_heat_maps_stand_above_the_fold(live):
    """At 1280 x 800 two rows of heads, of which the first began at 1129, and half the matrix."""
    page = live(height=800)
    assert page.evaluate("scrollY") == 0
    assert bottom(explored.head(page, "L1H0")) <= 800  # measured 733
    matrix = view(page, "matrix").locator("image").last
    expect(matrix).to_be_visible()  # it is drawn again once the kinds of heads are there
    box = matrix.evaluate("x => x.getBoundingClientRect().toJSON()")
    assert box["height"] > 0 and box["y"] + box["height"] / 2 <= 800  # measured 744


def test_a_telephone_shows_the_live_page_in_3000_pixels(live):
    """8,021 before. The changes stay in sight in one row, with the tokens in another."""
    page = live("", 390, 844)
    assert page.evaluate(HEIGHT) <= 3000
    assert page.evaluate(WIDTH) <= 390
    page.get_by_text("Change the model", exact=True).click()
    page.evaluate("scrollTo(0, 1500)")
    for name in ("#live-positions", "#token0"):
        expect(page.locator(name)).to_be_in_viewport()
    assert page.locator("#strip").bounding_box()["height"] < 150
    boxes = [box.bounding_box() for box in page.locator("#live-changes fieldset:visible").all()]
    assert len(boxes) >= 4 and len({round(box["y"]) for box in boxes}) == 1


def test_a_telephone_shows_a_page_of_explore_in_3000_pixels(explored_page):
    """Measured 2,325 and 2,328."""
    for name, text in (("tiny-gpt2", "The old man said that he"), ("tiny-roberta", TEXT)):
        page = explored_page(name, text, 390, 844)
        assert page.evaluate(HEIGHT) <= 3000
        assert page.evaluate(WIDTH) <= 390


@pytest.mark.parametrize("hash_", ["", "token=5", "model=tiny-gpt2&text=The+old+man+said+that+he"])
def test_what_stays_in_sight_leaves_the_window_to_the_views(live, hash_, dark):
    """Tokens, the sentence, and what is done to them: 147 pixels before, measured 97."""
    page = live(hash_, height=800, dark=dark)
    page.evaluate("scrollTo(0, 900)")
    text = page.locator("#text").bounding_box()
    assert text["y"] == 0 and text["height"] <= 100
    for name in "#tokens", "#readout", "#side", "#live-change":
        assert 0 < bottom(page.locator(name)) <= text["height"]


ENDS = """[...document.querySelectorAll("main figure")].map(x => x.getBoundingClientRect())
  .filter(x => x.height).map(x => [x.top, x.right])"""


@pytest.mark.parametrize("width", [320, 390, 768, 1280, 1920])
def test_no_width_scrolls_sideways_nor_leaves_a_row_half_empty(live, width):
    page = live("", width, 900)
    assert page.evaluate(WIDTH) <= width
    rows = {}
    for top, right in page.evaluate(ENDS):
        rows.setdefault(round(top), []).append(right)
    main = page.locator("main").bounding_box()
    ends = [main["x"] + main["width"] - max(row) for row in rows.values()]
    assert max(ends) < 2  # the last card of a row ends where the page does


CONTROLS = ":is(button, select, input, textarea, a, summary):visible"


def test_few_controls_stand_before_the_first_picture(live):
    """21 before: what changes the model is folded, until something is changed."""
    page = live()
    top = page.locator("#heads").bounding_box()["y"]
    shown = [x.bounding_box() for x in page.locator(CONTROLS).all()]
    assert len([box for box in shown if box["y"] < top]) <= 15
    expect(page.locator("#live-positions")).to_be_hidden()
    expect(page.locator("#live-reset")).to_be_hidden()
    page.get_by_text("Change the model", exact=True).click()
    expect(page.locator("#live-changes .note:visible")).to_have_count(5)  # a line below each
    page = live("changes=%7B%22positions%22:%22zero%22%7D")
    expect(page.locator("#live-positions")).to_have_value("zero")
    expect(page.locator("#live-positions")).to_be_visible()
    page.locator("#live-reset").click()
    expect(page.locator("#live-status")).to_contain_text("Model unchanged")


CARDS = """[...document.querySelectorAll(
  ":is(main, .row-of-guesses) > :is(figure, .beside), :is(.short, .wide) > .beside > figure")]
  .map(x => x.getBoundingClientRect()).filter(x => x.height).map(x => [x.top, x.bottom])"""
SHORT = "model=tiny-gpt2&text=The+old+man+said+that+he"


@pytest.mark.parametrize("hash_", ["", SHORT, "rows=all"])
@pytest.mark.parametrize("width", [1280, 1920])
def test_no_row_of_cards_has_a_large_hole(live, width, hash_):
    """Below a card, down to the bottom of its row: 480 pixels before, at 1280."""
    page = live(hash_, width, 800)
    if hash_ == SHORT:
        expect(page.locator("#live-status")).to_contain_text("Model unchanged")
        settle(page)
    rows = {}
    for top, bottom in page.evaluate(CARDS):
        rows.setdefault(round(top), []).append(bottom)
    assert max(max(row) - min(row) for row in rows.values()) < 200


@pytest.mark.parametrize("width", [390, 1280])
def test_axe_has_no_complaint_of_the_live_page(live, width, dark):
    changes = "changes=%7B%22mask%22:%7B%22family%22:%22alibi%22%7D%7D&token=3"
    page = live(f"model=tiny-gpt2&{changes}", width, 800, dark)
    expect(page.locator("#live-status")).to_contain_text("Changed: mask alibi")
    settle(page)
    assert faults(page) == {}


def test_axe_has_no_complaint_of_a_difference_with_its_python(live):
    """And every view open; an empty picture of a mask had no name."""
    page = live(OFF.replace("run=1", "run=difference&token=3"))
    expect(page.locator("#live-status")).to_contain_text("Changed: L0H1 off")
    page.locator("#live-python").click()
    expect(page.locator("#live-code")).to_be_visible()
    page.evaluate("document.querySelectorAll('main details').forEach(x => { x.open = true })")
    page.evaluate("minitx.drawAll()")
    settle(page)
    assert faults(page) == {}


# folded views


def test_the_overview_opens_by_its_title(live):
    page = live()
    steps = page.get_by_role("group", name="The whole pass")
    expect(steps).to_have_count(0)
    page.get_by_role("heading", name="The whole pass, step by step").click()
    expect(steps).to_be_visible()


def test_a_guess_whose_parts_are_at_chance_says_so_in_one_line(live):
    """The picture is folded, the title names the token, and the text marks it."""
    page = live()
    flow = page.locator("#flow")
    expect(flow).to_contain_text("No part of this guess stands out")
    expect(flow.locator("svg").last).to_be_hidden()
    expect(flow.get_by_role("heading")).to_have_text("How the guess at “.” (17) comes about")
    expect(page.locator(".token.shown")).to_have_attribute("id", "token17")
    expect(flow.locator(".hint")).not_to_contain_text("band")  # of what is not seen
    flow.get_by_text("Show the parts").click()
    expect(flow.get_by_role("listitem").first).to_be_visible()
    expect(flow.locator(".hint")).to_contain_text("the wider a band, the more logits")
    click(tokens(page).nth(3))
    expect(page.locator(".token.shown")).to_have_count(0)


def test_a_link_to_a_view_opens_it(live):
    page = live("view=lens&step=softmax", 390, 844)
    expect(page.locator("#lens svg").last).to_be_visible()
    expect(page.get_by_role("group", name="The whole pass")).to_be_visible()


def test_the_layers_of_a_picture_stay_in_sight_however_far_it_is_scrolled(live):
    page = live("view=lens", 390, 844)
    plot = page.locator("#lens .plot")
    names = plot.locator(".rows text")
    expect(names.first).to_have_text("embed")
    for x in (0, 10_000):
        plot.evaluate("(box, x) => box.scrollLeft = x", x)
        inside = (
            "(name, box) => name.getBoundingClientRect().left >= box.getBoundingClientRect().left"
        )
        page.wait_for_function(
            f"box => ({inside})(box.querySelector('.rows text'), box)", arg=plot.element_handle()
        )
    assert plot.evaluate("box => box.scrollLeft") > 0


@pytest.mark.parametrize("part", ["encoder", "decoder", "cross"])
def test_no_card_of_an_encoder_decoder_is_blank(live, part):
    """Also one that was never scrolled to."""
    page = live(f"model=tiny-bart&text=3+May+1912&part={part}")
    expect(page.locator("#live-status")).to_contain_text("Model unchanged")
    settle(page)
    for card in page.locator("main figure:visible:has(> details[open]) .plot").all():
        assert card.locator("> *").count() > 0, card.evaluate("x => x.closest('figure').id")


# what is said in plain words


def percent(x):
    """As the page writes a share."""
    return f"{x:.0%}" if x >= 0.1 else f"{x:.1%}"


def test_a_head_is_told_in_a_sentence_with_its_chance(live):
    """Where L0H3 looks here and on random words, and what an even look would give."""
    model = minitx.load("tiny-roberta")
    pattern = minitx.run(model, TEXT, ("pattern", 0))["pattern", 0][0, 3]
    T = len(pattern)
    page = live()
    click(head(page, "L0H3"))
    mean = np.diagonal(pattern, -1).mean()
    sentence = "L0H3 looks most at the token before: on average over the tokens "
    sentence += f"{percent(mean)} of its attention here"
    expect(explored.readout(page)).to_contain_text(f"{sentence} (chance {percent(1 / T)})")
    expect(explored.readout(page)).to_contain_text(
        re.compile(r"\), 9\d% on random words \(chance 2\.\d%\)")
    )
    for word in "sharpness", "paper", "previous head":
        expect(explored.readout(page)).not_to_contain_text(word)


def test_heads_that_look_at_an_offset_have_its_number(live):
    """Those that give it half of their attention or more; L0H0 and L0H2 had nothing."""
    model = minitx.load("tiny-roberta")
    pattern = minitx.run(model, TEXT, keep="pattern").stack("pattern")[:, 0].reshape(16, 19, 19)
    marks = []
    for own in pattern:
        means = {n: np.diagonal(own, n).mean() for n in range(-10, 11)}
        best = max(means, key=means.get)
        if means[best] >= 0.5:
            marks.append(explored.minus(best, "+d"))
    page = live()
    texts = view(page, "heads").locator("svg [aria-label=text]").first.locator("text")
    expect(texts).to_have_text(marks)
    assert {"−2", "−1", "+1", "+2"} <= {*marks}


def test_the_plane_says_how_far_it_can_be_believed(live):
    page = live()
    click(head(page, "L0H3"))
    said = (
        "The plane shows the nearest key rightly for 21% of the queries (full space: 100%; chance"
    )
    expect(view(page, "joint")).to_contain_text(said)
    page.get_by_label("State of queries and keys").select_option("as in the model")
    expect(view(page, "joint")).to_contain_text("for 16% of the queries (full space: 100%")
    expect(page.locator("#joint table")).to_be_hidden()
    page.locator("#joint").get_by_text("In numbers").click()
    expect(page.locator("#joint table")).to_be_visible()


@pytest.mark.parametrize("name", ["joint", "matrix"])
def test_positions_stand_in_pictures_and_words_in_hover_texts(live, name):
    page = live()
    texts = view(page, name).locator("svg").last.locator("text:not([aria-label=tip] *)")
    across = [x for x in texts.all_text_contents() if re.fullmatch(r"\d+", x)]
    assert len(across) >= 10
    rotated = [x for x in texts.all() if "rotate" in (x.get_attribute("transform") or "")]
    assert rotated == []
    assert name == "matrix" or not any("her" in x for x in texts.all_text_contents())


def test_a_wave_is_told_where_noise_has_none(live):
    """Fisher's test; of 19 tokens none stands out, of 64 the eight tokens of the weights do."""
    page = live()
    expect(page.locator("#columns .hint")).to_contain_text("None stands out from noise")
    page = live(f"text={LONG.replace(' ', '+')}&head=L0H1")
    expect(view(page, "columns")).to_contain_text("% of ‖W_A‖²: a wave of 8.0 tokens")
    expect(page.locator("#columns .hint")).to_contain_text("Regular waves")


def test_values_show_what_is_taken_before_a_token_is_chosen(live):
    page = live()
    expect(view(page, "values")).to_contain_text("taken on average")
    tokens(page).nth(3).click()
    expect(view(page, "values")).not_to_contain_text("taken on average")
    expect(view(page, "values")).to_contain_text("taken")


def test_values_are_told_in_numbers(live):
    """Of which key a query takes most, and how that is weight times length."""
    model = minitx.load("tiny-roberta")
    trace = minitx.run(model, TEXT, [("pattern", 0), ("v", 0)])
    weights = trace["pattern", 0][0, 3, 5]
    lengths = np.linalg.norm(trace["v", 0][0, 3], axis=-1)
    key = int((weights * lengths).argmax())
    page = live("head=L0H3&token=5")
    label = tokens(page).nth(key).text_content()
    said = (
        f"Most is taken of “{label}” ({key}): weight {weights[key]:.3f} × length {lengths[key]:.2f}"
    )
    expect(view(page, "values")).to_contain_text(said)
    expect(view(page, "values")).to_contain_text(f"= {weights[key] * lengths[key]:.2f}.")


def test_what_needs_a_token_can_be_used_once_one_is_chosen(live):
    """Until then it is disabled or hidden, and says why; the dashed frame is explained."""
    page = live()
    side = page.locator("#side")
    controls = side.locator("input")
    expect(page.locator("#release")).to_be_hidden()
    for control in controls.all():
        expect(control).to_be_disabled()
    expect(side.locator("legend")).to_have_text("Once a token is chosen, show")
    expect(explored.readout(page)).to_contain_text("All tokens are shown")
    expect(explored.readout(page)).to_contain_text("In a dashed frame")
    tokens(page).nth(3).click()
    for control in controls.all():
        expect(control).to_be_enabled()
    expect(side.locator("legend")).to_have_text("Of the chosen token show")
    page.locator("#release").click()
    expect(page.get_by_role("listbox", name="Tokens")).to_be_focused()
    expect(page.locator("#release")).to_be_hidden()


def test_every_list_has_a_name_that_is_seen(live):
    """A word of the name that those hear who do not see it."""
    page = live()
    lists = page.locator("main select:visible").all()
    assert len(lists) >= 9
    for select in lists:
        word = select.locator("xpath=..").locator("span").text_content()
        assert word and word in select.get_attribute("aria-label").lower()


OFF = "changes=%7B%22heads_off%22:%5B%5B0,1%5D%5D%7D&head=L0H3&run=1"


def test_a_line_through_a_head_means_that_it_is_off(live):
    """And nothing else: a head that is not shown has an empty box."""
    page = live(OFF)
    expect(page.locator("#live-status")).to_contain_text("Changed: L0H1 off")
    settle(page)
    lines = {}
    for button in view(page, "layer").locator("button[id^=layer]:has(.swatch)").all():
        text = button.locator("span").last
        lines[text.text_content()] = text.evaluate("x => getComputedStyle(x).textDecorationLine")
    assert lines == {"H0": "none", "H1": "line-through", "H2": "none", "H3": "none"}
    expect(page.locator("#layer .hint")).to_contain_text("Struck through: switched off.")
    expect(page.locator("#live-grid")).to_contain_text("Struck through: off.")


NEAREST = """[...Array(16).keys()].slice(0, L * H).flatMap(head => {
  const lab = colour => { const {l, a, b} = d3.lab(colour); return [l, a, b]; };
  const [x, y, z] = lab(headColour(head));
  return ["query", "key", "chosen", "more", "less"].map(name => {
    const [l, a, b] = lab(colours()[name]);
    return Math.hypot(l - x, a - y, b - z);
  });
})"""


def test_a_colour_has_one_meaning(live, dark):
    """Of heads in a layer none is that of queries, keys, the chosen one, more or less."""
    page = live(dark=dark)
    assert min(page.evaluate(NEAREST)) > 20  # 8 in light, 9 in dark before
    text = page.evaluate("colours().text")
    flow = page.locator("#flow")
    flow.get_by_text("Show the parts").click()
    net = flow.locator("svg text").get_by_text(re.compile("^net "))
    expect(net).to_have_attribute("fill", text)
    right = page.locator(".guesses .right").first
    marked = "x => [getComputedStyle(x).color, getComputedStyle(x, '::after').content]"
    own = page.evaluate("getComputedStyle(document.body).color")
    assert right.evaluate(marked) == [own, '" ✓"']
    values = view(page, "values").locator("[aria-label=rect]").nth(1)
    expect(values).to_have_attribute("fill", page.evaluate("colours().bar"))


CONTRASTS = """(() => {
  const svg = document.querySelector("#lens .plot svg:last-of-type");
  const fills = mark => [...svg.querySelector(`[aria-label=${mark}]`).children]
    .map(x => d3.rgb(x.getAttribute("fill")));
  const linear = x => x / 255 <= 0.04045 ? x / 3294.6 : ((x / 255 + 0.055) / 1.055) ** 2.4;
  const luminance = ({r, g, b}) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const [cells, words] = ["rect", "text"].map(mark => fills(mark).map(luminance));
  return cells.map((a, n) => (Math.max(a, words[n]) + 0.05) / (Math.min(a, words[n]) + 0.05));
})()"""


def test_guesses_after_every_layer_have_a_scale_and_can_be_read(live, dark):
    page = live(dark=dark)
    expect(view(page, "lens")).to_contain_text("probability of the likeliest token")
    expect(view(page, "lens")).to_contain_text("100%")
    contrasts = page.evaluate(CONTRASTS)
    assert len(contrasts) == 5 * tokens(page).count() and min(contrasts) >= 4.5


def test_every_point_of_the_plane_has_its_number_or_it_is_said(live):
    """Here all 38 have one; of 64 tokens some have no room, and the page counts them."""
    page = live()
    points = explored.dots(page, "joint").count()
    numbers = "[aria-label=text][stroke-width='3'] text"
    assert view(page, "joint").locator(numbers).count() == points == 38
    page = live(f"text={LONG.replace(' ', '+')}")
    expect(page.locator("#live-status")).to_contain_text("Model unchanged")
    settle(page)
    said = view(page, "joint").get_by_text("have no room for their number").text_content()
    missing, points = map(int, re.findall(r"\d+", said))
    assert points == explored.dots(page, "joint").count()
    assert missing + view(page, "joint").locator(numbers).count() == points


def test_a_guess_that_is_the_token_itself_is_not_listed(live):
    """17 of 19 rows were the same; all are a button away, and the address keeps that."""
    page = live()
    rows = page.get_by_role("grid").get_by_role("row")
    expect(rows).to_have_count(4)  # the columns' names, <s>, the token whose guess is shown, </s>
    expect(view(page, "guesses")).to_contain_text("At 16 other tokens the best guess is the token")
    page.get_by_role("button", name="show all 19").click()
    expect(rows).to_have_count(20)
    assert "rows=all" in page.evaluate("location.hash")
    page.get_by_role("button", name="show fewer").click()
    tokens(page).nth(5).click()
    expect(rows).to_have_count(4)
    explored.expect_selected(page.get_by_role("row", name="␣at (5)"))


def test_links_and_buttons_say_what_they_are(live):
    """Links are alike, and the button that saves says what it saves."""
    page = live()
    colour = "x => getComputedStyle(x).color"
    links = page.locator("header button.inline, #live-atlas a").all()
    assert len(links) == 3 and len({link.evaluate(colour) for link in links}) == 1
    expect(page.locator("#matrix .save")).to_have_text("SVG")
    for word in "hover", "by mouse", "a pointer shows":
        expect(page.locator("body")).not_to_contain_text(word)


def test_signs_are_explained_where_they_stand(explored_page):
    """␣ always; ⏎ if the text, a guess or a word of a head is a line break."""
    page = explored_page("tiny-gpt2", "He said:\nThe old man", *LAPTOP)
    expect(tokens(page).get_by_text("⏎", exact=True)).to_be_visible()
    expect(page.locator("header")).to_contain_text("␣ is a space. ⏎ is a line break.")
    page = explored_page("tiny-bert", "The old [MASK] went down the road.", *LAPTOP)
    expect(page.locator("header")).to_contain_text("␣ is a space.")
    expect(page.locator("header")).not_to_contain_text("⏎")


BOXES = (
    "all => all.map(x => x.getBoundingClientRect()).map(b => [b.left, b.right, b.top, b.bottom])"
)


# the strip of tokens


def test_a_long_text_says_that_its_strip_scrolls(explored_page):
    page = explored_page("tiny-gpt2", " ".join([TEXT] * 14), *LAPTOP)
    count = tokens(page).count()
    assert count > 200
    expect(page.locator("#more")).to_have_text(f"{count} tokens: scroll for the others.")
    page = explored_page("tiny-gpt2", TEXT, *LAPTOP)
    expect(page.locator("#more")).to_be_empty()


def test_letters_that_are_cut_into_bytes_are_labelled_with_their_part(explored_page):
    page = explored_page("tiny-gpt2", HEBREW, *LAPTOP)
    expect(tokens(page).first).to_have_text("ש␣1/2")


SIDES = """[...document.querySelectorAll("#lines .plot [aria-label=text] text")].map(text => {
  const [number] = text.textContent.match(/^[0-9]+  |[0-9]+$/) ?? [];
  if (!number) return null; // a title
  const {x, width} = text.getBBox(),
    isFirst = number.endsWith(" "), // Firefox counts blanks side by side as one
    at = isFirst ? 0 : text.getNumberOfChars() - number.length;
  return [isFirst, text.getStartPositionOfChar(at).x - x, width];
}).filter(Boolean)"""


def test_a_number_keeps_its_side_of_a_word_that_is_read_from_the_right(explored_page):
    """Of queries on the left, of keys on the right; it stood on the other side of Hebrew."""
    page = explored_page("tiny-gpt2", HEBREW, *LAPTOP)
    sides = page.evaluate(SIDES)
    assert len(sides) == 2 * tokens(page).count()
    for is_query, number, width in sides:
        assert (number < width / 2) == is_query


@pytest.mark.parametrize(("words", "is_cut"), [(f"{TEXT} {TEXT[:-13]}", False), (LONG, True)])
def test_who_looks_at_whom_is_seen_whole_or_says_that_it_is_not(explored_page, words, is_cut):
    """29 tokens were cut at the 27th, without a word."""
    page = explored_page("tiny-gpt2", words, *LAPTOP)
    assert tokens(page).count() > 34 if is_cut else 28 <= tokens(page).count() <= 34
    box = view(page, "lines")
    assert box.evaluate("x => x.scrollHeight > x.clientHeight + 1") == is_cut
    assert box.get_by_text("are taller than this box").count() == is_cut
    page.locator("#lines .larger").click()
    settle(page)
    expect(box).not_to_contain_text("taller")
    assert box.evaluate("x => x.scrollHeight <= x.clientHeight + 1")


def test_a_minus_of_a_small_picture_stands_off_its_diagonal(live):
    """Where the diagonal began the minus of −2 read as an equals sign."""
    page = live()
    cells = page.locator("#heads rect[role=option]").evaluate_all(BOXES)
    marks = page.locator("#heads svg [aria-label=text]").first.locator("text").evaluate_all(BOXES)
    assert len(marks) >= 3
    for left, right, top, bottom in marks:  # in Firefox with what is drawn around them
        x, y = (left + right) / 2, (top + bottom) / 2
        (cell,) = [c for c in cells if c[0] < x < c[1] and c[2] < y < c[3]]
        assert left > (cell[0] + cell[1]) / 2


# steps of the history


def test_back_takes_a_choice_back_on_a_page_that_stands_alone(explored_page):
    page = explored_page("tiny-gpt2", TEXT, *LAPTOP)
    click(head(page, "L1H1"))
    expect(page).to_have_url(re.compile("head=L1H1"))
    tokens(page).nth(3).click()
    expect(page).to_have_url(re.compile("token=3"))
    page.get_by_label("In which order").select_option("sharpest first")
    expect(page).to_have_url(re.compile("sort="))
    explored.go(page, -1)
    expect(page.get_by_label("In which order")).to_have_value("by layer")
    explored.expect_selected(tokens(page).nth(3))
    explored.go(page, -1)
    expect(tokens(page).nth(3)).to_have_attribute("aria-selected", "false")
    assert explored.choice(page)[0] is None
    explored.expect_selected(head(page, "L1H1"))
    explored.go(page, 1)
    explored.expect_selected(tokens(page).nth(3))


def test_a_server_that_came_back_is_asked_again_whatever_was_asked(live):
    """Also after what is no run: the Python, a page that is saved."""
    page = live()
    status = page.locator("#live-status")
    page.context.set_offline(True)
    page.locator("#live-python").click()
    expect(status).to_contain_text("is minitx serve still running?")
    page.context.set_offline(False)
    expect(status).to_contain_text("Model unchanged")
    expect(status).not_to_have_class("failed")


# what a model reads


def test_another_model_gets_a_text_of_its_own_kind(live):
    page = live()
    text, kind = page.locator("#live-text"), page.locator("#live-kind")
    text.fill("The dog ran.")
    expect(page.locator("#live-status")).to_contain_text("Model unchanged · 8 tokens ·")
    page.locator("#live-model").select_option("tiny-bart")
    expect(text).to_have_value("The dog ran.")  # what somebody wrote stays
    expect(kind).to_contain_text("This model was trained on dates alone, such as")
    page.locator("#live-model").select_option("tiny-gpt2")
    expect(kind).to_be_empty()
    expect(page.get_by_label("Second text of a pair")).to_be_hidden()  # it reads a single text
    text.fill(corpus.SENTENCE)  # its own
    page.locator("#live-model").select_option("tiny-bart")
    expect(text).to_have_value(own_texts.DATE)
    expect(page.locator("#live-status")).to_contain_text(
        re.compile(r"Model unchanged · 29 tokens of the source, 12 of the target")
    )
