"""The positional kernel: equal to what is stored or follows, and where places alone send heads."""

import folders
import numpy as np
import pytest
from outcomes import says

import minitx
from minitx import analysis, weights
from minitx.analysis.experiments import kernel as experiment
from minitx.analysis.maths import positional_kernel as maths
from minitx.analysis.measures import mean_kernel

LAGS = np.arange(-12, 13)


def turned(x, angle):
    """Pairs (i, i + r) of [d] turned by an angle [r]; features beyond them as they are."""
    r = len(angle)
    first, second, rest = np.split(x, [r, 2 * r])
    cos, sin = np.cos(angle), np.sin(angle)
    return np.concatenate([first * cos - second * sin, second * cos + first * sin, rest])


@pytest.mark.parametrize("width", [6, 8])
def test_the_score_of_turned_vectors_is_a_sum_of_cosines(width):
    q, k = np.random.default_rng(0).normal(size=(2, width))
    omega = np.array([1.3, 0.2, 0.01])
    scores = [turned(q, 20 * omega) @ turned(k, (20 + t) * omega) for t in LAGS]
    np.testing.assert_allclose(maths.rotary(q, k, omega, LAGS), scores, atol=1e-12)


def test_each_pair_prefers_the_lag_that_turns_its_key_back():
    omega = np.array([0.7, 0.3])
    q = np.array([1.0, 2.0, 0.5, -1.0])
    k = turned(q, 3 * omega)  # ahead by three tokens: fits three tokens to the left
    np.testing.assert_allclose(maths.preferred(q, k, omega), -3, atol=1e-12)
    curve = maths.rotary(q, k, omega, LAGS)
    assert LAGS[curve.argmax()] == -3


IN_THE_SCORES = "mpnet-masked", "t5-relu", "bloom-three", "llama-grouped", "qwen3-norms"


@pytest.mark.parametrize("variant", IN_THE_SCORES)
def test_what_is_stored_or_follows_is_the_kernel_of_the_models_own_pass(variant):
    model = minitx.load(folders.GOLDEN / variant, dtype=np.float64)
    model = model.encoder or model
    cfg = model.config
    T = min(20, cfg.n_ctx)
    rng = np.random.default_rng(0)
    query = rng.normal(size=(cfg.n_layers, cfg.n_heads, cfg.d_head))
    key = rng.normal(size=(cfg.n_layers, cfg.n_kv, cfg.d_head))
    alone = mean_kernel.run_alone(model, rng.integers(5, cfg.n_vocab, T), query, key)
    lags = np.arange(1 - T, T)
    seen = lags <= (0 if cfg.causal else T)
    known = mean_kernel.formula(model, query, key, lags, T)[..., seen]
    measured = maths.mean_by_lag(alone.scores, T - 1)[..., seen]
    assert maths.furthest(measured, known).max() < 1e-12  # 2e-15
    assert maths.furthest(measured, np.roll(known, 1, axis=-1)).max() > 0.05
    bias = maths.mean_by_lag(alone.bias, T - 1)[..., seen]
    np.testing.assert_allclose(bias, 0 if cfg.rotary else known, atol=1e-12)


def test_places_alone_send_the_heads_of_the_first_layer_where_they_look():
    r = analysis.run("kernel", "tiny-roberta", documents=8).arrays
    same = r["lag_of_heads"] == r["offset_of_heads"]
    assert same[0].all() and r["directed"][0].all()  # 4 of 4
    assert r["n_agree"] > r["n_agree_null"]
    assert "known" not in r  # a table says nothing of the scores by itself


def test_a_kernel_that_is_highest_by_less_than_the_margin_does_not_send_a_head():
    """Two heads that look at -1: their kernels are highest there, by 0.2 and by 0.025 nats."""
    lags = np.arange(-10, 11)
    looks = np.where(lags == -1, 0.9, 0.005)
    curves = np.multiply.outer([0.2, 0.025], (lags == -1) + 0.001 * np.cos(lags))
    r = {"kernel": curves[None], "attention": np.array([[looks, looks]]), "T": 512, "causal": False}
    compared = experiment._compare(r, 0)
    assert compared["lag_of_heads"].tolist() == [[-1, -1]]
    np.testing.assert_allclose(compared["height_of_heads"], [[0.2, 0.025]], rtol=0.01)
    assert (compared["n_directed"], compared["n_agree"], compared["n_flat"]) == (2, 1, 1)
    assert compared["agree"] == 0.5
    words = says("kernel", r | compared | {"n_agree_null": 0})
    assert "more than 0.1 nats above its median (in 1 more it is highest there, but lower)" in words


def test_without_a_mechanism_there_is_no_formula():
    model = minitx.load(weights.find("tiny-gpt2"))
    query, key = np.zeros((2, 4, 4, 32))
    assert mean_kernel.formula(model, query, key, LAGS, 20) is None
