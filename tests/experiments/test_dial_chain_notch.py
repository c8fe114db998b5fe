"""Positions moved, heads turned, bands taken out: on models whose mechanism was built in.

`waves` reads positions in both layers, `copies` copied words in the second, `neither` words alone.
"""

from dataclasses import replace

import constructed
import directed
import numpy as np
import outcomes
import pytest
import tiny
from distance import max_error
from outcomes import says, verdict

import minitx
from minitx.analysis.experiments import dial
from minitx.analysis.maths import bands, moves, profiles, spectra
from minitx.analysis.measures import later_layers, notch_arrays, position_parts
from minitx.analysis.texts import corpus

SHORT = {"tokens": 64, "documents": 6}
MAKE = {
    make.__name__: make()
    for make in (constructed.waves, constructed.copies, constructed.neither, constructed.strengths)
}


def run(name, model, **options):
    """Arrays of an experiment on a constructed model."""
    return outcomes.run(name, MAKE[model], **SHORT | options)


# dial


@pytest.fixture(scope="module")
def dials():
    return {model: run("dial", model) for model in MAKE}


@pytest.mark.parametrize("name", ["profiles", "conditions", "dial", "lags", "notch", "chain"])
def test_every_experiment_counts_the_same_heads_by_the_attention_to_their_offset(name):
    """0.15, 0.3, 0.6 and 0.95; one with 0.02 and one with 0.05 have no direction."""
    r = run(name, "strengths")
    assert (r["n_directed"], r["n_by_strength"].tolist()) == (4, [1, 1, 2])
    assert r["directed"].sum() == 4
    said = says(name, r)
    if name == "dial":
        assert "0.1 to 0.25: 8 of 8 exact" in said and "0.5 or more: 16 of 16 exact" in said
    else:
        counts = "0.1 to 0.25: 1; 0.25 to 0.5: 1; 0.5 or more: 2."
        assert f" Heads by the attention to their offset: {counts}" in said


def test_cells_are_counted_by_the_attention_of_their_head(dials):
    r = dials["strengths"]
    assert r["strength_n_cells"].tolist() == [8, 8, 16]
    assert r["strength_n_exact"].tolist() == [8, 8, 16]
    assert (r["strength_n_exact_null"] < 0.7 * r["strength_n_cells"]).all()
    assert dials["waves"]["strength_n_cells"].tolist() == [0, 0, 56]
    assert dials["copies"]["strength_n_exact"].tolist() == [0, 0, 16]  # of 24


def test_heads_that_read_waves_follow_their_positions(dials):
    """Layer 0 exactly, layer 1 by what stands at a place in other documents: both to the token."""
    r = dials["waves"]
    assert r["n_exact"] == r["n_cells"] == 7 * 8
    assert r["layer_slope"] == pytest.approx([-1, -1])
    assert r["mean_weight"] > 0.99  # measured 0.998; what came round the end is left out
    assert r["mean_weight_null"] < 0.2  # one of eight moves fits
    assert r["n_exact_null"] < 0.3 * r["n_cells"]
    assert r["slope_null"] < 0.5
    assert verdict("dial", r) == "yes"


def test_a_head_that_reads_copied_words_stays_where_it_looks(dials):
    r = dials["copies"]
    assert r["layer_n_exact"].tolist() == [16, 0]
    assert r["layer_n_cells"].tolist() == [16, 8]
    assert r["layer_slope"] == pytest.approx([-1, 0])
    assert (r["attended"][1, :, 0] == 1).all()
    assert verdict("dial", r) == "partly"


def test_without_a_direction_there_is_nothing_to_follow(dials):
    r = dials["neither"]
    assert r["n_directed"] == r["n_cells"] == r["n_exact"] == 0
    assert verdict("dial", r) == "undecided"


@pytest.mark.parametrize("move, slope", [("queries", 1), ("both", 0)])
def test_queries_turn_the_other_way_and_both_together_nothing(move, slope):
    r = run("dial", "waves", move=move, losses=0)
    assert r["layer_slope"] == pytest.approx([slope, slope])
    assert r["n_exact"] == r["n_cells"] == 7 * 8
    assert r["mean_weight"] > 0.99


def test_a_moved_layer_0_is_the_model_with_other_positions(bundled):
    """Keys and queries of layer 0 moved together: as if the document stood elsewhere."""
    documents = corpus.documents(bundled, "sample", 1, 64)
    places = documents.ordinary()
    document = documents.first()[0]
    passed = position_parts.of_document(bundled, document)
    reading = next(position_parts.readings(bundled, passed, passed.inputs, places, [0]))
    moved = reading.put(moves.rolled(reading.positions, 3))
    positions = np.arange(64)
    positions[places] = moves.rolled(positions[places], 3)
    trace = minitx.run(bundled, document, keep=[("resid_pre", 0)], positions=positions)
    assert max_error(moved, trace["resid_pre", 0][0]) < 1e-5  # measured 1e-6, float32


