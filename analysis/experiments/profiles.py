"""Do heads attend to fixed relative positions, whatever the text?

Where each head looks, relative to the token it stands on, clustered over all heads and documents;
and where it looks when the words are shuffled, and on positions alone, without words: adjacency may
be built on words and positions, so what shuffled words leave is not yet the work of positions. For
a causal model the scores before its mask can be clustered in place of attention. Of an
encoder-decoder the decoder is read on what it says of each document. N documents, T tokens, L
layers, H heads, R offsets (offset > 0: to the right), k clusters.
"""

from typing import Annotated, Literal

import numpy as np

from ..contract import Asks, Led, Of, Without, options, register
from ..drawing import WIDTH, Part, When, bar_sample, draw, figures, line_sample
from ..maths import nulls
from ..maths import profiles as maths
from ..measures import conditions, decoder_texts, heads
from ..running import passes
from ..running.stream import UNSAVED
from ..texts import corpus
from ..texts import pairs as of_pairs

USUAL = 6  # clusters, or as many as there are different profiles
STEADY = 0.9  # share of a head's documents in one cluster from which the head keeps to it
MOST = 0.9  # of the heads with a direction: "yes" allows one exception in ten
SHARP = heads.SHARP
PERMUTATIONS = 1000  # of the profiles over the heads
MARK = "#7A3B69"  # of a scale that is not that of the other panels
ENLARGED = 1, 5, 10, 20, 50, 100, 200, 500, 1000  # times, a cluster's panel in the figure
FEW = 2  # clusters that the documents of one head fall into, as published
RUNS = "shuffled", "repeated", "positions"  # beside the text as it is
CONDITIONS = {name: conditions.CONDITIONS[name].words for name in RUNS}
BY_HEAD = (
    "head", "offset", "attention to it", "words shuffled", "same word", "positions alone",
    "uniform attention",
)  # fmt: skip
KINDS = {  # what is clustered -> its axis, its null
    "attention": ("attention per query", "uniform attention"),
    "scores": ("score, less each query's mean", "no offset preferred"),
}
SAYS = {"attention": "attention", "scores": "the scores before the mask"}


def profiles(
    model,
    run=UNSAVED,
    *,
    text: options.Text = "sample",
    pairs: Annotated[str, options.Files(but=(of_pairs.DATES,))] = "",
    documents: options.Documents = 0,
    tokens: options.Tokens = 0,
    clustered: Literal["attention", "scores"] = "attention",
    clusters: options.Count = USUAL,
    reach: options.Count = maths.REACH,
    seed: options.Seed = 0,
):
    """Attention by relative position, clustered, for every head: on a text, with its words
    shuffled, and on positions alone.

    pairs: for a decoder, a file of pairs (JSON Lines with source and target) or dates, in place of
    a text; for a text, the decoder's greedy output is used
    tokens: length of each document (0: the model's longest input, or for a decoder the median
    length of its outputs; shorter documents are left out)
    clustered: what is clustered: attention, or scores before masking
    clusters: number of clusters
    reach: farthest offset, in tokens
    """
    texts = _texts(model, text, pairs, documents, tokens, seed)
    options.within("reach", reach, 1, max(texts.T - 1, maths.REACH))
    T, n_heads = texts.T, model.config.n_layers * model.config.n_heads
    if len(texts) * n_heads < clusters != USUAL:
        raise ValueError(
            f"{len(texts)} documents x {n_heads} heads are too few for --clusters {clusters}"
        )
    everywhere = _measure(model, texts, clustered, reach, seed, run)
    attention = {name: x[:, 0] for name, x in everywhere.items()}
    if clusters == USUAL:
        profiles_of_heads = everywhere["plain"][:, -1].reshape(-1, 2 * reach + 1)
        clusters = min(USUAL, len(maths.different(profiles_of_heads)))
    uniform = maths.uniform(T, model.config.causal, reach)
    result = {"T": T, "documents": len(texts), "offsets": maths.offsets(reach)}
    result |= {"clustered": clustered, "uniform": uniform}
    result["profiles"] = attention["plain"].astype(np.float32)
    result["profiles_shuffled"] = attention["shuffled"].mean(axis=0)
    result["profiles_positions"] = attention["positions"].mean(axis=0)
    if model.encoder is not None:
        result["left_out"] = texts.left_out
    result |= _attention(attention, T, model.config.causal)
    result |= _sharpest(result)
    result |= _clusters(
        {name: x[:, -1] for name, x in everywhere.items()}, clusters, seed, T, clustered
    )
    result |= _steadiness(result, clusters, seed)
    return result | _kept_offsets(result, seed)


