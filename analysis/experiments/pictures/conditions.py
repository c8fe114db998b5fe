"""Do heads keep their offset when one patch is repeated, so that only positions differ?

The same heads under four inputs: pictures, their patches dealt to other positions, one of its
patches everywhere, and patches without positions. What remains of each head's attention, above
uniform attention, to the offset (dy, dx) at which it looks on the pictures. Chance: the same
attention with the grid's positions in random orders. L layers, H heads, n patches, I conditions, S
orders.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import minitx

from ...contract import Asks, Of, Without, options, register_of_pictures
from ...drawing import Part, Rows, When, draw, figures, row
from ...machine import language
from ...maths import grid
from ...measures import heads, pictures
from ...running.stream import UNSAVED

REACH = 3  # patches in each direction: farther offsets are of few pairs
SHARP = 2.0  # times uniform attention, from which a head has an offset
KEPT = 0.5  # of what its attention has above uniform, from which a head keeps its offset
MOST = 0.9  # of these heads: "yes" allows one exception in ten
SHUFFLES = 99  # by chance, a head is above all of them once in 100
TOLD = 6  # heads, at most, in the sentence and the figure
DRAWN = 3  # at least, also where no head has an offset


class Condition(NamedTuple):
    """One input: what it is called, which patch [n] stands at each position, and what is edited."""

    words: str
    patches: Callable  # (n, random numbers) -> [n]
    edits: dict


CONDITIONS = {
    "pictures": Condition("pictures", lambda n, rng: np.arange(n), {}),
    "dealt": Condition("patches dealt", lambda n, rng: rng.permutation(n), {}),
    "repeated": Condition("one patch", lambda n, rng: np.full(n, rng.integers(n)), {}),
    "alone": Condition("no positions", lambda n, _: np.arange(n), {"pos_embed": np.zeros_like}),
}
REPEATED = [*CONDITIONS].index("repeated")


def conditions(
    model,
    run=UNSAVED,
    *,
    text: pictures.Source = "sample",
    documents: pictures.Count = 0,
    shuffles: options.Shuffles = SHUFFLES,
    seed: options.Seed = 0,
):
    """Attention of heads to their offset on pictures, shuffled patches, one patch, no positions."""
    places = pictures.grid_of(model)
    sample = pictures.sample(model, text, documents, seed)
    rng = np.random.default_rng(seed)
    orders = [np.arange(places.n), *(rng.permutation(places.n) for _ in range(shuffles))]

    def measure(i, tokens):
        rng = np.random.default_rng((seed, i))
        ways = [_input(tokens, places, each, rng) for each in CONDITIONS.values()]
        return {"profiles": np.array([_profiles(model, *way, places, orders) for way in ways])}

    profiles = run.gather(measure, sample, "pictures")["profiles"] / len(sample)  # [I 1+S L H …]
    own, by_chance = profiles[:, 0], profiles[:, 1:]
    result = {"documents": len(sample), "profile": own}
    result["conditions"] = np.array([each.words for each in CONDITIONS.values()])
    return result | _offsets(own, by_chance) | {"reach": own.shape[-1] // 2}


def _input(tokens, places, condition, rng):
    """The rows [T V] that are read under a condition, and what is edited."""
    rows = np.array(tokens)
    rows[places.patches] = rows[places.patches][condition.patches(places.n, rng)]
    return rows, condition.edits


def _profiles(model, tokens, edits, places, orders):
    """Attention by offset, in units of uniform attention, for each order of the grid's positions.

    [1+S L H 2r+1 2r+1]; what goes to the class token is left out.
    """
    patterns = minitx.run(model, tokens, "pattern", edits).stack("pattern")[:, 0]
    between = patterns[..., places.patches, places.patches].astype(np.float64)
    between *= places.n / between.sum(axis=-1, keepdims=True)
    L, H = between.shape[:2]
    flat = between.reshape(L * H, places.n, places.n)
    reach = min(REACH, places.rows - 1, places.columns - 1)
    by_order = grid.near_profiles(flat, places.rows, places.columns, reach, orders)
    return by_order.reshape(len(orders), L, H, *by_order.shape[-2:])


def _offsets(own, by_chance):
    """Each head's offset on the pictures, and under which conditions it keeps it."""
    at_own_patch = np.zeros(own.shape[-2:], bool)
    at_own_patch[tuple(n // 2 for n in at_own_patch.shape)] = True
    away = np.where(at_own_patch, 0, own[0])
    flat = away.reshape(*away.shape[:2], -1)
    best = flat.argmax(axis=-1)  # [L H]
    line = np.where(at_own_patch, 0, by_chance[0]).max(axis=(0, -2, -1))
    directed = flat.max(axis=-1) > np.maximum(SHARP, line)
    remaining, chance = (_attention_at(x, best) for x in (own, by_chance))  # [I L H], [I S L H]
    enough = 1 + KEPT * (remaining[0] - 1)
    down, across = np.array(np.divmod(best, own.shape[-1])) - own.shape[-1] // 2
    result = {"directed": directed, "n_directed": directed.sum(), "n_heads": directed.size}
    result |= {"down": down, "across": across, "attention_of_heads": remaining}
    result["n_kept"] = ((remaining >= enough) & directed).sum(axis=(1, 2))
    result["n_kept_null"] = ((chance >= enough) & directed).sum(axis=(2, 3)).max(axis=1)
    result["most_by_chance"] = chance.max(axis=(1, 2, 3))
    order = np.argsort(-(remaining[0] + flat.max() * directed), axis=None, kind="stable")
    n = min(max(directed.sum(), DRAWN), directed.size)
    return result | {"drawn": np.array([divmod(int(i), directed.shape[1]) for i in order[:n]])}


def _attention_at(profiles, best):
    """The attention of each head to its offset: [... L H 2r+1 2r+1], [L H] -> [... L H]."""
    flat = profiles.reshape(*profiles.shape[:-2], -1)
    places = np.broadcast_to(best, flat.shape[:-1])[..., None]
    return np.take_along_axis(flat, places, axis=-1)[..., 0]


def sharpest(r):
    """The first TOLD heads, those with an offset first."""
    return "; ".join(_describe(r, *place) for place in r["drawn"][:TOLD])


def _describe(r, layer, head):
    """'L0H3 at (-1, 0): 9.1 9.0 8.7 1.0'."""
    attention = " ".join(f"{x:.1f}" for x in r["attention_of_heads"][:, layer, head])
    offset = f"({r['down'][layer, head]}, {r['across'][layer, head]})"
    return f"{language.label(f'{heads.name(layer, head)} at {offset}')}: {attention}"


def _draw_all(axes, r):
    """The attention of every head to its offset under every condition, and its null."""
    x = np.arange(len(CONDITIONS))
    for kind, color, label in (
        (~r["directed"], draw.GREY, "heads without one"),
        (r["directed"], draw.BLUE, "heads with an offset"),
    ):
        for values in r["attention_of_heads"][:, kind].T:
            axes.plot(x, values, "o-", color=color, linewidth=1, markersize=3)
        axes.plot([], [], "o-", color=color, label=f"{label}: {kind.sum()}")
    null = {"color": "black", "linestyle": "--", "linewidth": 1}
    axes.plot(x, r["most_by_chance"], label="null: most, positions in random orders", **null)
    axes.set_xticks(x, [draw.wrapped(str(words), 8) for words in r["conditions"]])
    axes.set_ylabel("attention to its offset on the pictures, uniform = 1")
    axes.set_ylim(0, None)
    axes.legend(**draw.BESIDE)


def _draw_heads(figure, r):
    """Attention by offset of some heads under every condition, all of a head on one scale."""
    shown = r["drawn"][:TOLD]
    grids = figure.subplots(len(shown), len(CONDITIONS), squeeze=False, sharex=True, sharey=True)
    edge = r["reach"] + 0.5
    for panels, (layer, head) in zip(grids, shown):
        style = {"vmin": 0, "vmax": r["profile"][0, layer, head].max(), "cmap": "Blues"}
        for i, axes in enumerate(panels):
            extent = (-edge, edge, edge, -edge)
            axes.imshow(r["profile"][i, layer, head], extent=extent, **style)
            axes.plot(0, 0, "+", color=draw.VERMILION, markersize=5)
            attention = r["attention_of_heads"][i, layer, head]
            axes.set_title(f"{r['conditions'][i]}: {attention:.1f}", fontsize=10)
        offset = f"({r['down'][layer, head]}, {r['across'][layer, head]})"
        panels[0].set_ylabel(f"{heads.name(layer, head)} at {offset}")
    figure.supxlabel("patches to the right of the query (+)")
    figure.supylabel("patches below it")


register_of_pictures(
    conditions,
    look="Each row is a head, each column an input; the number is its attention to its offset, in "
    "units of uniform attention. A head that uses positions keeps the dark cell when one patch "
    "is repeated everywhere, and loses it without positions.",
    numbers="""
        n_kept by conditions: heads with an offset that keep at least {KEPT:.0%} of their attention
            to it above uniform attention, by input
            null: most heads that do with the grid's positions in any random order
        fact n_directed: heads whose attention to one offset, except their own patch, exceeds
            {SHARP} times uniform attention and their maximum with positions in random orders
        fact n_heads: heads of the model
        fact documents: pictures read
    """,
    answer=Asks(
        "heads with an offset that keep half of their attention to it when one patch is repeated",
        value=f"{{n_kept[{REPEATED}]}} of {{n_directed}}",
        chance=f"at most {{n_kept_null[{REPEATED}]}} of {{n_directed}}",
        rule=Of(f"n_kept[{REPEATED}]", out_of="n_directed", enough=MOST),
        without=Without("n_directed", "0 of {n_heads} heads with one", "0 heads"),
    ),
    says=When(
        "n_directed",
        [
            "{n_directed} of {n_heads} heads look at an offset between patches, except their own. "
            "At least {KEPT:.0%} of the attention above uniform stays (in brackets: positions in "
            "random orders) on: ",
            Rows("{conditions} {n_kept} (at most {n_kept_null})", first=1),
            ". Attention at the offset (down, to the right), in units of uniform attention, for "
            "{conditions}: {sharpest}.",
        ],
        "0 of {n_heads} heads look at an offset, except their own patch, with {SHARP} times "
        "uniform attention or more. The strongest for {conditions}: {sharpest}.",
    ),
    draw=figures(
        row(_draw_all), Part(_draw_heads, height=lambda r: 2.3 * len(r["drawn"][:TOLD]) + 1)
    ),
)
