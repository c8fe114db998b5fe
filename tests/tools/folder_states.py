"""States in which users' folders are, made from a golden folder, and what minitx says of each.

A state is a change of a folder in place; tests/weights/test_folder_states.py tries all of them.
"""

import json
import os
import re
import shutil
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import tiny
from safetensors.numpy import load_file

W, INDEX = "model.safetensors", "model.safetensors.index.json"
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:%b\nsize 548105171\n" % (
    b"a" * 64
)
PAGE = b"<!DOCTYPE html>\n<html><head><title>org/model</title></head></html>"


TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "spiece.model",
)


class State(NamedTuple):
    name: str
    change: Callable  # (folder) -> None, or the path that is given in the folder's place
    says: str = ""  # what the error must say; "" if the model loads as the plain one
    base: str = "bert-masked"  # golden folder


# --- changes of a folder


def change(function):
    """A function of a folder and more as a function of more, which gives one of a folder."""
    return lambda *given, **named: lambda folder: function(folder, *given, **named)


@change
def put(folder, **files):
    """Files with these contents; __ stands for a dot in their names, None removes one."""
    for key, content in files.items():
        path = folder / key.replace("__", ".")
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_bytes(content)


@change
def only(folder, **files):
    """These files alone, beside config.json."""
    (folder / W).unlink()
    put(**files)(folder)


@change
def without_config(folder, **files):
    """These files alone."""
    (folder / "config.json").unlink()
    only(**files)(folder)


@change
def stated(folder, **settings):
    """A config.json that has these keys, too."""
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | settings))


@change
def retyped(folder, change_all):
    """Tensors {name: array} as change_all leaves them."""
    tensors = load_file(folder / W)
    (folder / W).write_bytes(tiny.pack(change_all(tensors)))


def added(**tensors):
    """Further tensors; __ stands for a dot."""
    named = {name.replace("__", "."): x for name, x in tensors.items()}
    return retyped(lambda given: given | named)


