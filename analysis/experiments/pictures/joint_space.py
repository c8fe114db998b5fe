"""Are a patch's most attended patches closer to it after moving and scaling?

Queries and keys of the patches of pictures in one space, head by head, as in the joint space of a
sentence; one picture is drawn, its patches coloured by row and by column. Chance: shuffled keys,
for rows and columns the grid's positions in random orders. L layers, H heads, n patches; axis
"stage": before, as the model has them, and after, moved and scaled (maths/joint.py).
"""

from functools import partial

import numpy as np

from ...contract import options, register_of_pictures
from ...drawing import Part, draw, figures, line_sample
from ...maths import nulls
from ...measures import heads as names
from ...measures import joint_fit, joint_summary, pictures
from ...running.stream import UNSAVED

NOT_SAVED = "a", "plane", "centre", "density", "spread"  # of what joint_fit.fit gives
SHUFFLES = 99
COLORS = "viridis"  # from the first row, or column, to the last
SIDES = "row", "column"


def joint_space(
    model,
    run=UNSAVED,
    *,
    text: pictures.Source = "sample",
    documents: pictures.Count = 0,
    head: str = "auto",
    distance: joint_fit.Distance = "cosine",
    scope: joint_fit.Scope = "head",
    products: joint_fit.Products = "centred",
    weighted: joint_fit.Weighted = False,
    seed: options.Seed = 0,
):
    """Joint space of the queries and keys of patches in a few heads, before and after they are
    moved and scaled.

    head: heads to show, as L0H0,L1H2; auto: where the strongest keys come closer most, least, and
    in between
    """
    places = pictures.grid_of(model)
    shown = None if head == "auto" else names.parse(head, model.config)
    sample = pictures.sample(model, text, documents, seed)
    settings = joint_fit.How(distance, scope, products, weighted, among=places.patches)
    fitted = joint_fit.fit(model, [*sample], settings, seed, run=run)
    shown = shown or joint_summary.by_gain(fitted["mrr"] - fitted["mrr_before"])
    result = {name: x for name, x in fitted.items() if name not in NOT_SAVED}
    result |= joint_summary.summary(fitted) | {"documents": len(sample), "n": places.n}
    result |= {"rows": places.rows, "columns": places.columns, "distance": distance}
    result |= {"heads": np.array([names.name(*pair) for pair in shown]), "places": np.array(shown)}
    result["scale"] = fitted["c"][tuple(np.transpose(shown))]
    layers = joint_fit.layers(model, sample.tokens[0], settings)
    result |= _drawn(layers, shown, settings, fitted)
    return result | _ordered(result, places, seed)


def _drawn(layers, shown, settings, fitted):
    """The first picture's patches in the plane [heads 2 stages n 2], strongest keys."""
    points = []
    for layer, head in shown:
        stages = joint_fit.plane_points(layers[layer], settings, fitted, fitted)
        points.append([[x[head] for x in pair] for pair in stages])
    points = np.array(points)
    strongest = [layers[layer].pattern[head].argmax(axis=-1) for layer, head in shown]
    return {"q_plane": points[:, :, 0], "k_plane": points[:, :, 1], "lines": np.array(strongest)}


def _ordered(r, places, seed):
    """How much of the keys' spread in the plane lies between rows, and between columns: [heads]."""
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(places.n) for _ in range(SHUFFLES)]
    result = {}
    for side, number in zip(SIDES, np.divmod(np.arange(places.n), places.columns)):
        own = _between(r["k_plane"][:, 1], number)
        by_chance = [_between(r["k_plane"][:, 1], number[order]) for order in orders]
        result[f"by_{side}"] = own
        result[f"by_{side}_null"] = np.quantile(by_chance, nulls.CHANCE, axis=0)
    return result


def _between(points, groups):
    """Share of the spread of points [heads n 2] that lies between groups [n]."""
    x = points - points.mean(axis=1, keepdims=True)
    sums = np.array([x[:, groups == group].sum(axis=1) for group in np.unique(groups)])
    sizes = np.bincount(groups)[:, None, None]
    spread = np.maximum((x**2).sum(axis=(1, 2)), np.finfo(float).tiny)
    return (sums**2 / sizes).sum(axis=(0, 2)) / spread


