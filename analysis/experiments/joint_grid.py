"""Over many texts, are the most attended keys closer to their queries after moving and scaling?

Queries and keys of every head in one space, over many texts: how near the key with most attention
is, and whether moving and scaling help.

L layers, H heads; "before" is as the model has them, "after" is moved and scaled (maths/joint.py).
"""

import numpy as np

from ..contract import options, register
from ..drawing import WIDTH, Part, draw, figures, line_sample
from ..measures import joint_fit, joint_summary
from ..running.stream import UNSAVED

PANELS = (
    ("correlation", "", "correlation of product and distance"),
    ("mrr", "", "mean 1/rank of the strongest key"),
    ("mrr", "_plane", "mean 1/rank in the plane"),
)
QUERY, KEY = (0, 0.447, 0.698), (0.902, 0.4, 0)  # a blue and an orange that mix to a dark grey
NOT_SAVED = "a", "plane", "centre"  # of what joint_fit.fit gives


def joint_grid(
    model,
    run=UNSAVED,
    *,
    text: options.Text = "sample",
    documents: options.Documents = 32,
    tokens: options.Tokens = 0,
    distance: joint_fit.Distance = "cosine",
    scope: joint_fit.Scope = "head",
    products: joint_fit.Products = "centred",
    weighted: joint_fit.Weighted = False,
    seed: options.Seed = 0,
):
    """Joint space of queries and keys in every head, with the nearness of the strongest keys before
    and after.

    documents: documents to read (0: all)
    tokens: how many first tokens of each to read (0: 64, or as many as the model reads if that is
    less)
    """
    settings = joint_fit.How(distance, scope, products, weighted)
    texts = joint_fit.documents(model, text, documents, tokens)
    fitted = joint_fit.fit(model, texts, settings, seed, run=run)
    result = {name: x for name, x in fitted.items() if name not in NOT_SAVED}
    result["density"] = fitted["density"].astype(np.float32)
    result["documents"] = len(texts)
    result["distance"] = distance
    return result | joint_summary.summary(fitted)


def _draw_heads(figure, r):
    """All heads as small pictures, before and after."""
    for stage, axes in enumerate(figure.subplots(1, 2)):
        _mosaic(axes, r["density"][:, stage], joint_fit.STAGES[stage])
    unit = ", of unit length" if r["distance"] == "cosine" else ""
    label = (
        "head: the plane of the first two principal components of queries and keys"
        f"{unit}, queries blue, keys orange"
    )
    figure.supxlabel(label, fontsize=10.5)


def _height_of_heads(r):
    """Inches of the small pictures."""
    L, H = r["c"].shape
    return min(5.4 / max(L, H), WIDTH / 2 / H - 0.1) * L + 1.2


def _draw_measures(figure, r):
    for axes, (name, space, title) in zip(figure.subplots(1, 3), PANELS):
        _panel(axes, r, name, space)
        axes.set_title(title)
    figure.legend(handles=[*_legend()], loc="outside upper left", ncols=4, borderpad=0)


def _mosaic(axes, density, stage):
    """[L 2 H BINS BINS] as one image, darker for more points, blue for queries, orange for keys."""
    L, _, H, B, _ = density.shape
    border = ((0, 0), (0, 0), (1, 1), (1, 1), (0, 0))  # of one cell around each head
    image = np.pad(_ink(density), border, constant_values=0.85)
    side = B + 2
    axes.imshow(image.swapaxes(1, 2).reshape(L * side, H * side, 3), interpolation="nearest")
    axes.set_xticks(np.arange(H) * side + B / 2 + 0.5, range(H))
    axes.set_yticks(np.arange(L) * side + B / 2 + 0.5, range(L))
    axes.set(title=stage, ylabel="layer" if stage == "before" else "")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _ink(density):
    """Colors of points on white: [L 2 H BINS BINS] -> [L H BINS BINS 3]."""
    most = density.max(axis=(-2, -1), keepdims=True)
    ink = np.log1p(density) / np.log1p(most).clip(1e-9)
    absorbed = sum(ink[:, i, ..., None] * (1 - np.array(x)) for i, x in enumerate((QUERY, KEY)))
    return (1 - absorbed).clip(0, 1)


