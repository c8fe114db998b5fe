"""A query times a key, element by element, in the live page: make test-page."""

import re

import explored
import numpy as np
import pytest
import served
from axe_playwright_python.sync_playwright import Axe
from explored import ready, settle
from playwright.sync_api import expect

import minitx
from minitx.analysis.live.runs import Runs

TEXT = "The old man said that he"
SHOWN = 16


@pytest.fixture
def live(launch, kind):
    """live(width, dark) -> the live page of tiny-gpt2, its neurons open."""
    contexts = []
    with served.listening(Runs({"tiny-gpt2": minitx.load("tiny-gpt2")}), TEXT) as port:

        def live(width=1280, dark=False, hash_="head=L1H2&token=4"):
            scheme = "dark" if dark else "light"
            size = {"width": width, "height": 900}
            contexts.append(launch(kind, dark).new_context(viewport=size, color_scheme=scheme))
            page = contexts[-1].new_page()
            page.goto(f"http://127.0.0.1:{port}/#{hash_}")
            settle(ready(page))
            if "walk" not in hash_:
                page.locator("#neurons summary").click()
            expect(page.locator("#neurons svg").last).to_be_visible()
            return page

        yield live
        for context in contexts:
            context.close()


def rows(page):
    """What the bars say: [(element or None, product)]."""
    texts = page.locator("#neurons .plot svg text").all_text_contents()
    names = [text for text in texts if re.match(r"element|\d+ others", text)]
    numbers = [text for text in texts if re.fullmatch(r"−?\d+\.\d\d", text)][-len(names) :]
    values = [float(text.replace("−", "-")) for text in numbers]
    return dict(zip(names, values, strict=True))


def test_products_are_those_of_numpy_for_the_key_that_is_chosen(live):
    page = live()
    model = minitx.load("tiny-gpt2")
    trace = minitx.run(model, TEXT)
    strongest = int(trace["pattern", 1][0, 2, 4].argmax())
    chooser = page.locator("#key-of-0")
    expect(chooser).to_have_value(str(strongest))
    for key in (strongest, 1):
        chooser.select_option(str(key))
        score = f"{trace['scores', 1][0, 2, 4, key]:.2f}".replace("-", "−")
        expect(page.locator("#neurons")).to_contain_text(f"add up to {score}")
        settle(page)
        products = trace["q", 1][0, 2, 4] * trace["k", 1][0, 2, key] / np.sqrt(32)
        largest = np.argsort(-abs(products))[:SHOWN]
        shown = rows(page)
        assert [*shown] == [*(f"element {e}" for e in largest), f"{32 - SHOWN} others"]
        assert [*shown.values()][:SHOWN] == pytest.approx(products[largest], abs=0.0051)
    expect(page).to_have_url(re.compile("partner=1"))
    explored.click(explored.head(page, "L0H1"))
    expect(page).not_to_have_url(re.compile("partner"))


def test_the_walk_lights_the_product(live):
    page = live(hash_="walk=4")
    expect(page.locator(".lit")).to_have_attribute("id", "neurons")


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_nothing_wrong(live, width, dark):
    page = live(width, dark)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    report = Axe().run(page, context="#neurons")
    assert report.violations_count == 0, report.generate_report()
