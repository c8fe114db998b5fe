"""Texts that are already cut into words: encoded word by word, alone, in batches and in pairs."""

import re

import classifiers
import numpy as np
import pytest

import minitx
from minitx.analysis import __main__ as cli

WORDS = ["The", "unhappiness", "ran", "."], ["Dogs", "jumped"]


@pytest.fixture(scope="module", params=["tiny-bert", "tiny-gpt2"])
def model(request):
    return minitx.load(request.param)


def test_a_batch_of_words_has_the_ids_of_each_text(model):
    batch = model.encode([*WORDS], is_split_into_words=True)
    for row, valid, words in zip(batch.tokens, batch.valid, WORDS):
        assert row[valid].tolist() == model.tokenizer.encode(words).tolist()


def test_words_of_a_pair_have_its_types(model):
    batch = model.encode([WORDS], is_split_into_words=True)
    assert batch.tokens[0].tolist() == model.tokenizer.encode(*WORDS).tolist()
    if batch.types is not None:
        untyped = len(model.tokenizer.encode(WORDS[0]))
        assert np.flatnonzero(batch.types[0])[0] == untyped


@pytest.mark.parametrize("wrong", [["a text"], [[]], [("one", ["two"])], [(["one"], "two")]])
def test_what_is_no_list_of_words_is_refused(model, wrong):
    message = "a word is|with is_split_into_words each text is a list of words"
    with pytest.raises(ValueError, match=message):
        model.encode(wrong, is_split_into_words=True)


def test_a_trace_of_words_has_a_class_for_each_word(capsys, tmp_path):
    folder = classifiers.write(tmp_path / "token", "token", ("noun", "verb", "other"))
    model = minitx.load(folder)
    words = WORDS[0]
    assert cli.main(["trace", str(folder), " ".join(words), "--split", "--keep", "logits"]) == 0
    lines = [x for x in capsys.readouterr().out.splitlines() if re.match(r" +-?\d+\.\d{4}  ", x)]
    batch = model.encode([words], is_split_into_words=True)
    y = minitx.run(model, batch.tokens, "logits", types=batch.types)["logits"][0]
    numbers = model.tokenizer.word_numbers(words).tolist()
    assert len(numbers) > len(words) + 2  # one has several tokens
    first = [numbers.index(n) for n in range(len(words))]
    assert [float(x.split()[0]) for x in lines] == pytest.approx(y[first].max(axis=1), abs=1e-4)
    assert [x.split()[2].rstrip(":") for x in lines] == words


def test_words_are_of_a_single_text(capsys):
    assert cli.main(["trace", "tiny-bert", "a b", "--split", "--second", "c"]) == 2
    assert "--split is for a single text" in capsys.readouterr().err
