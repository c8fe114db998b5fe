"""Files that minitx 1.0.0 wrote, in tests/released: each kind is read, and says the same."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open

import minitx
from minitx.analysis.__main__ import main
from minitx.training.loop import Loop

RELEASED = Path(__file__).parents[1] / "released"
HISTORY = RELEASED / "history"
HOW = dict(steps=60, snapshots=2, context=8, batch=2, dtype="float64")
# of the last token of [1, 2, 3, 4, 5]: the first four
LOGITS = [-0.17212614148786323, 0.21267264871143882, 0.08979729653232647, -0.10250988073500698]


def test_a_trained_checkpoint_gives_the_same_logits():
    model = minitx.load(HISTORY, dtype="float64")
    logits = minitx.logits(model, minitx.forward(model, [1, 2, 3, 4, 5]))
    assert logits[0, -1, :4] == pytest.approx(LOGITS, abs=1e-12)


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
    whole = json.loads((HISTORY / "train.json").read_text())
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
