"""The page of an Atlas without a browser: what stands in it, how exact it is, what cannot act.

checks_atlas.py opens it in one (make test-page). Records are fabricated (tools/atlases.py).
"""

import json
import re

import atlases
import hostile
import inert
import numpy as np
import pytest
from elements import Elements

from minitx.analysis.pages import assets, atlas, explore


@pytest.fixture(scope="module")
def fabricated():
    """A fabricated Atlas."""
    return atlases.atlas()


@pytest.fixture(scope="module")
def scripts(fabricated):
    """The scripts of its page."""
    return Elements(atlas.page(fabricated))


def data_of(scripts):
    """The first space that a page's program reads."""
    return scripts.data["runs"][0]["spaces"][0]


def codes(scripts, name, head):
    """The codes of a head, as the page opens them, with their shape and steps."""
    facts = data_of(scripts)["packed"][name]
    dtype = np.uint16 if facts["steps"] > 255 else np.uint8
    return atlas.opened(scripts.held[f"0.0.{name}.{head}"], facts["shape"], dtype), facts


def test_nothing_outside_the_page_is_named_or_allowed(scripts):
    policy = [x["content"] for _, x, _ in scripts.elements if "http-equiv" in x]
    assert policy == ["; ".join(f"{what} {where}" for what, where in explore.POLICY.items())]
    for tag, attributes, _ in scripts.elements:
        for name in ("src", "href", "srcset", "data", "action", "poster", "background"):
            assert (attributes.get(name) or "data:").startswith("data:"), (tag, attributes)
    libraries, own = scripts.programs[:2], "".join(scripts.programs[2:])
    assert libraries == [*map(assets.text, atlas.ASSETS.values())]
    assert all(script in own for script in assets.scripts(*atlas.PROGRAM))
    network = r"fetch\(|XMLHttpRequest|WebSocket|import[ (]|sendBeacon|EventSource|localStorage"
    compiled = r"\beval\(|new Function|innerHTML|insertAdjacentHTML|document\.write"
    assert not re.search(f"{network}|{compiled}", own)


def test_the_library_and_what_its_licence_asks_for():
    """Its bytes are compared with SOURCES.md in test_explore.py; it compiles no strings."""
    program = assets.text("three.min.js")
    assert not re.search(r"new Function|\bFunction\(|\beval\(", program)
    page = atlas.page(atlases.atlas(2, 3, 1, 1))
    for holder in ("three.js authors", "Mike Bostock"):
        assert holder in page


