"""The page of a picture in a browser: a patch is chosen in the picture, and nothing fails."""

from explored import readout, ready, tokens, view
from playwright.sync_api import expect

import minitx
from minitx.analysis.pages import explore


def test_a_click_on_a_patch_chooses_it(open_page, tmp_path):
    path = tmp_path / "page.html"
    explore.write(minitx.load("tiny-vit"), "tiny-vit", "sample:7", path)
    page = ready(open_page(path))
    expect(tokens(page)).to_have_count(65)
    picture = view(page, "picture")
    expect(picture.locator("image")).to_have_count(2)
    picture.scroll_into_view_if_needed()
    box = picture.locator("image").nth(1).bounding_box()
    side = box["width"] / 8
    page.mouse.move(box["x"] + 2.5 * side, box["y"] + 3.5 * side)
    page.mouse.down()
    page.mouse.up()
    expect(readout(page)).to_contain_text("“3,2” (27) looks at")
    expect(page.locator("#profile")).to_be_hidden()
    expect(page.locator("#guesses")).to_contain_text("above")
