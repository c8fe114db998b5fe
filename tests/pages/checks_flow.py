"""How a guess comes about, from left to right, and the heads of a layer: make test-page."""

import json
import re
import shutil

import explored
import numpy as np
import pytest
from explored import faults, minus, number, ready, settle, tokens, view
from playwright.sync_api import expect
from safetensors.numpy import load_file, save_file

import minitx
from minitx import weights
from minitx.analysis.experiments.attribute import attribute
from minitx.analysis.pages import explore, logit_attribution

MODEL = "tiny-gpt2"
TEXT = "The old man said that he"
SHOWN = 12  # heads and MLPs that the flow shows one by one


@pytest.fixture
def page(explored_page):
    """The page of the text, with all its views drawn."""
    page = explored_page(MODEL, TEXT)
    explored.open_parts(page)
    return settle(page)


def written(page):
    """What the flow says of each writer, in the order of the pass: [(name, logits)]."""
    texts = view(page, "flow").get_by_role("listitem").all_text_contents()
    parts = [re.match(r"(.+?) ([+−]?\d+\.\d\d)", text).groups() for text in texts]
    return [(name, number(x)) for name, x in parts]


# the flow of a guess


def test_a_flow_adds_up_to_the_logit_of_its_guess(page, model):
    """The largest parts one by one, in the order of the pass, the rest as one."""
    ids = model.tokenizer.encode(TEXT)
    (place,) = logit_attribution.of_text(model, ids, [len(ids) - 1])
    parts = dict(zip(logit_attribution.components(model), place.parts[0]))
    shown = written(page)
    assert sum(x for _, x in shown) == pytest.approx(place.logits[0], abs=0.01 * len(shown))
    names = {("head", n, h): f"L{n}H{h}" for n in range(4) for h in range(4)}
    names |= {("mlp", n, -1): f"MLP {n}" for n in range(4)}
    largest = sorted(names, key=lambda key: -abs(parts[key]))[:SHOWN]
    assert {names[key] for key in largest} == {name for name, _ in shown[1:-1]}
    for key in largest:
        assert dict(shown)[names[key]] == pytest.approx(parts[key], abs=0.006)
    layers = [int(re.search(r"\d", name)[0]) for name, _ in shown[1:-1]]
    assert layers == sorted(layers)
    assert shown[0][0] == "the token itself" and shown[-1][0].endswith("others")


def test_bands_are_as_wide_as_what_is_written(page):
    """Each writer has one band to the guess: its width, over its logits, is the same for all."""
    bands = view(page, "flow").locator("svg [aria-label=link] path")
    end = "x.getPointAtLength(x.getTotalLength()).x"
    lines = bands.evaluate_all(f"all => all.map(x => [{end}, +x.getAttribute('stroke-width')])")
    right = max(x for x, _ in lines)
    widths = [width for x, width in lines if x > right - 2]
    sizes = [abs(x) for _, x in written(page)]
    assert len(widths) == len(sizes)
    ratios = [width / size for width, size in zip(widths, sizes) if width > 3]
    assert len(ratios) >= 2 and max(ratios) / min(ratios) < 1.02


def test_what_is_for_a_guess_ends_above_a_line_what_is_against_it_below(page):
    """The sums are written beside it, with the net."""
    flow = view(page, "flow")
    rule = flow.locator("svg [aria-label=rule] line").first
    zero = float(rule.get_attribute("y1"))
    bands = flow.locator("svg [aria-label=link] path")
    end = "x.getPointAtLength(x.getTotalLength())"
    ends = bands.evaluate_all(f"all => all.map(x => [{end}.x, {end}.y])")
    right = max(x for x, _ in ends)
    heights = [y for x, y in ends if x > right - 2]
    numbers = [x for _, x in written(page)]
    assert len({x < 0 for x in numbers}) == 2  # there are both
    assert [y > zero for y in heights] == [x < 0 for x in numbers]
    for word, own in (
        ("for", [x for x in numbers if x > 0]),
        ("against", [x for x in numbers if x < 0]),
        ("net", numbers),
    ):
        text = flow.locator("svg text").get_by_text(re.compile(f"^{word} ")).text_content()
        assert number(text.split()[1]) == pytest.approx(sum(own), abs=0.01 * len(numbers)), word


