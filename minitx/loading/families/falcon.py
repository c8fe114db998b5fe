"""Falcon (Almazrouei et al. 2023): rotary positions; many heads share a key and a value.

Attention and MLP read the same stream, behind one norm (7B) or two (40B), or one after the other.
"""

from ...rotary import rotary
from . import llama
from .family import Family, Key, by_group, dense, norm, part, tensor

CONFIG = {
    "n_layers": Key("num_hidden_layers", other="n_layer"),
    "n_heads": Key("num_attention_heads", other="n_head"),
    "kv_heads": Key("num_kv_heads", None),
    "d_model": Key("n_embed", other="hidden_size"),
    "d_mlp": Key("ffn_hidden_size", None),
    "n_ctx": Key("max_position_embeddings", 2048),  # of its training; no input is too long
    "eps": Key("layer_norm_epsilon"),
    "act": Key("activation", "gelu"),
    "pad_id": Key("pad_token_id", None),
    "attn_bias": Key("bias", False),
    "parallel": Key("parallel_attn", True),
}
LAYER = {
    "ln1_w": tensor("input_layernorm.weight", "ln_attn.weight"),
    "ln1_b": tensor("input_layernorm.bias", "ln_attn.bias"),
    **part("Q", "self_attention.query_key_value", 0, by_group, bias_only="attn_bias"),
    **part("K", "self_attention.query_key_value", 1, by_group, bias_only="attn_bias"),
    **part("V", "self_attention.query_key_value", 2, by_group, bias_only="attn_bias"),
    **dense("O", "self_attention.dense", bias_only="attn_bias"),
    "ln2_w": tensor("post_attention_layernorm.weight", "ln_mlp.weight", "input_layernorm.weight"),
    "ln2_b": tensor("post_attention_layernorm.bias", "ln_mlp.bias", "input_layernorm.bias"),
    **dense("in", "mlp.dense_h_to_4h", bias_only="mlp_bias"),
    **dense("out", "mlp.dense_4h_to_h", bias_only="mlp_bias"),
}
# The slopes of Falcon's ALiBi are rounded to bfloat16, and the reference library adds it once or
# twice, as its attention is computed.
ONLY = {"alibi": False, "partial_rotary_factor": 1.0}
KNOWS = *llama.ROPE, "new_decoder_architecture", "multi_query"


def derived(values):
    """An MLP four times as wide as the stream where no width is said; one key for all biases."""
    d_mlp = values["d_mlp"] or 4 * values["d_model"]
    return {"d_mlp": d_mlp, "mlp_bias": values["attn_bias"], "kv_heads": values["kv_heads"] or 0}


def places(raw, values):
    """Rotary positions; and how many heads share a key, which hangs on two other keys."""
    is_new = _flag(raw, "new_decoder_architecture", False)
    if is_new and not values["parallel"]:
        raise ValueError("parallel_attn is False; only True is supported in the new architecture")
    shared = {} if is_new else {"kv_heads": int(_flag(raw, "multi_query", True))}
    turn = rotary(llama.parameters(raw), llama.width(values | {"d_kv": 0}), values["n_ctx"])
    return {"rotary": (turn,) * values["n_layers"], **shared}


def _flag(raw, name, default):
    """A key of config.json that is true or false."""
    value = raw.get(name, default)
    if not isinstance(value, bool):
        raise ValueError(f"{name} is {value!r:.80}; wanted true or false")
    return value


FAMILY = Family(
    config=CONFIG,
    fixed={"n_types": 0, "n_pos": 0, "pre_norm": True, "causal": True, "read_at": "last"},
    derived=derived,
    places=places,
    only=ONLY,
    knows=KNOWS,
    body={"W_E": tensor("word_embeddings.weight"), **norm("ln_final", "ln_f")},
    layer=LAYER,
    layer_prefix="h.{}.",
    heads={
        "causal": {"W_U": tensor("lm_head.weight", transposed=True)},
        "sequence": {"W_U": tensor("score.weight", transposed=True)},
        "token": dense("U", "classifier"),
        "question": dense("U", "qa_outputs"),
    },
)