def test_coordinates_come_back_within_half_a_step(fabricated, scripts):
    """Of 4,095 steps in all between the least and the greatest of a head, each head its own."""
    space = fabricated.sides[0]
    for head in range(6):
        xy = np.float64(space.xy["pca"][head // 3, head % 3])
        plane, facts = codes(scripts, "pca", head)
        back = facts["low"][head] + plane.T * facts["step"][head]
        assert abs(back - xy).max() <= 0.5001 * np.ptp(xy) / 4095
        third, facts = codes(scripts, "third", head)
        z = np.float64(space.xy["pca3"][head // 3, head % 3][:, 2])
        back = facts["low"][head] + third[0] * facts["step"][head]
        assert abs(back - z).max() <= 0.5001 * np.ptp(z) / 255


def test_a_third_axis_of_other_planes_is_packed_with_them(fabricated):
    """Where the first two axes of 3-D are not those of the plane, all three are there."""
    space = fabricated.sides[0]
    turned = space.xy["pca3"][..., ::-1]
    other = space._replace(xy={"pca": space.xy["pca"], "pca3": turned})
    page = Elements(atlas.page(fabricated._replace(sides=[other])))
    own, facts = codes(page, "pca3", 4)
    assert "third" not in data_of(page)["packed"] and own.shape == (3, 108)
    back = facts["low"][4] + own.T * facts["step"][4]
    assert abs(back - turned[1, 1]).max() <= 0.5001 * np.ptp(turned[1, 1]) / 4095


def test_norms_and_strongest_keys_come_back(fabricated, scripts):
    """Norms within half of 63 steps; keys exactly; roots of weights within half of 127 steps."""
    space = fabricated.sides[0]
    starts = space.queries.sentence * 9
    for head in range(6):
        where = head // 3, head % 3
        norms = np.concatenate([space.norms["query"][where], space.norms["key"][where]])
        own, facts = codes(scripts, "norms", head)
        back = facts["low"][head] + own * facts["step"][head]
        assert abs(back - norms).max() <= 0.5001 * np.ptp(norms) / 63
        rows, _ = codes(scripts, "strongest", head)
        assert np.array_equal(rows[:5].T + starts[:, None], space.strongest.index[where])
        roots = np.sqrt(np.float64(space.strongest.weight[where]))
        assert abs(rows[5:].T / 127 - roots).max() <= 0.5001 / 127


def test_a_query_without_five_keys_says_so():
    short = atlases.atlas(3, 3, 1, 1)
    rows, _ = codes(Elements(atlas.page(short)), "strongest", 0)
    assert (rows[3:5] == atlas.BYTE).all() and (rows[:3] < 3).all()


def test_keys_of_a_long_sentence_have_two_bytes():
    """Of 300 tokens: a patch of a large picture has as many beside it."""
    long = atlases.atlas(2, 300, 1, 1)
    rows, facts = codes(Elements(atlas.page(long)), "strongest", 0)
    assert rows.shape == (15, 600) and facts["most"] == 5
    index = rows[:5].astype(int) | rows[10:].astype(int) << 8
    starts = long.sides[0].queries.sentence * 300
    assert index.max() > 255
    np.testing.assert_array_equal(index.T + starts[:, None], long.sides[0].strongest.index[0, 0])


def test_pictures_stand_in_the_page_pixel_by_pixel():
    of_pictures = atlases.of_pictures()
    page = Elements(atlas.page(of_pictures))
    own = of_pictures.sides[0].pictures
    facts = {"rows": 3, "columns": 4, "height": 6, "width": 8, "n": 5}
    assert data_of(page)["pictures"] == facts
    for n, pixels in enumerate(own.pixels):
        back = atlas.opened(page.held[f"0.0.picture.{n}"], pixels.shape, np.uint8)
        np.testing.assert_array_equal(back, pixels)


def test_a_key_of_another_sentence_is_refused(fabricated):
    space = fabricated.sides[0]
    index = space.strongest.index.copy()

    def write():
        wrong = space._replace(strongest=space.strongest._replace(index=index))
        atlas.page(fabricated._replace(sides=[wrong]))

    index[0, 0, 0, 0] = 400
    with pytest.raises(ValueError, match="400 keys after the first of its sentence; wanted 0 to"):
        write()
    index[0, 0, [0, 20], 0] = 50, 3
    with pytest.raises(ValueError, match="keys of the same sentence"):
        write()


def test_tables_say_what_the_points_are(fabricated, scripts):
    points, table = fabricated.sides[0].queries, data_of(scripts)["queries"]
    for name in ("sentence", "position", "token", "type", "length", "word_class"):
        assert table[name] == getattr(points, name).tolist()
    np.testing.assert_allclose(table["frequency"], points.frequency, rtol=1e-5)
    assert data_of(scripts)["keys"] is None  # the same: they stand there once
    cross = Elements(atlas.page(atlases.with_three_spaces())).data
    assert [space["keys"] is None for space in cross["runs"][0]["spaces"]] == [True, True, False]


def test_two_atlases_stand_side_by_side():
    first, second = atlases.atlas(2, 4, 1, 2), atlases.atlas(3, 3, 2, 1, name="second")
    page = Elements(atlas.page(first._replace(beside=second)))
    assert [run["name"] for run in page.data["runs"]] == ["fabricated", "second"]
    assert {"0.0.pca.1", "1.0.pca.1"} < page.held.keys()


def test_hostile_texts_cannot_act():
    """In names, tokens, titles, types, classes, flags and settings; checks_atlas.py opens it."""
    page = atlas.page(atlases.hostile_atlas(f"{hostile.MARKUP} {hostile.CONTROL}"))
    assert inert.html(page.encode()) == []
    assert "hit()" in page  # they are not left out
    shown = json.dumps(Elements(page).data, ensure_ascii=False)
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x1b]", shown)  # nothing turns the direction


def test_numbers_that_are_none_are_said_as_such():
    """A share of no keys at all is not a number, which JSON does not have."""
    fabricated = atlases.atlas(2, 4, 1, 2)
    lie = fabricated.sides[0].lie._replace(near_plane=np.array([[np.nan, 0.5]]), misleads=None)
    page = Elements(atlas.page(fabricated._replace(sides=[fabricated.sides[0]._replace(lie=lie)])))
    assert data_of(page)["lie"]["near_plane"] == [None, 0.5]
    assert data_of(page)["lie"]["misleads"] is None


def test_a_page_of_full_size_stays_within_its_limit():
    """25 MB for 200 sentences of 40 tokens and 12 × 12 heads: from one layer of them."""
    fabricated = atlases.atlas(200, 40, 1, 4)
    page = Elements(atlas.page(fabricated))
    arrays = sum(len(text) for name, text in page.held.items() if name != "data")
    rest = len(atlas.page(fabricated)) - arrays
    assert rest + arrays / 4 * 144 < 25e6


def test_write_gives_the_size_and_the_same_bytes(tmp_path, fabricated):
    size = atlas.write(fabricated, tmp_path / "a.html")
    assert size == (tmp_path / "a.html").stat().st_size
    atlas.write(fabricated, tmp_path / "b.html")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
