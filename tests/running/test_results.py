"""What a resumed run may take: results of its own model, text, options and version alone."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import failing
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import minitx
from minitx import weights
from minitx.analysis import commands
from minitx.analysis.contract import registry
from minitx.analysis.machine import files
from minitx.analysis.running import settings, stream
from minitx.loading.files import read_json

pytestmark = pytest.mark.usefixtures("empty_figures")

BUNDLED = weights.find("tiny-roberta")
SHARDS = "model-1-of-2.safetensors", "shards/model-2-of-2.safetensors"


def stated(folder, experiment="profiles", **options):
    """What a run states of the model in a folder."""
    model = minitx.load(folder)
    return settings.of_run(registry.get(experiment), model, "a model", options)


def sharded(folder):
    """A copy of tiny-roberta in two shards, one of them in a subfolder."""
    shutil.copytree(BUNDLED, folder)
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    (folder / "shards").mkdir()
    weight_map = {name: SHARDS[i % 2] for i, name in enumerate(tensors)}
    for file in SHARDS:
        part = {name: x for name, x in tensors.items() if weight_map[name] == file}
        save_file(part, folder / file)
    index = json.dumps({"weight_map": weight_map})
    (folder / "model.safetensors.index.json").write_text(index)
    return folder


def without_tokenizer_json(folder):
    """A copy of tiny-roberta with its tokenizer in the files of before tokenizer.json."""
    shutil.copytree(BUNDLED, folder)
    tokenizer = read_json(folder / "tokenizer.json")["model"]
    (folder / "tokenizer.json").unlink()
    (folder / "vocab.json").write_text(json.dumps(tokenizer["vocab"]), encoding="utf-8")
    merges = [x if isinstance(x, str) else " ".join(x) for x in tokenizer["merges"]]
    (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *merges]), encoding="utf-8")
    return folder


def space_added(path):
    """Other bytes, of the same meaning."""
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("{", "{ ", 1) if "{" in text else text + "\n", encoding="utf-8")


def number_changed(path):
    """A tensor of a weight file with one other number."""
    tensors = load_file(path)
    name = min(tensors)
    tensors[name].flat[0] += 1
    save_file(tensors, path)


@pytest.mark.parametrize(
    "make, file",
    [
        (sharded, "config.json"),
        (sharded, "tokenizer.json"),
        (sharded, "tokenizer_config.json"),
        (sharded, "model.safetensors.index.json"),
        (sharded, SHARDS[0]),
        (sharded, SHARDS[1]),
        (without_tokenizer_json, "vocab.json"),
        (without_tokenizer_json, "merges.txt"),
        (without_tokenizer_json, "model.safetensors"),
    ],
)
def test_settings_follow_every_file_of_a_model(tmp_path, make, file):
    folder = make(tmp_path / "model")
    before = stated(folder)
    assert stated(folder) == before
    assert minitx.load(folder).encode(["A text."]).tokens.size  # so these files do for text
    change = number_changed if file.endswith(".safetensors") else space_added
    change(folder / file)
    after = stated(folder)
    assert after != before
    kind = "weights" if file.endswith(".safetensors") else "files"
    assert {name for name in after[kind] if after[kind][name] != before[kind][name]} == {file}


def test_settings_follow_the_version_of_minitx(monkeypatch):
    before = stated(BUNDLED)
    monkeypatch.setattr(minitx, "__version__", "9.9")
    assert stated(BUNDLED) != before


def test_settings_follow_the_text_that_is_held_out(tmp_path):
    for name in ("train", "test"):
        (tmp_path / f"{name}.txt").write_text("One.\nTwo.\n")
    texts = {name: str(tmp_path / f"{name}.txt") for name in ("train", "test")}
    options = {"text": texts["train"], "test": texts["test"]}
    before = stated(BUNDLED, "reviews", **options)
    (tmp_path / "test.txt").write_text("One.\nThree.\n")
    after = stated(BUNDLED, "reviews", **options)
    assert after["text"] == before["text"] and after["test"] != before["test"]


@pytest.mark.parametrize("partial", [False, True])
def test_settings_follow_the_other_models_of_a_comparison(tmp_path, partial):
    other = shutil.copytree(BUNDLED, tmp_path / "other")
    options = {"others": f"{other}, tiny-gpt2"}
    model = replace(minitx.load(BUNDLED), missing=("a tensor",) if partial else ())
    experiment = registry.get("models")
    before = settings.of_run(experiment, model, "a model", options)
    assert [*before["others"]] == [str(other), "tiny-gpt2"]
    for change, file in ((number_changed, "model.safetensors"), (space_added, "config.json")):
        change(other / file)
        after = settings.of_run(experiment, model, "a model", options)
        assert after != before
        before = after
    bundled = settings.of_run(experiment, model, "a model", {})
    assert [*bundled["others"]] == weights.bundled()
    with pytest.raises(FileNotFoundError, match="'nothing' is not a bundled model"):
        settings.of_run(experiment, model, "a model", {"others": "nothing"})


# --- the same folder, another model


def with_other_norms(folder):
    """Another layer_norm_eps: other numbers from the same weights."""
    config = read_json(folder / "config.json")
    (folder / "config.json").write_text(json.dumps(config | {"layer_norm_eps": 0.5}))


def profiles(folder, out, *more):
    """The exit code of a short run."""
    options = ["--documents", "70", "--tokens", "24", "--out", str(out), *more]
    return commands.run_command(["run", "profiles", str(folder), *options])


def arrays(out, name="profiles"):
    """The arrays in a folder of results."""
    with np.load(out / f"{name}.npz") as file:
        return dict(file)


def equal(a, b):
    """Whether two results have the same arrays, bit for bit."""
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)


def test_a_finished_run_of_another_configuration_is_run_again(tmp_path, capsys):
    folder = shutil.copytree(BUNDLED, tmp_path / "model")
    assert profiles(folder, tmp_path / "out") == 0
    before = arrays(tmp_path / "out")
    with_other_norms(folder)
    assert profiles(folder, tmp_path / "out", "--resume") == 0
    assert profiles(folder, tmp_path / "fresh") == 0
    assert equal(arrays(tmp_path / "out"), arrays(tmp_path / "fresh"))
    assert not equal(arrays(tmp_path / "out"), before)


def test_an_interrupted_run_is_not_gone_on_with_under_another_configuration(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(stream, "SAVE_SHARE", 1e9)  # after every document
    folder, out = shutil.copytree(BUNDLED, tmp_path / "model"), tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr(stream, "_add", failing.once(21, stream._add, KeyboardInterrupt()))
        assert profiles(folder, out) == 130
    assert [*out.glob(".profiles.*.state.npz")]
    with_other_norms(folder)
    capsys.readouterr()
    assert profiles(folder, out, "--resume") == 2
    captured = capsys.readouterr().err
    assert "belongs to a run with other settings, model or text" in captured
    assert captured.count("\n") == 1
    assert profiles(folder, out) == 0 and profiles(folder, tmp_path / "fresh") == 0
    assert equal(arrays(out), arrays(tmp_path / "fresh"))


def test_a_state_that_counts_too_many_documents_is_one_line(tmp_path, capsys):
    """Its sums would be taken for those of all documents."""
    model = minitx.load(BUNDLED)
    options = {"documents": 70, "tokens": 24}
    of_run = settings.of_run(registry.get("profiles"), model, str(BUNDLED), options)
    run = stream.Run(tmp_path, "profiles", settings.key(of_run), resume=True)
    sums = {name: np.ones((99, 2, 2, 5)) for name in ("plain", "shuffled")}
    run._save(run._state("documents"), 99, sums)
    assert profiles(BUNDLED, tmp_path, "--resume") == 2
    captured = capsys.readouterr().err
    assert "holds 99 documents, of the 70 that are to be read" in captured
    assert captured.count("\n") == 1


# --- files that are replaced one after the other


def models(out, shuffles, *more):
    """The exit code of a run that takes no time, and leaves no state on its way."""
    options = ["--others", "tiny-bert", "--shuffles", str(shuffles), "--out", str(out), *more]
    return commands.run_command(["run", "models", "tiny-roberta", *options])


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """Arrays of two runs with other options: {shuffles: arrays}."""
    out = tmp_path_factory.mktemp("expected")
    by_option = {}
    for shuffles in (3, 4):
        assert models(out, shuffles) == 0
        by_option[shuffles] = arrays(out, "models")
    assert not equal(*by_option.values())
    return by_option


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("step", ["write_bytes", "replace"])
@pytest.mark.parametrize(
    "error, late", [(OSError(28, "No space left on device"), False), (KeyboardInterrupt(), True)]
)
def test_whatever_write_fails_a_resumed_run_has_arrays_of_its_own_settings(
    tmp_path, monkeypatch, expected, error, late, step, n
):
    """A run of 3 shuffles ends, one of 4 fails at its n-th file; then either is resumed."""
    out = tmp_path / "out"
    assert models(out, 3) == 0
    before = files_in(out)
    place = Path if step == "write_bytes" else files.os
    with monkeypatch.context() as patch:
        n_trials = 2 * (place is Path)  # whether the folder can be written
        patch.setattr(place, step, failing.once(n + n_trials, getattr(place, step), error, late))
        assert models(out, 4) == (2 if isinstance(error, OSError) else 130)
    if step == "write_bytes":
        assert files_in(out) == before
    for resumed in expected:
        copy = shutil.copytree(out, tmp_path / f"resumed with {resumed}")
        assert models(copy, resumed, "--resume") == 0
        assert equal(arrays(copy, "models"), expected[resumed])
        record = read_json(copy / "models.json")
        assert record["settings"]["options"]["shuffles"] == resumed


def files_in(folder):
    """{name: bytes} of a folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_full_disk_is_one_line_that_says_what_was_wanted(tmp_path, monkeypatch, capsys):
    full = OSError(28, "No space left on device")
    monkeypatch.setattr(Path, "write_bytes", failing.once(1, Path.write_bytes, full))
    monkeypatch.setattr(files.shutil, "disk_usage", lambda path: SimpleNamespace(free=4096))
    path = tmp_path / "a.npz"
    with pytest.raises(OSError, match="wanted") as caught:
        files.write(path, b"1" * 5000)
    text = "No space left on device, 5,000 bytes wanted, 4,096 free"
    assert (caught.value.strerror, caught.value.filename) == (text, str(path))


