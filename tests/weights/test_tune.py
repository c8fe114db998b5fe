"""`minitx tune`: AdamW as PyTorch's, folders that load, runs that go on to the same bytes."""

import json
import os
import re
import shutil

import failing
import numpy as np
import parity
import pytest
import tiny
import tuning
from safetensors.numpy import load_file

import minitx
from minitx import weights
from minitx.analysis import commands
from minitx.analysis.tuning import batches, state, tensors, training
from minitx.analysis.tuning.tune import tune, with_positions
from minitx.learning import adamw
from minitx.learning.parameters import parameters
from minitx.loading.files import read_json

GOLDEN = load_file(parity.GOLDEN / "tuning.safetensors")
LABELLED = "text,label\n" + "The dog ran to the sea and sat.,dog\nA cat is here at last.,cat\n" * 8


def test_steps_are_those_of_pytorch():
    arrays, gradients = tuning.random_steps()
    optimizer = adamw.AdamW(arrays, tuning.DECAY)
    for i, given in enumerate(gradients):
        optimizer.step(given, tuning.RATE / (i + 1))
        for name, x in arrays.items():
            distance = abs(x - GOLDEN[f"step.{i}.{name}"]).max()
            assert distance < 1e-12, (i, name)


@pytest.mark.parametrize("variant", tuning.CURVES)
def test_a_curve_of_200_steps_is_that_of_pytorch(variant):
    """With decay, clipping, a rate that rises and falls; a tied output embedding among the rest."""
    run = tuning.prepared(variant)
    run.go_on()
    expected = GOLDEN[f"curve.{variant}"]
    assert expected[0] - expected[-1] > 0.5
    assert abs(np.array(run.losses) - expected).max() < 1e-5


def test_the_loss_before_the_first_step_is_measured_once():
    run = tuning.prepared(next(iter(tuning.CURVES)))
    run.begin()
    assert [step for step, _ in run.curve] == [0]
    run.go_on()
    assert [step for step, _ in run.curve].count(0) == 1


def test_the_rate_rises_and_falls():
    rates = [adamw.rate_of(step, 100, 0.5, 0.1) for step in range(100)]
    assert np.allclose(rates[:10], 0.05 * np.arange(1, 11))
    assert max(rates) == 0.5 and (np.diff(rates[10:]) < 0).all() and rates[-1] < 1e-3
    assert abs(rates[55] - 0.25) < 1e-12  # half way down


def test_gradients_are_cut_together():
    gradients = {"a": np.array([3.0]), "b": np.array([[4.0]])}
    assert adamw.clipped(gradients, 10) is gradients is adamw.clipped(gradients, 0)
    cut = adamw.clipped(gradients, 1)
    assert abs(cut["a"][0] - 0.6) < 1e-6 and abs(cut["b"][0, 0] - 0.8) < 1e-6


TUNED = "bert-masked gpt2-causal roberta-legacy bert-untied albert-pretraining".split()


@pytest.mark.parametrize("variant", TUNED)
def test_a_tuned_folder_loads_with_the_same_logits(variant, tmp_path):
    """Transposed matrices, fused thirds, tied embeddings that a file holds twice."""
    run, checkpoint = tuning.started(variant, np.float32, steps=2)
    before = minitx.load(parity.GOLDEN / variant)
    run.go_on()
    tensors.save_checkpoint(checkpoint, tmp_path)
    model = minitx.load(tmp_path)
    tokens = run.data.tokens[:2]
    x, y = (minitx.logits(m, minitx.forward(m, tokens)) for m in (checkpoint.model, model))
    assert (x == y).all()
    assert abs(y - minitx.logits(before, minitx.forward(before, tokens))).max() > 1e-3
    names = {*load_file(parity.GOLDEN / variant / "model.safetensors")}
    assert {*load_file(tmp_path / "model.safetensors")} <= names


def test_an_output_embedding_that_a_file_holds_twice_stays_one():
    checkpoint = tensors.opened(tiny.GOLDEN / "gpt2-tied-head")
    assert {"lm_head.weight"} < {*checkpoint.tensors}
    assert np.shares_memory(checkpoint.model.weights.W_U, checkpoint.model.weights.W_E)


def test_only_named_arrays_learn():
    run, checkpoint = tuning.started("gpt2-causal", steps=2)
    model, learned = checkpoint.model, checkpoint.learned()
    assert [*training.choose(model, learned, "W_pos, W_Q.L1")] == ["W_pos", ("W_Q", 1)]
    assert [*training.choose(model, learned, "W_U")] == ["W_E"]  # the same array
    left = training.choose(model, learned, freeze="W_E,W_Q")
    assert {*learned} - {*left} == {"W_E", ("W_Q", 0), ("W_Q", 1)}
    before = {key: x.copy() for key, x in parameters(model).items()}
    training.Training(model, training.choose(model, learned, "W_pos"), run.data, run.how).go_on()
    moved = [key for key, x in parameters(model).items() if (x != before[key]).any()]
    assert moved == ["W_pos"]
    with pytest.raises(ValueError, match="no array or point 'W_po'; closest: W_pos"):
        training.choose(model, learned, "W_po")
    with pytest.raises(ValueError, match="leave nothing to learn"):
        training.choose(model, learned, "W_pos", "W_pos")


