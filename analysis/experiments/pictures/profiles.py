"""Do heads look in one direction of the picture?

Mean attention from a patch to the patch at each offset (dy, dx), over patches and pictures, in
units of uniform attention. Chance: the same pictures with the patches' positions in random order,
a new one for each picture. L layers, H heads, T patches; reach r.
"""

import numpy as np

import minitx

from ...contract import Asks, NotApplicable, Of, options, register_of_pictures
from ...drawing import Part, draw
from ...maths import grid
from ...measures import heads, pictures
from ...running.stream import UNSAVED

REACH = 3  # patches in each direction: farther offsets are of few pairs
LEAST = 4  # rows and columns: with fewer, an offset is of so few pairs that one may have most
SHARP = 2.0  # times uniform attention, from which a peak counts


def profiles(
    model,
    run=UNSAVED,
    *,
    text: pictures.Source = "sample",
    documents: pictures.Count = 0,
    seed: options.Seed = 0,
):
    """Attention of each head by offset between patches."""
    places = pictures.grid_of(model)
    sides = places.rows, places.columns
    if min(sides) < LEAST:
        given = f"{sides[0]} rows and {sides[1]} columns of patches"
        raise NotApplicable(f"{given} have too few pairs at an offset; wanted {LEAST} of both")
    sample = pictures.sample(model, text, documents, seed)
    reach = min(REACH, *(n - 1 for n in sides))

    def measure(i, tokens):
        rng = np.random.default_rng((seed, i))
        orders = {"own": None}
        for name in ("line", "chance"):  # one sets the line, the other is counted above it
            orders[name] = pictures.shuffled_places(places, len(tokens), rng)
        return {name: _by_offset(model, tokens, places, x) for name, x in orders.items()}

    sums = run.gather(measure, sample, "pictures")
    central = {name: grid.central(x / len(sample), reach) for name, x in sums.items()}
    own, by_chance = central["own"], central["chance"]
    result = {"documents": len(sample), "rows": sides[0], "columns": sides[1], "reach": reach}
    result |= {"profile": own, "profile_null": by_chance}
    line = max(SHARP, central["line"].max())
    return result | {"line": line} | _peaks(own, by_chance, line)


def _by_offset(model, tokens, places, positions):
    """Attention by offset in units of uniform attention: [L H 2R-1 2C-1]."""
    patterns = minitx.run(model, tokens, "pattern", positions=positions).stack("pattern")[:, 0]
    between = patterns[..., places.patches, places.patches].astype(np.float64)
    between /= between.sum(axis=-1, keepdims=True)  # what goes to the class token is left out
    L, H = between.shape[:2]
    flat = between.reshape(L * H, places.n, places.n)
    by_offset = places.n * grid.profile(flat, places.rows, places.columns)
    return by_offset.reshape(L, H, *by_offset.shape[1:])


def _peaks(own, by_chance, line):
    """Height and offset of every head's peak, and how many are sharp."""
    L, H = own.shape[:2]
    flat = own.reshape(L * H, *own.shape[2:])
    heights, down, across = map(np.array, zip(*map(grid.peak, flat)))
    chance_heights = by_chance.reshape(L * H, -1).max(axis=1)
    is_sharp = heights > line
    away = is_sharp & ((down != 0) | (across != 0))
    strongest = int(np.argmax(np.where(away, heights, 0))) if away.any() else int(heights.argmax())
    result = {"heights": heights.reshape(L, H), "n_heads": L * H}
    result |= {"down": down.reshape(L, H), "across": across.reshape(L, H)}
    result |= {"n_sharp": is_sharp.sum(), "n_away": away.sum()}
    result["n_sharp_null"] = (chance_heights > line).sum()
    result |= {"highest": heights.max(), "highest_null": chance_heights.max()}
    result["strongest"] = heads.name(*divmod(strongest, H))
    result |= {"strongest_down": down[strongest], "strongest_across": across[strongest]}
    return result


def _draw(figure, r):
    """A small map for each head, all on one scale."""
    L, H = r["heights"].shape
    axes = figure.subplots(L, H, squeeze=False, sharex=True, sharey=True)
    edge = r["reach"] + 0.5
    style = {"vmin": 0, "vmax": min(float(r["profile"].max()), 8.0), "cmap": "Blues"}
    for layer, head in np.ndindex(L, H):
        panel = axes[layer, head]
        extent = (-edge, edge, edge, -edge)
        image = panel.imshow(r["profile"][layer, head], extent=extent, **style)
        panel.plot(0, 0, "+", color=draw.VERMILION, markersize=5)
        panel.set_title(heads.name(layer, head), fontsize=10)
    figure.supxlabel("patches to the right of the query (+)")
    figure.supylabel("patches below it")
    label = "attention, in units of uniform attention"
    figure.colorbar(image, ax=axes, label=label)


register_of_pictures(
    profiles,
    look="Each small map is one head; the cross is the query's own patch. A dark cell next to it "
    "is a direction in which the head looks.",
    numbers="""
        n_sharp: heads whose mean attention at one offset exceeds {SHARP} times uniform attention
            and the maximum of all heads with shuffled positions
            null: heads that exceed both with positions shuffled once more
        n_away: heads among these whose peak is not the query's own patch
            no null: they are some of the sharp ones
        highest: largest mean attention of a head at one offset, in units of uniform attention
            null: the same with shuffled positions
        fact n_heads: heads of the model
        fact documents: pictures read
    """,
    answer=Asks(
        "heads with a sharp peak of attention at one offset between patches",
        value="{n_sharp} of {n_heads}",
        chance="{n_sharp_null} of {n_heads}",
        rule=Of("n_sharp", out_of="n_heads", enough=0.25),
    ),
    says=[
        "{n_sharp} of {n_heads} heads attend to one offset between patches with more than "
        "{line:.3g} times uniform attention (shuffled positions: {n_sharp_null}), {n_away} of them "
        "to another patch than their own. {strongest} is strongest {strongest_down} patches down "
        "and {strongest_across} to the right. The highest peak is {highest:.3g} times uniform "
        "(shuffled: {highest_null:.3g}).",
    ],
    draw=Part(_draw, height=lambda r: 2.0 * len(r["heights"]) + 1),
)
