"""The checkpoint folders that are damaged, {name: Path, bytes, or a Special}, and their writing."""

import os
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden"
PIECES = GOLDEN / "pieces"
BUNDLED = "tiny-bart", "tiny-bert", "tiny-gpt2", "tiny-roberta"
NOT_READ = "reference", "internals", "unpatched"  # files of a golden folder that are not loaded
MECAB = b'{"tokenizer_class": "BertJapaneseTokenizer", "word_tokenizer_type": "mecab"}'
# folder: the golden variant that its model is from, and the folder of its tokenizer; where that is
# a vocab.txt alone, a folder of WORDPIECE
WORDPIECE = {
    "bert-wordpiece": "bert-masked",
    "bert-token-wordpiece": "bert-token",
    "bert-question-wordpiece": "bert-question",
    "bert-next-sentence-wordpiece": "bert-next-sentence",
    "bert-choice-wordpiece": "bert-choice",
    "bert-pretraining-wordpiece": "bert-pretraining-legacy",
    "electra-wordpiece": "electra-replaced",
    "mpnet-wordpiece": "mpnet-masked",
}
WITH_TEXT = {
    "roberta-merges": ("roberta-masked", PIECES / "bart"),
    "gpt2-merges": ("gpt2-causal", PIECES / "bart"),
    "marian-pieces": ("marian-shared", PIECES / "marian"),
    "marian-pieces-separate": ("marian-separate", PIECES / "separate"),
    "t5-pieces": ("t5-gated", PIECES / "t5"),
    "t5-json": ("t5-relu", PIECES / "t5-json"),
    "roberta-token-merges": ("roberta-token", PIECES / "bart"),
}
WITH_TOKENIZER = (*WITH_TEXT, *BUNDLED, *WORDPIECE, "bert-japanese")


class Special(NamedTuple):
    """A name in a folder that is no ordinary file: "folder", "fifo" or "link" to a target."""

    kind: str
    target: str = ""


def golden(variant):
    """The files of a golden variant that are loaded."""
    files = (GOLDEN / variant).iterdir()
    return {path.name: path for path in files if path.stem not in NOT_READ}


@cache
def bases():
    """{name: folder}: every golden variant, those with a tokenizer's files, the bundled ones."""
    variants = sorted(path.parent.name for path in GOLDEN.glob("*/config.json"))
    folders = {variant: golden(variant) for variant in variants}
    for name, (variant, text) in WITH_TEXT.items():
        folders[name] = golden(variant) | {path.name: path for path in text.iterdir()}
    vocab = {"vocab.txt": GOLDEN / "japanese" / "vocab.txt"}
    for name, variant in WORDPIECE.items():
        folders[name] = golden(variant) | vocab
    settings = {"tokenizer_config.json": MECAB}
    folders["bert-japanese"] = golden("bert-untied") | vocab | settings
    for name in BUNDLED:
        files = (ROOT / "weights" / name).iterdir()
        folders[name] = {path.name: path for path in files if path.suffix != ".md"}
    return folders


def content(folder, name):
    """The bytes of a file; none of what is no file."""
    value = folder[name]
    if isinstance(value, Path):
        return value.read_bytes()
    return b"" if isinstance(value, Special) else value


def contents(path, left_out=None):
    """{name: bytes} of the files in a folder, without those of one ending."""
    files = [x for x in sorted(path.rglob("*")) if x.is_file() and x.suffix != left_out]
    return {x.relative_to(path).as_posix(): x.read_bytes() for x in files}


def write(folder, path):
    """Write a folder; what is unchanged is a link to the original."""
    path.mkdir()
    for name, value in folder.items():
        file = path / name
        if isinstance(value, Path):
            file.symlink_to(value)
        elif isinstance(value, bytes):
            file.write_bytes(value)
        elif value.kind == "folder":
            file.mkdir()
        elif value.kind == "fifo":
            os.mkfifo(file)
        else:
            file.symlink_to(value.target)