def _texts(model, text, pairs, documents, tokens, seed):
    """The documents that are read: of a decoder, what it says of each source."""
    if model.encoder is not None:
        given = decoder_texts.tasks(model, text, pairs, documents, 0, seed)
        return decoder_texts.outputs(model, given, tokens)
    if pairs:
        raise ValueError(
            f"--pairs is {pairs!r}, but pairs are for a decoder; wanted --side decoder"
        )
    return corpus.documents(model, text, documents, tokens)


def _measure(model, documents, clustered, reach, seed, run):
    """Profiles of every head on the documents, as they are and changed, and of positions alone.

    {"plain", "shuffled", "repeated": [N 1 L H R], "positions": [1 1 L H R]}; of scores the second
    axis has attention, then scores. A decoder's positions stand beside N sources: [N 1 L H R].
    """

    def of_attention(*given):
        reading = heads.profiles_read(*given)
        return reading._replace(value=lambda x: reading.value(x)[None])

    profile = heads.score_profiles_read if clustered == "scores" else of_attention
    edits = conditions.CONDITIONS["positions"].edits
    sources = getattr(documents, "sources", None)

    def measure(i, document):
        source = sources and sources[i]
        shuffled = documents.shuffled(i, document, seed)
        repeated = conditions.repeated(documents, i, document, seed)
        inputs = {"plain": document, "shuffled": shuffled, "repeated": repeated}
        result = {}
        for name, x in inputs.items():
            result[name] = yield profile(model, x, passes.NOTHING, reach, source)
        if sources:
            result["positions"] = yield profile(model, document, edits, reach, source)
        return result

    names = ("plain", *RUNS) if sources else ("plain", *RUNS[:2])
    gathered = run.gather(measure, documents, "documents", keep=names)
    everywhere = {name: gathered[name] for name in names}
    if not sources:  # the same for all documents
        alone = profile(model, documents.first()[0], edits, reach, None)
        everywhere["positions"] = passes.value(alone)[None]
    return everywhere


def _attention(everywhere, T, causal):
    """Mean attention by offset [L H R], and which heads have a direction, under each condition.

    everywhere: profiles [N L H R] by condition.
    """
    result = {}
    reach = everywhere["plain"].shape[-1] // 2
    offsets = maths.offsets(reach)
    for name, x in everywhere.items():
        attention = maths.mean_attention(x.mean(axis=0), T)
        suffix = "" if name == "plain" else f"_{name}"
        result["attention" + suffix] = attention
        result["directed" + suffix] = maths.directed(attention, T, reach, causal)
    result["best_offset"] = offsets[result["attention"].argmax(axis=2)]
    result["best_attention"] = result["attention"].max(axis=2)
    result["n_directed"] = result["directed"].sum()
    result |= heads.by_strength(result["best_attention"], result["directed"])
    uniform = maths.mean_attention(maths.uniform(T, causal, reach), T)
    result["sharp_null"] = uniform[offsets != 0].max()
    return result


def _sharpest(r):
    """Heads that attend to little but one offset, under each condition."""
    away = r["offsets"] != 0
    result = {}
    for suffix in ("", "_shuffled", "_repeated", "_positions"):
        highest = r["attention" + suffix][..., away].max(axis=2)  # [L H]
        result["n_sharp" + suffix] = (highest > SHARP).sum()
    highest = r["attention"][..., away].max(axis=2)
    result["sharp"] = highest.max()
    described = [_describe_head(r, *place) for place in np.argwhere(highest > SHARP).tolist()]
    result["sharp_heads"] = np.array(described or ["none"], dtype=str)
    return result


