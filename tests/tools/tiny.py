"""Small checkpoint folders for tests: a golden one's tensors and settings, with changes.

`make` writes a whole folder; `pack` writes the bytes of a safetensors file from arrays or from raw
(kind, shape, bytes), so that broken files can be made too; `ids`, `padded` and `texts` draw inputs;
`with_weights` swaps arrays of a model.
"""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from safetensors.numpy import load_file

import minitx
from minitx.loading.finite import named_arrays
from minitx.points import ON_REQUEST, name_of, points

GOLDEN = Path(__file__).parents[1] / "golden"
ONE_EACH = [
    "bert-masked",
    "roberta-masked",
    "xlm-roberta-bare",
    "camembert-masked",
    "distilbert-masked",
    "gpt2-causal",
]
PAIRS = ["bart-causal", "marian-separate", "t5-gated"]  # encoder-decoders, one of each family
SINGLE = [*ONE_EACH, "llama-grouped", "t5-gated", "deberta-masked"]  # for `single`
KINDS = {"<f8": "F64", "<f4": "F32", "<f2": "F16", "|u1": "U8", "|b1": "BOOL", "<i8": "I64"}


def pack(tensors, header=None):
    """{name: array or (kind, shape, bytes)} -> safetensors bytes.

    `header(dict)` may change the header.
    """
    entries = {}
    parts = []
    end = 0
    for name, x in tensors.items():
        kind, shape, raw = x if isinstance(x, tuple) else (KINDS[x.dtype.str], x.shape, x.tobytes())
        begin, end = end, end + len(raw)
        entries[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [begin, end]}
        parts.append(raw)
    if header:
        header(entries)
    text = json.dumps(entries).encode()
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
    """A copy of a golden folder: tensors after `change(dict)`, settings without those in `drop`."""
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config(variant, drop, **changes)))
    tensors = load_file(GOLDEN / variant / "model.safetensors")
    if change:
        tensors = change(tensors) or tensors  # a change in place may return nothing
    (folder / "model.safetensors").write_bytes(pack(tensors, header))
    return folder


def edited(**changes):
    """A `change` for tiny.make: a tensor's new value, None to take it out, or a function of it.

    Double underscores stand for the dots of a tensor's name.
    """

    def change(tensors):
        for key, value in changes.items():
            name = key.replace("__", ".")
            new = value(tensors[name]) if callable(value) else value
            tensors.pop(name, None)
            if new is not None:
                tensors[name] = new

    return change


@cache
def load(variant, dtype=np.float64):
    """A golden model, one for all tests: nothing writes to its arrays."""
    return minitx.load(GOLDEN / variant, dtype=dtype)


def single(variant):
    """A golden model of one stack: of an encoder-decoder its encoder."""
    model = load(variant)
    return model.encoder or model


def same(model, other):
    """Whether two models, with their encoders, hold the same arrays, bit for bit."""
    ours, others = named_arrays(model), named_arrays(other)
    if ours.keys() != others.keys():
        return False
    return all(np.array_equal(x, others[name]) for name, x in ours.items())


def sizes(model, B, T, S):
    """{letter: size} of the axes of a stack's points, for B texts of T tokens that see S keys."""
    cfg = model.config
    H, G, d = cfg.n_heads, cfg.n_kv, cfg.d_head
    sizes = {"1": 1, "B": B, "T": T, "S": S}
    sizes |= {"H": H, "G": G, "d": d, "A": H * d, "K": G * d}
    sizes |= {"D": cfg.d_model, "E": cfg.d_embed or cfg.d_model}
    sizes |= {"M": cfg.d_mlp, "V": cfg.n_vocab}
    if cfg.rotary:
        sizes["r"] = len(next(filter(None, cfg.rotary)).frequencies)
    if model.weights.W_U is not None:
        sizes["C"] = model.weights.W_U.shape[1]
    return sizes


def computed(model, types=False):
    """The points of a model that a run keeps where none is named."""
    return {point for point in points(model, types) if name_of(point) not in ON_REQUEST}


def ids(model, *shape, seed=0):
    """Random token ids, RoBERTa's pad id left out."""
    numbers = np.random.default_rng(seed).integers(0, model.config.n_vocab - 1, shape)
    left_out = model.config.no_position_id
    if left_out is None:
        return numbers
    return numbers + (numbers >= left_out)


def padded(rows, side, fill=0, width=None):
    """Rows of ids -> tokens, valid [B T], and the columns of each row's text."""
    T = width or max(map(len, rows))
    where = [slice(T - len(row), T) if side == "left" else slice(len(row)) for row in rows]
    tokens = np.full((len(rows), T), fill)
    valid = np.zeros((len(rows), T), bool)
    for i, row in enumerate(rows):
        tokens[i, where[i]] = row
        valid[i, where[i]] = True
    return tokens, valid, where


def texts(model, lengths=(7, 4), source_lengths=(5, 8), side="left", source_side=None):
    """Random texts in a padded batch: tokens [B T], and what `run` takes beside them.

    That is `valid`, and in an encoder-decoder `source` and `source_valid` [B S], which are padded
    on the source_side, by default the same.
    """
    tokens, valid, _ = padded([ids(model, n, seed=n) for n in lengths], side)
    if model.encoder is None:
        return tokens, {"valid": valid}
    rows = [ids(model.encoder, n, seed=9 + n) for n in source_lengths]
    source, source_valid, _ = padded(rows, source_side or side)
    return tokens, {"valid": valid, "source": source, "source_valid": source_valid}


def with_weights(model, layers=(), **arrays):
    """A copy of a model with other arrays.

    `W_pos=...` in the model, `layers={0: {"W_O": ...}}` in a layer.
    """
    changes = dict(layers)
    new = [type(w)(**vars(w) | changes.get(w.index, {})) for w in model.layers]
    weights = SimpleNamespace(**vars(model.weights) | arrays)
    return replace(model, weights=weights, layers=tuple(new))


def walk(model):
    """(name, array) of every weight."""
    for part in (model.weights, *model.layers):
        yield from ((name, x) for name, x in vars(part).items() if isinstance(x, np.ndarray))
