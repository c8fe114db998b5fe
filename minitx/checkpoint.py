"""A folder in Hugging Face layout -> config and named, shape-checked, read-only weights.

Read downward: the tables of names, `read`, how one name is looked up, safetensors files. Float32 tensors
are views of the mapped file: they cost no memory of their own, and a file changed on disk changes under
the model. F16, BF16 and float64 models are converted once, exactly, into copies. No pickle is ever opened.
"""
import difflib
import functools
import json
import math
import mmap
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from .config import from_hf

# Letters: V vocabulary, P positions, N token types, D width, M width inside the MLP, C classes.
SHAPES = {
    "W_E": "VD", "W_pos": "PD", "W_type": "ND", "ln_embed_w": "D", "ln_embed_b": "D",
    "ln1_w": "D", "ln1_b": "D", "W_Q": "DD", "b_Q": "D", "W_K": "DD", "b_K": "D", "W_V": "DD", "b_V": "D",
    "W_O": "DD", "b_O": "D", "ln2_w": "D", "ln2_b": "D", "W_in": "DM", "b_in": "M", "W_out": "MD", "b_out": "D",
    "ln_final_w": "D", "ln_final_b": "D",
    "W_head": "DD", "b_head": "D", "ln_head_w": "D", "ln_head_b": "D", "W_U": "DV", "b_U": "V",
}

# Our name -> what the file says. Without W_ or b_ it stands for a pair: ln1 -> ln1_w and ln1_b, Q -> W_Q
# and b_Q. `.T`: stored [out, in], used [in, out]. `/1`: the second third of the last axis. `a|b`: either.
_BERT = dict(
    body={"W_E": "embeddings.word_embeddings.weight", "W_pos": "embeddings.position_embeddings.weight",
          "W_type": "embeddings.token_type_embeddings.weight", "ln_embed": "embeddings.LayerNorm"},
    prefix="encoder.layer.",
    layer={"Q": "attention.self.query.T", "K": "attention.self.key.T", "V": "attention.self.value.T",
           "O": "attention.output.dense.T", "ln1": "attention.output.LayerNorm",
           "in": "intermediate.dense.T", "out": "output.dense.T", "ln2": "output.LayerNorm"},
    masked={"head": "cls.predictions.transform.dense.T", "ln_head": "cls.predictions.transform.LayerNorm",
            "W_U": "cls.predictions.decoder.weight.T", "b_U": "cls.predictions.bias|cls.predictions.decoder.bias"},
    sequence={"head": "pooler.dense.T", "W_U": "classifier.weight.T", "b_U": "classifier.bias"},
    sequence_act="tanh")
_ROBERTA = _BERT | dict(
    masked={"head": "lm_head.dense.T", "ln_head": "lm_head.layer_norm",
            "W_U": "lm_head.decoder.weight.T", "b_U": "lm_head.bias|lm_head.decoder.bias"},
    sequence={"head": "classifier.dense.T", "W_U": "classifier.out_proj.weight.T", "b_U": "classifier.out_proj.bias"})
_DISTILBERT = dict(
    body={"W_E": "embeddings.word_embeddings.weight", "W_pos": "embeddings.position_embeddings.weight",
          "ln_embed": "embeddings.LayerNorm"},
    prefix="transformer.layer.",
    layer={"Q": "attention.q_lin.T", "K": "attention.k_lin.T", "V": "attention.v_lin.T", "O": "attention.out_lin.T",
           "ln1": "sa_layer_norm", "in": "ffn.lin1.T", "out": "ffn.lin2.T", "ln2": "output_layer_norm"},
    masked={"head": "vocab_transform.T", "ln_head": "vocab_layer_norm",
            "W_U": "vocab_projector.weight.T", "b_U": "vocab_projector.bias"},
    sequence={"head": "pre_classifier.T", "W_U": "classifier.weight.T", "b_U": "classifier.bias"},
    sequence_act="relu")
