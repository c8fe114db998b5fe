"""The page of `minitx explore` in a real browser: make test-page.

The browsers are in conftest.py, the parts of the page in explored.py.
"""

import re
import socket
from base64 import b64decode
from functools import partial
from urllib.parse import quote
from xml.etree import ElementTree

import explored
import numpy as np
import pytest
from explored import (
    VIEWS,
    changed,
    click,
    drawing,
    head,
    links,
    point,
    readout,
    ready,
    settle,
    tip,
    tokens,
    view,
)
from playwright.sync_api import expect

import minitx
from minitx.analysis.pages import explore

SENTENCE = "The brown capybara is sleeping now."
SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "</script><img src=x onerror=alert(1)> & <b>bold</b> now"
BACKGROUND = "getComputedStyle(document.body).backgroundColor"


@pytest.fixture(scope="module", params=["tiny-bert", "tiny-gpt2"])
def name(request):
    """What a model is called."""
    return request.param


@pytest.fixture(scope="module")
def model(name):
    return minitx.load(name)


@pytest.fixture
def trace(model):
    return minitx.run(model, SENTENCE, keep=["pattern"])


@pytest.fixture
def pattern(trace):
    """Attention of every head. [L H T T]"""
    return trace.stack("pattern")[:, 0]


@pytest.fixture
def labels(model, trace):
    """What the page calls the tokens."""
    return [piece.replace(" ", "␣") for piece in model.tokenizer.pieces(trace.tokens[0])]


@pytest.fixture
def shown(explored_page, name):
    """shown(width, …) -> the page of the sentence."""
    return partial(explored_page, name, SENTENCE)


@pytest.fixture
def page(shown):
    """The page of the sentence, opened, at the first head."""
    page = shown()
    click(head(page, "L0H0"))
    page.mouse.move(0, 0)
    explored.expect_selected(head(page, "L0H0"))
    return page


def test_every_view_is_drawn_with_its_axes(page, pattern, labels):
    L, H, T, _ = pattern.shape
    heads = page.get_by_role("listbox", name="Heads").get_by_role("option")
    expect(heads).to_have_count(L * H)
    expect(view(page, "heads").locator("image")).to_have_count(L * H)
    settle(page)
    # not a node for each cell
    expect(view(page, "matrix").locator("svg").last.locator("image")).to_have_count(1)
    assert page.locator(".plot *").count() < 3000
    assert tokens(page).all_text_contents() == labels
    for name, words in {
        "heads": ["head", "layer"],
        "joint": ["% of the variance", "query", "key"],
        "lines": ["query", "key", "now"],
        "columns": ["direction 0", "% of ‖W_A‖²", "position (tokens)"],
        "matrix": ["weight", "query", "key", "now"],
        "profile": ["key − query (tokens)", "uniform"],
    }.items():
        text = view(page, name).text_content()
        assert all(word in text for word in words), (name, text)
    expect(explored.dots(page, "joint")).to_have_count(2 * T)
    strongest = {(i, int(row.argmax())) for i, row in enumerate(pattern[0, 0])}
    large = {(int(i), int(j)) for i, j in zip(*np.nonzero(pattern[0, 0] >= 0.1))}
    for name in ("joint", "lines"):
        expect(links(page, name)).to_have_count(len(strongest | large))


PIXELS = """source => new Promise((done, failed) => {
  const image = new Image();
  image.onerror = () => failed(new Error("not a picture"));
  image.onload = () => {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [image.width, image.height];
    const brush = canvas.getContext("2d");
    brush.drawImage(image, 0, 0);
    const {data} = brush.getImageData(0, 0, image.width, image.height);
    done([image.height, image.width, btoa(Array.from(data, x => String.fromCharCode(x)).join(""))]);
  };
  image.src = source;
})"""


def pixels(page, source):
    """The picture at an address, as the browser draws it. [height width 4]"""
    height, width, values = page.evaluate(PIXELS, source)
    return np.frombuffer(b64decode(values), np.uint8).reshape(height, width, 4)


