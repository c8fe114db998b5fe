"""Numbers that others published for well-known checkpoints, compared where these are here.

published.json holds them with their sources, in four kinds: a slice of the logits or of the last
hidden state for given ids (in an encoder-decoder those of its source, beside those of `target`);
scores of pieces at a mask or at the end of a text; a greedy continuation; the ids of a text.
A checkpoint that is not here is skipped with the command that gets it. The comparisons themselves
are tried on golden models, so that they are known to pass for the right numbers and to fail for
wrong ones.

Bounds: the published ones (1e-4 unless the entry says otherwise: values are printed to four
decimals) plus 1e-5 of the value, which is float32's share over twelve layers and the reference
library's own default.
"""

import functools
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import parity
import pytest
import standins
from scipy.special import log_softmax, softmax

import minitx
from minitx import weights

ENTRIES = json.loads((Path(__file__).parent / "published.json").read_text())


@functools.lru_cache(1)  # one at a time in memory; the entries are visited model by model
def load(name):
    return minitx.load(weights.find(name))


def check_slice(model, entry):
    """A slice of one text's output; tokens keep their positions, and so does a hidden first one."""
    ids = np.array(entry["input_ids"])
    valid = positions = None
    if "valid" in entry:
        valid = np.array(entry["valid"], bool)
        positions = np.arange(ids.size)
    pair = {}
    if "target" in entry:
        ids, pair = np.array(entry["target"]), {"source": ids}
    x = minitx.forward(model, ids, valid=valid, positions=positions, **pair)
    if entry["point"] == "logits":
        x = minitx.logits(model, x, valid=valid)
    if "rows" in entry:
        x = x[0, slice(*entry["rows"]), slice(*entry["columns"])]
    np.testing.assert_allclose(x, entry["expected"], rtol=1e-5, atol=entry.get("atol", 1e-4))


def check_read(model, entry):
    """Scores of pieces at the nth mask or after the last token; `ranked`: the highest, in order."""
    tokens = model.tokenizer.encode(entry["text"])
    column = -1
    if entry["at"] != "last":
        mask = model.tokenizer.encode(entry["at"], special=False)
        column = np.flatnonzero(tokens == mask)[entry.get("nth", 0)]
    y = minitx.run(model, tokens, keep=["logits"])["logits"][0, column].astype(np.float64)
    score = {"logit": y, "probability": softmax(y), "loss": -log_softmax(y)}[entry["unit"]]
    pieces, published, values = zip(*entry["pieces"])
    ids = [i for piece in pieces for i in model.tokenizer.encode(piece, special=False)]
    assert ids == [i if known is None else known for i, known in zip(ids, published, strict=True)]
    if entry.get("ranked", True):
        assert np.argsort(-y)[: len(ids)].tolist() == ids
    stated = [value is not None for value in values]
    expected = np.array(values)[stated].astype(float)
    np.testing.assert_allclose(score[ids][stated], expected, rtol=1e-5, atol=entry["atol"])


def check_greedy(model, entry):
    """The likeliest continuation of a batch, up to a length that counts the longest prompt."""
    prompts = ids = entry["prompts"]
    texts = isinstance(prompts[0], str)
    if texts:
        ids = [model.tokenizer.encode(prompt) for prompt in prompts]
    rows = minitx.generate(model, prompts, entry["length"] - max(map(len, ids)))
    continued = [model.tokenizer.decode(row) if texts else row.tolist() for row in rows]
    assert continued == entry["expected"]


def check_encode(model, entry):
    """The ids of a text; in an encoder-decoder of a source."""
    reader = model.encoder or model
    assert reader.tokenizer.encode(entry["text"]).tolist() == entry["expected"]


CHECKS = {"slice": check_slice, "read": check_read, "greedy": check_greedy, "encode": check_encode}


@pytest.mark.parametrize("entry", sorted(ENTRIES, key=lambda e: e["model"]), ids=lambda e: e["id"])
def test_published_value(entry):
    try:
        model = load(entry["model"])
    except FileNotFoundError as absent:
        pytest.skip(f"{entry['model']} is not on this machine. {str(absent).splitlines()[-1]}")
    CHECKS[entry["kind"]](model, entry)


# --- the comparisons, tried on golden models


@pytest.mark.parametrize("point, theirs", [("last hidden", "hidden.2"), ("logits", "logits")])
def test_a_slice_that_differs_is_noticed(point, theirs):
    model = minitx.load(parity.GOLDEN / "bert-own-decoder")
    text = parity.texts("bert-own-decoder")[0]
    entry = dict(input_ids=text["tokens"].tolist(), valid=text["valid"].tolist(), point=point)
    entry |= dict(rows=[1, 4], columns=[2, 5], expected=text[theirs][1:4, 2:5])
    check_slice(model, entry)
    entry["expected"][1, 1] += 0.001
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        check_slice(model, entry)


@pytest.mark.parametrize("point", ["last hidden", "logits"])
def test_a_slice_of_an_encoder_decoder_that_differs_is_noticed(tmp_path, point):
    for name, data in standins.files(standins.BART).items():
        (tmp_path / name).write_bytes(data)
    model = minitx.load(tmp_path, dtype=np.float64)
    source, target = [0, 9, 17, 33, 2], [2, 0, 9, 17]
    name = "logits" if point == "logits" else ("resid_post", -1)
    expected = minitx.run(model, target, source=source, keep=[name])[name][0, 1:3, 2:5]
    entry = dict(input_ids=source, target=target, point=point, expected=expected.copy())
    entry |= dict(rows=[1, 3], columns=[2, 5])
    check_slice(model, entry)
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        check_slice(model, entry | {"input_ids": [0, 9, 17, 34, 2]})
    check_encode(model, {"text": "a frog", "expected": model.tokenizer.encode("a frog").tolist()})
    with pytest.raises(AssertionError):
        check_encode(model, {"text": "a frog", "expected": [0, 2]})


@pytest.mark.parametrize("wrong", [{}, {"value": 1.0}, {"id": 7}, {"order": -1}])
def test_a_score_that_differs_is_noticed(wrong):
    """The reference's scores of a golden text, with a letter for each id and `_` for the mask."""
    text = parity.texts("distilbert-masked")[1]
    mask = int(text["tokens"][4])
    letters = {i: chr(100 + i) for i in range(61)}
    ids = {letter: i for i, letter in letters.items()} | {"_": mask}
    spell = SimpleNamespace(encode=lambda s, special=True: np.array([ids[c] for c in s]))
    model = replace(minitx.load(parity.GOLDEN / "distilbert-masked"), tokenizer=spell)
    y = text["logits"][4]
    best = np.argsort(-y)[:2].tolist()[:: wrong.get("order", 1)]
    pieces = [[letters[i], wrong.get("id", i), y[i] + wrong.get("value", 0)] for i in best]
    spelled = "".join(letters[i] for i in text["tokens"]).replace(letters[mask], "_")
    entry = dict(text=spelled, at="_", pieces=pieces, unit="logit", atol=1e-4)
    if not wrong:
        return check_read(model, entry)
    with pytest.raises(AssertionError):
        check_read(model, entry)


def test_a_continuation_that_differs_is_noticed():
    model = minitx.load(parity.GOLDEN / "gpt2-causal")
    text = parity.texts("gpt2-causal")[1]
    next_token = int(text["logits"][-1].argmax())
    continued = [*text["tokens"].tolist(), next_token]
    entry = dict(prompts=[text["tokens"]], length=8, expected=[continued])
    check_greedy(model, entry)
    entry["expected"][0][-1] += 1
    with pytest.raises(AssertionError):
        check_greedy(model, entry)