def test_one_card_shows_a_guess_from_left_to_right_or_head_by_head(page):
    """Not the same numbers twice; the focus stays on the button, the address keeps the choice."""
    expect(page.locator("#writers")).to_be_hidden()
    page.locator("#flow").get_by_role("button", name="head by head").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#flow")).to_be_hidden()
    button = page.locator("#writers").get_by_role("button", name="head by head")
    expect(button).to_be_focused()
    expect(button).to_have_attribute("aria-pressed", "true")
    expect(view(page, "writers").locator("svg")).to_be_visible()
    expect(page).to_have_url(re.compile("told=writers"))
    page.locator("#writers").get_by_role("button", name="from left to right").click()
    expect(page.locator("#flow")).to_be_visible()


def test_a_flow_is_read_and_chosen_by_keys(page):
    button = view(page, "flow").get_by_role("button", name=re.compile("^L")).first
    name = button.text_content()
    button.focus()
    page.keyboard.press("Enter")
    explored.expect_selected(explored.head(page, name))
    expect(view(page, "flow").get_by_role("button", name=name, exact=True)).to_be_focused()
    expect(view(page, "flow").locator("[aria-pressed=true]")).to_have_text(name)


def mlp_said(page, model, layer):
    """Begins with what the panel of the flow says of an MLP."""
    ids = model.tokenizer.encode(TEXT)
    (place,) = logit_attribution.of_text(model, ids, [len(ids) - 1])
    component = logit_attribution.components(model).index(("mlp", layer, -1))
    parts = [minus(x, "+.2f") for x in place.parts[:, component]]
    pieces = [x.replace(" ", "␣") for x in model.tokenizer.pieces(place.guesses)]
    panel = view(page, "flow").locator(".written")
    expect(panel).to_contain_text(f"MLP {layer} wrote {parts[0]} towards “{pieces[0]}”")
    each = ", ".join(f"“{piece}” {x}" for piece, x in zip(pieces, parts))
    expect(panel).to_contain_text(f"Towards each guess {each}.")
    expect(view(page, "flow").locator("[aria-pressed=true]")).to_have_text(f"MLP {layer}")


def test_an_mlp_is_chosen_in_the_flow_as_a_head_is(page, model):
    """By its button and in the picture, in both pictures of a guess; the address keeps it."""
    head = page.evaluate("minitx.state.head")
    view(page, "flow").get_by_role("button", name="MLP 1").focus()
    page.keyboard.press("Enter")
    expect(view(page, "flow").get_by_role("button", name="MLP 1")).to_be_focused()
    mlp_said(page, model, 1)
    explored.click(
        view(page, "flow").locator("svg text").get_by_text(re.compile(r"^MLP 3 \+")), x=-0.1
    )
    mlp_said(page, model, 3)
    assert page.evaluate("minitx.state.head") == head  # what the other views show
    expect(page).to_have_url(re.compile("mlp=3"))
    page.reload()
    settle(ready(page))
    explored.open_parts(page)
    mlp_said(page, model, 3)
    explored.head_by_head(page)
    expect(view(page, "writers").locator(".written")).to_contain_text("MLP 3 wrote")
    explored.click(explored.head(page, "L1H2"))
    expect(view(page, "writers").locator(".written")).to_contain_text("L1H2 wrote")
    expect(page).not_to_have_url(re.compile("mlp="))


def test_a_guess_is_told_as_the_experiment_tells_it(page, model):
    """The largest part as a share of all, with its chance; none of them writes most."""
    ids = model.tokenizer.encode(TEXT)
    result = attribute(model, prompt=TEXT)
    (place,) = logit_attribution.of_text(model, ids, [len(ids) - 1])
    assert place.most_null[0] == pytest.approx(result["largest_null"])
    largest, chance = (f"{result[name]:.0%}" for name in ("largest", "largest_null"))
    name = result["largest_name"].replace("mlp", "MLP")
    flow = view(page, "flow")
    expect(flow).to_contain_text(f"No part alone makes the guess: {name} is {largest} of the size")
    expect(flow).to_contain_text(f"(random tokens: up to {chance})")


def test_a_flow_of_another_guess_and_token(page):
    before = written(page)
    page.locator("#flow").get_by_label("Which guess").select_option("second guess")
    settle(page)
    second = written(page)
    tokens(page).nth(2).click()
    settle(page)
    expect(page.locator("#flow .hint")).to_contain_text("(2)")
    assert before != second != written(page)


@pytest.fixture
def classifier(tmp_path):
    """tiny-roberta with a random head of three classes."""
    folder = tmp_path / "classifier"
    shutil.copytree(weights.find("tiny-roberta"), folder)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config |= {"architectures": ["RobertaForSequenceClassification"], "num_labels": 3}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    arrays, rng, width = load_file(folder / "model.safetensors"), np.random.default_rng(0), 128
    arrays = {name: x for name, x in arrays.items() if not name.startswith("lm_head")}
    for name, rows in ("dense", width), ("out_proj", 3):
        arrays[f"classifier.{name}.weight"] = rng.normal(size=(rows, width)).astype(np.float32)
        arrays[f"classifier.{name}.bias"] = np.zeros(rows, np.float32)
    save_file(arrays, folder / "model.safetensors")
    return minitx.load(folder)


