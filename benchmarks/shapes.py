"""Checkpoint folders with random weights in the shapes that are timed, and their ONNX files.

    python -m benchmarks.shapes FOLDER SHAPE

That writes FOLDER/SHAPE and, where torch is installed, its ONNX files.

Every system reads the same weights. Matrices are normal with a standard deviation of 0.05, biases
and norms away from 0 and 1, so that a swapped or forgotten tensor shows in the first output.
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

ROBERTA = dict(
    model_type="roberta",
    architectures=["RobertaForMaskedLM"],
    vocab_size=50265,
    hidden_size=768,
    num_hidden_layers=12,
    num_attention_heads=12,
    intermediate_size=3072,
    hidden_act="gelu",
    max_position_embeddings=514,
    type_vocab_size=1,
    layer_norm_eps=1e-5,
    pad_token_id=1,
    bos_token_id=0,
    eos_token_id=2,
    hidden_dropout_prob=0.1,
    attention_probs_dropout_prob=0.1,
    tie_word_embeddings=True,
)
GPT2 = dict(
    model_type="gpt2",
    architectures=["GPT2LMHeadModel"],
    vocab_size=50257,
    n_embd=768,
    n_layer=12,
    n_head=12,
    n_inner=None,
    n_positions=1024,
    activation_function="gelu_new",
    layer_norm_epsilon=1e-5,
    bos_token_id=50256,
    eos_token_id=50256,
    tie_word_embeddings=True,
)
SMOLLM = dict(
    model_type="llama",
    architectures=["LlamaForCausalLM"],
    vocab_size=49152,
    hidden_size=576,
    num_hidden_layers=30,
    num_attention_heads=9,
    num_key_value_heads=3,
    head_dim=64,
    intermediate_size=1536,
    hidden_act="silu",
    max_position_embeddings=2048,
    rms_norm_eps=1e-5,
    rope_theta=10000.0,
    tie_word_embeddings=True,
    bos_token_id=0,
    eos_token_id=None,
    torch_dtype="float32",
)
SHAPES = {  # name -> config.json; the small ones are for tests
    "roberta-base": ROBERTA,
    "gpt2": GPT2,
    "smollm-135m": SMOLLM,
    "smollm-small": SMOLLM
    | dict(
        vocab_size=512,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        intermediate_size=128,
    ),
    "roberta-small": ROBERTA
    | dict(
        vocab_size=101,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=66,
    ),
    "gpt2-small": GPT2
    | dict(
        vocab_size=101,
        n_embd=32,
        n_layer=2,
        n_head=4,
        n_positions=128,
        bos_token_id=100,
        eos_token_id=100,
    ),
}
# shape -> the outputs that a file is made for
ONNX = {"roberta-base": ("hidden", "logits"), "gpt2": ("hidden",)}
FIRST_ID = 3  # ids below mean something to RoBERTa


def layers(config):
    """How many layers a config.json has."""
    return config.get("num_hidden_layers") or config["n_layer"]


def names(config):
    """{tensor name: shape} of a checkpoint with this config.json."""
    shapes_of = {"roberta": _roberta, "gpt2": _gpt2, "llama": _llama}
    return shapes_of[config["model_type"]](config)


def _roberta(c):
    """Shapes of a RoBERTa with a masked-LM head; c: its config.json."""
    D, M, V = c["hidden_size"], c["intermediate_size"], c["vocab_size"]
    body = {
        "embeddings.word_embeddings.weight": (V, D),
        "embeddings.token_type_embeddings.weight": (1, D),
        "embeddings.position_embeddings.weight": (c["max_position_embeddings"], D),
        **_pair("embeddings.LayerNorm", D),
    }
    for i in range(layers(c)):
        for part, shape in (
            ("attention.self.query", (D, D)),
            ("attention.self.key", (D, D)),
            ("attention.self.value", (D, D)),
            ("attention.output.dense", (D, D)),
            ("attention.output.LayerNorm", (D,)),
            ("intermediate.dense", (M, D)),
            ("output.dense", (D, M)),
            ("output.LayerNorm", (D,)),
        ):
            body |= _pair(f"encoder.layer.{i}.{part}", *shape)
    tensors = {f"roberta.{name}": shape for name, shape in body.items()}
    tensors |= _pair("lm_head.dense", D, D) | _pair("lm_head.layer_norm", D)
    tensors["lm_head.bias"] = (V,)
    return tensors


def _gpt2(c):
    """Shapes of a GPT-2 with a tied head; c: its config.json."""
    D, V = c["n_embd"], c["vocab_size"]
    body = {"wte.weight": (V, D), "wpe.weight": (c["n_positions"], D), **_pair("ln_f", D)}
    for i in range(layers(c)):
        for part, *shape in (
            ("ln_1", D),
            ("ln_2", D),
            ("attn.c_attn", D, 3 * D),
            ("attn.c_proj", D, D),
            ("mlp.c_fc", D, 4 * D),
            ("mlp.c_proj", 4 * D, D),
        ):
            body |= _pair(f"h.{i}.{part}", *shape, bias=shape[-1])
    return {f"transformer.{name}": shape for name, shape in body.items()}


def _llama(c):
    """Shapes of a Llama with a tied head; c: its config.json."""
    D, M, V, d = (c[key] for key in ("hidden_size", "intermediate_size", "vocab_size", "head_dim"))
    A, K = c["num_attention_heads"] * d, c["num_key_value_heads"] * d
    body = {f"self_attn.{name}_proj": (K, D) for name in "kv"}
    body |= {"self_attn.q_proj": (A, D), "self_attn.o_proj": (D, A), "mlp.down_proj": (D, M)}
    body |= {f"mlp.{name}_proj": (M, D) for name in ("gate", "up")}
    body |= {f"{name}_layernorm": (D,) for name in ("input", "post_attention")}
    tensors = {"model.embed_tokens.weight": (V, D), "model.norm.weight": (D,)}
    for i in range(layers(c)):
        tensors |= {f"model.layers.{i}.{name}.weight": shape for name, shape in body.items()}
    return tensors


def _pair(name, *shape, bias=None):
    """A weight and its bias: as long as the first axis, or `bias`."""
    return {f"{name}.weight": shape, f"{name}.bias": (bias or shape[0],)}


def make(folder, shape, seed=0):
    """Write the checkpoint folder of a shape unless it exists; return its path."""
    folder, config = Path(folder) / shape, SHAPES[shape]
    weights, settings = folder / "model.safetensors", folder / "config.json"
    if weights.is_file() and json.loads(settings.read_text()) == config:
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    tensors = {}
    for name, size in names(config).items():
        norm = "ln_" in name or "norm" in name.lower()
        tensors[name] = rng.standard_normal(size, np.float32) * np.float32(0.1 if norm else 0.05)
        tensors[name] += np.float32(norm and name.endswith("weight"))
    settings.write_text(json.dumps(config))
    draft = folder / "model.tmp"
    save_file(tensors, draft, metadata={"format": "pt"})
    os.replace(draft, weights)
    return folder


def ids(shape, batch, tokens, seed=0):
    """Random token ids [B T] without special ones."""
    last = SHAPES[shape]["vocab_size"] - 1
    return np.random.default_rng(seed).integers(FIRST_ID, last, (batch, tokens))


def read_by_a_token(shape):
    """Bytes of float32 weights that one more token reads: all, but only one row of positions."""
    sizes = [size for name, size in names(SHAPES[shape]).items() if "wpe" not in name]
    return 4 * sum(map(math.prod, sizes))


def flops(shape, batch, tokens):
    """Operations of the matrix products of one pass to the final hidden states."""
    config = SHAPES[shape]
    D = config.get("hidden_size") or config["n_embd"]
    M = config.get("intermediate_size") or 4 * D
    K = D  # width of all keys
    if "num_key_value_heads" in config:
        K = config["num_key_value_heads"] * config["head_dim"]
    n_mlp = 3 if config["model_type"] == "llama" else 2  # a gate is a third matrix
    # of a token in a layer: weights, then scores and values; multiplications and additions
    operations = 2 * (2 * D * D + 2 * D * K + n_mlp * D * M) + 4 * tokens * D
    return batch * tokens * operations * layers(config)


def export(folder):
    """Write the ONNX files of a checkpoint, "plain" and "fused".

    "plain" is the graph as torch exports it; "fused" has norms, GELU and attention fused. Graphs of
    torch's older exporter run 5 to 10% faster in ONNX Runtime; the newer one keeps a tied matrix
    once and the weights in a file that can be mapped, which suits a cold start: "hidden" is made by
    the older, "logits" by the newer.
    """
    draft = folder / "draft"
    for output in ONNX.get(folder.name, ()):
        for kind, write in (("plain", _plain), ("fused", _fused)):
            if (folder / f"{output}-{kind}.onnx").is_file():
                continue
            draft.mkdir(exist_ok=True)
            write(folder, output, draft / f"{output}-{kind}.onnx")
            # ….onnx.data before ….onnx
            for path in sorted(draft.glob(f"{output}-{kind}*"), reverse=True):
                os.replace(path, folder / path.name)
            shutil.rmtree(draft)


def ensure(work, shape):
    """The checkpoint folder of a shape, with its ONNX files if they can be made.

    Missing files are made in a process of their own.
    """
    folder = make(work, shape)
    names = [f"{output}-{kind}" for output in ONNX.get(shape, ()) for kind in ("plain", "fused")]
    if not all((folder / f"{name}.onnx").is_file() for name in names):
        command = [sys.executable, "-m", "benchmarks.shapes", str(work), shape]
        root = Path(__file__).parents[1]
        done = subprocess.run(command, capture_output=True, text=True, cwd=root, check=False)
        if done.returncode:
            reason = done.stderr.strip().splitlines()[-1]
            print(f"{shape}: no ONNX files: {reason}", file=sys.stderr)
    return folder


def _plain(folder, output, path, mask=None):
    """Export the graph of one output; mask: with an attention mask as input."""
    import torch
    from transformers import AutoModel, AutoModelForMaskedLM

    newer = output == "logits"
    head = AutoModelForMaskedLM if newer else AutoModel
    causal = SHAPES[folder.name]["model_type"] == "gpt2"
    model = head.from_pretrained(folder, attn_implementation="eager").eval()
    if mask is None:
        mask = causal  # the older exporter needs one for a causal model
    names = ["input_ids", "attention_mask"] if mask and not newer else ["input_ids"]
    tokens = torch.full((2, 16), FIRST_ID)
    mask_of_ones = torch.ones((2, 16), dtype=torch.long)
    inputs = (tokens, mask_of_ones)[: len(names)]
    options = _newer_exporter(torch) if newer else _older_exporter(names)
    options |= {"input_names": names, "output_names": [output]}
    with torch.inference_mode():
        torch.onnx.export(_first_output(torch, model, causal), inputs, path, **options)


def _first_output(torch, model, causal):
    """The model as a module with ids in and one array out."""
    options = {"use_cache": False} if causal else {}

    class First(torch.nn.Module):
        """The first output of the model."""

        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, input_ids, attention_mask=None):
            return self.model(input_ids, attention_mask=attention_mask, **options)[0]

    return First().eval()


def _newer_exporter(torch):
    """Options of torch's newer exporter, for any batch and length."""
    batch = torch.export.Dim("batch", min=1, max=64)
    tokens = torch.export.Dim("tokens", min=2, max=512)
    sizes = {0: batch, 1: tokens}
    return {"dynamo": True, "external_data": True, "dynamic_shapes": (sizes,)}


