"""Phi-3 (Abdin et al. 2024): Llama with fused matrices; a part of each head may be turned."""

from ...rotary import LENGTH, rotary
from . import keys, llama, mistral
from .family import by_half, by_kind, dense, part, tensor

CONFIG = {field: key for field, key in llama.CONFIG.items() if not field.endswith("_bias")}
LAYER = {
    "ln1_w": tensor("input_layernorm.weight"),
    **part("Q", "self_attn.qkv_proj", 0, by_kind, bias_only="attn_bias"),
    **part("K", "self_attn.qkv_proj", 1, by_kind, bias_only="attn_bias"),
    **part("V", "self_attn.qkv_proj", 2, by_kind, bias_only="attn_bias"),
    **dense("O", "self_attn.o_proj", bias_only="attn_bias"),
    "ln2_w": tensor("post_attention_layernorm.weight"),
    **part("gate", "mlp.gate_up_proj", 0, by_half, bias_only="mlp_bias"),
    **part("in", "mlp.gate_up_proj", 1, by_half, bias_only="mlp_bias"),
    **dense("out", "mlp.down_proj", bias_only="mlp_bias"),
}


def places(raw, values):
    """The first features of each head are turned; what a layer sees is as in Mistral."""
    given = llama.parameters(raw)
    kind = given.pop("rope_type", given.pop("type", "default"))
    if kind in ("su", "yarn"):  # as in the library, which reads these two so in old files
        kind = "longrope"
    if kind not in ("default", "longrope"):
        text = f"rope_type is {kind!r:.80}"
        raise ValueError(f"{text}; only 'default' and 'longrope' are computed in phi3")
    given["rope_type"] = kind
    if kind == "longrope":  # this key counts more than one inside, as in the library
        given[LENGTH] = raw.get(LENGTH, keys.default("phi3", LENGTH))
    share = given.pop("partial_rotary_factor", raw.get("partial_rotary_factor", 1.0))
    width = llama.part_turned(share, values)
    turn = rotary(given, width, values["n_ctx"])
    return mistral.windows(raw, values) | {"rotary": (turn,) * values["n_layers"]}


FAMILY = llama.FAMILY._replace(
    config=CONFIG,
    fixed=llama.FIXED | {"attn_bias": False, "mlp_bias": False},
    only={},
    knows=(*llama.ROPE, "sliding_window", LENGTH),
    places=places,
    layer=LAYER,
)
