"""Text to ids and back, from every form of tokenizer folder, on small tokenizers made here.

Where MINITX_DATA names a folder with real tokenizers, their published ids are checked too.
"""

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
import tiny
import tokenizer_folders
import tokenizers

import minitx
from minitx.loading.families import from_hf
from minitx.words.text import Tokenizer

TEXT = "Hello world, the tide had gone out and the boats came home. "
PIECES = (
    "[PAD] [UNK] [CLS] [SEP] [MASK] the tide had gone out ##s boat ##ed un ##real "
    "e l o ##l ##o h ##e . , cafe a ##b"
).split()


def byte_bpe(folder, special):
    """vocab.json and merges.txt, trained on one sentence, the special tokens first."""
    folder.mkdir(exist_ok=True)
    bpe = tokenizers.ByteLevelBPETokenizer()
    bpe.train_from_iterator(
        [TEXT] * 3, vocab_size=310, special_tokens=special.split(), show_progress=False
    )
    bpe.save_model(str(folder))
    return folder


def wordpiece(folder, *more, **settings):
    """vocab.txt, and a tokenizer_config.json if there are settings."""
    folder.mkdir(exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join([*PIECES, *more]) + "\n", encoding="utf-8")
    if settings:
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


def with_model(folder, variant):
    """A golden model with room for every id, in the folder of a tokenizer."""

    def widen(tensors):
        rng = np.random.default_rng(0)
        for name, x in tensors.items():
            if 61 in x.shape:
                tensors[name] = rng.normal(size=(400, *x.shape[1:])).astype(x.dtype)

    return minitx.load(tiny.make(folder, variant, widen, vocab_size=400), dtype=np.float64)


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory):
    return with_model(byte_bpe(tmp_path_factory.mktemp("gpt2"), "<|endoftext|>"), "gpt2-causal")


@pytest.fixture(scope="module")
def roberta(tmp_path_factory):
    folder = byte_bpe(tmp_path_factory.mktemp("roberta"), "<s> <pad> </s> <unk> <mask>")
    return with_model(folder, "roberta-masked")


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return with_model(wordpiece(tmp_path_factory.mktemp("bert")), "bert-masked")


def tokens_of(tokenizer, *text):
    return [tokenizer._tokenizer.id_to_token(i) for i in tokenizer.encode(*text)]


# --- what each family adds


def test_gpt2_adds_nothing(gpt2):
    ids = gpt2.tokenizer.encode("Hello world<|endoftext|>Hello")
    assert gpt2.tokenizer.pieces(ids) == ["Hello", " world", "<|endoftext|>", "Hello"]
    assert ids.dtype.kind == "i" and ids[2] == 0
    assert gpt2.encode(["Hello"]).types is None  # type 0 would add a word embedding


def test_roberta_adds_its_ends_and_mask_swallows_the_space_before_it(roberta):
    t = roberta.tokenizer
    first = ["<s>", "Hello", "Ġthe", "</s>"]
    assert tokens_of(t, "Hello the") == first
    assert tokens_of(t, "Hello the", "Hello") == [*first, "</s>", "Hello", "</s>"]
    assert tokens_of(t, "Hello <mask> out") == ["<s>", "Hello", "<mask>", "Ġout", "</s>"]
    assert t.pieces(t.encode("Hello <mask> out")) == ["<s>", "Hello", "<mask>", " out", "</s>"]
    assert t.encode("the", special=False).tolist() == t.encode("the")[1:-1].tolist()
    batch = roberta.encode([("Hello", "the")])
    assert not batch.types.any() and batch.tokens[0, 0] == 0 and batch.tokens[0, -1] == 2


def test_bert_pairs_have_two_types(bert):
    t = bert.tokenizer
    expected = "[CLS] the tide ##s [SEP] boat ##ed [SEP]".split()
    assert tokens_of(t, "the tides", "boated") == expected
    batch = bert.encode([("the tides", "boated"), "the"])
    assert batch.types.tolist() == [[0, 0, 0, 0, 0, 1, 1, 1], [0] * 8]
    assert t.pieces(t.encode("the unreal x")) == ["[CLS]", "the", "un", "##real", "[UNK]", "[SEP]"]
    assert t.decode(t.encode("the tides [MASK].")) == "the tides."
    assert t.pieces([4, 99_999]) == ["[MASK]", "<99999>"]