def test_classes_are_named_by_what_is_attributed(open_page, tmp_path, classifier):
    """Parts are of the likeliest class first, which need not be class 0."""
    ids = classifier.tokenizer.encode(TEXT)
    (place,) = logit_attribution.of_text(classifier, ids, [0])
    assert place.guesses[0] != 0
    explore.write(classifier, "classifier", TEXT, tmp_path / "page.html")
    page = settle(ready(open_page(tmp_path / "page.html")))
    expect(page.locator("#flow .hint")).to_contain_text(f"“class {place.guesses[0]}”")
    view(page, "guesses").locator(".bars li").nth(int(place.guesses[2])).click()
    expect(page.locator("#flow").get_by_label("Which guess")).to_have_value("third guess")
    explored.head_by_head(page)
    expect(page.locator("#writers .hint")).to_contain_text(f"“class {place.guesses[2]}”")


def test_axe_finds_nothing_wrong(explored_page, dark):
    page = explored_page(MODEL, TEXT, dark=dark)
    for name in "#flow", "#layer":
        assert faults(page, name) == {}


# the heads of a layer


def layer_lines(page):
    """Colours of the lines in the view of a layer."""
    lines = view(page, "layer").locator("svg [aria-label=link] path")
    return lines.evaluate_all("all => all.map(x => x.getAttribute('stroke'))")


def choose_all_heads(page):
    """Those of the layer, and a token."""
    view(page, "layer").get_by_role("button", name="all heads").click()
    tokens(page).nth(4).click()
    settle(page)


def test_a_layer_starts_with_two_heads(page):
    """The chosen one, and the sharpest other one of its layer."""
    explored.click(explored.head(page, "L2H1"))
    settle(page)
    assert len({*layer_lines(page)}) <= 2
    shown = view(page, "layer").locator("[aria-pressed=true]")
    expect(shown).to_have_count(2)
    expect(view(page, "layer").get_by_role("button", name="L2H1")).to_have_attribute(
        "aria-pressed", "true"
    )
    view(page, "layer").get_by_role("button", name="all heads").click()
    expect(shown).to_have_count(4)
    view(page, "layer").get_by_role("button", name="two heads").click()
    expect(shown).to_have_count(2)


def test_heads_of_a_layer_share_a_view(page, model):
    """A line for each weight from 0.01 on of the chosen token, a colour for each head."""
    explored.click(explored.head(page, "L2H1"))
    choose_all_heads(page)
    pattern = minitx.run(model, TEXT, ("pattern", 2))["pattern", 2][0, :, 4]
    counts = (pattern >= 0.01).sum(axis=-1)
    colours = layer_lines(page)
    assert len(colours) == counts.sum() and len({*colours}) == len(counts)
    assert sorted(colours.count(colour) for colour in {*colours}) == sorted(counts)
    expect(page.locator("#layer h2")).to_contain_text("Layer 2")


def test_a_head_is_taken_out_by_its_button_and_the_address_keeps_it(page, model):
    explored.click(explored.head(page, "L2H1"))
    choose_all_heads(page)
    button = view(page, "layer").get_by_role("button", name="L2H3")
    before = len(layer_lines(page))
    button.focus()
    page.keyboard.press("Space")
    expect(button).to_have_attribute("aria-pressed", "false")
    expect(button).to_be_focused()
    pattern = minitx.run(model, TEXT, ("pattern", 2))["pattern", 2][0, 3, 4]
    assert before - len(layer_lines(page)) == (pattern >= 0.01).sum()
    expect(page).to_have_url(re.compile(r"heads=0%2C1%2C2(&|$)"))
    page.reload()
    settle(ready(page))
    expect(button).to_have_attribute("aria-pressed", "false")


def test_a_pointer_says_what_each_head_gives_a_token(page, model):
    choose_all_heads(page)
    names = view(page, "layer").locator("[aria-label=text]").nth(1).locator("text")
    explored.point(names.nth(2))
    head = int(page.evaluate("minitx.state.head"))
    pattern = minitx.run(model, TEXT, ("pattern", head // 4))["pattern", head // 4][0, :, 4, 2]
    for n, weight in enumerate(pattern):
        expect(explored.tip(page, "layer")).to_contain_text(f"H{n}  {weight:.3f}")
