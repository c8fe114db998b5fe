"""The atlas page in a real browser: make test-page."""

import base64
import io
import re
from xml.etree import ElementTree

import atlases
import explored
import hostile
import numpy as np
import pytest
import seen_atlas
from explored import WIDTH, faults
from matplotlib.image import imread
from playwright.sync_api import expect
from seen_atlas import choose, cloud, find, head, places, ready, tokens

from minitx.analysis.pages import atlas

FACTS = """() => {
  const {places, n} = atlas.panes[0].cloud.points;
  return [n, Array.from(places)];
}"""


@pytest.fixture(scope="module")
def fabricated():
    """A fabricated Atlas."""
    return atlases.atlas()


@pytest.fixture
def open_atlas(open_page, tmp_path):
    """open_atlas(atlas, …) -> its page, opened."""

    def open_atlas(own, *size, **options):
        atlas.write(own, tmp_path / "atlas.html")
        return ready(open_page(tmp_path / "atlas.html", *size, **options))

    return open_atlas


@pytest.fixture
def page(open_atlas, fabricated):
    """The page of the fabricated one."""
    return open_atlas(fabricated)


@pytest.fixture
def side_by_side(open_atlas):
    """side_by_side(…) -> the page of two, both shown; what the first is may be given."""

    def side_by_side(dark=False, **given):
        second = atlases.atlas(4, 5, 1, 2, name="the other", seed=2)
        page = open_atlas(atlases.atlas(beside=second, **given), dark=dark)
        page.get_by_label("both, side by side").check()
        return ready(page)

    return side_by_side


def choose_head(page, name):
    """A click on a head, and its title above the large picture."""
    head(page, name).click()
    expect(page.get_by_role("heading", name=name)).to_be_visible()
    return ready(page)


def test_every_head_is_drawn_and_opens(page, fabricated):
    space = fabricated.sides[0]
    expect(page.locator(".grid").get_by_role("option")).to_have_count(space.L * space.H)
    names = {f"L{n // space.H}H{n % space.H}" for n in range(space.L * space.H)}
    drawn = page.evaluate("[...document.querySelectorAll('.thumb canvas')].map(c => c.toDataURL())")
    assert len(set(drawn)) == len(names)  # no two heads look the same, none is blank
    for name in names:
        choose_head(page, name)
        expect(head(page, name)).to_have_attribute("aria-selected", "true")


def test_the_points_stand_where_the_atlas_says(page, fabricated):
    """Within a step of 4,096 of the largest extent, which is 2 on the page."""
    choose_head(page, "L1H2")
    n, flat = page.evaluate(FACTS)
    xy = np.float64(fabricated.sides[0].xy["pca"][1, 2])
    shown = np.array(flat).reshape(-1, 3)[:, :2]
    middle, span = (xy.max(axis=0) + xy.min(axis=0)) / 2, np.ptp(xy, axis=0).max()
    assert n == len(xy)
    assert abs(shown - (xy - middle) / span * 2).max() < 3 / 4095


@pytest.mark.parametrize("drawing", ["", "#drawing=canvas"])
def test_both_ways_of_drawing_show_all_points(open_atlas, fabricated, drawing):
    """With WebGL where there is any, and on a canvas: where points are, something is drawn."""
    page = choose_head(open_atlas(fabricated, hash_=drawing), "L0H1")
    expected = "canvas" if drawing else "WebGL|canvas"
    expect(cloud(page)).to_have_attribute("data-drawing", re.compile(expected))
    before = cloud(page).screenshot()
    page.evaluate("atlas.set({sides: 'keys'})")
    ready(page)
    page.wait_for_timeout(200)
    assert cloud(page).screenshot() != before


def test_a_point_is_hovered_and_chosen(page, fabricated):
    choose_head(page, "L0H2")
    x, y = places(page)[40]
    page.mouse.move(x, y)
    tip = page.locator(".tip").first
    expect(tip).to_contain_text("query, position")
    page.mouse.click(x, y)
    space = fabricated.sides[0]
    i = page.evaluate("atlas.state.point.i")
    row, position = divmod(i % 54, 9)
    marked = page.locator("#strips [aria-selected=true]")
    expect(marked).to_have_text(fabricated.sentences[row][position].replace(" ", "␣"))
    key = space.strongest.index[0, 2, i % 54, 0]
    if i < 54:
        weight = float(space.strongest.weight[0, 2, i, 0])
        label = space.queries.vocabulary[space.queries.token[key]].replace(" ", "␣")
        expect(page.locator("#readout")).to_contain_text(f"“{label}” ({key % 9}) {percent(weight)}")


