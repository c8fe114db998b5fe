"""`minitx report --json`: what the page says, for a program."""

import json
from dataclasses import replace

import numpy as np
import pytest
from planted import HOSTILE, answers, bad, giving, good, plant, unfit

import minitx
from minitx.analysis import __main__ as cli
from minitx.analysis import experiments  # noqa: F401  (fills the registry, which tests replace)
from minitx.analysis.machine import files
from minitx.analysis.pages import published

KEYS = "question verdict reason answer sensitivity says note numbers files".split()


def parsed(text):
    """Its JSON, which has no NaN and no infinities."""
    return json.loads(text, parse_constant=pytest.fail)


@pytest.fixture
def command(tmp_path):
    return ["report", "tiny-roberta", "--out", str(tmp_path), "--json"]


def test_standard_output_is_json_alone_and_progress_goes_beside(
    tmp_path, monkeypatch, capsys, command
):
    plant(monkeypatch, good)
    assert cli.main(command) == 0
    captured = capsys.readouterr()
    record = parsed(captured.out)
    assert captured.out == (tmp_path / "report.json").read_text(encoding="utf-8")
    keys = ["format", "model", "facts", "story", "experiments", "claims", "files"]
    assert [*record] == keys
    assert record["model"] == "tiny-roberta"
    assert record["facts"]["shape"] == "4 layers × 4 heads, width 128"
    assert captured.err.startswith("good ") and "index.html" in captured.err
    assert cli.main(command[:-1]) == 0  # without --json it writes the same file
    assert (tmp_path / "report.json").read_text(encoding="utf-8") == captured.out
    assert "index.html" in capsys.readouterr().out


def test_an_experiment_has_question_answer_numbers_beside_nulls_and_files(
    tmp_path, monkeypatch, capsys, command
):
    says = {"says": lambda result: "It is tame."}
    plant(monkeypatch, good, answer=answers("partly"), least_documents=3, **says)
    assert cli.main([*command, "--documents", "1"]) == 0
    record = parsed(capsys.readouterr().out)
    entry = record["experiments"]["good"]
    assert [*entry] == KEYS
    assert entry["question"] == "Is good <tame>?" and entry["verdict"] == "partly"
    measure = f"heads beyond their null {HOSTILE}"
    assert entry["answer"] == {"measure": measure, "value": "7 of 9", "chance": "1 of 9"}
    number = {"value": 2.0, "means": "a & b", "null": 0.5, "null_means": "c"}
    assert entry["numbers"] == {"value": number}
    assert entry["says"] == "It is tame." and entry["note"].startswith("takes 3 documents")
    assert entry["files"] == ["good.svg", "good.npz", "good.json"]
    assert all((tmp_path / name).is_file() for name in [*entry["files"], *record["files"]])
    own = parsed((tmp_path / "good.json").read_text(encoding="utf-8"))
    assert own["headline"] == entry["numbers"]


def test_what_failed_or_was_left_out_says_why(monkeypatch, capsys, command):
    plant(monkeypatch, bad, unfit, good)
    assert cli.main(command) == 1
    entries = parsed(capsys.readouterr().out)["experiments"]
    assert [*entries] == ["bad", "unfit", "good"]
    assert {entry["verdict"] for entry in entries.values()} == {"failed", "left out", "measured"}
    assert all(sorted(entry) == sorted(KEYS) for entry in entries.values())
    assert entries["bad"]["reason"] == "RuntimeError: something <broke>"
    assert entries["unfit"]["reason"] == "no <head> here"
    for name in ("bad", "unfit"):
        assert entries[name]["answer"] is None
        assert entries[name]["numbers"] == {} and entries[name]["files"] == []
    assert entries["good"]["reason"] == ""
    assert entries["good"]["answer"] == {"measure": "a & b", "value": "2", "chance": "0.5"}


def test_claims_are_those_of_published(monkeypatch, capsys, command):
    plant(monkeypatch, good)
    assert cli.main(command) == 0
    rows = parsed(capsys.readouterr().out)["claims"]
    expected = published.rows("tiny-roberta", minitx.load("tiny-roberta"), {})
    assert rows == json.loads(files.as_json(expected))
    assert {row["verdict"] for row in rows} <= {*published.VERDICTS}


def test_a_claim_that_is_not_a_number_is_null(monkeypatch, capsys, command):
    plant(monkeypatch, giving("odd", ratio=np.array([1.0, np.nan, np.inf])))
    fields = {"of": "", "on": "", "options": {}, "readings": (), "experiment": "odd"}
    fields["ours"] = lambda result: result["ratio"].tolist()
    fields["null"] = lambda result: float(result["ratio"][1])
    fields["holds"] = lambda ours, null: False
    claim = replace(published.CLAIMS[0], **fields)  # about any model
    monkeypatch.setattr(published, "CLAIMS", [claim])
    assert cli.main(command) == 0
    [row] = parsed(capsys.readouterr().out)["claims"]
    assert row["ours"] == [1.0, None, None] and row["null"] is None
    assert row["verdict"] == "fail"


def test_only_what_is_no_number_becomes_none():
    value = {"a": [1, float("nan"), "nan", None, True], "b": (float("-inf"), 0.5)}
    assert files.finite(value) == {"a": [1, None, "nan", None, True], "b": [None, 0.5]}
