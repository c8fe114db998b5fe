"""The page of `minitx explore` in a real browser: make test-page.

Needs Chromium or Chrome, and no package beside pytest.

Order: the pages, the browser; what is drawn; choosing by mouse, by keys; hover; themes; saving;
nothing leaves. The browser and its tab are in conftest.py.
"""

from xml.etree import ElementTree

import numpy as np
import pytest
from browser import Tab

import minitx
from minitx import weights
from minitx.analysis.pages import explore

SENTENCE = "The brown capybara is sleeping now."
VIEWS = "heads", "joint", "lines", "columns", "matrix", "profile"
READY = (
    "document.querySelectorAll('.plot svg').length >= 6 && "
    "document.querySelectorAll('rect[role=option]').length > 1"
)
SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "</script><img src=x onerror=alert(1)> & <b>bold</b> now"


pytestmark = pytest.mark.usefixtures("program")


@pytest.fixture(scope="module", params=["tiny-bert", "tiny-gpt2"])
def model(request):
    model = minitx.load(weights.find(request.param))
    model.tokenizer.name = request.param
    return model


@pytest.fixture
def page(tab, tmp_path, model):
    """The page of the sentence, opened; the tab knows what it should show."""
    path = tmp_path / "page.html"
    name = model.tokenizer.name
    explore.write(model, name, SENTENCE, path)
    tab.open(path, READY)
    trace = minitx.run(model, SENTENCE, keep=["pattern"])
    tab.pattern = trace.stack("pattern")[:, 0]
    tab.labels = [piece.replace(" ", "␣") for piece in model.tokenizer.pieces(trace.tokens[0])]
    return tab


def cell(head):
    return f"document.getElementById('head{head}')"


def drawing(tab):
    """The SVG of every view, as text."""
    return {view: tab.js(f"boxes['{view}'].innerHTML") for view in VIEWS}


def hover(tab, view):
    """What the hover text of a view says."""
    return tab.js(
        f"boxes['{view}'].querySelector('[aria-label=tip]')"
        "?.textContent.replaceAll('\\u200b', '\\n') ?? ''"
    )


def links(tab, view):
    """How many links a view shows."""
    return tab.js(f"boxes['{view}'].querySelectorAll('[aria-label=link] path').length")


def is_selected(tab, element):
    """Whether an element, given by a JavaScript expression, is marked as selected."""
    return tab.js(f"{element}.getAttribute('aria-selected')") == "true"


def outline(tab):
    """Visibility of the outline in the matrix."""
    return tab.js("boxes.matrix.querySelector('.outline rect').getAttribute('visibility')")


def changed(before, after):
    return {view for view in VIEWS if before[view] != after[view]}


def test_every_view_is_drawn_with_its_axes(page):
    L, H, _, _ = page.pattern.shape
    T = len(page.labels)
    assert page.js("document.querySelectorAll('rect[role=option]').length") == L * H
    assert page.js("boxes.heads.querySelectorAll('image').length") == L * H
    # not a node for each cell
    assert page.js("boxes.matrix.querySelectorAll('svg:last-child image').length") == 1
    assert page.js("document.querySelectorAll('.plot *').length") < 3000
    assert page.js("[...list.children].map(x => x.textContent)") == page.labels
    for view, words in {
        "heads": ["head", "layer"],
        "joint": ["% of the variance", "query", "key"],
        "lines": ["query", "key", "now"],
        "columns": ["column 0", "position (tokens)"],
        "matrix": ["weight", "query", "key", "now"],
        "profile": ["key − query (tokens)", "uniform"],
    }.items():
        text = page.js(f"boxes['{view}'].textContent")
        assert all(word in text for word in words), (view, text)
    assert page.js("boxes.joint.querySelectorAll('[aria-label=dot] path').length") == 2 * T
    strongest = {(i, int(row.argmax())) for i, row in enumerate(page.pattern[0, 0])}
    large = {(int(i), int(j)) for i, j in zip(*np.nonzero(page.pattern[0, 0] >= 0.1))}
    for view in ("joint", "lines"):
        assert links(page, view) == len(strongest | large)


