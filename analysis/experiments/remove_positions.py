"""Does the model still work without its position embeddings?

Features with and without positions, and how well the model still predicts. N documents, T tokens, L
layers, D width, C ways to take positions away, 1 + C with "kept" before them.
"""

from functools import partial

import numpy as np

from ..contract import NATS, Asks, Below, Led, Of, Provided, Without, options, register
from ..drawing import Bar, Line, When, bars, draw, figures, row
from ..machine.language import translated
from ..maths import stats
from ..measures import losses, perplexities, position_tables, residual_stream
from ..running.stream import UNSAVED
from ..texts import corpus

EDGES = np.linspace(-1, 1, 201)  # of the histograms of cosines
PAIRS = 10_000  # of random vectors
LINES = {"mean": "o--"}  # it often lies on the line of zeros
PERPLEXITIES = {  # convention, as the figure has it -> name of the result
    "e to the mean\nloss per token": "perplexity",
    "mean over\ndocuments": "mean_perplexity",
    "mean over\ntokens (of 1/p)": "token_perplexity",
    "mixed units:\n2 to the mean": "mixed_perplexity",
    "mixed, mean\nover documents": "mixed_mean_perplexity",
    "mixed, mean\nover tokens": "mixed_token_perplexity",
}
# Of what a model predicts better than the frequencies of the tokens do, in nats, it works with 0.9
# left. It is a convention; the bundles keep 0.46 and less.
WORKS = 0.9
ALONE = 8  # tokens of a document that are hidden, one at a time


