"""What a model reads where no text is named: tiny-bart dates, all others the sample."""

import pytest

import minitx
from minitx import analysis
from minitx.analysis import commands
from minitx.analysis.contract import own_texts
from minitx.analysis.texts import corpus, formats, pairs
from minitx.weights.training import train_induction


@pytest.fixture(scope="module")
def dates_model():
    return minitx.load("tiny-bart")


def own(name, model, **given):
    return own_texts.with_own(analysis.EXPERIMENTS[name], model, given)


def test_a_model_of_dates_reads_dates_unless_a_text_is_named(dates_model):
    assert own("alignment", dates_model) == {"pairs": "dates"}
    assert own("profiles", dates_model, documents=2) == {"text": "dates", "documents": 2}
    own_sentence = {"text": "dates", "sentence": own_texts.DATE}  # its pairs are words
    assert own("joint-space", dates_model) == own_sentence
    assert own("shapes", dates_model) == {"sentence": own_texts.DATE}
    assert own("singular-values", dates_model) == {}
    for given in ({"text": "sample"}, {"text": "mine.txt"}):
        assert own("alignment", dates_model, **given) == own("profiles", dates_model, **given)
        assert own("profiles", dates_model, **given) == given
    assert own("alignment", dates_model, pairs="mine.jsonl") == {"pairs": "mine.jsonl"}


def test_a_model_of_few_words_reads_rows_that_it_was_not_trained_on():
    model = minitx.load("tiny-induction")
    assert own("profiles", model) == {"text": "rows"}
    assert own("patch", model) == own("circuit", model) == {}  # random words said twice
    lines = [*formats.lines("rows")]
    words = train_induction.vocabulary()
    for i, line in enumerate(lines):
        tokens = train_induction.document(train_induction.DOCUMENTS + i, 0).tokens
        assert line == " ".join(words[token] for token in tokens)
    assert len(lines) == 200 and 0 not in model.tokenizer.encode(own_texts.ROW)
    result = analysis.run("profiles", model, documents=2)
    assert result.settings["text"]["name"] == "rows.txt"
    assert own_texts.SAID["rows"] in result.says


def test_pairs_of_a_model_of_dates_are_dates(dates_model):
    assert own("patch", dates_model) == own("circuit", dates_model) == {"pairs": "dates"}
    assert own("attribute", dates_model) == {"prompt": f"{own_texts.DATE}=>191"}
    assert own("patch", dates_model, pairs="mine.txt") == {"pairs": "mine.txt"}


def test_other_models_read_the_sample_and_a_sentence_of_words_that_they_have_whole(bundled):
    for name in analysis.EXPERIMENTS:
        assert own(name, bundled) in ({}, {"sentence": corpus.SENTENCE})
    assert own("joint-space", bundled)
    assert own("joint-space", bundled, sentence="A") == {"sentence": "A"}
    assert own_texts.says({"text": "sample", "pairs": ""}) == ""


def test_the_named_text_is_dates_that_no_model_was_trained_on():
    lines = [*formats.lines("dates")]
    assert lines == [pair.source for pair in pairs.pairs("dates", 400)]


@pytest.mark.usefixtures("empty_figures")
def test_alignment_is_of_dates_and_says_so(dates_model, tmp_path, capsys):
    """Measured: 99% of the steps of the best head on 20 dates, and 34% with places permuted."""
    given = ["run", "alignment", "tiny-bart", "--documents", "20", "--out", str(tmp_path)]
    assert commands.run_command(given) == 0
    out = capsys.readouterr().out
    assert own_texts.SAID["dates"] in out and "Yes: steps at which" in out
    result = analysis.run("alignment", dates_model, documents=20)
    assert result.settings["options"]["pairs"] == "dates"
    assert result.arrays["aligned_best"] > 0.9 > 2 * result.arrays["aligned_best_null"]


def test_the_sample_is_read_where_it_is_named(dates_model):
    result = analysis.run("profiles", dates_model, text="sample", documents=2)
    assert result.settings["options"]["text"] == "sample"
    assert own_texts.SAID["dates"] not in result.says
    result = analysis.run("profiles", dates_model, documents=2)
    assert result.settings["text"]["name"] == "dates.txt" and own_texts.SAID["dates"] in result.says
