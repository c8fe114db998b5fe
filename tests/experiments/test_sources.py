"""Scores by source: exact, told apart on constructed models, and measured on the trained bundle."""

from dataclasses import replace

import constructed
import numpy as np
import pytest
import tiny
from distance import max_error
from outcomes import run, says, verdict

import minitx
from minitx import weights
from minitx.analysis.contract import registry
from minitx.analysis.drawing import draw
from minitx.analysis.experiments import _sources_scores, _sources_split, lags
from minitx.analysis.maths import sources as maths
from minitx.analysis.measures import score_moves
from minitx.analysis.running import passes, stream
from minitx.analysis.texts import corpus

SMALL = {"documents": 4, "tokens": 64}


@pytest.fixture(scope="module")
def results(of_constructed):
    return of_constructed("sources", **SMALL)


@pytest.mark.parametrize("variant", [*tiny.ONE_EACH, "gpt2-inverse-layer"])
def test_terms_sum_to_the_scores(variant):
    """In every family, every layer, whatever the mean position is: 1e-10 relative in float64."""
    model = tiny.load(variant)
    documents = [tiny.ids(model, 9, seed=i) for i in range(3)]
    placed = _sources_split.places(model, documents, stream.UNSAVED)
    for i, document in enumerate(documents):
        trace = minitx.run(model, document, keep=["scores"])
        along = _sources_split.along(model, document, placed, i % 2, lambda _, split: split)
        splits = passes.value(along)
        assert len(splits) == model.config.n_layers
        for layer, (q, k, whole, _) in enumerate(splits):
            visible = np.isfinite(trace["scores", layer][0])
            recorded = np.where(visible, trace["scores", layer][0], 0)
            total = np.einsum("ahid,bhjd->hij", q, k)
            assert max_error(total * visible, recorded) < 1e-10 * abs(recorded).max()
            assert max_error(whole * visible, recorded) < 1e-10 * abs(recorded).max()


def test_the_terms_of_the_experiment_sum_to_the_scores(results):
    for result in results.values():
        assert result["error"] < 1e-10  # float64: measured 1e-15
        total = result["variance_of_terms"].sum(axis=(0, 1))
        whole = result["peak_of_terms"].sum(axis=(0, 1))
        for parts in (total, whole):
            reads = parts != 0  # heads without weights have neither
            assert max_error(parts[reads], 1) < 1e-10
        assert (total != 0).any()


@pytest.mark.parametrize("variant", ["bert-masked", "albert-masked"])
def test_word_and_position_of_layer_0_are_their_own_rows(variant):
    """Layer 0 is exact: each part is what is lost without it, the norms' scales as they are."""
    model = tiny.load(variant)
    documents = [tiny.ids(model, 9, seed=i) for i in range(2)]
    placed = _sources_split.places(model, documents, stream.UNSAVED)
    names = _sources_split.SOURCES
    along = _sources_split.along(model, documents[0], placed, 0, lambda _, split: split)
    split = passes.value(along)[0]
    trace = minitx.run(model, documents[0])
    edits = {"ln_embed_scale": trace["ln_embed_scale"]}
    for name, point in (("word", "embed"), ("position", "pos_embed"), ("type", "type_embed")):
        without = minitx.run(model, documents[0], edits=edits | {point: np.zeros_like})
        lost = (trace["q", 0] - without["q", 0])[0] * model.config.attn_scale(0)
        part = split.q[names.index(name)]
        off = (lost - part)[:, :1] * (name == "position")  # what all places have in common
        assert max_error(lost - part, off) < 1e-10
    assert not split.q[names.index("layers")].any()


def test_positions_make_the_peaks_of_waves(results):
    """Every head with a lag has it from positions, in both layers, and from its own waves."""
    result = results["waves"]
    share = result["position_share_of_heads"]
    for place, (lag, _) in constructed.LAGS.items():
        assert result["lag_of_heads"][place] == lag
        assert share[place] > 0.95  # measured 0.98 and more
        assert result["toeplitz_of_heads"][place] > 0.95
    assert result["position_shares_null"].max() < 0.3
    assert verdict("sources", result) == "yes"
    by_name = dict(zip(result["heads"].tolist(), zip(result["long_waves"], result["waves"])))
    assert set(by_name) == {"L0H0", "L0H1", "L1H2"}
    fast, slow = by_name["L0H1"], by_name["L1H2"]
    assert abs(fast[0]) < 0.02 and fast[1][:2].sum() > 0.9  # waves of 2.2 to 3.7 tokens
    assert slow[0] > 0.95 and slow[1][-1] > 0.9  # of 17 to 47


def test_copied_words_make_the_peak_of_the_head_that_reads_them(results):
    result = results["copies"]
    assert result["heads"].tolist() == ["L0H0", "L1H0"]
    groups = result["groups"].tolist()
    assert result["position_share"][0] > 0.95
    assert result["position_share"][1] < 0.15  # measured 0.05: 2 documents in each half
    assert result["peak_by_group"][1, groups.index("word × layers")] > 0.85
    assert result["n_positions"] == 1 and result["n_positions_null"] == 0
    assert verdict("sources", result) == "partly"


