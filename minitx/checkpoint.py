"""A folder in Hugging Face layout -> config and named, shape-checked, read-only weights.

Read downward: names, `read`, how a name is looked up, files. Float32 tensors are views of the mapped file: a file
changed on disk changes under the model. F16, BF16 and float64 models are converted once, exactly, into copies.
"""
import difflib
import functools
import json
import mmap
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
from safetensors import SafetensorError, safe_open

from .config import from_hf, need

SHAPES = dict(  # letters: see model.py
    W_E="VD", W_pos="PD", W_type="ND", ln_embed_w="D", ln_embed_b="D", ln1_w="D", ln1_b="D", W_Q="DD", b_Q="D",
    W_K="DD", b_K="D", W_V="DD", b_V="D", W_O="DD", b_O="D", ln2_w="D", ln2_b="D", W_in="DM", b_in="M", W_out="MD",
    b_out="D", ln_final_w="D", ln_final_b="D", W_head="DD", b_head="D", ln_head_w="D", ln_head_b="D", W_U="DV", b_U="V")

# Our name -> what the file says. Without W_ or b_ it stands for a pair: ln1 -> ln1_w and ln1_b, Q -> W_Q
# and b_Q. `.T`: stored [out, in], used [in, out]. `/1`: the second third of the last axis. `a|b`: either.
_BERT = dict(
    body={"W_E": "embeddings.word_embeddings.weight", "W_pos": "embeddings.position_embeddings.weight",
          "W_type": "embeddings.token_type_embeddings.weight", "ln_embed": "embeddings.LayerNorm"},
    layer={"Q": "attention.self.query.T", "K": "attention.self.key.T", "V": "attention.self.value.T",
           "O": "attention.output.dense.T", "ln1": "attention.output.LayerNorm",
           "in": "intermediate.dense.T", "out": "output.dense.T", "ln2": "output.LayerNorm"}, prefix="encoder.layer.",
    masked={"head": "cls.predictions.transform.dense.T", "ln_head": "cls.predictions.transform.LayerNorm",
            "W_U": "cls.predictions.decoder.weight.T", "b_U": "cls.predictions.decoder.bias|cls.predictions.bias"},
    sequence={"head": "pooler.dense.T", "U": "classifier.T"}, sequence_act="tanh")
_ROBERTA = _BERT | dict(sequence={"head": "classifier.dense.T", "U": "classifier.out_proj.T"}, masked={
    "head": "lm_head.dense.T", "ln_head": "lm_head.layer_norm",
    "W_U": "lm_head.decoder.weight.T", "b_U": "lm_head.decoder.bias|lm_head.bias"})
_DISTILBERT = dict(
    body={ours: theirs for ours, theirs in _BERT["body"].items() if ours != "W_type"}, prefix="transformer.layer.",
    layer={"Q": "attention.q_lin.T", "K": "attention.k_lin.T", "V": "attention.v_lin.T", "O": "attention.out_lin.T",
           "ln1": "sa_layer_norm", "in": "ffn.lin1.T", "out": "ffn.lin2.T", "ln2": "output_layer_norm"},
    masked={"head": "vocab_transform.T", "ln_head": "vocab_layer_norm", "U": "vocab_projector.T"},
    sequence={"head": "pre_classifier.T", "U": "classifier.T"}, sequence_act="relu")
_GPT2 = dict(
    body={"W_E": "wte.weight", "W_pos": "wpe.weight", "W_type": "wte.weight", "ln_final": "ln_f"}, prefix="h.",
    layer={"ln1": "ln_1", "Q": "attn.c_attn/0", "K": "attn.c_attn/1", "V": "attn.c_attn/2", "O": "attn.c_proj",
           "ln2": "ln_2", "in": "mlp.c_fc", "out": "mlp.c_proj"},
    causal={"W_U": "lm_head.weight.T"}, sequence={"W_U": "score.weight.T"}, sequence_act=None)
NAMES = {"bert": _BERT, "roberta": _ROBERTA, "xlm-roberta": _ROBERTA, "camembert": _ROBERTA,
         "distilbert": _DISTILBERT, "gpt2": _GPT2}

# In real files, and rightly not read: buffers (GPT-2's causal mask is called `attn.bias`).
_BUFFERS = re.compile(r"(^|\.)(position_ids|token_type_ids|attn\.bias|attn\.masked_bias)$")

