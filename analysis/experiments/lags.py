"""Does attention go to the offset at which queries and keys match best?

At which lag queries and keys fit each other best, whether attention goes there, and how much of the
fit is between positions. Attention is the softmax of the very scores whose lag is measured, so it
is nearly a tautology that the two agree, but not that positions make the peak.

N documents, T tokens, L layers, H heads, R lags or offsets (positive: the key stands to the right),
n heads drawn, J of their d columns drawn.
"""

from typing import Annotated

import numpy as np

from ..contract import Asks, Led, Of, Without, options, register
from ..drawing import Part, Rows, When, bar_sample, draw, each, figures, line_sample
from ..maths import lags as maths
from ..maths import nulls, profiles
from ..measures import heads, lag_signals
from ..measures.lag_signals import middle
from ..running.stream import UNSAVED
from ..texts import corpus

NEAR = profiles.REACH  # lags within which peaks are compared
# of query and key, those with the largest singular values, as in the paper; where they are turned,
# the fastest
COLUMNS = 20
FAR = 5  # of the lags drawn, the farthest on each side
REACH = 30  # lags drawn on each side, where the document is long enough
HALF = 0.5  # of a peak, from which it is position x position
MOST = 0.9  # of the heads with a direction: "yes" allows one exception in ten
SHUFFLES = 20  # of the query positions
SAME = {
    "agree": "at the offset with most attention",
    "same_direction": "on the side with most attention",
}
LIGHT_GREY = "#909090"  # heads without a direction


def lags(
    model,
    run=UNSAVED,
    *,
    head: options.Heads = "auto",
    reach: Annotated[int, options.OrZero(options.AtLeast(NEAR))] = 0,
    bias: bool = False,
    text: options.Text = "sample",
    documents: options.Documents = 20,
    tokens: options.Tokens = 0,
    seed: options.Seed = 0,
):
    """Cross-correlation of queries and keys, the lag at which their scores peak, and how much of
    the peak is position x position.

    reach: lags to draw on each side (0: 30, or as many as the tokens allow)
    bias: add the biases of query and key, so that scores are exact; the paper leaves them out
    (with rotary positions, scores are exact anyway)
    """
    signals = lag_signals.signals(model, bias)
    document_set = None
    T = tokens or model.config.n_ctx
    if not model.missing:
        document_set = corpus.documents(model, text, documents, tokens)
        T = document_set.T
    options.within("tokens", T, NEAR + 1, model.config.n_ctx)
    reach = reach or min(REACH, T - 1)
    options.within("reach", reach, NEAR, T - 1)
    pairs = heads.select(head, model, document_set, run)
    split = {pair: signals.factors(*pair) for pair in pairs}

    def measure(i, document):
        order = np.random.default_rng((seed, i)).permutation(T)
        X, attention = yield from _signals(signals, document, T, reach)
        by_place = {} if document is None else {HALVES[i % 2]: np.array([*X.values()])}
        return _measure(signals, X, attention, split, order, reach) | by_place

    mean = run.gather(measure, document_set or [None], "documents")  # None: positions alone
    places = [mean.pop(half) for half in HALVES if half in mean]
    mean = {name: total / len(document_set or [None]) for name, total in mean.items()}
    result = {"documents": len(document_set or []), "T": T, "causal": model.config.causal}
    result |= {"lags": profiles.offsets(reach), "layers": np.array(signals.layers)}
    result |= {"score_sum": mean["score"], "score_sum_shuffled": mean["score_shuffled"]}
    result["singular"] = np.array([S[:COLUMNS] for _, S, _ in split.values()])
    for name in ("attention", "scores", "score", "score_shuffled", "parts", "parts_shuffled"):
        mean[name] = profiles.mean_attention(mean[name], T)  # for each pair of tokens
    result |= _compare_peaks(mean, T, model.config.causal, seed)
    if len(places) == len(HALVES):
        result |= _position_part(signals, places, mean["scores"], result, seed)
    result |= _select_heads(mean, result, pairs)
    return result | _add_up(mean, result)


BY_HEAD = (
    "head", "offset of most attention", "attention to it", "lag of the highest score",
    "sharpness of its peak", "by chance", "position × position in it", "by chance: share",
)  # fmt: skip
OF_HEADS = {  # the results, in this order
    "offset_of_heads": "offset",
    "attention_of_heads": ".2f",
    "lag_of_heads": "offset",
    "sharpness_of_heads": ".2f",
    "sharpness_null": ".2f",
    "position_share_of_heads": ".2f",
    "position_share_null": ".2f",
}


