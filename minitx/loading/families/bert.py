"""BERT (Devlin et al. 2018): the norm follows each addition, and every token sees all others."""

from .family import Family, Key, dense, norm, tensor

CONFIG = {
    "n_layers": Key("num_hidden_layers"),
    "n_heads": Key("num_attention_heads"),
    "d_model": Key("hidden_size"),
    "d_mlp": Key("intermediate_size"),
    "n_ctx": Key("max_position_embeddings"),
    "n_pos": Key("max_position_embeddings"),
    "n_types": Key("type_vocab_size"),
    "eps": Key("layer_norm_eps"),
    "act": Key("hidden_act"),
    "head_act": Key("hidden_act"),
    "pad_id": Key("pad_token_id", None),
}
BODY = {
    "W_E": tensor("embeddings.word_embeddings.weight"),
    "W_pos": tensor("embeddings.position_embeddings.weight"),
    "W_type": tensor("embeddings.token_type_embeddings.weight"),
    **norm("ln_embed", "embeddings.LayerNorm"),
}
LAYER = {
    **dense("Q", "attention.self.query"),
    **dense("K", "attention.self.key"),
    **dense("V", "attention.self.value"),
    **dense("O", "attention.output.dense"),
    **norm("ln1", "attention.output.LayerNorm"),
    **dense("in", "intermediate.dense"),
    **dense("out", "output.dense"),
    **norm("ln2", "output.LayerNorm"),
}
MASKED = {
    **dense("head", "cls.predictions.transform.dense"),
    **norm("ln_head", "cls.predictions.transform.LayerNorm"),
    "W_U": tensor("cls.predictions.decoder.weight", transposed=True),
    "b_U": tensor("cls.predictions.decoder.bias", "cls.predictions.bias"),
}
POOLER = dense("head", "pooler.dense")
SEQUENCE = {**POOLER, **dense("U", "classifier")}
NEXT_SENTENCE = {**POOLER, **dense("U", "cls.seq_relationship")}
TOKEN = dense("U", "classifier")
QUESTION = dense("U", "qa_outputs")

FAMILY = Family(
    config=CONFIG,
    fixed={"default_type": 0},  # row 0 of the token types is added where none is given
    body=BODY,
    layer=LAYER,
    layer_prefix="encoder.layer.{}.",
    heads={
        "masked": MASKED,
        "sequence": SEQUENCE,
        "token": TOKEN,
        "question": QUESTION,
        "next_sentence": NEXT_SENTENCE,
        "choice": SEQUENCE,
    },
    sequence_act="tanh",
)
