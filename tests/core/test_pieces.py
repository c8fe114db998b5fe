"""Text of Marian, T5 and BART: ids as the reference library gives them, for source and target.

golden/pieces holds small tokenizers, 320 sentences and the library's ids (tools/make_pieces.py).
"""

import importlib.util
import json
import re
import shutil
import sys

import make_pieces
import numpy as np
import pytest
import standins

import minitx
from minitx.words import pieces
from minitx.words.text import Tokenizer, of_stacks

GOLDEN = make_pieces.HERE
needs_package = pytest.mark.skipif(
    not importlib.util.find_spec("sentencepiece"),
    reason=f"sentencepiece is not installed: {pieces.EXTRA}",
)
VARIANTS = [
    pytest.param(name, marks=() if name in ("bart", "t5-json") else needs_package)
    for name in make_pieces.VARIANTS
]


def golden(name):
    """A tokenizer, its sentences, and the library's ids of them."""
    folder, is_target = make_pieces.VARIANTS[name]
    tokenizer = Tokenizer(GOLDEN / folder, folder, target=is_target)
    file = GOLDEN / ("targets.txt" if is_target else "sources.txt")
    texts = file.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    with np.load(GOLDEN / "ids.npz") as arrays:
        ends = np.cumsum(arrays[f"{name}_lengths"], dtype=int)[:-1]
        expected = np.split(arrays[name], ends)
    assert len(texts) == len(expected) == 320
    return tokenizer, texts, expected