def read(folder, dtype=np.float32, partial=False):
    """(config, weights, layers, unused, missing names) of a checkpoint folder; dtype float32 or float64."""
    need(np.dtype(dtype) in (np.float32, np.float64), f"dtype is {np.dtype(dtype)}; a model runs in float32 or float64")
    config = from_hf(read_json(folder / "config.json"))
    table = NAMES[config.model_type]
    files = _Names(tensors(folder), table["body"], config, dtype, partial)
    config = replace(config, head=(head := _head(config, table, files)),
                     head_act=table["sequence_act"] if head == "sequence" else config.head_act)
    body = files.take(table["body"])
    layers = tuple(SimpleNamespace(index=i, **files.take({ours: f"{table['prefix']}{i}.{theirs}" for ours, theirs
                                                          in table["layer"].items()})) for i in range(config.n_layers))
    tied = getattr(body["W_E"], "T", None) if config.tied and head != "sequence" else None
    end = files.take(table.get(head, {}), tied)
    absent = dict.fromkeys(name for name in SHAPES if not hasattr(layers[0], name))
    return config, SimpleNamespace(**absent | body | end), layers, files.unused(table["prefix"]), (*files.missing,)

def check(model):
    """ValueError naming every weight that holds NaN or infinity. Reads the whole file; `load` does not."""
    places = [("", model.weights), *((f"layers[{w.index}].", w) for w in model.layers)]
    if bad := [prefix + name for prefix, part in places for name, array in vars(part).items()
               if isinstance(array, np.ndarray) and not np.isfinite(array).all()]:
        raise ValueError(f"NaN or infinity in: {', '.join(bad)}")

def _head(config, table, files):  # which one the file holds: "masked", "causal", "sequence" or None
    kind, classifier = config.architecture, _expand(table["sequence"]).values()
    if kind.endswith("ForSequenceClassification") or not kind and all(map(files.find, classifier)):
        return "sequence"
    if "masked" in table:
        return "masked" if files.find(_expand(table["masked"])["W_head"]) else None
    tied = config.tied and (not kind or "Head" in kind)  # GPT2LMHeadModel, not GPT2Model
    return "causal" if tied or files.find(table["causal"]["W_U"]) else None

def _expand(table):  # pairs written out: {"ln1": "ln_1"} -> {"ln1_w": "ln_1.weight", "ln1_b": "ln_1.bias"}
    out = {}
    for ours, theirs in table.items():
        stem, mark = re.fullmatch(r"(.*?)(\.T|/\d)?", theirs).groups(default="")
        weight, bias = (f"{ours}_w", f"{ours}_b") if ours.startswith("ln") else (f"W_{ours}", f"b_{ours}")
        single = ours.startswith(("W_", "b_"))
        out |= {ours: theirs} if single else {weight: f"{stem}.weight{mark}", bias: f"{stem}.bias{mark.strip('.T')}"}
    return out

class _Names:
    """The tensors of a checkpoint by name without prefix, given out by our names, converted and checked."""
    def __init__(self, stored, body, config, dtype, partial):
        self.stored, self.used, self.missing, self.partial = {}, set(), {}, partial
        self.sizes = dict(V=config.n_vocab, P=config.n_pos, N=config.n_types, D=config.d_model, M=config.d_mlp)
        anchors = (body["W_E"], body["W_pos"])[:1 + partial]
        prefixes = {name.removesuffix(a) for a in anchors for name in stored if f".{name}".endswith(f".{a}")}
        found = [f"{prefix}{anchors[0]}" for prefix in sorted(prefixes)] or f"none in {_some(stored)}"
        need(len(prefixes) == 1, f"wanted one word embedding {anchors[0]!r}, any prefix; found {found}")
        for name, array in stored.items():
            plain = name.removeprefix(*prefixes)
            if "LayerNorm." in plain:
                plain = plain.replace(".gamma", ".weight").replace(".beta", ".bias")
            need(plain not in self.stored, f"two tensors go by the name {plain!r}; one of them is {name!r}")
            self.stored[plain] = array
        self.array = functools.cache(lambda name: self.stored[name](dtype))

    def find(self, theirs):  # the stored name behind a table entry, or None
        return next((name for name in re.sub(r"(\.T|/\d)$", "", theirs).split("|") if name in self.stored), None)

    def take(self, table, tied=None):  # {our name: array} of one part; `tied` stands in for an absent W_U
        return {ours: tied if ours == "W_U" and tied is not None and not self.find(theirs) else self._one(ours, theirs)
                for ours, theirs in _expand(table).items()}

    def _one(self, ours, theirs):
        name, plain = self.find(theirs), re.sub(r"(\.T|/\d)$", "", theirs)
        if name is None and self.partial:
            return self.missing.setdefault(plain)  # None
        if name is None:
            near = difflib.get_close_matches(theirs, self.stored, 3)
            raise ValueError(f"no tensor for {ours}: wanted {plain!r}; near to it: {near or _some(self.stored)}")
        self.used.add(name)
        array, fused = np.atleast_1d(self.array(name)), theirs[-2] == "/"
        array = array.T if theirs.endswith(".T") else array
        letters = SHAPES[ours].replace("V", "C") if name.startswith(("classifier", "score")) else SHAPES[ours]
        self.sizes.setdefault(letters[-1], array.shape[-1])  # only the file knows how many classes there are
        *rows, last = (self.sizes[letter] for letter in letters)
        need(array.shape == (wanted := (*rows, 3 * last if fused else last)), f"{name!r}, read as {ours} "
             f"[{' '.join(letters)}], has shape {list(array.shape)}; config.json makes it {list(wanted)}")
        return array[..., int(theirs[-1]) * last:][..., :last] if fused else array

    def unused(self, prefix):  # names nobody asked for; inside the layers they mean another architecture: an error
        left = [n for n in self.stored if n not in self.used and not _BUFFERS.search(n)]
        if inside := [n for n in left if n.startswith(prefix)]:
            raise ValueError(f"tensors inside the layers that this architecture has no use for: {_some(inside)}")
        return tuple(left)

