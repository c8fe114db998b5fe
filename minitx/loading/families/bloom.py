"""BLOOM (Le Scao et al. 2022): no table of positions; scores fall with the distance (ALiBi)."""

from .family import Family, Key, by_head, dense, norm, part, tensor

CONFIG = {
    "n_layers": Key("n_layer", other="num_hidden_layers"),
    "n_heads": Key("n_head", other="num_attention_heads"),
    "d_model": Key("n_embed", other="hidden_size"),
    "n_ctx": Key("seq_length", 2048),  # the length of its training; no input is too long
    "eps": Key("layer_norm_epsilon"),
    "pad_id": Key("pad_token_id", None),
    "norm_residual": Key("apply_residual_connection_post_layernorm", False),
}
BODY = {
    "W_E": tensor("word_embeddings.weight"),
    **norm("ln_embed", "word_embeddings_layernorm"),
    **norm("ln_final", "ln_f"),
}
LAYER = {
    **norm("ln1", "input_layernorm"),
    **part("Q", "self_attention.query_key_value", 0, by_head),
    **part("K", "self_attention.query_key_value", 1, by_head),
    **part("V", "self_attention.query_key_value", 2, by_head),
    **dense("O", "self_attention.dense"),
    **norm("ln2", "post_attention_layernorm"),
    **dense("in", "mlp.dense_h_to_4h"),
    **dense("out", "mlp.dense_4h_to_h"),
}
CAUSAL = {"W_U": tensor("lm_head.weight", transposed=True)}


def derived(values):
    """The MLP is four times as wide as the stream."""
    return {"d_mlp": 4 * values["d_model"]}


FAMILY = Family(
    config=CONFIG,
    fixed={
        "n_types": 0,
        "n_pos": 0,
        "pre_norm": True,
        "causal": True,
        "read_at": "last",
        "alibi": True,
        "act": "gelu_new",
    },
    derived=derived,
    only={"is_causal": True},
    body=BODY,
    layer=LAYER,
    layer_prefix="h.{}.",
    heads={"causal": CAUSAL},
)
