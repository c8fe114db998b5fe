"""What the later decoders bring: caps, norms of what is written; by hand.

The reference library's numbers are compared in test_parity.py. Distances are of float64 runs of
values up to about 10: measured at most 2e-14, bound 1e-12.
"""

import numpy as np
import pytest
import tiny

import minitx
from minitx import circuits
from minitx.loading.families import from_hf

CLOSE = dict(rtol=0, atol=1e-12)
WRITTEN = ["olmo2-shared", "gemma2-capped", "gemma3-window"]  # with norms of what is written


# --- layouts


def test_falcons_heads_share_keys_as_its_architecture_says():
    shared = {"two-norms": 2, "one-norm": 1, "single-key": 1, "own-keys": 4, "sequential": 1}
    for name, n in shared.items():
        assert tiny.load(f"falcon-{name}").config.n_kv == n, name
    same, two = tiny.load("falcon-one-norm").layers[0], tiny.load("falcon-two-norms").layers[0]
    assert same.ln1_w is same.ln2_w and (two.ln1_w != two.ln2_w).any()


def test_the_first_token_reads_the_third_row_of_opts_table():
    model = tiny.load("opt-before")
    t = minitx.run(model, tiny.ids(model, 5))
    table = model.weights.W_pos
    assert (t["pos_embed"][0] == table[2:7]).all() and model.config.n_ctx == len(table) - 2
    after = tiny.load("opt-after")
    assert after.weights.ln_final_w is None and not after.config.pre_norm
    with pytest.raises(ValueError, match="17 tokens; this model reads at most 16"):
        minitx.forward(model, tiny.ids(model, 17))


# --- norms


@pytest.mark.parametrize("variant", WRITTEN)
def test_what_is_written_is_normed(variant):
    """By the numbers of that norm; and what is edited there is what the stream gets."""
    model = tiny.load(variant)
    ids, w = tiny.ids(model, 7), model.layers[0]
    t = minitx.run(model, ids)
    z = t["z", 0].swapaxes(1, 2).reshape(1, 7, -1)
    raw = z @ w.W_O
    scale = (np.mean(raw**2, axis=-1) + model.config.eps) ** -0.5
    np.testing.assert_allclose(t["attn_out_scale", 0], scale, rtol=1e-12)
    np.testing.assert_allclose(t["attn_out", 0], raw * scale[..., None] * w.attn_out_w, **CLOSE)
    np.testing.assert_allclose(t["resid_mid", 0], t["resid_pre", 0] + t["attn_out", 0], **CLOSE)
    np.testing.assert_allclose(t["resid_post", 0], t["resid_mid", 0] + t["mlp_out", 0], **CLOSE)
    twice = minitx.run(model, ids, "attn_out", {("attn_out_scale", 0): lambda x: 2 * x})
    np.testing.assert_allclose(twice["attn_out", 0], 2 * t["attn_out", 0], **CLOSE)


def test_all_heads_are_normed_together_in_olmo2():
    """The mean square over all heads is 1 before the gain; over each by itself it is not."""
    model = tiny.load("olmo2-shared")
    assert model.layers[0].ln1_w is None and model.layers[0].ln_q_w is None
    t = minitx.run(model, tiny.ids(model, 7))
    normed = t["ln_all_q", 0] / model.layers[0].ln_all_q_w
    square = np.mean(normed**2, axis=-1)
    exact = 1 - model.config.eps * t["ln_all_q_scale", 0] ** 2
    np.testing.assert_allclose(square, exact, rtol=1e-12)
    by_head = np.mean(normed.reshape(1, 7, 4, 2) ** 2, axis=-1)
    assert np.ptp(by_head, axis=-1).min() > 0.1
    heads = t["ln_all_q", 0].reshape(1, 7, 4, 2).swapaxes(1, 2)
    assert (t["q_in", 0] == heads).all()


# --- caps and scales


def test_scores_and_logits_are_capped():
    model = tiny.load("gemma2-capped")
    cfg, ids = model.config, tiny.ids(model, 7)
    assert (cfg.score_cap, cfg.logit_cap) == (3.0, 4.0)
    t = minitx.run(model, ids)
    k = np.repeat(t["k", 0], 2, axis=1)
    raw = t["q", 0] @ k.swapaxes(-1, -2) * 5**-0.5  # query_pre_attn_scalar; a head has 6 features
    seen = np.isfinite(t["scores", 0])
    assert abs(raw[seen]).max() > 3 and not seen.all()
    np.testing.assert_allclose(t["scores", 0][seen], 3 * np.tanh(raw[seen] / 3), **CLOSE)
    y = t["ln_final"] @ model.weights.W_U
    np.testing.assert_allclose(t["logits"], 4 * np.tanh(y / 4), **CLOSE)
    assert abs(t["logits"]).max() < 4 < abs(y).max()
    assert not tiny.load("gemma2-sequence").config.logit_cap  # classes are not capped
    uncapped = tiny.load("gemma2-uncapped").config
    assert (uncapped.score_cap, uncapped.logit_cap) == (0.0, 0.0)


def test_layers_of_gemma3_differ_in_window_and_frequencies():
    cfg = tiny.load("gemma3-old").config
    assert cfg.windows == (3, None, 3)  # every second layer sees all
    near, far, again = (turn.frequencies[1] ** -3 for turn in cfg.rotary)
    np.testing.assert_allclose([near, far, again], [50, 500 * 8**3, 50], rtol=1e-12)
    assert tiny.load("gemma2-old").config.windows == (3, None, 3)
    words = {"layer_types": None, "sliding_window_pattern": None, "_sliding_window_pattern": 6}
    six = tiny.config("gemma3-window", num_hidden_layers=7, **words)
    del six["sliding_window_pattern"]
    assert from_hf(six).windows == (3,) * 5 + (None, 3)


# --- circuits


@pytest.mark.parametrize("variant", WRITTEN)
def test_heads_behind_a_norm_are_no_summands(variant):
    """Edges between components are refused."""
    model = tiny.load(variant)
    ids = tiny.ids(model, 6)
    with pytest.raises(ValueError, match="are normed before the sum .*wanted a model without"):
        circuits.path_patch(model, ids, ids[::-1], (1, 2), (0, 0))
