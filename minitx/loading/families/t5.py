"""T5 (Raffel et al. 2019): RMSNorm before each part, no biases, positions as a term of the scores.

T5 v1.1 has a gate in its MLP and an output embedding of its own.
"""

from . import generation
from .family import Family, Key, dense, tensor

ACTIVATIONS = {"gated-gelu": "gelu_new"}  # the others are named as they are: relu, gated-silu


CONFIG = {
    "n_layers": Key("num_layers"),
    "n_heads": Key("num_heads"),
    "d_model": Key("d_model"),
    "d_kv": Key("d_kv"),
    "d_mlp": Key("d_ff"),
    "n_ctx": Key("n_positions", 512),  # the length of its training; no input is too long
    "eps": Key("layer_norm_epsilon"),
    "act": Key("feed_forward_proj", "relu"),
    "n_buckets": Key("relative_attention_num_buckets"),
    "max_distance": Key("relative_attention_max_distance", 128),
    "pad_id": Key("pad_token_id", None),
}
DECODER = {
    "n_layers": Key("num_decoder_layers", other="num_layers"),
    **generation.KEYS,
    "read_id": Key("eos_token_id", 1),
    "unembed_scale": Key("scale_decoder_outputs", None),
}
FIXED = {"n_types": 0, "n_pos": 0, "pre_norm": True, "rms_norm": True, "scale_attn": False}


def body(side):
    """Word embedding, bias by distance and final norm of one of the two stacks."""
    bias = f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    return {
        "W_E": tensor("shared.weight", f"{side}.embed_tokens.weight"),
        "W_rel": tensor(bias),
        "ln_final_w": tensor(f"{side}.final_layer_norm.weight"),
    }


def attention(theirs):
    """The four matrices of an attention."""
    parts = {"W_Q": "q", "W_K": "k", "W_V": "v", "W_O": "o"}
    return {ours: tensor(f"{theirs}.{own}.weight", transposed=True) for ours, own in parts.items()}


def layer(mlp):
    """One layer, whose MLP is its part of that number."""
    parts = {"ln2_w": tensor(f"layer.{mlp}.layer_norm.weight")}
    dense = f"layer.{mlp}.DenseReluDense"
    names = f"{dense}.wi.weight", f"{dense}.wi_1.weight"  # without a gate, and with one
    parts["W_in"] = tensor(*names, transposed=True)
    parts["W_gate"] = tensor(f"{dense}.wi_0.weight", transposed=True, only="gated")
    parts["W_out"] = tensor(f"{dense}.wo.weight", transposed=True)
    ln1 = {"ln1_w": tensor("layer.0.layer_norm.weight")}
    return ln1 | attention("layer.0.SelfAttention") | parts


CROSS = {
    "ln_cross_w": tensor("layer.1.layer_norm.weight"),
    **attention("layer.1.EncDecAttention"),
}
CAUSAL = {"W_U": tensor("lm_head.weight", transposed=True)}
SEQUENCE = {
    **dense("head", "classification_head.dense"),
    **dense("U", "classification_head.out_proj"),
}


def check(values):
    """Raises ValueError for sizes that only T5 has, and that no model can have."""
    for name in ("d_kv", "n_buckets", "max_distance"):
        if type(values[name]) is not int or values[name] < 1:
            text = f"{name} is {values[name]!r}"
            raise ValueError(f"{text}; wanted a whole number of at least 1")
    n, largest = values["n_buckets"], values["max_distance"]
    if not 4 <= n < 2 * largest:
        text = f"{n} buckets of distances up to {largest}"
        raise ValueError(f"{text}; wanted at least 4, and fewer than two per distance")


def derived(values):
    """ "gated-gelu" is a gate and GELU in its form with tanh; the start is the padding id."""
    check(values)
    act = values["act"]
    gated = act.startswith("gated-")
    return {"gated": gated, "act": ACTIVATIONS.get(act, act.removeprefix("gated-"))}


def places(raw, values):
    """Nothing; raises ValueError for the two keys that say what feed_forward_proj says, if not."""
    act = raw.get("feed_forward_proj", "relu")
    said = {"is_gated_act": values["gated"], "dense_act_fn": act.removeprefix("gated-")}
    for key, value in said.items():
        is_new = key == "dense_act_fn" and raw.get(key) == values["act"]
        if raw.get(key) not in (value, None) and not is_new:
            raise ValueError(f"{key} is {raw[key]!r:.80}; feed_forward_proj {act!r} says {value!r}")
    return {}


def derived_decoder(values):
    """What the decoder has beside; a tied output embedding reads a stream made smaller."""
    more = derived(values)
    more["start_id"] = values["pad_id"] if values["start_id"] is None else values["start_id"]
    scaled = values["tied"] if values["unembed_scale"] is None else values["unembed_scale"]
    if not isinstance(scaled, bool | None):
        raise ValueError(f"scale_decoder_outputs is {scaled!r:.80}; wanted true or false")
    more["unembed_scale"] = values["d_model"] ** -0.5 if scaled else 1.0
    return more


ENCODER = Family(
    config=CONFIG,
    fixed=FIXED,
    derived=derived,
    places=places,
    knows=("is_gated_act", "dense_act_fn"),
    body=body("encoder"),
    layer=layer(1),
    layer_prefix="encoder.block.{}.",
    heads={"token": dense("U", "classifier")},  # of a file without a decoder
)
FAMILY = ENCODER._replace(
    config=CONFIG | DECODER,
    fixed=FIXED | {"causal": True, "read_at": "last_end"},
    derived=derived_decoder,
    body=body("decoder"),
    layer=layer(2),
    cross=CROSS,
    layer_prefix="decoder.block.{}.",
    heads={"causal": CAUSAL, "sequence": SEQUENCE, "question": dense("U", "qa_outputs")},
    sequence_act="tanh",
    encoder=ENCODER,
)