def test_the_matrix_has_the_shades_of_its_weights(page, model, pattern):
    """Pixels of the image against the ramp: equal, the rounding of the weights to 16 bits apart."""
    pattern = pattern[0, 0]
    T = len(pattern)
    shades = pixels(page, view(page, "matrix").locator("image").last.get_attribute("href"))
    assert shades.shape == (T, T, 4)
    dark = shades[..., :3].sum(axis=-1, dtype=float)
    seen = shades[..., 3] == 255
    assert seen.sum() == (T * (T + 1) // 2 if model.config.causal else T * T)
    order = np.argsort(pattern[seen])
    # darker is more; 2: channels are rounded one by one
    assert (np.diff(dark[seen][order]) <= 2).all()
    strongest = np.unravel_index(pattern.argmax(), (T, T))
    assert tuple(shades[strongest][:3]) == (7, 36, 77)  # the ramp's last


def test_shades_mean_the_same_in_all_heads(page, pattern):
    """The darkest pixel of a head is darker, the larger its largest weight; a legend says so."""
    images = view(page, "heads").locator("image").all()
    drawn = [pixels(page, x.get_attribute("href")).reshape(-1, 4) for x in images]
    dark = [x[x[:, 3] == 255, :3].sum(axis=-1, dtype=float) for x in drawn]  # what is seen
    weights = pattern.reshape(len(images), -1).max(axis=1)
    seen = np.array([shades.min() for shades in dark])[np.argsort(weights)]
    assert (np.diff(seen) <= 2).all()  # channels are rounded
    strongest = drawn[weights.argmax()][:, :3]
    assert (strongest == (7, 36, 77)).all(axis=1).any()  # the ramp's last
    legend = view(page, "heads").locator("svg text").all_text_contents()
    assert "weight  0" in legend and f"{weights.max():.2f}" in legend


def test_a_click_on_a_head_changes_every_other_view(page):
    before = drawing(page)
    click(head(page, "L1H2"))
    explored.expect_selected(head(page, "L1H2"))
    assert changed(before, drawing(page)) == set(VIEWS)
    for name in VIEWS[1:]:
        expect(page.locator(f"#{name} h2")).to_contain_text("L1H2")
    expect(readout(page)).to_contain_text("L1H2")
    expect(readout(page)).not_to_contain_text("head(2,3)")
    point(head(page, "L1H2"))
    expect(tip(page, "heads")).to_contain_text("head(2,3)")


def test_a_click_on_a_token_is_seen_everywhere_and_stays(page, pattern):
    before = drawing(page)
    tokens(page).nth(3).click()
    explored.expect_selected(tokens(page).nth(3))
    assert changed(before, drawing(page)) == set(VIEWS) - {"heads"}
    row = pattern[0, 0, 3]
    expect(links(page, "lines")).to_have_count(int((row >= 0.01).sum()))
    best = int(row.argmax())
    expect(readout(page)).to_contain_text(f"({best}) {row[best]:.3f}")
    explored.expect_outline(page, True)
    click(head(page, "L2H1"))
    explored.expect_selected(tokens(page).nth(3))
    pattern = pattern[2, 1]
    expect(links(page, "lines")).to_have_count(int((pattern[3] >= 0.01).sum()))
    page.get_by_label("what looks at it").check()
    expect(links(page, "lines")).to_have_count(int((pattern[:, 3] >= 0.01).sum()))
    page.get_by_role("button", name="choose no token").click()
    assert explored.choice(page)[0] is None
    explored.expect_outline(page, False)


def test_tokens_are_chosen_in_the_views_too(page, labels):
    T = len(labels)
    settle(page)  # the views of the chosen head are drawn
    dots = explored.dots(page, "joint").all()
    places = [centre(dot) for dot in dots]
    click(dots[T + 5])  # what lies on it is as good
    position, side = explored.choice(page)
    clicked = position + (T if side == "key" else 0)
    assert np.abs(places[clicked] - places[T + 5]).sum() < 3  # pixels
    settle(page)  # a view that is not in sight is drawn a little later
    click(explored.names(page, 0).nth(4))
    assert explored.choice(page) == (4, "query")
    settle(page)
    click(explored.names(page, 1).nth(7))
    assert explored.choice(page) == (7, "key")
    settle(page)
    page.get_by_label("what it looks at").check()
    click(*explored.cell(page, 9, 2))
    assert explored.choice(page) == (9, "query")


def centre(element):
    """Where the middle of an element is in the page's window."""
    box = element.bounding_box()
    return np.array([box["x"] + box["width"] / 2, box["y"] + box["height"] / 2])


def test_a_pointer_shows_token_position_and_weight(page, pattern, labels):
    pattern = pattern[0, 0]
    point(*explored.cell(page, 9, 2))
    expect(tip(page, "matrix")).to_contain_text(f"“{labels[9]}” (9)")
    expect(tip(page, "matrix")).to_contain_text(f"“{labels[2]}” (2)")
    expect(tip(page, "matrix")).to_contain_text(f"weight {pattern[9, 2]:.3f}")
    point(explored.names(page, 0).nth(4))
    best = int(pattern[4].argmax())
    expect(tip(page, "lines")).to_contain_text(f"query of {labels[4]}, position 4")
    expect(tip(page, "lines")).to_contain_text(f"({best}): weight {pattern[4, best]:.3f}")
    tokens(page).nth(4).click()
    point(explored.names(page, 1).nth(2))
    wanted = f"weight {pattern[4, 2]:.3f} from “{labels[4]}” (4)"
    expect(tip(page, "lines")).to_contain_text(wanted)


def test_a_pointer_explains_dots_heads_and_bars(page):
    settle(page)
    point(explored.dots(page, "joint").first)
    expect(tip(page, "joint")).to_contain_text(re.compile("position.*weight", re.S))
    point(head(page, "L1H1"))
    expect(tip(page, "heads")).to_contain_text(re.compile("L1H1.*offset", re.S))
    point(explored.dots(page, "columns").first)
    first = tip(page, "columns").first
    expect(first).to_contain_text(re.compile("position.*direction 0", re.S))
    bars = view(page, "profile").locator("[aria-label=rect] rect")
    point(bars.nth(10))
    expect(tip(page, "profile")).to_contain_text(re.compile("offset 0.*uniform", re.S))


FOCUS = """(() => { const x = document.activeElement;
  return x.getAttribute("aria-label") ?? (x.textContent.trim() || x.value); })()"""


def test_everything_can_be_done_with_keys(shown, pattern):
    page = shown()
    order = []
    larger = page.get_by_role("button", name="larger").count()
    while order.count("larger") < larger:
        assert len(order) < 120, order
        page.keyboard.press("Tab")
        order.append(page.evaluate(FOCUS))
        if order[-1].startswith("Tokens"):
            check_keys_of_tokens(page)
        if order[-1].startswith("Heads"):
            check_keys_of_heads(page, pattern)
    first = [next(n for n, x in enumerate(order) if x.startswith(word)) for word in ORDER]
    assert first == sorted(first)
    assert order.count("save SVG") >= len(VIEWS)


ORDER = "dark colours", "Tokens", "query", "choose no token", "Heads"


def check_keys_of_tokens(page):
    """While the list of tokens has the focus."""
    list_ = page.get_by_role("listbox", name="Tokens")
    check_focus_is_seen(list_)
    last = tokens(page).count() - 1
    steps = [("ArrowRight", 0), ("ArrowRight", 1), ("End", last), ("ArrowLeft", last - 1)]
    steps += [("Home", 0), ("ArrowLeft", 0)]
    for key, token in steps:
        page.keyboard.press(key)
        explored.expect_selected(tokens(page).nth(token))
        check_active_option(list_)
    page.keyboard.press("ArrowDown")
    expect(page.get_by_label("what looks at it")).to_be_checked()
    page.keyboard.press("ArrowUp")
    expect(page.get_by_label("what it looks at")).to_be_checked()
    page.keyboard.press("Escape")
    assert explored.choice(page) == (None, "query")
    page.keyboard.press("Home")  # what is shown of a token can be chosen once there is one


def check_keys_of_heads(page, pattern):
    """While the grid of heads has the focus."""
    grid = page.get_by_role("listbox", name="Heads")
    check_focus_is_seen(grid)
    last = f"L{pattern.shape[0] - 1}H{pattern.shape[1] - 1}"
    steps = [("Home", "L0H0"), ("ArrowRight", "L0H1"), ("ArrowDown", "L1H1")]
    steps += [("ArrowLeft", "L1H0"), ("ArrowUp", "L0H0"), ("ArrowUp", "L0H0")]
    steps += [("End", last), ("Home", "L0H0")]
    for key, name in steps:
        page.keyboard.press(key)
        explored.expect_selected(head(page, name))
        check_active_option(grid)
    expect(grid).to_be_focused()  # redrawing does not lose it


def check_focus_is_seen(element):
    """The element with the focus has an outline."""
    expect(element).to_be_focused()
    assert element.evaluate("x => parseFloat(getComputedStyle(x).outlineWidth)") >= 2


def check_active_option(list_):
    """The option that a list calls active is marked as selected, and no other."""
    active = list_.get_attribute("aria-activedescendant")
    expect(list_.locator("[aria-selected=true]")).to_have_id(active)


NAMELESS = """[...document.querySelectorAll(
  "button, select, input, [role=option], [role=listbox], [role=img]")].filter(x =>
    !(x.getAttribute("aria-label") || x.textContent.trim() || x.closest("label"))).length"""


def test_every_part_has_a_name_for_those_who_do_not_see_it(page, pattern, labels):
    assert page.evaluate(NAMELESS) == 0
    tokens(page).nth(2).click()
    picture = page.get_by_role("img", name="L0H0: attention matrix")
    assert readout(page).text_content() in picture.get_attribute("aria-label")
    name = f"{labels[5]}, position 5, weight {pattern[0, 0, 2, 5]:.3f}"
    assert tokens(page).nth(5).get_attribute("aria-label") == name
    expect(readout(page)).to_have_attribute("aria-live", "polite")


def test_both_states_and_both_kinds_of_picture(page):
    before = drawing(page)
    page.get_by_label("State of queries and keys").select_option("as in the model")
    after = drawing(page)
    assert "joint" in changed(before, after) and before["lines"] == after["lines"]
    page.get_by_label("What the pictures show").select_option("joint space")
    assert "heads" in changed(after, drawing(page))
    pictures = view(page, "heads").locator("image").all()
    assert len({x.get_attribute("href") for x in pictures}) == len(pictures)


def test_light_and_dark_are_the_systems_until_the_button_is_used(shown):
    light, dark = [shown(dark=dark) for dark in (False, True)]
    for page, other in ((light, "dark colours"), (dark, "light colours")):
        expect(page.get_by_role("button", name=other)).to_be_visible()
    background = light.evaluate(BACKGROUND)
    assert background != dark.evaluate(BACKGROUND)
    assert changed(drawing(light), drawing(dark)) == set(VIEWS)
    dark.get_by_role("button", name="light colours").click()
    expect(dark.get_by_role("button", name="dark colours")).to_be_visible()
    assert dark.evaluate(BACKGROUND) == background


@pytest.mark.parametrize("kind", ["chromium"], indirect=True)  # the theme changes while it runs
def test_a_change_of_the_systems_theme_is_followed_until_the_button_is_used(page):
    backgrounds = {}
    for theme, other in (("light", "dark"), ("dark", "light")):
        page.emulate_media(color_scheme=theme)
        expect(page.get_by_role("button", name=f"{other} colours")).to_be_visible()
        strong = {"light": "dark", "dark": "bright"}[theme]
        expect(page.locator("#heads .hint")).to_contain_text(f"{strong} is a large weight")
        backgrounds[theme] = page.evaluate(BACKGROUND)
    page.get_by_role("button", name="light colours").click()
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        settle(page)
        assert page.evaluate(BACKGROUND) == backgrounds["light"] != backgrounds["dark"]


def save_button(page, name):
    """The button that saves a view."""
    return page.locator(f"#{name}").get_by_role("button", name="save SVG")


def test_every_view_is_saved_as_svg(page, pattern, saved):
    tokens(page).nth(4).click()
    point(*explored.cell(page, 4, 2))
    for view_ in VIEWS:
        file = saved(save_button(page, view_))
        assert file.name == (f"{view_}.svg" if view_ == "heads" else f"{view_}-L0H0.svg")
        root = ElementTree.parse(file).getroot()
        assert root.tag == SVG + "svg"
        assert float(root.get("width")) > 100 and float(root.get("height")) > 100
        text = " ".join(root.itertext())
        assert SENTENCE[:20] in text and page.locator(f"#{view_} h2").text_content() in text
        for element in root.iter():
            assert element.get("aria-label") != "tip"
            check_attributes(element)
    images = ElementTree.parse(saved(save_button(page, "heads"))).iter(SVG + "image")
    assert len(list(images)) == pattern.shape[0] * pattern.shape[1]


def check_attributes(element):
    """Colours stand in the file itself, and so does whatever is linked to."""
    for name, value in element.attrib.items():
        if "fill" in name and name != "class":
            assert "var(--" not in value
        if name.endswith("href"):
            assert value.startswith("data:")


def test_a_saved_svg_is_drawn_by_itself(page, saved):
    """As a file of its own it is as large as it says, and not blank."""
    text = saved(save_button(page, "joint")).read_text(encoding="utf-8")
    root = ElementTree.fromstring(text)
    drawn = pixels(page, f"data:image/svg+xml;charset=utf-8,{quote(text)}")
    assert drawn.shape[:2] == tuple(int(float(root.get(name))) for name in ("height", "width"))
    assert len(np.unique(drawn.reshape(-1, 4), axis=0)) > 20


def test_a_larger_view_takes_the_whole_width(page):
    def widths():
        settle(page)
        drawn = view(page, "joint").locator("svg").first
        return np.array([x.bounding_box()["width"] for x in (view(page, "joint"), drawn)])

    narrow = widths()
    page.locator("#joint").get_by_role("button", name="larger").click()
    assert (widths() > 2 * narrow).all()
    page.locator("#joint").get_by_role("button", name="smaller").click()
    assert (widths() == narrow).all()


def test_a_hostile_text_is_only_shown(open_page, tmp_path, saved):
    explore.write(minitx.load("tiny-gpt2"), "<i>model</i>", HOSTILE, tmp_path / "page.html")
    page = ready(open_page(tmp_path / "page.html"))
    assert "".join(tokens(page).all_text_contents()).replace("␣", " ") == HOSTILE
    expect(page.locator("img, i")).to_have_count(0)
    expect(page.get_by_role("heading", level=1)).to_contain_text("<i>model</i>")
    tokens(page).nth(1).click()
    text = saved(save_button(page, "lines")).read_text(encoding="utf-8")
    assert HOSTILE[:30] in " ".join(ElementTree.fromstring(text).itertext())


@pytest.fixture
def nobody():
    """An address of this machine at which nothing listens."""
    with socket.socket() as own:
        own.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{own.getsockname()[1]}/"


ASK = "url => fetch(url).then(() => 'went out', () => 'refused')"


def test_the_policy_holds(shown, nobody, complaints, requests):
    """Were the page to ask for something, the browser would refuse: shown by trying."""
    page = shown()
    assert page.evaluate(ASK, nobody) == "refused"
    settle(page)
    assert any("violates the following" in complaint for complaint in complaints)
    complaints.clear()
    requests[:] = [url for url in requests if url != nobody]


def test_a_page_that_asks_for_something_is_heard(open_page, tmp_path, nobody, complaints, requests):
    """Without a policy, for the checks themselves."""
    path = tmp_path / "page.html"
    path.write_text("<!doctype html><title>t</title>", encoding="utf-8")
    page = open_page(path)
    assert page.evaluate(ASK, nobody) == "refused"  # nothing listens there
    assert nobody in requests
    for _ in range(40):  # Firefox says so a little later
        if complaints:
            break
        page.wait_for_timeout(50)
    complaints.clear()
    requests[:] = [url for url in requests if url != nobody]


def test_a_notebooks_frame_shows_it_and_is_shut_off(open_page, tmp_path, model, saved):
    html = minitx.explore(model, SENTENCE)._repr_html_()
    path = tmp_path / "notebook.html"
    path.write_text(f'<!doctype html><meta charset="utf-8"><body>{html}', encoding="utf-8")
    page = open_page(path)
    assert page.evaluate("document.querySelector('iframe').contentDocument") is None
    frame = ready(page.frames[1])
    click(head(frame, "L1H1"))
    explored.expect_selected(head(frame, "L1H1"))
    outside = "(() => { try { return parent.document.title } catch (e) { return e.name } })()"
    assert frame.evaluate(outside) == "SecurityError"
    assert saved(save_button(frame, "heads")).name == "heads.svg"


@pytest.mark.parametrize("width", [390, 900])
def test_a_narrow_window_holds_all_of_it(shown, width):
    page = shown(width, 800, words=True)
    assert page.evaluate(explored.WIDTH) <= width
    expect(view(page, "matrix")).to_contain_text("capybara")


CLICK = """x => { const start = performance.now(); x.dispatchEvent(new KeyboardEvent(
  "keydown", {key: "End", bubbles: true})); return performance.now() - start; }"""


def test_the_most_tokens_that_there_may_be(explored_page, name, model):
    """As many as page and model take: a change of head or token takes less than 2 s (0.3)."""
    text = " ".join(["The brown capybara is sleeping now, and the river runs by."] * 60)
    count = len(model.tokenizer.encode(text))
    most = min(explore.MOST, model.config.n_ctx)
    while count > most:
        text = text.rsplit(" ", 1)[0]
        count = len(model.tokenizer.encode(text))
    assert count > most - 4
    page = explored_page(name, text)
    expect(tokens(page)).to_have_count(count)
    for of in ("Heads", "Tokens"):
        list_ = page.get_by_role("listbox", name=of)
        assert list_.evaluate(CLICK) < 2000
        explored.expect_selected(list_.get_by_role("option").last)
    assert view(page, "lines").bounding_box()["height"] < 700  # it scrolls


@pytest.fixture
def dates(explored_page):
    """(page of an encoder-decoder, its cross-attention)"""
    model = minitx.load("tiny-bart")
    text = "the 3rd of May, 1912"
    said = explore.readable(model, text)
    trace = minitx.run(model, said.inputs, "cross_pattern", source=said.source)
    return explored_page("tiny-bart", text), trace.stack("cross_pattern")[:, 0]


CROSS = "the decoder's, to its source"


def test_encoder_decoder_and_cross_attention_are_chosen(dates):
    """Cross: rows are what is said, columns the source, and there is no view of distances."""
    page, pattern = dates
    _, _, T, S = pattern.shape
    expect(page.get_by_label("the encoder's")).to_be_checked()
    expect(tokens(page)).to_have_count(S)
    before = drawing(page)
    page.get_by_label(CROSS).check()
    expect(tokens(page)).to_have_count(T + S)
    expect(explored.names(page, 0)).to_have_count(T)
    expect(explored.names(page, 1)).to_have_count(S)
    expect(page.locator("#profile")).to_be_hidden()
    assert changed(before, drawing(page)) == set(VIEWS) - {"profile"}
    page.get_by_label("the decoder's, to what it has said").check()
    expect(tokens(page)).to_have_count(T)
    expect(explored.names(page, 1)).to_have_count(T)
    assert explored.choice(page) == (None, "query")
    expect(page.locator("#profile")).to_be_visible()


def test_tokens_of_both_texts_are_chosen(dates):
    page, pattern = dates
    _, _, T, S = pattern.shape
    page.get_by_label(CROSS).check()
    click(head(page, "L1H0"))
    tokens(page).nth(7).click()
    row, column = pattern[1, 0, 7], pattern[1, 0, :, 13]
    expect(links(page, "lines")).to_have_count(int((row >= 0.01).sum()))
    expect(readout(page)).to_contain_text(f"({row.argmax()}) {row.max():.3f}")
    explored.expect_selected(tokens(page).nth(7))
    explored.expect_outline(page, True)
    tokens(page).nth(T + 13).click()
    assert explored.choice(page) == (T + 13, "key")
    expect(links(page, "lines")).to_have_count(int((column >= 0.01).sum()))
    expect(readout(page)).to_contain_text(f"({column.argmax()}) {column.max():.3f}")
    tokens(page).nth(T + S - 1).click()
    page.get_by_label("what it looks at").check()
    assert explored.choice(page) == (T - 1, "query")  # there are fewer of them


PAIR = "The cat sat on the mat.", "The cat lay on the rug."


def test_a_pair_has_a_border_and_a_filter_of_which_text_looks_at_which(explored_page):
    bert, page = minitx.load("tiny-bert"), explored_page("tiny-bert", PAIR)
    expect(page.locator("#tokens hr.border")).to_have_count(1)
    expect(view(page, "matrix").locator(".border")).to_have_count(2)
    pattern = minitx.run(bert, [PAIR], "pattern").stack("pattern")[:, 0]
    second = bert.tokenizer.sequences(*PAIR).tolist().index(1)
    halves = {"A": slice(0, second), "B": slice(second, None)}
    click(head(page, "L1H0"))
    for text in ("A → A", "A → B", "B → A", "B → B"):
        page.locator("#lines select").select_option(text)
        settle(page)
        a, b = text.split(" → ")
        block = pattern[1, 0, halves[a], halves[b]]
        best = {(i, int(row.argmax())) for i, row in enumerate(block)}
        large = {(int(i), int(j)) for i, j in zip(*np.nonzero(block >= 0.1))}
        expect(links(page, "lines")).to_have_count(len(best | large))
    assert "between=B" in page.evaluate("location.hash")
    single = explored_page("tiny-bert", SENTENCE)
    expect(single.locator("#lines select")).to_be_hidden()
