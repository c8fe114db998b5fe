"""Training from nothing: steps as PyTorch's, files as the library's, going on to the same bytes."""

import errno
import json
import random
import re
from pathlib import Path

import killed_training
import numpy as np
import parity
import pytest
import tiny
import trained
from safetensors.numpy import load_file

import minitx
from minitx.analysis import commands
from minitx.learning import batches, saved, start, tokens
from minitx.learning.loop import Loop, snapshot_steps
from minitx.learning.parameters import parameters
from minitx.loading.families import from_hf
from minitx.loading.files import read_tensors
from minitx.weights import local

GOLDEN = load_file(parity.GOLDEN / "training.safetensors")
VARIANTS = "bert-masked roberta-masked xlm-roberta-masked camembert-masked distilbert-masked"
VARIANTS += " mpnet-masked modernbert-masked gpt2-causal llama-grouped mistral-window qwen2-biases"
VARIANTS += " qwen3-norms gpt_neox-sequential bloom-three deberta-masked deberta2-masked"
DEBERTA = "deberta-masked", "deberta2-masked"
GPT2 = {"model_type": "gpt2", **trained.SETTINGS["gpt2"], "vocab_size": 280}
ROBERTA = {"model_type": "roberta", **trained.SETTINGS["roberta"], "vocab_size": 280}
BART = json.loads((local.BUNDLED / "tiny-bart/config.json").read_text())
TEXT = killed_training.TEXT


@pytest.mark.parametrize("name", trained.SETTINGS)
def test_200_steps_are_those_of_pytorch(name):
    """In float64: masked in spans, causal, rotary; tied, fused and transposed arrays."""
    loop = trained.loop_of(name)
    for _ in range(loop.how.steps):
        loop.step()
    expected = GOLDEN[f"{name}.loss"]
    assert expected[0] - expected[-1] > 0.5
    assert abs(np.array(loop.losses) - expected).max() < 1e-9  # measured 1.3e-15
    for key, x in loop.start.tensors().items():
        assert abs(x - GOLDEN[f"{name}.{key}"]).max() < 1e-9, key  # measured 2.0e-13


@pytest.mark.parametrize("variant", VARIANTS.split())
def test_a_start_has_the_tensors_of_the_librarys_own_files(variant):
    assert start.shapes(from_hf(tiny.config(variant))) == shapes_in(parity.GOLDEN / variant)


def shapes_in(folder):
    return {name: tuple(x.shape) for name, x in read_tensors(folder).items()}


@pytest.mark.parametrize(
    "variant", ["gpt2-causal", "bloom-three", "llama-grouped", "bert-untied", *DEBERTA]
)
def test_a_start_is_written_as_it_computes(variant, tmp_path):
    """Parts of larger matrices, also those that each head has for itself."""
    begin = start.start(tiny.config(variant), 0, "float32")
    saved.Folder(tmp_path, {}, {}).checkpoint(begin, tmp_path)
    written, own = parameters(minitx.load(tmp_path)), parameters(begin.model)
    assert written.keys() == own.keys()
    for key, x in own.items():
        assert (written[key] == x).all(), key


def test_an_encoder_decoder_shares_its_embedding():
    """Of tiny-bart's file only the bias of its logits is missing, which no training moves."""
    expected = shapes_in(local.BUNDLED / "tiny-bart")
    del expected["final_logits_bias"]
    begin = start.start(BART, 0, "float32")
    tensors = begin.tensors()
    assert {name: x.shape for name, x in tensors.items()} == expected
    assert (tensors["model.shared.weight"] == begin.arrays["W_E"]).all()
    assert "enc_W_E" not in begin.arrays and ("enc_W_pos" in begin.arrays)


def test_what_is_fixed_stays():
    """It is no part of the vector that learns, and is written all the same."""
    drawn = trained.loop_of("gpt2")
    begin = drawn.start
    begin.model.weights.W_pos[...] = 0.5
    begin = start.in_one_vector(begin.model, begin.settings, "float64", ["W_pos"])
    loop = Loop(begin, drawn.words, drawn.how)
    before = begin.model.weights.W_E.copy()
    for _ in range(3):
        loop.step()
    assert "W_pos" not in begin.arrays and (before != begin.model.weights.W_E).any()
    assert (begin.tensors()["transformer.wpe.weight"] == 0.5).all()


