"""The page of `minitx serve` in a real browser: make test-page."""

import re
from urllib.parse import parse_qs

import explored
import new_change
import numpy as np
import pytest
import served
from explored import number, part, settle
from playwright.sync_api import expect

import minitx
from minitx.analysis.live.changes import Changes
from minitx.analysis.live.registry import CHANGES
from minitx.analysis.live.runs import Runs
from minitx.analysis.maths import profiles
from minitx.analysis.pages import logit_attribution

TEXT = "He looked at her, and then he went out of the room."
MODELS = "tiny-roberta", "tiny-gpt2", "tiny-bart"


@pytest.fixture
def page(live):
    """The live page, which complains of nothing and asks nobody but its own server."""
    page = live()
    page.get_by_text("Change the model", exact=True).click()
    return page


def answered(page, says):
    """The server has answered with these words."""
    expect(part(page, "status")).to_contain_text(re.compile(says))
    expect(part(page, "status")).not_to_have_class(re.compile("waits"))


def take_positions_away(page):
    part(page, "positions").select_option("zero")
    answered(page, "Changed: positions at zero")


def switch_off(page, name):
    """A head, which is chosen then."""
    explored.click(explored.head(page, name))
    part(page, "heads_off").click()
    answered(page, f"Changed: {name} off")


def set_to(control, value):
    """Another value for a number or a slider (Playwright adds digits to a number in Firefox)."""
    change = (
        "(control, value) => { control.value = value; control.dispatchEvent(new Event('input')) }"
    )
    control.evaluate(change, value)


def labels(page):
    return explored.tokens(page).all_text_contents()


def run(page, name):
    """The button that shows a run."""
    return page.locator("#run").get_by_text(name, exact=True)


# text


def test_views_follow_the_text(page, models):
    part(page, "text").fill("The dog ran.")
    answered(page, "Model unchanged")
    tokenizer = models["tiny-roberta"].tokenizer
    pieces = tokenizer.pieces(tokenizer.encode("The dog ran."))
    assert [label.replace("␣", " ") for label in labels(page)] == pieces


def test_the_newest_text_wins(page):
    part(page, "text").fill("")
    part(page, "text").press_sequentially("A dog ran after 17 cats.", delay=15)
    answered(page, "Model unchanged")
    expect(page.locator("#tokens")).to_have_text("<s>A␣dog␣ran␣after␣17␣cats.</s>")


def test_a_hostile_text_does_nothing(page):
    text = "</script><img src=x onerror=\"document.title='hit'\"> & \u202ebidi"
    part(page, "text").fill(text)
    answered(page, "Model unchanged")
    assert page.title() != "hit" and page.locator("img[src=x]").count() == 0
    assert "img" in "".join(labels(page))


# changes


def test_a_change_is_looked_at_beside_the_model_as_it_is(page, models):
    explored.click(explored.head(page, "L0H3"))
    take_positions_away(page)
    expect(page.get_by_role("radio", name="changed", exact=True)).to_be_checked()
    part(page, "null").check()
    expect(page.locator("#compared")).to_contain_text("by chance")
    shown = [float(x) for x in re.findall(r"0\.\d+", page.locator("#compared").text_content())]
    model = models["tiny-roberta"]
    changes = Changes("zero")
    wanted = [before(model, Changes()), before(model, changes), before(model, changes.null())]
    assert shown[:3] == pytest.approx(wanted, abs=6e-4)  # written with three digits
    assert wanted[0] > 0.9 and wanted[1] < 0.1  # measured 0.96, 0.04
    run(page, "as is").click()
    expect(explored.readout(page)).to_contain_text("the token before")


def test_a_head_at_chance_is_not_listed(page):
    """Measured as is L0H3 0.956, L1H1 0.502, L2H0 0.703; without positions nothing above 0.059."""
    page.get_by_label("Only heads whose attention peaks").select_option("token before (−1)")
    expect(explored.heads(page)).to_have_count(3)
    names = [option.get_attribute("aria-label")[:4] for option in explored.heads(page).all()]
    assert names == ["L0H3", "L1H1", "L2H0"]
    explored.expect_selected(explored.head(page, "L0H3"))  # the sharpest of them
    take_positions_away(page)
    expect(explored.view(page, "heads")).to_have_text("No head exceeds chance there.")
    expect(page.locator("#compared")).to_contain_text("(at chance)")
    expect(explored.readout(page)).to_contain_text("no offset that clearly gets more than chance")
    run(page, "the difference").click()  # in one of the runs they look there
    expect(explored.heads(page)).not_to_have_count(0)


