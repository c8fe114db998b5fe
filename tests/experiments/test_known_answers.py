"""What a mechanism computes is known by construction: the analyses must give it back."""

import numpy as np
import pytest
import tiny

import minitx
from minitx import analysis, weights
from minitx.analysis.contract.registry import NotApplicable
from minitx.analysis.maths import lags, positional_kernel, rotation

OFFSETS = (-1, -3, 0, -5)  # where the four heads of the planted layer look
TURNED, BIASED = "queries and keys are turned", "a term of the scores"
FLAT = "whose rows differ; here all are the same"
LACKING = [  # what an experiment does not do for, and why
    ("positions", "zoo/causal-rotary", TURNED),
    ("positions", "zoo/causal-alibi", BIASED),
    ("positions", "zoo/causal-none", FLAT),
    ("singular-values", "zoo/causal-rotary", TURNED),
    ("singular-values", "zoo/causal-alibi", BIASED),
    ("models", "zoo/causal-none", FLAT),
    ("residual", "zoo/causal-none", FLAT),
    ("projections", "zoo/masked-disentangled", "needs scores that are products q.k only"),
    ("relearn", "tiny-gpt2", "a masked language model with a position table"),
    ("lags", "tiny-vit", r"lags reads texts, and this model \(vit\) p"),
]


def planted():
    """A rotary model whose first layer reads no words: each head's keys are its queries, turned.

    A key is behind its query by the angle that a token at the head's offset is ahead.
    """
    model = minitx.load("zoo/causal-rotary", dtype=np.float64)
    omega = np.array(model.config.rotary[0].frequencies)
    r = len(omega)
    query = 3 * np.concatenate([np.ones(r), np.zeros(r)])
    keys = [3 * np.concatenate([np.cos(omega * o), -np.sin(omega * o)]) for o in OFFSETS]
    nothing = np.zeros_like(model.layers[0].W_Q)
    arrays = {"W_Q": nothing, "W_K": nothing}
    arrays |= {"b_Q": np.tile(query, len(OFFSETS)), "b_K": np.concatenate(keys)}
    return tiny.with_weights(model, {0: arrays})


@pytest.mark.skipif("zoo/causal-rotary" not in weights.zoo(), reason="is not in this copy")
def test_a_shift_built_into_turned_queries_and_keys_comes_back():
    model = planted()
    r = analysis.run("kernel", model, documents=3).arrays
    assert r["lag_of_heads"][0].tolist() == r["offset_of_heads"][0].tolist() == [*OFFSETS]
    assert r["error"] < 1e-12  # 2e-15
    trace = minitx.run(model, np.arange(5, 69), ["q", "k"])
    q, k = trace["q", 0][0], trace["k", 0][0]  # [H T d], turned
    by_lag = lags.xcov(q, k).sum(axis=-1)  # [H 2T - 1]
    pairs = 64 - abs(lags.all_lags(64))
    best = np.where(pairs > 32, by_lag / pairs, -np.inf).argmax(axis=-1)
    assert lags.all_lags(64)[best].tolist() == [*OFFSETS]
    omega = model.config.rotary[0].frequencies
    for head, offset in enumerate(OFFSETS):
        assert rotation.fit(q[head], k[head]) > 0.999999
        preferred = positional_kernel.preferred(q[head, 0], k[head, 0], omega)
        fast = np.array(omega) * 5 < np.pi
        np.testing.assert_allclose(preferred[fast], offset, atol=1e-9)


@pytest.mark.parametrize("experiment, model, message", LACKING)
def test_what_a_model_lacks_is_said(experiment, model, message):
    with pytest.raises(NotApplicable, match=message):
        analysis.run(experiment, model)


def test_rotation_reads_turned_pairs_and_says_where_nothing_is_turned():
    turned = analysis.run("rotation", "zoo/causal-rotary", documents=4, tokens=32)
    assert turned.answer.verdict == "undecided"  # no head has a direction in so few tokens
    assert "so that no basis is chosen" in turned.says
    biased = analysis.run("rotation", "zoo/causal-alibi", documents=4, tokens=32)
    assert biased.answer.verdict == "nothing"
    assert "a bias by distance turns no query" in biased.says


@pytest.mark.skipif("zoo/causal-sinusoidal" not in weights.zoo(), reason="is not in this copy")
def test_the_zoos_sinusoidal_table_shifts_by_one_angle_a_frequency():
    model = minitx.load("zoo/causal-sinusoidal")
    table = model.weights.W_pos.astype(np.float64)
    z = table[:, 1::2] + 1j * table[:, ::2]
    angle = np.angle((z[1:] * z[:-1].conj()).mean(axis=0))
    omega = 10000 ** (-np.arange(0, 128, 2) / 128)
    np.testing.assert_allclose(angle, omega, atol=1e-4)  # float16
