"""MPNet (Song et al. 2020): RoBERTa without token types, and with a bias by distance as T5 has it.

Positions begin behind row 1 and skip token id 1, whatever the config calls padding, and the sizes
of the buckets are constants, as in the reference library's code.
"""

from . import bert, roberta
from .family import Key, dense, norm, tensor

PAD = 1
CONFIG = {
    **{field: key for field, key in bert.CONFIG.items() if field not in ("n_types", "head_act")},
    "pad_id": Key("pad_token_id", PAD),
}
BODY = {
    **{name: entry for name, entry in bert.BODY.items() if name != "W_type"},
    "W_rel": tensor("encoder.relative_attention_bias.weight"),
}
LAYER = {
    **bert.LAYER,
    **dense("Q", "attention.attn.q"),
    **dense("K", "attention.attn.k"),
    **dense("V", "attention.attn.v"),
    **dense("O", "attention.attn.o"),
    **norm("ln1", "attention.LayerNorm"),
}
FIXED = {
    "n_types": 0,
    "head_act": "gelu",
    "offset": PAD + 1,
    "no_position_id": PAD,
    "n_buckets": 32,
    "max_distance": 128,
}


def derived(values):
    """The first two rows of the position table are no token's own."""
    return {"n_ctx": values["n_pos"] - values["offset"]}


FAMILY = roberta.FAMILY._replace(
    config=CONFIG,
    fixed=FIXED,
    derived=derived,
    body=BODY,
    layer=LAYER,
)
