"""The page of `minitx explore` in a real browser: make test-page. Needs Chromium or Chrome, and no package beside pytest.

Order: the pages, the browser; what is drawn; choosing by mouse, by keys; hover; themes; saving; nothing leaves.
SHOTS=folder keeps a screenshot of every state, to look at.
"""
import os
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
from browser import NoBrowser, Tab, find

import minitx
import weights
from analysis import explore

SENTENCE = "The brown capybara is sleeping now."
VIEWS = "heads", "joint", "lines", "columns", "matrix", "profile"
READY = "document.querySelectorAll('.plot svg').length >= 6 && document.querySelectorAll('rect[role=option]').length > 1"
SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "</script><img src=x onerror=alert(1)> & <b>bold</b> now"


@pytest.fixture(scope="session", autouse=True)
def program():
    """A browser, or an end at once with the reason: these checks are nothing without one."""
    try:
        return find()
    except NoBrowser as error:
        pytest.exit(f"make test-page: {error}", returncode=3)


@pytest.fixture(scope="module", params=["tiny-bert", "tiny-gpt2"])
def model(request):
    found = minitx.load(weights.find(request.param))
    found.tokenizer.name = request.param
    return found


@pytest.fixture
def tab(tmp_path, request):
    """A browser of its own, which must not have complained by the end, nor asked for anything but the page."""
    tab = Tab(tmp_path / "browser")
    yield tab
    if "SHOTS" in os.environ:
        folder = Path(os.environ["SHOTS"])
        folder.mkdir(parents=True, exist_ok=True)
        tab.screenshot(folder / f"{request.node.name.replace('/', '-')}.png")
    tab.settle()  # whatever is still to be said
    tab.close()
    assert tab.complaints == []
    assert [url for url in tab.requests if not url.startswith(("file:", "data:"))] == []
    assert sum(url.startswith("file:") for url in tab.requests) == 1


@pytest.fixture
def page(tab, tmp_path, model):
    """The page of the sentence, opened; the tab knows what it should show."""
    path, name = tmp_path / "page.html", model.tokenizer.name
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
    return tab.js(f"boxes['{view}'].querySelector('[aria-label=tip]')?.textContent.replaceAll('\\u200b', '\\n') ?? ''")


def changed(before, after):
    return {view for view in VIEWS if before[view] != after[view]}


def test_every_view_is_drawn_with_its_axes(page):
    H, T = page.pattern.shape[1], len(page.labels)
    assert page.js("document.querySelectorAll('rect[role=option]').length") == len(page.pattern) * H
    assert page.js("boxes.heads.querySelectorAll('image').length") == len(page.pattern) * H
    assert page.js("boxes.matrix.querySelectorAll('svg:last-child image').length") == 1  # not a node for each cell
    assert page.js("document.querySelectorAll('.plot *').length") < 3000
    assert page.js("[...list.children].map(x => x.textContent)") == page.labels
    for view, words in {"heads": ["head", "layer"], "joint": ["% of the variance", "query", "key"],
                        "lines": ["query", "key", "now"], "columns": ["column 0", "position (tokens)"],
                        "matrix": ["weight", "query", "key", "now"], "profile": ["key − query (tokens)", "uniform"]}.items():
        text = page.js(f"boxes['{view}'].textContent")
        assert all(word in text for word in words), (view, text)
    assert page.js("boxes.joint.querySelectorAll('[aria-label=dot] path').length") == 2 * T
    strongest = {(i, int(row.argmax())) for i, row in enumerate(page.pattern[0, 0])}
    large = {(int(i), int(j)) for i, j in zip(*np.nonzero(page.pattern[0, 0] >= 0.1))}
    for view in ("joint", "lines"):
        assert page.js(f"boxes['{view}'].querySelectorAll('[aria-label=link] path').length") == len(strongest | large)


