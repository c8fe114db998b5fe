"""Queries and keys of one sentence in one space, head by head: distances beside products, and who attends to whom.

T tokens (or words) of the sentence, n heads drawn, M lines or pairs, B points of other documents; axis "stage": before,
as the model has them, and after, moved and scaled (joint.py). Order: the picture, the experiment, its parts.
"""

import numpy as np

from .. import corpus, data, draw, flatten, heads as names, joint, joint_fit, stream, words as maths
from ..registry import experiment
from .joint_grid import GAINED, NUMBERS, closer, summary

SENTENCE = "The brown capybara is sleeping now."
LABELLED = 40    # tokens, at most, that all get their label
AS_POINTS = 2000  # more are drawn as one image
RED = "#D00000"
DARK = {"o": "#00466E", "s": "#8A5A00"}  # of the labels of queries and of keys


def plot(r):
    """A row for each head: product against distance, then the plane, each before and after."""
    n = len(r["heads"])
    figure = draw.figure(15, 3.9 * n + 0.5)
    grid = figure.subplots(n, 4, squeeze=False, width_ratios=(0.8, 0.8, 1, 1))
    for i, row in enumerate(grid):
        for stage in range(2):
            _cloud(row[stage], r, i, stage)
            _plane(row[2 + stage], r, i, stage)
        change = "left as it is" if r["kept"][tuple(r["places"][i])] else f"c = {joint.told(r['scale'][i])}"
        row[0].set_ylabel(f"{r['heads'][i]}, {r['papers_heads'][i]}: {change}\n{r['distance']} distance")
        row[2].set_ylabel("second component" if r["method"] == "pca" else f"{r['method']}, second axis")
    for axes, label in zip(grid[-1], ("product",) * 2 + ("first component" if r["method"] == "pca" else
                                                        f"{r['method']}, first axis",) * 2):
        centred = ", less the query's mean" * int(label == "product" and r["products"] == "centred")
        axes.set_xlabel(label + centred)
    figure.legend(handles=[*_legend(r)], loc="outside upper left", ncols=6, borderpad=0)
    return figure


def _cloud(axes, r, i, stage):
    """Product against distance of every pair, the darker the more attention."""
    seen = r["seen"]
    s, d, weight = (r[key][i][stage][seen] if key != "pattern" else r[key][i][seen]
                    for key in ("product", "distances", "pattern"))
    order = weight.argsort(kind="stable")
    axes.scatter(s[order], d[order], c=weight[order] ** 0.5, cmap="Blues", vmin=-0.3, vmax=1, s=9, linewidths=0,
                 rasterized=len(s) > AS_POINTS)
    marked = r["pairs"][seen[tuple(r["pairs"].T)]]
    axes.plot(*(r[key][i][stage][tuple(marked.T)] for key in ("product", "distances")), "o", color=RED, markersize=6,
              markerfacecolor="none", markeredgewidth=1)
    end = "_before" * (stage == 0)
    own, null = (r[f"correlation{end}{null}"][tuple(r["places"][i])] for null in ("", "_null"))
    over = " over all documents" * int(r["others_q"].shape[2] > 0)
    axes.set_title(f"{joint_fit.STAGES[stage]}: correlation {own:.2f}{over}\n(queries turned at random: {null:.2f})")


def _plane(axes, r, i, stage):
    """Queries and keys with their lines; points of other documents pale behind them."""
    from matplotlib.collections import LineCollection
    q, k, weight = r["q_plane"][i, stage], r["k_plane"][i, stage], r["pattern"][i]
    for points, color in ((r["others_q"], draw.BLUE), (r["others_k"], draw.ORANGE)):
        axes.scatter(*points[i, stage].T, s=3, color=color, alpha=0.25, linewidths=0, rasterized=True)
    for pairs, color, below in ((r["lines"][i], "#555555", 1), (r["pairs"], RED, 2)):
        ends = [(q[a], k[b]) for a, b in pairs]
        axes.add_collection(LineCollection(ends, linewidths=[0.4 + 3.5 * weight[a, b] for a, b in pairs], colors=color,
                                           alpha=0.75, zorder=below))
    for points, color, marker in ((q, draw.BLUE, "o"), (k, draw.ORANGE, "s")):
        axes.plot(*points.T, marker, color=color, markersize=3.5, zorder=3)
        for j in range(len(points)) if len(points) <= LABELLED else sorted({*r["pairs"].ravel().tolist()}):
            axes.annotate(draw.label(r["pieces"][j]), points[j], (2, 2), textcoords="offset points", fontsize=6.5,
                          color=DARK[marker], zorder=4)
    held = f", {r['explained'][stage][tuple(r['places'][i])]:.0%} of the variance" * int(r["method"] == "pca")
    axes.set_title(f"{joint_fit.STAGES[stage]}{held}: mean 1/rank of the\n"
                   f"strongest key {r['near_drawn'][i, stage]:.2f} (chance: {r['near_chance']:.2f})")
    axes.margins(0.08)
    axes.set_aspect("equal", adjustable="datalim")