def test_types_of_words_are_told_to_gradients():
    begin = start.start({**ROBERTA, "type_vocab_size": 2}, 0, "float64")
    loop = Loop(begin, None, trained.loop_of("roberta").how)
    words = np.array([[0, 9, 4, 8, 2]])
    targets = np.array([[-100, -100, 7, -100, -100]])
    for types, is_read in (([[0, 0, 1, 1, 1]], True), ([[0, 0, 0, 0, 0]], False)):
        slopes = loop.slopes_of(batches.Batch(words, targets, {"types": np.array(types)}))
        assert slopes["W_type"][1].any() == is_read


def test_a_start_is_drawn():
    """By the seed; gains 1, biases 0; writers smaller where nothing norms the stream between."""
    begin = start.start({**GPT2, "n_embd": 64, "initializer_range": 0.1}, 5, "float32")
    layer = begin.model.layers[0]
    assert (layer.ln1_w == 1).all() and not layer.b_Q.any()
    assert abs(layer.W_Q.std() - 0.1) < 0.005 and abs(layer.W_O.std() - 0.05) < 0.0025
    again, other = (start.start({**GPT2, "n_embd": 64}, seed, "float32").flat for seed in (5, 6))
    assert (again == start.start({**GPT2, "n_embd": 64}, 5, "float32").flat).all()
    assert (again != other).any()
    masked = start.start(ROBERTA, 0, "float32").model
    assert not masked.weights.W_pos[:2].any() and masked.weights.W_pos[2:].all()
    assert np.shares_memory(masked.weights.W_U, masked.weights.W_E)


def test_words_to_predict():
    """A share of them, hidden or replaced or kept; none of the special tokens."""
    stream = trained.stream(is_masked=True, n=20_000)
    batch = batches.Words(stream, 102, 0.3, 1.0).batch(3, 150, 0)
    is_asked = batch.targets != -100
    assert (batch.tokens[:, 0] == 0).all() and (batch.tokens[:, -1] == 2).all()
    assert not is_asked[:, [0, -1]].any() and abs(is_asked[:, 1:-1].mean() - 0.3) < 0.02
    hidden = (batch.tokens == trained.MASK)[is_asked].mean()
    kept = (batch.tokens == batch.targets)[is_asked].mean()
    assert abs(hidden - 0.8) < 0.02 and abs(kept - 0.1 - 0.1 / 19) < 0.02
    again = batches.Words(stream, 102, 0.3, 1.0).batch(3, 150, 0)
    assert (again.tokens == batch.tokens).all()


@pytest.mark.parametrize("span", [1.0, 4.0])
def test_spans_have_their_share_and_length(span):
    is_asked = batches.in_spans((400, 500), 0.2, span, np.random.default_rng(0))
    assert abs(is_asked.mean() - 0.2) < 0.01
    n_spans = (is_asked[:, 1:] & ~is_asked[:, :-1]).sum()
    expected = 1.0 / (1 - 0.2) if span == 1 else span
    assert expected < is_asked.sum() / n_spans < 1.35 * expected  # spans that meet are counted once


def test_the_next_words_of_all_rows_in_random_orders():
    stream = trained.stream(is_masked=False, n=101)
    words = batches.Words(stream, 10, 0.1, 1.0)
    batch = words.batch(0, 10, 0)
    assert (batch.tokens[:, 1:] == batch.targets[:, :-1]).all()
    assert sorted(batch.targets.ravel()) == sorted(stream.ids[1:])
    numbers = np.concatenate([batches.drawn(7, step, 3, 0) for step in range(7)])
    for begin in range(0, 21, 7):
        assert sorted(numbers[begin : begin + 7]) == [*range(7)]
    assert [*numbers[:7]] != [*numbers[7:14]]


