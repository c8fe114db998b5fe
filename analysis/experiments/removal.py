"""What a model does without its position embeddings: features with and without, and how well it still predicts.

N documents, T tokens, L layers, D width, C ways to take positions away, 1 + C with "kept" before them.
Order: the ways, the picture, the experiment, one document, the sums of all.
"""

import numpy as np

from minitx import forward

from .. import corpus, draw, inputs, losses, stats, stream
from ..registry import experiment

WAYS = {  # name -> the table [P D] that stands in for the position table [P D]
    "zero": lambda table, rng: np.zeros_like(table),
    "mean": lambda table, rng: np.broadcast_to(table.mean(axis=0, dtype=np.float64), table.shape),
    "shuffled": lambda table, rng: rng.permutation(table),
    "shifted": lambda table, rng: np.roll(table, -(len(table) // 2), axis=0)}  # row t is row t + half, round the end
COLORS = {"kept": draw.GREY} | dict(zip(WAYS, (draw.BLUE, draw.ORANGE, draw.GREEN, draw.PURPLE)))
EDGES = np.linspace(-1, 1, 201)  # of the histograms of cosines
PAIRS = 10_000                   # of random vectors
PREDICTS = {"causal": "loss", "masked": "pseudo-loss"}
PERPLEXITIES = {  # convention -> name of the result
    "e to the loss\nper token": "perplexity", "mean over\ndocuments": "mean_perplexity",
    "mean over\ntokens (of 1/p)": "token_perplexity", "mixed up:\n2 to the nats": "mixed_perplexity"}
ABOVE = {"loc": "lower left", "bbox_to_anchor": (0, 1), "ncols": 2}  # where a legend hides nothing


def stand_in(rows):
    """The condition in which `rows` [P D] stand in for the position table."""
    def condition(model):
        return lambda name, x, layer=None: np.broadcast_to(rows[:x.shape[1]], x.shape) if name == "pos_embed" else x
    return condition


def tables(model, seed):
    """Every way's table [P D], of the rows that a token can reach."""
    table = inputs.reachable(model)
    return {way: make(table, np.random.default_rng(seed)).astype(table.dtype) for way, make in WAYS.items()}


def plot(r):
    """Cosines by depth and their distribution; below, if the model predicts tokens, losses and perplexities."""
    predicts = "loss" in r
    figure = draw.figure(11, 7.6 if predicts else 4)
    axes = figure.subplots(1 + predicts, 2, squeeze=False)
    _by_depth(axes[0, 0], r)
    _distribution(axes[0, 1], r)
    if predicts:
        _losses(axes[1, 0], r)
        _perplexities(axes[1, 1], r)
    return figure


def _by_depth(axes, r):
    depth = np.arange(r["cosine_by_layer"].shape[1])
    for way, cosine in zip(r["ways"], r["cosine_by_layer"]):
        axes.plot(depth, cosine, marker="o", markersize=3, color=COLORS[way], label=f"positions: {way}")
    axes.plot(depth, r["other_tokens_by_layer"], "--", color="black", label="null: two tokens of a document")
    axes.axhline(r["random_bound"], color=draw.GREY, linewidth=0.8, label="99.9 % of random pairs are below")
    axes.set(xlabel="layer (0: the embeddings)", ylabel="cosine with the whole model's features", ylim=(None, 1.02))
    axes.set_xticks(depth[::-(-len(depth) // 13)])
    axes.legend(**ABOVE)


def _distribution(axes, r):
    middle, width = (EDGES[1:] + EDGES[:-1]) / 2, np.diff(EDGES)[0]
    for name, color, text in (("random", draw.SKY, f"{PAIRS:,} random pairs, width {r['width']}"),
                              ("different", draw.GREY, "null: two tokens of a document"),
                              ("same", draw.BLUE, "a token with and without positions")):
        share = r[f"cosines_{name}"] / r[f"cosines_{name}"].sum() / width
        axes.stairs(share, EDGES, fill=True, color=color, alpha=0.55, label=text)
    axes.plot(middle, r["random_density"], color="black", linewidth=0.8,
              label="their density in theory")
    top = axes.dataLim.intervaly.max() * 1.12
    lower, higher = sorted(((r["cosine"], draw.BLUE), (r["cosine_null"], "black")))
    for (value, color), side in ((lower, "right"), (higher, "left")):
        axes.axvline(value, color=color, linestyle="--", linewidth=1)
        axes.text(value, top, f" mean {value:.3f} ", va="top", ha=side, fontsize=8, color=color)
    axes.set(xlabel="cosine of final features (with: positions zero)", ylabel="density", xlim=(-1, 1), ylim=(0, top))
    axes.legend(**ABOVE)


def _losses(axes, r):
    names = ["kept", *r["ways"]]
    low, high = r["loss_interval"].T
    mean = np.r_[r["loss"], r["losses"]]
    axes.bar(names, mean, yerr=[np.maximum(mean - low, 0), np.maximum(high - mean, 0)], capsize=3,
             color=[COLORS[name] for name in names])
    axes.axhline(r["loss_null"], color="black", linestyle="--", linewidth=1, label="null: frequencies of the tokens")
    axes.axhline(r["loss_uniform"], color="black", linestyle=":", linewidth=1, label="the whole vocabulary alike")
    axes.set(ylabel=f"{r['predicts']} (nats per token)", xlabel="positions (bars: 95 % over documents)",
             ylim=(0, 1.05 * max(high.max(), r["loss_uniform"])))
    axes.legend(**ABOVE)


def _perplexities(axes, r):
    rows = np.arange(len(PERPLEXITIES))
    for i, way in enumerate(["kept", *r["ways"]]):
        values = np.array([r[name][i] for name in PERPLEXITIES.values()])
        axes.plot(values, rows, "o", color=COLORS[way], markersize=6, label=way)
    axes.axvline(np.exp(r["loss_uniform"]), color="black", linestyle=":", linewidth=1, label="the vocabulary's size")
    axes.set_yticks(rows, PERPLEXITIES)
    axes.set(xscale="log", xlabel=f"{_perplexity(r)}, by convention", ylim=(len(rows) - 0.4, -0.6))
    axes.grid(axis="y", linewidth=0.4)
    axes.legend(**ABOVE | {"ncols": 3})


def _perplexity(r):
    return "pseudo-perplexity" if str(r["predicts"]).startswith("pseudo") else "perplexity"


def says(r):
    """What the numbers show, in plain words."""
    low, high = r["cosine_interval"]
    text = (f"Without positions the final features keep a cosine of {r['cosine']:.4f} ({low:.4f} to {high:.4f}) "
            f"with those of the whole model. Nearly all random vectors stay below {r['random_bound']:.3f}, but "
            f"the features of two different tokens of one document have {r['cosine_null']:.4f}; a token is nearer "
            f"to itself without positions than to another token in {r['nearer']:.1%} of cases (chance: 50 %).")
    if "loss" in r:
        text += _says_perplexity(r)
    n = r["left_out"]
    return text + (f" {n} document{' is' if n == 1 else 's are'} left out: empty, or of one token." if n else "")


def _says_perplexity(r):
    (with_, without), (own, two) = r["perplexity"][:2], r["mean_perplexity"][:2]
    ends = ["{:.4g} to {:.4g}".format(*pair) for pair in r["perplexity_interval"]]
    alike, known = np.exp(r["loss_uniform"]), np.exp(r["loss_null"])
    low, high = r["perplexity_interval"][1]
    same = "as well, within its interval, as"
    worse = [f"{'worse than' if low > other else 'better than' if high < other else same} {name}"
             for name, other in (("these frequencies", known), ("that", alike))]
    return (f" {_perplexity(r).capitalize()} per token goes from {with_:.4g} ({ends[0]}) to {without:.4g} "
            f"({ends[1]}), as mean over documents from {own:.4g} to {two:.4g}. The frequencies of the tokens "
            f"(counted on this very text) give {known:.4g}, and guessing the whole vocabulary alike {alike:.0f}: "
            f"without positions the model does {' and '.join(worse)}. Taking nats for bits, 2 to the loss, would show "
            f"{r['mixed_perplexity'][0]:.4g} and {r['mixed_perplexity'][1]:.4g}.")


@experiment(
    asks="What is left without position embeddings?",
    draw=plot,
    look="A cosine near 1 says that the features hardly need positions, but only above the dashed line: features "
         "of different tokens of one model are often alike, so random vectors are no fair comparison. Compare the "
         "ways: zeros move the input to where the model has never been, the mean and shuffled rows less so, and "
         "shifted rows keep all distances. A loss above the dotted line is worse than knowing nothing. The same "
         "losses give four perplexities: say which one is meant.",
    published="Mean cosine of the final features with and without positions on IMDB reviews: BERT 0.7702, GPT-2 "
              "0.9291; GPT-2's perplexity, written as 2 to the cross-entropy, goes from 111.24 to 712014, where "
              "50257 tokens alike would give 50257 (Hirata's slides).",
    figure="slides, removal",
    says=says,
    numbers={
        "cosine": "mean over tokens of the cosine of final features with the position table at zero and as it is",
        "cosine_null": "the same between all pairs of different tokens of one document, positions kept",
        "cosine_interval": "95 % interval of the cosine, documents drawn anew",
        "cosine_across": "mean cosine between tokens of different documents, positions kept",
        "nearer": "share of tokens nearer to themselves without positions than to another token",
        "nearer_null": "chance",
        "cosine_mean": "cosine as above, every row the table's mean",
        "cosine_shuffled": "as above, the table's rows shuffled",
        "cosine_shifted": "as above, rows moved by half the table",
        "random_bound": "cosine below which 99.9 % of pairs of random vectors of this width stay",
        "loss": "loss with positions, in nats per token (of a masked model the pseudo-loss, and so below)",
        "loss_null": "loss of the frequencies of the tokens in these documents",
        "loss_zero": "loss with the position table at zero",
        "loss_bits": "loss in bits per token, with positions, at zero, mean, shuffled and shifted",
        "loss_interval": "95 % interval of each loss in nats, in the same order: lower and upper end",
        "perplexity": "e to the loss per token, in the same order",
        "perplexity_interval": "95 % interval of each: lower and upper end",
        "mean_perplexity": "mean over documents of e to each one's loss per token",
        "mean_perplexity_interval": "95 % interval of each: lower and upper end",
        "token_perplexity": "mean over tokens of e to each one's loss",
        "mixed_perplexity": "2 to the loss in nats: what mixing units shows",
        "documents": "documents measured",
        "left_out": "documents left out, being empty or of one token",
        "stride": "tokens between the windows of a document longer than the model reads",
        "n_tokens": "tokens whose features are compared",
        "n_predicted": "tokens whose loss is measured"})
def remove_positions(model, *, text: str = "sample", documents: int = 20, tokens: int = 0, whole: int = 0,
                     column: str = "", stride: int = 0, every: int = 64, seed: int = 0):
    """Features and predictions with the position table at zero, at its mean, shuffled and shifted.

    text: file or folder with one document or paragraph a line, .csv, .jsonl, - for standard input, or sample
    documents: documents to read (0: as many as the text holds; at most 100 full ones)
    tokens: length of each document (0: the model's longest input; with --whole 1 all of the document)
    whole: 1: the text's own documents, of any length; 0: the text cut into documents of one length
    column: columns of a .csv or keys of a .jsonl file that hold the text
    stride: tokens between the windows of longer documents (0: half of the model's longest input)
    every: of a masked model, hide one token in so many
    seed: seed of the shuffle and of the random vectors
    """
    longest = model.config.n_ctx
    corpus.within("whole", whole, 0, 1)
    corpus.within("stride", stride, 0, longest - 1 - sum(map(len, corpus.specials(model))))
    if stride and not whole:
        raise ValueError(f"--stride {stride} goes with --whole 1: no other document is longer than the model reads")
    corpus.at_least("every", every, 1)
    read = (corpus.texts if whole else corpus.documents)(model, text, documents, tokens, column=column)
    corpus.several(read)
    ways = [None, *map(stand_in, tables(model, seed).values())]
    stride = stride or longest // 2

    def measure(i, document):
        ordinary = document[len(read.before):len(document) - len(read.after)]
        found, each = _features(model, document, ways, stride)
        if model.config.head == "masked":
            start = i % min(every, len(ordinary))
            each = [losses.masked(model, document, way, every, start, stride=stride) for way in ways]
        return found | (_costs(each, ordinary, model.config.n_vocab) if model.config.head in PREDICTS else {})
    found = stream.gather(measure, read, "documents", keep=("n", "cosine", "other", "pairs", "nearer", "costs"))
    left = sum(read.skipped.values()) if whole else 0
    result = {"documents": len(read), "left_out": left, "stride": stride, "n_tokens": int(found["n"].sum()),
              "width": model.config.d_model} | _cosines(found) | _random(model.config.d_model, seed)
    return result | (_perplexities_of(found, model.config) if "costs" in found else {})


def features(model, tokens, condition=None, **how):
    """Residual stream after the embeddings and after every layer; the last after the final norm: [L+1 T D].

    condition, how: as for the losses.
    """
    found, inner = [], losses.tap(model, condition)

    def tap(name, x, layer=None):
        x = inner(name, x, layer)
        if name in ("resid_pre", "resid_post") and (name == "resid_post" or layer == 0):
            found.append(x[0].copy())
        return x
    found.append(forward(model, tokens, at=tap, **how)[0])
    return np.array([*found[:-2], found[-1]])  # the last layer's stream as the final norm leaves it


def directions(x):
    """Vectors of length 1, in float64: [... D] -> [... D]."""
    x = np.asarray(x, np.float64)
    return x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-30)


def _features(model, document, ways, stride):
    """Sums over the tokens of a document [T] of what its features show, and each way's losses of a causal model."""
    found, each = {}, [[] for _ in ways]
    for window in losses.windows(model, document, stride=stride):
        kept, cosines = None, []
        for way, paid in zip(ways, each):
            x = features(model, window.tokens, way)
            if model.config.head == "causal":
                paid.append(losses.next_tokens(model, window, x[-1]))
            there = directions(x)  # [L+1 W D]
            kept = there if kept is None else kept
            cosines.append((there * kept).sum(axis=-1)[:, window.places])
        part = _sums(kept, np.array(cosines[1:]), window.places)
        found = {name: value + found.get(name, 0) for name, value in part.items()}
    squared = np.square(found["sum"]).sum(axis=-1)  # |sum of directions|^2 = n + the cosines of all pairs
    return found | {"other": squared - found["n"], "pairs": found["n"] * (found["n"] - 1.0)}, \
        [np.concatenate(paid) for paid in each if paid]


def _sums(kept, cosines, places):
    """Sums over n places of a window: of directions [L+1 W D] with positions, of their cosines [C L+1 n] without."""
    other = np.roll(kept[-1], kept.shape[1] // 2, axis=0)  # half a window away
    same, different = cosines[0, -1], (kept[-1] * other).sum(axis=-1)[places]
    return {"n": len(places), "cosine": cosines.sum(axis=-1), "sum": kept[:, places].sum(axis=1),
            "nearer": (same > different).sum(), "cosines_same": np.histogram(same, EDGES)[0],
            "cosines_different": np.histogram(different, EDGES)[0]}


def _costs(each, ordinary, V):
    """Of one document and each way: sum of the losses, their number, e to their mean, sum of e to each: [4 1+C]."""
    return {"costs": np.transpose([[x.sum(), len(x), np.exp(x.mean()), np.exp(x).sum()] for x in each]),
            "counts": np.bincount(ordinary, minlength=V)}


def _cosines(found):
    """Mean cosines and their intervals from the sums over documents."""
    n, by_layer = found["n"], found["cosine"].sum(axis=0) / found["n"].sum()
    other = found["other"].sum(axis=0) / found["pairs"].sum()
    result = {"ways": np.array([*WAYS]), "cosine_by_layer": by_layer, "other_tokens_by_layer": other,
              "cosine": by_layer[0, -1], "cosine_null": other[-1],
              "cosine_interval": stats.bootstrap(found["cosine"][:, 0, -1], n),
              "nearer": found["nearer"].sum() / n.sum(), "nearer_null": 0.5,
              "cosines_same": found["cosines_same"], "cosines_different": found["cosines_different"]}
    across = n.sum() ** 2 - np.square(n).sum()
    if across:  # more than one document
        squared = np.square(found["sum"]).sum(axis=-1) - (found["other"].sum(axis=0) + n.sum())
        result |= {"across_by_layer": squared / across, "cosine_across": squared[-1] / across}
    return result | {f"cosine_{way}": cosine for way, cosine in zip(WAYS, by_layer[:, -1]) if way != "zero"}


def _random(D, seed):
    """What the cosine of two random vectors is like, from theory and from samples."""
    middle = (EDGES[1:] + EDGES[:-1]) / 2
    return {"random_bound": stats.cosine_quantile(0.999, D), "random_density": stats.cosine_density(middle, D),
            "cosines_random": np.histogram(stats.random_cosines(D, PAIRS, seed), EDGES)[0]}


def _perplexities_of(found, cfg):
    """Losses per token and the perplexities made of them, with intervals over documents; arrays [1+C] or [1+C 2]."""
    total, n, own, each = found["costs"].swapaxes(0, 1)  # [N 1+C] each
    loss, interval = total.sum(axis=0) / n.sum(axis=0), stats.bootstrap(total, n).T
    return {"predicts": PREDICTS[cfg.head], "n_predicted": int(n[:, 0].sum()), "loss": loss[0], "losses": loss[1:],
            "loss_zero": loss[1], "loss_null": stats.entropy(found["counts"]), "loss_uniform": np.log(cfg.n_vocab),
            "loss_by_document": total / n, "loss_bits": loss / np.log(2), "loss_interval": interval,
            "perplexity": np.exp(loss), "perplexity_interval": np.exp(interval),
            "mean_perplexity": own.mean(axis=0), "mean_perplexity_interval": stats.bootstrap(own).T,
            "token_perplexity": each.sum(axis=0) / n.sum(axis=0), "mixed_perplexity": 2 ** loss}
