"""Phi-1, 1.5 and 2 (Gunasekar et al. 2023): attention and MLP read the same stream, after one norm.

The first part of each head is turned. Queries and keys may have LayerNorms.
"""

from ...rotary import rotary
from . import llama
from .family import Family, Key, dense, norm, tensor

PLAIN = {field: key for field, key in llama.CONFIG.items() if not field.endswith("_bias")} | {
    "eps": Key("layer_norm_eps"),
}
CONFIG = PLAIN | {"qk_norm": Key("qk_layernorm", False)}
SHARE = 0.5  # of a head's width that is turned, where the config says nothing


def qk_norm(ours, theirs):
    """LayerNorm of each head's queries or keys, where a model has it."""
    names = {"w": f"self_attn.{theirs}.weight", "b": f"self_attn.{theirs}.bias"}
    return {f"{ours}_{x}": tensor(name, only="qk_norm") for x, name in names.items()}


LAYER = {
    **norm("ln1", "input_layernorm"),
    **dense("Q", "self_attn.q_proj"),
    **dense("K", "self_attn.k_proj"),
    **dense("V", "self_attn.v_proj"),
    **qk_norm("ln_q", "q_layernorm"),
    **qk_norm("ln_k", "k_layernorm"),
    **dense("O", "self_attn.dense"),
    **norm("ln2", "input_layernorm"),
    **dense("in", "mlp.fc1"),
    **dense("out", "mlp.fc2"),
}


def places(raw, values, share=SHARE):
    """The first features of each head are turned; share: where the config says nothing."""
    given = llama.parameters(raw)
    share = given.pop("partial_rotary_factor", raw.get("partial_rotary_factor", share))
    width = llama.part_turned(share, values)
    turn = rotary(given, width, values["n_ctx"])
    return {"rotary": (turn,) * values["n_layers"] if width else ()}


FAMILY = Family(
    config=CONFIG,
    fixed={
        "n_types": 0,
        "n_pos": 0,
        "pre_norm": True,
        "parallel": True,
        "causal": True,
        "read_at": "last",
    },
    derived=llama.derived,
    places=places,
    knows=llama.ROPE,
    body={"W_E": tensor("embed_tokens.weight"), **norm("ln_final", "final_layernorm")},
    layer=LAYER,
    layer_prefix="layers.{}.",
    heads={
        "causal": dense("U", "lm_head"),
        "sequence": llama.SEQUENCE,
        "token": llama.TOKEN,
    },
)