def sharded(folder):
    """Two shards and an index."""
    tensors = load_file(folder / W)
    (folder / W).unlink()
    files = {name: f"model-0000{1 + i % 2}-of-00002.safetensors" for i, name in enumerate(tensors)}
    for file in {*files.values()}:
        part = {name: x for name, x in tensors.items() if files[name] == file}
        (folder / file).write_bytes(tiny.pack(part))
    (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": files}))


@change
def after(folder, *changes):
    for each in changes:
        path = each(folder)
    return path


@change
def of_cache(folder, refs, *commits):
    """A cache's folder models--org--name; its snapshots are made in this order."""
    storage = folder / "models--org--name"
    for i, (commit, is_good) in enumerate(commits):
        snapshot = storage / "snapshots" / (commit * 40)
        snapshot.mkdir(parents=True)
        for name in ("config.json", W):
            shutil.copy(folder / name, snapshot)
        if not is_good:
            (snapshot / W).write_bytes(POINTER)
        os.utime(snapshot, (1e9 + i, 1e9 + i))
    if refs:
        (storage / "refs").mkdir()
        (storage / "refs" / "main").write_text(refs * 40)
    return storage


@change
def inside(folder, *names):
    """The folder's files in folders of these names inside, and none at the top."""
    files = [*folder.iterdir()]
    for name in names:
        (folder / name).mkdir()
        for file in files:
            shutil.copy(file, folder / name)
    for file in files:
        file.unlink()


@change
def file_of(folder, name, content=None):
    """A file of the folder in the folder's place."""
    if content is not None:
        (folder / "config.json").unlink()
        (folder / name).write_bytes(content)
    return folder / name


@change
def link_to_nothing(folder, name):
    """A file that is a link to one that was removed, as in a cache that was cleared."""
    (folder / name).unlink()
    (folder / name).symlink_to(folder / "blobs" / "gone")


LORA = json.dumps({"peft_type": "LORA", "base_model_name_or_path": "org/base"}).encode()
PROMPT = json.dumps({"peft_type": "PROMPT_TUNING", "base_model_name_or_path": "org/base"}).encode()
MADE_FROM = b"---\nlicense: mit\nbase_model: org/whole\n---\n# A model\n"
E = "bert.embeddings.word_embeddings.weight"

SAY = [
    State("weights are a Git LFS pointer", put(model__safetensors=POINTER), "LFS.*`git lfs pull`"),
    State("config is a Git LFS pointer", put(config__json=POINTER), "config.json is a Git LFS"),
    State(
        "index is a Git LFS pointer",
        after(sharded, put(model__safetensors__index__json=POINTER)),
        "index.json is a Git LFS pointer",
    ),
    State(
        "a shard is a Git LFS pointer",
        after(sharded, put(**{"model-00002-of-00002__safetensors": POINTER})),
        "model-00002-of-00002.safetensors is a Git LFS pointer",
    ),
    State("weights are a git-annex pointer", put(model__safetensors=b"/annex/objects/X"), "annex"),
    State("weights are a web page", put(model__safetensors=PAGE), "is a web page: download"),
    State("config is a web page", put(config__json=PAGE), "config.json is a web page"),
    State("weights are torch's zip", put(model__safetensors=b"PK\3\4" + b"0" * 99), "zip archive"),
    State("weights are a renamed GGUF", put(model__safetensors=b"GGUF" + b"0" * 99), "GGUF file"),
    State("weights are gzipped", put(model__safetensors=b"\x1f\x8b" + b"0" * 99), "gzip: unpack"),
    State(
        "weights are empty", put(model__safetensors=b""), "model.safetensors is empty: get the file"
    ),
    State(
        "LoRA",
        without_config(adapter_config__json=LORA, adapter_model__safetensors=b""),
        r"adapter \(LoRA\) of org/base, not a model: merge .* merge_and_unload",
    ),
    State(
        "LoRA of an older PEFT, a pickle",
        without_config(adapter_config__json=LORA, adapter_model__bin=b""),
        "of org/base",
    ),
    State(
        "LoRA beside a config",
        only(adapter_config__json=LORA, adapter_model__safetensors=b"", training_args__bin=b""),
        "of org/base",
    ),
    State(
        "LoRA that names no model",
        without_config(adapter_config__json=b"{}", adapter_model__safetensors=b""),
        "of the model that adapter_config.json names",
    ),
    State(
        "prompt tuning",
        without_config(adapter_config__json=PROMPT, adapter_model__safetensors=b""),
        "of org/base, not a model: its virtual tokens cannot be merged",
    ),
    State(
        "LoRA that is not merged",
        added(
            bert__encoder__layer__0__attention__self__query__lora_A__weight=np.ones((2, 18), "f4")
        ),
        "LoRA adapter that is not merged",
    ),
    State("a pickle", only(pytorch_model__bin=b"x"), "pytorch_model.bin, pickles.*save_pretrained"),
    State("Lightning's pickle", only(last__ckpt=b"x"), "last.ckpt, pickles"),
    State(
        "a pickle, no config", without_config(pytorch_model__bin=b"x"), "no config.json .*pickles"
    ),
    State("TensorFlow", only(tf_model__h5=b"x"), "tf_model.h5, of TensorFlow.*from_tf=True"),
    State("Flax", only(flax_model__msgpack=b"x"), "of Flax.*from_flax=True"),
    State("GGUF", only(**{"model-q4_k_m__gguf": b"GGUF"}), "GGUF, mostly quantized.*gguf_file"),
    State("GGUF, no config", without_config(model__gguf=b"GGUF"), "no config.json .* GGUF"),
    State("ONNX", only(model__onnx=b"x"), "an exported graph .*fetch the safetensors"),
    State("NumPy", only(weights__npz=b"x"), "weights.npz, NumPy arrays.*save_file"),
    State("rust_model.ot", only(rust_model__ot=b"x"), "for another runtime"),
    State(
        "another name",
        lambda folder: (folder / W).rename(folder / "model.fp16.safetensors") and None,
        "as model.fp16.safetensors; wanted the name model.safetensors",
    ),
    State("FP8 by config", stated(quantization_config={"quant_method": "fp8"}), r"quantized \(fp8"),
    State(
        "GPTQ by config",
        stated(quantization_config={"quant_method": "gptq", "bits": 4}),
        r"is quantized \(gptq, 4 bits\).* fetch the model that it was made from in float32",
    ),
    State(
        "AWQ by config, made from another model",
        after(
            stated(quantization_config={"quant_method": "awq", "bits": 4}),
            put(README__md=MADE_FROM),
        ),
        "fetch org/whole in float32",
    ),
    State(
        "bitsandbytes by config",
        stated(quantization_config={"load_in_8bit": True, "quant_method": "bitsandbytes"}),
        r"quantized \(bitsandbytes\)",
    ),
    State("MLX by config", stated(quantization={"group_size": 64, "bits": 4}), "MLX, 4 bits"),
    State(
        "FP8 by dtype",
        retyped(lambda t: t | {E: ("F8_E4M3", t[E].shape, b"0" * t[E].size)}),
        r"quantized \(FP8\)",
    ),
    State(
        "FP8 by scales",
        added(bert__encoder__layer__0__output__dense__weight_scale_inv=np.ones(1, "f4")),
        "quantized",
    ),
    State("GPTQ by name", added(layers__0__q_proj__qweight=np.ones(2, "f4")), "GPTQ or AWQ"),
    State(
        "bitsandbytes by name",
        retyped(lambda t: t | {"w.quant_state.bitsandbytes__nf4": np.ones(2, "f4")}),
        r"quantized \(bitsandbytes, 4 bits",
    ),
    State("int8 of bitsandbytes", added(layers__0__q_proj__SCB=np.ones(2, "f4")), "8 bits"),
    State("MLX by name", added(layers__0__q_proj__scales=np.ones(2, "f4")), "MLX"),
    State(
        "a shard is missing",
        after(sharded, put(**{"model-00002-of-00002__safetensors": None})),
        "lists shards that are not in .*: model-00002-of-00002.safetensors; get",
    ),
    State(
        "an index without shards",
        after(
            sharded,
            put(
                **{
                    "model-00001-of-00002__safetensors": None,
                    "model-00002-of-00002__safetensors": None,
                }
            ),
        ),
        "lists shards that are not in .*: model-00001-of-00002.safetensors, model-00002",
    ),
    State(
        "shards without index",
        after(sharded, put(model__safetensors__index__json=None)),
        "shards .* without model.safetensors.index.json: get this file",
    ),
    State("no weights", only(), r"no model.safetensors or .* in .*\(there: config.json\)"),
    State("no config", put(config__json=None), "no config.json .* copy it from where the weights"),
    State("empty", without_config(), "is empty; wanted config.json and model.safetensors"),
    State("a folder of folders", inside("a", "checkpoint-500"), "inside: a, checkpoint-500"),
    State("of sentence-transformers", inside("0_Transformer"), "inside: 0_Transformer"),
    State("a GGUF file", file_of("x.gguf", b"GGUF"), "is a file; wanted the folder .*GGUF"),
    State("a text file", file_of("x.txt", b"text"), "is a file; wanted the folder of a checkpoint"),
    State("a link to nothing", link_to_nothing(W), "model.safetensors is a link to a file that is"),
    State("config a link to nothing", link_to_nothing("config.json"), "config.json is a link to"),
    State("a cache folder, no snapshot good", of_cache("a", ("a", False)), "LFS pointer"),
]
LOAD = [
    State("plain", lambda folder: None),
    State("shards", sharded),
    State("its weights file", file_of(W)),
    State("its config.json", file_of("config.json")),
    State("its index", after(sharded, file_of(INDEX))),
    State("a cache folder", of_cache("a", ("a", True), ("b", False))),
    State("a cache folder, newest snapshot", of_cache("", ("a", False), ("b", True))),
    State("an adapter beside its merged model", put(adapter_config__json=LORA)),
    State("a pickle beside", put(pytorch_model__bin=b"x", optimizer__pt=b"x")),
]
FAMILIES = (
    "bert-masked",
    "roberta-sequence",
    "distilbert-masked",
    "gpt2-causal",
    "bart-untied",
    "t5-gated",
    "llama-grouped",
    "gpt_neox-parallel",
    "modernbert-masked",
    "deberta-masked",
)
PREFIXES = {
    "DDP": "module.",
    "torch.compile": "_orig_mod.",
    "PEFT": "base_model.model.",
    "torch.compile of DDP": "_orig_mod.module.",
    "DDP of torch.compile": "module._orig_mod.",
    "DDP of PEFT": "module.base_model.model.",
    "PEFT of torch.compile": "base_model.model._orig_mod.",
    "an own name": "outer.inner.",
}


def prefixed(prefix):
    return retyped(lambda tensors: {prefix + name: x for name, x in tensors.items()})


def compiled(tensors):
    """Each layer compiled by itself."""
    return {re.sub(r"(\.\d+\.)", r"\1_orig_mod.", name): x for name, x in tensors.items()}


LOAD += [
    State(f"{name} ({prefix})", prefixed(prefix), base=base)
    for base in FAMILIES
    for name, prefix in PREFIXES.items()
]
LOAD += [State("layers compiled", retyped(compiled), base=base) for base in FAMILIES]
LOAD += [State("DDP, shards", after(prefixed("module."), sharded), base=base) for base in FAMILIES]


def built(state, folder):
    """The path that a user would give of a folder in a state."""
    tiny.make(folder, state.base)
    return state.change(folder) or folder
