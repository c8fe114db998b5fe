"""Are a sentence's most attended keys closer to their queries after moving and scaling?

Queries and keys of one sentence in one space, head by head: distances beside products, and who
attends to whom.

L layers, H heads, T tokens (or words) of the sentence, n heads drawn, M lines or pairs, B points of
other documents; axis "stage": before, as the model has them, and after, moved and scaled
(maths/joint.py).
"""

import textwrap
from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple

import numpy as np

from minitx.inputs import TooLong

from ..contract import options, register
from ..drawing import Part, When, draw, figures, labels, line_sample
from ..maths import embed_2d, joint, stats
from ..measures import heads as names
from ..measures import joint_fit, joint_summary
from ..running.stream import UNSAVED
from ..texts import corpus, formats, joined
from ..texts import words as of_words
from . import _joint_space_note

SENTENCE = "The brown capybara is sleeping now."
SUBSCRIPT = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
WIDE = 130  # characters of a line below the figure
PAIRS = {SENTENCE: "brown:capybara"}  # the pairs that the note shows in red
LABELLED = 24  # tokens, at most, that all get their label
AS_POINTS = 2000  # more are drawn as one image
RED = "#D00000"
DARK = {"o": "#00466E", "s": "#8A5A00"}  # of the labels of queries and of keys
NOT_SAVED = "a", "plane", "centre", "density", "spread"  # of what joint_fit.fit gives


