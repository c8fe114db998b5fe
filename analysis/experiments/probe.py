"""Where a token stands, read off the residual stream of every layer by ridge regression, on documents held out.

The sums of ridge regression add up over documents, so that memory does not grow with them. C conditions, L layers,
T tokens, D width, Y targets: the place of a token, and as the null a random place of the same document.
Order: the conditions, the picture, the experiment, learning, testing.
"""

from functools import partial

import numpy as np

from .. import corpus, draw, masking, masks, stats, stream
from ..features import untrained
from ..registry import experiment
from .removal import features

ON, OFF, CAUSAL, RANDOM, RANDOM_OFF = (
    "positions on", "positions off", "off, causal mask alone", "random weights, on", "random weights, off")
SHARES = 0.6, 0.2  # of the documents, to learn from and to choose the penalty; the others are for the test
LEAST = 6          # documents: of fewer the test would have one
BINS = 24          # of places, over which guesses are averaged to be drawn
COLORS = {ON: draw.BLUE, OFF: draw.VERMILION, CAUSAL: draw.PURPLE, RANDOM: draw.SKY, RANDOM_OFF: draw.GREY}
MORE = draw.GREEN, draw.ORANGE, "#332288", "#999933", "#882255"  # of masks


def conditions(model, names, meaning, seed):
    """{condition: f(tokens) -> residual stream [L+1 T D]}; names: masks as in the option.

    In a model that hides the future positions off is the causal mask alone.
    """
    off, random = masking.condition(positions="zero"), untrained(model, np.random.default_rng(seed))
    found = {ON: partial(features, model), OFF: partial(features, model, condition=off)}
    for mask in chosen(names):
        under = masking.condition(mask, meaning, "zero")
        found[f"off, {masks.words(mask)}"] = partial(features, model, condition=under)
    if not model.config.causal:
        found[CAUSAL] = partial(features, model, condition=off, mask=lambda q, k: k <= q)
    return found | {RANDOM: partial(features, random), RANDOM_OFF: partial(features, random, condition=off)}


def chosen(names):
    """'linear,window:8' -> masks of these families, parameters behind colons; ValueError for what there is not."""
    found = []
    for name in filter(None, (masks.FAMILIES if names == "all" else names.replace(" ", "").split(","))):
        family, *values = name.split(":")
        try:
            found.append(masks.named(family, *map(float, values)))
        except ValueError as error:
            raise ValueError(f"--mask {name!r}: {error}; wanted names joined by commas, parameters behind colons, as "
                             "linear,window:8, or all") from None
    return found


