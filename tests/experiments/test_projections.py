"""Only the product of queries and keys counts; matrices swapped cost what the model knows."""

import numpy as np
import pytest
import tiny
from outcomes import run, verdict

import minitx
from minitx.analysis.contract import registry
from minitx.analysis.experiments import projections
from minitx.analysis.measures import losses
from minitx.analysis.texts import corpus


@pytest.mark.parametrize("variant", tiny.ONE_EACH)
def test_only_the_product_of_queries_and_keys_counts(variant):
    model = tiny.load(variant)
    cfg, tokens = model.config, tiny.ids(model, 9)
    layers = range(cfg.n_layers)
    plain = minitx.run(model, tokens, keep=["q", "pattern"])
    ways = projections._ways(model, 0)
    together = projections.changed(model, ways[projections.TOGETHER], layers)
    turned = minitx.run(together, tokens, keep=["q", "pattern"])
    for layer in layers:
        assert np.abs(turned["q", layer] - plain["q", layer]).max() > 0.1
        difference = turned["pattern", layer] - plain["pattern", layer]
        assert np.abs(difference).max() < 1e-11  # float64: measured 1e-15
    assert projections.input_error(model, tokens) < 1e-12


def test_values_are_limited_as_the_model_limits_them():
    """In an OLMo with clip_qkv; without its limit they are 3 times their largest apart."""
    model = tiny.load("olmo-limited")
    assert model.config.qkv_limit and projections.input_error(model, tiny.ids(model, 12)) < 1e-12


def test_swapped_matrices_are_each_others_with_their_biases():
    model = tiny.load("bert-masked")
    tokens, keep = tiny.ids(model, 9), ["q", "k", "v"]
    ways = projections._ways(model, 0)
    plain = minitx.run(model, tokens, keep)
    for name, pair in projections.SWAPS.items():
        trace = minitx.run(projections.changed(model, ways[name], [0]), tokens, keep)
        a, b = pair.lower()
        assert np.array_equal(trace[a, 0], plain[b, 0]) and np.array_equal(trace[b, 0], plain[a, 0])
        [other] = {"q", "k", "v"} - {a, b}
        assert np.array_equal(trace[other, 0], plain[other, 0])
        later = projections.changed(model, ways[name], [1])
        assert later.layers[0].W_Q is model.layers[0].W_Q
    next_head = minitx.run(projections.changed(model, ways[projections.NEXT], [0]), tokens, keep)
    for name in "kv":
        expected = np.roll(plain[name, 0], -1, axis=1)
        assert np.allclose(next_head[name, 0], expected, rtol=0, atol=1e-12)  # another tile
    assert np.array_equal(next_head["q", 0], plain["q", 0])


@pytest.mark.parametrize("name", ["tiny-roberta", "tiny-gpt2"])
def test_matrices_in_each_others_place_cost_a_bundle_its_predictions(name, models):
    r = run("projections", models[name], documents=4, tokens=48)
    assert r["rise"] > 3 and r["rise_interval"][0] > 2  # measured 5.5 and 5.1
    assert r["rise_next"] > 1 and r["rise_qk"] > 0.5 and r["rise_qv"] > 2
    assert abs(r["rise_null"]) < 1e-4 and r["input_error"] < 1e-5  # rounding
    assert r["rise_by_layer"].argmax() == 0
    by_way = dict(zip(r["ways"].tolist(), r["rises"].tolist()))
    assert by_way[projections.MAIN] == r["rise"] and by_way[projections.QV] == r["rise_qv"]
    assert verdict("projections", r) == "yes"


def test_a_swap_of_equal_matrices_changes_nothing(models):
    model = models["tiny-gpt2"]
    equal = {w.index: {"W_V": w.W_K, "b_V": w.b_K} for w in model.layers}
    r = run("projections", tiny.with_weights(model, layers=equal), documents=3, tokens=32)
    assert r["rise"] == 0 and not r["rise_by_layer"].any()
    assert verdict("projections", r) == "no"
    assert verdict("projections", r | {"input_error": np.array(0.1)}) == "no"


def test_the_loss_is_the_models_own(models):
    """Of every document the tokens that are hidden are others."""
    model = models["tiny-gpt2"]
    r = run("projections", model, documents=2, tokens=32)
    documents = corpus.documents(model, "sample", 2, 32)
    costs = np.concatenate([losses.causal(model, document) for document in documents])
    assert r["loss"] == pytest.approx(costs.mean()) and r["n_predicted"] == len(costs) == 62
    masked = run("projections", models["tiny-roberta"], documents=2, tokens=34, every=8)
    assert masked["n_predicted"] == 8 and masked["predicts"] == "pseudo-loss"


def test_a_model_that_predicts_no_tokens_is_refused(models):
    with pytest.raises(registry.NotApplicable, match="head is sequence"):
        registry.get("projections").run(models["classifier"])
