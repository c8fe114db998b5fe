"""Numbers that others published for well-known checkpoints, wherever such a checkpoint is on this machine.

published.json holds them with their sources, in three kinds: a slice of the logits or of the last hidden
state for given ids; scores of pieces at a mask or at the end of a text; a greedy continuation. A checkpoint
that is not here is skipped with the command that gets it. The comparisons themselves are tried on golden
models, so that they are known to pass for the right numbers and to fail for wrong ones.

Bounds: the published ones (1e-4 unless the entry says otherwise: values are printed to four decimals) plus
1e-5 of the value, which is float32's share over twelve layers and the reference library's own default.
"""
import functools
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import minitx
import parity
import weights

ENTRIES = json.loads((Path(__file__).parent / "published.json").read_text())


@functools.lru_cache(1)  # one at a time in memory; the entries are visited model by model
def load(name):
    return minitx.load(weights.find(name))


def check_slice(model, entry):
    """A slice of one text's output; a hidden first token keeps its place, as where it was published."""
    ids, given = np.array(entry["input_ids"]), {}
    if "valid" in entry:
        given = {"valid": np.array(entry["valid"], bool), "positions": np.arange(ids.size)}
    x = minitx.forward(model, ids, **given)
    if entry["point"] == "logits":
        x = minitx.logits(model, x, valid=given.get("valid"))
    if "rows" in entry:
        x = x[0, slice(*entry["rows"]), slice(*entry["columns"])]
    np.testing.assert_allclose(x, entry["expected"], rtol=1e-5, atol=entry.get("atol", 1e-4))


def check_read(model, entry):
    """Scores of pieces at the nth mask or after the last token; `ranked`: the highest, in this order."""
    tokens, at = model.tokenizer.encode(entry["text"]), -1
    if entry["at"] != "last":
        mask = model.tokenizer.encode(entry["at"], special=False)
        at = np.flatnonzero(tokens == mask)[entry.get("nth", 0)]
    y = minitx.run(model, tokens, keep=["logits"])["logits"][0, at].astype(np.float64)
    p = np.exp(y - y.max()) / np.exp(y - y.max()).sum()
    score = {"logit": y, "probability": p, "loss": -np.log(p)}[entry["unit"]]
    pieces, published, values = zip(*entry["pieces"])
    ids = [i for piece in pieces for i in model.tokenizer.encode(piece, special=False)]
    assert ids == [i if known is None else known for i, known in zip(ids, published, strict=True)]
    if entry.get("ranked", True):
        assert np.argsort(-y)[:len(ids)].tolist() == ids
    given = [value is not None for value in values]
    np.testing.assert_allclose(score[ids][given], np.array(values)[given].astype(float), rtol=1e-5,
                               atol=entry["atol"])


def check_greedy(model, entry):
    """The likeliest continuation of a batch of prompts, up to a length that counts the longest prompt."""
    prompts, decode = entry["prompts"], model.tokenizer.decode
    texts = isinstance(prompts[0], str)
    longest = max(len(model.tokenizer.encode(p) if texts else p) for p in prompts)
    rows = minitx.generate(model, prompts, entry["length"] - longest)
    assert [decode(row) if texts else row.tolist() for row in rows] == entry["expected"]


CHECKS = {"slice": check_slice, "read": check_read, "greedy": check_greedy}


@pytest.mark.parametrize("entry", sorted(ENTRIES, key=lambda e: e["model"]), ids=lambda e: e["id"])
def test_published_value(entry):
    try:
        model = load(entry["model"])
    except FileNotFoundError as absent:
        pytest.skip(f"{entry['model']} is not on this machine. {str(absent).splitlines()[-1]}")
    CHECKS[entry["kind"]](model, entry)


@pytest.mark.parametrize("pad", [0, 1, 3])
def test_published_rule_of_positions(pad):
    """Tokens 12 31 13 PAD read rows PAD+1, PAD+2, PAD+3, PAD (the reference library's test of this rule)."""
    name = {0: "roberta-bare", 1: "roberta-masked", 3: "roberta-relu-pad3"}[pad]
    model = minitx.load(parity.GOLDEN / name)
    rows = minitx.run(model, [12, 31, 13, pad], keep=["pos_embed"])["pos_embed"][0]
    assert (rows == model.weights.W_pos[[pad + 1, pad + 2, pad + 3, pad]]).all()


# --- the comparisons, tried on golden models --------------------------------------------------------------

@pytest.mark.parametrize("point, theirs", [("last hidden", "hidden.2"), ("logits", "logits")])
def test_a_slice_that_differs_is_noticed(point, theirs):
    model, text = minitx.load(parity.GOLDEN / "bert-own-decoder"), parity.texts("bert-own-decoder")[0]
    entry = dict(input_ids=text["tokens"].tolist(), valid=text["valid"].tolist(), point=point, rows=[1, 4],
                 columns=[2, 5], expected=text[theirs][1:4, 2:5])
    check_slice(model, entry)
    entry["expected"][1, 1] += 0.001
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        check_slice(model, entry)


@pytest.mark.parametrize("wrong", [{}, {"value": 1.0}, {"id": 7}, {"order": -1}])
def test_a_score_that_differs_is_noticed(wrong):
    """With letters for pieces, `_` for the mask, and the reference's own scores of the golden text."""
    text = parity.texts("distilbert-masked")[1]
    letters = {chr(100 + i): i for i in range(61)} | {"_": int(text["tokens"][4])}
    spell = SimpleNamespace(encode=lambda s, special=True: np.array([letters[c] for c in s]))
    model = replace(minitx.load(parity.GOLDEN / "distilbert-masked"), tokenizer=spell)
    y = text["logits"][4]
    best = np.argsort(-y)[:2].tolist()[::wrong.get("order", 1)]
    pieces = [[chr(100 + i), wrong.get("id", i), y[i] + wrong.get("value", 0)] for i in best]
    entry = dict(text="".join(chr(100 + i) for i in text["tokens"]).replace(chr(100 + letters["_"]), "_"),
                 at="_", pieces=pieces, unit="logit", atol=1e-4)
    if not wrong:
        return check_read(model, entry)
    with pytest.raises(AssertionError):
        check_read(model, entry)


def test_a_continuation_that_differs_is_noticed():
    model, text = minitx.load(parity.GOLDEN / "gpt2-causal"), parity.texts("gpt2-causal")[1]
    next_token = int(text["logits"][-1].argmax())
    entry = dict(prompts=[text["tokens"]], length=8, expected=[[*text["tokens"].tolist(), next_token]])
    check_greedy(model, entry)
    entry["expected"][0][-1] += 1
    with pytest.raises(AssertionError):
        check_greedy(model, entry)