def joint_space(
    model,
    run=UNSAVED,
    *,
    sentence: options.Said = SENTENCE,
    head: str = "auto",
    distance: joint_fit.Distance = "cosine",
    scope: joint_fit.Scope = "head",
    products: joint_fit.Products = "centred",
    weighted: joint_fit.Weighted = False,
    words: bool = False,
    pairs: str = "auto",
    top: options.Size = 0,
    method: Literal["pca", "tsne", "umap"] = "pca",
    text: options.Text = "sample",
    documents: options.Size = 0,
    tokens: options.Size = 0,
    note: bool = False,
    seed: options.Seed = 0,
):
    """Joint space of the queries and keys of a sentence in a few heads, before and after they are
    moved and scaled.

    sentence: what to read
    head: heads to show, as L0H0,L1H2; auto: where the strongest keys come closer most, least, and
    in between
    words: words in place of pieces: attention summed over keys' pieces, averaged over
    queries'; vectors averaged
    pairs: pairs to show in red, query:key, joined by commas; a word stands for all of its pieces
    (auto: brown:capybara in the note's sentence where queries see later keys, else none)
    top: how many of the strongest pairs to join by lines (0: every query with its strongest key)
    method: pca, tsne (needs scikit-learn) or umap (needs umap-learn)
    text: further documents
    documents: further documents that decide, with the sentence, on the space, and are drawn pale
    (0: none)
    tokens: how many first tokens of each of these to read (0: 64, or as many as the model reads if
    that is less)
    note: also the note's own search: one number a added to all keys, and c; then c by distance in
    the plane
    """
    settings = joint_fit.How(distance, scope, products, weighted, words)
    encoded, pieces = _encode(model, sentence, settings)
    if pairs == "auto":  # none for a model that looks only backward
        pairs = "" if model.config.causal else PAIRS.get(sentence, "")
    marked = _parse_pairs(pairs, model, encoded, pieces, settings)
    reduce = embed_2d.method(method)
    T = len(pieces)
    options.within("top", top, 0, T * (T + 1) // 2 if model.config.causal else T * T)
    shown_heads = None if head == "auto" else names.parse(head, model.config)
    others = [*joint_fit.documents(model, text, documents, tokens)] if documents else []

    fitted = joint_fit.fit(model, [encoded, *others], settings, seed, run=run)
    shown_heads = shown_heads or joint_summary.by_gain(fitted["mrr"] - fitted["mrr_before"])
    shown = Shown(shown_heads, settings, fitted, reduce, seed)
    result = {name: x for name, x in fitted.items() if name not in NOT_SAVED}
    result |= joint_summary.summary(fitted)
    result |= {"distance": distance, "products": products, "method": method, "top": top}
    result |= {"words": settings.words, "pieces": np.array(pieces), "pairs": marked}
    if encoded.second is not None:
        first = _words(model, encoded)[0] if settings.words else np.arange(len(encoded.ids))
        result["second"] = int(first[encoded.second])
    tokens, meanings = _labels(model, encoded, pieces, settings)
    result |= {"labels": np.array(tokens), "meanings": np.array(meanings, str)}
    result |= {"places": np.array(shown.heads), **names.named(shown.heads)}
    result["scale"] = np.array([fitted["c"][place] for place in shown.heads])
    result |= _drawn(model, encoded, others, shown, top, run)
    if note:
        turns = joint_fit.turns(seed, (*fitted["c"].shape, model.config.d_head))
        layers = joint_fit.layers(model, encoded, settings)
        result |= _joint_space_note.of_sentence(layers, turns)
    return result | _pair_results(model, encoded, marked, shown)


def _encode(model, sentence, settings):
    """The sentence, or pair, as a Joined, and the pieces or words in it.

    Raises ValueError for fewer than two of them, TooLong for more tokens than the model reads.
    """
    for part in joined.parts(sentence):
        formats.valid(part, "--sentence")
    encoded = joined.encoding(model, sentence)
    ids = encoded.ids
    if len(ids) > model.config.n_ctx:
        raise TooLong(
            f"--sentence has {len(ids)} tokens; this model reads at most {model.config.n_ctx}"
        )
    pieces = model.tokenizer.pieces(ids)
    unit = "token"
    if settings.words:
        _, pieces = _words(model, encoded)
        unit = "word"
    n = len(pieces) - sum(map(len, corpus.specials(model)))
    if n < 2:
        plural = "" if n == 1 else "s"
        raise ValueError(
            f"--sentence {sentence!r} has {n} {unit}{plural}, special ones not counted; wanted 2"
        )
    return encoded, pieces


def _words(model, encoded):
    """The word that each token belongs to [T], and the texts of all words."""
    ids, decode = encoded.ids, model.tokenizer.decode
    word = of_words.numbers(ids, decode, encoded.second)
    return word, of_words.names(ids, word, decode, model.tokenizer.pieces(ids))


def _labels(model, encoded, pieces, settings):
    """A label for each token: its word, or of a word in pieces its start and a number, 'cap₂'.

    Second: what the short ones stand for, as 'cap = capybara = c + ap + y + b + ar + a'.
    """
    if settings.words:
        return pieces, []
    word, texts = _words(model, encoded)
    split = [w for w, n in enumerate(np.bincount(word)) if n > 1]
    starts = _starts([texts[w] for w in split])
    tokens, meanings = [texts[w] for w in word], []
    for w, start in zip(split, starts):
        places = np.flatnonzero(word == w).tolist()
        for number, place in enumerate(places, 1):
            tokens[place] = start + str(number).translate(SUBSCRIPT)
        parts = " + ".join(pieces[place].strip() for place in places)
        meanings.append(f"{start} = {texts[w]} = {parts}")
    return tokens, meanings


def _starts(texts):
    """The first letters of each of these words, three or as many as tell different ones apart."""
    for n in range(3, max(map(len, texts), default=3) + 1):
        starts = [text[:n] for text in texts]
        if len({*starts}) == len({*texts}):
            return starts
    return texts


def _parse_pairs(pairs, model, encoded, pieces, settings):
    """'brown:capybara' -> query and key of every pair of their pieces [M 2].

    Raises ValueError for what is not in the sentence, or if no query sees its key.
    """
    word, texts = _words(model, encoded)
    if not settings.words:
        texts = [texts[i] for i in word]  # of every piece, the word that it belongs to
    numbers = []
    for pair in filter(None, pairs.split(",")):
        query, _, key = pair.partition(":")
        if not (query.strip() and key.strip()):
            raise ValueError(f"--pairs {pair!r}: wanted query:key, as in brown:capybara")
        queries = _places_of(query, texts, pieces)
        keys = _places_of(key, texts, pieces)
        numbers += [(a, b) for a in queries for b in keys]
    if numbers and model.config.causal and all(query < key for query, key in numbers):
        raise ValueError(
            "--pairs: these keys are to the right of the queries, where this model does not look"
        )
    return np.array(numbers, int).reshape(-1, 2)


def _places_of(name, texts, pieces):
    """Numbers of the tokens (or words) that are `name` themselves, or belong to a word `name`."""
    places = np.flatnonzero(of_words.matches(name, texts) | of_words.matches(name, pieces))
    if not len(places):
        known = ", ".join(map(repr, pieces))
        raise ValueError(f"--pairs: {name!r} is not in the sentence; there are {known}")
    return places.tolist()


class Shown(NamedTuple):
    """The heads that are drawn, and how."""

    heads: list  # (layer, head)
    settings: joint_fit.How
    fitted: dict  # what joint_fit.fit gives
    reduce: Callable | None  # (vectors [n d], seed) -> [n 2]; None: principal components
    seed: int

    def points(self, layer, head):
        """Queries and keys of a head in the plane, or still to be reduced: [2 stages 2 T w]."""
        if self.reduce is None:
            pairs = joint_fit.plane_points(layer, self.settings, self.fitted, self.fitted)
        else:
            drawn = joint.DISTANCES[self.settings.distance].drawn
            pairs = [map(drawn, pair) for pair in joint_fit.stages(layer, self.fitted)]
        return np.array([[x[head] for x in pair] for pair in pairs])


def _drawn(model, encoded, others, shown, top, run):
    """Products, distances, attention, positions in the plane and lines of the heads drawn."""
    layers = joint_fit.layers(model, encoded, shown.settings)
    records = [_head(layers[layer], head, shown, top) for layer, head in shown.heads]
    result = stats.stacked(records)
    result["seen"] = layers[0].seen
    result |= _places(model, layers, others, shown, run)
    return result | _near(layers, shown, result["q_plane"], result["k_plane"])


def _head(layer, head, shown, top):
    """Products and distances [2 stages T T], attention [T T] and lines [M 2] of one head."""
    measured = joint.PRODUCTS[shown.settings.products].of
    distance = shown.settings.distance
    pairs = [(q[head], k[head]) for q, k in joint_fit.stages(layer, shown.fitted)]
    pattern = layer.pattern[head]
    result = {"pattern": pattern, "lines": _lines(pattern, top)}
    result["product"] = [measured(q @ k.T, layer.seen) for q, k in pairs]
    result["distances"] = [joint.distances(q, k, distance) for q, k in pairs]
    return result


def _lines(pattern, top):
    """Query and key of the `top` largest entries; 0: every query with its strongest key: [M 2]."""
    if not top:
        return np.stack([np.arange(len(pattern)), pattern.argmax(axis=1)], 1)
    strongest = (-pattern).argsort(axis=None, kind="stable")[:top]
    return np.stack(np.unravel_index(strongest, pattern.shape), 1)


def _places(model, layers, others, shown, run):
    """Where queries and keys are drawn [n 2 T 2], and those of other documents [n 2 B 2]."""
    result = {name: [] for name in ("q_plane", "k_plane", "others_q", "others_k")}
    behind = _behind(model, others, shown, run)
    for (layer, head), documents in zip(shown.heads, behind):
        own = shown.points(layers[layer], head)
        T = own.shape[2]
        points = np.concatenate([own, *documents], axis=2)
        if shown.reduce is not None:  # queries and keys together
            flat = [shown.reduce(np.concatenate(stage), shown.seed) for stage in points]
            points = np.reshape(flat, (*points.shape[:3], 2))
        for side, name in enumerate("qk"):
            result[f"{name}_plane"].append(points[:, side, :T])
            result[f"others_{name}"].append(points[:, side, T:])
    return {name: np.array(x, np.float64) for name, x in result.items()}


def _behind(model, others, shown, run):
    """Points of each other document, for each head drawn: n lists of [2 stages 2 T w]."""
    if not others:
        return [[] for _ in shown.heads]
    longest = max(map(len, others))

    def measure(_, document):
        layers = joint_fit.layers(model, document, shown.settings)
        x = np.array([shown.points(layers[layer], head) for layer, head in shown.heads])
        T = x.shape[3]
        ends = [(0, 0), (0, 0), (0, 0), (0, longest - T), (0, 0)]
        return {"x": np.pad(x, ends), "T": T}  # one length, so that they can be kept

    kept = run.gather(measure, others, "documents: drawing", keep=("x", "T"))
    documents = [x[:, :, :, :T] for x, T in zip(kept["x"], kept["T"])]
    return [[x[i] for x in documents] for i in range(len(shown.heads))]


def _near(layers, shown, q, k):
    """Mean 1/rank of the sentence's strongest keys in the drawn plane [n 2], and of any key."""
    seen = layers[0].seen
    patterns = np.array([layers[layer].pattern[head] for layer, head in shown.heads])
    strongest = patterns.argmax(axis=-1)
    ranks = joint.ranks(joint.distances(q, k, "euclidean"), seen)
    counts = [n for n in seen.sum(axis=1).tolist() if n > 1]
    chance = [(1 / np.arange(1, n + 1)).mean() for n in counts]
    stages = np.moveaxis(ranks, 1, 0)
    near = [joint.nearness(stage, strongest, seen)[0] / len(counts) for stage in stages]
    return {"near_drawn": np.array(near).T, "near_chance": np.mean(chance)}


def _pair_results(model, encoded, pairs, shown):
    """Ranks by distance of the pairs in every head [L 2 stages H M], and the same of all pairs."""
    if not len(pairs):
        return {}
    places = tuple(pairs.T)

    def use(layer):
        stages = joint_fit.distances(layer, shown.settings, shown.fitted, shown.fitted)
        before, after = (joint.ranks(full, layer.seen) for full, _ in stages)  # [H T T] each
        record = {"nearer": (after < before).sum(axis=0), "seen": layer.seen}
        record["ranks"] = np.array([ranks[:, *places] for ranks in (before, after)])
        return record

    records = joint_fit.map_layers(model, encoded, use, shown.settings)
    seen, ranks = records["seen"][0], records["ranks"]
    nearer = records["nearer"].sum(axis=0) / shown.fitted["c"].size
    see = seen[places]  # [M]
    count = seen.sum(axis=1)[places[0]][see]  # keys that the queries of these pairs see
    result = {"pair_closer": nearer[places][see].mean(), "pair_closer_null": nearer[seen].mean()}
    result["pair_ranks"] = np.where(see, ranks, 0)
    result["pair_rank_before"] = ranks[:, 0][..., see].mean()
    result["pair_rank"] = ranks[:, 1][..., see].mean()
    result["pair_rank_null"] = ((count + 1) / 2).mean()
    return result


def _of_heads(r):
    """For each head the plane, before and after, and product against distance."""
    paints = [partial(paint, i=i) for i in range(len(r["heads"])) for paint in (_planes, _clouds)]
    return [Part(paint, height=5.3) for paint in paints]


def _labelled(r):
    """Numbers of the tokens that get a label: all, or of a long sentence those of the pairs."""
    n = len(r["pieces"])
    return [*range(n)] if n <= LABELLED else sorted({*r["pairs"].ravel().tolist()})


def _planes(figure, r, i):
    """The plane of one head before and after, and the words of pieces."""
    x_axis, y_axis = "first component", "second component"
    if r["method"] != "pca":
        x_axis, y_axis = f"{r['method']}, first axis", f"{r['method']}, second axis"
    planes = figure.subplots(1, 2)
    for stage, axes in enumerate(planes):
        _draw_plane(axes, r, i, stage)
        axes.set(xlabel=x_axis, ylabel=y_axis)
    style = {"loc": "outside upper left", "alignment": "left", "ncols": 5, "borderpad": 0}
    figure.legend(handles=[*_samples(r)], title=_row_label(r, i), title_fontsize=11, **style)
    meanings = textwrap.fill("; ".join(r["meanings"].tolist()), WIDE)
    draw.of_tokens(figure.supxlabel(draw.literal(meanings), fontsize=10))
    draw.measure(figure.figure)  # labels find their places in panels that have their size
    for stage, axes in enumerate(planes):
        _label_points(axes, r, i, stage)


def _clouds(figure, r, i):
    """Product against distance of one head, before and after."""
    product = "product, less the query's mean" if r["products"] == "centred" else "product"
    distance = f"{r['distance']} distance"
    for stage, axes in enumerate(figure.subplots(1, 2)):
        _draw_cloud(axes, r, i, stage)
        axes.set(xlabel=product, ylabel=distance)
    title = (
        f"{_row_label(r, i)}\na dot for each query and key, in stronger colour for more attention"
    )
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)


