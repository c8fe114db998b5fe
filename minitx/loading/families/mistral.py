"""Mistral (Jiang et al. 2023): Llama, in which a query sees no farther than a window."""

from . import llama


def places(raw, values):
    """All layers turn queries and keys alike, and see the same window."""
    return llama.places(raw, values) | windows(raw, values)


def windows(raw, values):
    """All layers have the same window: so many keys, the query's own position among them."""
    window = raw.get("sliding_window")
    if window is None:
        return {}
    if type(window) is not int or window < 1:
        text = f"sliding_window is {window!r:.80}"
        raise ValueError(f"{text}; wanted a whole number of at least 1, or null")
    return {"windows": (window - 1,) * values["n_layers"]}


CONFIG = {field: key for field, key in llama.CONFIG.items() if not field.endswith("_bias")}
FAMILY = llama.FAMILY._replace(
    config=CONFIG,
    fixed=llama.FIXED | {"attn_bias": False, "mlp_bias": False},
    only=llama.ONLY | {"layer_types": None},
    knows=(*llama.ROPE, "sliding_window"),
    places=places,
)