def test_steps_of_snapshots_grow():
    assert snapshot_steps(2000, 24)[:8] == [0, 1, 2, 3, 4, 6, 8, 11]
    assert snapshot_steps(2000, 24)[-1] == 2000 and len(snapshot_steps(2000, 24)) <= 24
    assert snapshot_steps(5, 24) == [0, 1, 2, 3, 4, 5]
    assert snapshot_steps(9, 10**12) == [*range(10)]
    for steps in range(1, 60):
        grown = np.geomspace(steps, 1, 20 * steps + 1).tolist()
        assert {round(x) for x in grown} == {*range(1, steps + 1)}  # more would add none
    assert [snapshot_steps(9, n) for n in range(3)] == [[], [9], [0, 9]]


def test_a_model_that_was_trained_says_what_it_was_trained_on(tmp_path):
    history = minitx.train(GPT2, ["the dog ran"] * 60, steps=80, rate=0.01, batch=8, out=tmp_path)
    assert history.losses[0] > 5 and history.losses[-1] < 1
    model = minitx.load(tmp_path)
    ids = minitx.generate(model, model.tokenizer.encode("the"), 4)
    assert history.model.tokenizer.decode(ids).startswith("the dog ran")
    kept = history.model_after(history.snapshots[-1])
    assert (kept.weights.W_E == model.weights.W_E).all()
    first = history.model_after(0)
    assert abs(first.weights.W_E.std() - 0.02) < 0.002
    with pytest.raises(ValueError, match=r"no snapshot after 79 steps; available: \[0, 1"):
        history.model_after(79)
    assert "History of 80 steps" in repr(history)


def test_in_memory_and_in_a_folder_are_the_same(tmp_path):
    numbers = {"steps": 5, "batch": 2, "snapshots": 3, "span": 2.0}
    a = minitx.train(ROBERTA, TEXT, **numbers)
    b = minitx.train(ROBERTA, TEXT, **numbers, out=tmp_path)
    assert a.snapshots == b.snapshots == [0, 1, 5]
    for step in a.snapshots:
        x, y = (h.model_after(step).weights.W_pos for h in (a, b))
        assert (x == y).all()
    again = minitx.train(ROBERTA, TEXT, **numbers, out=tmp_path, resume=True)
    assert (again.losses == a.losses).all() and again.snapshots == a.snapshots


def test_a_history_is_read_from_its_folder(tmp_path):
    trained = minitx.train(ROBERTA, TEXT, steps=3, batch=2, out=tmp_path)
    again = minitx.History.from_folder(tmp_path)
    assert again.snapshots == trained.snapshots == [0, 1, 2, 3]
    assert (again.losses == trained.losses).all()
    for step in (1, 3):
        x, y = (h.model_after(step).weights.W_pos for h in (trained, again))
        assert (x == y).all()
    assert again.model.tokenizer.decode(again.model.tokenizer.encode("the dog")) == "the dog"
    first, last = (tmp_path / "steps" / step / "model.safetensors" for step in ("000001", "000003"))
    first.replace(last)
    with pytest.raises(ValueError, match="000003/model.safetensors is not the file that was"):
        again.model_after(3)
    with pytest.raises(ValueError, match=r"tiny-bert has no finished training: there is no t"):
        minitx.History.from_folder("tiny-bert")


def test_a_history_of_another_format_is_refused_by_name(tmp_path):
    minitx.train(GPT2, TEXT, steps=1, batch=2, snapshots=2, out=tmp_path)
    path = tmp_path / "train.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(record | {"format": 2}), encoding="utf-8")
    with pytest.raises(ValueError, match=r"train\.json has format 2, this minitx reads 1"):
        minitx.History.from_folder(tmp_path)
    path.write_text(json.dumps(record | {"snapshots": [1]}), encoding="utf-8")
    with pytest.raises(ValueError, match="is damaged: 'snapshots' lacks 0, which steps/ has"):
        minitx.History.from_folder(tmp_path)
    del record["format"]  # as those before 1.0 have none
    path.write_text(json.dumps(record), encoding="utf-8")
    assert minitx.History.from_folder(tmp_path).snapshots == [0, 1]