def by_head(r):
    """Every head with a direction, and its attention to its offset under each condition."""
    pairs = np.argwhere(r["directed"])
    places = tuple(pairs.T)
    rows, best = np.arange(len(pairs)), r["attention"][places].argmax(axis=1)
    own = [r["attention" + x][places][rows, best] for x in ("", *(f"_{name}" for name in RUNS))]
    own.append(maths.mean_attention(r["uniform"], r["T"])[best])
    entries = [[heads.name(*pair) for pair in pairs], map(draw.offset, r["best_offset"][places])]
    entries += [[f"{x:.3f}" for x in column] for column in own]
    return dict(zip(BY_HEAD, entries, strict=True))


def _describe_head(r, layer, head):
    """'L1H3 at +1: 0.53 (words shuffled 0.54, positions alone 0.01)'."""
    best = r["attention"][layer, head].argmax()
    offset = draw.offset(r["offsets"][best])
    most = r["attention"][layer, head, best]
    others = [
        f"{words} {r[f'attention_{name}'][layer, head, best]:.2f}"
        for name, words in CONDITIONS.items()
    ]
    return f"{heads.name(layer, head)} at {offset}: {most:.2f} ({', '.join(others)})"


def _clusters(everywhere, k, seed, T, clustered):
    """Clusters of all profiles, and the mean of their members under the other conditions.

    everywhere: profiles [N L H R] by condition.
    """
    plain = everywhere["plain"]
    N, L, H, R = plain.shape
    place = maths.highest if clustered == "scores" else maths.centre_of_mass
    centres, labels = maths.clusters(plain.reshape(-1, R), k, seed, place=place)
    members = [labels == c for c in range(k)]
    result = {"centres": centres}
    if clustered == "scores":
        result["cluster_names"] = np.array(maths.names_of_scores(centres / T))
    else:
        result["cluster_names"] = np.array(maths.names(centres, T))
        result["centre_of_mass"] = maths.centre_of_mass(centres)
        result["cluster_attention"] = maths.best_on_side(centres, T)[1]
    result["cluster_sizes"] = np.array([member.mean() for member in members])
    for name in CONDITIONS:
        rows = np.broadcast_to(everywhere[name], plain.shape).reshape(-1, R)
        result[f"centres_{name}"] = np.array([rows[m].mean(axis=0) for m in members])
    shuffled = everywhere["shuffled"].reshape(-1, R)
    result["labels"] = labels.reshape(N, L, H)
    result["labels_shuffled"] = maths.nearest(shuffled, centres).reshape(N, L, H)
    result["shares"] = maths.label_frequencies(labels.reshape(N, L * H), k).reshape(L, H, k)
    return result


def _steadiness(r, k, seed):
    """How many heads keep to one cluster, and stay in it without the text.

    The null deals all labels to documents and heads anew.
    """
    both = r["labels"], r["labels_shuffled"]
    labels, labels_shuffled = (x.reshape(len(x), -1) for x in both)
    directed = r["directed"].ravel()
    frequencies = maths.label_frequencies(labels, k)
    main = frequencies.argmax(axis=1)
    main_shuffled = maths.label_frequencies(labels_shuffled, k).argmax(axis=1)
    rng = np.random.default_rng(seed)
    by_chance = []
    for _ in range(PERMUTATIONS):
        permuted = rng.permutation(labels.ravel()).reshape(labels.shape)
        by_chance.append(_steady(maths.label_frequencies(permuted, k), directed))
    names = ["steady", "steady_directed"]
    if k > FEW:
        names.append("few")
    result = dict(zip(names, _steady(frequencies, directed)))
    high = np.quantile(by_chance, 0.99, axis=0)
    result |= {f"{name}_null": x for name, x in zip(names, high)}
    result["kept"], (_, result["kept_null"]) = nulls.matches(main, main_shuffled, seed)
    return result


