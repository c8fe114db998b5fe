"""Does each head look in its own direction, whatever the text?

Where each head looks, relative to the token it stands on, clustered over all heads and documents.
N documents, T tokens, L layers, H heads, R offsets (offset > 0: to the right), k clusters.
"""

import numpy as np

from ..maths import profiles as maths
from ..measures import heads
from ..runner import draw, options
from ..runner.registry import register
from ..runner.stream import UNSAVED
from ..texts import corpus

STEADY = 0.9  # share of a head's documents in one cluster from which the head keeps to it
SHARP = heads.SHARP
PERMUTATIONS = 100  # of the profiles over the heads


def profiles(
    model,
    run=UNSAVED,
    *,
    text: str = "sample",
    documents: int = 0,
    tokens: int = 0,
    clusters: int = 6,
    seed: int = 0,
):
    """Attention by relative position, clustered, for every head.

    text: file or folder with one document or paragraph a line, - for standard input, or sample
    documents: documents to read (0: as many as the text holds, at most 100)
    tokens: length of each document (0: the model's longest input)
    clusters: number of clusters
    seed: seed of the clusters and of the shuffles
    """
    options.at_least("clusters", clusters, 1)
    texts = corpus.documents(model, text, documents, tokens)
    T, n_heads = texts.T, model.config.n_layers * model.config.n_heads
    if len(texts) * n_heads < clusters:
        raise ValueError(
            f"{len(texts)} documents x {n_heads} heads are too few for --clusters {clusters}"
        )
    plain, shuffled = _measure(model, texts, seed, run)
    uniform = maths.uniform(T, model.config.causal)
    result = {"T": T, "documents": len(texts), "offsets": maths.offsets(), "uniform": uniform}
    result["profiles"] = plain.astype(np.float32)
    result["profiles_shuffled"] = shuffled.mean(axis=0)
    result |= _clusters(plain, shuffled, clusters, seed, T)
    result |= _sharpest(plain, shuffled, T)
    result["sharp_null"] = maths.mean_attention(uniform, T)[maths.offsets() != 0].max()
    return result


def _measure(model, documents, seed, run):
    """Profiles of every head on the documents, as they are and shuffled: [N L H R] twice."""

    def measure(i, document):
        shuffled = documents.shuffled(i, document, seed)
        return {
            "plain": heads.head_profiles(model, document),
            "shuffled": heads.head_profiles(model, shuffled),
        }

    gathered = run.gather(measure, documents, "documents", keep=("plain", "shuffled"))
    return gathered["plain"], gathered["shuffled"]


def _clusters(plain, shuffled, k, seed, T):
    """Clusters of all profiles, and how steadily each head keeps to one."""
    N, L, H, R = plain.shape
    centres, labels = maths.clusters(plain.reshape(-1, R), k, seed)
    members = [labels == c for c in range(k)]
    without_text = shuffled.reshape(-1, R)
    result = {
        "centres": centres,
        "centre_of_mass": maths.centre_of_mass(centres),
        "cluster_names": np.array(maths.names(centres, T)),
    }
    result["cluster_sizes"] = np.array([member.mean() for member in members])
    result["centres_shuffled"] = np.array([without_text[m].mean(axis=0) for m in members])
    result["labels"] = labels.reshape(N, L, H)
    result["shares"] = maths.label_frequencies(labels.reshape(N, L * H), k).reshape(L, H, k)
    nearest = maths.nearest(without_text, centres)
    return result | _steadiness(labels.reshape(N, L * H), nearest.reshape(N, L * H), k, seed)


def _steadiness(labels, labels_shuffled, k, seed):
    """How many heads keep to one cluster, and stay in it without the text: labels [N L*H] twice."""
    frequencies = maths.label_frequencies(labels, k)
    main = frequencies.argmax(axis=1)
    main_shuffled = maths.label_frequencies(labels_shuffled, k).argmax(axis=1)
    rng = np.random.default_rng(seed)
    by_chance = []
    for _ in range(PERMUTATIONS):
        permuted = rng.permutation(labels.ravel()).reshape(labels.shape)
        by_chance.append(_steady(maths.label_frequencies(permuted, k)))
    result = {"steady": _steady(frequencies), "steady_null": max(by_chance)}
    result["kept"] = (main == main_shuffled).mean()
    result["kept_null"] = (main[:, None] == main_shuffled).mean()
    return result