def test_a_pair_takes_no_type_that_the_model_lacks(tmp_path):
    """RoBERTa has one token type, whatever the tokenizer beside it says of a pair's second text."""
    config = from_hf(tiny.config("roberta-masked"))
    folder = wordpiece(tmp_path)
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer"}')
    batch = Tokenizer(folder, "roberta").batch([("the", "tide")], config)
    assert batch.tokens.shape == (1, 5) and not batch.types.any()


# --- there and back


def test_deberta_has_the_ends_of_its_own_vocabulary(tmp_path):
    """As the reference library 5.23: two separators between texts; the mask swallows no space."""
    t = Tokenizer(byte_bpe(tmp_path, "[PAD] [CLS] [SEP] [UNK] [MASK]"), "deberta")
    ids = t.encode("Hello [MASK] the")
    assert (ids[0], ids[-1]) == (1, 2) and 4 in ids
    assert t.pieces(ids)[-4:] == [" ", "[MASK]", " the", "[SEP]"]
    pair = t.encode("Hello", "the").tolist()
    assert pair.count(2) == 3 and pair[0] == 1
    (tmp_path / "v2").mkdir()
    (tmp_path / "v2" / "spm.model").write_bytes(b"x")
    with pytest.raises(FileNotFoundError, match="has spm.model, the pieces of a DeBERTa v2, which"):
        Tokenizer(tmp_path / "v2", "deberta-v2").encode("Hello")


@pytest.mark.parametrize(
    "text",
    ["Hello world, the tide", " two  spaces\n\tand\r a tab ", "日本語 é ñ 🌊 ß", "", "\u200b\x00x"],
)
def test_byte_level_text_comes_back(gpt2, roberta, text):
    for model in (gpt2, roberta):
        ids = model.tokenizer.encode(text)
        assert model.tokenizer.decode(ids) == text
    assert roberta.tokenizer.decode(ids, special=True) == f"<s>{text}</s>"


def test_a_character_that_is_split_over_tokens(gpt2):
    t = gpt2.tokenizer
    ids = t.encode("a日")
    assert len(ids) == 4 and t.decode(ids) == "a日"
    labels = t.pieces(ids)
    assert len(labels) == 4 and labels[0] == "a"
    assert labels[1:] == ["日 1/3", "日 2/3", "日 3/3"]
    assert t.pieces(ids[2:3]) == ["<0x97>"]  # of no whole letter
    assert "".join(t.pieces(t.encode(TEXT))) == TEXT
    assert t.pieces(np.array([[5], [6]])) == t.pieces([5, 6])
    assert t.decode(np.int64(40)) == t.pieces([40])[0]


def test_files_that_do_not_say_their_class_are_refused(tmp_path):
    folder = byte_bpe(tmp_path, "<|endoftext|>")
    for model_type in ("bloom", "phi3", "falcon", "llama"):
        with pytest.raises(ValueError, match="vocab.json and merges.txt, which do not say how wor"):
            Tokenizer(folder, model_type).encode("the")
    message = "has a vocab.txt alone, but is no BERT .model_type 'gpt2'"
    with pytest.raises(ValueError, match=message):
        Tokenizer(wordpiece(tmp_path / "other"), "gpt2").encode("the")


# --- forms of folders


def test_truncation_and_padding_inside_a_tokenizer_json_are_off(bert, tmp_path):
    vocab = str(bert.tokenizer.folder / "vocab.txt")
    inner = tokenizers.BertWordPieceTokenizer.from_file(vocab)
    inner.enable_truncation(4)
    inner.enable_padding(length=20)
    inner.save(str(tmp_path / "tokenizer.json"))
    assert json.loads((tmp_path / "tokenizer.json").read_text())["truncation"]["max_length"] == 4
    t = Tokenizer(tmp_path, "bert")
    for text in ("the tide had gone out the tide had gone out", "the"):
        assert t.encode(text).tolist() == bert.tokenizer.encode(text).tolist()


