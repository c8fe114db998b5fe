"""Kinds of stories as pairs: of a vocabulary that has their words, and of those that have not."""

import pytest

import minitx
from minitx import analysis
from minitx.analysis.contract import registry
from minitx.analysis.measures import contrast_pairs
from minitx.analysis.texts import recipients
from minitx.weights import stories
from minitx.weights.training import train_stories as training


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    """A model that has learned nothing, with the words of the stories."""
    folder = tmp_path_factory.mktemp("stories")
    row = training.PLAN[-1]._replace(steps=1, batch=1)
    text = training.nothing()
    training.train(training.Stories([row], text, 0), text, folder)
    return minitx.load(folder)


def test_pairs_are_stories_of_a_kind(reader):
    for kind in stories.KINDS:
        asked = contrast_pairs.asked(reader, "patch", kind, n=5, seed=2)
        first = stories.draw(kind, 1, seed=2)[0]
        assert len(asked.clean) == len(asked.unrelated) == 5
        assert (asked.clean[0], asked.corrupt[0]) == (first.clean, first.corrupt)
        assert asked.answers[0] == first.answers
    r = analysis.run("patch", reader, pairs="room", n_pairs=4).arrays
    assert r["n_pairs"] == 4


def test_stories_need_a_causal_model_that_knows_their_words():
    with pytest.raises(registry.NotApplicable, match="stories of kind room are prompts for a cau"):
        analysis.run("patch", "tiny-bart", pairs="room")
    with pytest.raises(
        registry.NotApplicable, match="192 stories of kind room this vocabulary has 0"
    ):
        analysis.run("patch", "tiny-induction", pairs="room")


def test_names_are_words_that_the_vocabulary_has(reader):
    """In tiny-induction every unknown word is one token, the same one."""
    assert recipients.names_of(reader.tokenizer) == recipients.NAMES
    known = recipients.names_of(minitx.load("tiny-induction").tokenizer)
    assert known == ["Anna", "Jack", "John", "Kate", "Mark", "Mary", "Paul", "Tom"]