def _steady(frequencies):
    """Share of the heads that keep to one cluster: [L*H k] -> a number."""
    return (frequencies.max(axis=1) >= STEADY).mean()


def _sharpest(plain, shuffled, T):
    """The offset to which each head attends most, and the heads that attend to little else."""
    attention = maths.mean_attention(plain.mean(axis=0), T)  # [L H R]
    attention_shuffled = maths.mean_attention(shuffled.mean(axis=0), T)
    away = maths.offsets() != 0
    highest = attention[..., away].max(axis=2)  # [L H]
    highest_shuffled = attention_shuffled[..., away].max(axis=2)
    result = {"attention": attention, "attention_shuffled": attention_shuffled}
    result["best_offset"] = maths.offsets()[attention.argmax(axis=2)]
    result["best_attention"] = attention.max(axis=2)
    result["sharp"] = highest.max()
    result["n_sharp"] = (highest > SHARP).sum()
    result["n_sharp_null"] = (highest_shuffled > SHARP).sum()
    described = []
    for layer, head in np.argwhere(highest > SHARP).tolist():
        offset = draw.offset(result["best_offset"][layer, head])
        most = result["best_attention"][layer, head]
        described.append(f"{heads.name(layer, head)} at {offset}: {most:.2f}")
    result["sharp_heads"] = np.array(described, dtype=str)
    return result


def says(r):
    """What the numbers show, in plain words."""
    sharp_heads = ", ".join(r["sharp_heads"]) if r["n_sharp"] else "none"
    return (
        f"{r['steady']:.0%} of the heads keep to one cluster in at least {STEADY:.0%} of the "
        f"documents ({r['documents']}; dealt to heads at random: {r['steady_null']:.0%} at most), "
        f"and {r['kept']:.0%} stay in theirs when the words are shuffled (any two heads: "
        f"{r['kept_null']:.0%}). Heads with more than half of their attention at one offset: "
        f"{sharp_heads}."
    )


def plot(r):
    """Mean profile of every cluster on the left, a pie for every head on the right."""
    L, H, _ = r["shares"].shape
    pies = max(4.5, 0.62 * H)
    figure = draw.figure(5 + pies, max(5.0, 0.7 * L + 1))
    left, right = figure.subfigures(1, 2, width_ratios=(5, pies), wspace=0.03)
    colors = _colors(r["centres"], int(r["T"]))
    _draw_clusters(left, r, colors)
    _draw_pies(right.subplots(), r, colors)
    return figure


def _colors(centres, T):
    """Blues for clusters that look left, greys for even, oranges for right; darker is stronger."""
    from matplotlib import colormaps

    colors = {}
    sides = maths.sides(centres, T)
    for side, colormap, dark in (
        ("left", "Blues", 0.9),
        ("even", "Greys", 0.6),
        ("right", "Oranges", 0.85),
    ):
        members = sides[side]
        depths = np.linspace(dark, 0.35, len(members))
        colors |= {i: colormaps[colormap](depth) for i, depth in zip(members, depths)}
    return [colors[i] for i in range(len(centres))]