def percent(share):
    """As the page writes a share that it has from steps of its root."""
    share = (round(share**0.5 * 127) / 127) ** 2
    return f"{100 * share:.{1 if share < 0.0995 else 0}f}%"


def test_pan_and_zoom_by_mouse_and_keys(page):
    choose_head(page, "L0H2")
    before = places(page)
    box = cloud(page).bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(*middle)
    page.mouse.wheel(0, -400)
    page.wait_for_timeout(100)
    near = places(page)
    spread = [np.ptp(np.array(each), axis=0) for each in (before, near)]
    np.testing.assert_allclose(spread[1] / spread[0], np.exp(0.6), rtol=1e-6)
    page.mouse.down()
    page.mouse.move(middle[0] + 50, middle[1] + 20, steps=5)
    page.mouse.up()
    np.testing.assert_allclose(np.subtract(places(page), near), [[50, 20]] * len(near), atol=1)
    cloud(page).press("0")
    np.testing.assert_allclose(places(page), before, atol=1e-6)
    cloud(page).press("ArrowRight")
    np.testing.assert_allclose(np.subtract(places(page), before), [[-40, 0]] * len(near), atol=0.1)


def test_every_colour_has_its_legend(page):
    names = page.get_by_label("Colour").locator("option").all_text_contents()
    assert names == [
        *("query and key", "position", "position / length", "norm", "token type"),
        *("frequency (log)", "sentence", "word class"),
    ]
    legends = {}
    for name in reversed(names):
        choose(page, "Colour", name)
        expect(page.locator(".legend")).not_to_have_text([*legends.values(), ""][0])
        legends = {name: page.locator(".legend").text_content()} | legends
    assert len(set(legends.values())) == len(names)
    assert legends["position"] == "position 08"
    assert legends["token type"].startswith("specialword start")
    assert legends["word class"] == "nounverbotherno class"


def test_norms_are_those_of_the_head(page, fabricated):
    choose_head(page, "L1H0")
    choose(page, "Colour", "norm")
    norms = [fabricated.sides[0].norms[side][1, 0] for side in ("query", "key")]
    low, high = np.min(norms), np.max(norms)
    expect(page.locator(".legend")).to_contain_text(f"{float(f'{low:.3g}'):g}")
    expect(page.locator(".legend")).to_contain_text(f"{float(f'{high:.3g}'):g}")


def test_a_searched_token_lights_up_in_all_heads(page, fabricated):
    points = fabricated.sides[0].queries
    token = int(np.bincount(points.token).argmax())
    word = points.vocabulary[token].strip()
    many = int((points.token == token).sum())
    said = find(page, word)
    assert f"{many} queries and {many} keys" in said
    for n in range(6):
        assert seen_atlas.colours(page, f"L{n // 3}H{n % 3}")  # opaque: lit
    assert "no token here" in find(page, "nowhere-to-be")
    for n in range(6):
        assert not seen_atlas.colours(page, f"L{n // 3}H{n % 3}")


def test_a_lasso_says_what_it_holds(page, fabricated):
    """Around all points, around none, and around the first heap of equal tokens."""
    choose_head(page, "L0H1")
    spots = np.array(places(page))
    (left, top), (right, bottom) = spots.min(axis=0) - 5, spots.max(axis=0) + 5
    seen_atlas.lasso(page, (left, top, right, bottom))
    about = page.locator(".about").first
    expect(about).to_contain_text("holds 54 queries and 54 keys of 6 sentences")
    page.get_by_role("button", name="let go").click()
    expect(about).not_to_contain_text("lasso")
    points = fabricated.sides[0].queries
    token = int(np.bincount(points.token).argmax())
    own = spots[np.tile(points.token == token, 2)]
    (left, top), (right, bottom) = own.min(axis=0) - 4, own.max(axis=0) + 4
    inside = ((spots >= [left, top]) & (spots <= [right, bottom])).all(axis=1)
    seen_atlas.lasso(page, (left, top, right, bottom))
    expect(about).to_contain_text(f"holds {inside[:54].sum()} queries and {inside[54:].sum()} keys")
    assert seen_atlas.colours(page, "L1H1")


def test_three_dimensions_turn(page):
    choose_head(page, "L1H1")
    choose(page, "Projection", "pca3")
    before = np.array(places(page))
    cloud(page).press("ArrowLeft")
    moved = np.array(places(page)) - before
    assert np.abs(moved).max() > 5 and np.ptp(moved[:, 0]) > 5  # turned, not pushed