_GPT2 = dict(
    body={"W_E": "wte.weight", "W_pos": "wpe.weight", "W_type": "wte.weight", "ln_final": "ln_f"},
    prefix="h.",
    layer={"ln1": "ln_1", "Q": "attn.c_attn/0", "K": "attn.c_attn/1", "V": "attn.c_attn/2", "O": "attn.c_proj",
           "ln2": "ln_2", "in": "mlp.c_fc", "out": "mlp.c_proj"},
    causal={"W_U": "lm_head.weight.T"},
    sequence={"W_U": "score.weight.T"}, sequence_act=None)
NAMES = {"bert": _BERT, "roberta": _ROBERTA, "xlm-roberta": _ROBERTA, "camembert": _ROBERTA,
         "distilbert": _DISTILBERT, "gpt2": _GPT2}

# In real files, and rightly not read: buffers (GPT-2's causal mask is called `attn.bias`).
_BUFFERS = re.compile(r"(^|\.)(position_ids|token_type_ids|attn\.bias|attn\.masked_bias)$")


def read(folder, dtype=np.float32):
    """(config, weights, layers, unused names) of a checkpoint folder; dtype float32 or float64.

    Raises FileNotFoundError for a missing file, ValueError for one that does not fit its own config.
    """
    dtype = np.dtype(dtype)
    if dtype not in (np.float32, np.float64):
        raise ValueError(f"dtype {dtype}: a model runs in float32 or float64")
    folder = Path(folder)
    config = from_hf(read_json(folder / "config.json"))
    table = NAMES[config.model_type]
    files = _Names(tensors(folder), table["body"]["W_E"], config, dtype)
    config = replace(config, head=_head(config, table, files))
    weights = files.take(table["body"])
    layers = []
    for i in range(config.n_layers):
        prefix = f"{table['prefix']}{i}."
        layers.append(SimpleNamespace(index=i, **files.take({k: prefix + v for k, v in table["layer"].items()})))
    if config.head == "sequence":
        config = replace(config, head_act=table["sequence_act"])
    head = files.take(table.get(config.head, {}), tied=weights["W_E"].T if config.tied else None)
    everything = dict.fromkeys(SHAPES.keys() - vars(layers[0]).keys()) | weights | head
    return config, SimpleNamespace(**everything), tuple(layers), files.unused(table["prefix"])


def check(model):
    """ValueError naming every weight that holds NaN or infinity. Reads the whole file; `load` does not."""
    places = [("", model.weights)] + [(f"layers[{w.index}].", w) for w in model.layers]
    bad = [f"{prefix}{name} ({np.size(array) - np.isfinite(array).sum()} of {np.size(array)} values)"
           for prefix, part in places for name, array in vars(part).items()
           if isinstance(array, np.ndarray) and not np.isfinite(array).all()]
    if bad:
        raise ValueError(f"not finite: {', '.join(bad)}")


def _head(config, table, files):
    """Which head the file holds: "masked", "causal", "sequence" or None."""
    def has(head, ours):
        return ours in (expanded := _expand(table.get(head, {}))) and files.find(expanded[ours]) is not None

    classifier = config.architecture.endswith("ForSequenceClassification")
    if classifier or not config.architecture and has("sequence", "W_U") and has("sequence", "W_head"):
        return "sequence"
    if has("masked", "W_head"):
        return "masked"
    if "causal" in table and (has("causal", "W_U") or config.tied and config.architecture != "GPT2Model"):
        return "causal"
    return None


def _expand(table):
    """Pairs written out: {"ln1": "ln_1"} -> {"ln1_w": "ln_1.weight", "ln1_b": "ln_1.bias"}."""
    out = {}
    for ours, theirs in table.items():
        if ours.startswith(("W_", "b_")):
            out[ours] = theirs
            continue
        stem, mark = re.fullmatch(r"(.*?)(\.T|/\d)?", theirs).groups(default="")
        norm = ours.startswith("ln")
        out[f"{ours}_w" if norm else f"W_{ours}"] = f"{stem}.weight{mark}"
        out[f"{ours}_b" if norm else f"b_{ours}"] = f"{stem}.bias{mark.removesuffix('.T')}"
    return out


