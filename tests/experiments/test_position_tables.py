"""Position tables made by hand, and the published claims about them: which pass, which fail."""

from types import SimpleNamespace

import numpy as np
import pytest
import tiny
from outcomes import run, says, verdict

from minitx.analysis.contract import registry
from minitx.analysis.experiments import positions
from minitx.analysis.maths import nulls, spectra
from minitx.analysis.measures import other_models
from minitx.analysis.pages import claims
from minitx.analysis.texts import corpus

T, D = 256, 128
FEW = {"shuffles": 200}


def draw():
    return np.random.default_rng(0).standard_normal((T, D))


def waves(f):
    """Waves of f cycles in T tokens, each column with its own phase: [T D]."""
    t = np.arange(T)[:, None]
    return np.cos(2 * np.pi * f * t / T + np.arange(D))


TABLES = {  # table, whether it has a peak
    "a fast wave": (draw() + waves(30), True),
    "a fast wave on a drift": (draw() + 2 * waves(30) + 3 * waves(1), True),
    "drift alone": (draw() + 9 * waves(1) + 3 * waves(3), False),
    "a slow wave": (draw() + waves(9), False),
    "random walks": (draw().cumsum(axis=0), False),
    "noise": (draw(), False),
    "a ramp": (np.linspace(-1, 1, T)[:, None] * draw()[:1], False),
}


class Texts(list):
    """Documents [T], as corpus.documents gives them."""

    T = T


def with_table(model, table):
    """The model with another position table [T D]."""
    whole = np.zeros_like(model.weights.W_pos)
    whole[model.config.offset :][:T] = table
    return tiny.with_weights(model, {}, W_pos=whole)


def claim(what):
    """The row that is put to any model, by a word of what it says."""
    (row,) = [row for row in claims.CLAIMS if what in row.what and not row.of]
    return row


def holds(row, result):
    """Whether a claim holds of a result."""
    arrays = {name: np.asarray(x) for name, x in result.items()}
    return row.holds(row.ours(arrays), row.null(arrays))


@pytest.mark.parametrize("kind", TABLES)
def test_only_a_table_with_a_peak_away_from_0_passes(bundled, kind):
    table, has_peak = TABLES[kind]
    r = positions.positions(with_table(bundled, table), **FEW)
    assert holds(claim("peak of the position embeddings"), r) == has_peak
    assert holds(claim("rise of the position embeddings"), r) == has_peak
    assert verdict("positions", r) == ("yes" if has_peak else "no")
    side = "above" if has_peak else "not above"
    assert f": {side} the" in says("positions", r)
    if has_peak:
        assert r["peak_at"] == 30
        assert 30 in r["peaks_away"]
    else:
        assert not len(r["peaks_away"])


def test_a_table_that_never_rises_has_no_peak_at_all(bundled):
    r = positions.positions(with_table(bundled, TABLES["a ramp"][0]), **FEW)
    value = registry.get("positions").answer(r).value
    assert value.startswith("0 peaks") == (r["peak_at"] == 0)
    assert r["peak"] < r["peak_null"]


