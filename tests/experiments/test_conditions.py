"""Four inputs to the same heads, and what remains of their directions."""

from dataclasses import replace

import constructed
import numpy as np
import pytest
from outcomes import run, says, verdict

import minitx
from minitx.analysis.contract import registry
from minitx.analysis.drawing import draw
from minitx.analysis.experiments import conditions as experiment
from minitx.analysis.maths import profiles
from minitx.analysis.measures import by_mechanism, conditions
from minitx.analysis.running import passes
from minitx.analysis.running.stream import UNSAVED
from minitx.analysis.texts import corpus

SMALL = {"documents": 3, "tokens": 64}
NAMES = [*conditions.CONDITIONS]
REPEATED = NAMES.index("repeated")


@pytest.fixture(scope="module")
def results(of_constructed):
    return of_constructed("conditions", **SMALL)


def remaining(result, place):
    """{condition: attention of a head to its offset}."""
    return dict(zip(NAMES, result["attention_of_heads"][:, place[0], place[1]]))


def kinds(result):
    """{kind: heads} of those that there are."""
    counts = zip(result["kinds"].tolist(), result["n_by_kind"].tolist())
    return {kind: n for kind, n in counts if n}


def test_heads_that_read_waves_need_no_words(results):
    result = results["waves"]
    for place in constructed.LAGS:
        attention = remaining(result, place)
        assert min(attention[name] for name in ("text", "shuffled", "positions")) > 0.9
        assert attention["words"] < 0.1
    assert kinds(result) == {"positions": len(constructed.LAGS)}
    assert verdict("conditions", result) == "yes"


def test_a_head_that_reads_copied_words_needs_words_and_positions(results):
    """In any order: the word beside it has been copied by position, whichever it is."""
    result = results["copies"]
    attention = remaining(result, (1, 0))
    assert min(attention["text"], attention["shuffled"]) > 0.5
    assert max(attention["positions"], attention["words"]) < 0.1
    assert kinds(result) == {"positions": 2, "both, words in any order": 1}
    score = result["score_kept_of_heads"][:, 1, 0]
    assert score[0] == 1 and score[NAMES.index("shuffled")] > 0.5
    assert abs(score[[NAMES.index(name) for name in ("positions", "words")]]).max() < 0.2
    assert verdict("conditions", result) == "partly"


def test_heads_that_read_words_have_nothing_to_keep(results):
    result = results["neither"]
    assert result["n_directed"] == 0 and kinds(result) == {}
    assert verdict("conditions", result) == "undecided"
    assert says("conditions", result) == "0 of 8 heads have a direction that they could keep."


def test_conditions_are_edits_of_a_run(bundled):
    documents = corpus.documents(bundled, "sample", 2, 40)
    document = documents.first()[0]
    edits = {"positions": {"embed": np.zeros_like}, "words": {"pos_embed": np.zeros_like}}
    for name in NAMES:
        tokens = conditions.tokens(documents, 0, document, name, 5)
        assert np.array_equal(tokens, document) == (name not in ("shuffled", "repeated"))
        assert name == "repeated" or sorted(tokens) == sorted(document)
        trace = minitx.run(bundled, tokens, edits=edits.get(name, {}))
        recorded = profiles.profile(trace.stack("pattern")[:, 0])
        X, attention = passes.value(conditions.stream_and_profiles(bundled, tokens, name))
        assert np.array_equal(attention, recorded)
        assert np.array_equal(conditions.head_profiles(bundled, tokens, name), recorded)
        scores = profiles.profile(trace.stack("scores")[:, 0])
        by_lag = conditions.scores_by_lag(bundled, X)
        assert abs(by_lag - scores).max() < 1e-5 * abs(scores).max()  # float32: measured 1e-7


def test_a_repeated_word_is_one_of_the_document_and_special_tokens_stay(bundled):
    documents = corpus.documents(bundled, "sample", 2, 40)
    inner = documents.ordinary()
    words = []
    for i, document in enumerate(documents):
        tokens = conditions.repeated(documents, i, document, seed=3)
        word = np.unique(tokens[inner])
        assert len(word) == 1 and word[0] in document[inner]
        outer = np.delete(np.arange(40), np.arange(40)[inner])
        assert np.array_equal(tokens[outer], document[outer])
        words.append(word[0])
    assert words[0] != words[1]  # a word of its own for each document


