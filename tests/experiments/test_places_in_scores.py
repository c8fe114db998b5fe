"""Every way to know places, causally: where they enter the scores what they do is planted.

ALiBi's slopes alone, buckets that each hold one neighbour, turned keys that fit three tokens back:
dial must find the slope -1.00, and none of these where places tell nothing.
"""

import numpy as np
import planted_places
import pytest
import tiny
from distance import max_error

import minitx
from minitx import analysis, distances
from minitx.analysis import experiments  # noqa: F401  (fills the registry)
from minitx.analysis.contract import registry
from minitx.analysis.contract.nothing import Nothing
from minitx.analysis.measures import by_mechanism, mean_kernel, score_moves
from minitx.analysis.running import passes

SHORT = {"tokens": 64, "documents": 4}
PLANTED = {make.__name__: make() for make in (planted_places.alibi, planted_places.buckets)}
PLANTED["rotary"] = planted_places.rotary()


def run(name, model, **options):
    """Arrays of an experiment, and its verdict."""
    result = registry.get(name).run(model, **SHORT | options)
    arrays = {key: np.asarray(value) for key, value in result.items()}
    return arrays, registry.get(name).answer(arrays).verdict


# scores of a layer whose tokens stand elsewhere


@pytest.mark.parametrize(
    "variant", ["t5-encoder", "bloom-three", "llama-grouped", "modernbert-bare", "gptj-part"]
)
def test_scores_at_their_own_places_are_those_of_the_model(variant):
    model = tiny.load(variant)
    document = tiny.ids(model, 9)
    parts, streams = passes.value(score_moves.of_document_read(model, document))
    trace = minitx.run(model, document, keep=["pattern", "resid_pre"])
    for part in parts:
        pattern = score_moves.moved_pattern(model, part, "keys", 0)
        assert max_error(pattern, trace["pattern", part.layer][0]) < 1e-12
        assert max_error(streams[part.layer], trace["resid_pre", part.layer][0]) == 0
        both = score_moves.moved_pattern(model, part, "both", 5)
        assert max_error(both, pattern) < 1e-12
        further = score_moves.moved_pattern(model, part, "keys", 1)
        assert max_error(further, pattern) > 1e-3


@pytest.mark.parametrize("variant", ["bloom-three", "llama-grouped"])
def test_moved_keys_and_queries_moved_back_are_the_same(variant):
    model = tiny.load(variant)
    parts, _ = passes.value(score_moves.of_document_read(model, tiny.ids(model, 9)))
    keys = score_moves.moved_pattern(model, parts[0], "keys", 2)
    queries = score_moves.moved_pattern(model, parts[0], "queries", -2)
    assert max_error(keys, queries) < 1e-12


def test_a_bucket_of_several_distances_tells_them_not_apart():
    """T5's 32 buckets of both sides: distances to 7 have their own."""
    model = minitx.load("zoo/masked-buckets")
    lags = np.arange(-10, 11)
    assert lags[mean_kernel.distinct(model, lags)].tolist() == [*range(-7, 8)]
    assert mean_kernel.distinct(PLANTED["alibi"], lags).all()


# dial


@pytest.mark.parametrize("name", PLANTED)
def test_heads_that_places_alone_send_follow_to_the_token(name):
    r, verdict = run("dial", PLANTED[name])
    assert r["n_cells"] >= 12
    assert r["n_exact"] == r["n_cells"] == r["n_exact_named"] == r["n_cells_named"]
    assert r["slope"] == pytest.approx(-1) and r["slope_named"] == pytest.approx(-1)
    assert verdict == "yes"
    assert r["n_orders_follow"] == 0 and r["n_orders"] == 8
    assert r["rise_null"] == pytest.approx(0, abs=1e-4)


def test_the_dial_counts_heads_of_alibi_whose_slope_is_steep_enough():
    """1/4 and 1/16 of four: the others change less than a tenth of a nat within ten tokens."""
    r, _ = run("dial", PLANTED["alibi"], losses=0)
    assert r["directed"].tolist() == [[True, True, False, False]] * 3
    assert (r["kernel_lag"] == 0).all()


@pytest.mark.parametrize("move, slope", [("queries", 1), ("both", 0)])
def test_queries_follow_the_other_way_and_both_nothing(move, slope):
    r, _ = run("dial", PLANTED["buckets"], move=move, losses=0)
    assert r["slope"] == pytest.approx(slope)
    assert r["n_exact"] == r["n_cells"]


def test_heads_whose_turned_keys_say_nothing_do_not_follow():
    """Constant queries and keys of length 0: attention is uniform, and no head has a direction."""
    model = planted_places.with_layers(minitx.load("zoo/causal-rotary"), planted_places.constant)
    r, verdict = run("dial", model)
    assert r["n_cells"] == r["n_named"] == 0
    assert verdict == "undecided"


def test_heads_in_wide_buckets_are_said_and_left_out():
    model = PLANTED["buckets"]
    W_rel = np.zeros_like(model.weights.W_rel)
    W_rel[distances.bucket(model.config, np.array(9))] = 12
    r, _ = run("dial", planted_places.with_bias(model, W_rel), losses=0)
    assert r["n_shared"] == 12 and r["n_cells"] == 0
    assert "12 heads are left out" in registry.get("dial").says(r)


# nothing


def test_where_nothing_tells_places_nothing_can_be_moved():
    result = analysis.run("dial", planted_places.none())
    assert result.answer.verdict == "nothing" and result.answer.measure == "nothing to move"
    assert result.says == "Nothing to move: no mechanism tells this model places."
    assert "nothing to move" in result.svg
    assert result.numbers == {}


def test_an_entry_that_is_a_text_is_nothing_and_one_that_lacks_is_refused():
    entries = by_mechanism.entries(table=1, rotary=2, bias="nothing to turn: a bias", none="x: y")
    assert by_mechanism.of_model(PLANTED["rotary"], entries) == 2
    assert by_mechanism.of_model(minitx.load("tiny-gpt2"), entries) == 1
    with pytest.raises(Nothing, match="nothing to turn: a bias"):
        by_mechanism.of_model(PLANTED["alibi"], entries)
    del entries["alibi"]
    with pytest.raises(registry.NotApplicable, match="this model has alibi"):
        by_mechanism.of_model(PLANTED["alibi"], entries)
    with pytest.raises(registry.NotApplicable, match="a term to the scores"):
        by_mechanism.of_model(tiny.load("mpnet-bare"), entries)
