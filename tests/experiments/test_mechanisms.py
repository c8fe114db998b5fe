"""Mechanisms side by side: planted tables and masks come back, and what makes no sense is said."""

from dataclasses import replace

import numpy as np
import pytest
import tiny

import minitx
from minitx import analysis, positions, weights
from minitx.analysis import commands, experiments
from minitx.analysis.experiments import _mechanisms_row
from minitx.analysis.measures import (
    context_extension,
    losses,
    other_models,
    place_effects,
    position_edits,
)
from minitx.analysis.running.stream import UNSAVED
from minitx.analysis.texts import corpus

MECHANISMS = {
    "gpt2-causal": ["learned"],
    "mpnet-bare": ["learned", "buckets"],
    "t5-encoder": ["buckets"],
    "bloom-three": ["alibi"],
    "llama-grouped": ["rotary"],
    "gpt_neox-nowhere": ["none"],
}


def with_table(model, table):
    """A model whose tokens read these rows [P D] of the position table."""
    offset = model.config.offset
    rows = np.concatenate([model.weights.W_pos[:offset], table]).astype(np.float32)
    return tiny.with_weights(model, W_pos=rows)


def waves(n, D):
    """Sines and cosines side by side [n D], as in the first transformer."""
    angle = np.arange(n)[:, None] * 10000 ** (-np.arange(0, D, 2) / D)
    return 0.1 * np.stack([np.sin(angle), np.cos(angle)], axis=-1).reshape(n, D)


@pytest.mark.parametrize("variant", MECHANISMS)
def test_what_tells_places_is_named(variant):
    assert context_extension.mechanisms(tiny.load(variant)) == MECHANISMS[variant]


