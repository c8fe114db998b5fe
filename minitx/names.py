"""What other libraries call the points: TransformerLens its hooks, transformers its modules.

TransformerLens has heads behind tokens, [B T H d], and its scales are what a norm divides by, ours
what it multiplies by. A hook means what it does in version 4 in a model of GPT-2's kind. In its
rotary models `hook_q` and `q.hook_out` are before the turn, here `q_in`; so is what comes out of
transformers' `q_proj`. With a gated MLP `mlp.in.hook_out` is here `pre_linear`. In BERT and BART,
whose norms come last, attention reads `resid_pre`, the MLP `ln1`, and a norm's `hook_in` has no
point. A hook of an encoder-decoder means what it does in T5; in BART TransformerLens calls the
encoder's embeddings `embed`, `pos_embed` and `embed_ln`, here `enc_embed` and so on.

Order: the tables, in which N is a layer; the point of a name; the names of a point.
"""

import re
from typing import NamedTuple

from .points import POINTS, Key, key_of

__all__ = ["Others", "others_of", "point_of"]


class Module(NamedTuple):
    """Modules of transformers around the same points; in each family one of them."""

    ends: str  # of their names, one after another
    before: str | None  # the point that goes in, None if it has no name
    after: str  # the point that comes out


MODULES: tuple[Module, ...] = (
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
# ALBERT's layers share the modules of a group: a name is the point of them all
SHARED = "albert_layer_groups.0.albert_layers.0."
OF_ALBERT = {
    "attention.query": "q",
    "attention.key": "k",
    "attention.value": "v",
    "attention.dense": "attn_out",
    "attention.LayerNorm": "ln1",
    "ffn": "pre",
    "ffn_output": "mlp_out",
    "full_layer_layer_norm": "ln2",
}
INTO = {"attn_out": "z", "mlp_out": "post"}
MODULES += tuple(Module(SHARED + x, INTO.get(point), point) for x, point in OF_ALBERT.items())
LAYER = r"(?:layers?|block|h)\.(\d+)"  # N, with the name of the list before it

# TransformerLens 4: a module -> the points that go in and come out, "-" where it has none. Its
# `hook_in` and `hook_out`; "block" is a whole layer, whose modules have a layer before the name.
PORTS = """
embed            -          embed
token_type_embed -          type_embed
pos_embed        -          pos_embed
embed_ln         -          ln_embed
block            resid_pre  resid_post
block.ln1        resid_pre  ln1
block.attn       ln1        attn_out
block.attn.q     ln1        q
block.attn.k     ln1        k
block.attn.v     ln1        v
block.attn.o     z          attn_out
block.attn.q_norm -         ln_q
block.attn.k_norm -         ln_k
block.ln2        resid_mid  ln2
block.mlp        ln2        mlp_out
block.mlp.in     ln2        pre
block.mlp.gate   ln2        pre
block.mlp.out    post       mlp_out
ln_final         -          ln_final
unembed          ln_final   logits
"""
# hooks with names of their own; most have the names of TransformerLens 3 and before
NAMED = {
    "hook_embed": "embed",
    "hook_pos_embed": "pos_embed",
    "hook_unembed": "logits",
    "embed_ln.hook_scale": "ln_embed_scale",
    "block.hook_resid_pre": "resid_pre",
    "block.ln1.hook_scale": "ln1_scale",
    "block.attn.hook_q": "q",
    "block.attn.hook_rot_q": "q",
    "block.attn.hook_k": "k",
    "block.attn.hook_rot_k": "k",
    "block.attn.hook_v": "v",
    "block.attn.hook_q_normed": "ln_q",
    "block.attn.hook_k_normed": "ln_k",
    "block.attn.q_norm.hook_scale": "ln_q_scale",
    "block.attn.k_norm.hook_scale": "ln_k_scale",
    "block.attn.hook_attn_scores": "scores",
    "block.attn.hook_pattern": "pattern",
    "block.attn.hook_z": "z",
    "block.attn.hook_result": "head_out",
    "block.attn.hook_hidden_states": "attn_out",
    "block.hook_attn_out": "attn_out",
    "block.hook_resid_mid": "resid_mid",
    "block.ln2.hook_scale": "ln2_scale",
    "block.hook_mlp_in": "ln2",
    "block.mlp.hook_pre": "pre",
    "block.mlp.hook_pre_linear": "pre_linear",
    "block.mlp.hook_post": "post",
    "block.hook_mlp_out": "mlp_out",
    "block.hook_resid_post": "resid_post",
    "ln_final.hook_scale": "ln_final_scale",
}
# of encoder-decoders, whose other hooks are those of one stack behind "encoder_" and "decoder_"
OF_TWO = """
decoder_embed            -            embed
decoder_pos_embed        -            pos_embed
decoder_embed_ln         -            ln_embed
decoder_block.cross_attn ln_cross     cross_out
decoder_block.cross_attn.q ln_cross   cross_q
decoder_block.cross_attn.k enc_ln_final cross_k
decoder_block.cross_attn.v enc_ln_final cross_v
decoder_block.cross_attn.o cross_z    cross_out
decoder_block.ln2        resid_mid    ln_cross
decoder_block.ln3        resid_cross  ln2
encoder_ln_final         -            enc_ln_final
decoder_ln_final         -            ln_final
"""
NAMED_OF_TWO = {
    "decoder_embed_ln.hook_scale": "ln_embed_scale",
    "decoder_block.cross_attn.hook_result": "cross_head_out",
    "decoder_block.hook_cross_attn_out": "cross_out",
    "decoder_block.hook_resid_mid2": "resid_cross",
    "decoder_block.ln2.hook_scale": "ln_cross_scale",
    "decoder_block.ln3.hook_scale": "ln2_scale",
    "encoder_ln_final.hook_scale": "enc_ln_final_scale",
    "decoder_ln_final.hook_scale": "ln_final_scale",
} | {
    f"decoder_block.cross_attn.hook_{x}": f"cross_{x.removeprefix('attn_')}"
    for x in ("q", "k", "v", "attn_scores", "pattern", "z")
}
LAST = {"ln_final.hook_in": "resid_post", "decoder_ln_final.hook_in": "resid_post"}
LAST["encoder_ln_final.hook_in"] = "enc_resid_post"
# what has no point, and what comes closest; by the end of the name
LACKING = {
    "rotary_emb.hook_in": "an input of the rotary embedding, 'pos_angle' is its result",
    "embed.hook_in": "the numbers of tokens, types or positions: `trace.tokens` of a run",
    "hook_normalized": "a norm before its gain and bias, {norm!r} is behind them",
    "embed_ln.hook_in": "a sum of embeddings, 'ln_embed' is its norm",
    "_norm.hook_in": "queries or keys before their norm, 'ln_q' and 'ln_k' are behind it",
    "hook_cos": "the cosine of 'pos_angle'",
    "hook_sin": "the sine of 'pos_angle'",
}


def _hooks():
    """{name of a hook: point}; a layer's begin with "blocks.N."."""
    hooks = _ports(PORTS) | NAMED
    for name, point in tuple(hooks.items()):
        if name.startswith("block.") and f"enc_{point}" in POINTS:
            hooks[f"encoder_{name}"] = f"enc_{point}"
            hooks[f"decoder_{name.replace('.attn.', '.self_attn.')}"] = point
    hooks |= _ports(OF_TWO) | NAMED_OF_TWO
    hooks = {name: point for name, point in hooks.items() if point != "-"}
    return {re.sub(r"block\.", "blocks.N.", name, count=1): point for name, point in hooks.items()}


def _ports(table):
    """{name of a hook: point} of lines "module, what goes in, what comes out"."""
    hooks = {}
    for line in table.split("\n")[1:-1]:
        module, into, out = line.split()
        hooks[f"{module}.hook_in"], hooks[f"{module}.hook_out"] = into, out
    return hooks


HOOKS = _hooks()


def point_of(name: str) -> Key:
    """The point, "embed" or ("q", 3), that another library's name stands for.

    name: a hook of TransformerLens, or a module of Hugging Face transformers, for its output. A
    block's hook without the block's number is the point's name alone, for every layer. "q.3" and
    "q.L3", as in files and commands, are ("q", 3). Raises ValueError for a name without a point.

    >>> from minitx.names import point_of
    >>> point_of("blocks.3.attn.hook_pattern"), point_of("hook_embed")
    (('pattern', 3), 'embed')
    >>> point_of("attn.q.hook_out"), point_of("hook_in")
    ('q', 'resid_pre')
    >>> point_of("bert.encoder.layer.3.attention.self.query")
    ('q', 3)
    >>> point_of("albert.encoder.albert_layer_groups.0.albert_layers.0.ffn")  # of every layer
    'pre'
    """
    if name in LAST:
        return LAST[name], -1  # as lists count: of the last layer
    hook = re.sub(r"^((?:en|de)coder_)?blocks\.\d+\.", r"\1blocks.N.", name)
    if hook in HOOKS:
        point = HOOKS[hook]
        layer = [int(i) for i in re.findall(r"blocks\.(\d+)", name)]
        return (point, *layer) if layer and POINTS[point].per_layer else point
    if f"blocks.N.{hook}" in HOOKS:
        return HOOKS[f"blocks.N.{hook}"]
    own = key_of(name)
    if isinstance(own, tuple) and own[0] in POINTS and POINTS[own[0]].per_layer:
        return own
    _check_has_point(name)
    for module in MODULES:
        layer = layer_of(module, name)
        if layer is not None and module.after in POINTS:
            return (module.after, *layer) if layer else module.after
    raise ValueError(
        f"{name!r:.80} names no point; wanted a hook of TransformerLens such as "
        "'blocks.3.attn.hook_q', or a module of Hugging Face transformers such as "
        "'transformer.h.3.mlp.c_fc'"
    )


def _check_has_point(name):
    """Raises ValueError for a hook of TransformerLens whose value is no point here.

    For a module of ALBERT, too, that runs in some of its layers.
    """
    if "albert_layer_groups." in name and SHARED not in name:
        group = "a group of layers that is not the only one: see `model.config.shared_layers`"
        raise ValueError(f"{name!r:.80} names no point: it is a module of {group}")
    for end, what in LACKING.items():
        if name.endswith(end):
            hook = re.sub(r"blocks\.\d+\.", "blocks.N.", name).rpartition(".")[0]
            norm = HOOKS.get(f"{hook}.hook_out", hook.rpartition(".")[2])
            raise ValueError(f"{name!r:.80} names no point: it is {what.format(norm=norm)}")


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
    >>> others_of("pattern").hooks
    ['blocks.N.attn.hook_pattern', 'decoder_blocks.N.self_attn.hook_pattern']
    """

    hooks: list[str]  # of TransformerLens
    modules: list[str]  # of transformers: how the names end


def others_of(point: str) -> Others:
    """Names of a point in other libraries: hooks of TransformerLens, modules of transformers.

    N stands for the layer; in a module's name also for the list of layers before it. The point is
    the module's output. Raises ValueError for an unknown point.

    >>> from minitx.names import others_of
    >>> others_of("type_embed")
    Others(hooks=['token_type_embed.hook_out'], modules=['token_type_embeddings'])
    """
    if point not in POINTS:
        raise ValueError(f"{point!r:.80} is no point; wanted one of minitx.POINTS, such as 'q'")
    hooks = [hook for hook, ours in HOOKS.items() if ours == point]
    ends = [module.ends.split() for module in MODULES if module.after == point]
    return Others(hooks, [end for several in ends for end in several])
