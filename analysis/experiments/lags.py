"""Does attention go where queries and keys are in step?

At which lag queries and keys fit each other best, and whether attention goes there. N documents, T
tokens, L layers, H heads, R lags or offsets (positive: the key stands to the right), n heads drawn,
J columns drawn of each. Order: the experiment, what is measured on one document, the comparison;
the words; the picture.
"""

import numpy as np

from ..maths import factors, nulls, profiles
from ..maths import lags as maths
from ..measures import heads, inputs
from ..runner import draw, options
from ..runner.registry import register
from ..runner.stream import UNSAVED
from ..texts import corpus

NEAR = profiles.REACH  # lags within which peaks are compared
COLUMNS = 20  # of query and key, those with the largest singular values, as in the paper
REACH = 30  # lags drawn on each side, where the document is long enough
# a head has a direction if it gives an offset other than 0 this many times uniform attention
TIMES = 5
SAME = {
    "agree": "at the offset with most attention",
    "same_direction": "on the side with most attention",
}
LIGHT_GREY = "#C8C8C8"  # heads without a direction


def lags(
    model,
    run=UNSAVED,
    *,
    head: str = "auto",
    reach: int = 0,
    bias: int = 0,
    text: str = "sample",
    documents: int = 20,
    tokens: int = 0,
    seed: int = 0,
):
    """Cross-correlation of queries and keys, and the lag at which their scores peak.

    head: heads to draw, as L0H0,L1H2; auto: the sharpest to the left, to the right, and the
    broadest
    reach: lags to draw on each side, 10 or more (0: 30, or as many as the tokens allow)
    bias: 1 adds the biases of query and key, so that scores are exact; the paper leaves them out
    text: file or folder with one document or paragraph a line, - for standard input, or sample
    documents: documents to read (0: as many as the text holds, at most 100)
    tokens: length of each document (0: the model's longest input)
    seed: seed of the shuffles
    """
    options.within("bias", bias, 0, 1)
    document_set = None
    T = tokens or model.config.n_ctx
    if not model.missing:
        document_set = corpus.documents(model, text, documents, tokens)
        T = document_set.T
    options.within("tokens", T, NEAR + 1, model.config.n_ctx)
    reach = reach or min(REACH, T - 1)
    options.within("reach", reach, NEAR, T - 1)
    pairs = heads.select(head, model, document_set, run)
    split = {pair: factors.svd(*inputs.query_key(model, *pair, bias)) for pair in pairs}

    def measure(i, document):
        order = np.random.default_rng((seed, i)).permutation(T)
        return _measure(model, document, split, order, reach, bias)

    measured_on = document_set or [None]  # None: positions alone
    sums = run.gather(measure, measured_on, "documents")
    mean = {name: total / len(measured_on) for name, total in sums.items()}
    for name in ("attention", "scores", "score", "score_shuffled"):
        mean[name] = profiles.mean_attention(mean[name], T)  # for each pair of tokens
    result = {"documents": len(document_set or []), "T": T, "causal": model.config.causal}
    result["lags"] = profiles.offsets(reach)
    result["singular"] = np.array([S[:COLUMNS] for _, S, _ in split.values()])
    compared = _compare_peaks(mean, T, model.config.causal, seed)
    return result | compared | _select_heads(mean, compared, pairs, inputs.layers(model))


def _measure(model, document, split, order, reach, bias):
    """Attention, scores and curves of one document, and curves with its inputs in another order.

    split: {(layer, head): (U_Q, S, U_K)} of the heads drawn.
    """
    X, attention = _read_input(model, document, len(order), reach)
    shuffled = {layer: x[order] for layer, x in X.items()}
    sums = {"attention": attention}
    sums["scores"] = np.array([_scores(model, layer, x, bias) for layer, x in X.items()])
    sums |= _curves("", split, X, reach, bias)
    return sums | _curves("_shuffled", split, shuffled, reach, bias)


def _read_input(model, document, T, reach):
    """Input {layer: X [T D]} and attention profiles [L H R] of a document; None: of positions."""
    if document is None:
        layers = inputs.layers(model)
        X = {layer: inputs.of_positions(model, layer, T) for layer in layers}
        attention = [heads.from_positions(model, layer, T, reach) for layer in layers]
        return X, np.array(attention)
    attention = []

    def note_profile(pattern):
        attention.append(profiles.profile(pattern[0], reach))
        return pattern

    X = inputs.of_text(model, document, {"pattern": note_profile})
    return dict(enumerate(X)), np.array(attention)