def test_a_long_text_is_encoded_part_by_part(monkeypatch):
    """The ids of the whole, while no part is longer than a line and PART letters."""
    config = from_hf(dict(ROBERTA))
    whole = tokens.stream(TEXT, None, config, is_masked=True)
    encode, longest = type(whole.tokenizer).encode, []

    def watched(tokenizer, text, pair=None, special=True):
        longest.append(len(text))
        return encode(tokenizer, text, pair, special)

    monkeypatch.setattr(tokens, "PART", 30)
    monkeypatch.setattr(type(whole.tokenizer), "encode", watched)
    parts = tokens.stream(TEXT, None, config, is_masked=True)
    assert (parts.ids == whole.ids).all() and parts.tokenizer.decode(parts.ids) == "\n".join(TEXT)
    assert max(longest) < 60 and len(longest) > 20


def test_float64_and_float32_agree():
    options = {"steps": 12, "batch": 4}
    names = "float32", "float64"
    single, double = (minitx.train(ROBERTA, TEXT, dtype=x, **options) for x in names)
    assert 0 < abs(single.losses - double.losses).max() < 1e-4  # measured 1.5e-6


def test_a_tokenizer_is_taken_from_the_folder(tmp_path):
    sample = "analysis/texts/sample.txt"
    history = minitx.train("tiny-roberta", sample, steps=1, batch=1, context=16)
    text = "The dog ran"
    expected = minitx.load("tiny-roberta").tokenizer.encode(text)
    assert (history.model.tokenizer.encode(text) == expected).all()


def test_a_new_tokenizer_reads_its_text():
    config = from_hf(dict(ROBERTA))
    new = tokens.stream(TEXT, None, config, is_masked=True)
    assert (new.mask_id, [*new.before], [*new.after]) == (4, [0], [2])
    assert new.tokenizer.decode(new.ids) == "\n".join(TEXT)
    other = "Ä dog\tran"  # any text, since every byte is a piece
    assert new.tokenizer.decode(new.tokenizer.encode(other, special=False)) == other
    few = tokens.stream(TEXT, None, from_hf(ROBERTA | {"vocab_size": 24}), is_masked=True)
    assert few.ids.max() < 24 and few.tokenizer.decode(few.ids) == "\n".join(TEXT)


def test_a_training_that_is_killed_goes_on_to_the_same_bytes(tmp_path):
    differing, n_compared = killed_training.kills(tmp_path, 3, random.Random(0))
    assert differing == [] and n_compared


NINE = {"steps": 9, "batch": 2, "snapshots": 9}


@pytest.fixture
def interrupted(tmp_path, monkeypatch):
    """A folder in which a training ended after 4 of 9 steps."""
    stop_after(monkeypatch, 4, out=tmp_path, **NINE)
    return tmp_path


def stop_after(monkeypatch, n, **options):
    """A training that is interrupted after n steps; its state is saved after each."""
    monkeypatch.setattr(saved, "SECONDS", -1.0)
    original = Loop.step

    def step(loop):
        if loop.done == n:
            raise KeyboardInterrupt
        original(loop)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Loop, "step", step)
        minitx.train(GPT2, TEXT, **options)


def resume(folder, corpus=TEXT, **changes):
    return minitx.train(GPT2, corpus, out=folder, resume=True, **NINE | changes)


def test_other_settings_do_not_go_on(interrupted):
    with pytest.raises(ValueError, match="holds a training; resume goes on with it, or name anoth"):
        minitx.train(GPT2, TEXT, out=interrupted, **NINE)
    with pytest.raises(ValueError, match=r"other settings: batch was 2 and is 3 \(differing: batc"):
        resume(interrupted, batch=3)
    with pytest.raises(ValueError, match="ids_sha256 was"):
        resume(interrupted, TEXT[1:])
    (interrupted / saved.STATE).write_bytes(b"no state")
    with pytest.raises(ValueError, match="is not a saved training state"):
        resume(interrupted)


def test_a_full_disk_leaves_the_last_good_snapshot(interrupted, monkeypatch):
    def full(path, content):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        with pytest.raises(OSError, match=r"No space left on device \(\d+.* bytes wanted\).*0000"):
            resume(interrupted)
    assert minitx.load(interrupted / "steps" / "000004").config.n_layers == 2
    assert not [*interrupted.rglob("*.tmp")]
    resume(interrupted)
    assert not (interrupted / saved.STATE).exists()


