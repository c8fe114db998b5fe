"""GPT-NeoX (Black et al. 2022; Pythia): rotary positions in a part of each head's width.

Attention and MLP read the same stream (use_parallel_residual), or one after the other.
"""

from ...rotary import rotary
from . import llama
from .family import Family, Key, by_head, dense, norm, part, tensor

CONFIG = {
    "n_layers": Key("num_hidden_layers"),
    "n_heads": Key("num_attention_heads"),
    "d_model": Key("hidden_size"),
    "d_mlp": Key("intermediate_size"),
    "n_ctx": Key("max_position_embeddings"),  # the length of its training; no input is too long
    "eps": Key("layer_norm_eps"),
    "act": Key("hidden_act"),
    "pad_id": Key("pad_token_id", None),
    "tied": Key("tie_word_embeddings", False),
    "attn_bias": Key("attention_bias", True),
    "parallel": Key("use_parallel_residual", True),
}
BODY = {"W_E": tensor("embed_in.weight"), **norm("ln_final", "final_layer_norm")}
LAYER = {
    **norm("ln1", "input_layernorm"),
    **part("Q", "attention.query_key_value", 0, by_head, bias_only="attn_bias"),
    **part("K", "attention.query_key_value", 1, by_head, bias_only="attn_bias"),
    **part("V", "attention.query_key_value", 2, by_head, bias_only="attn_bias"),
    **dense("O", "attention.dense", bias_only="attn_bias"),
    **norm("ln2", "post_attention_layernorm"),
    **dense("in", "mlp.dense_h_to_4h"),
    **dense("out", "mlp.dense_4h_to_h"),
}
CAUSAL = {"W_U": tensor("embed_out.weight", "lm_head.weight", transposed=True)}
KNOWS = "rope_parameters", "rope_scaling", "rotary_emb_base", "rotary_pct"
SHARE = 0.25  # of a head's width that is turned, where the config says nothing


def places(raw, values):
    """The first features of each head are turned; none where that share is 0: no positions.

    As in the reference library a rope_theta outside of rope_parameters has no effect.
    """
    given = llama.parameters(raw | {"rope_theta": raw.get("rotary_emb_base")})
    share = given.pop("partial_rotary_factor", raw.get("rotary_pct", SHARE))
    width = llama.part_turned(share, values | {"d_kv": 0})
    turn = rotary(given, width, values["n_ctx"])
    return {"rotary": (turn,) * values["n_layers"] if width else ()}


FAMILY = Family(
    config=CONFIG,
    fixed={"n_types": 0, "n_pos": 0, "pre_norm": True, "causal": True, "read_at": "last"},
    places=places,
    only={"original_max_position_embeddings": None},
    knows=KNOWS,
    body=BODY,
    layer=LAYER,
    layer_prefix="layers.{}.",
    heads={"causal": CAUSAL},
)