@pytest.mark.parametrize("text", ["Hello the <mask> world", "Ünï日", "the\nboats"])
@pytest.mark.parametrize(
    "special,family", [("<|endoftext|>", "gpt2"), ("<s> <pad> </s> <unk> <mask>", "roberta")]
)
def test_a_tokenizer_json_of_the_same_vocabulary_agrees(tmp_path, text, special, family):
    """The old form of a folder, saved in the new form, gives the same ids; the new one is read."""
    old = Tokenizer(byte_bpe(tmp_path, special), family)
    ids = old.encode(text).tolist()
    old._tokenizer.save(str(tmp_path / "tokenizer.json"))
    for name in ("vocab.json", "merges.txt"):
        (tmp_path / name).write_text("not read")
    assert Tokenizer(tmp_path, family).encode(text).tolist() == ids


@pytest.mark.parametrize(
    "more,pieces", [((), ["the", "cafe"]), (("The", "Café"), ["The", "Café"])], ids=range(2)
)
def test_cased_or_not(tmp_path, more, pieces):
    """Where no setting says it, of which test_tokenizer_settings.py has each."""
    t = Tokenizer(wordpiece(tmp_path, *more), "bert")
    assert tokens_of(t, "The Café")[1:-1] == pieces


@pytest.mark.parametrize(
    "file,settings",
    [
        ("tokenizer_config.json", dict(do_lower_case=False, word_tokenizer_type="jumanpp")),
        ("tokenizer_config.json", dict(tokenizer_class="BertJapaneseTokenizer")),
        # the older folders say it here alone
        ("config.json", dict(tokenizer_class="BertJapaneseTokenizer")),
    ],
    ids=range(3),
)
def test_tokenizers_that_split_words_by_other_programs_are_refused(tmp_path, file, settings):
    (wordpiece(tmp_path, do_lower_case=False) / file).write_text(json.dumps(settings))
    with pytest.raises(ValueError, match="splits words with.* pass token ids instead of text"):
        Tokenizer(tmp_path, "bert").encode("the")


def test_a_folder_without_tokenizer_runs_on_ids_and_says_so_on_text(tmp_path):
    model = minitx.load(tiny.make(tmp_path, "bert-masked"))
    assert minitx.forward(model, [5, 6]).shape == (1, 2, 18)
    message = "no tokenizer in .*: wanted tokenizer.json, .*; available: config.json"
    for call in (
        lambda: minitx.run(model, "a text"),
        lambda: minitx.cost(model, "a text"),
        lambda: model.encode(["a text"]),
        lambda: model.tokenizer.pieces([1]),
    ):
        with pytest.raises(FileNotFoundError, match=message):
            call()


def test_a_tokenizer_json_that_is_none(tmp_path):
    for text in ("{", "[]", '{"model": {"type": "Unheard"}}'):
        (tmp_path / "tokenizer.json").write_text(text)
        message = f"the tokenizer in {re.escape(str(tmp_path))} does not load: ."
        with pytest.raises(ValueError, match=message):
            Tokenizer(tmp_path, "bert").encode("the")


def of_parts(folder, **parts):
    """A tokenizer.json of BERT with parts in place of its own."""
    whole = json.loads(tokenizer_folders.bert_json()["tokenizer.json"]) | parts
    (folder / "tokenizer.json").write_text(json.dumps(whole), encoding="utf-8")
    return Tokenizer(folder, "bert")