def before(model, changes):
    """Mean attention of L0H3 to the token before."""
    tokens = model.tokenizer.encode(TEXT)
    trace = minitx.run(model, tokens, ("pattern", 0), changes.edits(model, tokens))
    pattern = np.asarray(trace["pattern", 0], np.float64)
    T = len(tokens)
    reach = min(T - 1, profiles.REACH)
    return profiles.mean_attention(profiles.profile(pattern, reach), T)[0, 3, reach - 1]


def test_heads_and_layers_are_switched_by_a_click(page):
    switch_off(page, "L1H2")
    expect(part(page, "heads_off")).to_have_text("switch L1H2 on again")
    page.get_by_role("button", name="L3", exact=True).click()
    answered(page, "L1H2 off; layer 3 off")
    page.get_by_role("button", name="L1H2 off").click()
    answered(page, "Changed: layer 3 off")
    page.get_by_role("button", name="M0", exact=True).click()
    answered(page, "layer 3 off; MLP 0 off")
    part(page, "reset").click()
    answered(page, "Model unchanged")


def test_a_mask_draws_its_curve(page):
    part(page, "family").select_option("alibi")
    answered(page, r"mask alibi\(scale=1, low=0\) as weights")
    expect(part(page, "curve").locator("[aria-label=line] path")).to_have_count(4)  # one a head
    set_to(part(page, "values").get_by_label("scale"), 3)
    part(page, "meaning").select_option("scores")
    answered(page, r"mask alibi\(scale=3, low=0\) as scores")
    part(page, "family").select_option("none")
    answered(page, "Model unchanged")
    expect(part(page, "curve")).to_be_empty()


def test_the_dial_and_the_shift(page):
    set_to(part(page, "dial"), 2)
    answered(page, r"keys' positions moved by \+2")
    part(page, "positions").select_option("shifted")
    answered(page, "the text 8 tokens later; keys' positions moved by")
    set_to(part(page, "shift"), 20)
    answered(page, "the text 20 tokens later")


def test_a_change_that_is_one_record_has_its_control(new_page, models, monkeypatch):
    monkeypatch.setitem(CHANGES, new_change.RECORD.name, new_change.RECORD)
    page = new_page(1280, 900)
    with served.listening(Runs({"tiny-roberta": models["tiny-roberta"]}), TEXT) as port:
        page.goto(f"http://127.0.0.1:{port}/")
        page.get_by_text("Change the model", exact=True).click()
        set_to(page.get_by_role("slider", name="Scores times"), 3)
        answered(page, "Changed: scores times 3")
        expect(page).to_have_url(re.compile("sharper"))
        page.reload()
        expect(page.get_by_role("slider", name="Scores times")).to_have_value("3")
        page.close()


# guesses


def test_a_hidden_token_is_guessed(page):
    explored.tokens(page).nth(3).click()
    page.get_by_role("button", name="hide “␣look” (3)").click()
    expect(explored.tokens(page).nth(3)).to_have_text("<mask>")
    rows = part(page, "guesses").locator("p")
    expect(rows).to_have_count(1)
    expect(rows.first).to_contain_text("Hidden token 3")
    page.get_by_role("button", name="show token 3 again").click()
    expect(rows).to_have_count(0)
    page.get_by_role("button", name="choose no token").click()
    page.get_by_role("button", name="hide “.” (17)").click()  # the one whose guess is shown
    expect(explored.tokens(page).nth(17)).to_have_text("<mask>")


def test_a_causal_model_goes_on(page):
    part(page, "model").select_option("tiny-gpt2")
    guess = part(page, "guesses").locator("button.guess").first
    expect(guess).to_be_visible()
    count = explored.tokens(page).count()
    guess.click()
    expect(explored.tokens(page)).to_have_count(count + 1)
    page.get_by_text("How the next token is drawn").click()
    set_to(page.get_by_role("slider", name="Temperature"), 0)
    expect(guess).to_contain_text("100%")


