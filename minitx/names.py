"""What other libraries call the points: TransformerLens its hooks, transformers its modules.

TransformerLens has heads behind tokens, [B T H d], and its scales are what a norm divides by, ours
what it multiplies by. In its rotary models `hook_q` is before the turn, here `q_in`.
"""

import re

from .points import Key

LAYER = r"(?:layers?|block|h)\.(\d+)\."
# End of a module's name with the layer in brackets, the point that goes in (None: none has a name)
# and the one that comes out. Rows of one point are of different families.
MODULES = [
    (r"(?:word_embeddings|wte|embed_tokens)", None, "embed"),
    (r"(?:position_embeddings|wpe|embed_positions)", None, "pos_embed"),
    (r"token_type_embeddings", None, "type_embed"),
    (r"(?:embeddings\.LayerNorm|layernorm_embedding)", None, "ln_embed"),
    (LAYER + r"attn\.c_attn", None, "qkv"),
    (LAYER + r"(?:attention\.self\.query|attention\.q_lin)", None, "q"),
    (LAYER + r"(?:self_attn\.q_proj|layer\.0\.SelfAttention\.q|attention\.attn\.q)", None, "q"),
    (LAYER + r"(?:attention\.self\.key|attention\.k_lin)", None, "k"),
    (LAYER + r"(?:self_attn\.k_proj|layer\.0\.SelfAttention\.k|attention\.attn\.k)", None, "k"),
    (LAYER + r"(?:attention\.self\.value|attention\.v_lin)", None, "v"),
    (LAYER + r"(?:self_attn\.v_proj|layer\.0\.SelfAttention\.v|attention\.attn\.v)", None, "v"),
    (LAYER + r"(?:encoder_attn\.q_proj|layer\.1\.EncDecAttention\.q)", None, "cross_q"),
    (LAYER + r"(?:encoder_attn\.k_proj|layer\.1\.EncDecAttention\.k)", None, "cross_k"),
    (LAYER + r"(?:encoder_attn\.v_proj|layer\.1\.EncDecAttention\.v)", None, "cross_v"),
    (LAYER + r"(?:attention\.output\.dense|attention\.out_lin|attn\.c_proj)", "z", "attn_out"),
    (LAYER + r"(?:self_attn\.out_proj|layer\.0\.SelfAttention\.o)", "z", "attn_out"),
    (LAYER + r"attention\.attn\.o", "z", "attn_out"),
    (LAYER + r"(?:encoder_attn\.out_proj|layer\.1\.EncDecAttention\.o)", "cross_z", "cross_out"),
    (LAYER + r"(?:attention\.output\.LayerNorm|sa_layer_norm|ln_1)", None, "ln1"),
    (LAYER + r"(?:self_attn_layer_norm|layer\.0\.layer_norm|attention\.LayerNorm)", None, "ln1"),
    (LAYER + r"encoder_attn_layer_norm", None, "ln_cross"),
    (LAYER + r"(?:output\.LayerNorm|output_layer_norm|ln_2|final_layer_norm)", None, "ln2"),
    (r"decoder\." + LAYER + r"layer\.1\.layer_norm", "resid_mid", "ln_cross"),
    (r"decoder\." + LAYER + r"layer\.2\.layer_norm", "resid_cross", "ln2"),
    (r"encoder\." + LAYER + r"layer\.1\.layer_norm", "resid_mid", "ln2"),
    (LAYER + r"(?:intermediate\.dense|ffn\.lin1|mlp\.c_fc|fc1)", None, "pre"),
    (LAYER + r"layer\.\d\.DenseReluDense\.(?:wi|wi_0)", None, "pre"),
    (LAYER + r"layer\.\d\.DenseReluDense\.wi_1", None, "pre_linear"),
    (LAYER + r"(?:output\.dense|ffn\.lin2|mlp\.c_proj|fc2)", "post", "mlp_out"),
    (LAYER + r"layer\.\d\.DenseReluDense\.wo", "post", "mlp_out"),
    (r"(?:transformer\.|^)ln_f|(?:en|de)coder\.final_layer_norm", None, "ln_final"),
]

_BLOCK = r"blocks\.(\d+)\."
# A hook of TransformerLens with the layer in brackets, and its point.
HOOKS = [
    (r"hook_embed", "embed"),
    (r"hook_pos_embed", "pos_embed"),
    (r"ln_final\.hook_scale", "ln_final_scale"),
    (r"ln_final\.hook_normalized", "ln_final"),
    (_BLOCK + r"hook_(resid_pre|resid_mid|resid_post|attn_out|mlp_out)", None),
    (_BLOCK + r"ln1\.hook_scale", "ln1_scale"),
    (_BLOCK + r"ln1\.hook_normalized", "ln1"),
    (_BLOCK + r"attn\.hook_(?:rot_)?q", "q"),
    (_BLOCK + r"attn\.hook_(?:rot_)?k", "k"),
    (_BLOCK + r"attn\.hook_(v|z|pattern)", None),
    (_BLOCK + r"attn\.hook_attn_scores", "scores"),
    (_BLOCK + r"ln2\.hook_scale", "ln2_scale"),
    (_BLOCK + r"ln2\.hook_normalized", "ln2"),
    (_BLOCK + r"mlp\.hook_(pre|pre_linear|post)", None),
]


def point_of(name: str) -> Key:
    """The point, "embed" or ("q", 3), that another library's name stands for.

    name: a hook of TransformerLens, or a module of Hugging Face transformers, whose output is
    meant. Raises ValueError for a name that has no point.

    >>> from minitx.names import point_of
    >>> point_of("blocks.3.attn.hook_pattern"), point_of("hook_embed")
    (('pattern', 3), 'embed')
    >>> point_of("bert.encoder.layer.3.attention.self.query")
    ('q', 3)
    """
    for hook, point in HOOKS:
        if match := re.fullmatch(hook, name):
            layer, *own = match.groups() or (None,)
            return _key(point or own[0], layer)
    for end, _, point in MODULES:
        match = re.search(rf"(?:^|\.)(?:{end})$", name)
        if match and point != "qkv":
            return _key(point, *match.groups())
    raise ValueError(
        f"{name!r:.80} names no point; wanted a hook of TransformerLens such as "
        "'blocks.3.attn.hook_q', or a module of Hugging Face transformers such as "
        "'transformer.h.3.mlp.c_fc'"
    )


def _key(point, layer=None):
    return point if layer is None else (point, int(layer))