def test_what_the_tokenizers_package_did_not_expect_is_an_error_with_the_folder(tmp_path, capfd):
    """Its PanicException is no Exception: it went through every `except` and ended a report."""
    charsmap = {"type": "Precompiled", "precompiled_charsmap": "EAAAAP////////////////8="}
    with pytest.raises(ValueError, match="the tokenizer in .* does not load: ."):
        of_parts(tmp_path, normalizer=charsmap).encode("the")
    nothing_long = {"type": "FixedLength", "length": 0}  # unknown to tokenizers 0.20
    with pytest.raises(ValueError, match="the tokenizer in .* does not (read this text|load): ."):
        of_parts(tmp_path, pre_tokenizer=nothing_long).encode("the")
    unknown = {"type": "WordLevel", "vocab": {"the": 0}, "unk_token": "nowhere"}
    with pytest.raises(ValueError, match="the tokenizer in .* does not read this text: "):
        of_parts(tmp_path, model=unknown).encode("tide")
    with pytest.raises(ValueError, match="the tokenizer in .* does not decode: "):
        of_parts(tmp_path).decode([1 << 40])
    capfd.readouterr()  # the package prints a line of its own


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a system without pipes in folders")
@pytest.mark.parametrize("name", ["tokenizer.json", "vocab.txt", "spiece.model"])
def test_a_pipe_in_place_of_a_file_is_not_waited_for(tmp_path, name):
    os.mkfifo(tmp_path / name)
    with pytest.raises(FileNotFoundError, match=f"no tokenizer in .*available: {name}"):
        Tokenizer(tmp_path, "bert").encode("the")


def test_a_vocabulary_that_is_not_utf8_is_named(tmp_path):
    wordpiece(tmp_path)
    with open(tmp_path / "vocab.txt", "ab") as file:
        file.write(b"\xe9\n")
    with pytest.raises(ValueError, match=r"vocab.txt is not valid UTF-8: byte \d+ \("):
        Tokenizer(tmp_path, "bert").encode("the")


def test_a_vocabulary_that_would_fill_the_memory_is_refused(tmp_path):
    """Each of its lines becomes an object of Python's."""
    wordpiece(tmp_path)
    with open(tmp_path / "vocab.txt", "ab") as file:
        file.write(b"a\n" * (1 << 22))
    with pytest.raises(ValueError, match=r"vocab.txt has 8\d+ bytes; wanted at most 8388608"):
        Tokenizer(tmp_path, "bert").encode("the")


@pytest.mark.parametrize(
    "given,message",
    [
        ("\ud83d a cut emoji", r"text has '\\ud83d' at character 0: half of a character"),
        (["the", "a\udc80"], r"text has '\\udc80' at character 1: half of a character"),
        ([("the", "\ud800")], "half of a character"),
        (["the", 5], "text is 5; wanted a text"),
        ([("the", 5.0)], "text is 5.0; wanted a text"),
        ([("the", "tide", "out")], "a pair of texts is .*; wanted two"),
    ],
    ids=range(6),
)
def test_what_is_no_text_is_said(bert, given, message):
    """These were a TypeError of the tokenizers package: TextInputSequence must be str."""
    for call in (minitx.run, minitx.cost):
        with pytest.raises(ValueError, match=message):
            call(bert, given)


def test_ids_may_be_rows_of_tuples(bert):
    rows = [(5, 6), (7, 8)]
    assert np.array_equal(minitx.forward(bert, rows), minitx.forward(bert, np.array(rows)))
    of_tuples, of_lists = (minitx.run(bert, x)["logits"] for x in (rows, [[5, 6], [7, 8]]))
    assert np.array_equal(of_tuples, of_lists)


# --- batches


@pytest.mark.parametrize("name", ["gpt2", "roberta", "bert"])
def test_a_batch_of_texts_is_each_text_alone(request, name):
    model = request.getfixturevalue(name)
    texts = ["the tide had", "the", "tide out the tide"]
    alone = [minitx.run(model, text) for text in texts]
    last = "ln_final" if model.config.pre_norm else ("resid_post", 1)
    for pad in ("right", "left"):
        batch = model.encode(texts, pad=pad)
        assert (batch.tokens[~batch.valid] == model.config.pad_id).all()
        x = minitx.forward(model, batch.tokens, valid=batch.valid, types=batch.types)
        for i, trace in enumerate(alone):
            valid = batch.valid[i]
            text = valid[::-1] if pad == "left" else valid
            assert text[: valid.sum()].all()
            assert (batch.tokens[i][valid] == model.tokenizer.encode(texts[i])).all()
            np.testing.assert_allclose(x[i][valid], trace[last][0], rtol=0, atol=1e-12)
    whole = minitx.run(model, texts, ["logits"])
    batch = model.encode(texts)
    assert (whole.valid == batch.valid).all()
    assert (whole.tokens == batch.tokens).all()
    assert minitx.cost(model, texts, ["logits"]) == whole.nbytes