def test_a_loss_that_is_no_number_stops_and_keeps_what_was_saved(interrupted, monkeypatch):
    original = Loop.step

    def step(loop):
        if loop.done == 6:
            loop.start.model.layers[0].W_out[:] = np.nan
        original(loop)

    monkeypatch.setattr(Loop, "step", step)
    with pytest.raises(ValueError, match=r"step 7: .*NaN.*Take a smaller rate, a longer warm-up"):
        resume(interrupted)
    for step in (4, 5):
        minitx.check(minitx.load(interrupted / "steps" / f"{step:06}"))


def test_a_gradient_that_is_no_number_stops():
    loop = trained.loop_of("gpt2", rate=1e200, clip=0.0, steps=3)
    with np.errstate(all="ignore"), pytest.raises(ValueError, match=r"step \d: .*not finite|NaN"):
        for _ in range(3):
            loop.step()


STAGES = [
    {"steps": 3, "context": 6, "batch": 4, "config": {"n_layer": 1, "n_positions": 6}},
    {"steps": 2, "config": {"n_layer": 1}},
    {"steps": 4, "rate": 0.0},
]


@pytest.mark.parametrize("stop", [2, 3, 4, 5, 7])
def test_stages_go_on_to_the_same_bytes(tmp_path, monkeypatch, stop):
    """Interrupted inside a stage, and where one ends."""
    options = {"batch": 2, "snapshots": 9, "stages": STAGES}
    stop_after(monkeypatch, stop, out=tmp_path / "out", **options)
    whole = minitx.train(GPT2, TEXT, out=tmp_path / "whole", **options)
    minitx.train(GPT2, TEXT, out=tmp_path / "out", resume=True, **options)
    expected = killed_training.contents(tmp_path / "whole")
    assert killed_training.contents(tmp_path / "out") == expected
    depths = [whole.model_after(step).config.n_layers for step in whole.snapshots]
    assert depths == [1 if step <= 5 else 2 for step in whole.snapshots]
    other = {"stages": [*STAGES[:2], {"steps": 4, "rate": 1e-4}]}
    with pytest.raises(ValueError, match="other settings: stages was"):
        minitx.train(GPT2, TEXT, out=tmp_path / "out", resume=True, **(options | other))


def test_a_stage_begins_with_what_was_learned():
    """Arrays and running means; a new layer is a copy, all layers write half as much."""
    stages = [STAGES[0], {**STAGES[1], "rate": 0.0}, {"steps": 1, "rate": 0.0}]
    options = {"batch": 2, "snapshots": 9, "dtype": "float64", "stages": stages}
    history = minitx.train(GPT2, TEXT, **options)
    models = (history.model_after(step) for step in (3, 5, 6))
    first, before, after = (parameters(model) for model in models)
    assert first["W_pos"].shape == (6, 8) and before["W_pos"].shape == (16, 8)
    for name in ("W_Q", "W_in", "ln1_w"):
        for i in (0, 1):
            assert (after[name, i] == before[name, 0]).all()
    for name in ("W_O", "W_out"):
        for i in (0, 1):
            assert (after[name, i] == before[name, 0] / 2).all()


def test_a_folder_without_snapshots_is_made(tmp_path):
    out = tmp_path / "a" / "b"
    minitx.train(GPT2, TEXT, steps=2, batch=2, snapshots=0, out=out)
    assert minitx.load(out).config.n_layers == 2 and not (out / "steps").exists()


def test_stages_without_growth_are_one_training():
    """A stage of the same model goes on where the one before it ended, means and all."""
    options = {"batch": 2, "snapshots": 9, "warm_up": 0.0}
    whole = minitx.train(GPT2, TEXT, stages=[{"steps": 8}], **options)
    cut = minitx.train(GPT2, TEXT, stages=[{"steps": 3}, {"steps": 5}], **options)
    assert (whole.losses == cut.losses).all() and whole.losses[-1] < whole.losses[0]


