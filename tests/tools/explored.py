"""A page of `minitx explore` as its reader sees it: heads, tokens, views, hover texts."""

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

VIEWS = "heads", "joint", "lines", "columns", "matrix", "profile"  # of attention
WIDTH = "document.documentElement.scrollWidth"  # more than the window's: it scrolls sideways
FRAMES = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
DRAWN = """() => new Promise(done => {
  const views = document.getElementById("views"), status = document.getElementById("live-status");
  const isDrawn = () => !+views?.dataset.pending && !status?.classList.contains("waits");
  const end = performance.now() + 5000;  // a check may let a server wait
  const look = () => isDrawn() || performance.now() > end ? done() : setTimeout(look, 20);
  look();
})"""


def ready(page):
    """The page, once its views are drawn; it may be a frame."""
    expect(view(page, "matrix").locator("svg")).to_have_count(2)
    expect(view(page, "heads").get_by_role("option").first).to_be_visible()
    return page


# the parts of the page


def part(page, name):
    """A control of the live page."""
    return page.locator(f"#live-{name}")


def view(page, name):
    """The picture of a view."""
    return page.locator(f"#{name} .plot")


def heads(page):
    return page.get_by_role("listbox", name="Heads").get_by_role("option")


def head(page, name):
    return page.get_by_role("listbox", name="Heads").get_by_role("option", name=f"{name}. ")


def tokens(page):
    """The tokens of the text; of an encoder-decoder's cross-attention those of both texts."""
    return page.get_by_role("listbox", name="Tokens").get_by_role("option")


def readout(page):
    """The sentence on the chosen head and token."""
    return page.locator("#readout")


def dots(page, name):
    """The dots of a view, the queries' first."""
    return view(page, name).locator("[aria-label=dot] :is(path, circle)")


def links(page, name):
    return view(page, name).locator("[aria-label=link] path")


def names(page, side):
    """The labels of the queries (0) or keys (1) beside the lines."""
    return view(page, "lines").locator("[aria-label=text]").nth(side).locator("text")


def go(page, steps):
    """Back, or forward; the page itself goes, so that no step of it is still on its way."""
    page.evaluate("n => history.go(n)", steps)


def head_by_head(page):
    """Show where a guess comes from head by head, not from left to right."""
    button = page.locator("#flow").get_by_role("button", name="head by head")
    if button.is_visible():
        button.click()


def open_parts(page):
    """Show the parts of a guess of which none stands out."""
    settle(page)
    fold = page.locator("#flow").get_by_text("Show the parts")
    if fold.is_visible() and not fold.locator("..").evaluate("x => x.open"):
        fold.click()


def tip(page, name):
    """The hover text of a view."""
    return view(page, name).locator("[aria-label=tip]")


# what is drawn is no button: the pointer goes to where it lies


def point(drawn, x=0.5, y=0.5):
    """Move the pointer to the middle of what is drawn, or to a share x, y of its size."""
    box = still(drawn)
    drawn.page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])
    drawn.page.evaluate(FRAMES)


def still(drawn):
    """Where it lies in the middle of the window, once nothing is asked or drawn for two frames."""
    drawn.evaluate(DRAWN)
    before = None
    while not (box := in_the_middle(drawn)) or not is_where(box, before):
        before = box
        drawn.page.evaluate(FRAMES)
    return box


def is_where(box, before):
    """Whether it lies where it lay: Firefox scrolls by whole pixels, to and fro about a half."""
    return before is not None and all(abs(box[name] - before[name]) <= 1 for name in box)


def in_the_middle(drawn):
    """Where it lies, below what stays on top."""
    drawn.evaluate("x => x.scrollIntoView({block: 'center'})")
    return drawn.bounding_box()


def click(drawn, x=0.5, y=0.5):
    point(drawn, x, y)
    drawn.page.mouse.down()
    drawn.page.mouse.up()
    drawn.page.evaluate(FRAMES)


def cell(page, query, key):
    """(the picture of the matrix; where in it a cell lies, as shares of its size)"""
    T = tokens(page).count()
    return view(page, "matrix").locator("image").last, (key + 0.5) / T, (query + 0.5) / T


# what is seen of them


def settle(page):
    """The page, once every view and the next frame have been drawn, hover texts and all."""
    expect(page.locator("#views")).to_have_attribute("data-pending", "0")
    page.evaluate(FRAMES)
    return page


def drawing(page):
    """{view: what is drawn in it}"""
    settle(page)
    return {name: view(page, name).inner_html() for name in VIEWS}


def changed(before, after):
    """Views that are drawn in another way."""
    return {name for name in VIEWS if before[name] != after[name]}


def choice(page):
    """(position of the chosen token, "query" or "key"); the position is None if there is none."""
    selected = [x.get_attribute("aria-selected") == "true" for x in tokens(page).all()]
    side = "query" if page.get_by_label("what it looks at").is_checked() else "key"
    return selected.index(True) if any(selected) else None, side


def expect_selected(option):
    expect(option).to_have_attribute("aria-selected", "true")


def expect_outline(page, visible):
    """The outline of the chosen token in the matrix can be seen, or not."""
    outline = view(page, "matrix").locator(".outline rect")
    expect(outline).to_have_attribute("visibility", "visible" if visible else "hidden")


def minus(x, form):
    """A number as the page writes it."""
    return format(x, form).replace("-", "−")


def number(text):
    """The number that such a text is."""
    return float(text.replace("−", "-"))


def faults(page, context=None):
    """What axe-core finds wrong by the rules that hold for every page: {rule: elements}.

    (WCAG 2 A and AA, and good practice.) context: the part that is looked at.
    """
    report = Axe().run(page, context).response
    assert report["passes"]  # it has looked
    return {x["id"]: [node["html"] for node in x["nodes"]] for x in report["violations"]}