def remove_positions(
    model,
    run=UNSAVED,
    *,
    text: options.Text = "sample",
    documents: options.TwoDocuments = 20,
    tokens: options.Tokens = 0,
    whole: bool = False,
    stride: options.Size = 0,
    ways: str = "all",
    every: options.Size = 0,
    seed: options.Seed = 0,
):
    """Features and predictions with the position table at zero, at its mean, shuffled and shifted.

    documents: documents to read (0: as many as the text holds; at most 100 full ones)
    tokens: length of each document (0: the model's longest input; with --whole all of the
    document)
    whole: read the text's own documents, of any length; otherwise the text is cut into documents of
    one length
    stride: tokens between the windows of longer documents (0: half of the model's longest input)
    ways: tables in place of the model's own: mean, shuffled, shifted, joined by commas; zero (it is
    always among them); or all
    every: of a masked model, hide one token in this many, each alone (0: 8 of each document)
    """
    _check_stride(model, stride, whole)
    names = _names(ways)
    load = corpus.texts if whole else corpus.documents
    document_set = load(model, text, documents, tokens)
    options.several(document_set)
    tables = position_tables.tables(model, seed)
    conditions = [None, *(position_tables.stand_in(tables[name]) for name in names)]
    stride = stride or model.config.n_ctx // 2

    def measure(i, document):
        ordinary = document[document_set.ordinary(len(document))]
        sums, costs = _measure_features(model, document, conditions, stride)
        if model.config.task_head == "masked":
            step = min(every or -(-len(ordinary) // ALONE), len(ordinary))
            hidden = partial(losses.masked, model, document, every=step, start=i % step)
            costs = [hidden(condition, stride=stride) for condition in conditions]
        if model.config.task_head in position_tables.PREDICTS:
            sums["costs"] = perplexities.sums(costs)
            sums["counts"] = np.bincount(ordinary, minlength=model.config.n_vocab)
        return sums

    stacked = ("n", "cosine", "other", "pairs", "nearer", "costs")
    sums = run.gather(measure, document_set, "documents", keep=stacked)
    result = {"documents": len(document_set), "stride": stride, "width": model.config.d_model}
    left_out = sum(document_set.skipped.values()) if whole else 0
    result |= {"left_out": left_out, "n_tokens": int(sums["n"].sum())}
    result |= {"ways": np.array(names), "tables": np.array(["kept", *names])}
    result |= _cosines(sums, names) | _random(model.config.d_model, seed)
    if "costs" in sums:
        result |= _perplexities(sums, model.config)
    return result


def _names(ways):
    """Names of the tables that are put in the place of the model's own, zero first.

    Raises ValueError for a name that there is not.
    """
    if ways == "all":
        return [*position_tables.WAYS]
    wanted = [name.strip() for name in ways.split(",")]
    unknown = [name for name in wanted if name not in position_tables.WAYS]
    if unknown:
        raise ValueError(
            f"--ways: {unknown[0]!r} is not a table; available: "
            f"{', '.join(position_tables.WAYS)}, or all"
        )
    return [name for name in position_tables.WAYS if name in ("zero", *wanted)]


def _check_stride(model, stride, whole):
    """Raise ValueError if a stride is too long for this model, or has no windows."""
    longest = model.config.n_ctx
    options.within("stride", stride, 0, longest - 1 - sum(map(len, corpus.specials(model))))
    if stride and not whole:
        raise ValueError(
            f"--stride {stride} needs --whole: no other document is longer than the model reads"
        )


def _measure_features(model, document, ways, stride):
    """Sums of what the features of a document [T] show, and the costs of its tokens in each way.
    Only a causal model has costs: [n] for each way.
    """
    sums = {}
    costs = []
    for window in losses.windows(model, document, stride=stride):
        sums_of_window, costs_of_window = _measure_window(model, window, ways)
        for name, value in sums_of_window.items():
            sums[name] = value + sums.get(name, 0)
        costs.append(costs_of_window)
    # |sum of directions|^2 = n + the cosines of all pairs
    squared = np.square(sums["sum"]).sum(axis=-1)
    sums["other"] = squared - sums["n"]
    sums["pairs"] = sums["n"] * (sums["n"] - 1.0)
    return sums, [np.concatenate(parts) for parts in zip(*costs)]


def _measure_window(model, window, ways):
    """The sums and the costs of one window of a document."""
    costs = []
    cosines = []
    for way in ways:
        x = residual_stream.states(model, window.tokens, way)
        if model.config.task_head == "causal":
            costs.append(losses.next_tokens(model, window, x[-1]))
        vectors = residual_stream.unit_vectors(x)  # [L+1 W D]
        if way is None:
            kept = vectors
        else:
            cosines.append((vectors * kept).sum(axis=-1)[:, window.places])
    return _sum_window(kept, np.array(cosines), window.places), costs


def _sum_window(kept, cosines, places):
    """Sums over n positions of a window.

    kept: directions with positions [L+1 W D]; cosines: of those without with them [C L+1 n].
    """
    other = np.roll(kept[-1], kept.shape[1] // 2, axis=0)  # half a window away
    same = cosines[0, -1]
    different = (kept[-1] * other).sum(axis=-1)[places]
    sums = {"n": len(places)}
    sums["cosine"] = cosines.sum(axis=-1)
    sums["sum"] = kept[:, places].sum(axis=1)
    sums["nearer"] = (same > different).sum()
    sums["cosines_same"] = np.histogram(same, EDGES)[0]
    sums["cosines_different"] = np.histogram(different, EDGES)[0]
    return sums


def _cosines(sums, names):
    """Mean cosines and their intervals from the sums over documents."""
    n = sums["n"]
    by_layer = sums["cosine"].sum(axis=0) / n.sum()
    other = sums["other"].sum(axis=0) / sums["pairs"].sum()
    result = {"cosine_by_layer": by_layer}
    result["other_tokens_by_layer"] = other
    result["cosine"] = by_layer[0, -1]
    result["cosine_null"] = other[-1]
    result["cosine_interval"] = stats.interval(sums["cosine"][:, 0, -1], n).clip(-1, 1)
    result["nearer"] = sums["nearer"].sum() / n.sum()
    result["nearer_null"] = 0.5
    result["cosines_same"] = sums["cosines_same"]
    result["cosines_different"] = sums["cosines_different"]
    result |= _cosines_across(sums)
    for way, cosine in zip(names, by_layer[:, -1]):
        if way != "zero":
            result[f"cosine_{way}"] = cosine
    return result


def _cosines_across(sums):
    """Mean cosines between tokens of different documents; nothing if there is but one."""
    n = sums["n"]
    pairs = n.sum() ** 2 - np.square(n).sum()
    if not pairs:
        return {}
    squared = np.square(sums["sum"]).sum(axis=-1) - (sums["other"].sum(axis=0) + n.sum())
    return {"across_by_layer": squared / pairs, "cosine_across": squared[-1] / pairs}


def _random(D, seed):
    """What the cosine of two random vectors is like, from theory and from samples."""
    middle = (EDGES[1:] + EDGES[:-1]) / 2
    cosines = stats.random_cosines(D, PAIRS, seed)
    return {
        "random_bound": stats.cosine_quantile(0.999, D),
        "random_density": stats.cosine_density(middle, D),
        "cosines_random": np.histogram(cosines, EDGES)[0],
    }


def _perplexities(sums, cfg):
    """Losses per token and perplexities made of them, with intervals: [1+C] or [1+C 2]."""
    total, n, exp_mean, *_ = sums["costs"].swapaxes(0, 1)  # [N 1+C] each
    loss = total.sum(axis=0) / n.sum(axis=0)
    interval = stats.interval(total, n).T
    result = {"predicts": position_tables.PREDICTS[cfg.task_head]}
    result["n_predicted"] = int(n[:, 0].sum())
    result["loss"] = loss[0]
    result["losses"] = loss[1:]
    result["loss_zero"] = loss[1]
    result["loss_null"] = stats.entropy(sums["counts"])
    result["loss_uniform"] = np.log(cfg.n_vocab)
    result["loss_by_document"] = total / n
    result["loss_interval"] = interval
    result["perplexity_interval"] = np.exp(interval)
    result["mean_perplexity_interval"] = stats.positive_interval(exp_mean).T
    by_convention = perplexities.by_convention(sums["costs"])
    result["conventions"] = np.array([*perplexities.CONVENTIONS.values()])
    result["perplexities"] = np.array([*by_convention.values()])
    return result | by_convention


def perplexity_kind(r):
    """Perplexity, or what a masked model has in its place."""
    is_pseudo = str(r["predicts"]).startswith("pseudo")
    return translated("pseudo-perplexity" if is_pseudo else "perplexity")


def order(name):
    """A function of r: whether the perplexity without positions is above or below another one."""

    def words(r):
        low, high = r["perplexity_interval"][1]
        other = np.exp(r[name])
        if low > other:
            return translated("worse than")
        return translated("better than" if high < other else "no better, within its interval, than")

    return words


def works(r):
    """How far below that of frequencies the loss has to stay."""
    return WORKS * (r["loss_null"] - r["loss"])


PERPLEXITY = [
    " ",
    lambda r: perplexity_kind(r).capitalize(),
    ", e to the mean loss per token, goes from {perplexity[0]:.4g} ({perplexity_interval[0]:to "
    ".4g}) to {perplexity[1]:.4g} ({perplexity_interval[1]:to .4g}); as the mean over documents of "
    "each document's perplexity, from {mean_perplexity[0]:.4g} to {mean_perplexity[1]:.4g}. The "
    "frequencies of the tokens (counted on this very text) give {loss_null.exp:.4g}, and guessing "
    "all tokens of the vocabulary equally gives {loss_uniform.exp:.0f}: without positions the "
    "model does ",
    order("loss_null"),
    " these frequencies and ",
    order("loss_uniform"),
    " that. If nats were taken for bits, 2 to the loss would show {mixed_perplexity[0]:.4g} and "
    "{mixed_perplexity[1]:.4g}.",
]
ARE = When("left_out == 1", "document is", "documents are")
OF_FEATURES = Asks(  # where nothing is predicted: partly at most
    "mean cosine of final features with and without positions (the model has no language-model "
    "head)",
    value="{cosine:.2f}",
    chance="{cosine_null:.2f}, two tokens of a document",
    rule=Of("cosine", enough=np.inf),
)


def _draw_depth(axes, r):
    """Cosine of features with and without positions, layer by layer."""
    depth = np.arange(r["cosine_by_layer"].shape[1])
    for way, cosine in zip(r["ways"], r["cosine_by_layer"]):
        color = position_tables.COLORS[way]
        line = LINES.get(way, "o-")
        axes.plot(depth, cosine, line, markersize=3, color=color, label=f"positions: {way}")
    null = "null: two tokens of a document"
    axes.plot(depth, r["other_tokens_by_layer"], "--", color="black", label=null)
    bound = "99.9% of random pairs are below"
    axes.axhline(r["random_bound"], color=draw.GREY, linewidth=0.8, label=bound)
    axes.set(xlabel="layer (0: the embeddings)", ylim=(None, 1.02))
    axes.set_ylabel("cosine with the whole model's features")
    axes.set_xticks(depth[:: -(-len(depth) // 13)])
    axes.legend(**draw.ABOVE | {"columnspacing": 1})


def _draw_distribution(axes, r):
    """Histograms of the cosines of final features, beside random vectors."""
    middle = (EDGES[1:] + EDGES[:-1]) / 2
    width = np.diff(EDGES)[0]
    for name, color, text in (
        ("random", draw.SKY, f"{PAIRS:,} random pairs, width {r['width']}"),
        ("different", draw.GREY, "null: two tokens of a document"),
        ("same", draw.BLUE, "a token with and without positions"),
    ):
        counts = r[f"cosines_{name}"]
        density = counts / counts.sum() / width
        axes.stairs(density, EDGES, fill=True, color=color, alpha=0.55, label=text)
    theory = "their density in theory"
    axes.plot(middle, r["random_density"], color="black", linewidth=0.8, label=theory)
    top = axes.dataLim.intervaly.max() * 1.12
    _draw_means(axes, r, top)
    axes.set(xlabel="cosine of final features (with: positions zero)", ylabel="density")
    axes.set(xlim=(-1, 1), ylim=(0, top))
    axes.legend(**draw.ABOVE | {"ncols": 1})


def _draw_means(axes, r, top):
    """Lines at the two means, labelled on their outer sides."""
    lower, higher = sorted(((r["cosine"], draw.BLUE), (r["cosine_null"], "black")))
    for (mean, color), side in ((lower, "right"), (higher, "left")):
        axes.axvline(mean, color=color, linestyle="--", linewidth=1)
        inward = side == "left" and mean > 0.5  # where there is no room outside, below the other
        style = {"va": "top", "ha": "right" if inward else side, "color": color}
        axes.text(mean, (0.92 if inward else 1) * top, f" mean {mean:.3f} ", **style)


LOSSES = bars(
    Bar(
        lambda r: np.r_[r["loss"], r["losses"]],
        None,
        lambda r: [position_tables.COLORS[name] for name in r["tables"]],
        interval="loss_interval",
    ),
    levels=(
        Line("loss_null", "null: frequencies of the tokens", "--", "black", 1),
        Line("loss_uniform", "all tokens equally likely", ":", "black", 1),
    ),
    ticks="tables",
    ylabel="{predicts} (nats per token)",
    xlabel="positions (bars: 95% over documents)",
)


def _draw_perplexities(axes, r):
    """The perplexities of each way, a row for each convention; the ways one below another."""
    rows = np.arange(len(PERPLEXITIES))
    for i, way in enumerate(r["tables"]):
        values = np.array([r[name][i] for name in PERPLEXITIES.values()])
        color = position_tables.COLORS[way]
        below = 0.15 * (i - (len(r["tables"]) - 1) / 2)
        axes.plot(values, rows + below, "o", color=color, markersize=6, label=way)
    axes.axvline(
        np.exp(r["loss_uniform"]),
        color="black",
        linestyle=":",
        linewidth=1,
        label="the vocabulary's size",
    )
    axes.set_yticks(rows, PERPLEXITIES)
    axes.set(xscale="log", ylim=(len(rows) - 0.4, -0.6))
    draw.plain_log(axes.xaxis)
    axes.set_xlabel(f"{perplexity_kind(r)}, by convention")
    axes.grid(axis="y", linewidth=0.4)
    axes.legend(**draw.ABOVE | {"ncols": 3, "columnspacing": 1})


PREDICTIONS = row(LOSSES, _draw_perplexities, height=5.2)
OF_LOSS = "the loss in nats, of which it is made, has one"

register(
    remove_positions,
    draw=figures(
        row(_draw_depth, _draw_distribution, height=5.2),
        lambda r: [PREDICTIONS] if "loss" in r else [],
    ),
    look="A cosine near 1 says that the features hardly need positions, but only above the dashed "
    "line: features of different tokens of one model are often alike, so random vectors are not a "
    "fair baseline. Compare the ways: zeros put the input far outside the training distribution, "
    "the mean and shuffled rows less far, and shifted rows keep all distances. A loss above the "
    "dotted line is worse than a uniform guess. The same losses give four perplexities, six with "
    "those of mixed units: state which one is meant.",
    published="Mean cosine of the final features with and without positions on IMDB reviews: BERT "
    "0.7702, GPT-2 0.9291; GPT-2's perplexity goes from 111.24 to 712014, where 50257 equally "
    "likely tokens would give 50257. It is written as 2 to the cross-entropy; whether it is "
    "averaged over tokens or documents is not said (Hirata's slides).",
    figure="slides, removal",
    numbers="""
        cosine: mean over tokens of the cosine of final features with the position table at zero and
            as it is
            null: mean cosine of all pairs of tokens of one document, positions kept
        loss: mean loss with positions, in nats per token (masked models: pseudo-loss)
            null: unigram loss of the documents read
        loss_zero: mean loss with the position table at zero, in nats per token (masked models:
            pseudo-loss)
            no null: the loss with positions has it
        [perplexity|mean_perplexity] by tables: perplexity (masked models: pseudo-), [e to the mean
            loss per token|mean over documents of e to each one's mean loss], by what the position
            table is
            no null: {OF_LOSS}
        nearer: share of tokens whose features without positions are nearer to their own with
            positions than another token's are
            null: one of two tokens at random
        fact cosine_interval by from, to: 95% interval of the mean cosine at zero
        cosine_across: mean cosine of tokens of different documents, positions kept
            no null: it is one itself, of features that share no text
        fact random_bound: cosine below which 99.9% of pairs of random vectors of this width stay
        fact [loss|perplexity|mean_perplexity]_interval by tables: 95% interval of [the mean loss
            in nats|e to the mean loss per token|the mean over documents of e to each one's mean
            loss], by what the position table is
        mixed_perplexity by tables: 2 to the mean loss in nats (mixed units), by what the
            position table is
            no null: {OF_LOSS}
        fact documents: documents measured
        fact left_out: documents left out because they are empty or of one token
        fact stride: tokens between the windows of a document longer than the model reads
        fact n_tokens: tokens whose features are compared
        fact n_predicted: tokens whose loss is measured
    """,
    least_documents=2,
    answer=Asks(
        "{perplexity_kind} (e to the mean loss per token) with the position table at zero",
        value="{loss_zero.exp:.3g} (with positions: {loss.exp:.3g})",
        chance="{loss_null.exp:.3g} by word frequencies",
        rule=Provided(
            Below("loss", **NATS),
            Led(
                Below("loss_zero", null="loss_null", interval="loss_interval[1]", **NATS),
                Below("loss_zero", null="loss_null", enough=works, **NATS),
            ),
        ),
        without=Without("loss", OF_FEATURES),
    ),
    says=[
        "Without positions the final features have a cosine of {cosine:.4f} ({cosine_interval:to "
        ".4f}) with those of the whole model. Nearly all random vectors stay below "
        "{random_bound:.3f}, but the features of two different tokens of one document have "
        "{cosine_null:.4f}; a token is nearer to itself without positions than to another token "
        "in {nearer.percent:.1f}% of cases (chance: 50%).",
        When("loss", PERPLEXITY),
        When("left_out", [" {left_out} ", ARE, " left out: empty, or of one token."]),
    ],
)