def test_batches_go_through_all_documents():
    numbers = np.arange(10, 17)
    rounds = np.concatenate([batches.drawn(numbers, step, 3, 0) for step in range(7)])
    for start in range(0, 21, 7):
        assert sorted(rounds[start : start + 7]) == [*numbers]
    assert [*rounds[:7]] != [*rounds[7:14]]
    learned, held_out = batches.split(np.arange(20) // 2, 0.2, 0)
    assert len(held_out) == 4 and not {*(learned // 2)} & {*(held_out // 2)}
    with pytest.raises(ValueError, match="nothing is left to learn from"):
        batches.split(np.arange(1), 0.1, 0)


def test_words_to_tell():
    """15% of the ordinary ones, of which 80% are hidden; the next words of a causal model."""
    model = minitx.load("tiny-roberta")
    words = batches.Words(model, "sample", 60, 64)
    batch = words.batch(np.arange(60), np.random.default_rng(0))
    is_told = batch.targets != -100
    assert not is_told[:, [0, -1]].any() and abs(is_told.mean() * 64 / 62 - 0.15) < 0.02
    assert (batch.targets == words.rows)[is_told].all()
    assert (batch.tokens == words.rows)[~is_told].all()
    hidden = (batch.tokens == words.mask_id)[is_told].mean()
    kept = (batch.tokens == words.rows)[is_told].mean()
    assert abs(hidden - 0.8) < 0.05 and 0.05 < kept < 0.2
    causal = batches.Words(minitx.load("tiny-gpt2"), "sample", 3, 64)
    batch = causal.batch(np.arange(3), None)
    assert (batch.targets[:, :-1] == batch.tokens[:, 1:]).all()
    assert (batch.targets[:, -1] == -100).all()


def test_two_orders_of_the_same_words():
    order = batches.Order(minitx.load("tiny-roberta"), "sample", 5, 32)
    batch = order.batch(np.arange(10), None)
    assert [*batch.targets] == [0, 1] * 5
    own, mixed = batch.tokens[::2], batch.tokens[1::2]
    assert (np.sort(own) == np.sort(mixed)).all() and (own != mixed).any(axis=1).all()
    assert [*order.groups] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]


SMALL = {"documents": 6, "tokens": 16, "batch": 2, "every": 2, "steps": 6}


def test_a_run_that_was_killed_goes_on_to_the_same_bytes(tmp_path, monkeypatch):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    whole.mkdir()
    broken.mkdir()
    tune("tiny-gpt2", whole, **SMALL)
    monkeypatch.setattr(state, "SECONDS", -1)  # after every step
    killed = failing.once(4, training.Training.step, KeyboardInterrupt())
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(training.Training, "step", killed)
        tune("tiny-gpt2", broken, **SMALL)
    assert [path.name for path in broken.iterdir()] == ["state.safetensors"]
    with pytest.raises(ValueError, match=r"other settings: options.rate was 0.0005 and is 0.1"):
        tune("tiny-gpt2", broken, True, **SMALL, rate=0.1)
    tune("tiny-gpt2", broken, True, **SMALL)
    names = sorted(os.listdir(whole))
    assert names == sorted(os.listdir(broken)) and "model.safetensors" in names
    for name in names:
        assert (whole / name).read_bytes() == (broken / name).read_bytes(), name


def test_a_finished_run_is_taken_as_it_is(tmp_path, monkeypatch):
    first = tune("tiny-gpt2", tmp_path, **SMALL, only="W_pos")
    assert first["learned"] == ["W_pos"] and len(first["losses"]) == 6
    assert [point["step"] for point in first["held_out"]] == [0, 2, 4, 6]
    monkeypatch.setattr(training.Training, "step", None)
    assert tune("tiny-gpt2", tmp_path, True, **SMALL, only="W_pos") == first
    (tmp_path / "state.safetensors").write_bytes(b"no state")
    with pytest.raises(ValueError, match="is not a saved training state"):
        tune("tiny-gpt2", tmp_path, True, **SMALL, only="W_pos")


@pytest.mark.parametrize("positions", ["zero", "learned"])
def test_the_position_table(positions, tmp_path):
    """At zero it stays there; learned anew it begins at small random numbers."""
    only = {"learned": "W_pos,W_E", "zero": ""}[positions]
    record = tune("tiny-roberta", tmp_path, **SMALL | {"steps": 1}, positions=positions, only=only)
    table = minitx.load(tmp_path).weights.W_pos
    assert not table[:2].any()
    assert ("W_pos" in record["learned"]) == (positions == "learned") == bool(table.any())
    if positions == "learned":
        assert abs(table[100:].std() - 0.02) < 1e-3


@pytest.mark.parametrize("name", ["tiny-bert", "tiny-gpt2"])
def test_classes_of_texts_are_learned(name, tmp_path):
    """A new head, with the labels' names in config.json; and that head learns on."""
    text = tmp_path / "texts.csv"
    text.write_text(LABELLED)
    options = {"text": str(text), "steps": 12, "batch": 4, "rate": 2e-3, "every": 12}
    record = tune(name, tmp_path / "a", label="label", **options)
    assert record["held_out"][-1]["loss"] < 0.5 < record["held_out"][0]["loss"]
    model = minitx.load(tmp_path / "a")
    assert model.config.task_head == "sequence" and model.weights.W_U.shape == (128, 2)
    settings = read_json(tmp_path / "a/config.json")
    assert settings["id2label"] == {"0": "cat", "1": "dog"}
    y = minitx.run(model, ["A cat is here at last.", "The dog ran to the sea and sat."], "logits")
    assert [*y["logits"].argmax(1)] == [0, 1]
    again = tune(tmp_path / "a", tmp_path / "b", **options | {"steps": 2})
    assert abs(again["held_out"][0]["loss"] - record["held_out"][-1]["loss"]) < 1e-5
    with pytest.raises(ValueError, match="has no label; wanted a folder with pos/ and neg/"):
        tune(name, tmp_path / "c", task="labels", documents=3, steps=1)


def test_a_loss_that_is_no_number_stops():
    run, checkpoint = tuning.started("gpt2-causal", np.float32, steps=5)
    run.look()
    run.step()
    checkpoint.model.layers[0].W_out[:] *= 1e30
    message = r"step 2: the stream before ln1 of layer 1 is NaN, infinite.*largest.*\(W_out.L0\)"
    with pytest.raises(ValueError, match=message):
        run.go_on()
    assert run.done == 1
    checkpoint.model.layers[0].W_out[:] = np.nan
    with pytest.raises(ValueError, match="the stream after layer 0 is not finite; the largest val"):
        run.go_on()


def test_a_gradient_that_is_no_number_stops():
    grads = minitx.Gradients(1.5, 3, {("W_Q", 1): np.array([np.inf])})
    with pytest.raises(ValueError, match=r"the loss is 1.5; not finite .* W_Q.L1"):
        training.check(grads)


WRONG = {
    "is the model's own folder": {"out": "model"},
    "leave nothing to learn|no array or point": {"only": "W_X"},
    "--label price goes with --task labels": {"label": "price", "task": "words"},
    "this model reads 4 to 256": {"tokens": 900},
    "wanted 0 to 1": {"rate": "7"},
    r"batch is 10{12}, of \d+ tokens each; wanted at most \d": {"batch": 10**12},
    "not a bundled model": {"model": "tiny-brt"},
    "words are learned by one stack": {"model": "tiny-bart", "task": "words"},
    "this model is an encoder-decoder": {"model": "tiny-bart", "task": "order"},
}


@pytest.mark.parametrize("message", WRONG)
def test_what_cannot_be_learned_is_refused_before_any_work(message, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(training.Training, "step", None)
    options = {"model": "tiny-roberta", "out": str(tmp_path / "out")} | WRONG[message]
    if options["out"] == "model":
        options["model"] = options["out"] = str(tmp_path / "copy")
        shutil.copytree(weights.find("tiny-roberta"), tmp_path / "copy")
    model = options.pop("model")
    flags = [f"--{key}={value}" for key, value in options.items()]
    assert commands.run_command(["tune", model, *flags]) == 2
    assert re.search(message, capsys.readouterr().err)


@pytest.mark.parametrize("variant", ["gpt_neox-parallel", "gptj-part", "gemma3-window"])
def test_what_lies_in_the_file_in_another_order_is_not_tuned(variant):
    """Copies would learn, and the file would stay as it is."""
    with pytest.raises(ValueError, match="do not lie in its file as they are used.* not tuned her"):
        tensors.opened(tiny.GOLDEN / variant)


def test_a_model_without_a_table_in_its_file_is_refused():
    checkpoint = tensors.opened(tiny.GOLDEN / "marian-shared")
    with pytest.raises(ValueError, match="no table of positions that is learned"):
        with_positions(checkpoint, "zero", 0)


def test_the_command_says_what_came_out(tmp_path, capsys):
    asked = f"tune tiny-bert --documents 6 --tokens 16 --steps 2 --batch 2 --out {tmp_path}".split()
    assert commands.run_command(asked) == 0
    shown = capsys.readouterr().out
    assert "held-out loss" in shown and "2 steps; 74 arrays" in shown
    assert (tmp_path / "tune.svg").read_text().startswith("<?xml")
    assert commands.run_command([*asked, "--resume", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["targets"] == "nats"


def test_workers_are_refused_where_nothing_is_measured_side_by_side(capsys):
    with pytest.raises(SystemExit):
        commands.run_command("tune tiny-bert --workers 2".split())
    assert "unrecognized arguments: --workers 2" in capsys.readouterr().err