def _of_heads(r):
    """For each head its plane before and after, coloured by row, and by column."""
    n = len(r["heads"])
    paints = [partial(_draw_planes, i=i, side=side) for i in range(n) for side in SIDES]
    return [Part(paint, height=4.6) for paint in paints]


def _draw_planes(figure, r, i, side):
    """The plane of one head, coloured by row or by column."""
    panels = figure.subplots(1, 2)
    for stage, axes in enumerate(panels):
        drawn = _draw_plane(axes, r, i, stage, side)
        axes.set_title(_title(r, i, stage, side), fontsize=10)
    bar = figure.colorbar(drawn, ax=panels, label=side, shrink=0.6)
    bar.set_ticks(range({"row": r["rows"], "column": r["columns"]}[side]))
    change = "left as it is" if r["kept"][tuple(r["places"][i])] else f"c = {r['scale'][i]:.3g}"
    panels[0].set_ylabel(f"{r['heads'][i]}: {change}")
    figure.legend(handles=[*_samples()], loc="outside upper left", ncols=3, borderpad=0)


def _draw_plane(axes, r, i, stage, side):
    """Queries and keys of one head, joined where a query's key is its strongest."""
    q, k = r["q_plane"][i, stage], r["k_plane"][i, stage]
    ends = np.stack([q, k[r["lines"][i]]], axis=1)  # [n 2 2]
    axes.plot(*ends.T, color="#999999", linewidth=0.4, alpha=0.6, zorder=1)
    numbers = dict(zip(SIDES, np.divmod(np.arange(len(q)), int(r["columns"]))))
    style = {"c": numbers[side], "cmap": COLORS, "s": 20, "zorder": 2, "linewidths": 0.4}
    axes.scatter(*q.T, marker="o", edgecolors="black", **style)
    drawn = axes.scatter(*k.T, marker="s", edgecolors="white", **style)
    axes.margins(0.06)
    axes.set_aspect("equal", adjustable="datalim")
    axes.tick_params(labelbottom=False, labelleft=False)
    return drawn


def _title(r, i, stage, side):
    """How near strongest keys are; then the plane's share, or how far keys lie by row or column."""
    place = tuple(r["places"][i])
    name = f"mrr_plane{('_before', '')[stage]}"
    near = f"1/rank: {r[name][place]:.2f} (chance: {r[f'{name}_null'][place]:.2f})"
    words = f"by {side}, {joint_fit.STAGES[stage]}\n{near}"
    if not stage:
        return f"{words}\n{r['explained'][0][place]:.0%} of the variance"
    own, null = r[f"by_{side}"][i], r[f"by_{side}_null"][i]
    return f"{words}\nkeys by {side}: {own:.0%} (chance: {null:.0%})"


def _samples():
    point = {"linestyle": "", "markersize": 5, "color": draw.GREY}
    yield line_sample("query of a patch", marker="o", markeredgecolor="black", **point)
    yield line_sample("key of a patch", marker="s", **point)
    yield line_sample("a query with its strongest key", color="#999999", linewidth=1)


register_of_pictures(
    joint_space,
    look="Each patch of one picture is drawn twice, as query and as key, in the plane of the first "
    "two principal components; 1/rank is that of the strongest key by distance in the plane, on "
    "average. Where colours are in order, the head's queries and keys encode the row, or the "
    "column; the number above is the share of the keys' variance between these. If near meant "
    "attended, the lines would be short.",
    per_head=joint_fit.PER_HEAD,
    numbers=[
        *joint_summary.numbers("closer", "farther", "mrr_mean", "mrr_before_mean"),
        """
        by_[row|column] by heads: share of the keys' variance in the plane that is between
            [rows|columns] of the first picture, after
            null: 99% quantile of {SHUFFLES} random orders of the grid's positions
        """,
        *joint_summary.numbers("correlation_mean", "closer_plane"),
        """
        fact heads: heads shown
        fact scale by heads: scale c of a head shown
        """,
        *joint_summary.numbers("n_kept", "documents"),
    ],
    answer=joint_summary.answer,
    says=["{n} patches of each of {documents} pictures, {c.size} heads. ", joint_summary.closer],
    draw=figures(_of_heads),
)