def test_a_text_that_repeats_has_a_peak_in_its_words(bundled):
    words = claim("peak of word embeddings")
    tokens = np.random.default_rng(0).integers(10, 900, T)
    assert holds(words, positions._words(bundled, Texts([tokens]), 200, 0))
    periodic = np.tile(tokens[:8], T // 8)  # the same eight words again and again
    assert not holds(words, positions._words(bundled, Texts([periodic]), 200, 0))


def test_one_document_does_not_decide_on_words(bundled):
    """A peak of one document is lost in the average of sixteen; one that all share stays."""
    words = claim("peak of word embeddings")
    documents = np.random.default_rng(1).integers(10, 900, (16, T))
    documents[0, :150:5] = 7  # the same word every five tokens: 51 cycles, or twice as many
    alone, among = (positions._words(bundled, Texts(x), 100, 0) for x in (documents[:1], documents))
    assert not holds(words, alone) and alone["words_peak_at"] in (51, 102)
    assert holds(words, among) and among["words_documents"] == 16
    documents[:, :100:5] = 7
    shared = positions._words(bundled, Texts(documents), 100, 0)
    assert not holds(words, shared) and shared["words_peak_at"] in (51, 102)


def test_the_words_of_documents_are_averaged_by_hand(bundled):
    """The experiment's numbers from their definition, for three documents of a text."""
    r = positions.positions(bundled, documents=3, shuffles=2, seed=5)
    texts = corpus.documents(bundled, "sample", 3)
    means, shuffled = [], []
    for i, document in enumerate(texts):
        words = bundled.weights.W_E[document]
        means.append(spectra.mean_amplitude(words))
        orders = nulls.row_shuffles(words, 2, (5, i))
        shuffled.append([spectra.mean_amplitude(order) for order in orders])
    assert np.allclose(r["words_mean"], np.mean(means, axis=0), rtol=1e-6)
    null = spectra.peak_null(np.mean(shuffled, axis=0), spectra.lowest(texts.T))
    assert r["words_peak_null"] == pytest.approx(null, rel=1e-6)
    assert "In the words of 3 documents, averaged, the highest" in says("positions", r)


def test_rows_of_a_table_are_looked_at_by_range(bundled):
    """The first half has a wave of 20 cycles in its 128 rows, the second half noise."""
    turns = np.arange(T // 2)[:, None] / (T // 2)
    table = draw()
    table[: T // 2] += 3 * np.cos(2 * np.pi * 20 * turns)
    model = with_table(bundled, table)
    whole = positions.positions(model, **FEW)
    first, second = (positions.positions(model, rows=rows, **FEW) for rows in ("0:128", "128:"))
    assert whole["peak_at"] in (39, 40, 41)  # the same wave, 40 cycles in 256 rows
    assert first["peak_at"] == 20 and first["peaks_away"].tolist() == [20]
    assert verdict("positions", first) == "yes"
    assert verdict("positions", second) == "no"
    assert not len(second["peaks_away"]) and second["peak_null"] > second["peak"]
    assert first["explained_4"] > 0.8 and second["explained_4"] < 0.2
    for r, rows in ((first, table[: T // 2]), (second, table[T // 2 :])):
        np.testing.assert_allclose(r["position_mean"], spectra.mean_amplitude(rows), rtol=1e-6)
        np.testing.assert_allclose(r["position_explained"], spectra.explained(rows), rtol=1e-6)
        assert r["T"] == 128 and len(r["words_mean"]) == len(r["frequency"]) == 65
    assert says("positions", second).startswith("Rows 128 to 255 of 256 alone, as a table of")
    assert not says("positions", whole).startswith("Rows")
    assert "rows 0 to 127" in registry.get("positions").answer(first).measure


def test_words_beside_a_range_of_rows_are_those_of_its_places(bundled):
    documents = np.random.default_rng(0).integers(10, 900, (2, T))
    documents[:, T // 2 :] = np.tile(documents[:, :8], T // 16)  # words come round again
    row = claim("peak of word embeddings")
    for places, is_free in ((slice(0, T // 2), True), (slice(T // 2, T), False)):
        halves = positions._words(bundled, Texts(documents), 200, 0, places=places)
        assert holds(row, halves) == is_free


@pytest.mark.parametrize("rows", ["0:8", "200:100", "0:257", "x", "3", ":-4", "1:2:3"])
def test_a_range_that_the_table_does_not_have_is_refused(bundled, rows):
    wanted = "wanted FIRST:LAST, such as 0:128, 16 rows or more; this model's tokens read rows 0"
    with pytest.raises(ValueError, match=f"--rows is {rows!r}; {wanted} to 255"):
        positions.positions(bundled, rows=rows)


def test_models_answers_for_its_own_model_and_counts_the_others(bundled):
    falls = run("models", bundled, others="tiny-gpt2", **FEW)
    both = run("models", bundled, others="tiny-bert", **FEW)
    noise = run("models", with_table(bundled, draw()), others="tiny-bert", **FEW)
    for r, kind, n in (
        (falls, "yes", 0),  # GPT-2's spectrum only falls
        (both, "yes", 1),
        (noise, "no", 1),
        (noise | {"peak": 0 * noise["peak"]}, "no", 0),
    ):
        answer = registry.get("models").answer(r)
        assert answer.verdict == kind
        assert answer.value.endswith(f"{n} of 1 others")


@pytest.mark.parametrize("name", ["roberta-base", "xlm-roberta-base"])
def test_robertas_peaks_are_compared_with_berts(name):
    (row,) = [c for c in claims.CLAIMS if (c.experiment, c.of) == ("models", name)]
    r = {"models": np.array([name, "bert-base-uncased"]), "peak": np.array([3.0, 2.0])}
    assert holds(row, r)
    assert not holds(row, r | {"peak": np.array([2.0, 3.0])})
    with pytest.raises(ValueError, match="bert-base-uncased"):
        holds(row, r | {"models": np.array([name, "tiny-gpt2"])})


def test_a_download_is_named_by_its_repository(bundled, tmp_path):
    folder = tmp_path / "models--FacebookAI--roberta-base" / "snapshots" / "abc123"
    folder.mkdir(parents=True)
    model = SimpleNamespace(tokenizer=SimpleNamespace(folder=folder))
    assert other_models.name(model) == "roberta-base"
    assert other_models.name(bundled) == "tiny-roberta"


@pytest.mark.parametrize(
    "share, n, text, verdict",
    [
        (7 / 64, 7, "text", True),
        (3 / 64, 7, "text", False),
        (14 / 64, 7, "text", False),
        (0.0, 7, "text", False),
        (7 / 64, 0, "text", None),
        (7 / 64, 7, "positions", None),
    ],
)
def test_periodic_columns_are_counted(share, n, text, verdict):
    row = claim("columns of a head that are periodic")
    r = {"typical": np.float64(share), "typical_null": np.float64(0), "n_directed": np.array(n)}
    r |= {"input": np.array(text), "r": np.array(64)}
    if verdict is None:
        with pytest.raises(KeyError):
            row.ours(r)
    else:
        assert holds(row, r) == verdict