def test_flags_filter_the_heads(page):
    flags = page.locator("#flags tbody tr")
    expect(flags).to_have_count(3)
    choose(page, "Heads", "same token")
    expect(flags).to_have_count(1)
    expect(page.locator(".thumb.out")).to_have_count(5)
    flags.get_by_role("button").click()
    expect(head(page, "L0H1")).to_have_attribute("aria-selected", "true")
    title, bar = page.get_by_role("heading", name="L0H1"), page.locator("#choose")
    end = bar.evaluate("bar => bar.getBoundingClientRect().bottom")
    assert title.bounding_box()["y"] >= end - 1  # not under the bar that stays
    expect(page.locator(".about").first).to_contain_text("looks at the same token")


def test_the_head_that_misleads_is_named_with_its_numbers(page):
    summary = page.locator("#summary")
    expect(summary).to_contain_text("12% of them are near in the plane and 80%")
    summary.get_by_role("button").click()
    expect(page.locator(".about").first).to_contain_text("The picture misleads most here:")


def test_tokens_and_heads_are_chosen_by_keys(page):
    page.locator("#strips [role=listbox]").focus()
    for key, n in [("ArrowRight", 0), ("ArrowRight", 1), ("End", 8), ("ArrowLeft", 7)]:
        page.keyboard.press(key)
        expect(tokens(page).nth(n)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowUp")
    expect(page.locator("#readout")).to_contain_text("the key of")
    page.keyboard.press("Escape")
    expect(page.locator("#readout")).to_contain_text("No token is chosen")
    page.locator(".grid").focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    expect(head(page, "L1H0")).to_have_attribute("aria-selected", "true")


def test_the_sentence_lists_the_strongest_keys_of_each_query(page, fabricated):
    page.locator("#which").select_option("2")
    rows = page.locator("#strongest tbody tr")
    expect(rows).to_have_count(9)
    space = fabricated.sides[0]
    for n in range(9):
        cells = rows.nth(n).locator("td").all_text_contents()
        keys = space.strongest.index[0, 0, 18 + n]
        assert [int(re.search(r"\((\d+)\)", cell)[1]) for cell in cells] == [n, *(keys - 18)]


DARKEST = """() => {
  const canvas = document.getElementById("pattern"), {width, height} = canvas, n = 9, rows = [];
  const {data} = canvas.getContext("2d").getImageData(0, 0, width, height);
  const inkOf = (row, key) => {
    const [x, y] = [key, row].map((k, axis) => Math.floor((k + 0.5) * [width, height][axis] / n));
    return data[4 * (y * width + x) + 3];
  };
  return Array.from({length: n}, (_, row) => Array.from({length: n}, (_, key) => inkOf(row, key)));
}"""


def test_the_attention_of_the_sentence_is_a_matrix(page, fabricated):
    """Of 9 queries and keys; the strongest keys are the darkest, and a row chooses its query."""
    choose_head(page, "L1H1")
    page.locator("#which").select_option("3")
    expect(page.locator("#readout")).to_contain_text("L1H1: the query of")
    ink = np.array(page.evaluate(DARKEST))
    space = fabricated.sides[0]
    weights = np.zeros((9, 9))
    rows = np.arange(27, 36)
    keys = space.strongest.index[1, 1, rows] - 27
    np.put_along_axis(weights, keys, np.float64(space.strongest.weight[1, 1, rows]), 1)
    assert abs(ink / 255 - weights).max() < 0.03  # of weights in steps, and of colours
    canvas = page.locator("#pattern")
    box = canvas.bounding_box()
    canvas.click(position={"x": 5, "y": box["height"] * 4.5 / 9})
    expect(page.locator("#readout")).to_contain_text("at position 4")


def test_each_projection_says_how_far_to_trust_it(page, fabricated):
    choose_head(page, "L1H0")
    lie, about = fabricated.sides[0].lie, page.locator(".about").first
    expect(about).to_contain_text("nearest in the plane (keys shuffled:")
    choose(page, "Projection", "pca3")
    near, null = (f"{100 * x[1, 0]:.0f}%" for x in lie.others["pca3"])
    expect(about).to_contain_text(f"of the strongest keys, {near} are among")
    expect(about).to_contain_text(f"nearest in these three dimensions (keys shuffled: {null})")
    c = fabricated.sides[0].moves.c[1, 0]
    said = f"Scale c = {float(f'{c:.3g}'):g} (the head's own): products and distances correlate"
    expect(about).to_contain_text(said)


@pytest.fixture
def again(open_atlas, page, fabricated):
    """again() -> the page's address in another window."""
    return lambda: open_atlas(fabricated, hash_=f"#{page.url.partition('#')[2]}")


def test_the_address_brings_the_state_back_and_back_works(page, again):
    choose_head(page, "L1H1")
    choose(page, "Colour", "position")
    tokens(page).nth(3).click()
    cloud(page).press("+")
    find(page, "cat")
    expect(page).to_have_url(re.compile("find=cat.*view="))
    assert state(again()) == state(page)
    explored.go(page, -1)
    expect(page.get_by_label("Find a token")).to_have_value("")
    expect(page.get_by_role("heading", name="L1H1")).to_be_visible()


def state(page):
    """The parts of the state that an address has."""
    names = "heads", "colour", "search", "point", "projection", "only", "run", "space"
    whole = page.evaluate("JSON.parse(JSON.stringify(atlas.state))")
    view = [round(x, 3) for x in whole["views"][0].values()]
    return {name: whole[name] for name in names}, view


def test_a_lasso_comes_back_with_its_address(page, again):
    choose_head(page, "L0H1")
    lasso_some(page)
    expect(page).to_have_url(re.compile("lasso="))
    said = page.locator(".about").first.text_content()
    assert "The lasso, drawn in L0H1, holds" in said
    expect(again().locator(".about").first).to_have_text(said)


def lasso_some(page):
    """A lasso around the points of the upper left."""
    spots = np.array(places(page))
    seen_atlas.lasso(page, (*spots.min(axis=0) - 5, *spots.mean(axis=0)))


def test_a_lasso_stays_when_the_projection_changes(page, again):
    """Its points stay lit, in the page and in its address; choosing 3-D dropped it."""
    choose_head(page, "L0H1")
    lasso_some(page)
    expect(page.locator(".about").first).to_contain_text("holds")
    held = re.search(r"holds .* lit", page.locator(".about").first.text_content())[0]
    choose(page, "Projection", "pca3")
    expect(page.locator(".about").first).to_contain_text(held)
    expect(page.locator(".pane")).to_contain_text("two of the three dimensions")
    expect(again().locator(".about").first).to_contain_text(held)


@pytest.mark.parametrize("ending", ["SVG", "PNG"])
def test_the_large_picture_is_saved(page, saved, ending):
    """Every point, the name of the head, what colours mean; of a PNG the pixels are not one."""
    choose_head(page, "L0H1")
    path = saved(page.get_by_role("button", name=ending, exact=True))
    assert path.name == f"L0H1.{ending.lower()}"
    if ending == "SVG":
        root = ElementTree.fromstring(path.read_bytes())
        dots = [x.get("d") for x in root.iter("{http://www.w3.org/2000/svg}path")]
        assert sum(d.count("M") for d in dots) == len(places(page)) == 108
        assert "L0H1" in "".join(root.itertext()) and "■ query ■ key" in "".join(root.itertext())
        marks = page.locator(".legend .mark")
        colours = marks.evaluate_all("all => all.map(x => x.style.background)")
        tspans = root.iter("{http://www.w3.org/2000/svg}tspan")
        assert [x.get("fill") for x in tspans] == colours
    else:
        assert len(np.unique(imread(path).reshape(-1, 4), axis=0)) > 20


@pytest.mark.parametrize("kind", ["chromium"], indirect=True)  # which can be told to print
def test_print_has_the_points_and_whole_tables(page):
    """The large picture was blank, and the table of keys was cut on the right."""
    choose_head(page, "L0H1")
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 718, "height": 1000})  # A4 without its margins
    ready(page)
    kept = page.evaluate("document.querySelector('.cloud canvas').toDataURL()")
    drawn = imread(io.BytesIO(base64.b64decode(kept.partition(",")[2])))
    assert len(np.unique(drawn.reshape(-1, 4), axis=0)) > 5
    expect(page.locator("p > button.inline").first).to_be_visible()  # the head of a sentence
    for table in ("#strongest", "#flags"):
        assert page.locator(table).evaluate("x => x.getBoundingClientRect().right") <= 718


