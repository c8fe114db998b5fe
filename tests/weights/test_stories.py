"""Stories: both texts of a pair are equally long, and the answer follows from each of them."""

import re
from collections import Counter

import failing
import numpy as np
import pytest
from tokenizers import Tokenizer

from minitx.analysis.experiments import joint_space
from minitx.analysis.texts import corpus, formats, recipients
from minitx.learning.gradients import UNCOUNTED
from minitx.weights import grammar, stories
from minitx.weights.training import stories_measure as measure
from minitx.weights.training import train_stories as training

TABLES = stories.tables()
NAMES, THINGS, COLOURS, ROOMS = (TABLES[name] for name in ("name", "thing", "colour", "room"))
PLURALS = {word for name in ("things", "animals", "people") for word in TABLES[name]}
KEYS = {  # kind: what is asked about, and the words that may answer
    "holder": (THINGS, NAMES),
    "thing": (NAMES, THINGS),
    "colour": (THINGS, COLOURS),
    "room": (NAMES + THINGS, ROOMS),
    "owner": (THINGS, NAMES),
}
BESIDE = {"above": "below", "over": "under"}
for first, second in (
    ("quality", "opposite"),
    ("day", "tomorrow"),
    ("month", "later"),
    ("number", "successor"),
    ("country", "capital"),
    ("more", "less"),
):
    BESIDE |= zip(TABLES[first], TABLES[second])
TURNED = {word: key for key, word in BESIDE.items()}


def words_of(text):
    return re.findall(r"\w+|[^\w\s]", text)


def recalled(kind, text):
    """The word in the first sentence that has what is asked about."""
    keys, answers = KEYS[kind]
    asked = [word for word in words_of(text) if word in keys][-1]
    sentence = next(part for part in re.split(r"[.?]", text) if asked in words_of(part))
    return next(word for word in words_of(sentence) if word in answers)


def said_once(text):
    counts = Counter(word for word in words_of(text) if word in NAMES)
    return min(counts, key=counts.get)


def said_before(text):
    """The word that followed the last one before."""
    words = words_of(text.lower())
    return words[words.index(words[-1]) + 1]


def changed(text):
    """The word at the same point of the sentence before."""
    first, second = text.split(". ")
    return words_of(first)[len(words_of(second))]


def related(text):
    words = [word for word in words_of(text) if word in BESIDE or word in TURNED]
    return BESIDE.get(words[0]) or TURNED[words[0]]


def listed(text):
    """The word beside the last one of a closed list; a capital's country is before it."""
    words = [word for word in words_of(text) if word in BESIDE or word in TURNED]
    return BESIDE.get(words[-1]) or TURNED[words[-1]]


def summed(text):
    numbers = ["", *TABLES["number"]]
    first, _, second, _ = words_of(text.lower())
    return numbers[numbers.index(first) + numbers.index(second)]


def is_done(text):
    _, thing, number, _, _, *said = words_of(text)
    return "." if TABLES["number"].index(number) + 1 == len(said) else thing


def agrees(text):
    """Whether the first noun is one of many."""
    return words_of(text)[1] in PLURALS


SOLVED = {kind: lambda text, kind=kind: recalled(kind, text) for kind in KEYS} | {
    "other": said_once,
    "relation": related,
    "answer": lambda text: "yes" if words_of(text)[-2] in text.split(".")[0] else "no",
    "changed": changed,
    "repeated": said_before,
    "pronoun": lambda text: "he" if words_of(text)[0] in TABLES["man"] else "she",
    "count": is_done,
    "opposites": listed,
    "days": listed,
    "facts": listed,
    "sums": summed,
}


@pytest.mark.parametrize("kind", stories.KINDS)
def test_the_answer_follows_from_each_text(kind):
    for item in stories.draw(kind, 60, seed=3):
        clean, corrupt = map(words_of, (item.clean, item.corrupt))
        assert len(clean) == len(corrupt) and item.clean != item.corrupt
        assert item.right != item.wrong and item.right in item.accepted
        assert item.text.lower().startswith(f"{item.clean}{item.answers[0]}".lower())
        if kind == "agreement":
            assert (item.right in ("are", "were")) == agrees(item.clean) != agrees(item.corrupt)
        elif kind == "class":
            assert {item.right} <= {*item.accepted} and item.wrong not in item.accepted
        else:
            solved = [SOLVED[kind](text).lower() for text in (item.clean, item.corrupt)]
            assert solved == [item.right.lower(), item.wrong.lower()]


def test_chance_is_that_of_a_guess_among_the_words_that_could_answer():
    for item in stories.draw("room", 40):
        n_facts = item.clean.count(" is in the ") + item.clean.count(" went to the ")
        said = {word for word in words_of(item.clean) if word in ROOMS}
        assert item.chance == 1 / len(said) and len(said) in (2, 3) and n_facts >= len(said)
    assert {item.chance for item in stories.draw("other", 9)} == {1 / 2}
    assert {item.chance for item in stories.draw("opposites", 9)} == {1 / 60}
    item = next(x for x in stories.draw("class", 99) if x.right in TABLES["music"])
    assert item.chance in (11 / 19, 11 / 25)  # eleven instruments, beside drinks or clothes


