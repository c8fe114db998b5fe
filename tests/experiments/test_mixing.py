"""What attention mixes and an MLP does not, and how many directions a mean over keys leaves."""

import numpy as np
import pytest
import tiny
from outcomes import run

import minitx
from minitx.analysis.contract import registry
from minitx.analysis.experiments import mixing
from minitx.analysis.maths import effective
from minitx.analysis.running import passes


@pytest.mark.parametrize("variant", tiny.ONE_EACH)
def test_an_mlp_changes_one_row_and_attention_all_that_see_it(variant):
    model, T = tiny.load(variant), 7
    by_attention, by_mlp = mixing.changed_rows(model, tiny.ids(model, T))
    seen = np.tri(T, dtype=bool) if model.config.causal else np.ones((T, T), bool)
    assert by_attention.shape == (model.config.n_layers, T, T)
    assert (by_attention == seen).all() and (by_mlp == np.eye(T, dtype=bool)).all()


def test_every_layer_is_measured_for_itself(causal):
    """A layer that writes nothing changes nothing, though its input does; others go on."""
    silent = {
        "W_O": np.zeros_like(causal.layers[0].W_O),
        "W_out": np.zeros_like(causal.layers[0].W_out),
    }
    model = tiny.with_weights(causal, layers={0: silent})
    changed = mixing.changed_rows(model, tiny.ids(model, 6))
    assert not changed[:, 0].any()
    assert (changed[0, 1] == np.tri(6, dtype=bool)).all()


def test_rows_that_do_not_see_the_vector_are_counted():
    changed = np.ones((2, 3, 4, 4), bool)
    changed[1] = np.eye(4, dtype=bool)
    counts = mixing._counts(changed, causal=True)
    assert counts["blind_rows"] == 3 * 6 and counts["attention_share"] == 1
    assert counts["mlp_rows"] == 1 and counts["mlp_own"]
    assert not mixing._counts(np.ones((2, 3, 4, 4), bool), causal=True)["mlp_own"]


def test_what_changes_answers_the_question(bundled):
    mixes = registry.get("mixing")
    r = run("mixing", bundled, documents=2, tokens=40)
    assert mixes.answer(r).verdict == "yes" and r["blind_rows"] == 0
    assert mixes.answer(r | {"attention_share": np.array(0.5)}).verdict == "partly"
    assert mixes.answer(r | {"mlp_own": np.array(False)}).verdict == "no"
    assert "rows that do not see it change too" in mixes.says(r | {"blind_rows": np.array(3)})


@pytest.mark.parametrize("name", ["tiny-roberta", "tiny-gpt2"])
def test_uniform_attention_weighs_all_keys_and_leaves_one_direction(name, models):
    model = models[name]
    zeros = {"W_Q": np.zeros_like(model.layers[1].W_Q), "b_Q": np.zeros_like(model.layers[1].b_Q)}
    r = run("mixing", tiny.with_weights(model, layers={1: zeros}), documents=2, tokens=32)
    n_visible = np.arange(1, 33) if model.config.causal else np.full(32, 32)
    assert r["keys_null"] == n_visible.mean()
    assert r["keys_of_heads"][1] == pytest.approx(n_visible.mean(), rel=1e-4)
    assert r["entropy"][1] == pytest.approx(np.log(n_visible).mean(), abs=1e-4)
    assert r["nats_null"] == pytest.approx(np.log(n_visible).mean())
    assert (r["keys_of_heads"][[0, 2, 3]] < n_visible.mean()).all()
    if not model.config.causal:  # every row is the mean of the values
        assert r["rank"][1] == 1 and r["effective_rank"][1] < 1.01
        assert r["rank_values"][1] == 32


def test_entropy_and_ranks_are_those_of_the_trace(causal):
    tokens = tiny.ids(causal, 20)
    order = np.random.default_rng(0).permutation(20)
    measured = passes.value(mixing._reading(causal, tokens, order))
    trace = minitx.run(causal, tokens, keep=["pattern", "v", "z"])
    for layer in range(causal.config.n_layers):
        pattern, v, z = (trace[name, layer][0].astype(np.float64) for name in ("pattern", "v", "z"))
        logs = np.log(np.where(pattern > 0, pattern, 1))
        entropy = -(pattern * logs).sum(axis=-1)
        assert np.allclose(measured["entropy"][layer], entropy.mean(axis=1), atol=1e-5)
        assert np.allclose(measured["keys_of_heads"][layer], np.exp(entropy).mean(axis=1), 1e-5)
        for i, x in enumerate((z, pattern @ v[:, order], v)):
            joined = np.concatenate([*x], axis=1)
            s = np.linalg.svd(joined, compute_uv=False)
            assert measured["ranks"][layer, i] == np.linalg.matrix_rank(joined.astype(np.float32))
            p = s / s.sum()
            expected = np.exp(-(p * np.log(p)).sum())
            assert measured["effective_ranks"][layer, i] == pytest.approx(expected, rel=1e-3)


def test_mixing_keeps_directions_where_heads_are_sharp_and_loses_them_where_they_average(bundled):
    r = run("mixing", bundled, documents=4)
    assert (r["keys_of_heads"][0] < 2).all()  # measured 1.3 to 1.6 of 256
    assert r["effective_rank"][0] > r["effective_rank_values"][0]  # measured 106 of 81
    assert r["effective_rank"][3] < 0.6 * r["effective_rank_values"][3]  # measured 40 of 80


def test_singular_values_are_those_of_the_matrix():
    rng = np.random.default_rng(1)
    for shape in ((9, 4), (4, 9), (5, 5)):
        x = rng.standard_normal(shape)
        s = np.linalg.svd(x, compute_uv=False)
        assert np.allclose(effective.singular_values(x), s, rtol=1e-7)
        assert effective.rank(s, max(shape)) == np.linalg.matrix_rank(x)
