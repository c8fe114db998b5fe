"""Who wrote a guess, kinds of heads, patching and heads that are off, in a browser: make test-page.

Order: the page that stands alone; the live page.
"""

import re

import explored
import pytest
import served
from axe_playwright_python.sync_playwright import Axe
from explored import ready, tokens, view
from playwright.sync_api import expect

import minitx
from minitx.analysis.live.runs import Runs
from minitx.analysis.pages import explore, logit_attribution

SENTENCE = "cat dog red milk cat dog"
TEXT = "The old man said that he"


@pytest.fixture(scope="module")
def model():
    return minitx.load("tiny-induction")


@pytest.fixture
def page(open_page, tmp_path, model):
    """The page of the sentence, with all its views drawn."""
    explore.write(model, "tiny-induction", SENTENCE, tmp_path / "page.html")
    page = ready(open_page(tmp_path / "page.html"))
    explored.head_by_head(page)
    page.evaluate("minitx.drawAll()")
    return page


def panel(page):
    """What is said of the chosen head."""
    return view(page, "writers").locator(".written")


def shown(x):
    """A number as the page writes it."""
    return f"{x:+.2f}".replace("-", "−")


def test_a_click_on_a_head_says_what_it_wrote(page, model):
    ids = model.tokenizer.encode(SENTENCE)
    last = len(ids) - 1
    (place,) = logit_attribution.of_text(model, ids, [last])
    numbers = [f"L{layer}H{head}" for _, layer, head in logit_attribution.components(model)[:16]]
    for k in (0, 3):
        component = place.heads[k]
        explored.click(explored.head(page, numbers[component]))
        text = panel(page)
        expect(text).to_contain_text(
            f"{numbers[component]} wrote {shown(place.parts[0, component])}"
        )
        word = model.tokenizer.pieces(place.words[k])[0].replace(" ", "␣")
        expect(text).to_contain_text(f"Raises most “{word}” {shown(place.raised[k, 0])}")
        label = tokens(page).nth(int(place.sources[k, 0])).text_content()
        expect(text).to_contain_text(f"Took that from “{label}” ({int(place.sources[k, 0])})")


def test_a_click_in_the_map_chooses_its_head(page):
    cells = view(page, "writers").locator("svg [aria-label=rect]").first.locator(":is(rect, path)")
    explored.click(cells.nth(10))
    explored.expect_selected(explored.head(page, "L1H2"))
    expect(panel(page)).to_contain_text("L1H2 wrote")


def test_another_guess_and_another_token(page):
    page.locator("#writers").get_by_label("Which guess").select_option("second guess")
    second = view(page, "guesses").locator(".bars li").nth(1).locator("span").first.text_content()
    expect(panel(page)).to_contain_text(f"towards “{second}”")
    view(page, "guesses").locator(".bars li").nth(2).click()
    expect(page.locator("#writers").get_by_label("Which guess")).to_have_value("third guess")
    tokens(page).nth(2).click()
    expect(page.locator("#writers .hint")).to_contain_text("(2)")


def test_heads_of_a_kind_are_labelled_and_listed(page):
    letters = view(page, "heads").locator("svg [aria-label=text]").get_by_text("I", exact=True)
    expect(letters).to_have_count(8)
    page.get_by_label("Only heads of one kind").select_option("induction heads")
    expect(explored.heads(page)).to_have_count(8)
    explored.click(explored.heads(page).first)
    expect(explored.readout(page)).to_contain_text(re.compile(r"induction heads: .* 99.0% of its"))
    page.get_by_label("Only heads of one kind").select_option("duplicate heads")
    expect(explored.heads(page)).to_have_count(0)
    expect(page).to_have_url(re.compile("kind=duplicate"))


@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_nothing_wrong(open_page, tmp_path, model, dark):
    explore.write(model, "tiny-induction", SENTENCE, tmp_path / "page.html")
    page = ready(open_page(tmp_path / "page.html", dark=dark))
    explored.head_by_head(page)
    page.evaluate("minitx.drawAll()")
    for name in "#writers", "#heads":
        report = Axe().run(page, context=name)
        assert report.violations_count == 0, report.generate_report()


# the live page


@pytest.fixture(scope="module")
def port():
    models = {name: minitx.load(name) for name in ("tiny-gpt2", "tiny-induction")}
    with served.listening(Runs(models), TEXT) as port:
        yield port


@pytest.fixture
def live(launch, kind, port):
    """The live page."""
    complaints = []
    context = launch(kind, False).new_context(viewport={"width": 1280, "height": 900})
    context.on("weberror", lambda error: complaints.append(str(error.error)))
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{port}/")
    explored.ready(page)
    yield page
    context.close()
    assert complaints == []