@pytest.mark.parametrize("variant", [*tiny.ONE_EACH, "gpt2-inverse-layer"])
def test_a_reading_is_what_the_layer_reads(variant):
    """With its own positions put back, and attention from it as the model computes it."""
    model = tiny.load(variant)
    document = tiny.ids(model, 9)
    passed = position_parts.of_document(model, document)
    others = np.random.default_rng(0).standard_normal(passed.inputs.shape)
    trace = minitx.run(model, document, keep=["pattern"])
    for r in position_parts.readings(model, passed, others, slice(1, 8)):
        x = r.put(r.positions)
        assert max_error(x, r.x) < 1e-12  # the same sums in another order: measured 1e-15
        q, k = position_parts.queries(model, r.layer, x), position_parts.keys(model, r.layer, x)
        pattern = position_parts.pattern(model, r.layer, q, k)
        assert max_error(pattern, trace["pattern", r.layer][0]) < 1e-12


@pytest.mark.parametrize("variant", [*tiny.ONE_EACH, "gpt2-inverse-layer"])
def test_a_pass_from_a_layer_on_is_the_rest_of_the_whole_pass(variant):
    model = tiny.load(variant)
    document = tiny.ids(model, 9)
    streams = position_parts.of_document(model, document).streams
    final = minitx.forward(model, document)
    for layer, x in enumerate(streams):
        error = max_error(later_layers.onward(model, x[None], layer), final)
        assert error < 1e-12  # another order in memory: measured 4e-16


def test_the_loss_of_moved_keys_is_that_of_the_edited_model(bundled):
    """The rise in layer 2 at shift 1, from a run of the whole model with its keys replaced."""
    options = {"tokens": 64, "documents": 3, "layer": 2, "reach": 1, "losses": 1}
    r = dial.dial(bundled, **options)
    documents = corpus.documents(bundled, "sample", 3, 64)
    first, *rest = documents
    places = documents.ordinary()
    others = np.mean([position_parts.of_document(bundled, x).inputs[2] for x in rest], axis=0)
    task = later_layers.task(bundled, first, places)
    x = position_parts.of_document(bundled, task.tokens).inputs[2].copy()
    x[places] += moves.rolled(others[places], 1) - others[places]
    keys = position_parts.keys(bundled, 2, x)
    for edits, loss in (({}, r["loss"]), ({("k", 2): keys}, r["loss"] + r["rise_keys"][0, 1])):
        logits = minitx.run(bundled, task.tokens, keep=["logits"], edits=edits)["logits"][0]
        y = logits[task.places].astype(float)
        costs = np.log(np.exp(y).sum(axis=1)) - y[np.arange(len(y)), task.truth]
        assert loss == pytest.approx(costs.mean(), rel=1e-5)  # float32: measured 1e-7


def test_the_bundles_first_layer_follows_and_the_deeper_ones_do_not(bundled):
    r = dial.dial(bundled, documents=8, tokens=128, losses=2)
    assert r["layer_n_exact"][0] == r["layer_n_cells"][0] == 32
    assert not r["layer_n_exact"][1:].any()
    assert r["layer_n_cells"][1:].sum() >= 16
    assert r["rise"] > 3  # measured 7.3
    assert abs(r["rise_null"]) < 0.5  # measured 0.07


def test_a_causal_model_is_only_asked_for_keys_that_it_sees(causal):
    r = dial.dial(causal, documents=2)
    assert (r["expected"][r["told"]] <= 0).all()


def test_positions_alone_of_a_partial_checkpoint(bundled):
    """Without its words a model is asked what positions alone make of it."""
    model = replace(bundled, missing=("W_E",))
    r = dial.dial(model)
    assert r["documents"] == 0
    assert r["layer_n_exact"][0] == r["layer_n_cells"][0] == 32
    assert "The input was positions alone" in says("dial", r)


def test_without_words_a_head_may_attend_to_its_own_token_by_positions():
    """Uniform attention is 1/64 everywhere: a tenth at offset 0, and at offset 1."""
    attention = np.full((3, 21), 1 / 64)
    attention[0, 10] = attention[1, 11] = profiles.LEAST
    assert profiles.stands_out(attention, 64).tolist() == [True, True, False]
    assert profiles.directed(attention, 64).tolist() == [False, True, False]


# chain


@pytest.fixture(scope="module")
def chains():
    return {model: run("chain", model, turn="all") for model in MAKE}


