"""RoBERTa (Liu et al. 2019), and in its layout XLM-RoBERTa and CamemBERT: BERT with other heads."""

from . import bert
from .family import Key, dense, norm, tensor

CONFIG = bert.CONFIG | {"pad_id": Key("pad_token_id")}  # also says where positions begin
MASKED = {
    **dense("head", "lm_head.dense"),
    **norm("ln_head", "lm_head.layer_norm"),
    "W_U": tensor("lm_head.decoder.weight", transposed=True),
    "b_U": tensor("lm_head.decoder.bias", "lm_head.bias"),
}
SEQUENCE = {**dense("head", "classifier.dense"), **dense("U", "classifier.out_proj")}


def derived(values):
    """Positions are counted from the row after the padding id's; padding takes no position."""
    first = values["pad_id"] + 1
    return {
        "offset": first,
        "n_ctx": values["n_pos"] - first,
        "no_position_id": values["pad_id"],
    }


FAMILY = bert.FAMILY._replace(
    config=CONFIG,
    fixed={"default_type": 0, "head_act": "gelu"},  # the head's gelu is exact, whatever the MLP has
    derived=derived,
    heads={
        "masked": MASKED,
        "sequence": SEQUENCE,
        "token": bert.TOKEN,
        "question": bert.QUESTION,
        "choice": bert.SEQUENCE,
    },
)
