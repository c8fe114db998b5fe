"""GPT-Neo (Black et al. 2021; TinyStories): GPT-2, in which some layers have a window.

Scores are not divided by the root of a head's width. Queries, keys and values have no biases.
"""

from . import gpt2
from .family import Key, dense, norm, tensor

CONFIG = {
    "n_layers": Key("num_layers"),
    "n_heads": Key("num_heads"),
    "d_model": Key("hidden_size"),
    "d_mlp": Key("intermediate_size", None),
    "n_ctx": Key("max_position_embeddings"),
    "n_pos": Key("max_position_embeddings"),
    "n_types": Key("vocab_size"),  # token types are rows of the word embedding
    "eps": Key("layer_norm_epsilon"),
    "act": Key("activation_function"),
    "pad_id": Key("pad_token_id", None),
}
KINDS = "global", "local"
LAYER = {
    **norm("ln1", "ln_1"),
    "W_Q": tensor("attn.attention.q_proj.weight", transposed=True),
    "W_K": tensor("attn.attention.k_proj.weight", transposed=True),
    "W_V": tensor("attn.attention.v_proj.weight", transposed=True),
    **dense("O", "attn.attention.out_proj"),
    **norm("ln2", "ln_2"),
    **dense("in", "mlp.c_fc"),
    **dense("out", "mlp.c_proj"),
}


def repeated(types):
    """[[["global", "local"], 2]] -> ["global", "local", "global", "local"]."""
    return [kind for kinds, times in types for _ in range(times) for kind in kinds]


def places(raw, values):
    """Local layers see a window: so many keys, the query's own among them."""
    n, window = values["n_layers"], raw.get("window_size", 256)
    kinds = repeated(raw.get("attention_types") or [[KINDS, 12]])
    if len(kinds) != n or not {*kinds} <= {*KINDS}:
        text = f"attention_types are {kinds!r:.80}"
        raise ValueError(f"{text}; expected one of {', '.join(KINDS)} for each of {n} layers")
    if raw.get("attention_layers") not in (None, kinds):
        text = f"attention_layers are {raw['attention_layers']!r:.80}"
        raise ValueError(f"{text}; attention_types give {kinds!r:.80}")
    if type(window) is not int or window < 1:
        raise ValueError(f"window_size is {window!r:.80}; expected a whole number of at least 1")
    windows = tuple(window - 1 if kind == "local" else None for kind in kinds)
    return {"windows": windows, "causal": True}  # the reference library does not read is_causal


FAMILY = gpt2.FAMILY._replace(
    config=CONFIG,
    fixed=gpt2.FAMILY.fixed | {"scale_attn": False},
    places=places,
    knows=("attention_types", "attention_layers", "window_size"),
    layer=LAYER,
)
