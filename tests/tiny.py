"""Small checkpoint folders for tests: a golden one's tensors and settings, with whatever a test wants changed.

`make` writes a whole folder; `pack` writes the bytes of a safetensors file from arrays or from raw (kind, shape,
bytes), so that broken files can be made too; `ids` and `padded` draw inputs; `with_weights` swaps arrays of a model.
"""
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from safetensors.numpy import load_file

import minitx

GOLDEN = Path(__file__).parent / "golden"
ONE_EACH = [
    "bert-masked", "roberta-masked", "xlm-roberta-bare", "camembert-masked", "distilbert-masked", "gpt2-causal"]
KINDS = {"<f8": "F64", "<f4": "F32", "<f2": "F16", "|u1": "U8", "<i8": "I64"}


def pack(tensors, header=None):
    """{name: array or (kind, shape, bytes)} -> safetensors bytes; `header(dict)` may change the header."""
    described, parts, end = {}, [], 0
    for name, x in tensors.items():
        kind, shape, raw = x if isinstance(x, tuple) else (KINDS[x.dtype.str], x.shape, x.tobytes())
        described[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [end, end := end + len(raw)]}
        parts.append(raw)
    if header:
        header(described)
    text = json.dumps(described).encode()
    text += b" " * (-len(text) % 8)  # so that the arrays are aligned, as every usual writer does
    return len(text).to_bytes(8, "little") + text + b"".join(parts)


def bf16(x):
    """Array -> its BF16 form for `pack`, rounded towards zero."""
    return "BF16", x.shape, (x.astype("<f4").view("<u4") >> 16).astype("<u2").tobytes()


def config(variant, drop=(), **changes):
    """A golden config.json as a dictionary, with changes."""
    settings = json.loads((GOLDEN / variant / "config.json").read_text()) | changes
    return {key: value for key, value in settings.items() if key not in drop}


def make(folder, variant="bert-masked", change=None, drop=(), header=None, **changes):
    """A copy of a golden folder, its tensors gone through `change(dict)`, its settings without `drop`."""
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config(variant, drop, **changes)))
    tensors = load_file(GOLDEN / variant / "model.safetensors")
    tensors = (change(tensors) or tensors) if change else tensors
    (folder / "model.safetensors").write_bytes(pack(tensors, header))
    return folder


def load(variant, dtype=np.float64):
    return minitx.load(GOLDEN / variant, dtype=dtype)


def ids(model, *shape, seed=0):
    """Random token ids, RoBERTa's pad id left out."""
    drawn = np.random.default_rng(seed).integers(0, model.config.n_vocab - 1, shape)
    return drawn + (0 if model.config.pad is None else drawn >= model.config.pad)


def padded(rows, side, fill=0, width=None):
    """Rows of ids -> tokens, valid [B T], and the columns of each row's text."""
    T = width or max(map(len, rows))
    where = [slice(T - len(row), T) if side == "left" else slice(len(row)) for row in rows]
    tokens, valid = np.full((len(rows), T), fill), np.zeros((len(rows), T), bool)
    for i, row in enumerate(rows):
        tokens[i, where[i]], valid[i, where[i]] = row, True
    return tokens, valid, where


def with_weights(model, layers=(), **arrays):
    """A copy of a model with other arrays: `W_pos=...` in the model, `layers={0: {"W_O": ...}}` in a layer."""
    new = [SimpleNamespace(**vars(w) | dict(layers).get(w.index, {})) for w in model.layers]
    return replace(model, weights=SimpleNamespace(**vars(model.weights) | arrays), layers=tuple(new))


def walk(model):
    """(name, array) of every weight."""
    for part in (model.weights, *model.layers):
        yield from ((name, x) for name, x in vars(part).items() if isinstance(x, np.ndarray))