def _scores(model, layer, x, bias):
    """Sum of the scores at each lag near 0, for every head of a layer: [T D] -> [H R]."""
    w, H = model.layers[layer], model.config.n_heads
    q, k = (x @ W + b * bias for W, b in ((w.W_Q, w.b_Q), (w.W_K, w.b_K)))
    q, k = (a.reshape(len(x), H, -1).swapaxes(0, 1) for a in (q, k))
    return _middle(maths.weighted(maths.xcov(q, k), np.ones((H, q.shape[-1]))), NEAR)


def _middle(curve, reach):
    """The lags -reach ... reach of [... 2T - 1]."""
    middle = curve.shape[-1] // 2
    return curve[..., middle - reach : middle + reach + 1]


def _curves(suffix, split, X, reach, bias):
    """xcorr of the first columns [n R J] and the weighted sum over all [n R] of the heads drawn."""
    columns, sums = [], []
    for (layer, _), (U_Q, S, U_K) in split.items():
        x = factors.with_ones(X[layer]) if bias else X[layer]
        q, k = x @ U_Q, x @ U_K
        columns.append(_middle(maths.xcorr(q, k)[:, :COLUMNS].T, reach).T)
        sums.append(_middle(maths.weighted(maths.xcov(q, k), S), reach))
    return {"xcorr" + suffix: columns, "score" + suffix: sums}


def _compare_peaks(mean, T, causal, seed):
    """Peaks of scores and of attention in every head, and how often they are the same."""
    lag, sharpness = maths.peak(mean["scores"], NEAR, causal)
    attention = _middle(mean["attention"], NEAR)
    best, most = attention.argmax(axis=-1), attention.max(axis=-1)
    offset = profiles.offsets()[best]
    uniform = profiles.mean_attention(profiles.uniform(T, causal), T)[best]
    directed = (offset != 0) & (most >= TIMES * uniform)
    beyond = maths.peak(mean["scores"], NEAR)[0] > 0  # to the right, were there no mask
    result = {"lag_of_heads": lag, "sharpness_of_heads": sharpness}
    result |= {"offset_of_heads": offset, "attention_of_heads": most, "directed": directed}
    result |= {"n_directed": directed.sum(), "n_beyond": causal * beyond.sum()}
    result |= _agreement("", lag.ravel(), offset.ravel(), seed)
    return result | _agreement("_directed", lag[directed], offset[directed], seed)


def _agreement(suffix, lag, offset, seed):
    """How often lags and offsets [N] are equal or on one side, with shuffled pairs as the null.

    Of the heads with a direction this is left out where it could tell nothing.
    """
    result = {}
    signs = np.sign(lag), np.sign(offset)
    for name, (a, b) in {"agree": (lag, offset), "same_direction": signs}.items():
        share, null = nulls.matches(a, b, seed)
        # otherwise every shuffle gives the same, or 5 % of them reach the most there can be
        varied = min(len(np.unique(a)), len(np.unique(b))) > 1 and null[1] < 1
        if varied or not suffix:
            result[name + suffix] = share
            result[name + suffix + "_null"] = null
    return result


def _select_heads(mean, compared, pairs, layers):
    """Curves and peaks of the heads drawn; layers: numbers of those that were measured."""
    rows = [layers.index(layer) for layer, _ in pairs]
    columns = [number for _, number in pairs]
    result = {}
    for name in ("xcorr", "xcorr_shuffled", "score", "score_shuffled"):
        result[name] = mean[name]
    for name in ("lag", "sharpness", "offset"):
        result[name] = compared[f"{name}_of_heads"][rows, columns]
    result["at_offset"] = compared["attention_of_heads"][rows, columns]
    result["attention"] = mean["attention"][rows, columns]
    result["heads"] = np.array([heads.name(*pair) for pair in pairs])
    result["papers_heads"] = np.array([heads.papers_name(*pair) for pair in pairs])
    return result


def says(r):
    """What the numbers show, in plain words."""
    verdicts = _describe_directed(r)
    masked = ""
    source = ""
    if r["causal"]:
        masked = (
            f" In {r['n_beyond']} heads the scores are highest to the right, where nothing may be "
            "looked at: there the mask makes the peak, not a shift."
        )
    if not r["documents"]:
        source = " All from positions alone, without words, in the layers that are there."
    return (
        f"{r['n_directed']} of {r['lag_of_heads'].size} heads have a direction. {verdicts}"
        f"Of all heads {r['agree']:.0%} have their highest scores {SAME['agree']} (shuffled: "
        f"{r['agree_null'][0]:.0%}, up to {r['agree_null'][1]:.0%}).{masked}{source}"
    )


