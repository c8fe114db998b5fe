"""Checkpoint folders with random weights in the shapes that are timed, and their ONNX files.

    python -m benchmarks.shapes FOLDER SHAPE     # writes FOLDER/SHAPE and, where torch is there, its ONNX files

Every system reads the same weights. Matrices are normal with a standard deviation of 0.05, biases and norms away from
0 and 1, so that a swapped or forgotten tensor shows in the first output.
"""
import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

ROBERTA = dict(model_type="roberta", architectures=["RobertaForMaskedLM"], vocab_size=50265, hidden_size=768,
               num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072, hidden_act="gelu",
               max_position_embeddings=514, type_vocab_size=1, layer_norm_eps=1e-5, pad_token_id=1, bos_token_id=0,
               eos_token_id=2, hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1, tie_word_embeddings=True)
GPT2 = dict(model_type="gpt2", architectures=["GPT2LMHeadModel"], vocab_size=50257, n_embd=768, n_layer=12, n_head=12,
            n_inner=None, n_positions=1024, activation_function="gelu_new", layer_norm_epsilon=1e-5,
            bos_token_id=50256, eos_token_id=50256, tie_word_embeddings=True)
SHAPES = {  # name -> config.json; the small ones are for tests
    "roberta-base": ROBERTA, "gpt2": GPT2,
    "roberta-small": ROBERTA | dict(vocab_size=101, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                                    intermediate_size=64, max_position_embeddings=66),
    "gpt2-small": GPT2 | dict(vocab_size=101, n_embd=32, n_layer=2, n_head=4, n_positions=128, bos_token_id=100,
                              eos_token_id=100)}
ONNX = {"roberta-base": ("hidden", "logits"), "gpt2": ("hidden",)}  # shape -> the outputs that a file is made for
FIRST_ID = 3  # ids below mean something to RoBERTa


def layers(config):
    """How many layers a config.json has."""
    return config.get("num_hidden_layers") or config["n_layer"]


def names(config):
    """{tensor name: shape} of a checkpoint with this config.json."""
    return (_roberta if config["model_type"] == "roberta" else _gpt2)(config)


def _roberta(c):
    D, M, V = c["hidden_size"], c["intermediate_size"], c["vocab_size"]
    body = {"embeddings.word_embeddings.weight": (V, D), "embeddings.token_type_embeddings.weight": (1, D),
            "embeddings.position_embeddings.weight": (c["max_position_embeddings"], D),
            **_pair("embeddings.LayerNorm", D)}
    for i in range(layers(c)):
        for part, shape in (("attention.self.query", (D, D)), ("attention.self.key", (D, D)),
                            ("attention.self.value", (D, D)), ("attention.output.dense", (D, D)),
                            ("attention.output.LayerNorm", (D,)), ("intermediate.dense", (M, D)),
                            ("output.dense", (D, M)), ("output.LayerNorm", (D,))):
            body |= _pair(f"encoder.layer.{i}.{part}", *shape)
    return {f"roberta.{name}": shape for name, shape in body.items()} | _pair("lm_head.dense", D, D) \
        | _pair("lm_head.layer_norm", D) | {"lm_head.bias": (V,)}


def _gpt2(c):
    D, V = c["n_embd"], c["vocab_size"]
    body = {"wte.weight": (V, D), "wpe.weight": (c["n_positions"], D), **_pair("ln_f", D)}
    for i in range(layers(c)):
        for part, *shape in (("ln_1", D), ("ln_2", D), ("attn.c_attn", D, 3 * D), ("attn.c_proj", D, D),
                             ("mlp.c_fc", D, 4 * D), ("mlp.c_proj", 4 * D, D)):
            body |= _pair(f"h.{i}.{part}", *shape, bias=shape[-1])
    return {f"transformer.{name}": shape for name, shape in body.items()}


def _pair(name, *shape, bias=None):
    return {f"{name}.weight": shape, f"{name}.bias": (bias or shape[0],)}


def make(folder, shape, seed=0):
    """The checkpoint folder of a shape, written unless it is there -> its path."""
    folder, config, rng = Path(folder) / shape, SHAPES[shape], np.random.default_rng(seed)
    if (folder / "model.safetensors").is_file() and json.loads((folder / "config.json").read_text()) == config:
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {}
    for name, size in names(config).items():
        norm = "ln_" in name or "norm" in name.lower()
        tensors[name] = rng.standard_normal(size, np.float32) * np.float32(0.1 if norm else 0.05)
        tensors[name] += np.float32(norm and name.endswith("weight"))
    (folder / "config.json").write_text(json.dumps(config))
    save_file(tensors, folder / "model.tmp", metadata={"format": "pt"})
    os.replace(folder / "model.tmp", folder / "model.safetensors")
    return folder


