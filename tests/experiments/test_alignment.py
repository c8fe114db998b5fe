"""Cross-attention against what is copied: constructed patterns, dates, files of pairs."""

import json

import encoder_decoders
import numpy as np
import pytest

import minitx
from minitx import analysis
from minitx.analysis.contract import registry
from minitx.analysis.experiments import alignment
from minitx.analysis.maths import alignment as maths
from minitx.analysis.measures import decoder_texts
from minitx.analysis.texts import pairs

DATE = pairs.Pair(
    "3 May 1912", "1912-05-03", (((0, 4), (6, 10)), ((5, 7), (2, 5)), ((8, 10), (0, 1)))
)


@pytest.fixture(scope="module")
def dates():
    return minitx.load("tiny-bart")


def written(tmp_path, *records):
    path = tmp_path / "some.jsonl"
    path.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    return str(path)


def constructed(monkeypatch, dates, looks_at):
    """Results on one date whose heads look where `looks_at` says: {head: [T] places}."""

    def cross(model, said):
        cfg = model.config
        pattern = np.full(
            (cfg.n_layers, cfg.n_heads + 1, len(said.outputs), len(said.source)), 0.01
        )
        for (layer, head), places in looks_at.items():
            pattern[layer, head, np.arange(len(places)), places] = 1
        return pattern / pattern.sum(axis=-1, keepdims=True), np.eye(cfg.n_vocab)[said.outputs]

    monkeypatch.setattr(alignment, "_cross", cross)
    monkeypatch.setattr(pairs, "pairs", lambda *_: [DATE])
    return analysis.run("alignment", dates, pairs="dates", shuffles=50)


# <s> 3 _ M a y _ 1 9 1 2 </s>: places of what </s> <s> 1 9 1 2 - 0 5 - 0 3 say
SAID = [0, 7, 8, 9, 10, 6, 3, 4, 6, 1, 1, 11]


def test_a_head_that_looks_at_what_it_says_is_found(dates, monkeypatch):
    """L1H2 looks there at the step that says a token, L0H0 at the step that reads it."""
    looks = {(1, 2): SAID, (0, 0): [0, *SAID[:-1]]}
    result = constructed(monkeypatch, dates, looks)
    r = result.arrays
    assert r["aligned_steps"] == 8 and r["copied_steps"] == 5  # 1 9 1 2, and 3
    assert r["aligned"][1, 2] == 1 and r["copied"][1, 2] == 1
    assert r["aligned_best_head"] == "L1H2" and r["aligned_best"] == 1
    # the first digit of a part is looked for where the part before it is
    assert r["aligned"][0, 0] == 5 / 8
    assert r["aligned_best_read"] == 5 / 8
    assert 0.5 < r["aligned_best_null"] < 0.9  # measured 0.75
    assert 0.1 < r["aligned_null"][1, 2] < 0.5  # 0.26
    assert r["agree"] == 1 and r["steps"] == 12
    assert result.answer.verdict == "yes" and result.answer.value == "100%"
    assert "L1H2 looks most at a source token that is of the part" in result.says
    swapped = constructed(monkeypatch, dates, {(0, 0): [0, *SAID[:-1]], (1, 2): [0] * 12})
    assert swapped.arrays["aligned_best_head"] == "L0H0"
    assert swapped.arrays["aligned_best_read"] == 1  # L0H0 itself, one step later


def test_even_attention_is_aligned_no_more_than_chance(dates, monkeypatch):
    result = constructed(monkeypatch, dates, {})
    assert result.answer.verdict == "no"
    assert result.arrays["entropy"] == pytest.approx(1)
    assert (abs(result.arrays["diagonal"]) < 1e-6).all()


def test_the_model_of_dates_looks_at_the_part_that_it_says(dates):
    """Measured on 1,000 dates: L0H1 99%, chance 25%; the mean over the heads of layer 0 100%."""
    result = analysis.run("alignment", dates, pairs="dates", documents=60)
    r = result.arrays
    assert r["aligned"].shape == (2, 4) and r["aligned_best_head"] == "L0H1"
    assert r["aligned_best"] > 0.95 and r["aligned_best_null"] < 0.4
    assert r["aligned_mean"][0] > 0.98 > r["aligned_mean"][1] > 0.8  # 1.0 and 0.9
    assert r["aligned_best_read"] < 0.85  # 0.74: the step before is the one that looks
    assert r["copied_best"] > 0.7 and r["copied_best_read"] < 0.2  # 0.80, 0.09
    assert r["agree"] > 0.98  # what is measured is what the model says
    assert result.answer.verdict == "yes"
    again = analysis.run("alignment", dates, pairs="dates", documents=60)
    assert np.array_equal(again.arrays["aligned"], r["aligned"])
    other = analysis.run("alignment", dates, pairs="dates", documents=60, seed=1)
    assert not np.array_equal(other.arrays["aligned"], r["aligned"])