def standin(folder, repo, **settings):
    """A model as in one of the hub's folders; settings: instead of those of its tokenizer."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in standins.files(repo).items():
        (folder / name).write_bytes(data)
    if settings:
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


# --- equal to the reference library


@pytest.mark.parametrize("name", VARIANTS)
def test_the_ids_of_320_sentences_are_the_reference_library_s(name):
    tokenizer, texts, expected = golden(name)
    unequal = [
        text
        for text, ids in zip(texts, expected)
        if not np.array_equal(tokenizer.encode(text), ids)
    ]
    # a sign for a blank that a text brings along is cut otherwise by the library's T5
    compared = [text for text in texts if name != "t5" or "▁" not in text]
    assert len(compared) > 310 and not {*unequal} & {*compared}
    unknown = np.mean(np.concatenate(expected) == tokenizer.encode("<unk>", special=False)[0])
    assert unknown < 0.06  # a vocabulary in which all is unknown would prove nothing


@pytest.mark.parametrize("name", ["bart", "t5-json"])
def test_what_needs_no_extra_is_read_without_it(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    tokenizer, texts, expected = golden(name)
    assert tokenizer.encode(texts[1]).tolist() == expected[1].tolist()
    assert tokenizer.packages == ("tokenizers",)


@pytest.mark.parametrize("name", [p for p in VARIANTS if p.values[0] != "separate"])
def test_the_text_of_ids_is_the_reference_library_s(name):
    tokenizer, _, expected = golden(name)
    decoded = json.loads((GOLDEN / "decoded.json").read_text(encoding="utf-8"))[name]
    assert [tokenizer.decode(ids) for ids in expected[::3]] == decoded


# --- source and target


@needs_package
def test_source_and_target_have_models_and_vocabularies_of_their_own():
    source, target = of_stacks(GOLDEN / "separate", "marian")
    text = "Ein Frosch"
    of_source, of_target = (t.pieces(t.encode(text)) for t in (source, target))
    assert of_source == "▁E in ▁ F ro s ch </s>".split()
    assert of_target == "▁ E in ▁Fr o sch </s>".split()
    ids = target.encode(text)
    assert target.decode(ids) == text != source.decode(ids)
    shared = of_stacks(GOLDEN / "marian", "marian")
    assert shared[0].pieces([7]) == shared[1].pieces([7])
    assert shared[0].encode(text).tolist() != shared[1].encode(text).tolist()
    t5 = of_stacks(GOLDEN / "t5", "t5")
    assert t5[0] is t5[1]


@needs_package
@pytest.mark.parametrize("text", [">>fra<< A dog", ">>fra<<A dog"])
def test_a_language_in_front_of_a_source_is_one_token(text):
    source, _ = of_stacks(GOLDEN / "marian", "marian")
    own = source.pieces(source.encode(text))
    assert own[0] == ">>fra<<" and own[-1] == "</s>" and own[1] == "▁A"
    assert source.encode(text).tolist()[0] == 2
    assert ">>fra<<" not in source.pieces(source.encode(f"A {text}"))  # in front only
    assert source.pieces(source.encode(">>xyz<< A"))[0] == "<unk>"
    plain = Tokenizer(GOLDEN / "t5", "t5")
    assert ">>fra<<" not in plain.pieces(plain.encode(text))


@needs_package
def test_a_marian_model_reads_and_says_by_its_own_tokenizers(tmp_path):
    model = minitx.load(standin(tmp_path, standins.MARIAN), dtype=np.float64)
    source, target = of_stacks(tmp_path, "marian")
    text, other = "I am a frog.", "Ein Frosch schläft."
    trace = minitx.run(model, other, source=text, keep=["cross_pattern"])
    assert trace.source[0].tolist() == source.encode(text).tolist()
    assert trace.source_labels[0].tolist() == source.pieces(source.encode(text))
    # the start token is the padding; the end token is not read
    assert trace.labels[0].tolist() == ["<pad>", *target.pieces(target.encode(other))[:-1]]
    assert trace.labels[0].tolist() != ["<pad>", *source.pieces(source.encode(other))[:-1]]
    assert model.encode([text]).tokens.tolist() == trace.source.tolist()
    ids = minitx.generate(model, other, 3, source=text)
    start = model.config.start_id, *target.encode(other)[:-1]
    assert tuple(ids[: len(start)]) == start
    assert model.tokenizer.decode(ids[: len(start)]) == other


@needs_package
def test_labels_of_separate_vocabularies(tmp_path):
    """Ids of source and target mean other pieces: each row's labels are those of its own side."""
    for name in ("source.spm", "target.spm", "vocab.json", "target_vocab.json"):
        shutil.copy(GOLDEN / "separate" / name, standin(tmp_path, standins.MARIAN) / name)
    (tmp_path / "tokenizer_config.json").write_text('{"separate_vocabs": true}')
    model = minitx.load(tmp_path)
    trace = minitx.run(model, [5, 40, 41], source=[5, 40, 41], keep=["cross_pattern"])
    source, target = of_stacks(tmp_path, "marian")
    assert trace.labels[0].tolist() == target.pieces([5, 40, 41])
    assert trace.source_labels[0].tolist() == source.pieces([5, 40, 41])
    assert trace.labels[0].tolist() != trace.source_labels[0].tolist()


def test_a_tokenizer_json_reads_both_sides_unless_their_vocabularies_differ(tmp_path):
    folder = standin(tmp_path, standins.MARIAN)
    shutil.copy(GOLDEN / "t5-json" / "tokenizer.json", folder)
    source, target = of_stacks(folder, "marian")
    assert source is target and source.packages == ("tokenizers",)
    assert source.decode(source.encode("A dog")) == "A dog"
    standin(tmp_path, standins.MARIAN, separate_vocabs=True)
    source, target = of_stacks(folder, "marian")
    assert source.packages == ("tokenizers",)
    assert target.packages == ("tokenizers", "sentencepiece")


def test_spans_are_those_of_a_text_or_refused():
    """Pieces that another package cuts do not say where they stand."""
    t5 = Tokenizer(GOLDEN / "t5-json", "t5")
    text = "I am  ﬁne"
    own = [text[first:end] for first, end in t5.spans(text)]
    assert own == ["I", "a", "m", "ﬁ", "ﬁn", "e", ""]
    message = "sentencepiece tokenizes the texts of .*t5, and provides no offsets; spans needs"
    with pytest.raises(ValueError, match=message):
        Tokenizer(GOLDEN / "t5", "t5").spans(text)