@pytest.mark.parametrize(
    "hash_", ["head=L99H0&point=0,99999&run=7", "lasso=0,0,1&view=x&space=constructor", "%"]
)
def test_an_address_that_makes_no_sense_does_no_harm(open_atlas, fabricated, hash_):
    page = open_atlas(fabricated, hash_=f"#{hash_}")
    expect(page.locator(".thumb[aria-selected=true]")).to_have_count(1)


def test_two_atlases_side_by_side(side_by_side):
    page = side_by_side()
    expect(page.locator(".grid")).to_have_count(2)
    head(page, "L0H1", run=1).click()
    expect(page).to_have_url(re.compile("run=both.*head1=L0H1"))
    assert "the other:" in find(page, "the")
    sampled = "fabricated: All points are drawn. the other: All points are drawn."
    expect(page.locator("#sampled")).to_have_text(sampled)
    page.get_by_role("radio", name="the other").check()
    expect(ready(page).locator(".grid")).to_have_count(1)
    expect(page.locator(".grid").get_by_role("option")).to_have_count(2)


def test_two_atlases_stand_in_line_and_are_told_in_words(side_by_side):
    """Their large pictures begin at one height, though one grid is lower; flags name theirs."""
    page = side_by_side(L=4)
    tops = [page.locator(".cloud").nth(n).bounding_box()["y"] for n in (0, 1)]
    assert abs(tops[0] - tops[1]) < 1
    expect(page.locator("#summary")).to_contain_text("the other: 2 heads in 1 layers.")
    expect(page.locator("#flags tbody tr")).to_have_count(6)
    page.get_by_role("button", name="the other, L0H1").first.click()
    expect(head(page, "L0H1", run=1)).to_have_attribute("aria-selected", "true")