def _draw_clusters(figure, r, colors):
    """One small chart for each cluster: attention by offset, with both nulls."""
    k = len(colors)
    grid = figure.subplots(-(-k // 2), 2, sharex=True, squeeze=False).ravel()
    for axes in grid[k:]:
        axes.set_visible(False)
    for c, axes in enumerate(grid[:k]):
        _draw_cluster(axes, r, c, colors[c])
    figure.supxlabel("offset of the key (tokens, positive = to the right)", fontsize=9)
    figure.supylabel("attention per query", fontsize=9)
    figure.legend(handles=_legend(), loc="outside upper left", ncols=2, borderpad=0)


def _draw_cluster(axes, r, c, color):
    offsets, T = r["offsets"], int(r["T"])
    axes.bar(offsets, r["centres"][c] / T, color=color, width=0.85)
    axes.plot(offsets, r["centres_shuffled"][c] / T, "o", color="black", markersize=2.2)
    axes.plot(offsets, r["uniform"] / T, color=draw.GREEN, linewidth=1.2)
    name, mass, size = r["cluster_names"][c], r["centre_of_mass"][c], r["cluster_sizes"][c]
    axes.set_title(f"{name} ({mass:+.1f}): {size:.0%}")
    axes.set_ylim(0)


def _legend():
    from matplotlib.lines import Line2D

    dots = {"color": "black", "marker": "o", "markersize": 3, "linestyle": ""}
    line = {"color": draw.GREEN, "linewidth": 1.2}
    return [
        Line2D([], [], label="null: tokens shuffled", **dots),
        Line2D([], [], label="null: uniform attention", **line),
    ]


def _draw_pies(axes, r, colors):
    """Shares of the clusters in each head; below it the offset it attends to most, and how much."""
    L, H, _ = r["shares"].shape
    for layer, head in np.ndindex(L, H):
        _draw_pie(axes, (head, layer), r["shares"][layer, head], colors)
        most = r["best_attention"][layer, head]
        if most >= 0.05:  # below it no offset stands out
            text = f"{draw.offset(r['best_offset'][layer, head])}: {most:.2f}"
            axes.text(head, layer + 0.4, text, ha="center", va="top", fontsize=6.5)
    axes.set(xlim=(-0.6, H - 0.4), ylim=(L - 0.3, -0.6), aspect="equal")
    axes.set(xticks=range(H), yticks=range(L))
    axes.set(xlabel="head (the paper counts from 1)", ylabel="layer")
    axes.set_title(
        "share of the documents in each cluster;\nbelow: offset with most attention, and how much"
    )
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)


def _draw_pie(axes, centre, portions, colors):
    """Wedges from the top, clockwise; a full one as a circle, which has no seam."""
    from matplotlib.patches import Circle, Wedge

    turns = 90 - 360 * np.r_[0, portions.cumsum()]
    for begin, end, color in zip(turns, turns[1:], colors):
        if begin - end > 359.9:
            axes.add_patch(Circle(centre, 0.36, color=color, linewidth=0))
        elif begin > end:
            axes.add_patch(Wedge(centre, 0.36, end, begin, color=color, linewidth=0))


register(
    profiles,
    draw=plot,
    look="A pie of one colour is a head that looks the same way in every document. The charts show "
    "the clusters with their centre of mass (in parentheses, tokens) and their share of all "
    "profiles. They are named by side, strong where one offset there gets half of the attention or "
    "more, weak below a quarter. Even (grey) are clusters that as a whole prefer no side, or give "
    "no other offset a tenth of their attention; a head among them may still, as the number below "
    "its pie shows. A causal model can only look left. The line is what looking everywhere alike "
    "would give; the dots are the same heads on the same words in random order: where they stay on "
    "the bars, position alone decides.",
    published="In roberta-base, on 100 documents of WikiText-2, profiles fall into 6 clusters by "
    "direction and strength, and in most heads the direction does not depend on the text (Yamamoto "
    "and Matsuzaki, figure 1).",
    figure="figure 1",
    says=says,
    numbers={
        "documents": "documents read, each as long as the model allows",
        "steady": f"share of heads with at least {STEADY:.0%} of their documents in one cluster",
        "steady_null": "the most in 100 random deals of the profiles to the heads",
        "kept": "share of heads that stay in their main cluster when each document's tokens are "
        "shuffled",
        "kept_null": "the same for pairs of heads drawn at random",
        "sharp": "largest mean attention of a head to one fixed offset other than 0",
        "sharp_null": "the same under uniform attention",
        "n_sharp": f"heads with more than {SHARP} of their attention at one offset other than 0",
        "n_sharp_null": "the same with the tokens of each document shuffled",
        "sharp_heads": "these heads, their offset and attention",
    },
)