def _panel(axes, r, name, space):
    """One measure: a dot for each head, before and after, and what its null gives."""
    before, after = (r[f"{name}{space}{stage}"].ravel() for stage in ("_before", ""))
    nulls = [r[f"{name}{space}{stage}_null"].ravel() for stage in ("_before", "")]
    axes.plot(*nulls, "x", color=draw.GREY, markersize=4)
    if name + space == "mrr":
        turned = [r[f"mrr{stage}_turned_null"].ravel() for stage in ("_before", "")]
        axes.plot(*turned, "+", color=draw.VERMILION, markersize=5)
    axes.plot(before, after, "o", color=draw.BLUE, markersize=4, alpha=0.7, markeredgewidth=0)
    low, high = 0, 1
    if name == "correlation":
        largest = max(x.max() for x in (before, after, *nulls))
        low, high = -1, min(1, largest + 0.05)
    axes.axline((low, low), slope=1, color="black", linewidth=0.6)
    axes.set(xlim=(low, high), ylim=(low, high), aspect="equal")
    axes.set(xlabel="before", ylabel="after")
    axes.locator_params(nbins=5)


def _legend():
    dots = {"linestyle": "", "markersize": 4}
    yield line_sample("a head", color=draw.BLUE, marker="o", **dots)
    yield line_sample(NULL, color=draw.GREY, marker="x", **dots)
    yield line_sample(TURNED, color=draw.VERMILION, marker="+", **dots | {"markersize": 5})
    yield line_sample("no change", color="black", linewidth=0.6)


NULL = "null: queries turned (left), keys shuffled"
TURNED = "arithmetic alone: queries rotated at random"

register(
    joint_grid,
    draw=figures(Part(_draw_measures, height=4), Part(_draw_heads, height=_height_of_heads)),
    answer=joint_summary.answer,
    look="Each square is one head, darker where it has more points: where blue and orange lie "
    "apart before, nearness cannot tell attention. Dots above the line went up: for the "
    "correlation, down is better (-1: distance tells the product); for 1/rank, up is better (1: "
    "the strongest key is the nearest). The crosses are what chance gives. A head is left as it is "
    "where nothing tried does better, so no head with its own scale does worse; of heads that "
    "share a scale this holds only on average. Moving alone may do worse than nothing. Products "
    "and distances are tied by arithmetic: even queries rotated at random correlate, so only what "
    "goes beyond them belongs to the model.",
    published="Moving the keys onto the queries and scaling both leaves attention as it is and "
    "makes products and distances correlate; pairs with high attention should then lie near each "
    "other (Yeh et al. 2023, figure 4). The note tried it on one sentence and one layer of BERT, "
    "and saw hardly any such pair come closer. According to two summaries of the paper, its mean "
    "Spearman correlations of product and cosine distance are -0.938 in BERT and -0.792 in GPT-2.",
    figure="AttentionViz, figure 4",
    says=[
        "The correlation of products with {distance} distances goes from "
        "{correlation_before_mean:.2f} to {correlation_mean:.2f} (mean of {c.size} heads; queries "
        "rotated at random: from {correlation_before_mean_null:.2f} to "
        "{correlation_mean_null:.2f}), by ranks (Spearman, text by text) from "
        "{spearman_before_mean:.2f} to {spearman_mean:.2f} (turned: from "
        "{spearman_before_mean_null:.2f} to {spearman_mean_null:.2f}); {n_kept} of the heads are "
        "left as they are, as nothing tried did better. ",
        joint_summary.closer,
        " Attention changes by {changed:.0e} at most.",
    ],
    per_head=joint_fit.PER_HEAD,
    numbers=joint_summary.NUMBERS,
)
