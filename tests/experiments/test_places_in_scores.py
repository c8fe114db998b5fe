"""Every way to know places, causally: where they enter the scores what they do is planted.

ALiBi's slopes alone, buckets that each hold one neighbour, turned keys that fit three tokens back:
dial must find the slope -1.00, and none of these where places tell nothing.
"""

from dataclasses import replace

import numpy as np
import outcomes
import planted_places
import pytest
import tiny
from distance import max_error
from outcomes import says, verdict

import minitx
from minitx import analysis, distances
from minitx.analysis.contract import registry, wording
from minitx.analysis.contract.nothing import Nothing
from minitx.analysis.experiments import cca
from minitx.analysis.measures import (
    by_mechanism,
    document_features,
    losses,
    mean_kernel,
    notch_arrays,
    position_edits,
    position_sizes,
    score_moves,
)
from minitx.analysis.running import passes

SHORT = {"tokens": 64, "documents": 4}
PLANTED = {make.__name__: make() for make in (planted_places.alibi, planted_places.buckets)}
PLANTED["rotary"] = planted_places.rotary()


def run(name, model, **options):
    """Arrays of an experiment, and its verdict."""
    r = outcomes.run(name, model, **SHORT | options)
    return r, outcomes.verdict(name, r)


IN_SCORES = "t5-encoder bloom-three llama-grouped modernbert-bare gptj-part"


@pytest.mark.parametrize("variant", [*IN_SCORES.split(), "deberta-keys", "deberta2-own"])
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


@pytest.mark.parametrize("name", ["buckets", "rotary"])
def test_heads_that_places_alone_send_follow_to_the_token(name):
    r, verdict = run("dial", PLANTED[name])
    assert r["n_cells"] >= 12
    assert r["n_exact"] == r["n_cells"] == r["n_exact_named"] == r["n_cells_named"]
    assert r["slope"] == pytest.approx(-1) and r["slope_named"] == pytest.approx(-1)
    assert verdict == "yes"
    assert r["n_orders_follow"] == 0 and r["n_orders"] == 8
    assert r["rise_null"] == pytest.approx(0, abs=1e-4)


def test_slopes_alone_send_the_steep_heads_of_alibi():
    """1/4 and 1/16 of four: the others change less than a tenth of a nat within ten tokens.

    They look at all near tokens, most at their own, so none has a direction.
    """
    r, verdict = run("dial", PLANTED["alibi"])
    assert r["named"].tolist() == [[True, True, False, False]] * 3
    assert r["n_exact_named"] == r["n_cells_named"] == 3 * 2 * 4
    assert r["slope_named"] == pytest.approx(-1) and r["slope_named_null"] < 0.9
    assert (r["n_cells"], verdict) == (0, "undecided") and (r["kernel_lag"] == 0).all()


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
    r, _ = run("dial", tiny.with_weights(model, W_rel=W_rel), losses=0)
    assert r["n_shared"] == 12 and r["n_cells"] == 0
    assert "12 heads are left out" in says("dial", r)


def forward(model, document, condition):
    """The final features under a condition."""
    return minitx.forward(model, document, hook=losses.tap(model, condition))


def factor(model, size):
    """A model whose places enter by as much as this size says."""
    if model.config.rotary:
        scaled = (tuple(size * omega for omega in x.frequencies) for x in model.config.rotary)
        turns = tuple(x._replace(frequencies=y) for x, y in zip(model.config.rotary, scaled))
        return replace(model, config=replace(model.config, rotary=turns))
    return tiny.with_weights(model, W_rel=size * model.weights.W_rel)


@pytest.mark.parametrize("name", ["causal-rotary", "masked-rotary", "masked-buckets"])
@pytest.mark.parametrize("size", [0.0, 0.5, 4.0])
def test_a_scaled_mechanism_is_the_model_with_that_mechanism(name, size):
    model = minitx.load(f"zoo/{name}")
    document = tiny.ids(model, 20)
    condition = position_sizes.scaled_in_scores(model.config)(np.arange(20), size)
    wanted = minitx.forward(factor(model, size), document)
    assert max_error(forward(model, document, condition), wanted) < 1e-4  # float32: 1e-5


def test_terms_of_distances_are_scaled_and_shuffled_as_a_bias_is():
    """DeBERTa's: of size 0 nothing tells places, and another order is that of the rows."""
    model = tiny.load("deberta2-masked")
    document, order = tiny.ids(model, 9), np.random.default_rng(0).permutation(9)

    def final(places, size):
        return forward(model, document, position_sizes.scaled_in_scores(model.config)(places, size))

    whole = minitx.forward(model, document)
    assert max_error(final(np.arange(9), 1.0), whole) == 0
    assert max_error(final(order, 1.0), whole) > 1e-3
    nothing = position_edits.condition(position_edits.off(model.config))
    off = forward(model, document[order], nothing)
    assert max_error(final(order, 0.0)[:, order], off) < 1e-12