def part(page, name):
    """A control of the live page."""
    return page.locator(f"#live-{name}")


def test_writers_and_kinds_come_from_the_server(live):
    explored.head_by_head(live)
    live.evaluate("minitx.drawAll()")
    expect(panel(live)).to_contain_text(" wrote ")
    expect(live.locator("#heads .hint")).to_contain_text("such as −1, the token before")
    part(live, "model").select_option("tiny-induction")
    part(live, "text").fill(SENTENCE)
    expect(live.locator("#heads .hint")).to_contain_text("I induction")


def test_a_head_that_is_off_looks_off(live):
    explored.head_by_head(live)
    explored.click(explored.head(live, "L0H1"))
    live.get_by_text("Change the model", exact=True).click()
    part(live, "heads_off").click()
    expect(live.locator("#matrix")).to_have_class(re.compile("off"))
    expect(live.locator("#matrix .hint")).to_contain_text("off: what it reads is not written")
    expect(explored.readout(live)).to_contain_text("off: what it reads is not written")
    expect(live.locator("#compared")).to_contain_text(
        "(it is off there: what it reads is not written)"
    )
    expect(panel(live)).to_contain_text("L0H1 wrote 0.00")
    explored.click(explored.head(live, "L0H2"))
    expect(live.locator("#matrix")).not_to_have_class(re.compile("off"))


def test_two_texts_are_patched_or_refused(live):
    live.get_by_text("Compare with a second text").click()
    part(live, "other").fill(f"{TEXT} is")
    expect(part(live, "patch-says")).to_contain_text("7 tokens; the first text has 6")
    part(live, "patch-go").click()
    expect(part(live, "patch-says")).to_contain_text("the first text has 6 tokens, the second 7")
    part(live, "other").fill("The old man went so she")
    part(live, "patch-go").click()
    expect(part(live, "patch-says")).to_contain_text("logit of “␣was” minus logit of “␣went”")
    maps = part(live, "patch-maps").get_by_role("img")
    expect(maps).to_have_count(4)
    expect(part(live, "patch-maps")).to_contain_text("second text into the first")
    expect(part(live, "patch-maps")).to_contain_text("Most in a frame: before layer")
    expect(part(live, "patch-maps")).to_contain_text("differ carry all of it before layer 0")
    explored.click(
        maps.first.locator("svg [aria-label=rect]").first.locator(":is(rect, path)").nth(6)
    )
    explored.expect_selected(explored.head(live, "L1H2"))
    report = Axe().run(live, context="#live-patch")
    assert report.violations_count == 0, report.generate_report()
    live.reload()  # the second text stands in the address
    expect(part(live, "other")).to_have_value("The old man went so she")
    expect(part(live, "patch-maps").get_by_role("img")).to_have_count(4)
    part(live, "python").click()
    expect(part(live, "code")).to_contain_text("effects = circuits.patch(model, first, second")
    live.keyboard.press("Escape")
    part(live, "text").fill(f"{TEXT} and")  # whose maps these are not
    expect(part(live, "patch-maps").get_by_role("img")).to_have_count(0)
    expect(part(live, "patch-says")).to_contain_text("compare again")


def test_a_refused_comparison_is_forgotten_with_its_text(live):
    live.get_by_text("Compare with a second text").click()
    part(live, "other").fill(TEXT)
    part(live, "patch-go").click()
    expect(part(live, "patch-says")).to_contain_text("both texts are the same")
    part(live, "text").fill(f"{TEXT} is")  # so that they are no longer
    expect(part(live, "patch-says")).not_to_have_class(re.compile("failed"))


def test_the_tab_tells_model_and_text_and_a_refused_text_fades_the_views(live):
    part(live, "text").fill("She was old")
    expect(live).to_have_title(re.compile("tiny-gpt2: She was old"))
    part(live, "text").fill("a " * 400)
    expect(live.locator("body.refused")).to_have_count(1)
    for of_text in "#views", "#tokens", "#readout", "#live-guesses":
        expect(live.locator(of_text)).to_have_css("opacity", "0.35")
    part(live, "text").fill("She was")
    expect(live.locator("body.refused")).to_have_count(0)


def test_a_slow_server_fades_what_is_of_the_text_before(live):
    tokens, slow = live.locator("#tokens"), []

    def hold(route):
        slow.append(route)

    live.route("**/api/run", hold)
    part(live, "text").fill("She was old")
    expect(part(live, "status")).to_have_class("waits")
    expect(tokens).to_have_css("opacity", "1")
    expect(tokens).to_have_css("opacity", "0.35")  # after a second
    slow.pop().continue_()
    expect(tokens).to_have_css("opacity", "1")
    expect(tokens).to_contain_text("␣old")