def plot(r):
    """R² and error by layer; the mean guess at every place, in each condition's best layer."""
    figure = draw.figure(11, 4.9)
    axes = figure.subplots(1, 3)
    depth, colors = np.arange(r["r2"].shape[1]), COLORS | dict(zip(_masked(r), MORE))
    for name, r2, ends, error, guess in zip(r["conditions"], r["r2"], r["r2_interval"], r["error"], r["guesses"]):
        style = {"color": colors.get(name, draw.GREEN), "marker": "o", "markersize": 3,
                 "linestyle": ":" if "random" in name else "-"}
        axes[0].fill_between(depth, *ends.T, color=style["color"], alpha=0.15, linewidth=0)
        axes[0].plot(depth, r2, label=name, **style)
        axes[1].plot(depth, error, **style)
        axes[2].plot(r["places"], guess, **style | {"marker": ""})
    axes[0].plot(depth, r["r2_shuffled"][0], "--", color="black", label="null: places shuffled, on")
    axes[1].axhline(r["error_on_null"], color="black", linestyle="-.", linewidth=1, label="null: always the middle")
    axes[2].plot(r["places"][[0, -1]], r["places"][[0, -1]], color="black", linewidth=0.8, label="the place itself")
    axes[0].set(ylabel="R² on held-out documents", ylim=(min(-0.05, r["r2_interval"].min()), 1.02))
    axes[1].set(ylabel="mean absolute error (tokens)", ylim=(0, None))
    axes[2].set(xlabel="place of the token (tokens)", ylabel="mean guess in the best layer (tokens)")
    for left in axes[:2]:
        left.set_xlabel("layer (0: the embeddings)")
        left.set_xticks(depth[::-(-len(depth) // 13)])
    figure.legend(loc="outside lower center", ncols=4)
    return figure


def _masked(r):
    """The conditions with a mask by distance."""
    return [name for name in r["conditions"] if name not in COLORS]


def says(r):
    """What the numbers show, in plain words."""
    best = {str(name): (r2.max(), ends[r2.argmax()], error[r2.argmax()], r2.argmax()) for name, r2, ends, error in
            zip(r["conditions"], r["r2"], r["r2_interval"], r["error"])}

    def put(name):
        r2, (low, high), error, layer = best[name]
        return f"R² {r2:.3f} ({low:.3f} to {high:.3f}), {error:.1f} tokens off, in layer {layer}"
    others = "; ".join(f"{name}: {put(name)}" for name in best if name != ON)
    floor = max(best[OFF][1][1], r["r2_on_null"])
    carry = [name for name in _masked(r) if best[str(name)][1][0] > floor]
    verdict = f"More of positions than without a mask is there under: {'; '.join(carry)}." if carry else \
        "Under no mask is more of positions there than without one." if _masked(r) else ""
    return (f"Where a token stands is read off with {put(ON)}, where positions are on. With shuffled places R² is "
            f"{r['r2_on_null']:.3f} at most; always naming the middle is {r['error_on_null']:.1f} tokens off. The "
            f"others, in their best layers: {others}. {verdict}")


@experiment(
    asks="Where in the model can a token's position be read off?",
    draw=plot,
    look="R² 1: a linear readout gives the place of every token of documents that it never saw; 0: no better than "
         "always naming the middle. Positions off should be at 0 unless the future is hidden: then the number of "
         "tokens that a token sees tells where it stands. A mask carries positions where its line is above "
         "positions off; in a masked model it can do so by the special tokens at both ends, whose pull then "
         "depends on the distance. Random weights show what no training is needed for.",
    published="Models without position embeddings can learn positions from the causal mask alone (Haviv et al. "
              "2022). Whether a fractional mask carries positions was left open, for want of a way to test it "
              "(Hirata's slides).",
    figure="slides, open questions",
    says=says,
    numbers={
        "r2_on": "R² with positions on, on held-out documents, in its best layer",
        "r2_on_null": "the same when each document's places are shuffled",
        "r2_on_interval": "95 % interval of it, documents drawn anew",
        "r2_on_last": "R² with positions on, in the last layer",
        "error_on": "mean absolute error in tokens with positions on, in the layer with the highest R²",
        "error_on_null": "the same of always naming the middle",
        "r2_off": "R² with positions off, in its best layer",
        "r2_off_null": "the same when each document's places are shuffled",
        "r2_off_interval": "95 % interval of it",
        "r2_causal": "R² with positions off under a causal mask, in its best layer",
        "r2_causal_null": "the same when each document's places are shuffled",
        "r2_causal_interval": "95 % interval of it",
        "r2_random": "R² in a model of random weights with positions on, in its best layer",
        "r2_random_off": "R² in a model of random weights with positions off, in its best layer",
        "r2_best_mask": "R² with positions off under the mask that carries most of them, in its best layer",
        "r2_best_mask_interval": "95 % interval of it",
        "best_mask": "that mask",
        "documents": "documents to learn from, to choose the penalty, to test on",
        "n_tokens": "tokens whose places are guessed"})
def probe(model, *, text: str = "sample", documents: int = 60, tokens: int = 0, column: str = "",
          mask: str = "linear,exponential,alibi,window", meaning: str = "weights", seed: int = 0):
    """Ridge regression from the residual stream to a token's place, with positions on, off, off under masks.

    text: file or folder with one document or paragraph a line, .csv, .jsonl, - for standard input, or sample
    documents: documents to read (0: as many as the text holds, at most 100)
    tokens: length of each document (0: the model's longest input)
    column: columns of a .csv or keys of a .jsonl file that hold the text
    mask: families of masks by distance, joined by commas, parameters behind colons, as linear,window:8; or all
    meaning: what the values of a mask do: scores, weights, weights_raw, library-2023, library-now, library-now-2d
    seed: seed of the random weights and of the shuffles
    """
    ways = conditions(model, mask, meaning, seed)
    read = corpus.documents(model, text, documents, tokens, column=column)
    fit, choose, test = parts(read)
    found = {}
    for name, stream_of in ways.items():
        weights, penalties = learned(stream_of, read, fit, choose, seed)
        found[name] = tested(stream_of, read, fit + choose, weights, seed) | {"penalty": penalties}
    result = {name: np.array([one[name] for one in found.values()]) for name in found[ON]}
    result |= {"conditions": np.array([*found]), "documents": np.array([fit, choose, test]),
               "n_tokens": test * read.size, "places": len(read.before) + binned(np.arange(read.size))}
    return result | _headline(result, model.config.causal) | {"error_on_null": _middle(read.size)}


def parts(read):
    """Numbers of documents to learn from, to choose the penalty with, and to test on; ValueError for too few."""
    corpus.several(read, LEAST)
    fit, choose = (int(share * len(read)) for share in SHARES)
    return fit, choose, len(read) - fit - choose


def targets(read, index, document, seed):
    """The places of a document's ordinary tokens, and the same in random order: their slice, [n Y]."""
    inner = slice(len(read.before), len(document) - len(read.after))
    places = np.arange(len(document))[inner].astype(np.float64)
    return inner, np.column_stack([places, np.random.default_rng((seed, index)).permutation(places)])


def learned(stream_of, read, fit, choose, seed):
    """Weights of ridge regression [Y L+1 D+1] and their penalties [Y L+1], from `fit` and `choose` documents."""
    def measure(i, document):
        inner, y = targets(read, i, document, seed)
        return {"fit" if i < fit else "choose": np.array([stats.sums(x[inner], y) for x in stream_of(document)])}
    found = stream.gather(measure, [*read][:fit + choose], "learning")
    Y = 2
    each = [[stats.chosen_ridge(*(_target(found[part][layer], y, Y) for part in ("fit", "choose")))
             for layer in range(len(found["fit"]))] for y in range(Y)]
    return tuple(np.array([[pair[i] for pair in layers] for layers in each]) for i in range(2))


def _target(sums, y, Y):
    """The sums of one of Y targets: [D+1+Y D+1+Y] -> [D+2 D+2]."""
    rows = [*range(len(sums) - Y), len(sums) - Y + y]
    return sums[np.ix_(rows, rows)]


def tested(stream_of, read, first, weights, seed):
    """R², errors and guesses on the documents from number `first` on, with intervals over them, for every layer."""
    def measure(i, document):
        inner, y = targets(read, first + i, document, seed)
        x = stream_of(document)[:, inner]
        guess = np.matmul(x, weights[..., :-1, None])[..., 0] + weights[..., -1:]  # [Y L+1 n]
        wrong = y.T[:, None] - guess
        return {"squared": np.square(wrong).sum(axis=-1), "absolute": abs(wrong[0]).sum(axis=-1), "guess": guess[0],
                "variation": np.square(y[:, 0] - y[:, 0].mean()).sum(), "n": len(y)}
    found = stream.gather(measure, [*read][first:], "testing", keep=("squared", "absolute", "variation", "n"))
    n, squared, variation = found["n"], found["squared"], found["variation"]
    true, shuffled = 1 - squared.sum(axis=0) / variation.sum()
    guess = found["guess"] / len(n)
    interval = 1 - stats.bootstrap(squared[:, 0], variation)[::-1].T
    return {"r2": true, "r2_interval": interval, "r2_shuffled": shuffled,
            "error": found["absolute"].sum(axis=0) / n.sum(),
            "error_interval": stats.bootstrap(found["absolute"], n).T, "guesses": binned(guess[true.argmax()])}


def binned(x):
    """Means of [n] over at most BINS stretches."""
    return np.array([part.mean() for part in np.array_split(x, min(BINS, len(x)))])


def _headline(r, causal):
    """The best layer's R² of every condition, beside what shuffled places give."""
    best, null = (dict(zip(r["conditions"].tolist(), r[name].max(axis=1))) for name in ("r2", "r2_shuffled"))
    ends = dict(zip(best, r["r2_interval"][np.arange(len(best)), r["r2"].argmax(axis=1)]))
    alone, masked = OFF if causal else CAUSAL, _masked(r)
    top = max(masked, key=best.get, default=OFF)
    names = {"on": ON, "off": OFF, "causal": alone, "random": RANDOM, "random_off": RANDOM_OFF,
             "best_mask": str(top)}
    return {f"r2_{key}": best[name] for key, name in names.items()} | {
        f"r2_{key}_interval": ends[name] for key, name in names.items()} | {
        f"r2_{key}_null": null[names[key]] for key in ("on", "off", "causal")} | {
        "best_mask": top, "r2_on_last": r["r2"][0, -1], "error_on": r["error"][0, r["r2"][0].argmax()]}


def _middle(n):
    """Mean distance of n places from their middle."""
    return abs(np.arange(n) - (n - 1) / 2).mean()