def test_the_spread_on_a_repeated_word_is_over_documents(bundled):
    result = run("conditions", bundled, head="L0H0,L1H3", documents=3, tokens=40, seed=5)
    documents = corpus.documents(bundled, "sample", 3, 40)
    attention = []
    for i, document in enumerate(documents):
        tokens = conditions.repeated(documents, i, document, seed=5)
        profile = conditions.head_profiles(bundled, tokens, "repeated")
        attention.append(profiles.mean_attention(profile, 40))  # [L H R]
    for pair, spread in zip(result["drawn"], result["at_offset_repeated_spread"]):
        offset = result["offset_of_heads"][*pair] + profiles.REACH
        by_document = np.array(attention)[:, *pair, offset]
        assert spread == pytest.approx(by_document.std(), rel=1e-4, abs=1e-7)
    assert result["at_offset_repeated_spread"][1] > 1e-4


def test_positions_alone_are_the_same_for_every_document(bundled):
    documents = corpus.documents(bundled, "sample", 2, 40).first(2)
    first, second = (conditions.head_profiles(bundled, x, "positions") for x in documents)
    assert np.array_equal(first, second)


def test_the_bundles_deeper_head_needs_both(bundled):
    result = run("conditions", bundled, documents=4)
    attention = remaining(result, (1, 3))
    assert min(attention["text"], attention["shuffled"]) > 0.4  # measured 0.52 and 0.52
    assert max(attention["positions"], attention["words"]) < 0.02  # measured 0.01
    assert kinds(result) == {"positions": 4, "both, words in any order": 3}
    assert result["heads"].tolist() == ["L0H3", "L1H3", "L2H0"]  # the sharpest of three layers
    named = run("conditions", bundled, head="L2H1,L0H0", **SMALL)
    assert named["heads"].tolist() == ["L2H1", "L0H0"]


def planted(lags, share, tokens=64, causal=False):
    """Verdict and numbers of as many heads as lags, each with this share of its attention there."""
    model = constructed.strengths({(0, head): (lag, share) for head, lag in enumerate(lags)})
    model = replace(model, config=replace(model.config, causal=causal))
    result = run("conditions", model, documents=3, tokens=tokens)
    kept, by_chance = (result[name][REPEATED] for name in ("n_kept", "n_kept_null"))
    return verdict("conditions", result), kept, by_chance


@pytest.mark.parametrize("tokens", [64, 512])
@pytest.mark.parametrize("share", [0.11, 0.2, 0.5])
@pytest.mark.parametrize("lags", [(-1, 2), (-1, -1, -1), (-1, 2, -3, 1)])
def test_few_heads_that_read_positions_are_enough_for_a_yes(tokens, share, lags):
    assert planted(lags, share, tokens) == ("yes", len(lags), len(lags) // 4 + 1)


@pytest.mark.parametrize(
    "tokens, causal, verdict",
    [(64, False, "undecided"), (128, False, "yes"), (128, True, "undecided"), (200, True, "yes")],
)
def test_one_head_is_asked_among_all_lags_of_half_a_document(tokens, causal, verdict):
    """One of 21 offsets is not rare enough, one of 101 is."""
    assert planted([-1], 0.5, tokens, causal)[:2] == (verdict, 1)


def test_a_head_keeps_its_offset_only_where_it_has_most_attention():
    """Half of the attention stays at -1, but as much goes to 0: this head has lost its offset."""
    r = {"directed": np.array([[True, True]]), "n_directed": 2, "causal": True}
    r |= {"offset_of_heads": np.array([[-1, -1]]), "attention_of_heads": np.array([[[0.8, 0.8]]])}
    attention = np.zeros((2, 1, 2, 21))
    attention[0, ..., 9] = 0.8
    attention[1, ..., 9], attention[1, 0, 0, 10] = 0.4, 0.41
    kept = experiment._keeps(r | {"attention": attention}, None)
    assert kept["keeps"].tolist() == [[[True, True]], [[False, True]]]
    assert kept["n_kept"].tolist() == [2, 1] and kept["n_kept_null"].tolist() == [1, 1]
    assert kept["n_offsets"] == 11


def test_it_is_drawn(results):
    for result in results.values():
        with draw.style():
            figures = registry.get("conditions").figures(result)
            assert any("positions alone" in draw.svg(figure) for figure in figures)


@pytest.mark.parametrize("name", ["causal-rotary", "masked-buckets"])
def test_words_that_are_averaged_out_tell_nothing(name):
    """Two documents have the same scores and attention then, but not as they are read."""
    model = minitx.load(f"zoo/{name}")
    texts = corpus.documents(model, "sample", 2, 24)
    reader = by_mechanism.of_model(model, experiment.READERS)(model, texts, [(0, 0)], 4, UNSAVED)
    for condition, is_same in (("positions", True), ("text", False)):
        a, b = (passes.value(reader.reading(tokens, condition)) for tokens in texts)
        for what in ("attention", "scores"):
            assert np.allclose(a[what], b[what], atol=1e-5) == is_same
