"""Text <-> token ids, over the `tokenizers` package; pieces for labels.

Truncation and padding stored in a tokenizer.json are switched off; folders from before that file existed work too.
"""
from functools import cached_property
from types import SimpleNamespace

import numpy as np

from .checkpoint import read_json
from .config import need

class Tokenizer:
    """The tokenizer of a checkpoint folder; its files are read when it is first used."""
    def __init__(self, folder, model_type): self.folder, self.model_type = folder, model_type

    @cached_property
    def _tokenizer(self):
        try:
            tokenizer = _load(self.folder, self.model_type)
        except Exception as error:  # the tokenizers package raises no closer type
            known = isinstance(error, (ValueError, OSError))
            raise error if known else ValueError(f"the tokenizer in {self.folder} does not load: {error}") from None
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer

    def encode(self, text, pair=None, special=True):
        """Text -> ids [T], with the special tokens that the tokenizer adds unless special=False."""
        return np.array(self._tokenizer.encode(text, pair, add_special_tokens=special).ids, np.intp)

    def decode(self, ids, special=False):
        """Ids [T] -> text, special tokens left out unless special=True."""
        return self._tokenizer.decode(np.ravel(ids).tolist(), skip_special_tokens=not special)

    def pieces(self, ids):
        """Ids [T] -> a readable label each: the characters of byte-level pieces, WordPiece with its ##."""
        from tokenizers.decoders import ByteLevel
        readable = self.decode if isinstance(self._tokenizer.decoder, ByteLevel) else None
        return [readable(i, special=True) if readable else self._tokenizer.id_to_token(i) or f"<{i}>"
                for i in np.ravel(ids).tolist()]

    def batch(self, texts, config, pad="right"):
        """Texts or pairs -> .tokens .valid .types [B T]; ValueError for one longer than the model reads."""
        need(pad in ("left", "right"), f"pad is {pad!r}; wanted 'left' or 'right'")
        need(len(texts) and not isinstance(texts, str), f"texts is {texts[:80]!r}; wanted a list of at least one text")
        rows = [self._tokenizer.encode(*([t] if isinstance(t, str) else t)) for t in texts]
        T = max(lengths := [len(row) for row in rows])
        need(T <= config.n_ctx, f"text {lengths.index(T)} is {T} tokens long; this model reads at most {config.n_ctx}")
        for row in rows:
            row.pad(T, direction=pad, pad_id=config.pad_token)
        tokens, valid, types = (np.array([getattr(row, part) for row in rows], kind) for part, kind in
                                (("ids", np.intp), ("attention_mask", bool), ("type_ids", np.intp)))
        # without a default there are none, or, in GPT-2, every 0 would add a word embedding
        types = None if config.default_type is None else types.clip(0, config.n_types - 1)
        return SimpleNamespace(tokens=tokens, valid=valid, types=types)

def _load(folder, model_type):  # the newest form first
    import tokenizers
    there = {p.name for p in folder.iterdir()}
    if "tokenizer.json" in there:
        return tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    if {"vocab.json", "merges.txt"} <= there:
        return _byte_bpe(tokenizers, folder, model_type)
    if "vocab.txt" in there:
        return _wordpiece(tokenizers, folder, there)
    raise FileNotFoundError(f"no tokenizer in {folder}: wanted tokenizer.json, vocab.json with merges.txt, or "
                            f"vocab.txt; there are: {', '.join(sorted(there))}")

def _byte_bpe(tokenizers, folder, model_type):  # GPT-2's byte-level BPE; RoBERTa's adds <s> and </s> around a text
    bpe = tokenizers.ByteLevelBPETokenizer(str(folder / "vocab.json"), str(folder / "merges.txt"))._tokenizer
    special = ["<|endoftext|>"] if model_type == "gpt2" else ["<s>", "<pad>", "</s>", "<unk>"]
    bpe.add_special_tokens([token for token in special if bpe.token_to_id(token) is not None])
    if model_type != "gpt2":
        bpe.add_special_tokens([tokenizers.AddedToken("<mask>", lstrip=True)])
        ends = [(token, bpe.token_to_id(token)) for token in ("</s>", "<s>")]
        bpe.post_processor = tokenizers.processors.RobertaProcessing(*ends, add_prefix_space=False)
    return bpe

def _wordpiece(tokenizers, folder, there):  # BERT's; lower-case unless told otherwise or the vocabulary has capitals
    files = [read_json(folder / file) for file in ("config.json", "tokenizer_config.json") if file in there]
    get = {key: value for file in files for key, value in file.items()}.get
    splitter = get("word_tokenizer_type", "mecab" if "Japanese" in str(get("tokenizer_class")) else "basic")
    if splitter != "basic" or get("subword_tokenizer_type", "wordpiece") != "wordpiece":
        raise ValueError(f"{folder}: this tokenizer first splits words with {splitter!r}, or has no word pieces, which "
                         "minitx cannot do; pass token ids instead of text")
    vocab = (folder / "vocab.txt").read_text(encoding="utf-8").split("\n")
    capitals = any(piece != piece.lower() for piece in vocab if not piece.startswith("["))
    return tokenizers.BertWordPieceTokenizer(
        str(folder / "vocab.txt"), lowercase=get("do_lower_case", not capitals), strip_accents=get("strip_accents"),
        handle_chinese_chars=get("tokenize_chinese_chars", True))._tokenizer
