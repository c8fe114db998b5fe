"""StarCoder 2 (Lozhkov et al. 2024): Mistral with LayerNorms, biases, and an MLP without a gate."""

from . import llama, mistral
from .family import Key, dense, norm, tensor

CONFIG = mistral.CONFIG | {
    "eps": Key("norm_epsilon"),
    "tied": Key("tie_word_embeddings", True),
    "attn_bias": Key("use_bias", True),
    "mlp_bias": Key("use_bias", True),
}
LAYER = {
    **norm("ln1", "input_layernorm"),
    **{name: llama.LAYER[name] for name in llama.LAYER if name[2:] in ("Q", "K", "V", "O")},
    **norm("ln2", "post_attention_layernorm"),
    **dense("in", "mlp.c_fc", bias_only="mlp_bias"),
    **dense("out", "mlp.c_proj", bias_only="mlp_bias"),
}
FAMILY = mistral.FAMILY._replace(
    config=CONFIG,
    fixed={"n_types": 0, "n_pos": 0, "pre_norm": True, "causal": True, "read_at": "last"},
    body={"W_E": tensor("embed_tokens.weight"), **norm("ln_final", "norm")},
    layer=LAYER,
)
