"""Models that learned on: what is run, what is kept, what the how-to page says of the numbers."""

import csv
import json

import numpy as np
import pytest

from benchmarks import learned_on
from minitx.analysis.tuning import tune


def reviews(folder):
    """A folder of three reviews of each kind."""
    for label in ("neg", "pos"):
        (folder / label).mkdir(parents=True)
        for n in range(3):
            (folder / label / f"{n}_1.txt").write_text(f"It was {label} {n}, said the old man.")
    return folder


def test_shuffled_labels_are_as_many_in_another_order(tmp_path):
    path = learned_on.table(reviews(tmp_path / "reviews"), tmp_path / "out")
    with path.open(encoding="utf-8", newline="") as file:
        rows = [*csv.DictReader(file)]
    own, other = ([row[name] for row in rows] for name in ("label", "shuffled"))
    assert own == ["neg"] * 3 + ["pos"] * 3
    assert sorted(other) == own != other
    assert rows[4]["text"] == "It was pos 1, said the old man."


def test_a_folder_without_reviews_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"has no neg/\*.txt and pos/\*.txt"):
        learned_on.table(tmp_path, tmp_path / "out")


def test_runs_differ_in_one_thing_each(tmp_path):
    runs = learned_on.runs(reviews(tmp_path / "reviews"), tmp_path / "out")
    assert {*learned_on.runs(None, tmp_path)} < {*runs}
    for first, second, differs in (
        ("tiny-gpt2-zero", "tiny-gpt2-kept", {"positions"}),
        ("order-0", "order-1", {"seed"}),
        ("reviews-0", "reviews-1", {"seed"}),
        ("reviews-0", "reviews-shuffled", {"label"}),
    ):
        (model, a), (same, b) = runs[first], runs[second]
        assert model == same and {key for key in a if a[key] != b[key]} == differs


def test_a_run_is_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(learned_on, "READ", {"documents": 2, "tokens": 32})
    options = {"task": "order", "documents": 12, "tokens": 24, "batch": 2, "steps": 2}
    learned = tune.tune("tiny-roberta", tmp_path / "order-0", **options)
    record = learned_on.measured("order-0", "tiny-roberta", tmp_path / "order-0", learned)
    assert json.loads(json.dumps(record)) == record
    assert [step for step, _ in record["held_out"]] == [0, 2]
    assert np.shape(record["offset"]) == np.shape(record["weight"]) == (4, 4)
    assert {"best_attention", "entropy"} <= {*record["moved"]}
