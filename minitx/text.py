"""Text <-> token ids, over the `tokenizers` package; pieces for labels.

A folder's tokenizer.json is used as it is, except that truncation and padding stored inside it are switched
off. Folders from before that file existed work too: vocab.json + merges.txt, or vocab.txt.
"""
import json
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from .checkpoint import read_json


class Tokenizer:
    """The tokenizer of a checkpoint folder; the files are read when it is first used."""

    def __init__(self, folder, model_type):
        self.folder, self.model_type = Path(folder), model_type

    @cached_property
    def _tokenizer(self):
        tokenizer = _load(self.folder, self.model_type)
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer

    def encode(self, text, pair=None, special=True):
        """Text -> ids [T], with the special tokens that the tokenizer adds unless special=False."""
        return np.array(self._tokenizer.encode(text, pair, add_special_tokens=special).ids, np.intp)

    def decode(self, ids, special=False):
        """Ids [T] -> text, special tokens left out unless special=True."""
        return self._tokenizer.decode([int(i) for i in np.ravel(ids)], skip_special_tokens=not special)

    def pieces(self, ids):
        """Ids [T] -> a readable label each: the text a token stands for, `Ġ` and the like resolved."""
        return [self._piece(int(i)) for i in np.ravel(ids)]

    def id(self, piece):
        """The id of one piece, say "<mask>"; ValueError if the vocabulary lacks it."""
        found = self._tokenizer.token_to_id(piece)
        if found is None:
            raise ValueError(f"{piece!r} is not in the vocabulary of {self._tokenizer.get_vocab_size()} pieces")
        return found

    def _piece(self, i):
        piece = self._tokenizer.id_to_token(i)
        if piece is None:
            raise ValueError(f"no piece has id {i}; the vocabulary has {self._tokenizer.get_vocab_size()}")
        if self._byte_level and set(piece) <= _BYTES.keys():
            return bytes(_BYTES[c] for c in piece).decode("utf-8", "replace")
        return piece

    @cached_property
    def _byte_level(self):
        decoder = json.loads(self._tokenizer.to_str()).get("decoder") or {}
        return decoder.get("type") == "ByteLevel"

    def batch(self, texts, config, pad="right"):
        """Texts or pairs -> .tokens .valid .types [B T]; ValueError for one longer than the model reads."""
        if pad not in ("left", "right"):
            raise ValueError(f"pad is {pad!r}; wanted 'left' or 'right'")
        if isinstance(texts, str) or not len(texts):
            raise ValueError(f"texts is {texts!r}; wanted a list of at least one text")
        rows = [self._tokenizer.encode(*([t] if isinstance(t, str) else t)) for t in texts]
        T = max(len(row.ids) for row in rows)
        if T > config.n_ctx:
            i = [len(row.ids) for row in rows].index(T)
            raise ValueError(f"text {i} is {T} tokens long; this model reads at most {config.n_ctx}")
        tokens = np.full((len(rows), T), config.pad_token, np.intp)
        valid, types = np.zeros(tokens.shape, bool), np.zeros(tokens.shape, np.intp)
        for i, row in enumerate(rows):
            where = slice(T - len(row.ids), T) if pad == "left" else slice(len(row.ids))
            tokens[i, where], valid[i, where], types[i, where] = row.ids, True, row.type_ids
        return SimpleNamespace(tokens=tokens, valid=valid, types=None if config.default_type is None else
                               np.minimum(types, config.n_types - 1))


def _load(folder, model_type):
    """The tokenizer a folder describes, newest form first."""
    from tokenizers import Tokenizer as Fast
    there = {p.name for p in folder.iterdir()}
    settings = read_json(folder / "tokenizer_config.json") if "tokenizer_config.json" in there else {}
    if "tokenizer.json" in there:
        return Fast.from_file(str(folder / "tokenizer.json"))
    if {"vocab.json", "merges.txt"} <= there:
        return _byte_bpe(folder, model_type)
    if "vocab.txt" in there:
        return _wordpiece(folder, settings)
    raise FileNotFoundError(f"{folder} has no tokenizer: wanted tokenizer.json, vocab.json with merges.txt, or "
                            f"vocab.txt; there are: {', '.join(sorted(there))}")


def _byte_bpe(folder, model_type):
    """GPT-2's byte-level BPE; RoBERTa's adds <s> and </s> around a text."""
    from tokenizers import AddedToken, ByteLevelBPETokenizer, processors
    vocab = read_json(folder / "vocab.json")
    bpe = ByteLevelBPETokenizer(str(folder / "vocab.json"), str(folder / "merges.txt"))
    if model_type == "gpt2":
        bpe.add_special_tokens([t for t in ("<|endoftext|>",) if t in vocab])
    else:
        bpe.add_special_tokens([t for t in ("<s>", "<pad>", "</s>", "<unk>") if t in vocab])
        bpe.add_special_tokens([AddedToken("<mask>", lstrip=True)])
        bpe._tokenizer.post_processor = processors.RobertaProcessing(("</s>", vocab["</s>"]), ("<s>", vocab["<s>"]),
                                                                    trim_offsets=True, add_prefix_space=False)
    return bpe._tokenizer


def _wordpiece(folder, settings):
    """BERT's WordPiece. Lower-case unless the settings say otherwise or the vocabulary has capitals."""
    from tokenizers import BertWordPieceTokenizer
    if settings.get("word_tokenizer_type", "basic") not in ("basic", None):
        raise ValueError(f"{folder}: this tokenizer first splits words with {settings['word_tokenizer_type']!r}, which "
                         "minitx does not have; pass token ids instead of text")
    vocab = (folder / "vocab.txt").read_text(encoding="utf-8").split("\n")
    capitals = any(piece != piece.lower() for piece in vocab if not piece.startswith("["))
    return BertWordPieceTokenizer(
        str(folder / "vocab.txt"), lowercase=settings.get("do_lower_case", not capitals),
        strip_accents=settings.get("strip_accents"),
        handle_chinese_chars=settings.get("tokenize_chinese_chars", True))._tokenizer


def _byte_alphabet():
    """GPT-2's printable stand-in for each byte -> the byte."""
    plain = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or 174 <= b <= 255]
    rest = [b for b in range(256) if b not in plain]
    return {chr(b): b for b in plain} | {chr(256 + i): b for i, b in enumerate(rest)}


_BYTES = _byte_alphabet()
