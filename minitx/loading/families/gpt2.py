"""GPT-2 (Radford et al. 2019): pre-norm, with causal attention."""

from .family import Family, Key, dense, norm, tensor, third

CONFIG = {
    "n_layers": Key("n_layer"),
    "n_heads": Key("n_head"),
    "d_model": Key("n_embd"),
    "d_mlp": Key("n_inner", None),
    "n_ctx": Key("n_positions"),
    "n_pos": Key("n_positions"),
    "n_types": Key("vocab_size"),  # token types are rows of the word embedding
    "eps": Key("layer_norm_epsilon"),
    "act": Key("activation_function"),
    "scale_attn": Key("scale_attn_weights", True),
    "scale_by_layer": Key("scale_attn_by_inverse_layer_idx", False),
}
BODY = {
    "W_E": tensor("wte.weight"),
    "W_pos": tensor("wpe.weight"),
    "W_type": tensor("wte.weight"),
    **norm("ln_final", "ln_f"),
}
LAYER = {  # matrices are stored as they are used, [in, out]
    **norm("ln1", "ln_1"),
    **third("Q", "attn.c_attn", 0),
    **third("K", "attn.c_attn", 1),
    **third("V", "attn.c_attn", 2),
    **dense("O", "attn.c_proj", transposed=False),
    **norm("ln2", "ln_2"),
    **dense("in", "mlp.c_fc", transposed=False),
    **dense("out", "mlp.c_proj", transposed=False),
}
CAUSAL = {"W_U": tensor("lm_head.weight", transposed=True)}
SEQUENCE = {"W_U": tensor("score.weight", transposed=True)}


def derived(values):
    """Where the config gives no width, the MLP is four times as wide as the stream."""
    return {"d_mlp": values["d_mlp"] or 4 * values["d_model"]}


FAMILY = Family(
    config=CONFIG,
    fixed={"pre_norm": True, "causal": True, "read_at": "last"},
    derived=derived,
    knows=("summary_type", "summary_use_proj", "summary_activation", "summary_proj_to_labels"),
    body=BODY,
    layer=LAYER,
    layer_prefix="h.{}.",
    heads={
        "causal": CAUSAL,
        "sequence": SEQUENCE,
        "token": dense("U", "classifier"),
        "question": dense("U", "qa_outputs"),
    },
)
