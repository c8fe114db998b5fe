"""ModernBERT (Warner et al. 2024): rotary positions; every third layer sees all, others near keys.

The two kinds of layers have rotary frequencies of their own. No norm stands before the first
attention.
"""

from ...rotary import rotary
from .family import Family, Key, by_half, dense, part, tensor

CONFIG = {
    "n_layers": Key("num_hidden_layers"),
    "n_heads": Key("num_attention_heads"),
    "d_model": Key("hidden_size"),
    "d_mlp": Key("intermediate_size"),
    "n_ctx": Key("max_position_embeddings"),  # the length of its training; no input is too long
    "eps": Key("norm_eps"),
    "act": Key("hidden_activation"),
    "head_act": Key("classifier_activation", "gelu"),
    "pad_id": Key("pad_token_id", None),
    "attn_bias": Key("attention_bias", False),
    "mlp_bias": Key("mlp_bias", False),
    "mean_pooled": Key("classifier_pooling", "cls"),
}
BODY = {
    "W_E": tensor("embeddings.tok_embeddings.weight"),
    "ln_embed_w": tensor("embeddings.norm.weight"),
    "ln_final_w": tensor("final_norm.weight"),
}
LAYER = {
    "ln1_w": tensor("attn_norm.weight"),
    **part("Q", "attn.Wqkv", 0, bias_only="attn_bias"),
    **part("K", "attn.Wqkv", 1, bias_only="attn_bias"),
    **part("V", "attn.Wqkv", 2, bias_only="attn_bias"),
    **dense("O", "attn.Wo", bias_only="attn_bias"),
    "ln2_w": tensor("mlp_norm.weight"),
    **part(
        "gate", "mlp.Wi", 0, by_half, bias_only="mlp_bias"
    ),  # the activation is on the first half
    **part("in", "mlp.Wi", 1, by_half, bias_only="mlp_bias"),
    **dense("out", "mlp.Wo", bias_only="mlp_bias"),
}
HEAD = {
    "W_head": tensor("head.dense.weight", transposed=True),
    "ln_head_w": tensor("head.norm.weight"),
}
MASKED = {**HEAD, **dense("U", "decoder")}
SEQUENCE = {**HEAD, **dense("U", "classifier")}
KNOWS = (
    "layer_types",
    "global_attn_every_n_layers",
    "local_attention",
    "rope_parameters",
    "rope_scaling",
    "global_rope_theta",
    "local_rope_theta",
)
POOLED = {"cls": False, "mean": True}
KINDS = FULL, NEAR = "full_attention", "sliding_attention"
OLD_THETA = {FULL: ("global_rope_theta", 160_000.0), NEAR: ("local_rope_theta", 10_000.0)}


def derived(values):
    """A head for a whole text reads its first token, or the mean of all."""
    pooling = values["mean_pooled"]
    if pooling not in POOLED:
        raise ValueError(f"classifier_pooling is {pooling!r:.80}; wanted {' or '.join(POOLED)}")
    return {"mean_pooled": POOLED[pooling]}


def places(raw, values):
    """What each layer sees, and how it turns queries and keys."""
    n = values["n_layers"]
    kinds = raw.get("layer_types")
    if kinds is None:
        every = raw.get("global_attn_every_n_layers", 3)
        kinds = [NEAR if i % every else FULL for i in range(n)]
    if not isinstance(kinds, list) or len(kinds) != n or not {*kinds} <= {*KINDS}:
        text = f"layer_types are {kinds!r:.80}"
        raise ValueError(f"{text}; wanted one of {', '.join(KINDS)} for each of {n} layers")
    near = raw.get("local_attention", 128)
    if type(near) is not int or near < 2:
        raise ValueError(f"local_attention is {near!r:.80}; wanted a whole number of at least 2")
    windows = {FULL: None, NEAR: near // 2}
    turns = {kind: rotary(parameters(raw, kind), _width(values), values["n_ctx"]) for kind in KINDS}
    return {
        "windows": tuple(windows[kind] for kind in kinds),
        "rotary": tuple(turns[kind] for kind in kinds),
    }


def _width(values):
    """Of a head."""
    return values["d_model"] // values["n_heads"]


def parameters(raw, kind):
    """The rope_parameters of a kind of layer, or what older files say."""
    given = raw.get("rope_parameters") or {}
    if not isinstance(given, dict) or not {*given} <= {*KINDS}:
        text = f"rope_parameters are {given!r:.80}"
        raise ValueError(f"{text}; wanted an object for each of {', '.join(KINDS)}")
    old_key, default = OLD_THETA[kind]
    theta = {"rope_theta": raw.get(old_key) or default}
    return theta | (raw.get("rope_scaling") or {}) | (given.get(kind) or {})


FAMILY = Family(
    config=CONFIG,
    fixed={"n_types": 0, "n_pos": 0, "pre_norm": True, "gated": True},
    derived=derived,
    places=places,
    knows=KNOWS,
    body=BODY,
    layer=LAYER,
    lacks=(("ln1_w", 0),),
    layer_prefix="layers.{}.",
    heads={"masked": MASKED, "sequence": SEQUENCE},
)