def test_the_matrix_has_the_shades_of_its_weights(page):
    """Pixels of the image against the ramp: equal, the rounding of the weights to 16 bits apart."""
    T = len(page.labels)
    pattern = page.pattern[0, 0]
    pixels = page.js("""new Promise(done => { const image = new Image();
      image.onload = () => { const c = document.createElement('canvas'); c.width = c.height = T;
        const brush = c.getContext('2d'); brush.drawImage(image, 0, 0);
        done([...brush.getImageData(0, 0, T, T).data]); };
      image.src = [...boxes.matrix.querySelectorAll('image')].at(-1).getAttribute('href'); })""")
    shades = np.array(pixels).reshape(T, T, 4)
    dark = shades[..., :3].sum(axis=-1).astype(float)
    seen = shades[..., 3] == 255
    assert seen.sum() == (T * (T + 1) // 2 if page.js("data.causal") else T * T)
    order = np.argsort(pattern[seen])
    # darker is more; 2: channels are rounded one by one
    assert (np.diff(dark[seen][order]) <= 2).all()
    strongest = np.unravel_index(pattern.argmax(), (T, T))
    assert tuple(shades[strongest][:3]) == (7, 36, 77)  # the ramp's last


def test_a_click_on_a_head_changes_every_other_view(page):
    before = drawing(page)
    page.click(*page.place(cell(6)))
    assert page.js("state.head") == 6 and is_selected(page, cell(6))
    assert changed(before, drawing(page)) == set(VIEWS)
    assert page.js(
        "[...document.querySelectorAll('h2')].slice(1).every(h => h.textContent.startsWith('L1H2'))"
    )
    readout = page.js("readout.textContent")
    assert "L1H2" in readout and "head(2,3)" in readout


def test_a_click_on_a_token_is_seen_everywhere_and_stays(page):
    before = drawing(page)
    page.click(*page.place("list.children[3]"))
    assert page.js("state.token") == 3
    assert changed(before, drawing(page)) == set(VIEWS) - {"heads"}
    row = page.pattern[0, 0, 3]
    assert links(page, "lines") == (row >= 0.01).sum()
    best = int(row.argmax())
    assert f"({best}) {row[best]:.3f}" in page.js("readout.textContent")
    assert outline(page) == "visible"
    page.click(*page.place(cell(9)))
    assert page.js("state.token") == 3 and is_selected(page, "list.children[3]")
    pattern = page.pattern[divmod(9, page.pattern.shape[1])]
    assert links(page, "lines") == (pattern[3] >= 0.01).sum()
    page.click(*page.place("document.querySelector('input[value=key]')"))
    assert links(page, "lines") == (pattern[:, 3] >= 0.01).sum()
    page.click(*page.place("byId('release')"))
    assert page.js("state.token") is None
    assert outline(page) == "hidden"


def test_tokens_are_chosen_in_the_views_too(page):
    page.click(*page.place("boxes.joint.querySelectorAll('[aria-label=dot] path')[T + 5]"))
    first = page.js("[state.token, state.side]")
    assert first[1] in ("query", "key")
    spots = page.js("spots(0)")
    wanted = spots[len(page.labels) + 5]
    clicked = next(spot for spot in spots if [spot["n"], spot["side"]] == first)
    # it, or what lies on it
    assert abs(clicked["x"] - wanted["x"]) + abs(clicked["y"] - wanted["y"]) < 0.05
    page.click(*page.place("boxes.lines.querySelectorAll('[aria-label=text]')[0].children[4]"))
    assert page.js("[state.token, state.side]") == [4, "query"]
    page.click(*page.place("boxes.lines.querySelectorAll('[aria-label=text]')[1].children[7]"))
    assert page.js("[state.token, state.side]") == [7, "key"]
    page.js("set({side: 'query'})")
    x, y = page.js(matrix_cell(9, 2))
    page.click(x, y)
    assert page.js("state.token") == 9


def matrix_cell(i, j):
    """JavaScript for the middle of a cell of the matrix, on the screen."""
    return (
        f"(() => {{ const s = boxes.matrix.lastChild; s.scrollIntoView({{block: 'center'}}); "
        "const b = s.getBoundingClientRect(); "
        f"return [b.x + s.scale('x').apply({j}), b.y + s.scale('y').apply({i})]; }})()"
    )


def test_a_pointer_shows_token_position_and_weight(page):
    pattern = page.pattern[0, 0]
    page.move(*page.js(matrix_cell(9, 2)))
    text = hover(page, "matrix")
    assert f"“{page.labels[9]}” (9)" in text and f"“{page.labels[2]}” (2)" in text
    assert f"weight {pattern[9, 2]:.3f}" in text
    page.move(*page.place("boxes.lines.querySelectorAll('[aria-label=text]')[0].children[4]"))
    best = int(pattern[4].argmax())
    text = hover(page, "lines")
    assert f"query of {page.labels[4]}, position 4" in text
    assert f"({best}): weight {pattern[4, best]:.3f}" in text
    page.js("set({token: 4})")
    page.move(*page.place("boxes.lines.querySelectorAll('[aria-label=text]')[1].children[2]"))
    wanted = f"weight {pattern[4, 2]:.3f} from “{page.labels[4]}” (4)"
    assert wanted in hover(page, "lines")
    page.move(*page.place("boxes.joint.querySelector('[aria-label=dot] path')"))
    assert "position" in hover(page, "joint") and "weight" in hover(page, "joint")
    page.move(*page.place(cell(5)))
    assert "L1H1" in hover(page, "heads") and "offset" in hover(page, "heads")
    page.move(*page.place("boxes.columns.querySelector('[aria-label=dot] circle')"))
    assert "column 0" in hover(page, "columns") and "position" in hover(page, "columns")
    page.move(*page.place("boxes.profile.querySelector('[aria-label=rect] rect:nth-child(11)')"))
    assert "offset 0" in hover(page, "profile") and "uniform" in hover(page, "profile")


def test_everything_can_be_done_with_keys(page):
    order = []
    for _ in range(24):
        page.press("Tab")
        order.append(
            page.js(
                "document.activeElement.id || document.activeElement.className || "
                "document.activeElement.textContent"
            )
        )
        if page.js("document.activeElement === list"):
            check_keys_of_tokens(page)
        if page.js("document.activeElement === boxes.heads"):
            check_keys_of_heads(page)
    assert order.index("theme") < order.index("tokens") < order.index("plot")
    assert order.count("save SVG") == order.count("larger") == len(VIEWS)


def check_keys_of_tokens(page):
    """While the list of tokens has the focus."""
    check_focus_is_seen(page, "list")
    last = len(page.labels) - 1
    steps = [("ArrowRight", 0), ("ArrowRight", 1), ("End", last), ("ArrowLeft", last - 1)]
    steps += [("Home", 0), ("ArrowLeft", 0)]
    for key, token in steps:
        page.press(key)
        assert page.js("state.token") == token
        check_active_option(page, "list")
    page.press("ArrowDown")
    assert page.js("state.side") == "key"
    assert page.js("document.querySelector('[value=key]').checked")
    page.press("Escape")
    assert page.js("state.token") is None


def check_keys_of_heads(page):
    """While the grid of heads has the focus."""
    check_focus_is_seen(page, "boxes.heads")
    L, H, _, _ = page.pattern.shape
    steps = [("ArrowRight", 1), ("ArrowDown", 1 + H), ("ArrowLeft", H), ("ArrowUp", 0)]
    steps += [("ArrowUp", 0), ("End", L * H - 1), ("Home", 0)]
    for key, head in steps:
        page.press(key)
        assert page.js("state.head") == head
        check_active_option(page, "boxes.heads")
    assert page.js("document.activeElement === boxes.heads")  # redrawing does not lose it


def check_focus_is_seen(page, element):
    """The element with the focus has an outline."""
    assert page.js(f"parseFloat(getComputedStyle({element}).outlineWidth)") >= 2


def check_active_option(page, element):
    """The option that a list calls active is marked as selected."""
    active = f"document.getElementById({element}.getAttribute('aria-activedescendant'))"
    assert page.js(f"{active}.ariaSelected") == "true"


def test_every_part_has_a_name_for_those_who_do_not_see_it(page):
    parts = "button, select, input, [role=option], [role=listbox], [role=img]"
    nameless = page.js(
        f"[...document.querySelectorAll('{parts}')]"
        ".filter(x => !(x.getAttribute('aria-label') || x.ariaLabel || x.textContent.trim() || "
        "x.closest('label'))).length"
    )
    assert nameless == 0
    assert page.js("boxes.matrix.getAttribute('role')") == "img"
    page.click(*page.place("list.children[2]"))
    assert page.js("readout.textContent") in page.js("boxes.matrix.getAttribute('aria-label')")
    label = page.js("list.children[5].getAttribute('aria-label')")
    assert label == f"{page.labels[5]}, position 5, weight {page.pattern[0, 0, 2, 5]:.3f}"
    assert page.js("readout.getAttribute('aria-live')") == "polite"


def test_both_states_and_both_kinds_of_picture(page):
    before = drawing(page)
    select(page, "joint", "as in the model")
    assert "joint" in changed(before, drawing(page))
    assert page.js("boxes.lines.querySelector('svg').outerHTML") in before["lines"]
    before = drawing(page)
    select(page, "heads", "joint space")
    assert "heads" in changed(before, drawing(page))
    images = page.js("[...boxes.heads.querySelectorAll('image')].map(x => x.getAttribute('href'))")
    assert len(set(images)) == len(images)


def select(tab, view, option):
    """Choose an option of the list above a view."""
    tab.js(
        f"(s => {{ s.value = '{option}'; s.onchange(); }})"
        f"(boxes.{view}.parentElement.querySelector('select'))"
    )


def contrast(tab, name):
    """Of a colour against the cards' (WCAG 2)."""
    luminances = luminance(tab.js(f"colours().{name}")), luminance(tab.js("colours().card"))
    return (max(luminances) + 0.05) / (min(luminances) + 0.05)


def luminance(colour):
    """Relative luminance of #rrggbb (WCAG 2)."""
    parts = np.array([int(colour[n : n + 2], 16) for n in (1, 3, 5)]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def test_light_and_dark_follow_the_system_until_the_button_is_used(page):
    background = "getComputedStyle(document.body).backgroundColor"
    backgrounds = {}
    drawings = {}
    for dark, state, other in ((False, "false", "dark"), (True, "true", "light")):
        page.dark(dark)
        page.wait(f"isDark() === {state} && byId('theme').textContent.startsWith('{other}')")
        backgrounds[dark] = page.js(background)
        drawings[dark] = drawing(page)
        for name in ("text", "soft", "query", "key", "chosen"):
            assert contrast(page, name) >= 4.5
        assert contrast(page, "bar") >= 3
    assert backgrounds[False] != backgrounds[True]
    assert changed(drawings[False], drawings[True]) == set(VIEWS)
    page.click(*page.place("byId('theme')"))
    assert page.js("isDark()") is False and page.js(background) == backgrounds[False]
    page.dark(False)
    page.dark(True)
    assert page.js("isDark()") is False


def test_every_view_is_saved_as_svg(page, tmp_path):
    page.click(*page.place("list.children[4]"))
    page.move(*page.js(matrix_cell(4, 2)))
    for view in VIEWS:
        page.click(*page.place(f"[...document.querySelectorAll('#{view} button')].at(-1)"))
        path = tmp_path / "browser" / (f"{view}.svg" if view == "heads" else f"{view}-L0H0.svg")
        page.until(path.exists)
        root = ElementTree.parse(path).getroot()
        assert root.tag == SVG + "svg"
        assert float(root.get("width")) > 100 and float(root.get("height")) > 100
        text = " ".join(root.itertext())
        assert SENTENCE[:20] in text and page.js(f"VIEWS['{view}'].title()") in text
        for element in root.iter():
            assert element.get("aria-label") != "tip"
            check_attributes(element)
    images = list(ElementTree.parse(tmp_path / "browser/heads.svg").iter(SVG + "image"))
    assert len(images) == page.pattern.shape[0] * page.pattern.shape[1]


def check_attributes(element):
    """Colours stand in the file itself, and so does whatever is linked to."""
    for name, value in element.attrib.items():
        if "fill" in name and name != "class":
            assert "var(--" not in value
        if name.endswith("href"):
            assert value.startswith("data:")


def test_a_saved_svg_is_drawn_by_itself(page, tmp_path, tab):
    """As a file of its own it is as large as it says, and not blank."""
    text = page.js("svgOf('joint')")
    size = page.js("""new Promise(done => {
      const image = new Image(); image.onerror = () => done('broken');
      image.onload = () => { const c = document.createElement('canvas');
        c.width = image.width; c.height = image.height;
        const brush = c.getContext('2d'); brush.drawImage(image, 0, 0);
        const pixels = brush.getImageData(0, 0, c.width, c.height).data;
        done([c.width, c.height, new Set(new Uint32Array(pixels.buffer)).size]); };
      image.src = 'data:image/svg+xml;charset=utf-8,' + encodeURIComponent(svgOf('joint')); })""")
    root = ElementTree.fromstring(text)
    width, height, colours = size
    assert [width, height] == [int(float(root.get(name))) for name in ("width", "height")]
    assert colours > 20


def test_a_larger_view_takes_the_whole_width(page):
    narrow = page.js("boxes.joint.clientWidth")
    page.click(*page.place("document.querySelector('#joint button')"))
    page.settle()
    assert page.js("boxes.joint.clientWidth") > 2 * narrow
    assert page.js("boxes.joint.querySelector('svg').viewBox.baseVal.width") > 2 * narrow
    page.click(*page.place("document.querySelector('#joint button')"))
    page.settle()
    assert page.js("boxes.joint.clientWidth") == narrow


def test_a_hostile_text_is_only_shown(tab, tmp_path):
    model = minitx.load(weights.find("tiny-gpt2"))
    explore.write(model, "<i>model</i>", HOSTILE, tmp_path / "page.html")
    tab.open(tmp_path / "page.html", READY)
    assert tab.js("list.textContent.replaceAll('␣', ' ')") == HOSTILE
    assert tab.js("data.text") == HOSTILE
    assert tab.js("document.querySelectorAll('img, i').length") == 0
    assert tab.js("byId('model').textContent") == "<i>model</i>"
    tab.click(*tab.place("list.children[1]"))
    ElementTree.fromstring(tab.js("svgOf('lines')"))


def test_the_policy_holds(tab, tmp_path):
    """Were the page to ask for something, the browser would refuse: shown by trying."""
    explore.write(minitx.load(weights.find("tiny-gpt2")), "m", SENTENCE, tmp_path / "page.html")
    tab.open(tmp_path / "page.html", READY)
    outcome = tab.js("fetch('http://127.0.0.1:9/').then(() => 'went out', () => 'refused')")
    assert outcome == "refused"
    tab.settle()
    assert any("Content Security Policy" in complaint for complaint in tab.complaints)
    tab.complaints.clear()
    tab.requests[:] = [url for url in tab.requests if "127.0.0.1" not in url]


def test_a_notebooks_frame_shows_it_and_is_shut_off(tab, tmp_path, model):
    shown = minitx.explore(model, SENTENCE)._repr_html_()
    path = tmp_path / "notebook.html"
    path.write_text(f'<!doctype html><meta charset="utf-8"><body>{shown}', encoding="utf-8")
    tab.open(path, "document.querySelectorAll('iframe').length == 1")
    assert tab.js("document.querySelector('iframe').contentDocument") is None
    with tab.in_frame():
        tab.wait(READY)
        tab.js("set({head: 5})")
        tab.settle()
        assert is_selected(tab, cell(5))
        outside = "(() => { try { return parent.document.title } catch (e) { return e.name } })()"
        assert tab.js(outside) == "SecurityError"
        tab.js("save('heads')")
        tab.until((tmp_path / "browser/heads.svg").is_file)


@pytest.mark.parametrize("width", [390, 900])
def test_a_narrow_window_holds_all_of_it(tmp_path, model, width):
    explore.write(model, "m", SENTENCE, tmp_path / "page.html", words=True)
    tab = Tab(tmp_path / "browser", width, 800)
    tab.open(tmp_path / "page.html", READY)
    assert tab.js("document.documentElement.scrollWidth") <= width
    assert tab.complaints == [] and "capybara" in tab.js("boxes.lines.textContent")
    tab.close()


def test_the_most_tokens_that_there_may_be(tab, tmp_path, model):
    """128 tokens: drawn, and a change of head in less than 2 s (measured 0.3)."""
    text = " ".join(["The brown capybara is sleeping now, and the river runs by."] * 20)
    tokens = model.tokenizer.encode(text)
    while len(tokens) > explore.MOST:
        text = text.rsplit(" ", 1)[0]
        tokens = model.tokenizer.encode(text)
    assert len(tokens) > explore.MOST - 4
    explore.write(model, "m", text, tmp_path / "page.html")
    tab.open(tmp_path / "page.html", READY)
    milliseconds = tab.js(
        "(() => { const start = performance.now(); set({head: 5, token: 40}); "
        "return performance.now() - start; })()"
    )
    assert milliseconds < 2000
    assert tab.js("boxes.lines.clientHeight") < 700  # it scrolls


@pytest.fixture
def dates(tab, tmp_path):
    """The page of an encoder-decoder, opened; the tab knows its cross-attention."""
    model = minitx.load("tiny-bart")
    text = "the 3rd of May, 1912"
    said = explore.readable(model, text)
    explore.write(model, "tiny-bart", text, tmp_path / "page.html")
    tab.open(tmp_path / "page.html", READY)
    trace = minitx.run(model, said.inputs, "cross_pattern", source=said.source)
    tab.pattern = trace.stack("cross_pattern")[:, 0]
    return tab


def test_encoder_decoder_and_cross_attention_are_chosen(dates):
    """Cross: rows are what is said, columns the source, and there is no view of distances."""
    _, _, T, S = dates.pattern.shape
    assert dates.js("[T, S, state.part]") == [S, S, "encoder"]
    before = drawing(dates)
    dates.click(*dates.place("document.querySelector('input[value=cross]')"))
    assert dates.js("[T, S, isCross, state.head]") == [T, S, True, 0]
    assert changed(before, drawing(dates)) == set(VIEWS) - {"profile"}
    assert dates.js("getComputedStyle(byId('profile')).display") == "none"
    assert dates.js("list.querySelectorAll('.token').length") == T + S
    dates.click(*dates.place("document.querySelector('input[value=decoder]')"))
    assert dates.js("[T, S, state.token]") == [T, T, None]
    assert dates.js("getComputedStyle(byId('profile')).display") != "none"


def test_tokens_of_both_texts_are_chosen(dates):
    _, _, T, S = dates.pattern.shape
    dates.click(*dates.place("document.querySelector('input[value=cross]')"))
    dates.click(*dates.place(cell(4)))
    dates.click(*dates.place("byId('token7')"))
    row, column = dates.pattern[1, 0, 7], dates.pattern[1, 0, :, 13]
    assert links(dates, "lines") == (row >= 0.01).sum()
    assert f"({row.argmax()}) {row.max():.3f}" in dates.js("readout.textContent")
    assert is_selected(dates, "byId('token7')") and outline(dates) == "visible"
    dates.click(*dates.place(f"byId('token{T + 13}')"))
    assert dates.js("[state.token, state.side]") == [13, "key"]
    assert links(dates, "lines") == (column >= 0.01).sum()
    assert f"({column.argmax()}) {column.max():.3f}" in dates.js("readout.textContent")
    dates.click(*dates.place(f"byId('token{T + S - 1}')"))
    dates.click(*dates.place("document.querySelector('input[value=query]')"))
    assert dates.js("[state.token, state.side]") == [T - 1, "query"]  # there are fewer of them
