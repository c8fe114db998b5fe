"""Granite 3 (Granite team 2024): Llama with four constant factors.

That of what is written to the stream is multiplied into the matrices and biases that write it.
"""

from . import llama
from .family import Key

FACTORS = {
    "embed_scale": Key("embedding_multiplier", 1.0),
    "unembed_scale": Key("logits_scaling", 1.0),
    "d_scale": Key("attention_multiplier", 1.0),
    "write_scale": Key("residual_multiplier", 1.0),
}
WRITERS = "W_O", "b_O", "W_out", "b_out"


def derived(values):
    """Logits are divided by their factor; scores have theirs in place of 1 / sqrt(d)."""
    for field, key in FACTORS.items():
        value = values[field]
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not 1e-15 < value < 1e15:
            raise ValueError(f"{key.name} is {value!r:.80}; expected a number above 0")
    factors = {field: float(values[field]) for field in ("embed_scale", "write_scale")}
    factors["unembed_scale"] = 1 / values["unembed_scale"]
    factors["d_scale"] = values["d_scale"] ** -2.0
    return llama.derived(values) | factors


FAMILY = llama.FAMILY._replace(
    config=llama.CONFIG | FACTORS,
    derived=derived,
    layer=llama.LAYER | {name: llama.LAYER[name]._replace(times="write_scale") for name in WRITERS},
    heads={"causal": llama.CAUSAL},
)
