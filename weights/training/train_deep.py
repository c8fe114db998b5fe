"""Trains a RoBERTa that keeps positions in its stream to the last layer, in NumPy alone.

    python -m minitx.weights.training.train_deep --text FOLDER --out FOLDER

The stages of deep-roberta without its spans, by minitx.learning: layers are added as copies, inputs
grow longer, matrices that write to the stream begin small, and in a step each layer is left out at
random. It may be stopped at any time and goes on from FOLDER when called again. Read downward:
stages, a loop that leaves out layers.

deep-roberta itself was trained in torch, before this program: there a layer that was left out did
not move at all, where here it goes on along the running means of its gradients; all layers could be
left out at once, where here one stays; and new position rows of context 128 were drawn alike.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from minitx.learning.gradients import gradients
from minitx.learning.parameters import parameters, with_arrays
from minitx.learning.start import WRITERS
from minitx.weights.training.recipe import Grown, Recipe, Row, make, options

SMALL = 0.2  # of their size: how matrices that write to the stream begin
SKIP = 0.3  # probability with which a layer is left out
RECIPE = Recipe(
    "deep-roberta",
    (
        Row(2400, 32, 64, 2e-3, 1),
        Row(600, 32, 64, 2e-3, 2),
        Row(600, 32, 64, 2e-3, 4),
        Row(950, 64, 32, 2e-3, 4),
        Row(3700, 128, 16, 2e-3, 4),
        Row(2000, 128, 16, 0.0, 4),
    ),
    sizes=dict.fromkeys(WRITERS, SMALL),
)


# ---- a loop that leaves out layers


class Of(NamedTuple):
    """Gradients by name, 0 where a layer was left out."""

    loss: float
    arrays: dict

    def __getitem__(self, key):
        return self.arrays[key]


class Skipping(Grown):
    """Stages in which each layer is left out at random, so that none can count on the others."""

    def used(self):
        """The layers of the next step."""
        rng = np.random.default_rng((self.how.seed, self.done, 2))
        n = self.start.model.config.n_layers
        draws = rng.random(n)
        draws[rng.integers(n)] = 1.0  # one stays
        return np.flatnonzero(draws >= SKIP).tolist()

    def slopes_of(self, batch):
        """The gradients of the model without the layers that are left out."""
        used = self.used()
        model = thinner(self.start.model, used)
        keys = {key: own(key, used) for key in self.start.arrays}
        wanted = [key for key in keys.values() if key is not None]
        grads = gradients(model, batch.tokens, batch.targets, wanted)
        arrays = {
            key: np.zeros_like(self.start.arrays[key]) if now is None else grads[now]
            for key, now in keys.items()
        }
        return Of(grads.loss, arrays)


def own(key, used):
    """The name of an array in a model of the layers used; None: it is not there."""
    if isinstance(key, str):
        return key
    return (key[0], used.index(key[1])) if key[1] in used else None


def thinner(model, used):
    """The model of some of its layers, with the same arrays."""
    arrays = {own(key, used): x for key, x in parameters(model).items()}
    config = replace(model.config, n_layers=len(used))
    return with_arrays(replace(model, config=config, layers=model.layers[: len(used)]), arrays, "")


def main():
    """Train, or go on training, and write the checkpoint to --out."""
    given = options(__doc__).parse_args()
    make(RECIPE.scaled(given.steps_scale), given, given.out, Skipping)


if __name__ == "__main__":
    main()
