"""OPT (Zhang et al. 2022): GPT-2 with a table of positions whose first two rows no token reads.

Attention and MLP have a norm before them, or after each addition.
"""

from .family import Family, Key, dense, norm, tensor

OFFSET = 2
CONFIG = {
    "n_layers": Key("num_hidden_layers"),
    "n_heads": Key("num_attention_heads"),
    "d_model": Key("hidden_size"),
    "d_mlp": Key("ffn_dim"),
    "n_ctx": Key("max_position_embeddings"),
    "act": Key("activation_function", "relu"),
    "pad_id": Key("pad_token_id", None),
    "pre_norm": Key("do_layer_norm_before", True),
    "attn_bias": Key("enable_bias", True),
}
BODY = {
    "W_E": tensor("embed_tokens.weight"),
    "W_pos": tensor("embed_positions.weight"),
    "ln_final_w": tensor("final_layer_norm.weight", only="pre_norm"),
    "ln_final_b": tensor("final_layer_norm.bias", only="pre_norm"),
}
LAYER = {
    **norm("ln1", "self_attn_layer_norm"),
    **dense("Q", "self_attn.q_proj", bias_only="attn_bias"),
    **dense("K", "self_attn.k_proj", bias_only="attn_bias"),
    **dense("V", "self_attn.v_proj", bias_only="attn_bias"),
    **dense("O", "self_attn.out_proj", bias_only="attn_bias"),
    **norm("ln2", "final_layer_norm"),
    **dense("in", "fc1", bias_only="mlp_bias"),
    **dense("out", "fc2", bias_only="mlp_bias"),
}


def derived(values):
    """The table has `OFFSET` rows more than there are positions; one key is for all biases."""
    rows = values["n_ctx"] + OFFSET
    return {"n_pos": rows, "offset": OFFSET, "mlp_bias": values["attn_bias"]}


FAMILY = Family(
    config=CONFIG,
    fixed={
        "n_types": 0,
        "eps": 1e-5,
        "causal": True,
        "read_at": "last",
    },  # epsilon is that of PyTorch's LayerNorm
    derived=derived,
    knows=("word_embed_proj_dim",),  # refused.py
    body=BODY,
    layer=LAYER,
    layer_prefix="layers.{}.",
    heads={
        "causal": {"W_U": tensor("lm_head.weight", transposed=True)},
        "sequence": {"W_U": tensor("score.weight", transposed=True)},
        "question": dense("U", "qa_outputs"),
    },
)