@pytest.mark.parametrize("kind", ["relation", "answer", "agreement", "pronoun", "count"])
def test_no_answer_is_right_more_often_than_the_other(kind):
    """So that it cannot be told by frequency; of 200 items 143 at most in 1e-9 of all draws."""
    items = stories.draw(kind, 200)
    first = {"yes", ".", "he", "is", "was", "above", "over", *TABLES["more"]}
    assert 57 < sum(item.right in first for item in items) < 143


def test_what_does_not_look_back_is_right_by_chance(monkeypatch):
    """Of 1,000 items a share 0.06 above chance is beyond 3.8 standard errors."""
    monkeypatch.setattr(measure, "predicted", lambda _, texts: ["the" for _ in texts])
    follows = dict.fromkeys(stories.vocabulary(), "the")
    for kind in ("other", "holder", "thing", "colour", "room", "owner", "count", "pronoun"):
        row = measure.shares_of(kind, None, follows)
        assert row.bigram == row.model == 0 and row.rule < row.chance + 0.06


def test_the_bigrams_are_those_of_the_rows():
    follows = measure.bigrams()
    assert follows["belongs"] == "to" and follows["capital"] == "of" and follows["."] == "the"


def test_stories_are_drawn_by_their_seed():
    assert stories.draw("thing", 5, 1) == stories.draw("thing", 5, 1) != stories.draw("thing", 5, 2)
    assert stories.story(5, 1) == stories.story(5, 1) != stories.story(5, 2)
    with pytest.raises(ValueError, match="'rooms' is not a kind of story; available: other, hold"):
        stories.draw("rooms", 1)
    assert [*formats.lines("stories")] == [stories.story(10, seed) for seed in range(100)]


def test_every_word_is_one_token_however_it_is_written(tmp_path):
    """Also the words of the project's own prompts; there are 600 to 1,500."""
    known = stories.vocabulary()
    assert 600 <= len(known) == len({*known}) <= 1500
    for line in grammar.PARALLEL:
        assert len({len(TABLES[name]) for name in line.split()}) == 1
    tokenizer = Tokenizer.from_str(stories.tokenizer_files()["tokenizer.json"].decode())
    texts = [stories.story(400), *recipients.NAMES, *recipients.PLACES, *recipients.THINGS]
    texts += [re.sub(r"\{\w+\}", "", text) for text in recipients.SENTENCES]
    for text in (*texts, corpus.SENTENCE, joint_space.SENTENCE):
        ids = tokenizer.encode(text).ids
        assert ids == tokenizer.encode(text.upper()).ids and 1 not in ids
        assert len(ids) == len(words_of(text))
    assert tokenizer.decode(tokenizer.encode("Mary, come HOME!").ids) == "mary, come home!"
    assert tokenizer.encode("Mary xylophone").ids[1] == known.index(stories.UNKNOWN)


def test_what_a_text_tells_is_always_predicted():
    """Of the other words a share is; a row begins with a whole story."""
    row = training.Row(1, 48, 64, 0.0, 0.0, {}, {"room": 1e9})
    tokens, targets, _ = training.Drawn(row).batch(0, 64, seed=0)
    assert tokens.shape == targets.shape == (64, 48)
    words = np.array(stories.vocabulary())
    counted = words[targets[targets != UNCOUNTED]]
    assert np.isin(counted, ROOMS).all() and len(counted) > 64
    share = (training.Drawn(row._replace(counted=0.5)).batch(0, 64, 0).targets >= 0).mean()
    assert 0.5 < share < 0.65


@pytest.mark.parametrize("kind", training.RANDOM)
def test_a_random_row_has_said_before_what_it_tells(kind):
    """The word that is told followed the same first word of a fact, or the same word, before."""
    for seed in range(40):
        ids, is_told = training.RANDOM[kind](49, np.random.default_rng(seed))
        assert len(ids) == len(is_told) == 49 and not is_told[0] and is_told[-2:] != [False] * 2
        for end in np.flatnonzero(is_told).tolist():
            assert ids[end] in ids[:end] or ids[end] in training.END


def test_training_goes_on_from_its_state(tmp_path, monkeypatch):
    plan = [row._replace(steps=2, batch=2) for row in training.PLAN]
    monkeypatch.setattr(training, "PLAN", plan)
    whole = training.make(tmp_path / "whole")
    monkeypatch.setattr("minitx.learning.saved.SECONDS", 0.0)
    stopped = failing.once(4, training.Stories.step, KeyboardInterrupt())
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(training.Stories, "step", stopped)
        training.make(tmp_path / "in two")
    training.make(tmp_path / "in two")
    files = [tmp_path / name / "model.safetensors" for name in ("whole", "in two")]
    assert files[0].read_bytes() == files[1].read_bytes() and len(whole.losses) == 8
