"""Heads that read slices of the stream are noticed; those of a trained model read all of it."""

from dataclasses import replace

import numpy as np
import power
import pytest
import tiny
from outcomes import run, says, verdict

import minitx
from minitx.analysis.contract import registry
from minitx.analysis.experiments import slices

EVERY = [*tiny.ONE_EACH, "bert-sequence", "gpt2-sequence", "bert-bare"]
EVERY += ["bert-token", "bert-next-sentence", "mpnet-choice", "albert-masked"]


@pytest.mark.parametrize("variant", EVERY)
def test_the_order_of_the_dimensions_means_nothing(variant):
    """Every array that reads or writes the stream follows it, the task head's too."""
    model = tiny.load(variant)
    order = np.random.default_rng(0).permutation(model.config.d_model)
    other, tokens = slices.reordered(model, order), tiny.ids(model, 9)
    keep = None if model.config.task_head else ["pattern", "resid_post"]
    of_stream = {"B T D"} if model.config.d_embed else {"B T D", "B T E"}
    plain, moved = (minitx.run(x, tokens, keep=keep) for x in (model, other))
    for key, x in plain.items():
        point = key if isinstance(key, str) else key[0]
        expected = x[..., order] if minitx.POINTS[point].axes in of_stream else x
        assert np.allclose(moved[key], expected, rtol=0, atol=1e-11), key  # measured 1e-14
    alone = slices.reordered(model, order, only=slices.WRITES)
    pattern = minitx.run(alone, tokens, keep="pattern")["pattern", 0]
    assert np.abs(pattern - plain["pattern", 0]).max() > 0.01


def test_every_head_of_the_bundle_changes_without_any_slice(bundled):
    r = run("slices", bundled, documents=2, tokens=64)
    assert r["n_changed"] == r["n_heads"] == 16
    assert r["least"] > 0.05  # measured 0.11
    assert r["own"] == pytest.approx(r["own_null"], rel=0.2)  # a slice like any other
    assert r["reordered"] < 1e-4 and r["reordered_null"] > 0.5  # measured 2e-6 and 1
    assert verdict("slices", r) == "no"
    assert "Each head projects the whole stream" in says("slices", r)


@pytest.mark.parametrize("name", ["tiny-roberta", "tiny-gpt2"])
def test_heads_that_do_read_slices_are_noticed(name):
    """W_Q and W_K are zero outside the blocks on their diagonal."""
    r = run("slices", power.with_slices(1, minitx.load(name)), documents=2, tokens=32)
    assert r["n_changed"] == 0 and r["least"] < 1e-6 and (r["own_of_heads"] > 0.001).all()
    assert verdict("slices", r) == "yes" and "16 do not change" in says("slices", r)
    first_alone = power.with_slices(0.25, minitx.load(name))
    r = run("slices", first_alone, documents=2, tokens=32)
    assert r["n_changed"] == 12 and verdict("slices", r) == "partly"


def test_the_change_of_a_head_is_the_attention_that_moves(bundled):
    """Of every layer for itself, from patterns computed by hand."""
    tokens, D = tiny.ids(bundled, 12), bundled.config.d_model
    trace = minitx.run(bundled, tokens, keep=["resid_pre", "pattern"])
    layers = slices._attend(bundled, tokens)
    moved = slices._without_slices(bundled, tokens, layers, np.random.default_rng(0))
    d = bundled.config.d_head
    assert moved.shape == (5, 4, 4) and D == 4 * d
    for w in bundled.layers:
        x = trace["resid_pre", w.index][0].astype(np.float64)
        x[:, d : 2 * d] = 0
        q, k = x @ w.W_Q + w.b_Q, x @ w.W_K + w.b_K
        for head in range(4):
            own = slice(head * d, (head + 1) * d)
            e = np.exp(q[:, own] @ k[:, own].T / np.sqrt(d))
            pattern = e / e.sum(axis=1, keepdims=True)
            change = abs(pattern - trace["pattern", w.index][0, head]).sum(axis=1).mean() / 2
            assert moved[1, w.index, head] == pytest.approx(change, abs=1e-5)


def test_one_head_has_no_slice(causal):
    model = replace(causal, config=replace(causal.config, n_heads=1))
    with pytest.raises(registry.NotApplicable, match="slices needs two heads or more"):
        registry.get("slices").run(model)