def _legend(r):
    from matplotlib.lines import Line2D
    lines = "strongest key of each query" if r["top"] == 0 else f"the {r['top']} strongest pairs"
    yield Line2D([], [], color=draw.BLUE, marker="o", linestyle="", markersize=4, label="query")
    yield Line2D([], [], color=draw.ORANGE, marker="s", linestyle="", markersize=4, label="key")
    yield Line2D([], [], color="#555555", linewidth=1.5, label=f"{lines}, as wide as its attention")
    if len(r["pairs"]):
        yield Line2D([], [], color=RED, linewidth=1.5, label="pairs chosen")
    if r["others_q"].shape[2]:
        yield Line2D([], [], color=draw.GREY, marker=".", linestyle="", label="pale: other documents")


def says(r):
    """What the numbers show, in plain words."""
    text = f"{len(r['pieces'])} {'words' if r['words'] else 'tokens'}, {r['c'].size} heads. {closer(r)}"
    if len(r["pairs"]):
        before, after, chance = (r[f"pair_rank{end}"] for end in ("_before", "", "_null"))
        text += (f" The {len(r['pairs'])} pairs chosen come closer in {r['pair_closer']:.0%} of the heads (all pairs: "
                 f"{r['pair_closer_null']:.0%}); by distance their keys stand at rank {before:.1f} before and "
                 f"{after:.1f} after, on average over all heads (chance: {chance:.1f}).")
    return text


@experiment(
    asks="Who attends to whom, drawn as nearness of queries and keys?",
    draw=plot,
    look="Left, one dot for each pair of tokens: the straighter they fall, the better distance tells the product. "
         "Right, each token twice, as query and as key: if nearness told attention, the lines would be short, and the "
         "wide ones shortest. Where they are not, the plane has lost what attention sees, or the space never had it.",
    published="The note on AttentionViz drew 'The brown capybara is sleeping now.' with layer 0 of BERT, looked for "
              "brown coming closer to the pieces of capybara, and saw hardly any pair with high attention come closer.",
    figure="AttentionViz, figure 4; note",
    says=says,
    per_head=joint_fit.PER_HEAD,
    numbers={
        "heads": "heads shown",
        "scale": "the scale c of each",
        **{name: NUMBERS[name] for name in ("n_bound", "n_kept")},
        **GAINED,
        "mrr_mean": "mean 1/rank of the strongest key by distance, all heads, in the full space, after",
        "mrr_mean_null": "the same with shuffled keys",
        "mrr_plane_mean": "the same in the plane",
        "mrr_plane_mean_null": "the same with shuffled keys",
        "correlation_mean": "correlation of products and distances, all heads, after",
        "correlation_mean_null": "the same with the queries turned at random",
        "pair_closer": "share of all heads in which the pairs chosen come closer, by rank in the full space",
        "pair_closer_null": "the same for all pairs of the sentence",
        "pair_rank": "mean rank by distance of the keys of the pairs chosen, all heads, after",
        "pair_rank_null": "the mean rank of any key",
        "pair_attention": "mean attention of the pairs chosen, all heads",
        "pair_attention_null": "the same if the queries looked at all that they see alike",
        "changed": "largest change of an attention weight by moving and scaling, in float64"})
