"""The atlas page as its reader sees it: heads, the large picture, tokens, what is said."""

from playwright.sync_api import expect


def ready(page):
    """The page, once every head is drawn."""
    expect(page.locator("#panes")).to_have_attribute("data-pending", "0")
    return page


def head(page, name, run=0):
    return page.locator(".grid").nth(run).get_by_role("option", name=name)


def cloud(page):
    """The large picture of one head."""
    return page.locator(".cloud").first


def tokens(page):
    """The tokens of the sentence; of cross-attention those of both texts."""
    return page.locator("#strips").get_by_role("option")


def choose(page, label, value):
    """Choose of one of the lists above the pictures."""
    page.locator("#choose").get_by_label(label).select_option(value)
    return ready(page)


def find(page, words):
    """Search a token; what the page says of it."""
    page.get_by_label("Find a token").fill(words)
    expect(page.locator("#searched")).to_contain_text(words)
    ready(page)
    return page.locator("#searched").text_content()


def places(page, run=0):
    """Where the points of the large picture stand on the screen. [[x, y], ...]"""
    box = page.locator(".cloud").nth(run).bounding_box()
    pixels = page.evaluate(
        """run => { const {cloud} = atlas.panes[run];
        return Array.from({length: cloud.points.n}, (_, i) => cloud.screen(i)); }""",
        run,
    )
    return [[box["x"] + 1 + x, box["y"] + 1 + y] for x, y in pixels]


def colours(page, name):
    """The colours of a head's small picture, those that are clearly seen. {(red, green, blue)}"""
    return {tuple(rgb) for rgb in page.evaluate(SEEN, head(page, name).get_attribute("id"))}


SEEN = """id => {
  const canvas = document.getElementById(id).firstChild;
  const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height), seen = [];
  for (let at = 0; at < data.length; at += 4) {
    if (data[at + 3] > 250) seen.push([...data.slice(at, at + 3)]);
  }
  return seen;
}"""


def lasso(page, box):
    """Draw a lasso around a rectangle of the screen: left, top, right, bottom."""
    left, top, right, bottom = box
    corners = [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)]
    page.keyboard.down("Shift")
    page.mouse.move(*corners[0])
    page.mouse.down()
    for corner in corners[1:]:
        page.mouse.move(*corner, steps=6)
    page.mouse.up()
    page.keyboard.up("Shift")
    return ready(page)
