"""StableLM (Bellagente et al. 2024): Llama with LayerNorms; the first part of each head is turned.

Queries, keys and values may have biases.
"""

from functools import partial

from . import llama, phi
from .family import Key, norm

LAYER = {
    **llama.LAYER,
    **norm("ln1", "input_layernorm"),
    **norm("ln2", "post_attention_layernorm"),
}
HEADS = {
    "causal": llama.CAUSAL,
    "sequence": llama.SEQUENCE,
    "token": llama.TOKEN,
}

FAMILY = llama.FAMILY._replace(
    config=phi.PLAIN | {"attn_bias": Key("use_qkv_bias", False)},
    fixed=llama.FIXED | {"rms_norm": False, "mlp_bias": False},
    places=partial(phi.places, share=0.25),
    only={},
    body=llama.BODY | norm("ln_final", "norm"),
    layer={name: entry for name, entry in LAYER.items() if name != "b_O"},
    heads=HEADS,
)
