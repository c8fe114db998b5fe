"""Marian (Junczys-Dowmunt et al. 2018), in the layout of OPUS-MT: BART with computed positions."""

from . import bart
from .family import Key, tensor

ONLY = bart.ONLY | {"normalize_embedding": False, "static_position_embeddings": True}
FIXED = bart.FIXED | {"sinusoids": True}


def body(side):
    """The word embedding of one of the two stacks, its own or shared."""
    return {"W_E": tensor(f"{side}.embed_tokens.weight", "shared.weight")}


LONGEST = 1 << 20  # positions; their table is computed, so that no file bounds it


def derived(values):
    """Positions are counted from row 0."""
    if values["n_ctx"] > LONGEST:
        text = f"max_position_embeddings is {values['n_ctx']}"
        raise ValueError(f"{text}; wanted at most {LONGEST}")
    return {"n_pos": values["n_ctx"], **bart.scale(values)}


ENCODER = bart.ENCODER._replace(fixed=FIXED, derived=derived, body=body("encoder"))
FAMILY = bart.FAMILY._replace(
    config=bart.FAMILY.config | {"n_vocab": Key("decoder_vocab_size", other="vocab_size")},
    fixed=FIXED | {"causal": True},
    derived=derived,
    only=ONLY,
    body=body("decoder"),
    heads={"causal": bart.CAUSAL},
    encoder=ENCODER,
)
