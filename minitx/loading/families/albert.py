"""ALBERT (Lan et al. 2020): a BERT whose layers share weights, and whose embeddings are narrow.

A matrix maps their sum, behind its norm, to the width of the stream. A group of layers, `inner` of
them one after another, runs several times; the layers of minitx are these runs, and those of one
group are the same memory.
"""

from . import bert
from .family import Key, dense, norm, tensor

CONFIG = bert.CONFIG | {"d_embed": Key("embedding_size")}
BODY = bert.BODY | dense("map", "encoder.embedding_hidden_mapping_in")
LAYER = {
    **dense("Q", "attention.query"),
    **dense("K", "attention.key"),
    **dense("V", "attention.value"),
    **dense("O", "attention.dense"),
    **norm("ln1", "attention.LayerNorm"),
    **dense("in", "ffn"),
    **dense("out", "ffn_output"),
    **norm("ln2", "full_layer_layer_norm"),
}
MASKED = {
    **dense("head", "predictions.dense"),
    **norm("ln_head", "predictions.LayerNorm"),
    "W_U": tensor("predictions.decoder.weight", transposed=True),
    "b_U": tensor("predictions.decoder.bias", "predictions.bias"),
}
POOLER = dense("head", "pooler")
SEQUENCE = {**POOLER, **dense("U", "classifier")}
GROUPS, INNER = "num_hidden_groups", "inner_group_num"


def sizes(raw):
    """As many layers as run, and of each the group and the layer in it whose tensors it has."""
    runs, groups, inner = raw.get("num_hidden_layers"), raw.get(GROUPS, 1), raw.get(INNER, 1)
    for name, n in (("num_hidden_layers", runs), (GROUPS, groups), (INNER, inner)):
        if type(n) is not int or n < 1:
            raise ValueError(f"{name} is {n!r:.80}; wanted a whole number of at least 1")
    if groups > runs:
        raise ValueError(f"{GROUPS} is {groups}; wanted at most num_hidden_layers, {runs}")
    # with the library's division, which rounds
    stored = [(int(i / (runs / groups)), j) for i in range(runs) for j in range(inner)]
    return {"n_layers": len(stored), "shared_layers": tuple(stored)}


FAMILY = bert.FAMILY._replace(
    config=CONFIG,
    sizes=sizes,
    knows=(GROUPS, INNER),
    body=BODY,
    layer=LAYER,
    layer_prefix="encoder.albert_layer_groups.{}.albert_layers.{}.",
    heads={
        "masked": MASKED,
        "sequence": SEQUENCE,
        "token": bert.TOKEN,
        "question": bert.QUESTION,
        "next_sentence": {**POOLER, **dense("U", "sop_classifier.classifier")},
        "choice": SEQUENCE,
    },
)