def test_the_next_token_is_drawn_from_what_is_shown(page, capsys):
    """Temperature, top-k and top-p change the guesses; the Python prints the same ones."""
    part(page, "model").select_option("tiny-gpt2")
    guess = part(page, "guesses").locator("button.guess")
    expect(guess).to_have_count(8)
    set_to(part(page, "top_k"), 4)
    expect(guess).to_have_count(4)
    set_to(part(page, "temperature"), 0.8)
    set_to(part(page, "top_p"), 0.9)
    expect(page).to_have_url(re.compile("top_k=4.*temperature=0.8.*top_p=0.9"))
    expect(guess).not_to_have_count(4)
    shown = [float(x[:-1]) / 100 for x in guess.locator("small").all_text_contents()]
    assert len(shown) < 4 and sum(shown) == pytest.approx(1, abs=0.02)
    part(page, "python").click()
    code = part(page, "code").locator("pre")
    expect(code).to_contain_text("Sampling(temperature=0.8, top_k=4, top_p=0.9)")
    exec(code.text_content(), {})
    printed = [float(x) for x in re.findall(r"(\d\.\d+)\)", capsys.readouterr().out)]
    assert printed == pytest.approx(shown, abs=6e-3)  # two digits
    page.keyboard.press("Escape")
    part(page, "reset").click()
    expect(guess).to_have_count(8)


def test_the_steps_of_an_encoder_decoder(page):
    part(page, "text").fill("3 May 1912")
    answered(page, "Model unchanged")
    part(page, "model").select_option("tiny-bart")
    page.get_by_text("What it says, step by step").click()
    said = part(page, "guesses").locator("tr td:nth-child(3)")
    expect(said).to_have_text(["<s>", *"1912-05-03", "</s>"])
    page.get_by_label("decoder", exact=True).check()
    take_positions_away(page)
    expect(part(page, "guesses").locator("th")).to_contain_text(["changed: prediction"])
    page.get_by_label("cross-attention", exact=True).check()
    for name in "positions", "dial", "family":
        expect(part(page, name)).to_be_disabled()


def test_the_difference_of_a_flow_is_subtracted(page, models):
    """Part by part, where both runs guess the same token; the parts add up to the whole change."""
    explored.tokens(page).nth(3).click()
    switch_off(page, "L0H3")
    run(page, "the difference").click()
    model = models["tiny-roberta"]
    ids = model.tokenizer.encode(TEXT)
    changed = {"edits": Changes(heads_off=[(0, 3)]).edits(model, ids)}
    before, after = (
        logit_attribution.of_text(model, ids, [3], **options)[0] for options in ({}, changed)
    )
    assert before.guesses[0] == after.guesses[0]
    names = logit_attribution.components(model)
    changes = dict(zip(names, after.parts[0] - before.parts[0]))
    flow = explored.view(page, "flow")
    expect(flow).to_contain_text("all parts together")
    said = flow.get_by_text("“changed” less “as is”:").locator("xpath=..").text_content()
    numbers = dict(re.findall(r"(L\dH\d|MLP \d) ([+−]\d+\.\d\d)", said))
    assert len(numbers) >= 4
    for name, x in numbers.items():
        layer, head = int(re.search(r"\d", name)[0]), int(name[-1])
        key = ("head", layer, head) if name[0] == "L" else ("mlp", layer, -1)
        assert number(x) == pytest.approx(changes[key], abs=0.006)
    (total,) = re.findall(r"all parts together ([+−]?\d+\.\d\d)", said)
    assert number(total) == pytest.approx(sum(changes.values()), abs=0.02)


# what goes wrong


def test_what_cannot_be_shown_is_said_and_the_page_stays(page):
    before = labels(page)
    part(page, "text").fill("x")
    answered(page, "the text 'x' has 1 token")
    assert labels(page) == before
    part(page, "text").fill("x is y")
    answered(page, "Model unchanged")


def test_a_server_that_is_gone_is_said(page):
    page.context.set_offline(True)
    part(page, "positions").select_option("zero")
    answered(page, "is minitx serve still running?")
    page.context.set_offline(False)
    answered(page, "Changed: positions at zero")  # the page asks again by itself
    expect(part(page, "status")).not_to_have_class("failed")


# the address, saving, the Python


