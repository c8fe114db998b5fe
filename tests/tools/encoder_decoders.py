"""Tiny random encoder-decoders with a real tokenizer, written where a test wants them.

The stacks differ in layers, so that what takes one for the other does not fit.
"""

import json
import shutil

from analysis_models import TOKENIZER, random_tensors
from safetensors.numpy import save_file

V, D, H, M, T = 1024, 24, 3, 40, 64
LAYERS = {"encoder": 2, "decoder": 3}
SPECIAL = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}
PARTS = "q_proj", "k_proj", "v_proj", "out_proj"


def bart(folder):
    """Learned positions, norms behind each addition."""
    sizes = _bart_sizes()
    for side in LAYERS:
        sizes[f"model.{side}.embed_positions.weight"] = T + 2, D
        sizes |= with_bias(f"model.{side}.layernorm_embedding", D)
    config = _bart_config("bart", "BartForConditionalGeneration", decoder_start_token_id=2)
    return _written(folder, config | {"scale_embedding": False}, sizes)


def marian(folder):
    """Positions that are computed, no norm of the embedding, scaled words."""
    config = _bart_config("marian", "MarianMTModel", decoder_start_token_id=1)
    return _written(folder, config | {"scale_embedding": True}, _bart_sizes())


def t5(folder):
    """No position table, no biases, norms without a mean."""
    config = dict(model_type="t5", architectures=["T5ForConditionalGeneration"], vocab_size=V)
    config |= dict(d_model=D, d_kv=10, d_ff=M, num_heads=H, feed_forward_proj="gated-gelu")
    config |= dict(num_layers=LAYERS["encoder"], num_decoder_layers=LAYERS["decoder"])
    config |= dict(n_positions=T, layer_norm_epsilon=1e-6, relative_attention_num_buckets=8)
    config |= SPECIAL | dict(decoder_start_token_id=1, tie_word_embeddings=False)
    sizes = {"shared.weight": (V, D), "lm_head.weight": (V, D)}
    for side, n in LAYERS.items():
        for i in range(n):
            sizes |= t5_layer(f"{side}.block.{i}.layer", is_decoder=side == "decoder")
        bias = f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        sizes |= {bias: (8, H), f"{side}.final_layer_norm.weight": (D,)}
    return _written(folder, config, sizes)


MAKERS = {"bart": bart, "marian": marian, "t5": t5}


def _bart_config(model_type, architecture, **more):
    config = dict(model_type=model_type, architectures=[architecture], vocab_size=V, d_model=D)
    config |= dict(max_position_embeddings=T, activation_function="gelu", **SPECIAL, **more)
    for side, n in LAYERS.items():
        config |= {f"{side}_layers": n, f"{side}_attention_heads": H, f"{side}_ffn_dim": M}
    return config


def _bart_sizes():
    """{name: shape} of what BART and Marian share."""
    return {"model.shared.weight": (V, D), "final_logits_bias": (1, V)} | stacks(LAYERS)


def stacks(layers, prefix="model."):
    """{name: shape} of their layers, {stack: number of layers}."""
    sizes = {}
    for side, n in layers.items():
        for i in range(n):
            sizes |= _bart_layer(f"{prefix}{side}.layers.{i}", is_decoder=side == "decoder")
    return sizes


def _bart_layer(prefix, is_decoder):
    sizes = {f"{prefix}.fc1.weight": (M, D), f"{prefix}.fc1.bias": (M,)}
    sizes |= {f"{prefix}.fc2.weight": (D, M), f"{prefix}.fc2.bias": (D,)}
    sizes |= with_bias(f"{prefix}.final_layer_norm", D)
    for name in ("self_attn", "encoder_attn")[: 1 + is_decoder]:
        sizes |= with_bias(f"{prefix}.{name}_layer_norm", D)
        for part in PARTS:
            sizes |= with_bias(f"{prefix}.{name}.{part}", D, D)
    return sizes


def with_bias(name, *shape):
    """{name: shape} of a weight and its bias."""
    return {f"{name}.weight": shape, f"{name}.bias": shape[:1]}


def t5_layer(prefix, is_decoder, inner=("wi_0", "wi_1")):
    """{name: shape} of one layer; inner: the matrices that its MLP reads with."""
    names = ("SelfAttention", "EncDecAttention")[: 1 + is_decoder]
    sizes = {}
    for i, name in enumerate(names):
        sizes[f"{prefix}.{i}.layer_norm.weight"] = (D,)
        sizes |= {f"{prefix}.{i}.{name}.{part}.weight": (H * 10, D) for part in "qkv"}
        sizes[f"{prefix}.{i}.{name}.o.weight"] = D, H * 10
    mlp = f"{prefix}.{len(names)}"
    sizes |= {f"{mlp}.DenseReluDense.{part}.weight": (M, D) for part in inner}
    sizes[f"{mlp}.DenseReluDense.wo.weight"] = D, M
    return sizes | {f"{mlp}.layer_norm.weight": (D,)}


def _written(folder, config, sizes):
    folder.mkdir(parents=True, exist_ok=True)
    save_file(random_tensors(sizes, seed=7), folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config))
    shutil.copy(TOKENIZER, folder / "tokenizer.json")
    return folder
