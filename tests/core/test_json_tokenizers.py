"""Tokenizers of Llama, Qwen and ModernBERT kind, made here: what tokenizer.json says counts.

Ids are compared with the `tokenizers` package on the same file. The reference library 5.23 gives
the same for all of them. A Llama whose settings name the class LlamaTokenizer is another one: that
class cuts blanks by its own rule, and gives one "▁" less where a text begins with a blank, or a
word follows a special token (test_tokenizer_settings.py).
"""

import json
import shutil

import numpy as np
import pytest
import tiny
import tokenizers
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors

import minitx
from minitx.words.text import Tokenizer

# The pattern by which Llama 3 and Qwen cut a text into words.
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
TEXTS = [
    *("The cat, the  hat.", " blank first", "Café naïve", "日本 🙂", "cafe\u0301", "12345 + 67"),
    *("one\ntwo\n\n", "It's I'LL", "a <s> b</s>", "x <|im_end|>", "the [MASK] hat", ""),
]


def pieces(words, first):
    """A vocabulary and merges in which each word is built from the left."""
    vocab, merges = {token: i for i, token in enumerate(first)}, []
    for word in words:
        for i in range(1, len(word)):
            pair = word[:i], word[i]
            for piece in (*pair, word[: i + 1]):
                vocab.setdefault(piece, len(vocab))
            if pair not in merges:
                merges.append(pair)
    return vocab, merges


def llama():
    """SentencePiece: a blank is a piece's first character, unknown characters are bytes."""
    first = ["<unk>", "<s>", "</s>", *(f"<0x{i:02X}>" for i in range(256))]
    vocab, merges = pieces(["▁the", "▁cat", "▁hat", "▁blank"], first)
    bpe = models.BPE(vocab, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    tokenizer = tokenizers.Tokenizer(bpe)
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    strip = decoders.Strip(" ", 1, 0)
    parts = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), strip]
    tokenizer.decoder = decoders.Sequence(parts)
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    tokenizer.post_processor = template("<s> {}", {"<s>": 1})
    return tokenizer


def of_bytes(special):
    """Byte-level BPE of words that a pattern cuts out, and special tokens."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab, merges = pieces(["Ġthe", "Ġcat", "The", "Ġhat"], [*special, *letters])
    tokenizer = tokenizers.Tokenizer(models.BPE(vocab, merges))
    split = pre_tokenizers.Split(tokenizers.Regex(SPLIT), "isolated")
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, level])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(special)
    return tokenizer


def llama3():
    """Of bytes, with a first token."""
    tokenizer = of_bytes(["<|begin_of_text|>", "<|end_of_text|>"])
    begin = template("<|begin_of_text|> {}", {"<|begin_of_text|>": 0})
    level = processors.ByteLevel(trim_offsets=False)
    tokenizer.post_processor = processors.Sequence([level, begin])
    return tokenizer


def qwen():
    """Of bytes, composed characters (NFC), nothing around a text."""
    tokenizer = of_bytes(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    tokenizer.normalizer = normalizers.NFC()
    return tokenizer


def modernbert():
    """Of bytes, with BERT's ends, and a mask that takes the blank before it."""
    tokenizer = of_bytes(["[CLS]", "[SEP]", "[PAD]", "[UNK]"])
    tokenizer.add_special_tokens([AddedToken("[MASK]", lstrip=True)])
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.post_processor = template("[CLS] {} [SEP]", {"[CLS]": 0, "[SEP]": 1})
    return tokenizer


def template(text, numbers):
    """What stands around a text; {} is the text."""
    return processors.TemplateProcessing(text.format("$A"), None, list(numbers.items()))


LLAMA = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
SETTINGS = {  # name -> maker, model type, tokenizer_config.json
    "llama": (llama, "llama", LLAMA | {"tokenizer_class": "PreTrainedTokenizerFast"}),
    "mistral": (llama, "mistral", LLAMA | {"add_bos_token": True, "legacy": False}),
    "llama3": (llama3, "llama", {"tokenizer_class": "PreTrainedTokenizerFast"}),
    "qwen": (
        qwen,
        "qwen2",
        {"tokenizer_class": "Qwen2Tokenizer", "add_prefix_space": False, "errors": "replace"}
        | {"eos_token": "<|im_end|>", "additional_special_tokens": ["<|im_start|>"]},
    ),
    "modernbert": (
        modernbert,
        "modernbert",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "cls_token": "[CLS]",
            "mask_token": "[MASK]",
        },
    ),
}


def write(folder, name):
    """A folder with the tokenizer of that name -> it as the `tokenizers` package reads it."""
    make, model_type, settings = SETTINGS[name]
    make().save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    (folder / "config.json").write_text(json.dumps({"model_type": model_type}))
    return tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))


@pytest.mark.parametrize("name", SETTINGS)
def test_ids_are_those_of_the_tokenizers_package(tmp_path, name):
    package, ours = write(tmp_path, name), Tokenizer(tmp_path, SETTINGS[name][1])
    for text in TEXTS:
        ids = ours.encode(text)
        assert ids.tolist() == package.encode(text).ids, text
        assert ours.decode(ids) == package.decode(ids.tolist()), text
        bare = ours.encode(text, special=False).tolist()
        assert bare == package.encode(text, add_special_tokens=False).ids, text
        assert len(ours.pieces(ids)) == len(ours.spans(text)) == len(ids)


LABELS = {
    "llama": ["<s>", "▁the", "▁hat", "<0x21>"],
    "llama3": ["<|begin_of_text|>", "t", "h", "e", " hat", "!"],
    "qwen": ["t", "h", "e", " hat", "!"],
    "modernbert": ["[CLS]", "t", "h", "e", " hat", "!", "[SEP]"],
}


@pytest.mark.parametrize("name", LABELS)
def test_labels_are_readable(tmp_path, name):
    write(tmp_path, name)
    ours = Tokenizer(tmp_path, SETTINGS[name][1])
    assert ours.pieces(ours.encode("the hat!")) == LABELS[name]


def test_a_batch_is_padded_and_runs(tmp_path):
    """Llama's model reads what its tokenizer gives, on either side."""
    shutil.copytree(tiny.GOLDEN / "llama-wide", tmp_path, dirs_exist_ok=True)
    llama().save(str(tmp_path / "tokenizer.json"))
    model = minitx.load(tmp_path)
    batch = model.encode(["", "</s><s>"], pad="left")
    assert batch.tokens.tolist() == [[model.config.pad_id] * 2 + [1], [1, 2, 1]]
    assert batch.valid.tolist() == [[False, False, True], [True, True, True]]
    alone = minitx.forward(model, batch.tokens[:1, 2:])
    x = minitx.forward(model, batch.tokens, valid=batch.valid)
    np.testing.assert_allclose(x[0, 2:], alone[0], atol=1e-5)
