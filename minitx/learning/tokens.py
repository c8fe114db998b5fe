"""A text as one stream of token ids, and the tokenizer that made it: a folder's, or a new one.

A new one is a byte-level BPE (Sennrich et al. 2016; Radford et al. 2019), learned from the text
itself, so that any text can be told in its pieces.
"""

import json
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..loading.files import listing
from ..words.text import FILES, Tokenizer, Wrapped, check_text

MASKS = "<mask>", "[MASK]"
END = "<|endoftext|>"
BYTES = 256
PART = 1 << 16  # letters of a text that are encoded at once


class Stream(NamedTuple):
    """What a model learns from."""

    ids: np.ndarray  # [n]
    before: np.ndarray  # special tokens that begin an input
    after: np.ndarray  # those that end it
    mask_id: int | None
    tokenizer: Tokenizer | None
    files: dict  # {name: bytes}: the tokenizer's


def stream(corpus, folder, config, is_masked):
    """The Stream of a corpus: the path of a text, a list of texts, or ids [n].

    folder: that of the model, whose tokenizer is taken, or None. Raises ValueError or OSError for
    what is no text, and for ids outside the vocabulary.
    """
    if isinstance(corpus, np.ndarray):
        return of_ids(corpus, config, is_masked)
    text = "\n".join(texts_of(corpus))
    files = tokenizer_files(folder)
    if files:
        tokenizer = Tokenizer(folder, config.model_type)
    else:
        new = learned([text], config, is_masked)
        files = {
            "tokenizer.json": new.to_str().encode(),
            "tokenizer_config.json": settings_of(config, is_masked),
        }
        tokenizer = Wrapped(new, config.model_type)
    ids = in_parts(tokenizer, text)
    if len(ids) and ids.max() >= config.n_vocab:
        raise ValueError(f"the tokenizer gives id {ids.max()}; vocab_size is {config.n_vocab}")
    ends = tokenizer.encode("") if is_masked else ids[:0]
    half = len(ends) // 2
    return Stream(ids, ends[:half], ends[half:], mask_of(tokenizer, is_masked), tokenizer, files)


def in_parts(tokenizer, text):
    """The ids of a long text, a part of whole lines at a time: all at once they take 250 times its
    bytes."""
    parts, begin = [], 0
    while begin < len(text):
        end = text.find("\n", begin + PART) + 1 or len(text)
        parts.append(tokenizer.encode(text[begin:end], special=False))
        begin = end
    return np.concatenate([np.zeros(0, int), *parts])


def of_ids(ids, config, is_masked):
    """The Stream of ids that come without a tokenizer, for a causal model."""
    if is_masked:
        raise ValueError("ids have no mask token; a masked model needs a text")
    if ids.ndim != 1 or ids.dtype.kind not in "iu":
        raise ValueError(f"corpus is {ids.dtype} {list(ids.shape)}; wanted token ids [n]")
    if len(ids) and not 0 <= ids.min() <= ids.max() < config.n_vocab:
        given = f"ids go from {ids.min()} to {ids.max()}"
        raise ValueError(f"{given}; wanted 0 to {config.n_vocab - 1}")
    return Stream(ids.astype(np.intp), ids[:0], ids[:0], None, None, {})


def texts_of(corpus):
    """The texts of a list, or the text in a file."""
    if isinstance(corpus, list | tuple):
        for text in corpus:
            check_text(text, "a text of the corpus")
        return corpus
    if not isinstance(corpus, str | PathLike):
        raise ValueError(f"corpus is {corpus!r:.80}; wanted a file, a list of texts, or ids [n]")
    path = Path(corpus)
    if not path.is_file():
        raise FileNotFoundError(f"no file {path}; wanted a UTF-8 text, a list of texts, or ids [n]")
    try:
        return [path.read_text(encoding="utf-8")]
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not valid UTF-8: byte {error.start} ({error.reason})"
        ) from None


def tokenizer_files(folder):
    """{name: bytes} of a folder's tokenizer; {} where it has none."""
    if folder is None:
        return {}
    paths = [folder / name for name in sorted(FILES) if (folder / name).is_file()]
    names = {path.name for path in paths} - {"tokenizer_config.json", "special_tokens_map.json"}
    return {path.name: path.read_bytes() for path in paths} if names else {}


def mask_of(tokenizer, is_masked):
    """The id that hides a word; None in a causal model."""
    if not is_masked:
        return None
    ids = (tokenizer._tokenizer.token_to_id(name) for name in MASKS)
    mask_id = next((i for i in ids if i is not None), None)
    if mask_id is None:
        raise ValueError(f"this tokenizer has no mask token; wanted {' or '.join(MASKS)}")
    return mask_id


def specials(config, is_masked):
    """Names of special tokens, in the order of their ids; the padding's is the config's."""
    if not is_masked:
        return [END]
    names = ["<s>", "</s>", "<unk>", "<mask>"]
    if config.pad_id > len(names):
        text = f"pad_token_id is {config.pad_id}; a new tokenizer has its special tokens at 0 to 4"
        raise ValueError(text)
    return [*names[: config.pad_id], "<pad>", *names[config.pad_id :]]


def learned(texts, config, is_masked):
    """A new tokenizer of at most as many pieces as the model has words.

    With fewer than there are bytes, only those of the texts are pieces, and others are left out.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

    names = specials(config, is_masked)
    n_used = len({byte for text in texts for byte in text.encode()})
    room = config.n_vocab - len(names)
    if room < n_used:
        text = f"vocab_size is {config.n_vocab}; the text has {n_used} different bytes"
        raise ValueError(f"{text}, and there are {len(names)} special tokens ({listing(names)})")
    every = pre_tokenizers.ByteLevel.alphabet()
    new = Tokenizer(models.BPE())
    new.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    new.decoder = decoders.ByteLevel()
    tokens = [AddedToken(name, special=True, lstrip=name == "<mask>") for name in names]
    trainer = trainers.BpeTrainer(
        vocab_size=config.n_vocab,
        special_tokens=tokens,
        initial_alphabet=every if room >= BYTES else [],
        show_progress=False,
    )
    new.train_from_iterator(texts, trainer)
    if is_masked:
        new.post_processor = ends(new)
    return new


def ends(tokenizer):
    """What puts <s> and </s> around a text."""
    from tokenizers import processors

    ids = [(name, tokenizer.token_to_id(name)) for name in ("<s>", "</s>")]
    pair = "<s> $A </s> </s> $B </s>"
    return processors.TemplateProcessing(single="<s> $A </s>", pair=pair, special_tokens=ids)


def settings_of(config, is_masked):
    """tokenizer_config.json of a new tokenizer, in bytes."""
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": config.n_ctx}
    if is_masked:
        for name in ("pad", "unk", "mask"):
            settings[f"{name}_token"] = f"<{name}>"
        settings |= {"bos_token": "<s>", "cls_token": "<s>"}
        settings |= {"eos_token": "</s>", "sep_token": "</s>"}
    else:
        settings |= {"bos_token": END, "eos_token": END}
    return (json.dumps(settings, indent=2, sort_keys=True) + "\n").encode()
