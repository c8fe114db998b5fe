"""Gemma (2024), Gemma 2 (2024) and the text part of Gemma 3 (Gemma team 2025).

A norm multiplies by one more than its weight. The first Gemma is otherwise Llama. The later ones
have norms before and behind each part: in Gemma 2 scores and logits are capped; in Gemma 3 each
head's queries and keys are normed, and layers with a window have rotary frequencies of their own.
"""

from ...rotary import rotary
from . import llama, qwen
from .family import Key, tensor

KINDS = FULL, NEAR = "full_attention", "sliding_attention"
NO_BIAS = "mlp_bias"
FIRST = {field: key for field, key in llama.CONFIG.items() if field != NO_BIAS} | {
    "tied": Key("tie_word_embeddings", True),
    "d_kv": Key("head_dim"),
}
BOTH = FIRST | {
    "act": Key("hidden_activation"),
    "d_scale": Key("query_pre_attn_scalar"),
    "logit_cap": Key("final_logit_softcapping", None),
}
FIXED = llama.FIXED | {"mlp_bias": False}


def gain(name):
    """The weight of a norm, which multiplies by one more."""
    return tensor(f"{name}.weight", plus=1.0)


BODY = llama.BODY | {"ln_final_w": gain("norm")}
FIRST_LAYER = llama.LAYER | {
    "ln1_w": gain("input_layernorm"),
    "ln2_w": gain("post_attention_layernorm"),
}
LAYER = FIRST_LAYER | {
    "attn_out_w": gain("post_attention_layernorm"),
    "ln2_w": gain("pre_feedforward_layernorm"),
    "mlp_out_w": gain("post_feedforward_layernorm"),
}


def derived1(values):
    """Words are multiplied by the root of the width; "gelu" means its form with tanh."""
    act = "gelu_pytorch_tanh" if values["act"] == "gelu" else values["act"]
    return {"embed_scale": values["d_model"] ** 0.5, "act": act, **llama.derived(values)}


def derived(values):
    """Words are multiplied by the root of the width; a cap that is null is none."""
    values = {"score_cap": None} | values
    caps = {name: values[name] or 0.0 for name in ("score_cap", "logit_cap")}
    for name, value in (caps | {"d_scale": values["d_scale"]}).items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not 0 <= value < 1e30:
            raise ValueError(f"{name} is {value!r:.80}; wanted a number above 0")
    return {"embed_scale": values["d_model"] ** 0.5, **caps, **llama.derived(values)}


def kinds(raw, n, every):
    """What each layer sees, by name; where nothing is said, every so-manieth sees all."""
    given = raw.get("layer_types")
    if given is None:
        return [NEAR if (i + 1) % every else FULL for i in range(n)]
    return given


def places2(raw, values):
    """Every other layer has a window."""
    seen = {"layer_types": kinds(raw, values["n_layers"], 2), "use_sliding_window": True}
    return qwen.places(raw | seen, values)


def places3(raw, values):
    """Five of six layers have a window, and frequencies of their own."""
    every = raw.get("sliding_window_pattern", raw.get("_sliding_window_pattern", 6))
    if type(every) is not int or every < 1:
        raise ValueError(f"sliding_window_pattern is {every!r:.80}; wanted a whole number above 0")
    of_layers = kinds(raw, values["n_layers"], every)
    seen = {"layer_types": of_layers, "use_sliding_window": True}
    windows = qwen.windows(raw | seen, values)
    turns = {kind: rotary(parameters(raw, kind), values["d_kv"], values["n_ctx"]) for kind in KINDS}
    return windows | {"rotary": tuple(turns[kind] for kind in of_layers)}


OLD_THETA = {FULL: ("rope_theta", 1_000_000.0), NEAR: ("rope_local_base_freq", 10_000.0)}


def parameters(raw, kind):
    """The rope_parameters of a kind of layer; older files scale those that see all alone."""
    given = raw.get("rope_parameters") or {}
    if not isinstance(given, dict) or not {*given} <= {*KINDS}:
        text = f"rope_parameters are {given!r:.80}"
        raise ValueError(f"{text}; wanted an object for each of {', '.join(KINDS)}")
    key, default = OLD_THETA[kind]
    scaled = raw.get("rope_scaling") if kind == FULL else None
    return {"rope_theta": raw.get(key) or default} | (scaled or {}) | (given.get(kind) or {})


KNOWS = *llama.ROPE, "sliding_window", "layer_types"
KNOWS3 = *KNOWS, "sliding_window_pattern", "rope_local_base_freq"
GEMMA = llama.FAMILY._replace(
    config=FIRST,
    fixed=FIXED,
    derived=derived1,
    only=llama.ONLY
    | {"hidden_activation": "gelu_pytorch_tanh"},  # older versions of the library read it
    body=BODY,
    layer=FIRST_LAYER,
)
GEMMA2 = GEMMA._replace(
    config=BOTH | {"score_cap": Key("attn_logit_softcapping", None)},
    derived=derived,
    places=places2,
    only=llama.ONLY,
    knows=KNOWS,
    layer=LAYER,
)
GEMMA3 = GEMMA2._replace(
    config=BOTH,
    fixed=FIXED | {"qk_norm": True},
    places=places3,
    only=llama.ONLY | {"attn_logit_softcapping": None},  # the reference library ignores it
    knows=KNOWS3,
    layer=LAYER | {"ln_q_w": gain("self_attn.q_norm"), "ln_k_w": gain("self_attn.k_norm")},
)