def by_head(r):
    """Every head with a direction: its attention, the peak of its scores, and what makes it."""
    pairs = np.argwhere(r["directed"])
    places = tuple(pairs.T)
    entries = [[heads.name(*pair) for pair in pairs]]
    for name, form in OF_HEADS.items():
        values = np.broadcast_to(r.get(name, np.nan), r["directed"].shape)[places]
        entries.append([draw.offset(x) if form == "offset" else f"{x:.2f}" for x in values])
    return dict(zip(BY_HEAD, entries, strict=True))


HALVES = "places_even", "places_odd"  # inputs of the documents with even and with odd numbers


def _signals(signals, document, T, reach):
    """{layer: signal} and attention profiles of a document; of None those of positions alone."""
    if document is None:
        return signals.of_positions(T, reach)
    return (yield signals.of_document(document, reach))


def _measure(signals, X, attention, split, order, reach):
    """Attention, scores and curves of one document, and curves with its places in another order.

    X: {layer: signal}. split: {(layer, head): factors} of the heads drawn.
    """
    shuffled = {layer: signals.reordered(x, order) for layer, x in X.items()}
    sums = {"attention": attention}
    sums["scores"] = np.array([signals.scores(layer, x, x, NEAR) for layer, x in X.items()])
    sums |= _curves("", signals, split, X, reach)
    return sums | _curves("_shuffled", signals, split, shuffled, reach)


def _curves(suffix, signals, split, X, reach):
    """Of the heads drawn: xcorr of the first columns [n R J], the weighted sum over all [n R], and
    its parts, column by column [n d R].
    """
    columns, sums, parts = [], [], []
    for (layer, head), of_head in split.items():
        q, k = signals.columns(X[layer], head, of_head)
        covariance = maths.xcov(q, k)
        columns.append(middle(maths.xcorr(q, k)[:, :COLUMNS].T, reach).T)
        sums.append(middle(maths.weighted(covariance, of_head[1]), reach))
        parts.append(middle((covariance * of_head[1]).T, reach))
    return {"xcorr" + suffix: columns, "score" + suffix: sums, "parts" + suffix: parts}


def _compare_peaks(mean, T, causal, seed):
    """Peaks of scores and of attention in every head, and how often they are the same."""
    lag, sharpness = maths.peak(mean["scores"], NEAR, causal)
    attention = middle(mean["attention"], NEAR)
    best, most = attention.argmax(axis=-1), attention.max(axis=-1)
    offset = profiles.offsets()[best]
    directed = profiles.directed(attention, T, causal=causal)
    beyond = maths.peak(mean["scores"], NEAR)[0] > 0  # to the right, were there no mask
    result = {"lag_of_heads": lag, "sharpness_of_heads": sharpness}
    result |= {"offset_of_heads": offset, "attention_of_heads": most, "directed": directed}
    result |= {"n_directed": directed.sum(), "n_beyond": causal * beyond.sum()}
    result |= heads.by_strength(most, directed)
    result |= _agreement("", lag.ravel(), offset.ravel(), seed)
    return result | _agreement("_directed", lag[directed], offset[directed], seed)


def _agreement(suffix, lag, offset, seed):
    """How often lags and offsets [N] are equal or on one side; null: 99% of shuffled pairs.

    Of the heads with a direction this is left out where it could tell nothing.
    """
    result = {}
    signs = np.sign(lag), np.sign(offset)
    for name, (a, b) in {"agree": (lag, offset), "same_direction": signs}.items():
        share, (_, high) = nulls.matches(a, b, seed)
        # otherwise every shuffle gives the same, or 1% of them reach the most there can be
        varied = min(len(np.unique(a)), len(np.unique(b))) > 1 and high < 1
        if varied or not suffix:
            result |= {name + suffix: share, f"{name}{suffix}_null": high}
    return result