@pytest.mark.parametrize("name", ["tiny-gpt2", "tiny-roberta"])
def test_a_planted_table_is_known_and_goes_on(name):
    model = minitx.load(name)
    n, D = model.config.n_ctx, model.config.d_model
    of_zeros = with_table(model, np.zeros((n, D)))
    assert context_extension.mechanisms(of_zeros) == ["none"]
    halves = 3 * positions.sinusoids(2 * n, D)
    for table in (waves(2 * n, D), halves):
        rounded = table[:n].astype(np.float16)
        planted = with_table(model, rounded)
        assert context_extension.mechanisms(planted) == ["sinusoidal"]
        longer = context_extension.lengthened(planted, 2 * n)
        rows = longer.weights.W_pos[longer.config.offset :]
        assert len(rows) == longer.config.n_ctx == 2 * n
        size = abs(table).max()
        np.testing.assert_allclose(rows, table, atol=1e-3 * size)  # float16: 5e-4
    again = context_extension.lengthened(model, 2 * n)
    rows = again.weights.W_pos[again.config.offset :]
    assert (rows[:n] == rows[n:]).all() and not (rows[0] == rows[1]).any()
    tokens = np.tile(np.arange(5, 25), n // 20)
    np.testing.assert_array_equal(minitx.forward(again, tokens), minitx.forward(model, tokens))


@pytest.mark.parametrize("variant", ["bloom-three", "llama-grouped", "gpt_neox-nowhere"])
def test_longer_inputs_of_a_causal_model_begin_as_shorter_ones(variant):
    model = tiny.load(variant)
    n = min(model.config.n_ctx, 64)  # BLOOM's is 2048
    model = replace(model, config=replace(model.config, n_ctx=n))
    longer = context_extension.lengthened(model, 3 * n)
    assert longer.config.n_ctx == 3 * n and context_extension.lengthened(model, n) is model
    tokens = tiny.ids(model, 3 * n)
    whole = minitx.forward(longer, tokens)
    np.testing.assert_allclose(whole[:, :n], minitx.forward(model, tokens[:n]), atol=1e-5)


@pytest.mark.parametrize("name", ["tiny-gpt2", "tiny-roberta"])
def test_losses_in_windows_are_those_of_each_window_by_itself(name):
    model = minitx.load(name)
    specials = sum(map(len, corpus.specials(model)))
    size, T = 16, 32 + specials
    document = corpus.documents(model, "sample", 1, T).first(1)[0]
    before, after = losses.ends(model, document)
    assert before + after == specials
    cost = _mechanisms_row.in_windows(model, document, size + specials, every=6)
    assert len(cost) == 2 * size
    second = document[before + size : T - after]
    window = np.concatenate([document[:before], second, document[T - after :]])
    if model.config.causal:
        asked = np.flatnonzero(np.isfinite(cost[size : 2 * size]))
        np.testing.assert_array_equal(asked, np.arange(1, size))  # not the first of a window
        by_itself = losses.causal(model, window)
    else:
        asked = np.flatnonzero(np.isfinite(cost[: 2 * size]))
        assert (np.diff(asked) == 6).all() and asked[0] == 0  # one in six, across windows
        by_itself = losses.gaps(model, window, every=6, start=-size % 6)
    own = cost[size : 2 * size]
    np.testing.assert_allclose(own[np.isfinite(own)], by_itself, atol=1e-5)
    total, n = _mechanisms_row.of_document(model, document, [size + specials, T], 6)
    both = np.isfinite(cost) & np.isfinite(_mechanisms_row.in_windows(model, document, T, 6))
    assert n == both.sum() and total[0] == pytest.approx(cost[both].sum())


def test_a_condition_switches_places_off():
    model = minitx.load("tiny-gpt2")
    tokens = np.arange(5, 25)
    off = position_edits.condition(position_edits.off(model.config))
    none = with_table(model, np.zeros((model.config.n_ctx, model.config.d_model)))
    by_condition = losses.causal(model, tokens, condition=off)
    np.testing.assert_allclose(by_condition, losses.causal(none, tokens), atol=1e-6)


def test_of_the_pairs_one_quarter_is_not_turned():
    angle = np.ones((1, 2, 6))
    turned = [place_effects._still(angle, number)[0, 0] for number in range(4)]
    still = [np.flatnonzero(x == 0).tolist() for x in turned]
    assert still == [[0, 1], [2, 3], [4], [5]]
    assert (np.sum(turned, axis=0) == 3).all() and (angle == 1).all()


def test_without_places_the_mask_of_a_causal_model_tells_them_and_nothing_in_the_other():
    """The stream of tiny-gpt2 and of tiny-roberta whose tables are 0."""
    r2 = {}
    for name in ("tiny-gpt2", "tiny-roberta"):
        model = minitx.load(name)
        n, D = model.config.n_ctx, model.config.d_model
        none = with_table(model, np.zeros((n, D)))
        result = analysis.run("mechanisms", none, documents=40, tokens=64, every=8)
        r = result.arrays
        assert r["mechanism"] == ["none"] and "nothing can be switched off" in r["no_off"][0]
        assert "nothing can be switched off" in result.says
        assert "off" not in r and "off" not in result.numbers
        r2[name] = r["r2_interval"][0, 0] - r["r2_null"][0], r["r2"][0]
    assert r2["tiny-gpt2"][0] > 0
    assert r2["tiny-roberta"][1] < 0.02


@pytest.mark.skipif("zoo/causal-rotary" not in weights.zoo(), reason="is not in this copy")
def test_the_zoo_side_by_side():
    names = "zoo/causal-alibi,zoo/causal-rotary"
    zoo = analysis.run("mechanisms", "zoo/causal-learned", others=names, documents=20)
    r = zoo.arrays
    assert r["models"].tolist() == ["causal-learned", "causal-alibi", "causal-rotary"]
    assert r["mechanism"].tolist() == ["learned", "alibi", "rotary"]
    assert (r["kept"] >= experiments.mechanisms.GOES_ON).tolist() == [False, True, False]
    learned, alibi, rotary = r["longest"]  # 0.85 -0.04 0.21
    assert learned > 0.5 and 0.1 < rotary < 0.4 and alibi < 0
    assert (r["off_interval"][:, 0] > 0).all() and (r["off"] > r["off_null"]).all()
    assert (r["sharp_offset"] == -1).all() and (r["sharp"] > 3 * r["sharp_null"]).all()
    assert (r["reach"] < r["reach_null"]).all()
    assert zoo.numbers["without_fastest"].value < zoo.numbers["without_fastest"].null  # 0.11 0.36
    assert zoo.answer.verdict == "partly" and zoo.answer.value.startswith("1 of 3")
    assert "rows of the table again" in zoo.says


def test_the_models_of_a_list_are_all_but_the_model_itself():
    model = minitx.load("zoo/causal-alibi")
    others = [other_models.name(x) for x in other_models.others("zoo", model)]
    assert sorted([*others, "causal-alibi"]) == [x.removeprefix("zoo/") for x in weights.zoo()]
    with pytest.raises(FileNotFoundError, match="zoo/causal-alibi"):
        other_models.others("zoo/causal-aliby", model)


def test_several_models_on_the_command_line(tmp_path, capsys):
    given = ["run", "mechanisms", "tiny-gpt2", "tiny-roberta", "--out", str(tmp_path)]
    given += ["--documents", "6", "--tokens", "16", "--every", "4"]
    assert commands.run_command([*given, "--others", "tiny-bert"]) == 2
    assert "name models in one way" in capsys.readouterr().err
    assert commands.run_command(given) == 0
    assert "tiny-roberta (learned; reads both sides)" in capsys.readouterr().out


def test_a_short_document_has_no_attention_beyond_its_ends(bundled):
    """Fewer tokens than the offsets that are looked at, as a history of short inputs has."""
    documents = corpus.documents(bundled, "sample", 4, 8)
    row = place_effects.attention(bundled, documents, UNSAVED, "")
    assert 0 < abs(row["sharp_offset"]) < 8 and 0.5 < row["sharp"] <= 1
