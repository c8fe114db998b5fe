"""Folders of 44 to 70 MB, made for one run: golden variants with more words and wider MLPs.

Only with them a limit of twice the file says more than what Python itself takes.
"""

import json
import math
import tempfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from damage_files import tensors
from folders import GOLDEN, PIECES, golden
from tiny import pack

WORDS, MLP = 61, (26, 30)  # rows of the word embedding and widths of MLPs in golden variants
KEYS = {  # of config.json that state one of these sizes
    *("vocab_size", "decoder_vocab_size", "intermediate_size", "n_inner", "d_ff"),
    *("encoder_ffn_dim", "decoder_ffn_dim"),
}
TEXTS = {"vocab": [GOLDEN / "japanese" / "vocab.txt"]}
TEXTS |= {name: [*(PIECES / name).iterdir()] for name in ("bart", "marian", "t5")}


class Large(NamedTuple):
    variant: str
    text: str  # its tokenizer: a key of TEXTS
    stored: str  # "F32", "F16" or "BF16"
    n_words: int
    width: int  # of the MLPs
    shards: int = 1


LARGE = {
    "large-bert": Large("bert-masked", "vocab", "F32", 250_000, 100_000),
    "large-words": Large("bert-masked", "vocab", "F32", 800_000, 30),  # one tensor is all of it
    "large-electra": Large("electra-replaced", "vocab", "F32", 250_000, 100_000),
    "large-gpt2": Large("gpt2-causal", "bart", "F16", 400_000, 200_000),
    "large-bart": Large("bart-causal", "bart", "F32", 250_000, 80_000, shards=3),
    "large-marian": Large("marian-shared", "marian", "BF16", 400_000, 120_000),
    "large-t5": Large("t5-gated", "t5", "F32", 150_000, 30_000, shards=2),
}


def is_large(name):
    """Whether a folder, or a case, is of this file."""
    return str(name).startswith("large-")


def is_converted(name):
    """Whether a folder's numbers are stored in 16 bits: as float32 they alone take twice that."""
    return is_large(name) and LARGE[name].stored != "F32"


@cache
def bases():
    """{name: folder}, written to a new folder for temporary files."""
    parent = Path(tempfile.mkdtemp(prefix="large-"))
    return {name: written(parent / name, large) for name, large in LARGE.items()}


def written(path, large):
    path.mkdir()
    folder = golden(large.variant)
    sizes = {WORDS: large.n_words, **dict.fromkeys(MLP, large.width)}
    config = json.loads(folder["config.json"].read_text(encoding="utf-8"))
    config |= {key: sizes[config[key]] for key in KEYS & config.keys()}
    (path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    parts = [*tensors(folder, "model.safetensors").items()]
    parts = [(name, enlarged(*part[:2], sizes, large.stored)) for name, part in parts]
    names = [f"model-{i + 1:05}-of-{large.shards:05}.safetensors" for i in range(large.shards)]
    if large.shards == 1:
        names = ["model.safetensors"]
    shards = {file: dict(parts[i :: large.shards]) for i, file in enumerate(names)}
    for file, shard in shards.items():
        (path / file).write_bytes(pack(shard))
    if large.shards > 1:
        index = {"weight_map": {name: file for file in names for name in shards[file]}}
        (path / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    files = [file for file in folder.values() if file.suffix == ".json" and file.stem != "config"]
    return {file.name: file for file in (*files, *TEXTS[large.text], *path.iterdir())}


def enlarged(dtype, shape, sizes, stored):
    """A tensor of larger axes as (dtype, shape, bytes): a few thousand numbers again and again."""
    shape = [sizes.get(size, size) for size in shape]
    numbers = np.random.default_rng(math.prod(shape)).standard_normal(4099).astype("<f4") / 20
    if stored == "BF16":
        numbers = numbers.view("<u4") >> 16
    raw = numbers.astype({"F32": "<f4", "F16": "<f2", "BF16": "<u2"}[stored]).tobytes()
    size = math.prod(shape) * (4 if stored == "F32" else 2)
    return stored, shape, (raw * (1 + size // len(raw)))[:size]
