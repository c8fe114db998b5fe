"""ViT (Dosovitskiy et al. 2020), DeiT (Touvron et al. 2020): patches in place of words, pre-norm.

DeiT with a distillation token may have two classifiers, one for each special token; its logits are
the mean of both.
"""

import numpy as np

from . import pictures
from .family import Family, Key, Tensor, dense, norm

CONFIG = pictures.NO_WORDS | {
    "n_layers": Key("num_hidden_layers"),
    "n_heads": Key("num_attention_heads"),
    "d_model": Key("hidden_size"),
    "d_mlp": Key("intermediate_size"),
    "eps": Key("layer_norm_eps"),
    "act": Key("hidden_act"),
    "attn_bias": Key("qkv_bias", True),
}
KERNEL = "embeddings.patch_embeddings.projection.weight"
BIAS = "embeddings.patch_embeddings.projection.bias"
CLASS, DISTILLATION = "embeddings.cls_token", "embeddings.distillation_token"
BODY = {
    "W_E": pictures.patches(KERNEL, CLASS, BIAS),
    "W_pos": pictures.table("embeddings.position_embeddings"),
    **norm("ln_final", "layernorm"),
}
ATTENTION = {
    **dense("Q", "attention.attention.query", bias_only="attn_bias"),
    **dense("K", "attention.attention.key", bias_only="attn_bias"),
    **dense("V", "attention.attention.value", bias_only="attn_bias"),
}
LAYER = {
    **norm("ln1", "layernorm_before"),
    **ATTENTION,
    **dense("O", "attention.output.dense"),
    **norm("ln2", "layernorm_after"),
    **dense("in", "intermediate.dense"),
    **dense("out", "output.dense"),
}
IMAGE = dense("U", "classifier")


def half_of_each(weight, other):
    """Two classifiers [C D] as one for both vectors side by side: [2D C]."""
    return 0.5 * np.concatenate([weight, other], axis=1).T


def mean(bias, other):
    """The mean of their biases."""
    return 0.5 * (bias + other)


def both(kind, join):
    """The classifiers of the class and the distillation token, joined."""
    names = (f"cls_classifier.{kind}", f"distillation_classifier.{kind}")
    return Tensor(names[:1], others=names[1:], join=join)


TAUGHT = {"W_U": both("weight", half_of_each), "b_U": both("bias", mean)}

VIT = Family(
    config=CONFIG,
    fixed=pictures.UNTIED,
    sizes=pictures.sizes(specials=1),
    knows=pictures.KNOWS,
    body=BODY,
    layer=LAYER,
    layer_prefix="encoder.layer.{}.",
    heads={"image": IMAGE},
    head_reads={"image": ("class",)},
)
DEIT = VIT._replace(
    sizes=pictures.sizes(specials=2),
    body=BODY | {"W_E": pictures.patches(KERNEL, CLASS, DISTILLATION, BIAS)},
    heads={"image": IMAGE, "taught": TAUGHT},
    head_reads={"image": ("class",), "taught": ("class", "distillation")},
)
