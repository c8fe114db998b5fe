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


def test_what_the_page_says_of_positions():
    runs = learned_on.kept()
    roberta, gpt2 = (came_back(runs, model) for model in learned_on.MODELS)
    assert roberta < 0.15 and 0.5 < gpt2 < 0.8  # 0.09 and 0.64: little; most
    for model in learned_on.MODELS:
        zero, kept = runs[f"{model}-zero"], runs[f"{model}-kept"]
        assert zero["n_directed"] == 0 < kept["n_directed"]  # no head looks at one offset
        assert kept["held_out"][-1][1] < kept["held_out"][0][1]  # the control learns, too
        assert zero["held_out"][0][1] < zero["by_frequency"]
    assert 0 < runs["tiny-roberta-zero"]["by_frequency"] - final(runs["tiny-roberta-zero"]) < 0.5


def final(record):
    """The last held-out loss."""
    return record["held_out"][-1][1]


def came_back(runs, model):
    """Share of the loss that was missing, at the end."""
    zero, kept = runs[f"{model}-zero"], runs[f"{model}-kept"]
    before = zero["held_out"][0][1]
    return (before - final(zero)) / (before - final(kept))


def test_what_the_page_says_of_heads_that_moved():
    runs = learned_on.kept()
    names = "order-0", "order-1", "reviews-0", "reviews-1", "reviews-shuffled"
    changes = [np.ravel(runs[name]["moved"]["best_attention"]["difference"]) for name in names]
    assert all(abs(x).argmax() == 8 for x in changes)  # L2H0, with labels by chance, too
    correlation = np.corrcoef(changes)
    assert correlation[0, 1] > 0.95 and correlation[0, 4] > 0.8  # 0.99, 0.88
    assert correlation[2, 3] > 0.85  # 0.92: two seeds
    assert min(correlation[2:4, 4]) > 0.9  # 0.94, 0.96: labels by chance move the same heads
    amount = abs(np.array(changes)).mean(axis=1)
    assert min(amount[:2]) > 3 * amount[4]  # 0.010, 0.009; 0.0027: what the task adds
    assert min(amount[2:4]) > 1.9 * amount[4]  # 0.0076, 0.0054
    assert runs["order-0"]["offset"][2][0] == -1
    assert max(final(runs[name]) for name in names[:2]) < 0.1  # 0.057, 0.001: learned
    assert max(final(runs[name]) for name in names[2:4]) < 0.64  # 0.63, 0.61: learned a little
    assert final(runs["reviews-shuffled"]) > 0.68  # 0.69: not learned