# --- T5


@pytest.mark.parametrize("kind", [pytest.param("t5", marks=needs_package), "t5-json"])
def test_t5_ends_a_text_and_has_100_pieces_for_spans(kind):
    t5 = Tokenizer(GOLDEN / kind, "t5")
    assert t5.encode("a dog")[-1] == 1 and t5.encode("a dog", special=False)[-1] != 1
    assert t5.encode("a", "dog").tolist() == [*t5.encode("a"), *t5.encode("dog")]
    ids = t5.encode("The <extra_id_0> walks in <extra_id_1>.")
    places = np.flatnonzero(ids >= 400)
    assert ids[places].tolist() == [499, 498]  # counted from the end
    assert [t5.pieces(ids)[i] for i in places] == ["<extra_id_0>", "<extra_id_1>"]
    assert t5.pieces([400]) == ["<extra_id_99>"]
    assert t5.decode(ids) == "The walks in ." and "<extra_id_0>" in t5.decode(ids, special=True)


@needs_package
def test_a_folder_says_how_many_pieces_for_spans_there_are(tmp_path):
    shutil.copy(GOLDEN / "t5" / "spiece.model", tmp_path)
    (tmp_path / "tokenizer_config.json").write_text('{"extra_ids": 3}')
    assert Tokenizer(tmp_path, "t5").pieces([399, 400, 402, 403])[1:] == [
        "<extra_id_2>",
        "<extra_id_0>",
        "<403>",
    ]


def test_a_text_longer_than_t5_was_trained_on_is_read(tmp_path):
    """It has no table of positions, so no text is too long."""
    model = minitx.load(standin(tmp_path, standins.T5))
    batch = model.encode(["a dog " * 400])
    assert batch.tokens.shape[1] > model.config.n_ctx == 512


# --- what is missing


def test_without_the_extra_ids_run_and_an_error_names_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    model = minitx.load(standin(tmp_path, standins.MARIAN))
    trace = minitx.run(model, [model.config.start_id, 5], source=[5, 6, 0], keep=["logits"])
    assert np.isfinite(trace["logits"]).all()
    assert minitx.generate(model, n=3, source=[5, 6, 0]).shape == (4,)
    command = "pip install 'minitx[sentencepiece]'; or pass token ids instead of text"
    message = f"source.spm is a SentencePiece model, which .* sentencepiece: .*{re.escape(command)}"
    with pytest.raises(ValueError, match=message):
        minitx.run(model, None, source="A dog")
    with pytest.raises(ValueError, match="target.spm is a SentencePiece model"):
        minitx.run(model, "Ein Hund", source=[5, 6, 0])
    with pytest.raises(ValueError, match="spiece.model is a SentencePiece model"):
        Tokenizer(GOLDEN / "t5", "t5").encode("A dog")


@needs_package
def test_a_model_that_is_none(tmp_path):
    (tmp_path / "spiece.model").write_bytes(b"not a model")
    with pytest.raises((ValueError, OSError)):
        Tokenizer(tmp_path, "t5").encode("A dog")


@needs_package
@pytest.mark.parametrize("missing", ["target_vocab.json", "target.spm"])
def test_a_folder_that_lacks_a_part(tmp_path, missing):
    for file in (GOLDEN / "separate").iterdir():
        shutil.copy(file, tmp_path)
    (tmp_path / missing).unlink()
    with pytest.raises(FileNotFoundError, match="target_vocab.json|source.spm and target.spm"):
        Tokenizer(tmp_path, "marian", target=True).encode("Ein Frosch")


def test_the_packages_that_ids_depend_on_are_known():
    assert Tokenizer(GOLDEN / "marian", "marian").packages == ("tokenizers", "sentencepiece")
    assert Tokenizer(GOLDEN / "bart", "bart").packages == ("tokenizers",)