def test_the_address_brings_everything_back(page):
    explored.click(explored.head(page, "L2H1"))
    part(page, "text").fill("A dog & a cat = two")
    part(page, "positions").select_option("zero")
    part(page, "null").check()
    answered(page, "Changed: positions at zero")
    expect(page).to_have_url(re.compile("null=true.*head=L2H1|head=L2H1.*null=true"))
    page.reload()
    answered(page, "Changed: positions at zero")
    expect(part(page, "text")).to_have_value("A dog & a cat = two")
    expect(part(page, "null")).to_be_checked()
    expect(explored.readout(page)).to_contain_text("L2H1")
    page.evaluate("location.hash = '#changes=nonsense&model=other'")
    answered(page, "Model unchanged")


def test_the_address_names_what_the_server_began_with(page):
    """Another server begins with another model or text."""
    explored.click(explored.head(page, "L2H1"))
    given = parse_qs(page.evaluate("location.hash.slice(1)"))
    assert given["text"] == [part(page, "text").input_value()]
    assert given["model"] == [part(page, "model").input_value()]


def test_back_takes_one_step_back(page):
    """A text that is typed is one step, each choice another; what was looked at comes back too."""
    part(page, "text").fill("")
    part(page, "text").press_sequentially("A dog ran.", delay=15)
    answered(page, "Model unchanged")
    take_positions_away(page)
    part(page, "positions").select_option("shuffled")
    answered(page, "Changed: positions shuffled")
    explored.go(page, -1)
    answered(page, "Changed: positions at zero")
    expect(part(page, "positions")).to_have_value("zero")
    explored.go(page, -1)
    answered(page, "Model unchanged")
    expect(part(page, "text")).to_have_value("A dog ran.")
    explored.go(page, -1)
    answered(page, "Model unchanged")
    expect(part(page, "text")).to_have_value(TEXT)
    explored.go(page, 1)
    expect(part(page, "text")).to_have_value("A dog ran.")
    answered(page, "Model unchanged")


def test_the_address_brings_part_and_head_of_another_model_back(page, port):
    page.goto("about:blank")
    page.goto(f"http://127.0.0.1:{port}/#model=tiny-bart&text=3+May+1912&part=cross&head=L1H2")
    answered(page, "Model unchanged")
    expect(page.get_by_label("the decoder's, to its source")).to_be_checked()
    expect(explored.readout(page)).to_contain_text("L1H2")


def test_a_saved_page_opens_as_it_was_saved(page, saved, open_page):
    """Head, token, side, and the difference; its own address comes first."""
    take_positions_away(page)
    explored.click(explored.head(page, "L1H2"))
    run(page, "the difference").click()
    explored.tokens(page).nth(4).click()
    page.get_by_label("what looks at it").check()
    path = saved(part(page, "save"))
    alone = explored.ready(open_page(path))
    assert alone.locator("#live").count() == 0
    expect(alone.get_by_label("the difference")).to_be_checked()
    explored.expect_selected(explored.head(alone, "L1H2"))
    assert explored.choice(alone) == (4, "key")
    alone = explored.ready(open_page(path, hash_="#head=L2H3"))
    explored.expect_selected(explored.head(alone, "L2H3"))
    assert explored.choice(alone) == (None, "query")


def test_a_saved_page_says_what_was_changed(page, saved, open_page):
    """As the live page does; of a chosen token too, where a head is off."""
    explored.click(explored.head(page, "L1H2"))
    part(page, "heads_off").click()
    page.get_by_role("button", name="M3", exact=True).click()
    answered(page, "Changed: L1H2 off; MLP 3 off")
    run(page, "the difference").click()
    explored.tokens(page).nth(4).click()
    alone = explored.ready(open_page(saved(part(page, "save"))))
    expect(alone.get_by_text("Changed: L1H2 off; MLP 3 off.", exact=True)).to_be_visible()
    expect(explored.readout(alone)).to_contain_text(
        "L1H2 is off: what it reads is not written. L1H2, “changed” less “as is”: "
    )


def test_sentences_of_a_difference_have_verbs(page):
    """And the legend has the words of the caption."""
    switch_off(page, "L1H2")
    run(page, "the difference").click()
    said = explored.readout(page)
    expect(said).to_contain_text(
        "L1H2 is off: what it reads is not written. It moves 0% of its attention elsewhere. "
    )
    expect(page.locator("#compared")).to_contain_text(
        "(it is off there: what it reads is not written)"
    )
    explored.tokens(page).nth(4).click()
    expect(said).to_have_text(re.compile(r": no weight from “.*” \(4\) changes by 0.01 or more.$"))
    legend = explored.view(page, "matrix").get_by_text("weight, “changed” less “as is”")
    expect(legend).to_have_count(1)