def _steady(frequencies, directed):
    """Shares of heads that keep to one cluster, or to FEW, by how often each occurs: [L*H k].

    Of all heads, and of those with a direction, in one; of all in FEW.
    """
    is_steady = frequencies.max(axis=1) >= STEADY
    n_clusters = (frequencies > 0).sum(axis=1)
    of_directed = is_steady[directed].sum() / max(directed.sum(), 1)
    return is_steady.mean(), of_directed, np.mean(n_clusters <= FEW)


def _kept_offsets(r, seed):
    """Share of the heads with a direction that have it under the other conditions too."""
    directed, offset = r["directed"], r["best_offset"]
    offsets = maths.offsets(r["attention"].shape[-1] // 2)
    nowhere = offsets[-1] + 1  # the offset of a head that lost its direction
    result = {}
    for name in CONDITIONS:
        best = offsets[r[f"attention_{name}"].argmax(axis=2)]
        changed = np.where(r[f"directed_{name}"], best, nowhere)
        kept, (_, high) = nulls.matches(offset[directed], changed[directed], seed)
        result |= {f"offset_{name}": kept, f"offset_{name}_null": high}
    return result


def counts(r):
    """Heads that keep their direction, also with one word repeated; by chance; in heads."""
    kept = min(r["steady_directed"], r["offset_shuffled"]), r["offset_repeated"]
    by_chance = r["steady_directed_null"], r["offset_repeated_null"]
    return [round(int(r["n_directed"]) * float(x)) for x in (*kept, *by_chance)]


def _pies(r):
    """Inches of the width of the pies."""
    return np.clip(0.95 * r["shares"].shape[1], 6.2, 8.8)


def _height_of_pies(r):
    """Inches of the pies, with what stands above and below them."""
    L, H, _ = r["shares"].shape
    return max(4.2, min(0.85, (_pies(r) - 0.4) / H) * L + 1.5)


def _draw_heads(figure, r):
    """A pie for every head, and what is left without the text."""
    left, right = figure.subfigures(1, 2, width_ratios=(_pies(r), WIDTH - _pies(r)), wspace=0.03)
    _draw_pies(left.subplots(), r)
    colors, members = _colors(r), _members(r)  # the strongest of each side is shown
    sides = [bar_sample(SIDES[side], color=colors[of[0]]) for side, of in members.items() if of]
    left.legend(handles=sides, loc="outside lower left", ncols=3)
    _draw_conditions(right.subplots(), r)


SIDES = {"left": "to the left", "even": "no side", "right": "to the right"}  # of clusters


def _members(r):
    """The clusters of each side, the strongest first."""
    if r["clustered"] == "scores":
        return maths.sides_of_scores(r["centres"])
    return maths.sides(r["centres"], int(r["T"]))


def _colors(r):
    """Blues for clusters that look left, greys for even, oranges for right; darker is stronger."""
    from matplotlib import colormaps

    colors = {}
    sides = _members(r)
    for side, colormap, *ends in (
        ("left", "Blues", 0.95, 0.62),
        ("even", "Greys", 0.6, 0.8),
        ("right", "Oranges", 0.95, 0.7),
    ):
        members = sides[side]
        depths = np.linspace(*ends, len(members))
        colors |= {i: colormaps[colormap](depth) for i, depth in zip(members, depths)}
    return [colors[i] for i in range(len(r["centres"]))]


def _draw_clusters(figure, r):
    """One small chart for each cluster: attention by offset, and under the other conditions."""
    colors = _colors(r)
    k = len(colors)
    columns = min(k, 6)
    grid = figure.subplots(-(-k // columns), columns, sharex=True, squeeze=False).ravel()
    for axes in grid[k:]:
        axes.set_visible(False)
    limits = _limits(r)
    for c, axes in enumerate(grid[:k]):
        _draw_cluster(axes, r, c, colors[c])
        _set_scale(axes, _curves(r, c), limits)
    figure.supxlabel("offset of the key (tokens, positive = to the right)", fontsize=10.5)
    unit, null = KINDS[str(r["clustered"])]
    figure.supylabel(unit, fontsize=10.5)
    styles = {CONDITIONS["shuffled"]: DOT, CONDITIONS["repeated"]: RING, f"null: {null}": LINE}
    samples = [line_sample(label, **style) for label, style in styles.items()]
    figure.legend(handles=samples, loc="outside upper left", ncols=3, borderpad=0)


def _curves(r, c):
    """What a cluster's panel shows: its mean profiles under each condition, and its null."""
    ends = ("", *(f"_{name}" for name in CONDITIONS))
    curves = [r[f"centres{end}"][c] for end in ends]
    if r["clustered"] == "attention":
        curves.append(r["uniform"])
    return np.array(curves) / int(r["T"])


def _limits(r):
    """The lowest and the highest value that a panel of a cluster shows, 0 included."""
    curves = np.array([_curves(r, c) for c in range(len(r["centres"]))])
    low, high = min(0, curves.min()), max(0, curves.max())
    margin = 0.06 * (high - low)
    return low - margin * (low < 0), high + margin


def _set_scale(axes, curves, limits):
    """One scale for all clusters; what would hardly be seen on it is enlarged, and marked."""
    low, high = limits
    fitting = [
        times for times in ENLARGED if curves.min() * times >= low and curves.max() * times <= high
    ]
    axes.set_ylim(low / max(fitting), high / max(fitting))
    if max(fitting) == 1:
        return
    axes.set_ylabel(f"enlarged {max(fitting)} times", color=MARK, fontsize=10, labelpad=2)
    axes.tick_params(axis="y", color=MARK, labelcolor=MARK)
    axes.spines["left"].set_color(MARK)


def _draw_cluster(axes, r, c, color):
    """Mean attention of a cluster's profiles: on the text, shuffled, on one word, uniform."""
    offsets, T = r["offsets"], int(r["T"])
    axes.bar(offsets, r["centres"][c] / T, color=color, width=0.85)
    axes.plot(offsets, r["centres_repeated"][c] / T, **RING)
    axes.plot(offsets, r["centres_shuffled"][c] / T, **DOT)
    axes.set_title(f"{r['cluster_names'][c]}\n{r['cluster_sizes'][c]:.0%} of profiles")
    if r["clustered"] == "attention":
        axes.plot(offsets, r["uniform"] / T, **LINE)
    else:
        axes.axhline(0, **LINE)


DOT = {"color": "black", "marker": "o", "markersize": 2.4, "linestyle": ""}
RING = {
    "color": draw.VERMILION,
    "marker": "o",
    "markersize": 5,
    "linestyle": "",
    "markerfacecolor": "none",
    "markeredgewidth": 0.9,
}
LINE = {"color": draw.GREEN, "linewidth": 1.2}


def _draw_pies(axes, r):
    """Shares of the clusters in each head; below it the offset it attends to most, and how much."""
    L, H, _ = r["shares"].shape
    colors = _colors(r)
    for layer, head in np.ndindex(L, H):
        _draw_pie(axes, (head, layer), r["shares"][layer, head], colors)
        _draw_direction(axes, r, layer, head)
    axes.set(xlim=(-0.6, H - 0.4), ylim=(L - 0.3, -0.6), aspect="equal", anchor="NW")
    axes.set(xticks=range(H), yticks=range(L))
    axes.set(xlabel="head (the paper counts from 1)", ylabel="layer")
    left, right = (r["directed"] & side for side in (r["best_offset"] < 0, r["best_offset"] > 0))
    axes.set_title(
        "share of the documents in each cluster; below: offset with most\n"
        f"attention, and how much, from {maths.LEAST} on. A ring: {r['n_directed']} heads with\n"
        f"a direction, {left.sum()} to the left (blue), {right.sum()} to the right (orange)"
    )
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)


def _draw_direction(axes, r, layer, head):
    """A ring around the pie of a head with a direction, in the colour of its side; its offset."""
    from matplotlib.patches import Circle

    offset, most = r["best_offset"][layer, head], r["best_attention"][layer, head]
    is_directed = r["directed"][layer, head]
    if is_directed:
        color = RINGS[bool(offset > 0)]
        axes.add_patch(Circle((head, layer), 0.37, fill=False, color=color, linewidth=2))
    if is_directed or most >= maths.LEAST:  # below it no offset stands out
        text = f"{draw.offset(offset)}: {most:.2f}"
        axes.text(head, layer + 0.4, text, ha="center", va="top", fontsize=10)


RINGS = {False: draw.BLUE, True: draw.VERMILION}  # whether it looks to the right


def _draw_pie(axes, centre, portions, colors):
    """Wedges from the top, clockwise; a full one as a circle, which has no seam."""
    from matplotlib.patches import Circle, Wedge

    turns = 90 - 360 * np.r_[0, portions.cumsum()]
    for begin, end, color in zip(turns, turns[1:], colors):
        if begin - end > 359.9:
            axes.add_patch(Circle(centre, 0.3, color=color, linewidth=0))
        elif begin > end:
            axes.add_patch(Wedge(centre, 0.3, end, begin, color=color, linewidth=0))


def _draw_conditions(axes, r):
    """Attention of each head with a direction to its offset: on the text, and without."""
    directed = r["directed"]
    best = r["attention"].argmax(axis=2)[..., None]
    on_text = r["best_attention"][directed]
    kept = {name: f"{words} {r[f'offset_{name}']:.0%}" for name, words in CONDITIONS.items()}
    for name, style in (("shuffled", DOT), ("repeated", RING)):
        without = np.take_along_axis(r[f"attention_{name}"], best, axis=2)[..., 0]
        axes.plot(on_text, without[directed], label=kept[name], **style)
    axes.axline((0, 0), slope=1, color=draw.GREY, linewidth=0.8, zorder=0)
    axes.set(xlim=(0, 1.04), ylim=(-0.04, 1.04), aspect="equal", anchor="NW")
    axes.set(xlabel="attention to its offset, on the text", ylabel="without the text")
    of_them = f"heads with a ring ({r['n_directed']}) that keep their\ndirection: "
    axes.set_title(of_them + kept["positions"])
    axes.legend(loc="upper left")


register(
    profiles,
    look="A pie of one colour is a head that looks the same way in every document; a ring around "
    "it is a head with a direction in the mean of all documents. The charts show the "
    "clusters, named by side and by the offset there that gets most attention (in parentheses "
    "how much, where two would have one name), and their share of all profiles. They share "
    "one scale; a chart that says so is enlarged. Even (grey) are clusters that as a whole "
    "prefer no side, or that give no other offset a tenth of their attention; a head among "
    "them may still do so, as its ring and the number below its pie show. A causal model can "
    "only look left. The line is what uniform attention would give. The dots are the heads of "
    "the cluster on the same words in random order: where they stay on the bars, the order of "
    "the words decides nothing. The open circles are the same heads with one word in place of "
    "all, so that only positions differ: where they fall to the line, the direction needs "
    "words too, though any words will do. In the first figure, at the right, each head with a "
    "direction is a point: the attention to its offset on the text and without it; on the "
    "line nothing is lost. With --clustered scores the charts show scores before the mask, "
    "also those of keys to the right, which a causal model hides; pies and names belong to "
    "their clusters, all else to attention.",
    published="In roberta-base, on 100 documents of WikiText-2, profiles fall into 6 clusters by "
    "direction and strength, and in most heads the direction does not depend on the text (Yamamoto "
    "and Matsuzaki, figure 1); the sharpest lose it on positions alone and keep it when words are "
    "shuffled (figure 9 and section 5 of their longer paper). The documents of each head fall into "
    "one or two clusters (its figure 2). For causal models its appendix C clusters the scores "
    "before the mask, at the offsets -30 to 30, into two clusters: --clustered scores --clusters 2 "
    "--reach 30, and for the decoder of an encoder-decoder --side decoder.",
    sides=("encoder", "decoder"),
    figure="figure 1",
    per_head=("best_offset", "best_attention"),
    by_head=by_head,
    numbers="""
        fact n_directed: heads with a direction: {maths.DIRECTION}
        fact n_by_strength by strengths: heads with a direction, by the attention to their offset
        steady_directed: share of the heads with a direction with at least {STEADY:.0%} of their
            documents in one cluster
            null: 99% quantile of {PERMUTATIONS} random assignments of the profiles to the heads
        offset_[shuffled|repeated|positions]: share of the heads with a direction that have it, at
            their offset, [when the words of each document are shuffled|with one word repeated in
            place of all|on positions alone (word embeddings at zero)]
            null: 99% quantile for shuffled pairs of heads
        sharp: largest mean attention of a head to one fixed offset other than 0
            null: most that uniform attention gives to an offset other than 0
        fact sharp_heads: heads with more than {SHARP} of their attention at one offset other than
            0, that offset and the attention
        n_sharp: heads with more than {SHARP} of their attention at one offset other than 0
            no null: the largest attention has one
        steady: share of all heads with at least {STEADY:.0%} of their documents in one cluster
            null: 99% quantile of {PERMUTATIONS} random assignments of the profiles to the heads
        few: share of all heads whose documents fall into {FEW} clusters or one
            null: 99% quantile of {PERMUTATIONS} random assignments of the profiles to the heads
        kept: share of all heads that stay in their main cluster when each document's words are
            shuffled
            null: 99% quantile for shuffled pairs of heads
        fact documents: documents read, all of one length
    """,
    answer=Asks(
        "of {directed.size} heads, those with a direction that keep it whatever the text, and with "
        "one word repeated",
        value="{counts[0]} of {n_directed}, and {counts[1]} of {n_directed}",
        chance="up to {counts[2]}, and up to {counts[3]}",
        rule=Led(
            Of("steady_directed", enough=MOST),
            Of("offset_shuffled", null="steady_directed_null", enough=MOST),
            Of("offset_repeated", enough=MOST),
        ),
        without=Without("n_directed", "0 of {directed.size} heads with one", "0 heads", "no"),
    ),
    says=[
        "{n_directed} of {directed.size} heads have a direction: {maths.DIRECTION}.",
        heads.describe_strengths,
        When(
            "n_directed",
            " Of the {n_directed} with a direction {steady_directed:.0%} keep to one cluster in at "
            "least {STEADY:.0%} of the {documents} documents (assigned to heads at random: up to "
            "{steady_directed_null:.0%}), {offset_shuffled:.0%} keep their offset when the words "
            "are shuffled (shuffled heads: up to {offset_shuffled_null:.0%}), "
            "{offset_repeated:.0%} when one word is repeated everywhere (up to "
            "{offset_repeated_null:.0%}), and {offset_positions:.0%} on positions alone, with all "
            "words at zero, which no model ever reads (up to {offset_positions_null:.0%}). A "
            "direction that stays on shuffled words and is lost on a repeated one needs words, in "
            "whatever order.",
        ),
        " Heads with more than half of their attention at one offset: {n_sharp}. The clusters are "
        "of {SAYS[clustered]}.",
        When(
            "few >= 0",
            " Of all heads {few:.0%} have all of their documents in one or two of the "
            "{cluster_sizes.size} (assigned to heads at random: up to {few_null:.0%}).",
        ),
        When(
            "left_out >= 0",
            " Read are {T} tokens each of what the decoder says of {documents} sources, with their "
            "start token ({left_out} outputs were shorter, and are left out); their sources stay "
            "as they are under all conditions.",
        ),
    ],
    draw=figures(
        Part(_draw_heads, height=_height_of_pies),
        Part(_draw_clusters, height=lambda r: 2.6 * -(-len(r["centres"]) // 6) + 0.5),
    ),
    shares_passes=True,
)
