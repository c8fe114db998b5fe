"""Checkpoint folders with random weights in the shapes that are timed, and their ONNX files.

    python -m benchmarks.shapes FOLDER SHAPE     # writes FOLDER/SHAPE and, where torch is there, its ONNX files

Every system reads the same weights. Matrices are normal with a standard deviation of 0.05, biases and norms away from
0 and 1, so that a swapped or forgotten tensor shows in the first output.
"""
import json
import os
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
    "gpt2-small": GPT2 | dict(vocab_size=101, n_embd=32, n_layer=2, n_head=4, n_positions=64, bos_token_id=100,
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


def read_by_a_token(folder):
    """Bytes of weights that one more token has to read: all but the rows of positions that are not its own."""
    from safetensors import safe_open
    with safe_open(folder / "model.safetensors", "np") as file:
        shapes = {name: file.get_slice(name).get_shape() for name in file.keys()}
    return 4 * sum(int(np.prod(shape)) for name, shape in shapes.items() if "wpe" not in name)


def export(folder, shape):
    """ONNX files of a shape, each as it comes ("plain") and with attention, norms and GELU fused ("fused")."""
    for output in ONNX.get(shape, ()):
        plain, fused = (folder / f"{output}-{kind}.onnx" for kind in ("plain", "fused"))
        if not plain.is_file():
            _plain(folder, output, plain)
        if not fused.is_file():
            _fused(SHAPES[shape], plain, fused)


def _plain(folder, output, path):
    import torch
    from transformers import AutoModel, AutoModelForMaskedLM
    head = {"hidden": AutoModel, "logits": AutoModelForMaskedLM}[output]
    options = {"add_pooling_layer": False} if output == "hidden" and "roberta" in str(folder.name) else {}
    model = head.from_pretrained(folder, attn_implementation="eager", **options).eval()

    class First(torch.nn.Module):
        """The model with ids in and one array out."""
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, input_ids):
            return self.model(input_ids, **({"use_cache": False} if "gpt2" in str(folder.name) else {}))[0]

    size = {0: torch.export.Dim("batch", min=1, max=64), 1: torch.export.Dim("tokens", min=2, max=512)}
    draft = path.with_name(f"draft-{path.name}")
    with torch.inference_mode():
        torch.onnx.export(First(), (torch.ones((2, 16), dtype=torch.long) * FIRST_ID,), draft, dynamo=True,
                          external_data=False, input_names=["input_ids"], output_names=[output],
                          dynamic_shapes=(size,))
    os.replace(draft, path)


def _fused(config, plain, path):
    from onnxruntime.transformers.fusion_options import FusionOptions
    from onnxruntime.transformers.optimizer import optimize_model
    kind = {"roberta": "bert", "gpt2": "gpt2"}[config["model_type"]]
    optimizer = optimize_model(str(plain), kind, num_heads=config.get("num_attention_heads") or config["n_head"],
                               hidden_size=config.get("hidden_size") or config["n_embd"],
                               optimization_options=FusionOptions(kind), opt_level=0)
    draft = path.with_name(f"draft-{path.name}")
    optimizer.save_model_to_file(str(draft), use_external_data_format=False)
    os.replace(draft, path)
    print(path.name, {k: n for k, n in optimizer.get_fused_operator_statistics().items() if n}, file=sys.stderr)


if __name__ == "__main__":
    export(make(*sys.argv[1:]), sys.argv[2])