def ids(shape, batch, tokens, seed=0):
    """Random token ids [B T] without special ones."""
    return np.random.default_rng(seed).integers(FIRST_ID, SHAPES[shape]["vocab_size"] - 1, (batch, tokens))


def read_by_a_token(shape):
    """Bytes of float32 weights that one more token has to read: all, but of positions only its own row."""
    return 4 * sum(math.prod(size) for name, size in names(SHAPES[shape]).items() if "wpe" not in name)


def flops(shape, batch, tokens):
    """Multiplications and additions in the matrix products of one pass to the final hidden states."""
    D = SHAPES[shape].get("hidden_size") or SHAPES[shape]["n_embd"]
    M = SHAPES[shape].get("intermediate_size") or 4 * D
    each = 2 * (4 * D * D + 2 * D * M) + 4 * tokens * D  # of a token in a layer: weights, then scores and values
    return batch * tokens * each * layers(SHAPES[shape])


def export(folder):
    """ONNX files of a checkpoint: as torch gives it ("plain"), and with norms, GELU and attention fused ("fused").

    Graphs of torch's older exporter run 5 to 10 % faster in ONNX Runtime; the newer one keeps a tied matrix once and
    the weights in a file that can be mapped, which is what a cold start wants: "hidden" is made by the older, "logits"
    by the newer.
    """
    draft = folder / "draft"
    for output in ONNX.get(folder.name, ()):
        for kind, how in (("plain", _plain), ("fused", _fused)):
            if (folder / f"{output}-{kind}.onnx").is_file():
                continue
            draft.mkdir(exist_ok=True)
            how(folder, output, draft / f"{output}-{kind}.onnx")
            for path in sorted(draft.glob(f"{output}-{kind}*"), reverse=True):  # ….onnx.data before ….onnx
                os.replace(path, folder / path.name)
            shutil.rmtree(draft)


def made(work, shape):
    """The checkpoint folder of a shape with its ONNX files, made in a process of their own where they are missing."""
    folder = make(work, shape)
    files = [folder / f"{output}-{kind}.onnx" for output in ONNX.get(shape, ()) for kind in ("plain", "fused")]
    if not all(path.is_file() for path in files):
        told = subprocess.run([sys.executable, "-m", "benchmarks.shapes", str(work), shape], capture_output=True,
                              text=True, cwd=Path(__file__).parents[1])
        if told.returncode:
            print(f"{shape}: no ONNX files: {told.stderr.strip().splitlines()[-1]}", file=sys.stderr)
    return folder


def _plain(folder, output, path, mask=None):
    import torch
    from transformers import AutoModel, AutoModelForMaskedLM
    head, new = {"hidden": (AutoModel, False), "logits": (AutoModelForMaskedLM, True)}[output]
    causal = SHAPES[folder.name]["model_type"] == "gpt2"
    model = head.from_pretrained(folder, attn_implementation="eager").eval()
    options = {"use_cache": False} if causal else {}

    class First(torch.nn.Module):
        """The model with ids in and one array out."""
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, input_ids, attention_mask=None):
            return self.model(input_ids, attention_mask=attention_mask, **options)[0]

    with_mask = not new and (causal if mask is None else mask)  # the older exporter needs one for a causal model
    names = ["input_ids", "attention_mask"][:1 + with_mask]
    inputs = (torch.full((2, 16), FIRST_ID), torch.ones((2, 16), dtype=torch.long))[:len(names)]
    sizes = {0: torch.export.Dim("batch", min=1, max=64), 1: torch.export.Dim("tokens", min=2, max=512)}
    how = {"dynamo": True, "external_data": True, "dynamic_shapes": (sizes,)} if new else {
        "dynamo": False, "opset_version": 17, "dynamic_axes": {name: {0: "batch", 1: "tokens"} for name in names}}
    with torch.inference_mode():
        torch.onnx.export(First().eval(), inputs, path, input_names=names, output_names=[output], **how)


def _fused(folder, output, path):
    from onnxruntime.transformers.fusion_options import FusionOptions
    from onnxruntime.transformers.optimizer import optimize_model
    config = SHAPES[folder.name]
    kind = {"roberta": "bert", "gpt2": "gpt2"}[config["model_type"]]
    plain = path.with_name(f"tmp-{path.name}")
    _plain(folder, output, plain, mask=True)  # attention without one is not recognised by the tool
    optimizer = optimize_model(str(plain), kind, num_heads=config.get("num_attention_heads") or config["n_head"],
                               hidden_size=config.get("hidden_size") or config["n_embd"],
                               optimization_options=FusionOptions(kind), opt_level=0)
    optimizer.save_model_to_file(str(path), use_external_data_format=output == "logits")
    said = {kind: n for kind, n in optimizer.get_fused_operator_statistics().items() if n}
    path.with_suffix(".json").write_text(json.dumps(said))


if __name__ == "__main__":
    export(make(*sys.argv[1:]))
