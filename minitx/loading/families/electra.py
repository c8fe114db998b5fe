"""ELECTRA (Clark et al. 2020): a BERT that says of each token whether another stood in its place.

Its generators, and the small discriminator, have embeddings of another width than the stream, which
a matrix maps to it as in ALBERT. The head of a generator, for words, is not read.
"""

from . import bert
from .family import Key, dense

REPLACED = {
    **dense("head", "discriminator_predictions.dense"),
    **dense("U", "discriminator_predictions.dense_prediction"),
}
SEQUENCE = {**dense("head", "classifier.dense"), **dense("U", "classifier.out_proj")}
CHOICE = {**dense("head", "sequence_summary.summary"), **dense("U", "classifier")}


def derived(values):
    """Embeddings as wide as the stream pass through no matrix."""
    return {"d_embed": values["d_embed"] if values["d_embed"] != values["d_model"] else 0}


def only_narrow(entries):
    """The same tensors, expected where embeddings have a width of their own."""
    return {name: entry._replace(only="d_embed") for name, entry in entries.items()}


FAMILY = bert.FAMILY._replace(
    config=bert.CONFIG | {"d_embed": Key("embedding_size")},
    derived=derived,
    body=bert.BODY | only_narrow(dense("map", "embeddings_project")),
    knows=("summary_proj_to_labels",),
    heads={
        "replaced": REPLACED,
        "sequence": SEQUENCE,
        "choice": CHOICE,
        "token": bert.TOKEN,
        "question": bert.QUESTION,
    },
    sequence_act="gelu",
)