def _some(names):
    return ", ".join((names := sorted(names))[:6]) + (f", … ({len(names)} in all)" if len(names) > 6 else "")

def read_json(path, other=""):
    """The JSON object in a file, or an error that names the file, and the other that would have done too."""
    if not path.is_file():
        there = _some(p.name for p in path.parent.iterdir()) if path.parent.is_dir() else "no such folder"
        raise FileNotFoundError(f"no {other}{path.name} in {path.parent} (there: {there})")
    try:
        return {**json.loads(path.read_text(encoding="utf-8"))}
    except (ValueError, TypeError) as error:  # not UTF-8, not JSON, not an object
        raise ValueError(f"{path} does not hold a JSON object: {error}") from None

def tensors(folder):
    """{name: its array as a function of dtype} of model.safetensors, or of the shards that an index lists."""
    index = folder / "model.safetensors.index.json"
    if (folder / "model.safetensors").is_file():
        return safetensors(folder / "model.safetensors")
    pickles = [p.name for p in folder.iterdir() if p.suffix in (".bin", ".pt", ".pth", ".ckpt", ".pkl")]
    if pickles and not index.is_file():
        raise ValueError(f"{folder} has weights only as {_some(pickles)}, which minitx never opens: a pickle can "
                         "run any code; convert it to model.safetensors where the file is trusted")
    where = read_json(index, "model.safetensors or ").get("weight_map")
    if not isinstance(where, dict) or not all(isinstance(file, str) for file in where.values()):
        raise ValueError(f"{index} has no weight_map from tensor names to file names")
    if missing := {file for file in where.values() if not (folder / file).is_file()}:
        raise FileNotFoundError(f"{index.name} lists shards that are not in {folder}: {_some(missing)}")
    shards = {file: safetensors(folder / file) for file in sorted(set(where.values()))}
    if absent := [name for name, file in where.items() if name not in shards[file]]:
        raise ValueError(f"{index.name} promises tensors that their shards lack: {_some(absent)}")
    return {name: shards[file][name] for name, file in where.items()}

def safetensors(path):
    """{name: its array as a function of dtype} of one mapped file; the library checks header, offsets and length."""
    try:
        with safe_open(path, "np"), open(path, "rb") as file:
            buffer = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except SafetensorError as error:
        raise ValueError(f"{path} ({path.stat().st_size} bytes) is cut off or no safetensors file: {error}") from None
    start = 8 + int.from_bytes(buffer[:8], "little")  # u64 length, a JSON header of that length, then the bytes
    return {name: functools.partial(_array, name, x["dtype"], x["shape"], start + x["data_offsets"][0], buffer)
            for name, x in json.loads(buffer[8:start]).items() if name != "__metadata__"}

def _array(name, kind, shape, start, buffer, dtype):  # read-only; a view of the file if stored so and aligned
    kinds = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
    need(kind in kinds, f"tensor {name!r} is stored as {kind}; wanted one of {', '.join(kinds)}")
    raw = np.frombuffer(buffer, kinds[kind], int(np.prod(shape)), start).reshape(shape)
    if kind == "BF16":  # the upper half of a float32
        raw = (raw.astype("<u4") << 16).view("<f4")
    out = np.require(raw.astype(dtype, copy=False), requirements="A")
    out.flags.writeable = False
    return out
