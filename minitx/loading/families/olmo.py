"""OLMo (Groeneveld et al. 2024): Llama, whose norms are LayerNorms without gain and bias.

Queries, keys and values may be limited in size.
"""

from . import llama
from .family import ONES

NORMS = {"ln1_w": ONES, "ln2_w": ONES}
CONFIG = {field: key for field, key in llama.CONFIG.items() if field not in ("eps", "mlp_bias")}


def places(raw, values):
    """As Llama's; clip_qkv is the limit, null for none."""
    limit = raw.get("clip_qkv")
    is_number = isinstance(limit, int | float) and not isinstance(limit, bool)
    if limit is not None and not (is_number and 0 < limit < 1e30):
        raise ValueError(f"clip_qkv is {limit!r:.80}; expected a number above 0, or null")
    return llama.places(raw, values) | {"qkv_limit": limit or 0.0}


FAMILY = llama.FAMILY._replace(
    config=CONFIG,
    fixed=llama.FIXED | {"rms_norm": False, "eps": 1e-5, "mlp_bias": False},
    places=places,
    knows=(*llama.ROPE, "clip_qkv"),
    body=llama.BODY | {"ln_final_w": ONES},
    layer=llama.LAYER | NORMS,
    heads={"causal": llama.CAUSAL, "sequence": llama.SEQUENCE},
)
