"""ELECTRA (Clark et al. 2020): a BERT that says of each token whether another stood in its place.

Its generators, and the small discriminator, have embeddings of another width than the stream; they
are refused (refused.py).
"""

from . import bert
from .family import dense

REPLACED = {
    **dense("head", "discriminator_predictions.dense"),
    **dense("U", "discriminator_predictions.dense_prediction"),
}
SEQUENCE = {**dense("head", "classifier.dense"), **dense("U", "classifier.out_proj")}
CHOICE = {**dense("head", "sequence_summary.summary"), **dense("U", "classifier")}

FAMILY = bert.FAMILY._replace(
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