def test_turning_the_copying_head_turns_the_one_that_reads_the_copies(chains):
    r = chains["copies"]
    assert (r["n_pairs"], r["n_moved"], r["n_moved_null"], r["n_lost"]) == (4, 1, 0, 1)
    assert r["strongest_null"] < 0.1  # measured 0.02
    source = r["turned"].tolist().index([0, 0])
    assert r["move"][source, 1, 0] == pytest.approx(-1, abs=0.1)  # measured -0.95
    assert r["kept"][source, 1, 0] < 0.1
    assert r["best"][source, :, 1, 0].tolist() == [3, 1, -1]  # turned left, not, turned right
    assert r["pairs"][0].startswith("L0H0 by -2, +2 moves L1H0 from +1 (0.8")
    assert verdict("chain", r) == "yes"


@pytest.mark.parametrize(
    "model, pairs, kind", [("waves", 4 * 3, "no"), ("neither", 0, "undecided")]
)
def test_heads_that_read_positions_or_words_are_not_turned_by_others(chains, model, pairs, kind):
    r = chains[model]
    assert (r["n_turned"], r["n_pairs"]) == (4, pairs)
    assert r["strongest"] < 1e-6
    assert r["kept"][r["deeper"]] == pytest.approx(1)
    assert verdict("chain", r) == kind


def test_only_heads_with_a_direction_are_turned_unless_others_are_asked_for():
    assert run("chain", "copies")["turned"].tolist() == [[0, 0], [0, 1]]
    assert run("chain", "copies", turn="L0H3,L0H1")["turned"].tolist() == [[0, 1], [0, 3]]
    nothing = run("chain", "neither")
    assert nothing["n_turned"] == 0
    assert says("chain", nothing) == (
        "No two heads, one in a deeper layer, have a direction, so no pair was measured."
    )


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("s", [-3, -1, 2, 9])
def test_a_turned_pattern_looks_further_and_keeps_its_sums(causal, s):
    n = 8
    pattern = np.random.default_rng(0).random((2, n, n))
    if causal:
        pattern = np.tril(pattern)
    new = moves.turned(pattern, s, causal)
    assert new.sum(axis=-1) == pytest.approx(pattern.sum(axis=-1))
    assert not causal or not np.triu(new, 1).any()
    expected = np.zeros_like(pattern)
    for i, j in np.ndindex(n, n):
        last = i if causal else n - 1
        expected[:, i, np.clip(j + s, 0, last)] += pattern[:, i, j]
    assert new == pytest.approx(expected)


# notch


@pytest.fixture(scope="module")
def notches():
    return {model: run("notch", model) for model in MAKE}


def test_each_head_of_waves_needs_its_own_band(notches):
    """Heads of fast waves lose their direction without them, those of slow ones without these."""
    r = notches["waves"]
    assert r["n_need"] == r["n_directed"] == 7
    needs = [[[], [3], [0], []], [[], [3], [0], []]]  # fast: 2 to 4 tokens; slow: over 16
    lost = (r["kept_without"][..., :-1, :] < 0.5) & r["directed"][:, None]
    assert [[np.flatnonzero(x).tolist() for x in layer.T] for layer in lost] == needs
    assert (r["n_lost"], r["n_lost_null"]) == (4, 0)
    # the best band alone leaves more than what is left without any
    assert r["alone_null"] < 0.05 and r["alone"] > 0.3
    assert verdict("notch", r) == "yes"
    said = says("notch", r)
    assert "lose it: they keep less" in said and "The others" not in said


def test_a_head_that_reads_copied_words_needs_no_waves(notches):
    r = notches["copies"]
    assert r["n_directed"] == 3
    assert r["n_need"] == 2
    assert r["kept_without"][1, -1, 0] > 0.9  # measured 1.13
    assert r["kept_without"][0, -1, :2].max() < 0.1
    assert r["alone_null"] < 0.1  # of the two that read positions
    assert verdict("notch", r) == "no"
    assert "The others do not read positions." in says("notch", r)


def test_a_band_counts_only_for_a_head_that_keeps_its_direction_without_as_much_evenly():
    """One head needs the first band, one loses its direction either way, one only evenly."""
    kept = {"without": [[0.2, 0.9], [0.2, 0.9], [0.8, 0.9]]}
    kept |= {"evenly": [[0.8, 0.9], [0.3, 0.9], [0.4, 0.9]], "alone": [[0.9, 0.1]] * 3}
    r = {"directed": np.ones((1, 3), bool), "bands": np.array(["slow", "fast", "all waves"])}
    for way, of_heads in kept.items():
        of_bands = np.column_stack([np.array(of_heads), np.zeros(3)])  # the last: all waves
        r[f"kept_{way}"] = of_bands.T[None]  # [l K H]
    summary = notch_arrays._summary(r)
    assert (summary["n_lost"], summary["n_lost_null"], summary["n_need"]) == (1, 1, 3)
    assert summary["by_band_lost"].tolist() == summary["by_band_lost_null"].tolist() == [1, 0]
    assert summary["kept"] == pytest.approx(0.4) and summary["kept_null"] == pytest.approx(0.5)


