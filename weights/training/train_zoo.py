"""Trains the zoo: tiny checkpoints that differ only in how a place enters, as far as they can.

    python -m minitx.weights.training.train_zoo causal-rotary --text FOLDER --out FOLDER

`all` trains one after another. Text, pieces, sizes, steps, the order of the data, the seed and the
first weights are those of all causal models, and of all masked ones but masked-rotary, which shares
its first embedding with them. A run may be stopped at any time and continues from FOLDER when
called again.
"""

from functools import partial

import numpy as np

from minitx.learning.start import WRITERS
from minitx.weights.training.recipe import INIT, Recipe, Row, make, options, waves

# One layer first: heads that look at neighbours form there within 4 million tokens. Its copies
# write less, which keeps positions in the stream behind it.
PLAN = (
    Row(900, 32, 128, 2e-3, 1),
    Row(300, 64, 64, 2e-3, 1),
    Row(700, 64, 64, 2e-3, 3),
    Row(900, 64, 64, 0.0, 3),
)
WRITING = dict.fromkeys(WRITERS, 0.2)


def nothing(config):
    """Rows of a table that tells no places."""
    return 0.0


def sinusoidal(config):
    """Rows of sinusoids behind those that no token reads."""
    rows = waves(config.n_pos - config.offset, config.d_model)
    return np.pad(rows, ((config.offset, 0), (0, 0)))


CAUSAL = partial(Recipe, plan=PLAN, sizes=WRITING, like="zoo/causal-learned")
MASKED = partial(Recipe, plan=PLAN, sizes=WRITING, like="zoo/masked-learned")
EMPTY = {"W_pos": nothing}
WITHOUT_TYPE = {"W_type": nothing}  # RoBERTa's one row of a type would be a constant of its own
# The stream of BLOOM begins as large as without its norm behind the embedding.
NORMED = {**WRITING, "ln_embed_w": INIT}
RECIPES = {
    recipe.name.removeprefix("zoo/"): recipe
    for recipe in (
        CAUSAL("zoo/causal-learned"),
        CAUSAL("zoo/causal-rotary"),
        CAUSAL("zoo/causal-alibi", sizes=NORMED),
        CAUSAL("zoo/causal-none", fixed=EMPTY),
        MASKED("zoo/masked-sinusoidal", fixed={"W_pos": sinusoidal, **WITHOUT_TYPE}),
        MASKED("zoo/masked-rotary", like=""),
        MASKED("zoo/masked-buckets", fixed=EMPTY),
        CAUSAL("zoo/causal-sinusoidal", fixed={"W_pos": sinusoidal}),
        MASKED("zoo/masked-learned"),
        MASKED("zoo/masked-none", fixed=EMPTY | WITHOUT_TYPE),
        MASKED("zoo/masked-disentangled"),
        MASKED("zoo/masked-disentangled-buckets"),
    )
}


def main():
    """Train one model, or all."""
    given = options(__doc__, [*RECIPES, "all"]).parse_args()
    names = [*RECIPES] if given.name == "all" else [given.name]
    out = given.out
    for name in names:
        given.out = out / name
        recipe = RECIPES[name].scaled(given.steps_scale)
        make(recipe, given, out / name.partition("-")[0])


if __name__ == "__main__":
    main()
