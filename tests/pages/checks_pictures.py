"""The page of a picture in a browser: a patch is chosen, offsets are those of the grid."""

import numpy as np
from explored import readout, tokens, view
from playwright.sync_api import expect

import minitx
from minitx.analysis.pages import of_pictures


def test_a_click_on_a_patch_chooses_it(explored_page):
    page = explored_page("tiny-vit", "sample:7")
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
    expect(page.locator("#guesses")).to_contain_text("above")


def test_weights_by_offset_are_means_over_the_patches_of_the_grid(explored_page):
    model, page = minitx.load("tiny-vit"), explored_page("tiny-vit", "sample:7")
    expect(page.locator("#profile [aria-label=rect] rect")).to_have_count(9 * 9 + 1)
    cells, (layer, head) = page.evaluate("byGridOffset()"), divmod(page.evaluate("state.head"), 4)
    tokens = of_pictures.drawn(model, "sample:7")
    pattern = minitx.run(model, tokens, ["pattern"])["pattern", layer][0, head, 1:, 1:]
    row, column = np.divmod(np.arange(64), 8)
    down, right = row - row[:, None], column - column[:, None]
    for cell in cells:
        mean = pattern[(down == cell["down"]) & (right == cell["right"])].mean()
        np.testing.assert_allclose(cell["w"], mean, atol=pattern.max() / 2**11)