def test_a_folder_that_is_gone_is_named(tmp_path):
    path = tmp_path / "gone" / "a.npz"
    with pytest.raises(OSError, match="the folder was removed during the run") as caught:
        files.write(path, b"1")
    assert caught.value.filename == str(path.parent)
    # a missing model or tokenizer is FileNotFoundError, which a report takes as "left out"
    assert not isinstance(caught.value, FileNotFoundError)


def test_a_folder_that_goes_between_the_draft_and_its_name_is_named(tmp_path):
    path = tmp_path / "gone" / "a.npz"
    path.parent.mkdir()
    with pytest.raises(OSError, match="the folder was removed during the run") as caught:
        files.write_all({path: b"1"}, before=lambda: shutil.rmtree(path.parent))
    assert caught.value.filename == str(path.parent)


def test_a_finished_run_removes_what_killed_ones_were_writing(tmp_path):
    names = ".models.svg.99.tmp", ".models.json.99.tmp"
    for name in (*names, ".other.json.99.tmp"):
        (tmp_path / name).write_bytes(b"half")
    assert models(tmp_path, 3) == 0
    assert [path.name for path in tmp_path.glob("*.tmp")] == [".other.json.99.tmp"]


def test_where_the_old_record_cannot_go_the_old_results_stay(tmp_path, monkeypatch):
    assert models(tmp_path, 3) == 0
    before = files_in(tmp_path)
    unlink = Path.unlink

    def refused(path, missing_ok=False):
        if path.suffix == ".json":
            raise OSError(30, "Read-only file system", str(path))
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", refused)
    assert models(tmp_path, 4) == 2
    assert files_in(tmp_path) == before


def test_arrays_of_another_run_are_not_taken_over(tmp_path, expected):
    assert models(tmp_path, 3) == 0
    np.savez(tmp_path / "models.npz", **expected[4])
    assert models(tmp_path, 3, "--resume") == 0
    assert equal(arrays(tmp_path, "models"), expected[3])


def test_a_record_that_is_a_link_stays_one(tmp_path, expected):
    target = tmp_path / "elsewhere.json"
    target.write_text("earlier")
    (tmp_path / "models.json").symlink_to(target)
    assert models(tmp_path, 3) == 0
    assert (tmp_path / "models.json").is_symlink() and read_json(target)["settings"]


@pytest.mark.parametrize("text", ["[]", "null", "{", '{"settings": 3}', '{"answer": 3}'])
def test_a_record_of_another_form_is_no_finished_run(tmp_path, expected, text):
    assert models(tmp_path, 3) == 0
    (tmp_path / "models.json").write_text(text)
    assert models(tmp_path, 3, "--resume") == 0
    assert equal(arrays(tmp_path, "models"), expected[3])
    assert read_json(tmp_path / "models.json")["settings"]
