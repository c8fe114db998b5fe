"""Profiles and attention maps: those of the patterns, and what a trained bundle shows."""

import constructed
import numpy as np
import pytest
from outcomes import run, says, verdict

import minitx
from minitx import weights
from minitx.analysis import experiments
from minitx.analysis.contract import registry
from minitx.analysis.drawing import draw
from minitx.analysis.maths import profiles
from minitx.analysis.measures import heads
from minitx.analysis.running import passes
from minitx.analysis.texts import corpus


def test_the_bundle_has_position_heads(bundled):
    result = run("profiles", bundled, documents=20)
    near = np.isin(result["best_offset"], (-2, -1, 1, 2))
    assert (result["best_attention"][near] > 0.5).sum() >= 2
    assert result["sharp"] > 20 * result["sharp_null"]
    assert result["n_sharp"] == len(result["sharp_heads"]) >= 2
    assert result["steady"] > 0.5 > result["steady_null"]  # measured 1 against 0
    assert result["steady_directed"] > 0.5 > result["steady_directed_null"]  # measured 1 against 0
    assert result["kept"] > result["kept_null"] + 0.2  # measured 1 against 0.62
    assert result["few"] == 1 > result["few_null"] + 0.5  # measured 1 against 0
    words = "100% have all of their documents in one or two of the 6"
    assert words in says("profiles", result)
    # 4 of 7 keep theirs with one word repeated (chance: 3)
    assert verdict("profiles", result) == "partly"


def test_what_stays_on_shuffled_words_need_not_be_the_work_of_positions(bundled):
    result = run("profiles", bundled, documents=8)
    place = (1, 3, 11)  # L1H3 at +1
    on_text, shuffled, alone = (
        result[f"attention{name}"][place] for name in ("", "_shuffled", "_positions")
    )
    assert min(on_text, shuffled) > 0.4  # measured 0.52 and 0.51
    assert alone < 0.02  # measured 0.006
    assert result["offset_shuffled"] == 1
    assert result["directed_positions"].nonzero()[0].tolist() == [0, 0, 0, 0]  # the first layer
    assert result["offset_positions"] == pytest.approx(4 / result["n_directed"])
    no_words = {"embed": np.zeros_like}  # words at zero in the forward pass
    trace = minitx.run(bundled, "a " * 60, keep=[("pattern", 1)], edits=no_words)
    T = trace["pattern", 1].shape[-1]
    result = run("profiles", bundled, documents=8, tokens=T)
    own = profiles.profile(trace["pattern", 1][0])
    assert np.abs(result["profiles_positions"][1] - own).max() < 1e-5 * T


def test_documents_of_a_head_are_counted_in_one_or_two_clusters():
    frequencies = np.array([[1, 0, 0], [0.5, 0.5, 0], [0.01, 0.01, 0.98], [0.95, 0.05, 0]])
    directed = np.array([True, False, True, False])
    steady, of_directed, few = experiments.profiles._steady(frequencies, directed)
    assert (steady, of_directed, few) == (0.75, 1, 0.75)


def test_in_two_clusters_all_documents_would_be_in_few(bundled):
    two = run("profiles", bundled, documents=2, clusters=2)
    assert "few" not in two


def test_scores_before_the_mask_are_those_of_the_trace_and_of_what_it_hides(causal):
    """Up to a constant for each query; hidden ones come from q and k, the trace has -inf there."""
    trace = minitx.run(causal, "a " * 20, keep=["q", "k", "scores"])
    for layer in range(causal.config.n_layers):
        q, k, scores = (trace[name, layer][0] for name in ("q", "k", "scores"))
        own = heads.scores_before_mask(q, k, causal.config.attn_scale(layer))
        visible = np.tri(q.shape[1], dtype=bool)
        assert np.isfinite(own).all()
        assert np.isneginf(scores[:, ~visible]).all()
        difference = np.where(visible, own - np.where(visible, scores, 0), np.nan)
        spread = np.nanmax(difference, axis=-1) - np.nanmin(difference, axis=-1)
        assert spread.max() < 1e-5  # float32: measured 1e-6
        assert np.abs(own.mean(axis=-1)).max() < 1e-5


