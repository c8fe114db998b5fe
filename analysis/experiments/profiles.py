"""Where each head looks, relative to the token it stands on, and whether that depends on the text.

N documents, T tokens, L layers, H heads, R offsets (offset > 0: to the right), k clusters. Order: the
picture, the experiment, its parts.
"""

import numpy as np

from .. import corpus, draw, heads as names, profiles as maths, stream
from ..registry import experiment

STEADY = 0.9  # share of a head's documents in one cluster from which the head keeps to it
SHARP = names.SHARP


def plot(r):
    """Mean profile of every cluster on the left, a pie for every head on the right."""
    L, H, _ = r["shares"].shape
    pies = max(4.5, 0.62 * H)
    figure = draw.figure(5 + pies, max(5.0, 0.7 * L + 1))
    left, right = figure.subfigures(1, 2, width_ratios=(5, pies), wspace=0.03)
    colors = _colors(r["centres"], int(r["T"]))
    _clusters(left, r, colors)
    _pies(right.subplots(), r, colors)
    return figure


def _colors(centres, T):
    """Blues for clusters that look left, greys for even ones, oranges for right; darker is stronger."""
    from matplotlib import colormaps
    colors, sides = {}, maths.sides(centres, T)
    for side, colormap, dark in (("left", "Blues", 0.9), ("even", "Greys", 0.6), ("right", "Oranges", 0.85)):
        members = sides[side]
        depths = np.linspace(dark, 0.35, len(members))
        colors |= {i: colormaps[colormap](depth) for i, depth in zip(members, depths)}
    return [colors[i] for i in range(len(centres))]


