"""Queries and keys after the turn: as the pass has them, and a planted shift comes back."""

from dataclasses import replace

import numpy as np
import planted_places
import pytest
import tiny

import minitx
from minitx import analysis
from minitx.analysis.contract.registry import NotApplicable
from minitx.analysis.maths import lags as maths
from minitx.analysis.maths import profiles
from minitx.analysis.measures import lag_signals
from minitx.analysis.running import passes

SHIFT = -2  # where every head is made to look


@pytest.mark.parametrize("variant", ["llama-grouped", "gpt_neox-parallel", "qwen3-norms"])
def test_turned_queries_and_keys_give_the_scores_of_the_pass(variant):
    model = tiny.load(variant)
    cfg, tokens = model.config, tiny.ids(model, 20)
    signals = lag_signals.signals(model, bias=False)
    X, attention = passes.value(signals.of_document(tokens, 5))
    trace = minitx.run(model, tokens, keep=["scores", "pattern"])
    seen = np.tri(20, dtype=bool)
    for layer in range(cfg.n_layers):
        scores = trace["scores", layer][0]
        own = np.einsum("htd,hsd->hts", *X[layer]) * cfg.attn_scale(layer)
        is_seen = seen & np.isfinite(scores)  # a window hides some of the past, too
        np.testing.assert_allclose(own[is_seen], scores[is_seen], atol=1e-12)
        sums = signals.scores(layer, X[layer], X[layer], 5) * cfg.attn_scale(layer)
        diagonals = [np.trace(own, t, axis1=1, axis2=2) for t in profiles.offsets(5)]
        np.testing.assert_allclose(sums, np.transpose(diagonals), atol=1e-10)
        np.testing.assert_allclose(
            attention[layer], profiles.profile(trace["pattern", layer][0], 5)
        )
        order = np.random.default_rng(0).permutation(20)
        shuffled = signals.reordered(X[layer], order)
        np.testing.assert_array_equal(shuffled[1, :, 3], X[layer][1, :, order[3]])


def test_a_planted_rotary_shift_is_what_lags_and_kernel_find():
    """Queries and keys are the same for all words, each key turned by 2."""
    planted = planted_places.rotary(-SHIFT)
    r = analysis.run("lags", planted, documents=4).arrays
    assert (r["lag_of_heads"] == SHIFT).all() and (r["offset_of_heads"] == SHIFT).all()
    assert r["n_positions"] == r["n_directed"] == r["lag_of_heads"].size
    assert r["n_positions_null"] < r["n_positions"]
    share = r["position_share_of_heads"]
    np.testing.assert_allclose(share, 1, atol=1e-3)  # words do nothing
    kernel = analysis.run("kernel", planted, documents=4).arrays
    assert (kernel["lag_of_heads"] == SHIFT).all() and kernel["error"] < 1e-5


def test_where_scores_have_another_part_or_no_pass_there_is_nothing_to_move():
    with pytest.raises(NotApplicable, match="a term of the scores"):
        lag_signals.signals(tiny.load("bloom-three"), bias=False)
    partial = replace(tiny.load("llama-grouped"), missing=("model.norm.weight",))
    with pytest.raises(NotApplicable, match="needs the whole model"):
        lag_signals.signals(partial, bias=False)


def test_the_columns_of_a_turned_head_are_its_features():
    model = tiny.load("gpt_neox-parallel")
    signals = lag_signals.signals(model, bias=False)
    X, _ = passes.value(signals.of_document(tiny.ids(model, 12), 3))
    split = signals.factors(0, 1)
    q, k = signals.columns(X[0], 1, split)
    whole = maths.weighted(maths.xcov(q, k), split[1])
    np.testing.assert_allclose(lag_signals.middle(whole, 3), signals.scores(0, X[0], X[0], 3)[1])