@pytest.mark.parametrize("name", ["causal-rotary", "causal-alibi"])
def test_places_in_another_order_are_those_that_a_caller_gives(name):
    model = minitx.load(f"zoo/{name}")
    document, order = tiny.ids(model, 20), np.random.default_rng(0).permutation(20)
    condition = position_sizes.scaled_in_scores(model.config)(order, 1.0)
    wanted = minitx.forward(model, document, positions=order)
    assert max_error(forward(model, document, condition), wanted) < 1e-5


@pytest.mark.parametrize("name", ["zoo/causal-rotary", "zoo/masked-buckets"])
def test_positions_of_half_and_of_double_the_size_cost_much_where_they_were_learned(name):
    r, verdict = run("scale-positions", minitx.load(name), documents=6)
    assert r["best_size"] == 1 and r["rise"] > 0.1 > r["rise_null"]
    assert verdict in ("yes", "partly")


def test_where_places_do_nothing_their_size_does_nothing():
    model = planted_places.with_layers(minitx.load("zoo/causal-rotary"), planted_places.constant)
    r, verdict = run("scale-positions", model)
    assert np.abs(r["change"]).max() < 1e-5
    assert verdict == "undecided"


def test_heads_of_one_octave_of_pairs_lose_their_direction_without_it():
    r, verdict = run("notch", planted_places.rotary(pairs=slice(0, 1)))
    assert r["n_need"] == r["n_lost"] == r["n_directed"] == 12
    assert r["by_band_lost"].tolist() == [0, 0, 0, 12]
    assert r["bands"].tolist()[-2:] == ["6 to 13", "all waves"]
    assert r["kept_without"][:, 0].min() > 0.99 and r["kept_without"][:, 3].max() < 0.5
    assert r["n_lost_null"] == 0 and verdict == "yes"


def test_turns_that_lose_no_variance_are_the_turns():
    """And those that lose all leave what is common to all places: no score tells a lag."""
    model = PLANTED["rotary"]
    parts, _ = score_moves.of_document(model, tiny.ids(model, 12))
    rotary, places = model.config.rotary[0], np.arange(12)
    same = notch_arrays._turn_less(parts[0].k, places, rotary, left=1)
    assert max_error(same, score_moves.turn(parts[0].k, places, rotary)) < 1e-6
    common = notch_arrays._turn_less(parts[0].k, places, rotary, left=0)
    assert max_error(common[:, 1:], common[:, :-1]) < 1e-6
    key = np.repeat(parts[0].k[:, :1], 12, axis=1)  # one key at all places
    turned = score_moves.turn(key, places, rotary).mean(axis=1)
    less = notch_arrays._turn_less(key, places, rotary, left=0.25).mean(axis=1)
    assert max_error(less, turned) < 1e-6 and abs(turned).max() > 0.1


@pytest.mark.parametrize("name", PLANTED)
def test_what_no_word_changes_is_all_of_a_peak_that_places_make(name):
    r, _ = run("sources", PLANTED[name])
    np.testing.assert_allclose(r["position_share"], 1, atol=1e-3)
    np.testing.assert_allclose(r["position_variance"], 1, atol=1e-3)
    assert (r["position_share_null"] < 0.5).all()
    assert r["error"] < 1e-5
    waves = r["waves"].sum(axis=1)
    np.testing.assert_allclose(waves, float(name == "rotary"), atol=1e-3)


@pytest.mark.parametrize("name", ["causal-rotary", "masked-rotary", "masked-buckets"])
def test_what_words_change_and_what_not_sum_to_the_scores(name):
    r, _ = run("sources", minitx.load(f"zoo/{name}"))
    assert r["error"] < 1e-4  # float32: measured 1e-6
    whole = r["peak_of_terms"].sum(axis=(0, 1))
    np.testing.assert_allclose(whole[whole != 0], 1, atol=1e-5)
    np.testing.assert_allclose(r["variance_of_terms"].sum(axis=(0, 1)), 1, atol=1e-4)


def test_words_make_the_peak_where_turns_hardly_turn():
    """Pairs a thousand times as slow: the lag is in no score, and positions make none of a peak."""
    r, verdict = run("sources", factor(minitx.load("zoo/causal-rotary"), 1e-3))
    assert abs(r["position_share"]).max() < 0.1
    assert verdict not in ("yes", "partly")


def test_a_direction_from_places_stays_without_words_and_goes_without_places():
    r, verdict = run("conditions", PLANTED["buckets"])
    assert r["conditions"].tolist()[3:] == ["words averaged out", "positions off"]
    assert r["n_kept"].tolist() == [12, 12, 12, 12, 0] and r["n_directed"] == 12
    assert verdict == "yes"
    assert max_error(r["attention_of_heads"][1:4], r["attention_of_heads"][:1]) < 1e-5