def test_a_random_model_is_not_aligned(bart):
    """Its best head: 33%, with places permuted 40%."""
    result = analysis.run("alignment", bart, pairs="dates", documents=20)
    assert result.answer.verdict != "yes"
    assert result.arrays["aligned_best"] < 0.5


def test_a_text_is_read_with_the_models_own_output(bart):
    result = analysis.run("alignment", bart, documents=2)
    assert result.settings["side"] == "cross"
    r = result.arrays
    assert r["agree"] == 1 and "aligned" not in r
    assert result.says.startswith("This is of cross-attention. 100% of the ")


def test_where_nothing_is_copied_it_is_said_so(bart, tmp_path):
    file = written(tmp_path, {"source": "A dog ran.", "target": "Seven blue"})
    result = analysis.run("alignment", bart, pairs=file)
    assert "copied" not in result.arrays and "copied_best" not in result.numbers
    assert "nothing can be copied" in result.says
    assert result.answer.verdict == "undecided"
    assert result.svg


def test_words_of_a_file_are_linked_to_their_pieces(bart, tmp_path):
    """Of "the dog" in source and target: the tokens whose characters are linked."""
    source, target = "We saw the dog today", "the dog slept"
    links = [[[0, 7], [7, 14]]]
    file = written(tmp_path, {"source": source, "target": target, "links": links})
    [pair] = pairs.pairs(file, 5)
    task = decoder_texts.Task(bart.tokenizer.encode(source), pair)
    said = decoder_texts.forced(bart, task.source, target)
    wanted = alignment._wanted(bart, task, said)["aligned"]
    pieces = bart.tokenizer.pieces
    steps, places = wanted.any(axis=1), wanted.any(axis=0)
    assert "".join(pieces(said.outputs[steps])).strip() == "the dog"
    assert "".join(pieces(said.source[places])).strip() == "the dog"
    assert wanted.sum() == steps.sum() * places.sum()


@pytest.mark.parametrize(
    "record, message",
    [
        ({"target": "a"}, "line 1 is not a pair .*source.*; wanted"),
        ({"source": 3}, "line 1 is not a pair; wanted"),
        ({"source": "a", "target": "b", "links": [[[0, 2], [0, 1]]]}, "characters that are not"),
        ({"source": "a", "target": "b", "links": [[0, 1]]}, "line 1 is not a pair"),
        ({"source": "a", "target": "b", "links": [[[0, 0.5], [0, 1]]]}, "other .* whole numbers"),
        ({"source": "a", "links": [[[0, 1], [0, 1]]]}, "line 1 is not a pair"),
        ([], "line 1 is not a pair"),
    ],
)
def test_a_line_that_is_no_pair_is_refused(tmp_path, record, message):
    with pytest.raises(ValueError, match=message):
        pairs.pairs(written(tmp_path, record), 5)


def test_files_without_pairs_and_two_texts_are_refused(bart, tmp_path):
    with pytest.raises(ValueError, match="has no pairs"):
        pairs.pairs(written(tmp_path), 5)
    with pytest.raises(FileNotFoundError, match="no text file"):
        analysis.run("alignment", bart, pairs=str(tmp_path / "none.jsonl"))
    text = written(tmp_path, {"text": "a"})
    with pytest.raises(ValueError, match=r"jsonl' and pairs 'dates'; wanted one of them"):
        analysis.run("alignment", bart, text=text, pairs="dates")


def test_a_model_without_logits_is_refused(tmp_path):
    folder = encoder_decoders.bart(tmp_path / "bare")
    config = json.loads((folder / "config.json").read_text())
    config |= {"architectures": ["BartModel"], "tie_word_embeddings": False}
    (folder / "config.json").write_text(json.dumps(config))
    message = "alignment needs a decoder that predicts tokens"
    with pytest.raises(registry.NotApplicable, match=message):
        analysis.run("alignment", minitx.load(folder))


def test_the_null_permutes_ordinary_places_alone():
    is_own = np.array([False, True, True, True, True, False])
    orders = maths.permutations(is_own, 200, seed=3)
    assert (orders[:, [0, 5]] == [0, 5]).all()
    assert (np.sort(orders) == np.arange(6)).all()
    assert abs((orders[:, 1] == 1).mean() - 0.25) < 0.1


def test_diagonality_is_the_correlation_of_step_and_place():
    rng = np.random.default_rng(0)
    pattern = rng.dirichlet(np.ones(7), size=(2, 3, 5))
    centres = pattern @ np.arange(7)
    wanted = [np.corrcoef(np.arange(5), x)[0, 1] for x in centres.reshape(6, 5)]
    assert maths.diagonality(pattern).ravel() == pytest.approx(wanted, abs=1e-12)
    entropy = -(pattern * np.log(pattern)).sum(axis=-1) / np.log(7)
    assert maths.evenness(pattern) == pytest.approx(entropy, abs=1e-12)