def test_the_matrix_has_the_shades_of_its_weights(page):
    """Pixels of the image against the ramp: equal, the rounding of the weights to 16 bits apart."""
    T, weights_ = len(page.labels), page.pattern[0, 0]
    pixels = page.js("""new Promise(done => { const image = new Image();
      image.onload = () => { const c = document.createElement('canvas'); c.width = c.height = T;
        const brush = c.getContext('2d'); brush.drawImage(image, 0, 0);
        done([...brush.getImageData(0, 0, T, T).data]); };
      image.src = [...boxes.matrix.querySelectorAll('image')].at(-1).getAttribute('href'); })""")
    shades = np.array(pixels).reshape(T, T, 4)
    dark = shades[..., :3].sum(axis=-1).astype(float)
    seen = shades[..., 3] == 255
    assert seen.sum() == (T * (T + 1) // 2 if page.js("data.causal") else T * T)
    order = np.argsort(weights_[seen])
    assert (np.diff(dark[seen][order]) <= 2).all()  # darker is more; 2: channels are rounded one by one
    assert tuple(shades[np.unravel_index(weights_.argmax(), (T, T))][:3]) == (7, 36, 77)  # the ramp's last


def test_a_click_on_a_head_changes_every_other_view(page):
    before = drawing(page)
    page.click(*page.place(cell(6)))
    assert page.js("state.head") == 6 and page.js(f"{cell(6)}.getAttribute('aria-selected')") == "true"
    assert changed(before, drawing(page)) == set(VIEWS)
    assert page.js("[...document.querySelectorAll('h2')].slice(1).every(h => h.textContent.startsWith('L1H2'))")
    assert "L1H2" in page.js("readout.textContent") and "head(2,3)" in page.js("readout.textContent")


def test_a_click_on_a_token_is_seen_everywhere_and_stays(page):
    before = drawing(page)
    page.click(*page.place("list.children[3]"))
    assert page.js("state.token") == 3
    assert changed(before, drawing(page)) == set(VIEWS) - {"heads"}
    row = page.pattern[0, 0, 3]
    assert page.js("boxes.lines.querySelectorAll('[aria-label=link] path').length") == (row >= 0.01).sum()
    best = int(row.argmax())
    assert f"({best}) {row[best]:.3f}" in page.js("readout.textContent")
    assert page.js("boxes.matrix.querySelector('.outline rect').getAttribute('visibility')") == "visible"
    page.click(*page.place(cell(9)))
    assert page.js("state.token") == 3 and page.js("list.children[3].getAttribute('aria-selected')") == "true"
    row = page.pattern[divmod(9, page.pattern.shape[1])][3]
    assert page.js("boxes.lines.querySelectorAll('[aria-label=link] path').length") == (row >= 0.01).sum()
    page.click(*page.place("document.querySelector('input[value=key]')"))
    column = page.pattern[divmod(9, page.pattern.shape[1])][:, 3]
    assert page.js("boxes.lines.querySelectorAll('[aria-label=link] path').length") == (column >= 0.01).sum()
    page.click(*page.place("byId('release')"))
    assert page.js("state.token") is None
    assert page.js("boxes.matrix.querySelector('.outline rect').getAttribute('visibility')") == "hidden"


def test_tokens_are_chosen_in_the_views_too(page):
    page.click(*page.place("boxes.joint.querySelectorAll('[aria-label=dot] path')[T + 5]"))
    first = page.js("[state.token, state.side]")
    assert first[1] in ("query", "key")
    spots = page.js("spots(0)")
    wanted = spots[len(page.labels) + 5]
    chosen = next(s for s in spots if [s["n"], s["side"]] == first)
    assert abs(chosen["x"] - wanted["x"]) + abs(chosen["y"] - wanted["y"]) < 0.05  # it, or what lies on it
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
    return (f"(() => {{ const s = boxes.matrix.lastChild; s.scrollIntoView({{block: 'center'}}); "
            "const b = s.getBoundingClientRect(); "
            f"return [b.x + s.scale('x').apply({j}), b.y + s.scale('y').apply({i})]; }})()")


def test_a_pointer_is_told_token_position_and_weight(page):
    page.move(*page.js(matrix_cell(9, 2)))
    told = hover(page, "matrix")
    assert f"“{page.labels[9]}” (9)" in told and f"“{page.labels[2]}” (2)" in told
    assert f"weight {page.pattern[0, 0, 9, 2]:.3f}" in told
    page.move(*page.place("boxes.lines.querySelectorAll('[aria-label=text]')[0].children[4]"))
    best = int(page.pattern[0, 0, 4].argmax())
    told = hover(page, "lines")
    assert f"query of {page.labels[4]}, position 4" in told
    assert f"({best}): weight {page.pattern[0, 0, 4, best]:.3f}" in told
    page.js("set({token: 4})")
    page.move(*page.place("boxes.lines.querySelectorAll('[aria-label=text]')[1].children[2]"))
    assert f"weight {page.pattern[0, 0, 4, 2]:.3f} from “{page.labels[4]}” (4)" in hover(page, "lines")
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
        order.append(page.js("document.activeElement.id || document.activeElement.className || "
                             "document.activeElement.textContent"))
        if page.js("document.activeElement === list"):
            assert page.js("parseFloat(getComputedStyle(list).outlineWidth)") >= 2  # the focus is seen
            for key, token in (("ArrowRight", 0), ("ArrowRight", 1), ("End", len(page.labels) - 1), ("ArrowLeft",
                               len(page.labels) - 2), ("Home", 0), ("ArrowLeft", 0)):
                page.press(key)
                assert page.js("state.token") == token
                assert page.js("document.getElementById(list.getAttribute('aria-activedescendant')).ariaSelected") == "true"
            page.press("ArrowDown")
            assert page.js("state.side") == "key" and page.js("document.querySelector('[value=key]').checked")
            page.press("Escape")
            assert page.js("state.token") is None
        if page.js("document.activeElement === boxes.heads"):
            assert page.js("parseFloat(getComputedStyle(boxes.heads).outlineWidth)") >= 2
            last = page.pattern.shape[0] * page.pattern.shape[1] - 1
            for key, head in (("ArrowRight", 1), ("ArrowDown", 1 + page.pattern.shape[1]), ("ArrowLeft",
                              page.pattern.shape[1]), ("ArrowUp", 0), ("ArrowUp", 0), ("End", last), ("Home", 0)):
                page.press(key)
                assert page.js("state.head") == head
                assert page.js("document.getElementById(boxes.heads.getAttribute('aria-activedescendant')).ariaSelected") \
                    == "true"
            assert page.js("document.activeElement === boxes.heads")  # redrawing does not lose it
    assert order.index("theme") < order.index("tokens") < order.index("plot")
    assert order.count("save SVG") == order.count("larger") == len(VIEWS)


def test_every_part_has_a_name_for_those_who_do_not_see_it(page):
    assert page.js("[...document.querySelectorAll('button, select, input, [role=option], [role=listbox], [role=img]')]"
                   ".filter(x => !(x.getAttribute('aria-label') || x.ariaLabel || x.textContent.trim() || "
                   "x.closest('label'))).length") == 0
    assert page.js("boxes.matrix.getAttribute('role')") == "img"
    page.click(*page.place("list.children[2]"))
    assert page.js("readout.textContent") in page.js("boxes.matrix.getAttribute('aria-label')")
    label = page.js("list.children[5].getAttribute('aria-label')")
    assert label == f"{page.labels[5]}, position 5, weight {page.pattern[0, 0, 2, 5]:.3f}"
    assert page.js("readout.getAttribute('aria-live')") == "polite"


def test_both_states_and_both_kinds_of_picture(page):
    before = drawing(page)
    page.js("(s => { s.value = 'as in the model'; s.onchange(); })(boxes.joint.parentElement.querySelector('select'))")
    assert "joint" in changed(before, drawing(page))
    assert page.js("boxes.lines.querySelector('svg').outerHTML") in before["lines"]
    before = drawing(page)
    page.js("(s => { s.value = 'joint space'; s.onchange(); })(boxes.heads.parentElement.querySelector('select'))")
    assert "heads" in changed(before, drawing(page))
    images = page.js("[...boxes.heads.querySelectorAll('image')].map(x => x.getAttribute('href'))")
    assert len(set(images)) == len(images)


def contrast(tab, name):
    """Of a colour against the cards' (WCAG 2)."""
    def light(colour):
        parts = np.array([int(colour[n:n + 2], 16) for n in (1, 3, 5)]) / 255
        return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722]
    high, low = sorted((light(tab.js(f"colours().{name}")), light(tab.js("colours().card"))), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_light_and_dark_follow_the_system_until_the_button_is_used(page):
    seen = {}
    for dark in (False, True):
        page.dark(dark)
        page.wait(f"isDark() === {str(dark).lower()} && byId('theme').textContent.startsWith('{'light' if dark else 'dark'}')")
        seen[dark] = page.js("getComputedStyle(document.body).backgroundColor"), drawing(page)
        assert all(contrast(page, name) >= 4.5 for name in ("text", "soft", "query", "key", "chosen"))
        assert contrast(page, "bar") >= 3
    assert seen[False][0] != seen[True][0] and changed(seen[False][1], seen[True][1]) == set(VIEWS)
    page.click(*page.place("byId('theme')"))
    assert page.js("isDark()") is False and page.js("getComputedStyle(document.body).backgroundColor") == seen[False][0]
    page.dark(False), page.dark(True)
    assert page.js("isDark()") is False


def test_every_view_is_saved_as_svg(page, tmp_path):
    page.click(*page.place("list.children[4]"))
    page.move(*page.js(matrix_cell(4, 2)))
    for view in VIEWS:
        page.click(*page.place(f"[...document.querySelectorAll('#{view} button')].at(-1)"))
        path = tmp_path / "browser" / (f"{view}.svg" if view == "heads" else f"{view}-L0H0.svg")
        page.until(path.exists)
        root = ElementTree.parse(path).getroot()
        assert root.tag == SVG + "svg" and float(root.get("width")) > 100 and float(root.get("height")) > 100
        text = " ".join(root.itertext())
        assert SENTENCE[:20] in text and page.js(f"VIEWS['{view}'].title()") in text
        assert "var(--" not in "".join(v for e in root.iter() for k, v in e.attrib.items() if k != "class" and "fill" in k)
        assert not [e for e in root.iter() if e.get("aria-label") == "tip"]
        assert all(v.startswith("data:") for e in root.iter() for k, v in e.attrib.items() if k.endswith("href"))
    images = [e for e in ElementTree.parse(tmp_path / "browser/heads.svg").iter(SVG + "image")]
    assert len(images) == page.pattern.shape[0] * page.pattern.shape[1]


def test_a_saved_svg_is_drawn_by_itself(page, tmp_path, tab):
    """As a file of its own it is as large as it says, and not blank."""
    text = page.js("svgOf('joint')")
    size = page.js("""new Promise(done => { const image = new Image(); image.onerror = () => done('broken');
      image.onload = () => { const c = document.createElement('canvas'); c.width = image.width; c.height = image.height;
        const brush = c.getContext('2d'); brush.drawImage(image, 0, 0);
        const pixels = brush.getImageData(0, 0, c.width, c.height).data;
        done([c.width, c.height, new Set(new Uint32Array(pixels.buffer)).size]); };
      image.src = 'data:image/svg+xml;charset=utf-8,' + encodeURIComponent(svgOf('joint')); })""")
    root = ElementTree.fromstring(text)
    assert size[:2] == [int(float(root.get("width"))), int(float(root.get("height")))] and size[2] > 20


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
    assert tab.js("list.textContent.replaceAll('␣', ' ')") == HOSTILE and tab.js("data.text") == HOSTILE
    assert tab.js("document.querySelectorAll('img, i').length") == 0 and tab.js("byId('model').textContent") == "<i>model</i>"
    tab.click(*tab.place("list.children[1]"))
    ElementTree.fromstring(tab.js("svgOf('lines')"))


def test_the_policy_holds(tab, tmp_path):
    """Were the page to ask for something, the browser would refuse: shown by trying."""
    explore.write(minitx.load(weights.find("tiny-gpt2")), "m", SENTENCE, tmp_path / "page.html")
    tab.open(tmp_path / "page.html", READY)
    assert tab.js("fetch('http://127.0.0.1:9/').then(() => 'went out', () => 'refused')") == "refused"
    tab.settle()
    assert any("Content Security Policy" in complaint for complaint in tab.complaints)
    tab.complaints.clear()
    tab.requests[:] = [url for url in tab.requests if "127.0.0.1" not in url]


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
    assert tab.js("(() => { const start = performance.now(); set({head: 5, token: 40}); "
                  "return performance.now() - start; })()") < 2000
    assert tab.js("boxes.lines.clientHeight") < 700  # it scrolls