def test_a_search_moves_nothing_but_its_points(page):
    """What it says has its line before: the page below stands still, and is not laid out anew."""
    before = cloud(page).bounding_box()
    find(page, "the")
    assert cloud(page).bounding_box() == before


def test_an_encoder_decoder_has_three_spaces(open_atlas):
    fabricated = atlases.with_three_spaces()
    page = open_atlas(fabricated)
    page.get_by_label("the decoder, to its source").check()
    strips = ready(page).locator("#strips [role=listbox]")
    expect(strips).to_have_count(2)
    expect(strips.first.get_by_role("option")).to_have_count(9)
    expect(strips.last.get_by_role("option")).to_have_count(7)
    strips.first.get_by_role("option").nth(2).click()
    cross = fabricated.sides[2]
    key = cross.strongest.index[0, 0, 2, 0]
    expect(page.locator("#readout")).to_contain_text(f"({key}) ")
    page.get_by_label("the encoder").check()
    expect(page.locator("#strips [role=listbox]")).to_have_count(1)


@pytest.fixture
def pictures_page(open_atlas):
    """The page of an atlas of pictures: 3 × 4 patches, 5 pictures."""
    return open_atlas(atlases.of_pictures())


SHOWN = """canvas => {
  const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  return [...data];
}"""


def test_a_patch_is_hovered_with_its_picture(pictures_page):
    page = pictures_page
    choose_head(page, "L0H1")
    cloud(page).scroll_into_view_if_needed()
    x, y = places(page)[2 * 12 + 6]  # query, row 1, column 2 of picture 2
    page.mouse.move(x, y)
    tip = page.locator(".tip").first
    expect(tip).to_contain_text("query of the patch in row 1, column 2")
    expect(tip).to_contain_text("picture 2: left 2")
    pixels = np.reshape(tip.locator("canvas").evaluate(SHOWN), (63, 84, 4))[..., :3]
    picture = atlases.of_pictures().sides[0].pictures.pixels[2]
    assert abs(pixels[5, 5] - picture[0, 0].astype(int)).max() <= 2
    assert (pixels[21:42, 42:63] == 255).all(axis=-1).sum() > 60  # its outline is white


def test_a_click_on_a_point_shows_its_picture_and_what_it_attends_to(pictures_page):
    page = pictures_page
    choose_head(page, "L0H1")
    page.evaluate("atlas.set({point: {run: 0, i: 12 + 7}})")  # row 1, column 3 of picture 1
    expect(page.locator("#which")).to_have_value("1")
    patches = page.locator(".strip.patches [role=option]")
    expect(patches).to_have_count(12)
    expect(patches.nth(7)).to_have_attribute("aria-selected", "true")
    expect(patches.nth(7)).to_have_attribute("aria-label", re.compile("row 1, column 3"))
    strongest = atlases.of_pictures().sides[0].strongest
    key = strongest.index[0, 1, 19, 0] - 12
    expect(patches.nth(key)).to_have_attribute("aria-label", re.compile("weight"))
    assert float(patches.nth(key).evaluate("x => x.style.getPropertyValue('--weight')")) == 1
    expect(page.locator("#readout")).to_contain_text(
        f"L0H1: the query of “1,3” gives most attention to “{key // 4},{key % 4}”"
    )
    url = page.locator(".strip.patches").evaluate("x => getComputedStyle(x).backgroundImage")
    assert url.startswith('url("data:image/png')