class _Names:
    """The tensors of a checkpoint under names without prefix, given out by our names, converted and checked."""

    def __init__(self, stored, anchor, config, dtype):
        self.stored, self.dtype, self.used = {}, dtype, set()
        self.sizes = {"V": config.n_vocab, "P": config.n_pos, "N": config.n_types, "D": config.d_model,
                      "M": config.d_mlp}
        found = [name for name in stored if name == anchor or name.endswith("." + anchor)]
        if len(found) != 1:
            raise ValueError(f"wanted one tensor named {anchor!r} under any prefix; found {found or 'none'} "
                             f"among {_some(stored)}")
        prefix = found[0].removesuffix(anchor)
        for name, entry in stored.items():
            plain = name.removeprefix(prefix)
            if "LayerNorm." in plain:
                plain = plain.replace(".gamma", ".weight").replace(".beta", ".bias")
            if plain in self.stored:
                raise ValueError(f"two tensors go by the name {plain!r}; one of them is {name!r}")
            self.stored[plain] = entry
        self._array = functools.cache(lambda name: self.stored[name].array(dtype))

    def find(self, theirs):
        """The stored name behind a table entry, or None."""
        plain = re.sub(r"(\.T|/\d)$", "", theirs)
        return next((name for name in plain.split("|") if name in self.stored), None)

    def take(self, table, tied=None):
        """{our name: array} for one part of the table; `tied` stands in for an absent W_U."""
        return {ours: self._one(ours, theirs, tied) for ours, theirs in _expand(table).items()}

    def _one(self, ours, theirs, tied):
        name = self.find(theirs)
        if name is None:
            if ours == "W_U" and tied is not None:
                return tied
            near = difflib.get_close_matches(theirs, self.stored, 3) or _some(self.stored)
            raise ValueError(f"no tensor for {ours}: wanted {theirs!r}; near to it: {near}")
        self.used.add(name)
        array = self._array(name)
        if theirs.endswith(".T"):
            array = array.T
        elif theirs[-2] == "/":
            third = array.shape[-1] // 3
            array = array[..., int(theirs[-1]) * third:][..., :third]
        self._check(ours, name, array)
        return array

    def _check(self, ours, name, array):
        classes = array.shape[-1] if array.ndim else 0  # only a classifier's width is not in the config
        wanted = tuple(self.sizes.get(letter, classes) for letter in self._letters(ours, name))
        if array.shape != wanted:
            raise ValueError(f"{name!r} as {ours} is {list(array.shape)}; config.json makes it {list(wanted)} "
                             f"({' '.join(self._letters(ours, name))})")

    @staticmethod
    def _letters(ours, name):
        return SHAPES[ours].replace("V", "C") if name.startswith(("classifier", "score")) else SHAPES[ours]

    def unused(self, prefix):
        """Names nobody asked for. Inside the layers these mean another architecture, and are an error."""
        left = [n for n in self.stored if n not in self.used and not _BUFFERS.search(n)]
        if inside := [n for n in left if n.startswith(prefix)]:
            raise ValueError(f"tensors inside the layers that this architecture has no use for: {_some(inside)}")
        return tuple(left)


def _some(names, most=6):
    names = sorted(names)
    return ", ".join(names[:most]) + (f", … ({len(names)} in all)" if len(names) > most else "")


# --- files ---------------------------------------------------------------------------------------------------

def read_json(path):
    """A JSON object from a file, or an error that names the file."""
    try:
        value = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        folder = Path(path).parent
        there = _some(p.name for p in folder.iterdir()) if folder.is_dir() else "no such folder"
        raise FileNotFoundError(f"no {Path(path).name} in {folder} (there: {there})") from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValueError(f"{path} holds a {type(value).__name__}; wanted an object")
    return value


