"""What a model knows of positions at one moment of its training, each number beside chance.

The measures are those of experiments: `positions` (the table's waves), `dial` (heads that follow
moved positions), `cca` (positions in the stream), and two rows of `mechanisms`, which need no table
(the sharpest head, the loss without positions). L layers, H heads, R offsets, F frequencies.
"""

from typing import NamedTuple

import numpy as np

from ..experiments import cca, dial, positions
from ..measures import heads, place_effects
from ..running.stream import UNSAVED
from ..texts import corpus

REACH = 2  # tokens by which positions are moved
FOLLOWED, WAVES = 8, 2  # documents that the dial and the words beside the waves read


class What(NamedTuple):
    """What is measured of each model."""

    text: str = "sample"
    documents: int = 32
    tokens: int = 0  # of a document; 0: the longest input
    shuffles: int = 100
    every: int = 8  # of a masked model, one token in so many is hidden
    seed: int = 0


class Measure(NamedTuple):
    """A number that rises as positions form."""

    name: str
    means: str
    null: str
    of_table: bool


MEASURES = (
    Measure("swing", "largest amplitude of the table, slow waves included", "rows shuffled", True),
    Measure("waves", "highest peak of the table away from 0", "rows shuffled", True),
    Measure("sharp", "attention of the sharpest head to its offset", "all keys alike", False),
    Measure("follow", "attention that follows moved positions", "each key moved at random", True),
    Measure("kept", "positions in the last stream, correlation", "positions shuffled", True),
    Measure("gain", "loss that positions save, nats", "signs at random", False),
)


def measured(model, what):
    """{name: array} of a model: the MEASURES, each with its `_null`, and what is drawn beside them.

    Raises ValueError for a text that is too short, NotApplicable for a model that predicts nothing.
    """
    documents = corpus.documents(model, what.text, what.documents, what.tokens)
    result = of_any(model, documents, what)
    if "learned" in model.config.mechanisms:
        result |= of_table(model, what)
    return result


def of_any(model, documents, what):
    """Where heads look, and what positions do to the loss: of any mechanism."""
    row = place_effects.attention(model, documents, UNSAVED, "")
    off = place_effects.off(model, documents, what.every, what.seed, UNSAVED, "")
    looks = heads.attention_over(model, documents, documents.T)
    result = {"sharp": row["sharp"], "sharp_null": row["sharp_null"], "looks": looks}
    result |= {"loss": off["loss"], "loss_null": off["loss_null"], "gain": off["off"]}
    return result | {"gain_null": off["off_null"]}


def of_table(model, what):
    """Waves of the table, heads that follow them, and the table in the stream."""
    given = {"text": what.text, "tokens": what.tokens, "seed": what.seed}
    few = min(what.documents, FOLLOWED)
    table = positions.positions(
        model, text=what.text, documents=WAVES, shuffles=what.shuffles, seed=what.seed
    )
    turned = dial.dial(model, documents=few, losses=0, reach=REACH, **given)
    in_stream = cca.cca(model, documents=what.documents, shuffles=what.shuffles, **given)
    result = {"amplitude": table["position_mean"], "waves_at": table["peak_at"]}
    for end in "", "_null":
        result |= {f"swing{end}": table[f"amplitude{end}"], f"waves{end}": table[f"peak{end}"]}
        by_layer = in_stream[f"mean_first{end}"]
        result |= {f"cca{end}": by_layer, f"kept{end}": by_layer[-1]}
        result[f"follow{end}"] = turned[f"mean_weight{end}"]
    return result


def stacked(moments):
    """Moments of one training as arrays: a list of {name: x} -> {name: [S ...]}."""
    return {name: np.array([moment[name] for moment in moments]) for name in moments[0]}
