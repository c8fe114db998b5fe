"""Four inputs to the same heads, and what remains of their directions."""

import constructed
import numpy as np
import pytest

import minitx
from minitx.analysis.contract import registry
from minitx.analysis.drawing import draw
from minitx.analysis.experiments import conditions as experiment
from minitx.analysis.maths import profiles
from minitx.analysis.measures import by_mechanism, conditions, heads
from minitx.analysis.running import passes
from minitx.analysis.running.stream import UNSAVED
from minitx.analysis.texts import corpus

SMALL = {"documents": 3, "tokens": 64}
NAMES = [*conditions.CONDITIONS]


@pytest.fixture(scope="module")
def results():
    """What the experiment gives on each constructed model."""
    built = {name: getattr(constructed, name)() for name in ("waves", "copies", "neither")}
    return {name: experiment.conditions(model, **SMALL) for name, model in built.items()}


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
    assert registry.get("conditions").answer(result).verdict == "yes"


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
    assert (
        registry.get("conditions").answer(result).verdict == "no"
    )  # 2 of 3, and 2 of 3 with heads shuffled


def test_heads_that_read_words_have_nothing_to_keep(results):
    result = results["neither"]
    assert result["n_directed"] == 0 and kinds(result) == {}
    assert registry.get("conditions").answer(result).verdict == "undecided"
    assert (
        registry.get("conditions").says(result)
        == "0 of 8 heads have a direction that they could keep."
    )


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
    result = experiment.conditions(bundled, head="L0H0,L1H3", documents=3, tokens=40, seed=5)
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
    result = experiment.conditions(bundled, documents=4)
    attention = remaining(result, (1, 3))
    assert min(attention["text"], attention["shuffled"]) > 0.4  # measured 0.52 and 0.52
    assert max(attention["positions"], attention["words"]) < 0.02  # measured 0.01
    assert kinds(result) == {"positions": 4, "both, words in any order": 3}
    assert result["heads"].tolist() == ["L0H3", "L1H3", "L2H0"]  # the sharpest of three layers
    named = experiment.conditions(bundled, head="L2H1,L0H0", **SMALL)
    assert named["heads"].tolist() == ["L2H1", "L0H0"]


def test_dealt_anew_few_heads_keep_their_direction(results):
    """Heads of seven directions: hardly two have one in common."""
    result = results["waves"]
    i = NAMES.index("positions")
    assert result["n_kept"][i] == 7 > 2 + result["n_kept_null"][i]


def test_it_is_drawn(results):
    for result in results.values():
        arrays = {name: np.asarray(x) for name, x in result.items()}
        with draw.style():
            assert "positions alone" in draw.svg(experiment.plot(arrays))


@pytest.mark.parametrize(
    "options, message",
    [
        ({"tokens": 8}, "--tokens is 8; wanted 11 to 256"),
        ({"head": "L9H0"}, "'L9H0' is not a head of this model"),
        ({"documents": 10**6}, "documents of 256 tokens each; wanted 1000000"),
    ],
)
def test_bad_options_are_noticed_before_the_work(bundled, options, message, monkeypatch):
    monkeypatch.setattr(conditions, "stream_and_profiles", None)
    monkeypatch.setattr(heads, "head_profiles", None)
    with pytest.raises(ValueError, match=message):
        experiment.conditions(bundled, **options)


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
