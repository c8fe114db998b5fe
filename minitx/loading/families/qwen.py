"""Qwen 2, 2.5 (Yang et al. 2024) and 3 (Yang et al. 2025): Llama with other biases and norms.

Qwen 2 has biases on queries, keys and values alone. Qwen 3 norms each head's queries and keys
before they are turned.
"""

from . import llama
from .family import Key, dense, tensor

KINDS = "full_attention", "sliding_attention"
KNOWS = *llama.ROPE, "sliding_window", "use_sliding_window", "layer_types", "max_window_layers"


def places(raw, values):
    """All layers turn queries and keys alike; some see a window only."""
    return llama.places(raw, values) | windows(raw, values)


def windows(raw, values):
    """Layers that config.json calls so have a window; in older files those from a number on."""
    n = values["n_layers"]
    window = raw.get("sliding_window") if raw.get("use_sliding_window") else None
    kinds = raw.get("layer_types")
    if kinds is None:
        first = raw.get("max_window_layers")
        first = n if window is None or first is None else first
        kinds = [KINDS[i >= first] for i in range(n)]
    if not isinstance(kinds, list) or len(kinds) != n or not {*kinds} <= {*KINDS}:
        text = f"layer_types are {kinds!r:.80}"
        raise ValueError(f"{text}; wanted one of {', '.join(KINDS)} for each of {n} layers")
    if KINDS[1] not in kinds or window is None:
        return {}
    if type(window) is not int or window < 1:
        text = f"sliding_window is {window!r:.80}"
        raise ValueError(f"{text}; wanted a whole number of at least 1, or null")
    return {"windows": tuple(window - 1 if kind == KINDS[1] else None for kind in kinds)}


CONFIG = {field: key for field, key in llama.CONFIG.items() if not field.endswith("_bias")}
QWEN2_LAYER = {
    **{name: entry for name, entry in llama.LAYER.items() if name != "b_O"},
    **dense("Q", "self_attn.q_proj"),
    **dense("K", "self_attn.k_proj"),
    **dense("V", "self_attn.v_proj"),
}
QWEN2 = llama.FAMILY._replace(
    config=CONFIG,
    fixed=llama.FIXED | {"mlp_bias": False},
    places=places,
    knows=KNOWS,
    layer=QWEN2_LAYER,
)
QWEN3 = llama.FAMILY._replace(
    config=CONFIG | {"d_kv": Key("head_dim"), "attn_bias": Key("attention_bias", False)},
    fixed=llama.FIXED | {"mlp_bias": False, "qk_norm": True},
    places=places,
    knows=KNOWS,
    layer={
        **llama.LAYER,
        "ln_q_w": tensor("self_attn.q_norm.weight"),
        "ln_k_w": tensor("self_attn.k_norm.weight"),
    },
)