def _draw_note(figure, r):
    """The note's own search, mean over all heads: by the range of a, and c in the plane."""
    left, middle, right = figure.subplots(1, 3)
    curves = (("", draw.BLUE, "-", "as it is"), ("_null", draw.GREY, "--", "null: queries turned"))
    for end, color, style, label in curves:
        by_range = abs(r[f"note_by_range_correlation{end}"]).mean(axis=(1, 2))
        left.plot(r["note_range"], by_range, style, color=color, label=label, marker="o")
        by_scale = r[f"note_by_scale{end}"].mean(axis=(1, 2))
        right.plot(r["note_scale"], by_scale, style, color=color, label=label)
    spread = r["note_by_range_gathered"].mean(axis=(1, 2))
    middle.plot(r["note_range"], spread, color=draw.VERMILION, marker="o")
    for axes in (left, middle):
        axes.set(xscale="log", xlabel="range of a (standard deviations of the keys)")
    left.set_ylim(0, 1.02)
    middle.set_ylim(0, None)
    right.set_xscale("log", base=2)
    scales = 2.0 ** np.arange(-3, 4)
    right.set_xticks(scales, [f"{c:g}" for c in scales])
    right.set_xlabel("scale c")
    left.set_title("the note's a and c, all heads: size of\nthe correlation, cosine distance")
    middle.set_title("spread of the queries, in distances\nfrom their mean to that of the keys")
    right.set_title("c by distance in the plane, all heads:\ncorrelation of products and distances")
    left.legend(loc="lower right")