def joint_space(model, *, sentence: str = SENTENCE, head: str = "auto", distance: str = "cosine", scope: str = "head",
                products: str = "centred", weighted: int = 0, words: int = 0, pairs: str = "", top: int = 0,
                method: str = "pca", text: str = "sample", documents: int = 0, tokens: int = 0, seed: int = 0):
    """Joint space of the queries and keys of a sentence in a few heads, before and after they are moved and scaled.

    sentence: what to read
    head: heads to show, as L0H0,L1H2; auto: where the strongest keys come closer most, least, and in between
    distance: cosine or euclidean
    scope: who shares one scale c: each head its own, all heads of a layer, or all of the model
    products: centred: less the mean over the keys that a query sees, as attention has them; plain: as they are
    weighted: 1 for a correlation weighted by attention
    words: 1 for words in place of pieces: attention summed over keys' pieces, averaged over queries'; vectors averaged
    pairs: pairs to show in red, query:key, joined by commas; a word stands for all of its pieces
    top: how many of the strongest pairs to join by lines (0: every query with its strongest key)
    method: pca, tsne (needs scikit-learn) or umap (needs umap-learn)
    text: file or folder with further documents, - for standard input, or sample
    documents: further documents that decide, with the sentence, on the space, and are drawn pale (0: none)
    tokens: only the first so many tokens of each of these (0: 64, or as many as the model reads if that is less)
    seed: seed of the shuffles, of the turned queries, of tsne and umap
    """
    how = joint_fit.how(distance, scope, products, weighted, words)
    corpus.at_least("documents", documents, 0)
    ids, pieces = _read(model, sentence, how)
    marked, reduce = _pairs(pairs, model, ids, pieces, how), flatten.method(method)
    T = len(pieces)
    corpus.within("top", top, 0, T * (T + 1) // 2 if model.config.causal else T * T)  # as many pairs are seen
    wanted = None if head == "auto" else names.parse(head, model.config)
    others = [*joint_fit.documents(model, text, documents, tokens)] if documents else []
    fitted = joint_fit.fit(model, [ids, *others], how, seed)
    wanted = wanted or _auto(fitted["mrr"] - fitted["mrr_before"])
    found = {name: x for name, x in fitted.items() if name not in ("a", "plane", "centre", "density", "spread")}
    return found | summary(fitted) | {
        "distance": distance, "products": products, "method": method, "top": top, "words": how.words,
        "pieces": np.array(pieces), "pairs": marked, "places": np.array(wanted),
        "heads": np.array([names.name(*one) for one in wanted]),
        "scale": np.array([fitted["c"][one] for one in wanted]),
        "papers_heads": np.array([names.papers_name(*one) for one in wanted])} | \
        _drawn(model, ids, others, wanted, how, fitted, reduce, top, seed) | _chosen(model, ids, marked, how, fitted)


def _read(model, sentence, how):
    """Token ids of the sentence, and the pieces or words in it; ValueError for a single one or too many."""
    data.valid(sentence, "--sentence")
    ids, (before, after) = model.tokenizer.encode(sentence), corpus.specials(model)
    if len(ids) > model.config.n_ctx:
        raise ValueError(f"--sentence has {len(ids)} tokens; this model reads at most {model.config.n_ctx}")
    pieces, n = model.tokenizer.pieces(ids), len(ids) - len(before) - len(after)
    if how.words:
        word = maths.numbers(ids, model.tokenizer.decode)
        pieces = maths.names(ids, word, model.tokenizer.decode, pieces)
        n = len(pieces) - len(before) - len(after)
    if n < 2:
        raise ValueError(f"--sentence {sentence!r} has {n} {'word' if how.words else 'token'}{'s'[n == 1:]}, special "
                         "ones aside; wanted at least 2")
    return ids, pieces


def _pairs(pairs, model, ids, pieces, how):
    """'brown:capybara' -> query and key of every pair of their pieces [M 2]; ValueError for what is not there."""
    word = maths.numbers(ids, model.tokenizer.decode)
    texts = maths.names(ids, word, model.tokenizer.decode, model.tokenizer.pieces(ids))
    inside = np.arange(len(texts)) if how.words else word

    def places(name):
        found = maths.matches(name, texts)[inside] | maths.matches(name, pieces)
        if not found.any():
            raise ValueError(f"--pairs: {name!r} is not in the sentence; there are {', '.join(map(repr, pieces))}")
        return np.flatnonzero(found).tolist()
    found = []
    for pair in filter(None, pairs.split(",")):
        query, _, key = pair.partition(":")
        if not (query.strip() and key.strip()):
            raise ValueError(f"--pairs {pair!r}: wanted query:key, as in brown:capybara")
        found += [(a, b) for a in places(query) for b in places(key)]
    if found and model.config.causal and all(query < key for query, key in found):
        raise ValueError("--pairs: these keys stand to the right of the queries, where this model does not look")
    return np.array(found, int).reshape(-1, 2)


def _auto(gain):
    """The heads in which nearness gains most, least, and in between: [L H] -> up to three (layer, head)."""
    order = gain.ravel().argsort(kind="stable")
    chosen = dict.fromkeys(int(order[at]) for at in (-1, len(order) // 2, 0))
    return [divmod(one, gain.shape[1]) for one in chosen]


def _drawn(model, ids, others, wanted, how, fitted, reduce, top, seed):
    """Products, distances, attention, places in the plane and lines of the heads drawn."""
    of, layers = joint.PRODUCTS[how.products].of, {}
    joint_fit.each(model, ids, lambda at: layers.update({at.index: at}) or {}, how)
    found = {name: [] for name in ("product", "distances", "pattern", "lines")}
    for layer, head in wanted:
        at = layers[layer]
        pairs = [(q[head], k[head]) for q, k in joint_fit.views(at, how, fitted)]
        found["product"].append([of(q @ k.T, at.seen) for q, k in pairs])
        found["distances"].append([joint.distances(q, k, how.distance) for q, k in pairs])
        found["pattern"].append(at.pattern[head])
        found["lines"].append(_lines(at.pattern[head], top))
    found["seen"] = at.seen
    return {name: np.array(x) for name, x in found.items()} | \
        _places(model, [layers[layer] for layer, _ in wanted], others, wanted, how, fitted, reduce, seed)


def _lines(pattern, top):
    """Numbers of query and key: of every query and its strongest key, or of the `top` largest entries: [M 2]."""
    if not top:
        return np.stack([np.arange(len(pattern)), pattern.argmax(axis=1)], 1)
    return np.stack(np.unravel_index((-pattern).argsort(axis=None, kind="stable")[:top], pattern.shape), 1)


def _places(model, layers, others, wanted, how, fitted, reduce, seed):
    """Where queries and keys are drawn [n 2 stages T 2], and those of the other documents [n 2 stages B 2]."""
    drawn = joint.DISTANCES[how.distance].drawn

    def view(at, head):  # [2 stages 2 T w]: in the plane, or what is still to be flattened
        both = joint_fit.flat(at, how, fitted, fitted) if reduce is None else \
            [[drawn(x) for x in pair] for pair in joint_fit.views(at, how, fitted)]
        return np.array([[x[head] for x in pair] for pair in both])
    found = {name: [] for name in ("q_plane", "k_plane", "others_q", "others_k")}
    for at, (_, head), rest in zip(layers, wanted, _behind(model, others, wanted, how, view)):
        x = np.concatenate([view(at, head), *rest], axis=2)
        if reduce is not None:
            x = np.array([np.reshape(reduce(np.concatenate([*stage]), seed), (2, -1, 2)) for stage in x])
        for j, name in enumerate("qk"):
            found[name + "_plane"].append(x[:, j, :at.q.shape[1]])
            found["others_" + name].append(x[:, j, at.q.shape[1]:])
    found = {name: np.array(x, np.float64) for name, x in found.items()}
    return found | _near(layers, wanted, found["q_plane"], found["k_plane"])


def _behind(model, others, wanted, how, view):
    """What `view` gives of each other document, for each head drawn: n lists of [2 stages 2 T w]."""
    width = max(map(len, others), default=0)

    def measure(_, document):
        kept = {}
        joint_fit.each(model, document, lambda at: kept.update({at.index: at}) or {}, how)
        x = np.array([view(kept[layer], head) for layer, head in wanted])  # [n 2 2 T w]
        T = x.shape[3]
        return {"x": np.pad(x, [(0, 0)] * 3 + [(0, width - T), (0, 0)]), "T": T}  # one length, so that they can be kept
    if not others:
        return [[] for _ in wanted]
    found = stream.gather(measure, others, "documents: drawing", keep=("x", "T"))
    return [[one[i, :, :, :T] for one, T in zip(found["x"], found["T"])] for i in range(len(wanted))]


def _near(layers, wanted, q, k):
    """Mean 1/rank of the strongest keys of the sentence in the drawn plane [n 2 stages], and of any key."""
    seen = layers[0].seen
    strongest = np.array([at.pattern[head].argmax(axis=-1) for at, (_, head) in zip(layers, wanted)])
    ranks = joint.ranks(joint.distances(q, k, "euclidean"), seen)
    counts = [n for n in seen.sum(axis=1).tolist() if n > 1]
    near = [joint.nearness(x, strongest, seen)[0] / len(counts) for x in np.moveaxis(ranks, 1, 0)]
    return {"near_drawn": np.array(near).T, "near_chance": np.mean([(1 / np.arange(1, n + 1)).mean() for n in counts])}


def _chosen(model, ids, pairs, how, fitted):
    """Ranks by distance of the pairs chosen in every head [L 2 stages H M], and the same of all pairs."""
    if not len(pairs):
        return {}
    one = tuple(pairs.T)

    def use(at):
        before, after = (joint.ranks(stage[0], at.seen) for stage in joint_fit.apart(at, how, fitted, fitted))
        chance = (at.seen.sum(axis=1) + 1) / 2
        return {"nearer": (after < before).sum(axis=0), "ranks": np.array([x[:, *one] for x in (before, after)]),
                "attention": at.pattern[:, *one], "chance": chance[one[0]], "seen": at.seen}
    found = joint_fit.each(model, ids, use, how)
    nearer, seen = found["nearer"].sum(axis=0) / fitted["c"].size, found["seen"][0]
    see = seen[one]
    return {"pair_closer": nearer[one][see].mean(), "pair_closer_null": nearer[seen].mean(),
            "pair_ranks": np.where(see, found["ranks"], 0), "pair_rank_before": found["ranks"][:, 0][..., see].mean(),
            "pair_rank": found["ranks"][:, 1][..., see].mean(), "pair_rank_null": found["chance"][:, see].mean(),
            "pair_attention": found["attention"][..., see].mean(),
            "pair_attention_null": (1 / seen.sum(axis=1))[one[0]][see].mean()}
