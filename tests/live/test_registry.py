"""A change of the live page costs one record: one that is entered here is seen everywhere."""

import re

import new_change
import pytest
import served

import minitx
from minitx.analysis.live.changes import Changes
from minitx.analysis.live.registry import CHANGES
from minitx.analysis.live.runs import Runs

TEXT = "The dog ran after the cat, and sat."


@pytest.fixture
def entered(monkeypatch):
    """The record in the registry."""
    monkeypatch.setitem(CHANGES, new_change.RECORD.name, new_change.RECORD)


@pytest.fixture
def client(entered, bundled):
    """The page of one model, made after the record was entered."""
    return served.client(Runs({"tiny-roberta": bundled}), TEXT)


@pytest.mark.usefixtures("entered")
def test_a_new_change_is_checked(bundled):
    with pytest.raises(ValueError, match="sharper is 10; wanted a whole number from 1 to 9"):
        Changes(sharper=10)
    with pytest.raises(ValueError, match="sharper is 5; wanted at most the number of layers"):
        Changes(sharper=5).check(bundled, bundled.tokenizer.encode(TEXT))


def test_without_its_record_it_is_none():
    with pytest.raises(ValueError, match="changes have no 'sharper'; available: positions"):
        Changes(sharper=2)
    with pytest.raises(AttributeError, match="changes have no 'sharper'"):
        _ = Changes().sharper


@pytest.mark.usefixtures("entered")
def test_it_is_applied_beside_another_and_named_in_words(bundled):
    tokens = bundled.tokenizer.encode(TEXT)
    changes = Changes("zero", sharper=3)
    assert changes.says() == "positions at zero; scores times 3"
    trace = minitx.run(bundled, tokens, edits=changes.edits(bundled, tokens))
    edits = {"pos_embed": lambda x: 0 * x, "scores": lambda s: s * 3}
    by_hand = minitx.run(bundled, tokens, edits=edits)
    assert all((trace[key] == by_hand[key]).all() for key in trace)
    names = {}
    exec(changes.code(bundled, TEXT), names)
    assert all((trace[key] == names["trace"][key]).all() for key in trace)
    assert Changes.of(changes.as_json()) == changes
    assert changes.null() == Changes("shuffled", sharper=3, seed=1)


def test_the_page_offers_it_and_the_server_takes_it(client):
    page = client.get("/").text
    assert re.search('"name": "sharper", .*"kind": "slider", "label": "Scores times"', page)
    values = {"text": TEXT, "changes": {"sharper": 2}}
    answer = client.post("/api/run", json=values).json()
    assert answer["live"]["says"] == "scores times 2"
    assert [run["name"] for run in answer["runs"]] == ["as is", "changed"]
    assert "lambda s: s * 2" in client.post("/api/code", json=values).json()["code"]
