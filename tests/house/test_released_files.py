"""Files that minitx 1.0.0 wrote, in tests/released: each kind is read, and says the same."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open

import minitx
from minitx import circuits
from minitx.analysis.__main__ import main
from minitx.analysis.contract import registry
from minitx.analysis.running import many
from minitx.analysis.tuning import tune
from minitx.learning.loop import Loop
from minitx.loading.files import read_json

RELEASED = Path(__file__).parents[1] / "released"
HISTORY = RELEASED / "history"
HOW = dict(steps=60, snapshots=2, context=8, batch=2, dtype="float64")
# of the last token of [1, 2, 3, 4, 5]: the first four
LOGITS = [-0.17212614148786323, 0.21267264871143882, 0.08979729653232647, -0.10250988073500698]
TUNED = [-0.18664185581472534, 0.21912093440713085, 0.0982965347708987, -0.10853542782706348]


@pytest.mark.parametrize("name, expected", [("history", LOGITS), ("tuned", TUNED)])
def test_a_checkpoint_gives_the_same_logits(name, expected):
    model = minitx.load(RELEASED / name, dtype="float64")
    logits = minitx.logits(model, minitx.forward(model, [1, 2, 3, 4, 5]))
    assert logits[0, -1, :4] == pytest.approx(expected, abs=1e-12)


def test_a_history_has_its_losses_and_its_snapshots():
    history = minitx.History.from_folder(HISTORY, dtype="float64")
    assert history.snapshots == [0, 60] and len(history.losses) == 60
    last, own = history.model_after(60), minitx.load(HISTORY, dtype="float64")
    assert np.array_equal(last.weights.W_E, own.weights.W_E)


def test_an_interrupted_training_goes_on(tmp_path, monkeypatch):
    out = shutil.copytree(RELEASED / "interrupted", tmp_path / "out")
    with safe_open(out / "state.safetensors", "np") as file:
        state = json.loads(file.metadata()["state"])
    monkeypatch.setattr(np, "__version__", state["settings"]["numpy"])
    steps, step = [], Loop.step
    monkeypatch.setattr(Loop, "step", lambda loop: steps.append(step(loop)))
    text = RELEASED / "text.txt"
    history = minitx.train(HISTORY, text, out=out, resume=True, **HOW)
    assert len(steps) == 60 - 29 == 60 - state["steps"]
    whole = read_json(HISTORY / "train.json")
    assert history.losses == pytest.approx(whole["losses"], rel=1e-9)


def test_a_recorded_reference_is_met(capsys):
    assert main(["verify", str(HISTORY), str(RELEASED / "record.safetensors")]) == 0
    assert "\nequal: 66 arrays of 3 batches" in capsys.readouterr().out


def test_results_have_arrays_that_are_still_given(tmp_path):
    with np.load(RELEASED / "results/attention.npz") as file:
        before = dict(file)
    main(["run", "attention", str(HISTORY), "--resume", "--out", str(tmp_path)])
    with np.load(tmp_path / "attention.npz") as file:
        now = dict(file)
    assert {*before} <= {*now}


def test_the_record_of_a_tuned_checkpoint_is_read():
    assert len(tune.record_in(RELEASED / "tuned")["losses"]) == 4


def test_files_for_programs_have_the_keys_that_they_had(tmp_path, monkeypatch):
    """Of a result, a report, a circuit and a tuning: what reads those of 1.0.0 reads today's."""
    monkeypatch.setattr(registry, "EXPERIMENTS", {"attention": registry.EXPERIMENTS["attention"]})
    monkeypatch.setattr(many, "n_processes", lambda options: 1)  # no other one has this list
    text = ["--text", str(RELEASED / "text.txt")]
    main(["report", str(HISTORY), *text, "--documents", "2", "--out", str(tmp_path)])
    main(["tune", str(HISTORY), *text, "--steps", "4", "--out", str(tmp_path / "tuned")])
    pairs = [([1, 2, 3], [1, 4, 3]), ([5, 4, 3], [5, 2, 3])]
    model = minitx.load(HISTORY, dtype="float64")
    circuits.find(model, pairs, (5, 6), n_edges=4, n_random=10).save(tmp_path)
    before = RELEASED / "results/attention.json"
    assert lost(before, tmp_path / "attention.json") == []
    for name in ("report.json", "circuit.json", "tuned/tune.json"):
        assert lost(RELEASED / name, tmp_path / name) == [], name


def lost(before, now):
    """Keys that a JSON file had and another one lacks, and values of another type."""
    return [*_lost(read_json(before), read_json(now), "")]


def _lost(before, now, place):
    numbers = (int, float)
    if not isinstance(now, numbers if isinstance(before, numbers) else type(before)):
        yield f"{place}: it was {before!r:.80}, and is {now!r:.80}"
    elif isinstance(before, dict):
        for key, value in before.items():
            yield from (
                _lost(value, now[key], f"{place}/{key}") if key in now else [f"{place}/{key}"]
            )
    elif isinstance(before, list) and before and now:
        yield from _lost(before[0], now[0], f"{place}/0")
