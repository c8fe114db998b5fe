"""What an experiment does in each way to know positions, from a table: one entry is a model's own.

The entry of a mechanism in which there is nothing to do is a text that says so (Nothing).
"""

from ..contract import sides
from ..contract.nothing import Nothing
from ..contract.registry import NotApplicable
from . import context_extension, inputs

TABLES = "learned", "sinusoidal"
BIASES = "buckets", "alibi"
NO_PLACES = "no mechanism tells this model positions"


def entries(*, table, rotary, bias, none, terms=None):
    """{mechanism: what is done}, one entry for all tables and one for all biases by distance.

    terms: what is done where queries and keys are compared with distances (DeBERTa); None: refused.
    """
    own = {"rotary": rotary, "none": none} | ({} if terms is None else {"disentangled": terms})
    return dict.fromkeys(TABLES, table) | dict.fromkeys(BIASES, bias) | own


def of_model(model, by_name):
    """The entry for this model's mechanism, from {mechanism: what is done}.

    A position table of zeros counts as no mechanism. Raises Nothing if the entry is a text, with
    this text; NotApplicable for a model with several mechanisms, with one that has no entry, or
    whose table or other weights are not there.
    """
    names = context_extension.mechanisms(model)
    if names[0] in TABLES:
        inputs.reachable(model)
    unknown = [name for name in names if name not in by_name]
    if unknown or len(names) > 1:
        what = f"needs one position mechanism of {', '.join(by_name)}"
        raise NotApplicable(f"{what}; this model has {' and '.join(names)}")
    if model.missing and names[0] not in TABLES:
        lacking = sides.lacking(model)
        raise NotApplicable(f"needs texts, since positions enter the scores, and {lacking}")
    entry = by_name[names[0]]
    if isinstance(entry, str):
        raise Nothing(entry)
    return entry
