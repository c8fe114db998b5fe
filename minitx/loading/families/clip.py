"""CLIP (Radford et al. 2021): a model of pictures and one of texts, whose projections are compared.

The model is that of pictures, `model.text` that of texts. A text's vector is read at its first end
token. A missing key has the library's default, since that leaves
such keys out of the two objects inside a config.json.
"""

from . import pictures
from .bart import attention
from .family import Family, Key, dense, norm, tensor

BOTH = {
    "n_layers": Key("num_hidden_layers", 12),
    "eps": Key("layer_norm_eps", 1e-5),
    "act": Key("hidden_act", "quick_gelu"),
}
LAYER = {
    **norm("ln1", "layer_norm1"),
    **attention("self_attn"),
    **norm("ln2", "layer_norm2"),
    **dense("in", "mlp.fc1"),
    **dense("out", "mlp.fc2"),
}
PICTURES = "vision_model."
CONFIGS = "vision_config", "vision_config_dict", "text_config", "text_config_dict"
VISION = Family(
    config=pictures.NO_WORDS
    | BOTH
    | {
        "n_heads": Key("num_attention_heads", 12),
        "d_model": Key("hidden_size", 768),
        "d_mlp": Key("intermediate_size", 3072),
    },
    fixed=pictures.UNTIED,
    sizes=pictures.sizes(specials=1, image=224, patch=32),
    knows=(*pictures.KNOWS, *CONFIGS),
    body={
        "W_E": pictures.patches(
            f"{PICTURES}embeddings.patch_embedding.weight",
            f"{PICTURES}embeddings.class_embedding",
            join=pictures.stacked_without_bias,
        ),
        "W_pos": tensor(f"{PICTURES}embeddings.position_embedding.weight"),
        **norm("ln_embed", f"{PICTURES}pre_layrnorm"),
        **norm("ln_final", f"{PICTURES}post_layernorm"),
        "logit_scale": tensor("logit_scale", optional=True),
    },
    layer=LAYER,
    layer_prefix=f"{PICTURES}encoder.layers.{{}}.",
    heads={"projection": {"W_U": tensor("visual_projection.weight", transposed=True)}},
    head_reads={"projection": ("class",)},
)


def derived(values):
    """A text is read at its end; files with an old id for it mean the largest id."""
    return {"read_at": "largest_id" if values["read_id"] == 2 else "first_end"}


TEXT = Family(
    config=BOTH
    | {
        "n_vocab": Key("vocab_size", 49408),
        "n_heads": Key("num_attention_heads", 8),
        "d_model": Key("hidden_size", 512),
        "d_mlp": Key("intermediate_size", 2048),
        "n_ctx": Key("max_position_embeddings", 77),
        "n_pos": Key("max_position_embeddings", 77),
        "pad_id": Key("pad_token_id", 1),
        "read_id": Key("eos_token_id", 49407),
    },
    fixed=pictures.UNTIED | {"causal": True},
    derived=derived,
    body={
        "W_E": tensor("text_model.embeddings.token_embedding.weight"),
        "W_pos": tensor("text_model.embeddings.position_embedding.weight"),
        **norm("ln_final", "text_model.final_layer_norm"),
    },
    layer=LAYER,
    layer_prefix="text_model.encoder.layers.{}.",
    heads={"projection": {"W_U": tensor("text_projection.weight", transposed=True)}},
)
FAMILY = VISION._replace(inside="vision_config", text=TEXT._replace(inside="text_config"))