def _row_label(r, i):
    """Name of a head, and what was done to it."""
    kept, c = r["kept"][tuple(r["places"][i])], float(r["scale"][i])
    least, largest = joint.SCALES[[0, -1]]
    change = "left as it is" if kept else f"scale c = {c:.3g}"
    if c in (least, largest):
        change += f", at the end of the range tried ({least:g} to {largest:g})"
    return f"{r['heads'][i]}, {r['papers_heads'][i]}: {change}"


def _draw_cloud(axes, r, i, stage):
    """Product against distance of every pair, the darker the more attention."""
    seen, product, distance = r["seen"], r["product"][i][stage], r["distances"][i][stage]
    weight = r["pattern"][i][seen]
    order = weight.argsort(kind="stable")
    style = {"cmap": "Blues", "vmin": -1.6, "vmax": 1, "s": 9, "linewidths": 0}
    style["rasterized"] = len(order) > AS_POINTS
    axes.scatter(product[seen][order], distance[seen][order], c=weight[order] ** 0.5, **style)
    marked = r["pairs"][seen[tuple(r["pairs"].T)]]
    places = tuple(marked.T)
    ring = {"color": RED, "markersize": 6, "markerfacecolor": "none", "markeredgewidth": 1}
    axes.plot(product[places], distance[places], "o", **ring)
    axes.set_title(_cloud_title(r, i, stage))