def test_the_angles_of_turned_pairs_are_those_that_were_planted():
    """Keys that are three tokens ahead: each pair's angle is its frequency times the offset -3."""
    model = PLANTED["rotary"]
    r, verdict = run("rotation", model)
    omega = np.array(model.config.rotary[0].frequencies)
    planted = np.exp(-3j * omega)
    assert abs(np.exp(1j * r["angle_of_pairs"]) - planted).max() < 1e-4
    assert (r["offset_of_heads"] == -3).all() and r["n_directed"] == 12
    assert r["right"] == 1 and r["right_dealt"] < 0.5
    assert r["right_shuffled"] == 1 and verdict == "undecided"  # all heads are alike
    assert "12 of 12 heads with a direction" in says("rotation", r)


def test_the_angles_of_a_trained_model_are_more_than_dealt_ones():
    r, _ = run("rotation", minitx.load("zoo/masked-rotary"))
    assert r["right"] > r["right_dealt"] + 0.3  # measured 0.9 and 0.2
    assert r["curve_of_heads"].shape == (3, 4, 21)


def test_without_a_table_the_stream_is_compared_with_sinusoids():
    r, verdict = run("cca", minitx.load("zoo/masked-rotary"), documents=44, shuffles=20)
    assert (r["n_kept"], verdict) == (0, "no")
    answer = registry.get("cca").answer(r)
    assert "follows sinusoids of the position" in answer.measure
    assert "components of sinusoids of the position" in says("cca", r)


def test_a_stream_that_holds_sinusoids_follows_them():
    """A result in which two layers of three follow the place, where random weights do not."""
    r = {"mean": [0.0, 0.8, 0.7, 0.02], "mean_null": [0.02] * 4, "mean_random": [0.0] * 4}
    r = {name: np.array(x) for name, x in r.items()}
    r |= cca._follows(r) | {"has_table": np.array(False)}
    r |= {"n_rows": np.array(100), "n_features": np.array(4), "documents": np.array(8)}
    assert (r["n_kept"], r["n_kept_null"]) == (2, 0)
    assert verdict("cca", r) == "partly"
    random = r | {"mean_random": r["mean"]}
    random |= cca._follows(random)
    assert (random["n_kept"], random["n_kept_null"]) == (0, 2)
    assert verdict("cca", random) == "no"


def test_mechanisms_have_their_causal_columns_side_by_side():
    small = {"others": "zoo/causal-none,zoo/causal-alibi", "documents": 8, "tokens": 48, "every": 8}
    r, _ = run("mechanisms", minitx.load("zoo/masked-rotary"), **small)
    assert r["moved"].tolist()[0] == "masked-rotary" and "causal-none" not in r["moved"]
    assert r["notched"].tolist() == ["masked-rotary"]
    assert r["no_move"][1].startswith("nothing to move")
    assert r["no_notch"][2] == "nothing to take out: a bias by distance has no waves"
    assert r["by_kernel"].tolist() == ["masked-rotary", "causal-alibi"]
    assert r["follow"][0] > r["follow_null"][0] + 0.1 and r["slope"][0] < -0.8
    assert (r["n_orders_follow"] == 0).all() and (r["n_orders"] == 8).all()
    said = says("mechanisms", r)
    assert "Keys moved: slope -" in said and "Keys moved: nothing to move: no mechanism" in said


NOTHING = {
    "dial": "nothing to move",
    "notch": "nothing to take out",
    "sources": "nothing to divide",
    "rotation": "nothing to turn",
    "conditions": "nothing to take away",
    "scale-positions": "nothing to scale",
    "inject-positions": "nothing to inject",
}


@pytest.mark.parametrize("name", NOTHING)
def test_where_nothing_tells_places_the_answer_is_that_there_is_nothing(name):
    _, verdict = run(name, planted_places.none())
    assert verdict == "nothing"
    with pytest.raises(Nothing, match=NOTHING[name]):
        registry.get(name).run.__wrapped__(planted_places.none())


@pytest.mark.parametrize("name", ["zoo/causal-rotary", "zoo/causal-alibi", "zoo/masked-buckets"])
def test_places_that_enter_every_layer_are_not_injected(name):
    result = analysis.run("inject-positions", name)
    assert result.answer.verdict == "nothing"
    assert result.answer.value.startswith("positions enter every layer already")


def test_where_nothing_tells_places_nothing_can_be_moved():
    result = analysis.run("dial", planted_places.none())
    assert result.answer.measure == "nothing to move"
    assert result.says == "There is nothing to move: no mechanism tells this model positions."
    assert wording.sentence(result.answer) == result.says
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


@pytest.mark.parametrize(
    "name", ["causal-rotary", "masked-rotary", "causal-alibi", "masked-buckets"]
)
@pytest.mark.parametrize(
    "experiment", ["dial", "sources", "notch", "conditions", "cca", "rotation", "scale-positions"]
)
def test_random_weights_know_no_places(experiment, name):
    model = document_features.untrained(minitx.load(f"zoo/{name}"), np.random.default_rng(0))
    options = {"documents": 20} if experiment == "cca" else {}
    answer = analysis.run(experiment, model, **SHORT | options).answer
    assert answer.verdict not in ("yes", "partly"), answer