@pytest.mark.parametrize("waves", [constructed.FAST, constructed.SLOW, constructed.ALL])
@pytest.mark.parametrize("share", [0.11, 0.2])
def test_one_head_of_one_band_is_enough_for_a_yes_and_one_of_all_bands_is_not(share, waves):
    model = directed.by_positions([-1], share, 64, waves)
    r = outcomes.run("notch", model, tokens=64, documents=3, losses=0)
    kind = "no" if len(waves) == len(constructed.ALL) else "yes"
    assert (r["n_need"], r["n_lost_null"], verdict("notch", r)) == (1, 0, kind)


def test_what_has_no_direction_loses_none(notches):
    r = notches["neither"]
    assert (r["n_directed"], r["n_need"], r["n_lost"]) == (0, 0, 0)
    assert verdict("notch", r) == "undecided"


def test_bands_are_octaves_that_leave_nothing_out():
    limits = bands.octaves(254, 4)
    assert limits == [(1, 15), (16, 31), (32, 63), (64, 127)]
    assert bands.names(4) == ["over 16", "8 to 16", "4 to 8", "2 to 4"]
    assert bands.octaves(9, 1) == [(1, 4)]


def test_a_table_is_the_sum_of_its_bands_and_the_null_loses_as_much_energy():
    x = np.random.default_rng(0).standard_normal((40, 3)) + 5
    mean = x.mean(axis=0)
    parts = [spectra.bandpass(x, *band) for band in bands.octaves(40, 3)]
    assert sum(parts) + mean == pytest.approx(x)
    assert sum(bands.energy(x, part) for part in parts) == pytest.approx(1)
    for part in parts:
        assert bands.without(x, part) + bands.alone(x, part) - mean == pytest.approx(x)
        band, evenly = (way(x, part) - mean for way in (bands.without, bands.evenly_without))
        assert np.square(band).sum() == pytest.approx(np.square(evenly).sum())
        assert bands.evenly_without(x, part).mean(axis=0) == pytest.approx(mean)


# what they share


def test_attention_between_some_queries_and_keys_is_a_mean_over_their_pairs():
    pattern = np.random.default_rng(0).random((2, 9, 9))
    queries, keys = slice(1, 8), slice(3, 9)
    measured = moves.attention_between(pattern, queries, keys, reach=6)
    for t in profiles.offsets(6):
        pairs = [(i, i + t) for i in range(1, 8) if 3 <= i + t < 9]
        expected = np.mean([pattern[:, i, j] for i, j in pairs], axis=0) if pairs else 0
        assert measured[:, t + 6] == pytest.approx(expected)


def test_dealt_offsets_keep_to_the_cells_that_are_told():
    """A head that follows everywhere is exact by chance in one cell of those told, on average."""
    shifts = np.arange(-4, 5)
    attended = (-1 - shifts)[:, None].repeat(3, axis=1)
    expected, is_told = moves.cells(np.full(3, -1), shifts, -1, causal=True)
    assert is_told[:, 0].tolist() == [False] * 3 + [True, False] + [True] * 4
    assert moves.slopes(attended, shifts, is_told) == pytest.approx(-1)
    n_exact, slope = moves.by_chance(attended, expected, is_told, shifts, seed=0)
    assert 3 < n_exact < 12 < is_told.sum() + 1
    assert slope < 1
    stuck = moves.by_chance(np.full((9, 3), -1), expected, is_told, shifts, seed=0)
    assert stuck[0] == 0


def test_moved_positions_that_came_round_are_left_out():
    places = slice(2, 12)
    x = np.arange(10)
    for s in (-3, 0, 4):
        kept = moves.not_round(places, s)
        moved = moves.rolled(x, s)[kept.start - 2 : kept.stop - 2]
        assert moved.tolist() == [i - 2 + s for i in range(kept.start, kept.stop)]


@pytest.mark.parametrize("name", ["tiny-bert", "tiny-gpt2"])
def test_positions_alone_that_are_not_moved_are_what_the_layer_reads(name):
    """BERT's token type is read beside them, moved or not."""
    model = minitx.load(name)
    for r in position_parts.alone(model, [0, 1], 32):
        np.testing.assert_array_equal(r.put(r.positions), r.x)
