"""Queries and keys of every head in one space, over many texts: does nearness tell attention, and do the changes help?

L layers, H heads; "before" is as the model has them, "after" is moved and scaled (joint.py). Order: the picture, the
experiment.
"""

import numpy as np

from .. import draw, joint, joint_fit
from ..registry import experiment

PANELS = (("correlation", "", "correlation of product and distance"),
          ("mrr", "", "mean 1/rank of the strongest key"),
          ("mrr", "_plane", "the same in the plane"))
QUERY, KEY = (0, 0.447, 0.698), (0.902, 0.4, 0)  # a blue and an orange that mix to a dark grey


def plot(r):
    """All heads as small pictures, before and after; below, the measures of each head before and after."""
    L, H = r["c"].shape
    side = np.clip(5.6 / max(L, H), 0.3, 1.0)
    figure = draw.figure(max(2 * side * H + 1.6, 10), side * L + 4.8)
    above, below = figure.subfigures(2, 1, height_ratios=(side * L + 0.9, 3.7), hspace=0.02)
    for stage, axes in enumerate(above.subplots(1, 2)):
        _mosaic(axes, r["density"][:, stage], joint_fit.STAGES[stage])
    above.supxlabel(f"head: the plane of the first two principal components of {_vectors(r)}, "
                    "queries blue, keys orange", fontsize=9)
    for axes, panel in zip(below.subplots(1, 3), PANELS):
        _panel(axes, r, *panel)
    below.legend(handles=[*_legend()], loc="outside upper left", ncols=4, borderpad=0)
    return figure


def _vectors(r):
    return "queries and keys" + (", of unit length" if r["distance"] == "cosine" else "")


def _mosaic(axes, density, stage):
    """[L 2 H BINS BINS] as one image: the darker the more points, blue where queries, orange where keys are."""
    L, _, H, B, _ = density.shape
    ink = np.log1p(density) / np.log1p(density.max(axis=(-2, -1), keepdims=True)).clip(1e-9)
    image = 1 - sum(ink[:, i, ..., None] * (1 - np.array(color)) for i, color in enumerate((QUERY, KEY)))
    image = np.pad(image.clip(0, 1), ((0, 0), (0, 0), (1, 1), (1, 1), (0, 0)), constant_values=0.85)
    axes.imshow(image.swapaxes(1, 2).reshape(L * (B + 2), H * (B + 2), 3), interpolation="nearest")
    axes.set_xticks(np.arange(H) * (B + 2) + B / 2 + 0.5, range(H))
    axes.set_yticks(np.arange(L) * (B + 2) + B / 2 + 0.5, range(L))
    axes.set(title=stage, ylabel="layer" if stage == "before" else "")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _panel(axes, r, name, space, label):
    """One measure: a dot for each head, before and after, and what its null gives."""
    before, after = (r[f"{name}{space}{stage}"].ravel() for stage in ("_before", ""))
    nulls = [r[f"{name}{space}{stage}_null"].ravel() for stage in ("_before", "")]
    axes.plot(*nulls, "x", color=draw.GREY, markersize=4)
    if name + space == "mrr":
        turned = [r[f"mrr{stage}_turned_null"].ravel() for stage in ("_before", "")]
        axes.plot(*turned, "+", color=draw.VERMILION, markersize=5)
    axes.plot(before, after, "o", color=draw.BLUE, markersize=4, alpha=0.7, markeredgewidth=0)
    low, high = (-1, min(1, max(x.max() for x in (before, after, *nulls)) + 0.05)) if name == "correlation" else (0, 1)
    axes.axline((low, low), slope=1, color="black", linewidth=0.6)
    axes.set(xlim=(low, high), ylim=(low, high), xlabel="before", ylabel="after", title=label, aspect="equal")
    axes.locator_params(nbins=5)


def _legend():
    from matplotlib.lines import Line2D
    yield Line2D([], [], color=draw.BLUE, marker="o", linestyle="", markersize=4, label="a head")
    yield Line2D([], [], color=draw.GREY, marker="x", linestyle="", markersize=4,
                 label="its null: queries turned at random (left), keys shuffled (others)")
    yield Line2D([], [], color=draw.VERMILION, marker="+", linestyle="", markersize=5,
                 label="what arithmetic gives: queries turned at random")
    yield Line2D([], [], color="black", linewidth=0.6, label="no change")


def says(r):
    """What the numbers show, in plain words."""
    before, after, turned, turned_after = (r[f"correlation{end}_mean{null}"] for null in ("", "_null")
                                           for end in ("_before", ""))
    return (f"The correlation of products with {r['distance']} distances goes from {before:.2f} to {after:.2f} (mean "
            f"of {r['c'].size} heads; queries turned at random: from {turned:.2f} to {turned_after:.2f}); "
            f"left as they are, as nothing tried did better: {r['n_kept']} of them. {closer(r)} "
            f"Attention changes by {r['changed']:.0e} at most.")


def closer(r):
    """The question of the note, answered for the full space and for the plane."""
    parts = []
    for space, where in (("", "in the full space"), ("_plane", "in the plane")):
        share, null = ({name: r[name + space + end] for name in joint_fit.GAINS} for end in ("", "_null"))
        before, after, chance = (r[f"mrr{space}{end}"].mean() for end in ("_before", "", "_null"))
        beyond = [name for name in ("closer", "farther") if share[name] > null[name]]
        verdict = f"{' and '.join(beyond)} beyond chance" if beyond else "neither beyond chance"
        parts.append(f"{where} the strongest keys come closer in {share['closer']:.0%} of the heads (shuffled keys: up "
                     f"to {null['closer']:.0%}), go farther in {share['farther']:.0%} (up to {null['farther']:.0%}) "
                     f"and stay as near in {share['same']:.0%} (up to {null['same']:.0%}): {verdict}; mean 1/rank "
                     f"goes from {before:.2f} to {after:.2f} (chance: {chance:.2f})")
    return " ".join(f"{part[0].upper()}{part[1:]}." for part in parts)


