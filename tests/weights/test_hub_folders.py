"""Folders with the files of three published encoder-decoders: downloaded, loaded, run.

What the folders hold is in tools/standins.py: the files, keys and tensor names of the published
ones, tiny random weights. The hub is the stand-in of tools/hub.py.
"""

import importlib.util
import re

import numpy as np
import pytest
import standins
from downloads import ROOT, Machine
from hub import Hub

import minitx
from minitx.words import pieces

SOURCE, TARGET = "I am a small frog.", "Ein kleiner Frosch."
LISTED = {  # what is wanted of each folder
    standins.BART: "config.json vocab.json merges.txt model.safetensors",
    standins.MARIAN: "config.json generation_config.json source.spm target.spm vocab.json "
    "tokenizer_config.json model.safetensors",
    standins.T5: "config.json generation_config.json spiece.model tokenizer.json model.safetensors",
}
SHORT = {standins.BART: "bart-base", standins.MARIAN: "opus-mt-en-de", standins.T5: "t5-small"}
needs_package = pytest.mark.skipif(
    not importlib.util.find_spec("sentencepiece"),
    reason=f"sentencepiece is not installed: {pieces.EXTRA}",
)
REPOS = [standins.BART, pytest.param(standins.MARIAN, marks=needs_package), standins.T5]


@pytest.fixture(scope="module")
def fetched(tmp_path_factory):
    """The three folders after a download, by hub id."""
    hub = Hub()
    for repo in LISTED:
        hub.publish(repo, standins.files(repo))
    machine = Machine(tmp_path_factory.mktemp("home"), hub.url)
    yield {repo: machine.fetch(SHORT[repo]) for repo in LISTED}
    hub.close()


@pytest.mark.parametrize("repo", LISTED)
def test_a_short_name_brings_what_text_and_model_need_and_no_pickle(fetched, repo):
    assert {file.name for file in fetched[repo].iterdir()} == {*LISTED[repo].split()}


@pytest.mark.parametrize("repo", LISTED)
def test_every_tensor_of_the_layers_has_a_place(fetched, repo):
    model = minitx.load(fetched[repo], dtype=np.float64)
    # three names of one array
    names = "shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight"
    assert {*model.unused} < {*names}
    assert model.config.task_head == "causal" and model.encoder is not None
    minitx.check(model)
    for weights in (model.weights, model.encoder.weights):
        np.testing.assert_array_equal(weights.W_E, model.weights.W_E)


@pytest.mark.parametrize("repo", REPOS)
def test_a_text_is_read_continued_and_looked_into(fetched, repo):
    model = minitx.load(fetched[repo], dtype=np.float64)
    trace = minitx.run(model, TARGET, source=SOURCE)
    assert "".join(trace.source_labels[0]).replace("▁", " ").strip(" </s>") == SOURCE
    S, T = trace.source.size, trace.tokens.size
    assert trace["cross_pattern", -1].shape == (1, standins.H, T, S)
    assert trace["enc_pattern", 0].shape == (1, standins.H, S, S)
    np.testing.assert_allclose(trace["cross_pattern", 0].sum(axis=-1), 1, rtol=0, atol=1e-12)
    assert trace.tokens[0, 0] == model.config.start_id
    ids = minitx.generate(model, n=8, source=SOURCE)
    assert ids[0] == model.config.start_id and len(ids) <= 9
    assert isinstance(model.tokenizer.decode(ids), str)


@needs_package
def test_the_commands_of_the_document_run_on_the_stand_ins(fetched, monkeypatch):
    """What they print there is of the published weights; here they only run."""
    document = (ROOT / "weights" / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^minitx fetch ([\w-]+)  ", document, re.M)) == {*SHORT.values()}
    monkeypatch.setenv("HF_HOME", str(fetched[standins.T5].parents[3]))
    for key in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        monkeypatch.delenv(key, raising=False)
    [session] = re.findall(r"```pycon\n(.*?)```", document, re.S)
    lines = [line.removeprefix(">>> ") for line in session.split("\n") if line.startswith(">>> ")]
    names = {}
    exec("\n".join(lines), names)
    assert names["model"].config.model_type == "bart" and len(lines) > 10
    S, T = names["trace"].source.size, names["trace"].tokens.size
    assert names["trace"]["cross_pattern", 1].shape == (1, standins.H, T, S)


def test_a_bart_saved_without_its_head_has_one(fetched):
    """The published bart-base is a BartModel; its output embedding is its word embedding."""
    model = minitx.load(fetched[standins.BART])
    assert model.config.architecture == "BartModel"
    np.testing.assert_array_equal(model.weights.W_U, model.weights.W_E.T)


def test_positions_of_marian_are_computed_where_a_file_has_them_too(fetched):
    model = minitx.load(fetched[standins.MARIAN], dtype=np.float64)
    *_, tensors = standins.marian()
    stored = tensors["model.decoder.embed_positions.weight"]
    np.testing.assert_allclose(model.weights.W_pos, stored, rtol=0, atol=1e-7)