def _describe_directed(r):
    """Sentences on the heads with a direction, each with a blank behind it."""
    text = ""
    undecided = []
    for name, where in SAME.items():
        if name + "_directed" in r:
            text += _describe_agreement(r, name + "_directed", where) + " "
        elif r["n_directed"]:
            undecided.append(where)
    if undecided:
        text += (
            f"Whether their scores are highest {' or '.join(undecided)} by more than chance "
            "cannot be told: these heads are so much alike, or so few, that shuffled heads agree "
            "as well. "
        )
    return text


def _describe_agreement(r, name, where):
    """A sentence on one comparison of the heads with a direction."""
    mean, high = r[name + "_null"]
    verdict = "" if r[name] > high else "no "
    return (
        f"In {r[name]:.0%} of these the scores are highest {where} (heads shuffled: {mean:.0%} on "
        f"average, 95 % of the shuffles up to {high:.0%}), {verdict}more than chance gives."
    )


def plot(r):
    """Columns, their weighted sum and the attention; beside them the peaks of all heads."""
    n = len(r["heads"])
    figure = draw.figure(3.1 * n + 4.2, 5.6)
    left, right = figure.subfigures(1, 2, width_ratios=(3.1 * n, 4.2), wspace=0.03)
    _draw_heads(left, r)
    _draw_all_heads(right, r)
    return figure


def _draw_heads(figure, r):
    """For each head drawn its columns above, their weighted sum and the attention below."""
    grid = figure.subplots(2, len(r["heads"]), squeeze=False, sharex=True)
    first_hidden = 0.5
    last_hidden = r["lags"][-1] if r["causal"] else first_hidden
    for i in range(len(r["heads"])):
        _draw_columns(grid[0, i], r, i)
        twin = _draw_sums(grid[1, i], r, i)
        for axes in grid[:, i]:
            axes.axvspan(first_hidden, last_hidden, color=draw.GREY, alpha=0.15, linewidth=0)
    grid[0, 0].set_ylabel("correlation of query and key,\ncolumn by column (xcorr)")
    grid[1, 0].set_ylabel("mean score of a pair of tokens", color=draw.BLUE)
    twin.set_ylabel("mean attention", color=draw.VERMILION)
    label = (
        "lag (tokens, positive = key to the right)\n"
        "grey lines: null, the same inputs in random order"
    )
    if r["causal"]:
        label += "; shaded: hidden by the mask"
    figure.supxlabel(label, fontsize=9)


def _draw_columns(axes, r, i):
    """A line for each column, darker for larger singular values; grey: inputs in random order."""
    from matplotlib import colormaps

    axes.plot(r["lags"], r["xcorr_shuffled"][i], color="#BBBBBB", linewidth=0.5)
    shades = r["singular"][i] / r["singular"][i].max()
    for curve, shade in zip(r["xcorr"][i].T[::-1], shades[::-1]):
        axes.plot(r["lags"], curve, color=colormaps["Blues"](0.35 + 0.65 * shade), linewidth=0.8)
    axes.axvline(0, color="black", linewidth=0.5)
    axes.set_title(
        f"{r['heads'][i]}, {r['papers_heads'][i]}: scores peak at {draw.offset(r['lag'][i])},\n"
        f"attention at {draw.offset(r['offset'][i])} ({r['at_offset'][i]:.2f})"
    )
    top = max(abs(r["xcorr"][i]).max(), 0.05)
    axes.set(xlim=(r["lags"][0], r["lags"][-1]), ylim=(-1.1 * top, 1.1 * top))


def _draw_sums(axes, r, i):
    """The weighted sum per pair of tokens; mean attention on a second axis, which is returned."""
    lags, score, attention = r["lags"], r["score"][i], r["attention"][i]
    twin = axes.twinx()
    twin.bar(lags, attention, width=0.8, color=draw.VERMILION, alpha=0.55, linewidth=0)
    twin.set_ylim(0, 1.1 * max(attention.max(), 0.01))
    twin.tick_params(axis="y", colors=draw.VERMILION)
    axes.set_zorder(twin.get_zorder() + 1)
    axes.patch.set_visible(False)
    axes.plot(lags, r["score_shuffled"][i], color=draw.GREY, linestyle="--", linewidth=1)
    axes.plot(lags, score, color=draw.BLUE)
    peak = r["lag"][i]
    axes.plot(peak, score[lags == peak], "o", color=draw.BLUE, markersize=4)
    axes.tick_params(axis="y", colors=draw.BLUE)
    return twin


