"""DistilBERT (Sanh et al. 2019): BERT without token types, with names of its own."""

from . import bert
from .family import Family, Key, dense, norm

CONFIG = {
    "n_layers": Key("n_layers"),
    "n_heads": Key("n_heads"),
    "d_model": Key("dim"),
    "d_mlp": Key("hidden_dim"),
    "n_ctx": Key("max_position_embeddings"),
    "n_pos": Key("max_position_embeddings"),
    "act": Key("activation"),
    "head_act": Key("activation"),
    "pad_id": Key("pad_token_id", None),
}
BODY = {name: tensor for name, tensor in bert.BODY.items() if name != "W_type"}
LAYER = {
    **dense("Q", "attention.q_lin"),
    **dense("K", "attention.k_lin"),
    **dense("V", "attention.v_lin"),
    **dense("O", "attention.out_lin"),
    **norm("ln1", "sa_layer_norm"),
    **dense("in", "ffn.lin1"),
    **dense("out", "ffn.lin2"),
    **norm("ln2", "output_layer_norm"),
}
MASKED = {
    **dense("head", "vocab_transform"),
    **norm("ln_head", "vocab_layer_norm"),
    **dense("U", "vocab_projector"),
}
SEQUENCE = {**dense("head", "pre_classifier"), **dense("U", "classifier")}

FAMILY = Family(
    config=CONFIG,
    fixed={"n_types": 0, "eps": 1e-12},  # epsilon is a constant in the reference library's code
    body=BODY,
    layer=LAYER,
    layer_prefix="transformer.layer.{}.",
    heads={
        "masked": MASKED,
        "sequence": SEQUENCE,
        "token": bert.TOKEN,
        "question": bert.QUESTION,
        "choice": SEQUENCE,
    },
    sequence_act="relu",
)