def _clusters(figure, r, colors):
    """One small chart for each cluster: attention by offset, with both nulls."""
    T, every = int(r["T"]), figure.subplots(-(-len(colors) // 2), 2, sharex=True, squeeze=False).flat
    for c, axes in enumerate(every):
        axes.set_visible(c < len(colors))
        if c < len(colors):
            axes.bar(r["offsets"], r["centres"][c] / T, color=colors[c], width=0.85)
            axes.plot(r["offsets"], r["centres_shuffled"][c] / T, "o", color="black", markersize=2.2)
            axes.plot(r["offsets"], r["uniform"] / T, color=draw.GREEN, linewidth=1.2)
            name, mass, size = (r[key][c] for key in ("cluster_names", "centre_of_mass", "cluster_sizes"))
            axes.set_title(f"{name} ({mass:+.1f}): {size:.0%}")
            axes.set_ylim(0)
    figure.supxlabel("offset of the key (tokens, positive = to the right)", fontsize=9)
    figure.supylabel("attention per query", fontsize=9)
    figure.legend(handles=[*_legend()], loc="outside upper left", ncols=2, borderpad=0)


def _legend():
    from matplotlib.lines import Line2D
    yield Line2D([], [], color="black", marker="o", markersize=3, linestyle="", label="null: tokens shuffled")
    yield Line2D([], [], color=draw.GREEN, linewidth=1.2, label="null: uniform attention")


def _pies(axes, r, colors):
    """Shares of the clusters in each head; below it the offset it attends to most, and how much."""
    from matplotlib.patches import Circle, Wedge
    L, H, _ = r["shares"].shape
    for layer, head in np.ndindex(L, H):
        turn = 90 - 360 * np.r_[0, r["shares"][layer, head].cumsum()]
        for c, color in enumerate(colors):
            if turn[c] - turn[c + 1] > 359.9:
                axes.add_patch(Circle((head, layer), 0.36, color=color, linewidth=0))
            elif turn[c] > turn[c + 1]:
                axes.add_patch(Wedge((head, layer), 0.36, turn[c + 1], turn[c], color=color, linewidth=0))
        best, most = (r[key][layer, head] for key in ("best_offset", "best_attention"))
        if most >= 0.05:  # below it no offset stands out
            axes.text(head, layer + 0.4, f"{draw.offset(best)}: {most:.2f}", ha="center", va="top", fontsize=6.5)
    axes.set(xlim=(-0.6, H - 0.4), ylim=(L - 0.3, -0.6), aspect="equal", xticks=range(H), yticks=range(L),
             xlabel="head (the paper counts from 1)", ylabel="layer")
    axes.set_title("share of the documents in each cluster;\nbelow: offset with most attention, and how much")
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)


def says(r):
    """What the numbers show, in plain words."""
    return (f"{r['steady']:.0%} of the heads keep to one cluster in at least {STEADY:.0%} of the documents "
            f"({r['documents']}; dealt to heads at random: {r['steady_null']:.0%} at most), and {r['kept']:.0%} "
            f"stay in theirs when the words are shuffled (any two heads: {r['kept_null']:.0%}). Heads with more than "
            f"half of their attention at one offset: {', '.join(r['sharp_heads']) if r['n_sharp'] else 'none'}.")


@experiment(
    asks="Does each head look in its own direction, whatever the text?",
    draw=plot,
    look="A pie of one colour is a head that looks the same way in every document. The charts show the "
         "clusters with their centre of mass (in parentheses, tokens) and their share of all profiles. They are named "
         "by side, strong where one offset there gets half of the attention or more, weak below a quarter. Even "
         "(grey) are clusters that as a whole prefer no side, or give no other offset a tenth of their attention; "
         "a head among them may still, as the number below its pie shows. A causal model can only look "
         "left. The line is what looking everywhere alike would give; the dots are the same heads on "
         "the same words in random order: where they stay on the bars, position alone decides.",
    published="In roberta-base, on 100 documents of WikiText-2, profiles fall into 6 clusters by direction "
              "and strength, and in most heads the direction does not depend on the text (Yamamoto and "
              "Matsuzaki, figure 1).",
    figure="figure 1",
    says=says,
    numbers={
        "documents": "documents read, each as long as the model allows",
        "steady": f"share of heads with at least {STEADY:.0%} of their documents in one cluster",
        "steady_null": "the most in 100 random deals of the profiles to the heads",
        "kept": "share of heads that stay in their main cluster when each document's tokens are shuffled",
        "kept_null": "the same for pairs of heads drawn at random",
        "sharp": "largest mean attention of a head to one fixed offset other than 0",
        "sharp_null": "the same under uniform attention",
        "n_sharp": f"heads with more than {SHARP} of their attention at one offset other than 0",
        "n_sharp_null": "the same with the tokens of each document shuffled",
        "sharp_heads": "these heads, their offset and attention"})
def profiles(model, *, text: str = "sample", documents: int = 0, tokens: int = 0, clusters: int = 6, seed: int = 0):
    """Attention by relative position, clustered, for every head.

    text: file or folder with one document or paragraph a line, - for standard input, or sample
    documents: documents to read (0: as many as the text holds, at most 100)
    tokens: length of each document (0: the model's longest input)
    clusters: number of clusters
    seed: seed of the clusters and of the shuffles
    """
    corpus.at_least("clusters", clusters, 1)
    read = corpus.documents(model, text, documents, tokens)
    heads, T = model.config.n_layers * model.config.n_heads, read.T
    if len(read) * heads < clusters:
        raise ValueError(f"{len(read)} documents x {heads} heads are too few for --clusters {clusters}")

    def measure(i, document):
        return {"plain": stream.head_profiles(model, document),
                "shuffled": stream.head_profiles(model, read.shuffled(i, document, seed))}
    plain, shuffled = stream.gather(measure, read, "documents", keep=("plain", "shuffled")).values()  # [N L H R]
    uniform = maths.uniform(T, model.config.causal)
    found = {"T": T, "documents": len(read), "offsets": maths.offsets(), "uniform": uniform,
             "profiles": plain.astype(np.float32), "profiles_shuffled": shuffled.mean(axis=0)}
    return found | _clustered(plain, shuffled, clusters, seed, T) | _sharpest(plain, shuffled, uniform, T)


def _clustered(plain, shuffled, k, seed, T):
    """Clusters of all profiles, and how steadily each head keeps to one."""
    N, L, H, R = plain.shape
    centres, labels = maths.clusters(plain.reshape(-1, R), k, seed)
    apart = maths.nearest(shuffled.reshape(-1, R), centres).reshape(N, L * H)
    share = maths.shares(labels.reshape(N, L * H), k)
    main, without_text = share.argmax(axis=1), maths.shares(apart, k).argmax(axis=1)
    rng = np.random.default_rng(seed)
    deals = (maths.shares(rng.permutation(labels).reshape(N, L * H), k) for _ in range(100))
    members = [labels == c for c in range(k)]
    return {"centres": centres, "centre_of_mass": maths.centre_of_mass(centres),
            "cluster_names": np.array(maths.names(centres, T)),
            "cluster_sizes": np.array([m.mean() for m in members]),
            "centres_shuffled": np.array([shuffled.reshape(-1, R)[m].mean(axis=0) for m in members]),
            "labels": labels.reshape(N, L, H), "shares": share.reshape(L, H, k),
            "steady": _steady(share), "steady_null": max(_steady(deal) for deal in deals),
            "kept": (main == without_text).mean(), "kept_null": (main[:, None] == without_text).mean()}


def _steady(share):
    return (share.max(axis=1) >= STEADY).mean()


def _sharpest(plain, shuffled, uniform, T):
    """The one offset to which each head attends most, and the heads that attend to little else."""
    attention, without_text = (maths.mean_attention(x.mean(axis=0), T) for x in (plain, shuffled))  # [L H R]
    away, best = maths.offsets() != 0, maths.offsets()[attention.argmax(axis=2)]
    sharp = np.argwhere(attention[..., away].max(axis=2) > SHARP)
    named = [f"{names.name(*pair)} at {draw.offset(best[*pair])}: {attention[*pair].max():.2f}"
             for pair in sharp.tolist()]
    return {"attention": attention, "attention_shuffled": without_text, "best_offset": best,
            "best_attention": attention.max(axis=2), "sharp": attention[..., away].max(),
            "sharp_null": maths.mean_attention(uniform, T)[away].max(), "n_sharp": len(sharp),
            "n_sharp_null": (without_text[..., away].max(axis=2) > SHARP).sum(),
            "sharp_heads": np.array(named, dtype=str)}