def test_patches_are_chosen_by_keys_in_two_directions(pictures_page):
    page = pictures_page
    page.evaluate("atlas.set({point: {run: 0, i: 5}})")
    page.locator(".strip.patches").focus()
    marked = page.locator(".strip.patches [aria-selected=true]")
    for key, where in [
        ("ArrowDown", "row 2, column 1"),
        ("ArrowDown", "row 2, column 1"),
        ("ArrowRight", "row 2, column 2"),
        ("ArrowUp", "row 1, column 2"),
    ]:
        page.keyboard.press(key)
        expect(marked).to_have_attribute("aria-label", re.compile(where))
    page.keyboard.press(" ")
    expect(page.locator("#readout")).to_contain_text("the key of “1,2”")


def test_patches_have_colours_of_their_own_and_are_found_by_their_place(pictures_page):
    page = pictures_page
    names = page.get_by_label("Colour").locator("option").all_text_contents()
    assert names == ["query and key", "row", "column", "norm", "class", "picture"]
    for name, said in (("row", "row 02"), ("column", "column 03"), ("class", "leftno class")):
        choose(page, "Colour", name)
        expect(page.locator(".legend")).to_have_text(said)
    page.get_by_label("Find a patch").fill("2,3")
    expect(page.locator("#searched")).to_have_text(
        "patches “2,3”: 5 queries and 5 keys in 5 pictures, lit in all heads."
    )


def test_hostile_labels_are_only_shown(open_atlas):
    """In tokens, titles, types, classes, flags, settings and names: nothing runs."""
    page = open_atlas(atlases.hostile_atlas(HOSTILE))
    page.get_by_label("both, side by side").check()
    for colour in ("token type", "word class", "sentence"):
        choose(ready(page), "Colour", colour)
    tokens(page).first.click()
    find(page, "<img src=x onerror=hit()>")
    hover_and_expect_nothing(page)


HOSTILE = f"{hostile.MARKUP} {hostile.CONTROL}"


def hover_and_expect_nothing(page):
    """Over points; `open_page` fails for a dialog."""
    cloud(page).scroll_into_view_if_needed()
    for x, y in places(page)[:5]:
        page.mouse.move(x, y)
    assert page.evaluate("typeof hit") == "undefined"  # so that a call would be an error
    assert page.locator("img, [onerror], [onload], [onmouseover]").count() == 0
    page.wait_for_timeout(200)


def test_hostile_names_of_pictures_are_only_shown(open_atlas):
    """In classes, names of files and patches."""
    own = atlases.of_pictures(word=HOSTILE)
    points = own.sides[0].queries._replace(vocabulary=[HOSTILE] * 12)
    side = own.sides[0]._replace(queries=points, keys=points)
    page = open_atlas(own._replace(sides=[side], name=HOSTILE))
    choose(page, "Colour", "class")
    tokens(page).first.click()
    hover_and_expect_nothing(page)
    expect(page.locator(".tip").first).to_contain_text("<img src=x onerror=hit()>")


@pytest.mark.parametrize("width", [320, 390])
def test_a_window_with_pictures_scrolls_in_one_direction(open_atlas, width):
    page = open_atlas(atlases.of_pictures(), width, 800)
    tokens(page).nth(3).click()
    assert page.evaluate(WIDTH) <= width


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_a_window_scrolls_in_one_direction(open_atlas, fabricated, width):
    page = open_atlas(fabricated, width, 800)
    tokens(page).nth(3).click()
    find(page, "the")
    assert page.evaluate(WIDTH) <= width


def test_axe_finds_nothing_wrong(side_by_side, dark):
    page = side_by_side(dark)
    tokens(page).nth(3).click()
    find(page, "the")
    assert faults(page) == {}


def test_axe_finds_nothing_wrong_with_pictures(open_atlas, dark):
    page = open_atlas(atlases.of_pictures(), dark=dark)
    tokens(page).nth(3).click()
    expect(page.locator("#readout")).to_contain_text("“0,3”")
    assert faults(page) == {}