def test_texts_can_be_continued(gpt2):
    texts = ["the tide", "out"]
    rows = minitx.generate(gpt2, texts, 3)
    for text, row in zip(texts, rows):
        ids = gpt2.tokenizer.encode(text)
        assert row.tolist() == minitx.generate(gpt2, ids, 3).tolist()
        assert row.tolist() == minitx.generate(gpt2, text, 3).tolist()
        assert len(row) == len(ids) + 3


def test_texts_that_are_refused(gpt2, bert):
    long = " the tide had gone out" * 4
    with pytest.raises(ValueError, match=r"text 1 is 20 tokens long; this model reads at most 12"):
        gpt2.encode(["the", long])
    with pytest.raises(ValueError, match="text 0 is 22 tokens long; this model reads at most 12"):
        minitx.run(bert, long)
    with pytest.raises(ValueError, match="20 tokens and 1 new ones; this model reads at most 12"):
        minitx.generate(gpt2, long, 1)
    for texts in ([], (), "the"):
        with pytest.raises(ValueError, match="texts is .*; wanted a list of at least one text"):
            bert.encode(texts)
    with pytest.raises(ValueError, match="pad is 'middle'; wanted 'left' or 'right'"):
        bert.encode(["the"], pad="middle")
    for call in (lambda: minitx.run(gpt2, ""), lambda: minitx.generate(gpt2, "", 2)):
        with pytest.raises(ValueError, match="at least one token"):
            call()
    assert minitx.run(bert, "", ["embed"]).tokens.tolist() == [[2, 3]]  # [CLS] [SEP]


# --- real tokenizers

REAL = Path(os.environ.get("MINITX_DATA", "nowhere")) / "tokenizers"
needs_real = pytest.mark.skipif(
    not REAL.is_dir(), reason="MINITX_DATA does not name a folder with real tokenizers"
)


@needs_real
@pytest.mark.parametrize(
    "folder,family,text,ids",
    [
        ("gpt2", "gpt2", "Hello", [15496]),
        ("gpt2", "gpt2", "<|endoftext|>", [50256]),
        ("roberta-base", "roberta", "Hello world,", [0, 31414, 232, 6, 2]),
        ("roberta-base", "roberta", "a <mask>", [0, 102, 50264, 2]),
        (
            "bert-base-uncased",
            "bert",
            "Hello, my dog is cute",
            [101, 7592, 1010, 2026, 3899, 2003, 10140, 102],
        ),
    ],
)
def test_published_ids(folder, family, text, ids):
    assert Tokenizer(REAL / folder, family).encode(text).tolist() == ids


@needs_real
def test_real_pieces():
    bert = Tokenizer(REAL / "bert-base-uncased", "bert")
    assert len(bert.encode("Capybara", special=False)) == 3
    pieces = bert.pieces(bert.encode("CAPYBARA", special=False))
    assert "".join(pieces).replace("##", "") == "capybara"
    gpt2 = Tokenizer(REAL / "gpt2", "gpt2")
    roberta = Tokenizer(REAL / "roberta-base", "roberta")
    assert gpt2.pieces(gpt2.encode(TEXT)) == roberta.pieces(roberta.encode(TEXT, special=False))
    assert gpt2.decode(gpt2.encode("日本 é")) == "日本 é"
    assert from_hf(tiny.config("roberta-masked")).pad_id == 1
    assert roberta.encode("<pad>", special=False)[0] == 1


def test_rows_of_different_lengths_are_decoded_one_by_one():
    tokenizer = minitx.load("tiny-stories").tokenizer
    with pytest.raises(ValueError, match="rows of different lengths; expected those of one text"):
        tokenizer.decode([[1, 2], [3]])
