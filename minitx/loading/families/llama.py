"""Llama (Touvron et al. 2023; SmolLM too): rotary positions, RMSNorm before each part, a gated MLP.

Several heads may share keys and values. Mistral (Jiang et al. 2023) is the same with a window.
"""

from ...rotary import rotary
from .family import Family, Key, dense, tensor

CONFIG = {
    "n_layers": Key("num_hidden_layers"),
    "n_heads": Key("num_attention_heads"),
    "kv_heads": Key("num_key_value_heads", None),
    "d_kv": Key("head_dim", None),
    "d_model": Key("hidden_size"),
    "d_mlp": Key("intermediate_size"),
    "n_ctx": Key("max_position_embeddings"),  # the length of its training; no input is too long
    "eps": Key("rms_norm_eps"),
    "act": Key("hidden_act"),
    "pad_id": Key("pad_token_id", None),
    "tied": Key("tie_word_embeddings", False),
    "attn_bias": Key("attention_bias", False),
    "mlp_bias": Key("mlp_bias", False),
}
FIXED = {
    "n_types": 0,
    "n_pos": 0,
    "pre_norm": True,
    "rms_norm": True,
    "gated": True,
    "causal": True,
    "read_at": "last",
}
BODY = {
    "W_E": tensor("embed_tokens.weight"),
    "ln_final_w": tensor("norm.weight"),
}
LAYER = {
    "ln1_w": tensor("input_layernorm.weight"),
    **dense("Q", "self_attn.q_proj", bias_only="attn_bias"),
    **dense("K", "self_attn.k_proj", bias_only="attn_bias"),
    **dense("V", "self_attn.v_proj", bias_only="attn_bias"),
    **dense("O", "self_attn.o_proj", bias_only="attn_bias"),
    "ln2_w": tensor("post_attention_layernorm.weight"),
    **dense("gate", "mlp.gate_proj", bias_only="mlp_bias"),
    **dense("in", "mlp.up_proj", bias_only="mlp_bias"),
    **dense("out", "mlp.down_proj", bias_only="mlp_bias"),
}
CAUSAL = {"W_U": tensor("lm_head.weight", transposed=True)}
SEQUENCE = {"W_U": tensor("score.weight", transposed=True)}
TOKEN = dense("U", "score")
THETA = 10000.0  # of the first Llama, whose config does not say it
# What changes the result and is not computed: another length than that inside rope_parameters.
ONLY = {"original_max_position_embeddings": None, "partial_rotary_factor": 1.0}


ROPE = "rope_parameters", "rope_scaling", "rope_theta", "partial_rotary_factor"


def derived(values):
    """Heads of keys and values, and the width of a head, are those of plain attention if unsaid."""
    return {"kv_heads": values["kv_heads"] or 0, "d_kv": values["d_kv"] or 0}


def width(values):
    """Of a head."""
    return values["d_kv"] or values["d_model"] // values["n_heads"]


def part_turned(share, values):
    """How many features of a head are turned, of which a share is; 0 where none are."""
    is_number = isinstance(share, int | float) and not isinstance(share, bool)
    if not is_number or not 0 <= share <= 1:
        raise ValueError(f"partial_rotary_factor is {share!r:.80}; wanted a number from 0 to 1")
    of_head = width(values)
    turned = int(share * of_head)
    if turned % 2:  # the library turns one feature by two angles, or ends in torch's words
        text = f"partial_rotary_factor {share:g} turns {turned} of a head's {of_head} features"
        raise ValueError(f"{text}; wanted an even number, since they are turned in pairs")
    return turned


def parameters(raw):
    """rope_parameters, or what older files say: rope_theta, rope_scaling."""
    given = raw.get("rope_scaling") or raw.get("rope_parameters") or {}
    if not isinstance(given, dict):
        raise ValueError(f"rope_parameters are {given!r:.80}; wanted an object")
    return {"rope_theta": raw.get("rope_theta") or THETA, **given}


def places(raw, values):
    """All layers turn queries and keys alike, and see the whole text."""
    turn = rotary(parameters(raw), width(values), values["n_ctx"])
    return {"rotary": (turn,) * values["n_layers"]}


FAMILY = Family(
    config=CONFIG,
    fixed=FIXED,
    derived=derived,
    places=places,
    only=ONLY,
    knows=ROPE,
    body=BODY,
    layer=LAYER,
    layer_prefix="layers.{}.",
    heads={
        "causal": CAUSAL,
        "sequence": SEQUENCE,
        "token": TOKEN,
        "question": dense("U", "qa_outputs"),
    },
)
