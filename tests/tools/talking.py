"""A tiny random BART that reads and writes text: the golden one, with tiny-roberta's tokenizer."""

import json
import shutil

import numpy as np
import tiny
from safetensors.numpy import load_file

from minitx import weights

V = 1024  # pieces of the tokenizer; <s> <pad> </s> are 0 1 2 in both


def folder(path, **settings):
    """A folder with that model; settings: of its config.json."""
    golden = tiny.GOLDEN / "generated" / "bart"
    tensors = load_file(golden / "model.safetensors")
    rng = np.random.default_rng(0)
    for name, x in tensors.items():
        if 61 in x.shape:
            shape = [V if size == 61 else size for size in x.shape]
            tensors[name] = rng.normal(0, 0.8, shape).astype(x.dtype)
    words = tensors["model.shared.weight"]
    for side in "encoder", "decoder":
        tensors[f"model.{side}.embed_tokens.weight"] = words
    path.mkdir(parents=True, exist_ok=True)
    (path / "model.safetensors").write_bytes(tiny.pack(tensors))
    config = json.loads((golden / "config.json").read_text())
    config |= {"vocab_size": V, "forced_bos_token_id": None} | settings
    (path / "config.json").write_text(json.dumps(config))
    shutil.copy(weights.find("tiny-roberta") / "tokenizer.json", path)
    return path