def _draw_all_heads(figure, r):
    """Lag of the scores against offset of the attention; the larger a disc, the more heads."""
    axes = figure.subplots()
    most = max(abs(r["lag_of_heads"]).max(), abs(r["offset_of_heads"]).max())
    axes.plot([-most, most], [-most, most], color=draw.GREY, linewidth=0.8, zorder=0)
    peaks = np.stack([r["offset_of_heads"], r["lag_of_heads"]], axis=-1).reshape(-1, 2)
    for place in np.unique(peaks, axis=0):
        _draw_disc(axes, place, r["directed"].ravel()[(peaks == place).all(axis=1)])
    ticks = np.unique(np.linspace(-most, most, 11).astype(int))
    limits = (-most - 1.5, most + 1.5)
    axes.set(xlim=limits, ylim=limits, aspect="equal", xticks=ticks, yticks=ticks)
    axes.set_xlabel("offset with most attention (tokens)")
    axes.set_ylabel("lag with the highest mean score (tokens)")
    axes.set_title("how many heads have these two peaks")
    _draw_legend(figure, r)


def _draw_disc(axes, place, directed):
    """Heads with the same two peaks: blue and in front those with a direction [N]."""
    blue, grey = directed.sum(), (~directed).sum()
    for color, count in ((LIGHT_GREY, len(directed) * (grey > 0)), (draw.SKY, blue)):
        size = (8 + 2 * np.sqrt(count)) * (count > 0)
        axes.plot(*place, "o", color=color, markersize=size)
    axes.annotate(str(blue or grey), place, ha="center", va="center", fontsize=8)
    more = f"+{grey}" if blue and grey else ""
    axes.annotate(more, place, (6, -11), textcoords="offset points", fontsize=7, color="#666666")


def _draw_legend(figure, r):
    """What the two colours are, and how many heads of each have equal peaks."""
    from matplotlib.lines import Line2D

    directed = f"{r['n_directed']} with a direction{_rates(r, 'agree_directed')}"
    others = f"+ those without; all {r['directed'].size} heads{_rates(r, 'agree')}"
    handles = []
    for color, text in ((draw.SKY, directed), (LIGHT_GREY, others)):
        handles.append(Line2D([], [], color=color, marker="o", linestyle="", label=text))
    figure.legend(handles=handles, loc="outside lower center")


def _rates(r, name):
    """Share of the heads on the line, and by chance; nothing where it was not measured."""
    if name not in r:
        return ""
    return f": {r[name]:.0%} on the line (chance: {r[name + '_null'][0]:.0%})"


register(
    lags,
    draw=plot,
    says=says,
    look=(
        "Above, every line is one column of query and key: how well they fit when the key is "
        "moved by a lag; the darker, the more the column weighs. Below, their weighted sum for "
        "each pair of tokens, which is the mean score at that lag (blue), and the mean attention "
        "(red). Where many columns peak together the sum peaks, and attention should have its bar "
        "there. Grey lines: the same inputs in random order, where only the match of each token "
        "with itself is left, at lag 0. On the right heads are counted at their two peaks: on the "
        "line these are equal. A head that looks nowhere in particular has a highest score too, "
        "so those with a direction (blue) are counted apart. In a causal model only lags up to 0 "
        "can be compared."
    ),
    published=(
        "In roberta-base the weighted sum of head(1,1), here L0H0, has a gentle peak near lag -2 "
        "and that of head(8,9), here L7H8, a sharp one at -1, as their attention has (Yamamoto "
        "and Matsuzaki, figure 7)."
    ),
    figure="figure 7",
    numbers={
        "documents": "documents read (0: positions alone)",
        "heads": "heads drawn",
        "lag": "the lag, in tokens, at which their mean score is highest",
        "sharpness": (
            "how far that peak stands above the median within 10 tokens, in standard deviations: "
            "a wave has 1.4, one spike 4.7"
        ),
        "offset": "the offset, in tokens, at which their mean attention is highest",
        "n_directed": (
            f"heads that give an offset other than 0 at least {TIMES} times what uniform "
            "attention gives"
        ),
        "agree_directed": (
            "share of these whose scores are highest at the offset with most attention"
        ),
        "agree_directed_null": "the same for shuffled pairs of heads: mean, 95 % quantile",
        "same_direction_directed": (
            "share of these whose scores are highest on the same side as their attention"
        ),
        "same_direction_directed_null": "the same for shuffled pairs of heads: mean, 95 % quantile",
        "agree": "share of all heads whose scores are highest at the offset with most attention",
        "agree_null": "the same for shuffled pairs of heads: mean, 95 % quantile",
        "same_direction": "share of all heads with both on the same side, or both at 0",
        "same_direction_null": "the same for shuffled pairs of heads: mean, 95 % quantile",
        "n_beyond": (
            "heads of a causal model whose scores are highest to the right, which the mask hides"
        ),
    },
    weights_only=True,
)
