"""Japanese text: ids as the reference library gives them, and what is said where MeCab is missing.

golden/japanese holds 1,000 sentences and the library's ids (tools/make_japanese.py).
"""

import importlib.util
import re
import sys

import make_japanese
import numpy as np
import pytest

from minitx.words import japanese
from minitx.words.text import Tokenizer

GOLDEN = make_japanese.HERE
PACKAGES = "fugashi", "ipadic"
needs_mecab = pytest.mark.skipif(
    not all(importlib.util.find_spec(package) for package in PACKAGES),
    reason=f"fugashi or ipadic is not installed: {japanese.EXTRA}",
)


def folder(tmp_path, kind="wordpiece", **settings):
    return make_japanese.tokenizer_folder(tmp_path, kind, **settings)


@pytest.fixture
def tokenizer(tmp_path):
    return Tokenizer(folder(tmp_path), "bert")


@needs_mecab
@pytest.mark.parametrize("variant", make_japanese.VARIANTS)
def test_the_ids_of_1000_sentences_are_the_reference_library_s(variant, tmp_path):
    kind, settings = make_japanese.VARIANTS[variant]
    tokenizer = Tokenizer(folder(tmp_path, kind, **settings), "bert")
    texts = (GOLDEN / "sentences.txt").read_text(encoding="utf-8").removesuffix("\n").split("\n")
    with np.load(GOLDEN / "ids.npz") as arrays:
        ends = np.cumsum(arrays[f"{variant}_lengths"], dtype=int)[:-1]
        expected = np.split(arrays[variant], ends)
    assert len(texts) == len(expected) == 1000
    unequal = [
        text
        for text, ids in zip(texts, expected)
        if not np.array_equal(tokenizer.encode(text), ids)
    ]
    assert unequal == []
    unknown = (np.concatenate(expected) == 1).mean()
    assert 0.01 < unknown < 0.05  # a vocabulary in which all is unknown would prove nothing


@needs_mecab
def test_words_come_first_then_pieces_and_there_and_back(tokenizer):
    ids = tokenizer.encode("\uff22\uff25\uff32\uff34の位置埋め込み[MASK]。")
    pieces = tokenizer.pieces(ids)
    assert (pieces[0], pieces[-3:]) == ("[CLS]", ["[MASK]", "。", "[SEP]"])
    assert "".join(pieces[1:-3]).replace("##", "") == "BERTの位置埋め込み"  # no wide letters
    assert tokenizer.decode(ids).endswith("の 位置 埋め込み 。")
    pair = tokenizer.encode("京都", "手紙")
    assert tokenizer.pieces(pair) == ["[CLS]", "京都", "[SEP]", "手", "##紙", "[SEP]"]


@needs_mecab
def test_settings_of_a_folder_are_followed(tmp_path):
    as_it_is = Tokenizer(folder(tmp_path / "a", mecab_kwargs={"normalize_text": False}), "bert")
    assert as_it_is.pieces(as_it_is.encode("\uff11", special=False)) == ["[UNK]"]  # a wide 1
    lower = Tokenizer(folder(tmp_path / "b", do_lower_case=True), "bert")
    cased = Tokenizer(folder(tmp_path / "c"), "bert")
    assert cased.encode("B").tolist() != cased.encode("b").tolist() == lower.encode("B").tolist()


def test_without_mecab_an_error_names_the_command_that_installs_it(tokenizer, monkeypatch):
    monkeypatch.setitem(sys.modules, "fugashi", None)
    message = "needs fugashi: python -m pip install 'minitx[japanese]'; or pass token ids"
    with pytest.raises(ValueError, match=re.escape(message)):
        tokenizer.encode("京都")


@needs_mecab
def test_another_dictionary_is_named_with_its_own_command(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "unidic_lite", None)
    settings = {"mecab_kwargs": {"mecab_dic": "unidic_lite"}}
    with pytest.raises(ValueError, match="needs unidic_lite: .* pip install fugashi unidic-lite"):
        Tokenizer(folder(tmp_path, **settings), "bert").encode("京都")


@pytest.mark.parametrize(
    "settings,message",
    [
        ({"word_tokenizer_type": "sudachi"}, "splits words with 'sudachi' into pieces"),
        ({"word_tokenizer_type": None}, "splits words with 'a tool it does not name'"),
        ({"subword_tokenizer_type": "sentencepiece"}, "into pieces by 'sentencepiece'"),
        ({"mecab_kwargs": {"mecab_dic": "jumandic"}}, "'jumandic'; available: ipadic, unidic_lite"),
    ],
)
def test_what_minitx_cannot_split_is_refused(tmp_path, settings, message):
    given = {"kind": settings.pop("subword_tokenizer_type", "wordpiece")} | settings
    with pytest.raises(ValueError, match=message):
        Tokenizer(folder(tmp_path, **given), "bert").encode("京都")


def test_the_packages_that_ids_depend_on_are_known(tmp_path, tokenizer):
    assert tokenizer.packages == ("tokenizers", "fugashi", "ipadic")
    (tmp_path / "tokenizer.json").write_text("{}")  # would be read instead
    assert tokenizer.packages == ("tokenizers",)
