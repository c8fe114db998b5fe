"""What other libraries call the points: TransformerLens its hooks, transformers its modules.

TransformerLens has heads behind tokens, [B T H d], and its scales are what a norm divides by, ours
what it multiplies by. In its rotary models `hook_q` is before the turn, here `q_in`; so is what
comes out of transformers' `q_proj`.

Order: the two tables, in which N is a layer; the point of a name; the names of a point.
"""

import re
from typing import NamedTuple

from .points import POINTS, Key

__all__ = ["Others", "others_of", "point_of"]


class Module(NamedTuple):
    """Modules of transformers around the same points; in each family one of them."""

    ends: str  # of their names, one after another
    before: str | None  # the point that goes in, None if it has no name
    after: str  # the point that comes out


MODULES = (
    Module("word_embeddings wte embed_tokens", None, "embed"),
    Module("position_embeddings wpe embed_positions", None, "pos_embed"),
    Module("token_type_embeddings", None, "type_embed"),
    Module("embeddings.LayerNorm layernorm_embedding", None, "ln_embed"),
    Module("N.attn.c_attn", None, "qkv"),
    Module("N.attention.self.query N.attention.q_lin N.self_attn.q_proj", None, "q"),
    Module("N.layer.0.SelfAttention.q N.attention.attn.q", None, "q"),
    Module("N.attention.self.key N.attention.k_lin N.self_attn.k_proj", None, "k"),
    Module("N.layer.0.SelfAttention.k N.attention.attn.k", None, "k"),
    Module("N.attention.self.value N.attention.v_lin N.self_attn.v_proj", None, "v"),
    Module("N.layer.0.SelfAttention.v N.attention.attn.v", None, "v"),
    Module("N.encoder_attn.q_proj N.layer.1.EncDecAttention.q", None, "cross_q"),
    Module("N.encoder_attn.k_proj N.layer.1.EncDecAttention.k", None, "cross_k"),
    Module("N.encoder_attn.v_proj N.layer.1.EncDecAttention.v", None, "cross_v"),
    Module("N.attention.output.dense N.attention.out_lin N.attn.c_proj", "z", "attn_out"),
    Module("N.self_attn.out_proj N.layer.0.SelfAttention.o N.attention.attn.o", "z", "attn_out"),
    Module("N.encoder_attn.out_proj N.layer.1.EncDecAttention.o", "cross_z", "cross_out"),
    Module("N.attention.output.LayerNorm N.sa_layer_norm N.ln_1", None, "ln1"),
    Module("N.self_attn_layer_norm N.layer.0.layer_norm N.attention.LayerNorm", None, "ln1"),
    Module("N.encoder_attn_layer_norm", None, "ln_cross"),
    Module("N.output.LayerNorm N.output_layer_norm N.ln_2 N.final_layer_norm", None, "ln2"),
    Module("decoder.N.layer.1.layer_norm", "resid_mid", "ln_cross"),
    Module("decoder.N.layer.2.layer_norm", "resid_cross", "ln2"),
    Module("encoder.N.layer.1.layer_norm", "resid_mid", "ln2"),
    Module("N.intermediate.dense N.ffn.lin1 N.mlp.c_fc N.fc1", None, "pre"),
    Module("N.layer.1.DenseReluDense.wi N.layer.1.DenseReluDense.wi_0", None, "pre"),
    Module("N.layer.2.DenseReluDense.wi N.layer.2.DenseReluDense.wi_0", None, "pre"),
    Module("N.layer.1.DenseReluDense.wi_1 N.layer.2.DenseReluDense.wi_1", None, "pre_linear"),
    Module("N.output.dense N.ffn.lin2 N.mlp.c_proj N.fc2", "post", "mlp_out"),
    Module("N.layer.1.DenseReluDense.wo N.layer.2.DenseReluDense.wo", "post", "mlp_out"),
    Module("ln_f encoder.final_layer_norm decoder.final_layer_norm", None, "ln_final"),
)
LAYER = r"(?:layers?|block|h)\.(\d+)"  # N, with the name of the list before it

HOOKS = {
    "hook_embed": "embed",
    "hook_pos_embed": "pos_embed",
    "blocks.N.hook_resid_pre": "resid_pre",
    "blocks.N.ln1.hook_scale": "ln1_scale",
    "blocks.N.ln1.hook_normalized": "ln1",
    "blocks.N.attn.hook_q": "q",
    "blocks.N.attn.hook_rot_q": "q",
    "blocks.N.attn.hook_k": "k",
    "blocks.N.attn.hook_rot_k": "k",
    "blocks.N.attn.hook_v": "v",
    "blocks.N.attn.hook_attn_scores": "scores",
    "blocks.N.attn.hook_pattern": "pattern",
    "blocks.N.attn.hook_z": "z",
    "blocks.N.hook_attn_out": "attn_out",
    "blocks.N.hook_resid_mid": "resid_mid",
    "blocks.N.ln2.hook_scale": "ln2_scale",
    "blocks.N.ln2.hook_normalized": "ln2",
    "blocks.N.mlp.hook_pre": "pre",
    "blocks.N.mlp.hook_pre_linear": "pre_linear",
    "blocks.N.mlp.hook_post": "post",
    "blocks.N.hook_mlp_out": "mlp_out",
    "blocks.N.hook_resid_post": "resid_post",
    "ln_final.hook_scale": "ln_final_scale",
    "ln_final.hook_normalized": "ln_final",
}


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
    if match := re.match(r"blocks\.(\d+)\.", name):
        hook = name.replace(match[0], "blocks.N.", 1)
        if hook in HOOKS:
            return HOOKS[hook], int(match[1])
    elif name in HOOKS:
        return HOOKS[name]
    for module in MODULES:
        layer = layer_of(module, name)
        if layer is not None and module.after in POINTS:
            return (module.after, *layer) if layer else module.after
    raise ValueError(
        f"{name!r:.80} names no point; wanted a hook of TransformerLens such as "
        "'blocks.3.attn.hook_q', or a module of Hugging Face transformers such as "
        "'transformer.h.3.mlp.c_fc'"
    )


def layer_of(module, name):
    """(layer,) if a name of transformers is that of a Module, () if none is in it, else None."""
    for end in module.ends.split():
        pattern = re.escape(end).replace(r"N\.", LAYER + r"\.")
        if match := re.search(rf"(?:^|\.){pattern}$", name):
            return tuple(map(int, match.groups()))
    return None


class Others(NamedTuple):
    """Names of a point in other libraries; N stands for the layer.

    >>> from minitx.names import others_of
    >>> others_of("v").hooks
    ['blocks.N.attn.hook_v']
    """

    hooks: list[str]  # of TransformerLens
    modules: list[str]  # of transformers: how the names end


def others_of(point: str) -> Others:
    """What other libraries call a point: hooks of TransformerLens, modules of transformers.

    N stands for the layer, in a module's name with the list that holds the layers. Of modules it is
    what comes out of them. Raises ValueError for a name that is no point.

    >>> from minitx.names import others_of
    >>> others_of("type_embed")
    Others(hooks=[], modules=['token_type_embeddings'])
    """
    if point not in POINTS:
        raise ValueError(f"{point!r:.80} is no point; wanted one of minitx.POINTS, such as 'q'")
    hooks = [hook for hook, ours in HOOKS.items() if ours == point]
    ends = [module.ends.split() for module in MODULES if module.after == point]
    return Others(hooks, [end for several in ends for end in several])
