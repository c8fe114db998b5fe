"""OLMo 2 (OLMo team 2025): Llama, in which norms stand behind attention and MLP, not before them.

Queries are normed for all heads together, and so are keys.
"""

from . import llama
from .family import tensor

NORMS = ("ln1_w", "ln2_w")
FAMILY = llama.FAMILY._replace(
    config={field: key for field, key in llama.CONFIG.items() if field != "mlp_bias"},
    fixed=llama.FIXED | {"mlp_bias": False, "qk_norm_all": True},
    layer={
        **{name: entry for name, entry in llama.LAYER.items() if name not in NORMS},
        "ln_all_q_w": tensor("self_attn.q_norm.weight"),
        "ln_all_k_w": tensor("self_attn.k_norm.weight"),
        "attn_out_w": tensor("post_attention_layernorm.weight"),
        "mlp_out_w": tensor("post_feedforward_layernorm.weight"),
    },
)
