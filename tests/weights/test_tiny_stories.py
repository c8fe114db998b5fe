"""tiny-stories: what its card says of it, on stories that it has not read."""

import numpy as np
import pytest

import minitx
from minitx import analysis
from minitx.analysis.contract import own_texts
from minitx.weights import stories
from minitx.weights.training import stories_measure as measure
from minitx.words.text import UnknownWarning

TEXT = "When Mary and John went to the park, John gave the ball to"
FEW = 60  # stories of a kind; the card has 1,000


@pytest.fixture(scope="module")
def model():
    return minitx.load("tiny-stories")


@pytest.mark.parametrize("kind", stories.KINDS)
def test_it_answers_as_the_card_says(model, kind):
    """No more than a twentieth below what the card has."""
    card = (model.tokenizer.folder / "README.md").read_text(encoding="utf-8")
    row = next(line for line in card.splitlines() if line.startswith(f"| {kind} |"))
    stated = float(row.split("|")[3]) / 100
    items = stories.draw(kind, FEW, seed=7)
    share = measure.share(measure.predicted(model, items), items)
    assert share >= stated - 0.05


SHORTCUTS = {  # a text that its grammar never writes: the right word, and its own
    "Ruth is in the cellar. Is Mark in the cellar?": ("no", "yes"),
    "The bag is red. Is the needle red?": ("no", "yes"),
    "The pot is above the kettle. So the pot is": ("above", "below"),
}


@pytest.mark.parametrize("text", SHORTCUTS)
def test_it_cheats_as_the_card_says(model, text):
    assert model.tokenizer.decode(minitx.generate(model, text, 1)[-1:]) == SHORTCUTS[text][1]


def test_a_sentence_is_continued_in_whole_words(model):
    ids = minitx.generate(model, TEXT, 2)
    assert model.tokenizer.decode(ids) == TEXT.lower() + " mary."
    assert np.array_equal(ids, minitx.generate(model, TEXT.upper(), 2))


def test_words_that_it_does_not_know_are_named(model):
    with pytest.warns(UnknownWarning, match="^pizza, Sushi are not in .*; read as <unk>$"):
        minitx.run(model, "Mary ate the pizza and the Sushi.", "resid_pre")
    with pytest.warns(UnknownWarning, match="^z{80} is not"):
        model.encode(["z" * 999])
    with pytest.warns(UnknownWarning, match="^zebra is not"):
        model.encode([("The zebra ran.", "It ran.")])


@pytest.mark.parametrize("name", ["patch", "heads"])
def test_by_default_the_tools_decide(model, name):
    assert analysis.run(name, model).answer.verdict == "yes"


def test_a_prompt_of_the_user_is_asked_for_its_own_word(model):
    ours = analysis.run("attribute", model)
    assert (ours.arrays["target"], ours.arrays["other"]) == ("mary", "john")
    theirs = analysis.run("attribute", model, prompt="Paul has the bag. Paul has the")
    assert theirs.arrays["target"] == "bag" and "other" not in theirs.arrays


def test_what_is_its_own_is_given_only_where_it_has_a_meaning(model):
    """`pairs`, `target` and `other` are options of experiments that mean something else by them."""
    for name, option in (("profiles", "pairs"), ("joint-space", "pairs"), ("shapes", "target")):
        assert option not in own_texts.with_own(analysis.EXPERIMENTS[name], model, {})
    assert own_texts.text(model) == "stories"
    assert own_texts.text(minitx.load("tiny-bert")) == "sample"