GAINED = {name + place + null: means if not null else f"the most in {joint_fit.SHUFFLES} shuffles of the keys"
          for place, where in (("", "the full space"), ("_plane", "the plane of the first two principal components"))
          for name, means in (
              ("closer", f"share of all heads whose strongest keys come closer, by mean 1/rank, in {where}"),
              ("farther", f"share of all heads whose strongest keys go farther away, in {where}"),
              ("same", f"share of all heads whose strongest keys stay as near as before, in {where}"))
          for null in ("", "_null")}
NUMBERS = {
    "documents": "documents read",
    "c_mean": "geometric mean of the scale c over all heads",
    "n_bound": "heads whose c is the smallest or the largest that was tried",
    "n_kept": "heads left as they are, as no scale gave a lower correlation",
    "correlation_before_mean": "correlation of products and distances as they are, mean of all heads",
    "correlation_before_mean_null": "the same with the queries of each head turned at random: arithmetic alone",
    "correlation_moved_mean": "the same with the means of queries and keys moved together",
    "correlation_moved_mean_null": "the same with turned queries",
    "correlation_mean": "the same with the scale c too",
    "correlation_mean_null": "the same with turned queries and their own c",
    "better": "share of the heads whose correlation goes down from before to after",
    "better_null": "the same with turned queries",
    **GAINED,
    "mrr_before_mean": "mean 1/rank of the strongest key by distance, in the full space, before",
    "mrr_before_mean_null": "the same with shuffled keys",
    "mrr_mean": "the same after",
    "mrr_mean_null": "the same with shuffled keys",
    "mrr_turned_mean": "the same after for queries turned at random, with attention, c and a of their own",
    "mrr_plane_before_mean": "the same in the plane, before",
    "mrr_plane_before_mean_null": "the same with shuffled keys",
    "mrr_plane_mean": "the same in the plane, after",
    "mrr_plane_mean_null": "the same with shuffled keys",
    "first_mean": "share of the queries whose strongest key is the nearest, in the full space, after",
    "first_mean_null": "the same with shuffled keys",
    "first_plane_mean": "the same in the plane, after",
    "first_plane_mean_null": "the same with shuffled keys",
    "changed": "largest change of an attention weight by moving and scaling, in float64",
    "changed_products": "largest change of a product by scaling alone, as a share of the largest product"}


@experiment(
    asks="Can queries and keys share one space in which the near ones attend?",
    draw=plot,
    look="Each square is one head, the darker the more points: where blue and orange lie apart before, nearness cannot "
         "tell attention. Dots above the line went up: for the correlation down is better (-1: distance tells the "
         "product), for 1/rank up is better (1: the strongest key is the nearest). The crosses are what chance gives. "
         "Where nothing tried does better a head is left as it is, so that by itself none does worse; heads that "
         "share a scale do so on average only. Moving alone may do worse than nothing. Products and "
         "distances are tied by arithmetic: even queries turned at random correlate, so only what goes beyond them "
         "belongs to the model.",
    published="Moving the keys onto the queries and scaling both leaves attention as it is and makes products and "
              "distances correlate; pairs with high attention should then lie near each other (Yeh et al. 2023, figure "
              "4). The note tried it on one sentence and one layer of BERT, and saw hardly any such pair come closer.",
    figure="AttentionViz, figure 4",
    says=says,
    per_head=joint_fit.PER_HEAD,
    numbers=NUMBERS)
def joint_grid(model, *, text: str = "sample", documents: int = 32, tokens: int = 0, distance: str = "cosine",
               scope: str = "head", products: str = "centred", weighted: int = 0, seed: int = 0):
    """Joint space of queries and keys in every head, with the nearness of the strongest keys before and after.

    text: file or folder with one document or paragraph a line, - for standard input, or sample
    documents: documents to read (0: all)
    tokens: only the first so many of each (0: 64, or as many as the model reads if that is less)
    distance: cosine or euclidean
    scope: who shares one scale c: each head its own, all heads of a layer, or all of the model
    products: centred: less the mean over the keys that a query sees, as attention has them; plain: as they are
    weighted: 1 for a correlation weighted by attention
    seed: seed of the shuffles, and of the turned queries
    """
    how = joint_fit.how(distance, scope, products, weighted)
    read = joint_fit.documents(model, text, documents, tokens)
    found = joint_fit.fit(model, read, how, seed)
    return {"documents": len(read), "distance": distance} | summary(found) | {
        name: x for name, x in found.items() if name not in ("a", "plane", "centre", "density")} | {
        "density": found["density"].astype(np.float32)}


def summary(found):
    """Means over all heads, for people."""
    means = {name + "_mean" + null: found[name + null].mean() for null in ("", "_null") for name in (
        "correlation_before", "correlation_moved", "correlation", "mrr_before", "mrr", "mrr_plane_before", "mrr_plane",
        "first", "first_plane")}
    means["mrr_turned_mean"] = found["mrr_turned_null"].mean()
    return means | {
        "c_mean": np.exp(np.log(found["c"]).mean()), "n_bound": np.isin(found["c"], joint.SCALES[[0, -1]]).sum(),
        "n_kept": found["kept"].sum(),
        "better": (found["correlation"] < found["correlation_before"]).mean(),
        "better_null": (found["correlation_null"] < found["correlation_before_null"]).mean(),
        "changed": found["attention_change"].max(), "changed_products": found["products_change"].max()}
