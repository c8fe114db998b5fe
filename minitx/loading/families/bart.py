"""BART (Lewis et al. 2019): an encoder-decoder; norms follow each addition, as in BERT."""

from . import generation
from .family import Family, Key, dense, norm, tensor

OFFSET = 2  # the position table has two rows that no token reads


BOTH = {  # keys of both stacks
    "d_model": Key("d_model"),
    "n_ctx": Key("max_position_embeddings"),
    "act": Key("activation_function"),
    "pad_id": Key("pad_token_id", None),
    "embed_scale": Key("scale_embedding", False),
}
GENERATION = generation.KEYS | {"start_id": Key("decoder_start_token_id")}


def config(side):
    """The keys of one of the two stacks."""
    heads = {"n_heads": Key(f"{side}_attention_heads")}
    return BOTH | heads | {"n_layers": Key(f"{side}_layers"), "d_mlp": Key(f"{side}_ffn_dim")}


def body(side):
    """Embeddings of one of the two stacks, with their norm.

    What is shared stands for a stack's own word embedding where the file has none.
    """
    return {
        "W_E": tensor(f"{side}.embed_tokens.weight", "shared.weight"),
        "W_pos": tensor(f"{side}.embed_positions.weight"),
        **norm("ln_embed", f"{side}.layernorm_embedding"),
    }


def attention(theirs):
    """The four linear layers of an attention."""
    return {
        **dense("Q", f"{theirs}.q_proj"),
        **dense("K", f"{theirs}.k_proj"),
        **dense("V", f"{theirs}.v_proj"),
        **dense("O", f"{theirs}.out_proj"),
    }


LAYER = {
    **attention("self_attn"),
    **norm("ln1", "self_attn_layer_norm"),
    **dense("in", "fc1"),
    **dense("out", "fc2"),
    **norm("ln2", "final_layer_norm"),
}
CROSS = {**attention("encoder_attn"), **norm("ln_cross", "encoder_attn_layer_norm")}
CAUSAL = {
    "W_U": tensor("lm_head.weight", transposed=True),
    "b_U": tensor("final_logits_bias", optional=True),
}
SEQUENCE = {
    **dense("head", "classification_head.dense"),
    **dense("U", "classification_head.out_proj"),
}
FIXED = {"n_types": 0, "eps": 1e-5}  # epsilon is that of PyTorch's LayerNorm
# Older configs say how the stack is built; the reference library no longer looks at these.
ONLY = {
    "normalize_before": False,
    "add_final_layer_norm": False,
    "normalize_embedding": True,
    "static_position_embeddings": False,
    "add_bias_logits": False,
}


def scale(values):
    """The factor on word embeddings: the root of the width, or none."""
    return {"embed_scale": values["d_model"] ** 0.5 if values["embed_scale"] else 1.0}


def derived(values):
    """The table has `OFFSET` rows more than there are positions."""
    return {"n_pos": values["n_ctx"] + OFFSET, "offset": OFFSET, **scale(values)}


ENCODER = Family(
    config=config("encoder"),
    fixed=FIXED,
    derived=derived,
    body=body("encoder"),
    layer=LAYER,
    layer_prefix="encoder.layers.{}.",
    heads={},
)
FAMILY = Family(
    config=config("decoder") | GENERATION | {"read_id": Key("eos_token_id", 2)},
    fixed=FIXED | {"causal": True, "read_at": "last_end"},
    derived=derived,
    only=ONLY,
    body=body("decoder"),
    layer=LAYER,
    cross=CROSS,
    layer_prefix="decoder.layers.{}.",
    heads={"causal": CAUSAL, "sequence": SEQUENCE, "question": dense("U", "qa_outputs")},
    sequence_act="tanh",
    encoder=ENCODER,
)