def _older_exporter(names):
    """Options of torch's older exporter, for any batch and length."""
    axes = {name: {0: "batch", 1: "tokens"} for name in names}
    return {"dynamo": False, "opset_version": 17, "dynamic_axes": axes}


def _fused(folder, output, path):
    """Export the graph with a mask, without which attention is not recognised, and fuse it."""
    from onnxruntime.transformers.fusion_options import FusionOptions
    from onnxruntime.transformers.optimizer import optimize_model

    config = SHAPES[folder.name]
    kind = {"roberta": "bert", "gpt2": "gpt2"}[config["model_type"]]
    plain = path.with_name(f"tmp-{path.name}")
    _plain(folder, output, plain, mask=True)
    sizes = {"num_heads": config.get("num_attention_heads") or config["n_head"]}
    sizes["hidden_size"] = config.get("hidden_size") or config["n_embd"]
    optimizer = optimize_model(
        str(plain), kind, optimization_options=FusionOptions(kind), opt_level=0, **sizes
    )
    optimizer.save_model_to_file(str(path), use_external_data_format=output == "logits")
    fusions = optimizer.get_fused_operator_statistics().items()
    path.with_suffix(".json").write_text(json.dumps({name: n for name, n in fusions if n}))


if __name__ == "__main__":
    export(make(*sys.argv[1:]))