WRONG = {
    "t5 cannot be trained from scratch here; wanted one of: bert": (
        tiny.config("t5-relu"),
        TEXT,
        {},
    ),
    "a bart learns from pairs of texts": (BART, TEXT, {}),
    "context is 40; this model reads at most 16": (GPT2, TEXT, {"context": 40}),
    "the text has 1 tokens; an input of 16 wants 17": (GPT2, ["a"], {}),
    "batch is 10{12}, of 16 tokens each; wanted at most 16777216": (GPT2, TEXT, {"batch": 10**12}),
    "batch is 10{12}, of 4 tokens each; wanted at most 67108864": (
        GPT2,
        TEXT,
        {"stages": [{"steps": 1, "batch": 10**12, "context": 4}]},
    ),
    "context is 2, of which 2 are special tokens; wanted 3 or more": (
        ROBERTA,
        TEXT,
        {"context": 2},
    ),
    "masked is 0: nothing is predicted": (ROBERTA, TEXT, {"masked": 0}),
    "rate is 2; wanted 0 to 1": (GPT2, TEXT, {"rate": 2}),
    "steps is 0; wanted 1 to": (GPT2, TEXT, {"steps": 0}),
    "ids go from 0 to 300; wanted 0 to 279": (GPT2, np.arange(301), {}),
    "ids have no mask token": (ROBERTA, np.arange(9), {}),
    "corpus is float64": (GPT2, np.ones(3), {}),
    "no file .*nothing.txt; wanted a UTF-8 text": (GPT2, "nothing.txt", {}),
    "the text has 16 different bytes": (GPT2 | {"vocab_size": 9}, TEXT, {}),
    "pad_token_id is 9; a new tokenizer has": (ROBERTA | {"pad_token_id": 9}, TEXT, {}),
    "dtype is float16; wanted float32 or": (GPT2, TEXT, {"dtype": "float16"}),
    "a text of the corpus is 3; wanted a text": (GPT2, [3], {}),
    "steps is 2.5; wanted a whole number": (GPT2, TEXT, {"steps": 2.5}),
    "steps is '5'; wanted a whole number": (GPT2, TEXT, {"steps": "5"}),
    "seed is 0.5; wanted a whole number": (GPT2, TEXT, {"seed": 0.5}),
    "clip is -5; wanted 0 to inf": (GPT2, TEXT, {"clip": np.int64(-5)}),
    "rate is -0.5; wanted 0 to 1": (GPT2, TEXT, {"rate": np.float32(-0.5)}),
    "masked is 'x'; wanted a number of 0 to 0.9": (GPT2, TEXT, {"masked": "x"}),
    r"betas is .1.0, 0.98.; wanted two numbers": (GPT2, TEXT, {"betas": (1.0, 0.98)}),
    r"betas is .0.9,.; wanted two numbers": (GPT2, TEXT, {"betas": 0.9}),
    "dtype is 'x'; wanted float32 or": (GPT2, TEXT, {"dtype": "x"}),
    "config is 5; wanted a config.json": (5, TEXT, {}),
    "corpus is 5; wanted a file": (GPT2, 5, {}),
    "stages is 5; wanted a list": (GPT2, TEXT, {"stages": 5}),
    "stage 1 is 5; wanted a dictionary": (GPT2, TEXT, {"stages": [5]}),
    "stage 1 has context; wanted steps, and of batch, config": (
        GPT2,
        TEXT,
        {"stages": [{"context": 4}]},
    ),
    "stage 2: W_E is .280, 4. before it and .280, 8. in it": (
        GPT2,
        TEXT,
        {"stages": [{"steps": 1, "config": {"n_embd": 4}}, {"steps": 1}]},
    ),
    "stage 2: 1 layers; the stage before it has 2": (
        GPT2,
        TEXT,
        {"stages": [{"steps": 1}, {"steps": 1, "config": {"n_layer": 1}}]},
    ),
}


@pytest.mark.parametrize("message", WRONG)
def test_what_cannot_be_trained_is_refused_before_any_work(message, monkeypatch):
    config, corpus, options = WRONG[message]
    monkeypatch.setattr(Loop, "step", None)
    with pytest.raises((ValueError, OSError), match=message):
        minitx.train(config, corpus, **options)