def test_the_text_of_one_document_is_not_on_both_sides():
    """With one mean on both sides half of a copied word's peak would be position."""
    result = run("sources", constructed.copies(), documents=2, tokens=64)
    assert abs(result["position_share_of_heads"][1, 0]) < 0.2  # measured 0.09


def test_heads_that_read_words_have_no_position_in_their_scores(results):
    result = results["neither"]
    assert not result["directed"].any()
    # L1H1 reads words; what stands at a place is their mean over 2 documents
    assert abs(result["position_share_of_heads"]).max() < 0.2
    assert result["n_positions"] == 0
    assert verdict("sources", result) == "undecided"
    assert "No head gives more than 0.5" in says("sources", result)


def test_the_bundle_reads_positions_in_layer_0_alone(bundled):
    result = run("sources", bundled, documents=8)
    position = dict(zip(result["heads"].tolist(), result["position_share"]))
    assert min(position["L0H1"], position["L0H3"]) > 0.95  # measured 0.996 and 1.000
    assert abs(position["L1H3"]) < 0.05  # measured 0.001
    assert result["n_positions_by_layer"].tolist() == [4, 0, 0, 0]
    assert result["error"] < 1e-5  # float32: measured 4e-8
    assert "L1H3 gives 0.5" in says("sources", result)


def test_lags_and_sources_agree_on_the_part_of_positions(bundled):
    """The same term, above the mean of other lags here, above their median there."""
    ours = run("sources", bundled, documents=4)
    theirs = lags.lags(bundled, documents=4, bias=1)
    directed = theirs["directed"]
    mine = ours["position_share_of_heads"][directed]
    assert max_error(mine, theirs["position_share_of_heads"][directed]) < 0.1


def test_positions_alone_of_a_partial_checkpoint(causal):
    """Words and what layers wrote are not there, and nothing of them is in the scores."""
    whole = run("sources", causal, documents=2)
    partial = run("sources", replace(causal, missing=("wte.weight",)))
    assert partial["documents"] == 0
    names = partial["sources"].tolist()
    for name in ("word", "layers"):
        i = names.index(name)
        assert not partial["terms"][i].any() and not partial["terms"][:, i].any()
    assert partial["error"] < 1e-5
    assert whole["terms"].shape == partial["terms"].shape
    assert "from positions alone" in says("sources", partial)


def test_it_is_drawn_with_few_heads_and_many(results):
    for result in results.values():
        with draw.style():
            picture = draw.svg(registry.get("sources").draw(result))
        assert "position × position" in picture


@pytest.mark.parametrize("name", [x for x in weights.zoo() if "disentangled" in x])
def test_what_is_estimated_is_what_deberta_computes(name):
    """Of all heads' peaks: position × position against content with place and place with content.

    What no word changes is all of these terms but for their change with the words at that lag:
    measured 0.02 and 0.05 at most, of which the terms hold 0.9 to 1.2.
    """
    model, n = minitx.load(name), SMALL["documents"]
    result = run("sources", model, **SMALL)
    given = result["c2p_share_of_heads"] + result["p2c_share_of_heads"]
    estimated = result["position_share_of_heads"]
    assert given.min() > 0.8 and abs(estimated - given).max() < 0.08
    assert result["error"] < 1e-5
    terms = {"c2p": 0.0, "p2c": 0.0}
    for document in corpus.documents(model, "sample", n, SMALL["tokens"]).first(n):
        trace = minitx.run(model, document, keep=[*terms])
        for term, total in terms.items():
            by_lag = np.array([maths.diagonal_sums(x[0]) for x in trace.stack(term)])
            terms[term] = total + by_lag[..., 53:74] / (64 - abs(np.arange(-10, 11))) / n
    for term, by_lag in terms.items():
        split = np.array([[by_lag, result["scores"] - by_lag]])
        share = maths.peak_parts(split, result["lag_of_heads"])[0, 0]
        assert max_error(share, result[f"{term}_share_of_heads"]) < 1e-4


def test_places_with_words_are_no_part_of_words_with_places():
    """Of the products of sources; they sum to the scores with DeBERTa's terms, too."""
    model = tiny.load("deberta-masked")
    documents = [tiny.ids(model, 9, seed=i) for i in range(2)]
    means = _sources_scores.Means(model, documents, stream.UNSAVED)
    parts, _ = passes.value(score_moves.of_document_read(model, documents[0]))
    for part in parts:
        q, k, scores, added = means.split(part, 0)
        total = np.einsum("ahid,bhjd->hij", q, k) + sum(added.values())
        assert max_error(total, scores) < 1e-10
    position, word = _sources_scores.POSITION, _sources_scores.WORD
    assert {*added} == {(position, position), (position, word), (word, position)}
    still = added[word, position], added[position, word]  # of one query, of one key: its word's
    assert all(x.any() for x in still)
    only_keys = tiny.load("deberta-keys")
    means = _sources_scores.Means(only_keys, documents, stream.UNSAVED)
    parts, _ = passes.value(score_moves.of_document_read(only_keys, documents[0]))
    assert {*means.split(parts[0], 0).added} == {(position, position), (position, word)}