def test_another_model_opens_at_its_sharpest_head(page):
    """As `explore` does."""
    explored.click(explored.head(page, "L1H2"))
    part(page, "model").select_option("tiny-gpt2")
    answered(page, "Model unchanged")
    part(page, "model").select_option("tiny-roberta")
    expect(explored.readout(page)).to_contain_text("L0H3 ")
    explored.expect_selected(explored.head(page, "L0H3"))


def test_a_change_stands_in_the_address_at_once(page):
    """With what it will show: who copies the address before the answer gets the same."""
    part(page, "positions").select_option("zero")
    given = parse_qs(page.evaluate("location.hash.slice(1)"))
    assert given["run"] == ["1"] and "zero" in given["changes"][0]
    answered(page, "Changed: positions at zero")
    expect(page.get_by_role("radio", name="changed", exact=True)).to_be_checked()
    part(page, "reset").click()
    assert "run" not in parse_qs(page.evaluate("location.hash.slice(1)"))
    answered(page, "Model unchanged")


def test_the_python_is_shown_and_prints_the_number_on_the_screen(page, capsys):
    explored.click(explored.head(page, "L0H3"))
    take_positions_away(page)
    part(page, "python").click()
    code = part(page, "code").locator("pre")
    expect(code).to_contain_text("trace = minitx.run(model, tokens, edits=edits)")
    names = {}
    exec(code.text_content(), names)
    assert not names["trace"]["pos_embed"].any()
    first, *guesses = capsys.readouterr().out.splitlines()
    (shown,) = re.findall(r"“changed” (0\.\d+)", page.locator("#compared").text_content())
    assert first == f"L0H3, offset -1: {shown}"
    settle(page)
    bars = explored.view(page, "guesses").locator(".bars li")
    said = [x.locator("span").nth(1).text_content() for x in bars.all()]
    assert len(guesses) == len(said) == 5
    for line, share in zip(guesses, said):
        (changed,) = re.findall(r"changed (\S+)%", line)
        assert float(share.rstrip(" %")) == pytest.approx(float(changed), abs=0.51)
    part(page, "save").hover()  # which it does not cover
    page.keyboard.press("Escape")
    expect(part(page, "code")).not_to_be_visible()


def test_a_difference_has_every_number_that_the_server_knows(page):
    """What is among the five likeliest of one run alone had "<" and two ends of its change."""
    part(page, "model").select_option("tiny-gpt2")
    part(page, "text").fill("The old man said that he")
    take_positions_away(page)
    run(page, "the difference").click()
    settle(page)
    rows = page.locator(".changed-guesses tr").all()[1:]
    assert len(rows) > 5  # some are likely in one run alone
    for row in rows:
        before, after, change = row.locator("td").all_text_contents()[1:4]
        points = float(after.rstrip(" %")) - float(before.rstrip(" %"))
        assert number(change) == pytest.approx(points, abs=1.05)  # of whole ones


def test_the_python_of_a_difference_ends_with_the_signed_numbers(page, capsys):
    explored.tokens(page).nth(3).click()
    part(page, "heads_off").click()
    answered(page, "Changed: L0H3 off")
    run(page, "the difference").click()
    part(page, "python").click()
    code = part(page, "code").locator("pre")
    expect(code).to_contain_text("softmax")
    exec(code.text_content(), {})
    printed = capsys.readouterr().out.splitlines()[1:]
    rows = page.locator(".changed-guesses tr")
    for line in printed:
        piece, change = re.findall(r"guess '(.*?)': .*difference ([+-][\d.]+)%", line)[0]
        row = rows.filter(has=page.get_by_role("cell", name=piece.replace(" ", "␣"), exact=True))
        said = row.locator("td").nth(3).text_content().replace("−", "-")
        if said[0] in "+-" and "…" not in said:
            assert float(said) == pytest.approx(float(change), abs=0.06)
    assert len(printed) == 5 and "…" not in rows.nth(1).text_content()