def _cloud_title(r, i, stage):
    """Correlation of products and distances, beside its null."""
    place = tuple(r["places"][i])
    end = "_before" if stage == 0 else ""
    own, null = r[f"correlation{end}"][place], r[f"correlation{end}_null"][place]
    by_chance = f"(null, queries turned: {null:.2f})"
    of_all = "\n(of all documents)" if r["others_q"].shape[2] else ""
    return f"{joint_fit.STAGES[stage]}: correlation {own:.2f}\n{by_chance}{of_all}"


def _draw_plane(axes, r, i, stage):
    """Queries and keys with their lines; points of other documents pale behind them."""
    q, k = r["q_plane"][i, stage], r["k_plane"][i, stage]
    for points, color in ((r["others_q"], draw.BLUE), (r["others_k"], draw.ORANGE)):
        style = {"color": color, "alpha": 0.25, "linewidths": 0, "rasterized": True}
        axes.scatter(*points[i, stage].T, s=3, **style)
    _draw_lines(axes, q, k, r["lines"][i], r["pattern"][i], colors="#555555", zorder=1)
    _draw_lines(axes, q, k, r["pairs"], r["pattern"][i], colors=RED, zorder=2)
    second = r.get("second", len(q))
    for points, color, marker in ((q, draw.BLUE, "o"), (k, draw.ORANGE, "s")):
        style = {"color": color, "markersize": 3.5, "zorder": 3}
        axes.plot(*points[:second].T, marker, **style)
        axes.plot(*points[second:].T, marker, markerfacecolor="white", **style)
    axes.set_title(_plane_title(r, i, stage))
    axes.margins(0.08)
    axes.set_aspect("equal", adjustable="datalim")


def _draw_lines(axes, q, k, pairs, weight, **style):
    """Lines from queries to keys, as wide as the attention between them."""
    from matplotlib.collections import LineCollection

    ends = [(q[a], k[b]) for a, b in pairs]
    widths = [0.4 + 3.5 * weight[a, b] for a, b in pairs]
    axes.add_collection(LineCollection(ends, linewidths=widths, alpha=0.75, **style))