def test_scores_are_clustered_as_they_are_before_the_mask():
    """In tiny-gpt2 they go on behind the query, where the mask hides them all."""
    model = minitx.load(weights.find("tiny-gpt2"))
    result = run("profiles", model, documents=3, clustered="scores", clusters=2, reach=30)
    assert result["centres"].shape == (2, 61)
    assert result["cluster_names"].tolist() == ["highest at -1", "highest at 0"]
    of_attention = run("profiles", model, documents=3, reach=30)
    assert np.array_equal(result["profiles"], of_attention["profiles"])
    assert np.array_equal(result["directed"], of_attention["directed"])
    behind = result["offsets"] > 0
    assert not result["profiles"][..., behind].any()
    assert (np.abs(result["centres"][:, behind]) > 0.01).all()
    document = corpus.documents(model, "sample", 3).first()[0]
    trace = minitx.run(model, document, keep=["q", "k"])
    _, both = passes.value(heads.score_profiles_read(model, document, reach=30))
    q, k = trace["q", 2][0].astype(float), trace["k", 2][0].astype(float)
    scores = q @ k.swapaxes(1, 2) * model.config.attn_scale(2)
    centred = scores - scores.mean(axis=2, keepdims=True)
    direct = [np.trace(centred, t, axis1=1, axis2=2) for t in range(-30, 31)]
    assert np.abs(both[2] - np.transpose(direct)).max() < 0.01  # sums of 256 of about 10 in float32
    with draw.style():
        registry.get("profiles").draw(result)


def test_an_offset_that_has_lost_its_attention_is_not_kept():
    """Most attention may still be there by chance: a direction is more than that."""
    on_text, uniform = np.full((2, 1, 4, 21), 0.01)
    for head, place in enumerate((9, 11, 8, 12)):
        on_text[0, head, place] = 0.9
        uniform[0, head, place] = 0.0101
    result = {"best_offset": profiles.offsets()[on_text.argmax(axis=2)]}
    under = {"": on_text, "_shuffled": on_text, "_repeated": uniform, "_positions": uniform}
    for name, attention in under.items():
        result |= {f"attention{name}": attention, f"directed{name}": attention.max(axis=2) > 0.5}
    kept = experiments.profiles._kept_offsets(result, 0)
    assert (kept["offset_shuffled"], kept["offset_positions"]) == (1, 0)


def test_profiles_are_those_of_the_recorded_patterns(causal, outcomes):
    result = outcomes["profiles", "causal"]
    tokens = corpus.documents(causal, "sample", 3).first(3)
    pattern = minitx.run(causal, tokens, keep=["pattern"]).stack("pattern")  # [L N H T T]
    kept = profiles.profile(pattern).swapaxes(0, 1)
    assert np.abs(result["profiles"] - kept).max() < 1e-5  # stored as float32: measured 9e-7
    assert result["shares"].sum(axis=2) == pytest.approx(1)
    assert not result["attention"][..., 11:].any()  # nothing to the right


def test_attention_shows_the_heads_asked_for(bundled):
    result = run("attention", bundled, head="L1H2, L0H0", show=5)
    assert result["heads"].tolist() == ["L1H2", "L0H0"]
    tokens = corpus.documents(bundled, "sample", 1).first()
    trace = minitx.run(bundled, tokens, keep=["pattern"])
    assert np.array_equal(result["pattern"][0], trace["pattern", 1][0, 2, :5, :5])
    assert result["pieces"].tolist() == bundled.tokenizer.pieces(tokens[0, :5])


def test_what_special_tokens_get_of_attention_is_what_was_built_in():
    """Heads of layer 0 give the first token what their offsets leave; those of layer 1 look at all.

    Beside it the first word, and the last one beside the end.
    """
    given = (-1, 0.2), (1, 0.4), (-2, 0.6), (2, 0.8)
    model = constructed.strengths({(0, head): choice for head, choice in enumerate(given)})
    r = run("attention", model, tokens=128)
    assert r["specials"].tolist() == ["<s>", "</s>"]
    assert r["special_by_layer"][0] == pytest.approx(0.5, abs=0.02)  # measured 0.503
    assert r["special_by_layer_null"][0] < 0.02  # measured 0.004
    for end in "", "_null":
        assert r[f"special_by_layer{end}"][1] == pytest.approx(2 / 128)
    assert r["to_special"] == pytest.approx([0.25 + 0.5 / 128, 0.5 / 128], abs=0.01)
    assert "<s> gets 25" in says("attention", r)


def test_without_special_tokens_nothing_is_said_of_them():
    r = run("attention", minitx.load("tiny-gpt2"), tokens=32)
    assert "specials" not in r and "special_by_layer" not in r
    assert "beside it" not in says("attention", r)
