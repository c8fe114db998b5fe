"""How many cosines of the grid does the stream encode, layer by layer?

Canonical correlations of the patches' stream with the slowest products of a cosine down the picture
and one across, fitted on one half of the pictures and held out on the other. Chance: the grid's
places in random order. L layers, K waves.
"""

import numpy as np

from ...contract import Asks, NotApplicable, Of, options, register_of_pictures
from ...drawing import Line, draw, lines, row
from ...maths import cca as maths
from ...maths import grid, nulls
from ...measures import pictures, residual_stream
from ...running.stream import UNSAVED

COMPONENTS = 8
SHUFFLES = 20


def cca(
    model,
    run=UNSAVED,
    *,
    text: pictures.Source = "sample",
    documents: pictures.Count = 0,
    components: options.Count = COMPONENTS,
    shuffles: options.Shuffles = SHUFFLES,
    seed: options.Seed = 0,
):
    """Canonical correlations of the stream with cosines over the grid.

    components: cosines of the grid, the slowest first
    """
    places = pictures.grid_of(model)
    components = options.fitting("components", components, places.n - 1, COMPONENTS)
    sample = pictures.sample(model, text, documents, seed)
    half = len(sample) // 2
    if half * places.n <= model.config.d_model + components:
        text = f"half of {len(sample)} pictures have {half * places.n} patches"
        raise NotApplicable(f"{text}, too few for {model.config.d_model} + {components} directions")

    def measure(i, tokens):
        states = residual_stream.states(model, tokens)[:, places.patches]
        xx, by_place = maths.sums(states)
        part = "fit" if i < half else "test"
        return {f"{part} xx": xx, f"{part} places": by_place}

    sums = run.gather(measure, sample, "pictures")
    basis = grid.cosines(places.rows, places.columns, components)
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(places.n) for _ in range(shuffles)]
    layers = range(len(sums["fit xx"]))
    held = [_held_out(sums, layer, half, len(sample), basis, orders) for layer in layers]
    own, by_chance = np.split(np.array(held), [1], axis=1)
    own = own[:, 0]
    names = [f"before layer {i}" for i in range(len(own) - 1)] + ["output"]
    result = {"layer_names": np.array(names), "documents": len(sample), "components": components}
    result |= {"correlations": own, "mean": own.mean(axis=1)}
    result["mean_null"] = np.quantile(by_chance.mean(axis=2), nulls.CHANCE, axis=1)
    result |= {"last": result["mean"][-1], "last_null": result["mean_null"][-1]}
    return result


def _held_out(sums, layer, half, n, basis, orders):
    """Correlations [1 + shuffles, K] of one layer: of the grid, and of the grid in other orders.

    A stream of fewer directions has 0 for the others.
    """
    fit = maths.moments(half, sums["fit xx"][layer], sums["fit places"][layer])
    test = maths.moments(n - half, sums["test xx"][layer], sums["test places"][layer])
    W = maths.whitening(fit)
    every = [basis, *(basis[order] for order in orders)]
    correlations = [maths.held_out(maths.fit(fit, W, y), test, y) for y in every]
    return [np.pad(r, (0, basis.shape[1] - len(r))) for r in correlations]


register_of_pictures(
    cca,
    look="Where the blue line stays high, cosines over the grid can be read from the stream of "
    "that layer, in held-out pictures.",
    numbers="""
        mean by layer_names: held-out correlation of the stream with the slowest cosines of the
            grid, mean over these
            null: 99% quantile of that mean with the grid's positions in random order
        last: held-out correlation of the output with the slowest cosines of the grid
            null: 99% quantile of that correlation with the grid's positions in random order
        fact components: cosines of the grid
        fact documents: pictures read
    """,
    answer=Asks(
        "correlation of the output with the slowest cosines of the grid, held out",
        value="{last:.2f}",
        chance="{last_null:.2f}",
        rule=Of("last", enough=0.5),
    ),
    says=[
        "The {components} slowest cosines of the grid correlate with the stream by {mean[0]:.2f} "
        "before the first layer and by {last:.2f} at the output, in held-out pictures (positions "
        "in random order: {mean_null[0]:.2f} and {last_null:.2f}).",
    ],
    draw=row(
        lines(
            Line("mean", "cosines of the grid, held out"),
            Line("mean_null", "null: positions in random order", "--", draw.GREY),
            xticks="layer_names",
            ylabel="canonical correlation, mean",
        )
    ),
)