def tensors(folder):
    """{name: Stored} of a folder's model.safetensors, or of the shards its index lists."""
    folder = Path(folder)
    single, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
    if single.is_file():
        return safetensors(single)
    if not index.is_file():
        files = sorted(p.name for p in folder.iterdir())
        pickles = [f for f in files if f.endswith((".bin", ".pt", ".pth", ".ckpt", ".pkl", ".h5", ".msgpack"))]
        if pickles:
            raise ValueError(f"{folder} has weights only as {', '.join(pickles)}, which minitx never opens (a pickle "
                             "can run any code); convert to model.safetensors where the file is trusted")
        raise FileNotFoundError(f"no model.safetensors or model.safetensors.index.json in {folder} "
                                f"(there: {_some(files)})")
    where = read_json(index).get("weight_map")
    if not isinstance(where, dict):
        raise ValueError(f"{index} has no weight_map")
    missing = sorted({file for file in where.values() if not (folder / file).is_file()})
    if missing:
        raise FileNotFoundError(f"{index.name} lists shards that are not in {folder}: {', '.join(missing)}")
    shards = {file: safetensors(folder / file) for file in sorted(set(where.values()))}
    absent = [name for name, file in where.items() if name not in shards[file]]
    if absent:
        raise ValueError(f"{index.name} promises tensors that their shards lack: {_some(absent)}")
    return {name: shards[file][name] for name, file in where.items()}


_DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4", "I16": "<i2",
           "I8": "i1", "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?"}


class Stored(SimpleNamespace):
    """One tensor where it lies: `.name .dtype .shape .start .buffer`."""

    def array(self, dtype):
        """Read-only array in `dtype`: a view of the file if it is stored so and aligned, else a copy."""
        if self.dtype not in ("F64", "F32", "F16", "BF16"):
            raise ValueError(f"tensor {self.name!r} is stored as {self.dtype}; weights are F32, F16, BF16 or F64")
        raw = np.frombuffer(self.buffer, _DTYPES[self.dtype], math.prod(self.shape), self.start).reshape(self.shape)
        if self.dtype == "BF16":  # the upper half of a float32
            raw = (raw.astype("<u4") << 16).view("<f4")
        out = np.require(raw.astype(dtype, copy=False), requirements="A")
        out.flags.writeable = False
        return out


def safetensors(path):
    """{name: Stored} of one mapped file, every offset checked against the file and against the others.

    Layout: u64 length, JSON header of that length, then the bytes without holes
    (https://github.com/huggingface/safetensors#format).
    """
    with open(path, "rb") as file:
        size = path.stat().st_size
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > size - 8:
            raise ValueError(f"{path}: truncated, or no safetensors file: its header would take {length} bytes, "
                             f"the file has {size}")
        header = _header(path, file.read(length))
        buffer = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    start, found, end = 8 + length, {}, 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        dtype, shape, (a, b) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
        if dtype not in _DTYPES:
            raise ValueError(f"{path}: tensor {name!r} has the unknown dtype {dtype!r}; known: {', '.join(_DTYPES)}")
        if a != end:
            raise ValueError(f"{path}: tensor {name!r} begins at byte {a}, but the one before it ends at {end}: "
                             f"{'overlapping' if a < end else 'unused'} bytes")
        if b - a != math.prod(shape) * np.dtype(_DTYPES[dtype]).itemsize:
            raise ValueError(f"{path}: tensor {name!r} is {dtype} {list(shape)}, which does not take {b - a} bytes")
        found[name], end = Stored(name=name, dtype=dtype, shape=shape, start=start + a, buffer=buffer), b
    if end != size - start:
        raise ValueError(f"{path}: truncated or overlong: the header describes {end} bytes of tensors, "
                         f"the file holds {size - start}")
    return found


def _header(path, text):
    def unique(pairs):
        names = [name for name, _ in pairs]
        if twice := {name for name in names if names.count(name) > 1} if len(set(names)) < len(names) else None:
            raise ValueError(f"names given twice: {sorted(twice)}")
        return dict(pairs)

    def sound(entry):
        return (isinstance(entry, dict) and entry.keys() >= {"dtype", "shape", "data_offsets"}
                and len(entry["data_offsets"]) == 2
                and all(isinstance(n, int) and n >= 0 for n in [*entry["shape"], *entry["data_offsets"]]))

    try:
        header = json.loads(text, object_pairs_hook=unique)
        header.pop("__metadata__", None)
    except (ValueError, AttributeError) as error:
        raise ValueError(f"{path}: not a safetensors header: {error}") from None
    if bad := [name for name, entry in header.items() if not sound(entry)]:
        raise ValueError(f"{path}: header entries without sound dtype, shape and data_offsets: {_some(bad)}")
    return header