def test_numbers_of_numpy_are_as_those_of_python(tmp_path):
    numbers = {"steps": 2, "batch": 2, "seed": 3, "clip": 0.5, "betas": (0.5, 0.75)}
    own = {name: np.array(value)[()] for name, value in numbers.items()}
    history = minitx.train(GPT2, TEXT, **own, out=tmp_path)
    assert (history.losses == minitx.train(GPT2, TEXT, **numbers).losses).all()


def test_the_command_trains(tmp_path, capsys):
    config, text, out = tmp_path / "config.json", tmp_path / "text.txt", tmp_path / "out"
    config.write_text(json.dumps(GPT2))
    text.write_text("\n".join(TEXT))
    words = ["train", str(config), "--text", str(text), "--steps", "4", "--batch", "2"]
    words += ["--out", str(out), "--snapshots", "3"]
    assert commands.run_command(words) == 0
    assert re.search(
        r"loss 5\.\d+ nats before, .* of 4 steps\n.*3 snapshots", capsys.readouterr().out
    )
    assert commands.run_command([*words, "--resume", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["snapshots"] == [0, 1, 4]
    assert commands.run_command(words) == 2
    assert "holds a training" in capsys.readouterr().err


def test_the_record_of_a_training_is_checked(tmp_path):
    minitx.train(GPT2, TEXT, steps=2, batch=2, snapshots=2, out=tmp_path)
    path = tmp_path / saved.RECORD
    record = json.loads(path.read_text())
    for name, wrong in [
        *{"losses": ["x"], "snapshots": [2, 0], "settings": {}, "sha256": None}.items(),
        *{"losses": [1.0, np.nan], "settings": {"config": {}}, "sha256": {"0": 5}}.items(),
    ]:
        path.write_text(json.dumps(record | {name: wrong}))
        with pytest.raises(ValueError, match=f"train.json is damaged: '{name}' is"):
            minitx.History.from_folder(tmp_path)
    path.write_text(json.dumps(record | {"losses": [1.0]}))
    with pytest.raises(ValueError, match="damaged: 'losses' has 1 numbers, of 2 steps"):
        minitx.History.from_folder(tmp_path)


def test_the_final_model_of_a_training_is_checked(tmp_path):
    minitx.train(GPT2, TEXT, steps=2, batch=2, snapshots=2, out=tmp_path)
    final = tmp_path / saved.TENSORS
    final.write_bytes((tmp_path / "steps/000000" / saved.TENSORS).read_bytes())
    with pytest.raises(ValueError, match="model.safetensors is not the file that was written"):
        minitx.History.from_folder(tmp_path)


@pytest.mark.parametrize(
    "changes, match",
    [
        ({"steps": None}, "is damaged: 'steps' is None"),
        ({"steps": 3}, "is damaged: 'losses' has 4 numbers, of 3 steps"),
        ({"losses": None}, "is damaged: 'losses' is None"),
        ({"settings": 5}, "is damaged: 'settings' is 5"),
        ([], "is not a saved training state: 'list' object is not a mapping"),
    ],
)
def test_a_state_that_is_signed_and_wrong_is_refused(interrupted, changes, match):
    path = interrupted / saved.STATE
    record = changes if changes == [] else saved.record_of_state(path) | changes
    path.write_bytes(saved.pack_state(load_file(path), json.dumps(record)))
    with pytest.raises(ValueError, match=f"state.safetensors {match}"):
        resume(interrupted)


@pytest.mark.parametrize("x", [np.ones(1, np.float32), None, 0])
def test_a_state_with_other_arrays_is_refused(interrupted, x):
    path = interrupted / saved.STATE
    text, arrays = json.dumps(saved.record_of_state(path)), load_file(path)
    flat = arrays.pop("flat")
    if x is not None:
        arrays["flat"] = flat.astype("float64") if isinstance(x, int) else x
    path.write_bytes(saved.pack_state(arrays, text))
    given = r"float64 \[\d+\]" if isinstance(x, int) else r"float32 \[1\]|missing"
    with pytest.raises(ValueError, match=rf"damaged: flat is ({given}); wanted float32 \[\d+\]"):
        resume(interrupted)


def test_a_state_whose_numbers_have_changed_is_refused(interrupted):
    path = interrupted / saved.STATE
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(ValueError, match="is not a saved training state any more: its sha256"):
        resume(interrupted)