def _label_points(axes, r, i, stage):
    """The word at each point that gets a label."""
    labelled = _labelled(r)
    texts = [draw.label(_quoted(str(r["labels"][j]))) for j in labelled]
    points = [r[f"{side}_plane"][i, stage][labelled] for side in "qk"]
    colors = [DARK[marker] for marker in "os" for _ in labelled]
    labels.place(axes, np.concatenate(points), 2 * texts, colors)


def _quoted(label):
    """A label in quotes if it is a mark alone, which could be taken for a point."""
    is_mark = len(label) == 1 and not label.isalnum()
    return f'"{label}"' if is_mark else label


def _plane_title(r, i, stage):
    """Share of the variance in the plane, and how near the strongest keys are there."""
    share = r["explained"][stage][tuple(r["places"][i])]
    held = f", {share:.0%} of the variance" if r["method"] == "pca" else ""
    return (
        f"{joint_fit.STAGES[stage]}{held}: mean 1/rank of the\n"
        f"strongest key {r['near_drawn'][i, stage]:.2f} (chance: {r['near_chance']:.2f})"
    )


def _samples(r):
    pairs = "strongest key of each query" if r["top"] == 0 else f"the {r['top']} strongest pairs"
    point = {"linestyle": "", "markersize": 4}
    yield line_sample("query", color=draw.BLUE, marker="o", **point)
    yield line_sample("key", color=draw.ORANGE, marker="s", **point)
    if "second" in r:
        hollow = {"color": draw.GREY, "marker": "o", "markerfacecolor": "white"}
        yield line_sample("hollow: of the second text", **hollow, **point)
    yield line_sample(f"{pairs}, as wide as its attention", color="#555555", linewidth=1.5)
    if len(r["pairs"]):
        yield line_sample("pairs chosen", color=RED, linewidth=1.5)
    if r["others_q"].shape[2]:
        yield line_sample("pale: other documents", color=draw.GREY, marker=".", linestyle="")


register(
    joint_space,
    look="Each token is drawn twice, as query and as key; a word in pieces has a number at each, "
    "explained below the figure (--words draws it whole). If nearness told attention, the "
    "lines would be short, and the wide ones shortest. Where they are not, the plane has lost "
    "what attention sees, or the space never had it. The second figure of a head has one dot "
    "for each pair of tokens: the closer the dots lie to a line, the better distance tells "
    "the product (queries rotated at random show what arithmetic alone gives). A scale c at "
    "the lower end of its range is no optimum: with cosine distances a smaller one only moves "
    "the mean of the keys nearer to 0, where 1/8 has all but brought it.",
    published="The note on AttentionViz drew 'The brown capybara is sleeping now.' with layer 0 of "
    "BERT, looked for brown coming closer to the pieces of capybara, and saw hardly any pair with "
    "high attention come closer.",
    figure="AttentionViz, figure 4; a note on it",
    per_head=joint_fit.PER_HEAD,
    numbers=[
        *joint_summary.numbers("closer", "farther", "correlation_mean", "closer_plane"),
        """
        pair_closer: share of all heads in which the chosen pairs come closer, by rank in the full
            space
            null: share over all pairs of the sentence
        pair_rank: mean rank by distance of the keys of the chosen pairs, all heads, after
            null: the mean rank of any key
        fact heads: heads shown
        fact scale by heads: scale c of a head shown
        """,
        *joint_summary.numbers("n_kept"),
        _joint_space_note.NUMBERS,
    ],
    answer=joint_summary.of_one_text,
    says=[
        "{pieces.size} ",
        When("words", "words", "tokens"),
        ", {c.size} heads; in ",
        joint_summary.of_heads("closer"),
        " the most attended keys come closer, with shuffled keys in up to ",
        joint_summary.of_heads("closer_null"),
        " heads. ",
        joint_summary.closer,
        When("note_range", [" ", _joint_space_note.SAYS]),
        When(
            "pair_rank",
            " The {pairs.shape[0]} chosen pairs come closer in {pair_closer:.0%} of the heads "
            "(all pairs: {pair_closer_null:.0%}); by distance their keys stand at rank "
            "{pair_rank_before:.1f} before and {pair_rank:.1f} after, on average over all heads "
            "(chance: {pair_rank_null:.1f}).",
        ),
    ],
    draw=figures(_of_heads, lambda r: [Part(_draw_note, height=3.8)] if "note_range" in r else []),
)