def _position_part(signals, places, scores, compared, seed):
    """The part of the scores that position x position makes, and its share of each peak [L H].

    places: sums of the signals over two halves of the documents, by layer. Position is the mean of
    what stands at a position. Queries have it from one half, keys from the other, so that no text
    is on both sides. The null has the query positions in random order.
    """
    layers, T, causal = compared["layers"], int(compared["T"]), bool(compared["causal"])
    n = int(compared["documents"])
    even, odd = places[0] / ((n + 1) // 2), places[1] / (n // 2)
    reach = compared["lags"][-1]

    def part(order, reach):
        total = []
        for layer, a, b in zip(layers, even, odd):
            even_to_odd = signals.scores(layer, signals.reordered(a, order), b, reach)
            odd_to_even = signals.scores(layer, signals.reordered(b, order), a, reach)
            total.append((even_to_odd + odd_to_even) / 2)
        return profiles.mean_attention(np.array(total), T)

    position = part(slice(None), reach)
    near = middle(position, NEAR)
    share = maths.peak_share(near, scores, NEAR, causal)
    by_chance, sharpness = [], []
    rng = np.random.default_rng(seed)
    for _ in range(SHUFFLES):
        shuffled = part(rng.permutation(T), NEAR)
        by_chance.append(maths.peak_share(shuffled, scores, NEAR, causal))
        sharpness.append(maths.peak(shuffled, NEAR, causal)[1])
    result = {"position_scores": position, "position_share_of_heads": share}
    result["position_lag"] = maths.peak(near, NEAR, causal)[0]
    result["position_shares_null"] = np.array(by_chance)
    result["sharpness_null"] = np.quantile(sharpness, nulls.CHANCE)
    return result | _count_positions(result, compared)


def _count_positions(part, compared):
    """Heads with a direction whose peak is position x position, and what chance gives."""
    share, by_chance = part["position_share_of_heads"], part["position_shares_null"]
    directed = compared["directed"]
    n_directed = max(directed.sum(), 1)
    by_layer = (directed & (share >= HALF)).sum(axis=1)
    result = {"n_positions": by_layer.sum(), "n_positions_by_layer": by_layer}
    result["n_positions_null"] = (directed & (by_chance >= HALF)).sum(axis=(1, 2)).max()
    result["n_directed_by_layer"] = directed.sum(axis=1)
    result["layer_names"] = np.array([f"layer {layer}" for layer in compared["layers"]])
    result["share_positions"] = result["n_positions"] / n_directed
    result["share_positions_null"] = result["n_positions_null"] / n_directed
    return result | {"position_share_null": np.quantile(by_chance, 0.99)}


def _select_heads(mean, compared, pairs):
    """Curves and peaks of the heads drawn."""
    layers = compared["layers"].tolist()
    rows = [layers.index(layer) for layer, _ in pairs]
    columns = [number for _, number in pairs]
    result = {name: mean[name] for name in ("xcorr", "xcorr_shuffled", "score", "score_shuffled")}
    for name in ("lag", "sharpness", "offset", "position_share"):
        if f"{name}_of_heads" in compared:
            result[name] = compared[f"{name}_of_heads"][rows, columns]
    if "position_scores" in compared:
        result["score_positions"] = compared["position_scores"][rows, columns]
    result["at_offset"] = compared["attention_of_heads"][rows, columns]
    result["drawn_directed"] = compared["directed"][rows, columns]
    result["attention"] = mean["attention"][rows, columns]
    return result | heads.named(pairs)


def _add_up(mean, r):
    """The parts of the columns drawn, each less its median over the lags, and how far they add up.

    At the peak of the scores, and at the FAR farthest lags of each side that a query may see. The
    null is the same with the inputs in random order, at their own peak; there lag 0 is left out,
    where each token matches itself.
    """
    lags = r["lags"]
    visible = (lags <= 0) | (not r["causal"])
    far = visible & (abs(lags) > lags[-1] - FAR)
    of_text, shuffled = (_centred(mean[name], visible) for name in ("parts", "parts_shuffled"))
    near = visible & (lags != 0) & (abs(lags) <= NEAR)
    highest = np.where(near, shuffled.sum(axis=1), -np.inf).argmax(axis=1)
    result = {"parts": of_text.astype(np.float32)}
    for end, parts, peak in (
        ("", of_text, (lags == r["lag"][:, None]).argmax(axis=1)),
        ("_null", shuffled, highest),
    ):
        adding = maths.adding(parts)  # [n R]
        result["adding_at_peak" + end] = adding[np.arange(len(peak)), peak]
        result["adding_far" + end] = adding[:, far].mean(axis=1)
    return result


def _centred(parts, visible):
    """Parts [n d R] less their medians over the lags that a query may see: these move no peak."""
    return parts - np.median(parts[..., visible], axis=-1, keepdims=True)


def untold(r):
    """Comparisons of the heads with a direction that tell nothing: shuffled heads agree as well."""
    wheres = [where for name, where in SAME.items() if f"{name}_directed" not in r]
    return " or ".join(wheres) if r["n_directed"] else ""


def by_positions(r):
    """Heads with a direction whose peak is due to positions; without documents, all of them."""
    unmeasured = 0 if r["documents"] else r["n_directed"]
    return r.get("n_positions", unmeasured)


def by_positions_null(r):
    """As many with the query positions shuffled."""
    return r.get("n_positions_null", 0)


def asked(r):
    """What heads are asked: those with a direction, or all where these are too alike to tell."""
    return "agree_directed" if "agree_directed" in r else "agree"


def possible(r):
    """The share of them that peak where they attend, and the most that it may be.

    Where heads with a direction are too alike to tell, and positions make their peaks, any share.
    """
    share = float(r[asked(r)])
    is_told = asked(r) == "agree_directed" or not by_positions(r)
    return share, share if is_told else 1.0


def n_asked(r):
    """How many these heads are."""
    return r["n_directed"] if asked(r) == "agree_directed" else r["directed"].size


def counted(null=""):
    """A piece of a sentence: how many of the heads asked peak where they attend."""
    return lambda r: f"{round(n_asked(r) * float(r[asked(r) + null]))}"


def farthest(r):
    """The first of the farthest lags."""
    return r["lags"][-1] - FAR + 1


AGREEMENTS = [
    When(
        f"{name}_directed >= 0",
        [
            f"In {{{name}_directed:.0%}} of these the scores are highest {where} (99% of the "
            f"shuffles of heads: up to {{{name}_directed_null:.0%}}), ",
            When(f"{name}_directed > {name}_directed_null", "", "no "),
            "more than chance gives. ",
        ],
    )
    for name, where in SAME.items()
]
UNTOLD = (
    "Whether their scores are highest {untold} by more than chance cannot be told: these heads are "
    "so much alike, or so few, that shuffled heads agree as well. "
)
BY_LAYER = "{layer_names}: {n_positions_by_layer} of {n_directed_by_layer}"
POSITIONS = [
    "Position × position, the part of the scores made by what stands at a position in other "
    "documents, holds at least half of the peak in {n_positions} of the {n_directed} heads with a "
    "direction",
    When("n_directed", [" (", Rows(BY_LAYER, where="n_directed_by_layer", join=", "), ")"]),
    "; with the query positions shuffled, in {n_positions_null} at most.",
]
WITH_DIRECTION = "heads with a direction whose scores peak where they attend"
OF_ALL = "heads whose scores peak where they attend"
AND_ALL = ", and heads with a direction whose peak is due to positions"
MEASURE = [
    When("agree_directed >= 0", WITH_DIRECTION, OF_ALL),
    When(
        "n_positions >= 0",
        When("agree_directed >= 0", ", and whose peak is due to positions", AND_ALL),
    ),
]
COUNTED = When("n_positions >= 0", ", and {n_positions} of {n_directed}")


def _draw_one_head(figure, r, i):
    """The columns of one head, their weighted sum, and the mean beside the attention."""
    panels = figure.subplots(1, 3)
    _draw_columns(panels[0], r, i)
    _draw_sum(panels[1], r, i)
    twin = _draw_mean(panels[2], r, i)
    last_hidden = r["lags"][-1] if r["causal"] else FIRST_HIDDEN
    for axes in panels:
        axes.axvspan(FIRST_HIDDEN, last_hidden, **HIDDEN, linewidth=0)
        axes.set_xlabel("lag (tokens, + right)")
    panels[0].set_ylabel(
        "cross-correlation of query and key,\nby column, strong ones in strong colour"
    )
    panels[1].set_ylabel("the columns' parts of the score,\nstacked; line: their sum")
    panels[2].set_ylabel("mean score\nof a pair", color=draw.BLUE)
    twin.set_ylabel("mean attention", color=draw.VERMILION)
    figure.legend(handles=[*_samples(r)], loc="outside lower center", ncols=4)


def _samples(r):
    yield line_sample("mean score", color=draw.BLUE)
    if "score_positions" in r:
        yield line_sample(MOVED, color=draw.ORANGE, linestyle="--")
    yield line_sample("null: inputs in random order", **NULL)
    yield bar_sample("mean attention", **BAR)
    if r["causal"]:
        yield bar_sample("hidden by the mask", **HIDDEN)


NULL = {"color": draw.GREY, "linestyle": "--", "linewidth": 1}
MANY = 16  # curves of a panel that are drawn as pixels: as lines they make a file of megabytes
BAR = {"color": draw.VERMILION, "alpha": 0.55}
FIRST_HIDDEN = 0.5  # lag from which a mask hides
HIDDEN = {"color": draw.GREY, "alpha": 0.15}
MOVED = "its part from positions alone, at the same median"


def _draw_columns(axes, r, i):
    """A line for each column, darker for larger singular values; grey: inputs in random order."""
    from matplotlib import colormaps

    axes.plot(r["lags"], r["xcorr_shuffled"][i], color=draw.GREY, linewidth=0.5)
    shades = r["singular"][i] / r["singular"][i].max()
    for curve, shade in zip(r["xcorr"][i].T[::-1], shades[::-1]):
        style = {"color": colormaps["Blues"](0.65 + 0.35 * shade), "linewidth": 0.8}
        axes.plot(r["lags"], curve, **style, rasterized=len(shades) > MANY)
    axes.axvline(0, color="black", linewidth=0.5)
    axes.set_title(
        f"{r['heads'][i]}, {r['papers_heads'][i]}:\nscores peak at {draw.offset(r['lag'][i])},\n"
        f"attention at {draw.offset(r['offset'][i])} ({r['at_offset'][i]:.2f})"
    )
    top = max(abs(r["xcorr"][i]).max(), 0.05)
    axes.set(xlim=(r["lags"][0], r["lags"][-1]), ylim=(-1.1 * top, 1.1 * top))


def _draw_sum(axes, r, i):
    """The columns' parts of the mean score, stacked to both sides of 0, and their sum."""
    from matplotlib import colormaps

    lags, parts = r["lags"], r["parts"][i]  # [d R]
    shades = np.resize((0.75, 0.45, 0.6, 0.3), len(parts))  # neighbours differ
    for part in (np.maximum(parts, 0), np.minimum(parts, 0)):
        areas = axes.stackplot(lags, part, colors=colormaps["Blues"](shades), linewidth=0)
        for area in areas:
            area.set_rasterized(len(parts) > MANY)
    axes.plot(lags, parts.sum(axis=0), color="black", linewidth=1.6)
    axes.axhline(0, color="black", linewidth=0.5)
    at_peak, far = r["adding_at_peak"][i], r["adding_far"][i]
    axes.set_title(
        f"they add up (1) or cancel (0):\n{at_peak:.2f} at the peak, {far:.2f} at the ends"
    )


def _draw_mean(axes, r, i):
    """The mean for a pair of tokens and its part; mean attention on a second axis: returned."""
    lags, score, attention = r["lags"], r["score"][i], r["attention"][i]
    twin = axes.twinx()
    twin.bar(lags, attention, width=0.8, **BAR, linewidth=0)
    twin.set_ylim(0, 1.1 * max(attention.max(), 0.01))
    twin.tick_params(axis="y", colors=draw.VERMILION)
    axes.set_zorder(twin.get_zorder() + 1)
    axes.patch.set_visible(False)
    axes.plot(lags, r["score_shuffled"][i], **NULL)
    axes.plot(lags, score, color=draw.BLUE, linewidth=2.4)
    if "score_positions" in r:
        part = r["score_positions"][i]
        moved = part - np.median(middle(part, NEAR)) + np.median(middle(score, NEAR))
        axes.plot(lags, moved, color=draw.ORANGE, linestyle="--", linewidth=1.2)
        axes.set_title(f"positions: {r['position_share'][i]:.2f} of the peak")
    peak = r["lag"][i]
    axes.plot(peak, score[lags == peak], "o", color=draw.BLUE, markersize=4)
    axes.tick_params(axis="y", colors=draw.BLUE)
    return twin


def _draw_all_heads(figure, r):
    """The two peaks of every head, and the share of the peak that positions hold."""
    rows = 2 if "position_share_of_heads" in r else 1
    panels = figure.subplots(1, rows, squeeze=False)[0]
    _draw_peaks(panels[0], r)
    if rows == 2:
        _draw_shares(panels[1], r)
    directed = f"{r['n_directed']} heads with a direction{_rates(r, 'agree_directed')}"
    others = f"heads without; of all {r['directed'].size}{_rates(r, 'agree')}"
    disc = {"marker": "o", "linestyle": ""}
    samples = [line_sample(directed, color=draw.SKY, **disc)]
    samples.append(line_sample(others, color=LIGHT_GREY, **disc))
    figure.legend(handles=samples, loc="outside lower center", ncols=2)


def _draw_peaks(axes, r):
    """Lag of the scores against offset of the attention; the larger a disc, the more heads."""
    most = max(abs(r["lag_of_heads"]).max(), abs(r["offset_of_heads"]).max())
    axes.plot([-most, most], [-most, most], color=draw.GREY, linewidth=0.8, zorder=0)
    peaks = np.stack([r["offset_of_heads"], r["lag_of_heads"]], axis=-1).reshape(-1, 2)
    for place in np.unique(peaks, axis=0):
        _draw_disc(axes, place, r["directed"].ravel()[(peaks == place).all(axis=1)])
    step = -(-most // 5)
    ticks = step * np.arange(-(most // max(step, 1)), most // max(step, 1) + 1)
    limits = (-most - 1.5, most + 1.5)
    axes.set(xlim=limits, ylim=limits, aspect="equal", xticks=ticks, yticks=ticks)
    axes.set_xlabel("offset with most attention (tokens)")
    axes.set_ylabel("lag with the highest\nmean score (tokens)")
    axes.set_title("heads counted at their two peaks\n(+1: one more, without a direction)")


def _draw_disc(axes, place, directed):
    """Heads with the same two peaks: blue and in front those with a direction [N]."""
    blue, grey = directed.sum(), (~directed).sum()
    for color, count in ((LIGHT_GREY, len(directed) * (grey > 0)), (draw.SKY, blue)):
        size = min(9 + 2 * np.sqrt(count), 20) * (count > 0)
        axes.plot(*place, "o", color=color, markersize=size)
    axes.annotate(str(blue or grey), place, ha="center", va="center", fontsize=10)
    more = f"+{grey}" if blue and grey else ""
    axes.annotate(more, place, (7, -12), textcoords="offset points", fontsize=10, color="#555555")


def _draw_shares(axes, r):
    """Share of the peak that position x position holds, for the heads with a direction."""
    if not r["n_directed"]:
        draw.nothing(axes, "no head has a direction")
        return
    L, H = r["directed"].shape
    edge = {"markeredgecolor": "black", "markeredgewidth": 0.5}
    for row, head in np.argwhere(r["directed"]):
        place = row + 0.6 * ((head + 0.5) / H - 0.5)  # side by side, in the order of the heads
        share = r["position_share_of_heads"][row, head]
        axes.plot(place, share, "o", color=draw.ORANGE, markersize=6, **edge)
    axes.axhline(r["position_share_null"], color=draw.GREY, linestyle="--", linewidth=1)
    axes.set_xticks(range(L), r["layers"])
    axes.set(xlim=(-0.5, L - 0.5), xlabel="layer")
    axes.set_ylabel("share of the peak of the scores\nthat positions alone make")
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, -0.1), max(high, 1.1))
    axes.set_title("each head with a direction\n(dashed, null: positions shuffled, 99% lower)")


def _rates(r, name):
    """Share of the heads on the line, and by chance; nothing where it was not measured."""
    if name not in r:
        return ""
    return f":\n{r[name]:.0%} on the line (chance: {r[name + '_null']:.0%})"


register(
    lags,
    draw=figures(Part(_draw_all_heads, height=5), each(_draw_one_head, 4.2, "heads")),
    look="In the first figure heads are counted at their two peaks: on the line they are equal. A "
    "head that looks nowhere in particular has a highest score too, so those with a direction "
    "(blue) are counted apart. Then each head has a figure. On its left every line is one "
    "column of query and key: how well they fit when the key is moved by a lag; darker "
    "columns weigh more. In the middle, what each column adds to the mean score of a pair of "
    "tokens, less its own median, stacked to both sides of 0. Where maxima of many columns "
    "meet, all stand on one side and the thick line, their sum, is as high as the stack; "
    "where maxima meet minima it lies between two stacks. The right has the mean score again "
    "(blue), and the mean attention (vermilion), which should have its bar where the sum peaks: it "
    "is the softmax of these scores. Orange is the part of the scores between positions, "
    "which are the mean of what stands at a position in half of the documents for queries and in "
    "the other half for keys: where it follows the blue line, positions make the peak; where "
    "it is flat, the words do, or what earlier layers made of words and positions. Grey "
    "lines: the inputs in random order, where only the match of each token with itself is "
    "left, at lag 0. In a causal model only lags up to 0 can be compared.",
    published="In roberta-base the weighted sum of head(1,1), here L0H0, has a gentle peak near "
    "lag -2 and that of head(8,9), here L7H8, a sharp one at -1, as their attention has (Yamamoto "
    "and Matsuzaki, figure 7).",
    figure="figure 7",
    numbers="""
        fact n_directed: heads with a direction: {profiles.DIRECTION}
        fact n_by_strength by strengths: heads with a direction, by the attention to their offset
        agree_directed: share of the heads with a direction whose scores are highest at the offset
            with most attention
            null: 99% quantile for shuffled pairs of heads
        n_positions: heads with a direction in which position × position (queries from one half of
            the documents, keys from the other) holds at least half of the peak of the scores
            null: the most in {SHUFFLES} shuffles of the query positions
        position_share by heads: share of position × position in the peak of the scores
            null: 99% quantile over all heads and {SHUFFLES} shuffles of the query positions
        n_positions_by_layer by layer_names: heads with a direction whose peak is at least half
            position × position, by layer
            no null: the number in all layers has one
        fact n_directed_by_layer by layer_names: heads with a direction, by layer
        agree: share of all heads whose scores are highest at the offset with most attention
            null: 99% quantile for shuffled pairs of heads
        fact heads: heads drawn
        lag by heads: lag, in tokens, at which the mean score is highest
            no null: some lag is always the highest; the sharpness says by how much
        sharpness by heads: how far the peak of the scores stands above the median within 10 tokens,
            in standard deviations: a wave has 1.4, one spike 4.7
            null: 99% quantile over all heads and {SHUFFLES} shuffles of the query positions
        adding_at_peak by heads: how far the columns' parts of the score add up at its peak: the
            size of their sum over the sum of their sizes, each part less its median over the lags
            drawn
            null: how far the parts add up with the inputs in random order, at the peak of their
            sum, lag 0 left out
        adding_far by heads: how far the parts add up at the {FAR} farthest lags drawn on each side,
            on average
            null: how far the parts add up at the farthest lags with the inputs in random order
        fact documents: documents read (0: positions alone)
    """,
    weights_only=True,
    answer=Asks(
        When("n_directed", MEASURE, WITH_DIRECTION),
        value=[counted(), " of {n_asked}", COUNTED],
        chance=["up to ", counted("_null"), When("n_positions >= 0", ", and {n_positions_null}")],
        rule=Led(
            Of(lambda r: r[asked(r)], lambda r: r[f"{asked(r)}_null"], interval=possible),
            Of(by_positions, by_positions_null, out_of="n_directed", enough=MOST),
        ),
        without=Without("n_directed", "0 heads with a direction", "0 heads"),
    ),
    says=[
        "{n_directed} of {lag_of_heads.size} heads have a direction.",
        " ",
        *AGREEMENTS,
        When("untold", UNTOLD),
        f"Of all heads {{agree:.0%}} have their highest scores {SAME['agree']} (99% of the "
        "shuffles: up to {agree_null:.0%}). Attention is the softmax of these scores, so that the "
        "two agree is nearly a tautology. ",
        When(
            "documents",
            When(
                "n_positions >= 0",
                POSITIONS,
                "Which part of a peak is position × position takes two documents or more.",
            ),
            "All this is from positions alone, without words, in the layers that are there: here "
            "every peak is position × position.",
        ),
        When(
            "causal",
            " In {n_beyond} heads the scores are highest to the right, where no query may look: "
            "there the mask makes the peak, not a shift.",
        ),
        " The parts of the score that single columns make add up (1) or cancel (0). At the peak, "
        "and at lags of {farthest} to {lags[-1]} (inputs in random order): ",
        Rows(
            "{heads} {adding_at_peak:.2f} ({adding_at_peak_null:.2f}) and {adding_far:.2f} "
            "({adding_far_null:.2f})",
            join=", ",
        ),
        ".",
        heads.describe_strengths,
    ],
    per_head=(
        "lag_of_heads",
        "sharpness_of_heads",
        "offset_of_heads",
        "attention_of_heads",
        "position_share_of_heads",
        "position_lag",
    ),
    by_head=by_head,
    shares_passes=True,
)
