"""At which lag queries and keys fit each other best, and whether attention goes there.

N documents, T tokens, L layers, H heads, R lags or offsets (positive: the key stands to the right), n heads drawn,
J columns drawn of each. Order: the picture, the experiment, what is measured on one document, the comparison.
"""

import numpy as np

from .. import corpus, draw, factors, heads, inputs, lags as maths, nulls, profiles, stream
from ..registry import experiment

NEAR = profiles.REACH  # lags within which peaks are compared
COLUMNS = 20  # of query and key, those with the largest singular values, as in the paper
REACH = 30    # lags drawn, where there are as many
TIMES = 5     # a head has a direction if it gives an offset other than 0 so many times what uniform attention gives
SAME = {"agree": "at the offset with most attention", "same_direction": "on the side with most attention"}


def plot(r):
    """Columns on top, their weighted sum and the attention below; beside them the peaks of all heads."""
    n = len(r["heads"])
    figure = draw.figure(3.1 * n + 4.2, 5.6)
    left, right = figure.subfigures(1, 2, width_ratios=(3.1 * n, 4.2), wspace=0.03)
    grid = left.subplots(2, n, squeeze=False, sharex=True)
    for i in range(n):
        _columns(grid[0, i], r, i)
        last = _sums(grid[1, i], r, i)
        for axes in grid[:, i]:
            axes.axvspan(0.5, r["lags"][-1] if r["causal"] else 0.5, color=draw.GREY, alpha=0.15, linewidth=0)
    grid[0, 0].set_ylabel("correlation of query and key,\ncolumn by column (xcorr)")
    grid[1, 0].set_ylabel("mean score of a pair of tokens", color=draw.BLUE)
    last.set_ylabel("mean attention", color=draw.VERMILION)
    left.supxlabel("lag (tokens, positive = key to the right)\ngrey lines: null, the same inputs in random order"
                   + "; shaded: hidden by the mask" * int(r["causal"]), fontsize=9)
    _all(right, r)
    return figure


def _columns(axes, r, i):
    """A line for each column, the darker the larger its singular value, on those of the inputs in random order."""
    from matplotlib import colormaps
    axes.plot(r["lags"], r["xcorr_shuffled"][i], color="#BBBBBB", linewidth=0.5)
    for curve, share in zip(r["xcorr"][i].T[::-1], r["singular"][i][::-1] / r["singular"][i].max()):
        axes.plot(r["lags"], curve, color=colormaps["Blues"](0.35 + 0.65 * share), linewidth=0.8)
    axes.axvline(0, color="black", linewidth=0.5)
    axes.set_title(f"{r['heads'][i]}, {r['papers_heads'][i]}: scores peak at {draw.offset(r['lag'][i])},\n"
                   f"attention at {draw.offset(r['offset'][i])} ({r['at_offset'][i]:.2f})")
    top = max(abs(r["xcorr"][i]).max(), 0.05)
    axes.set(xlim=(r["lags"][0], r["lags"][-1]), ylim=(-1.1 * top, 1.1 * top))


def _sums(axes, r, i):
    """The weighted sum per pair of tokens, and mean attention on an axis of its own."""
    other = axes.twinx()
    other.bar(r["lags"], r["attention"][i], width=0.8, color=draw.VERMILION, alpha=0.55, linewidth=0)
    other.set_ylim(0, 1.1 * max(r["attention"][i].max(), 0.01))
    other.tick_params(axis="y", colors=draw.VERMILION)
    axes.set_zorder(other.get_zorder() + 1)
    axes.patch.set_visible(False)
    axes.plot(r["lags"], r["score_shuffled"][i], color=draw.GREY, linestyle="--", linewidth=1)
    axes.plot(r["lags"], r["score"][i], color=draw.BLUE)
    axes.plot(r["lag"][i], r["score"][i][r["lags"] == r["lag"][i]], "o", color=draw.BLUE, markersize=4)
    axes.tick_params(axis="y", colors=draw.BLUE)
    return other


def _all(figure, r):
    """Lag of the scores against offset of the attention: discs as large as the heads there are many."""
    from matplotlib.lines import Line2D
    axes, most = figure.subplots(), max(abs(r[key]).max() for key in ("lag_of_heads", "offset_of_heads"))
    axes.plot([-most, most], [-most, most], color=draw.GREY, linewidth=0.8, zorder=0)
    places = np.stack([r["offset_of_heads"], r["lag_of_heads"]], axis=-1).reshape(-1, 2)
    for place in np.unique(places, axis=0):
        here = r["directed"].ravel()[(places == place).all(axis=1)]
        blue, grey = here.sum(), (~here).sum()
        for color, count in (("#C8C8C8", len(here) * (grey > 0)), (draw.SKY, blue)):
            axes.plot(*place, "o", color=color, markersize=(8 + 2 * np.sqrt(count)) * (count > 0))
        axes.annotate(str(blue or grey), place, ha="center", va="center", fontsize=8)
        axes.annotate(f"+{grey}" * bool(blue and grey), place, (6, -11), textcoords="offset points", fontsize=7,
                      color="#666666")
    ticks = np.unique(np.linspace(-most, most, 11).astype(int))
    axes.set(xlim=(-most - 1.5, most + 1.5), ylim=(-most - 1.5, most + 1.5), aspect="equal", xticks=ticks,
             yticks=ticks, xlabel="offset with most attention (tokens)", title="how many heads have these two peaks",
             ylabel="lag with the highest mean score (tokens)")
    keys = ((draw.SKY, f"{r['n_directed']} with a direction{_rates(r, 'agree_directed')}"),
            ("#C8C8C8", f"+ those without; all {r['directed'].size} heads{_rates(r, 'agree')}"))
    figure.legend(handles=[Line2D([], [], color=c, marker="o", linestyle="", label=text) for c, text in keys],
                  loc="outside lower center")


def _rates(r, name):
    return f": {r[name]:.0%} on the line (chance: {r[name + '_null'][0]:.0%})" if name in r else ""


def says(r):
    """What the numbers show, in plain words."""
    n = r["lag_of_heads"].size
    told = [_verdict(r, name + "_directed", where) for name, where in SAME.items() if name + "_directed" in r]
    untold = [where for name, where in SAME.items() if r["n_directed"] and name + "_directed" not in r]
    if untold:
        told.append(f"Whether their scores are highest {' or '.join(untold)} by more than chance cannot be told: these "
                    "heads are so much alike, or so few, that shuffled heads agree as well.")
    masked = (f" In {r['n_beyond']} heads the scores are highest to the right, where nothing may be looked at: there "
              "the mask makes the peak, not a shift." if r["causal"] else "")
    source = "" if r["documents"] else " All from positions alone, without words, in the layers that are there."
    return (f"{r['n_directed']} of {n} heads have a direction. {''.join(one + ' ' for one in told)}"
            f"Of all heads {r['agree']:.0%} have their highest scores {SAME['agree']} (shuffled: "
            f"{r['agree_null'][0]:.0%}, up to {r['agree_null'][1]:.0%}).{masked}{source}")


def _verdict(r, name, where):
    """A sentence on the heads with a direction."""
    mean, high = r[name + "_null"]
    return (f"In {r[name]:.0%} of these the scores are highest {where} (heads shuffled: {mean:.0%} on average, 95 % of "
            f"the shuffles up to {high:.0%}), {'' if r[name] > high else 'no '}more than chance gives.")


@experiment(
    asks="Does attention go where queries and keys are in step?",
    draw=plot,
    look="Above, every line is one column of query and key: how well they fit when the key is moved by a lag; the "
         "darker, the more the column weighs. Below, their weighted sum for each pair of tokens, which is the mean "
         "score at that lag (blue), and the mean attention (red). Where many columns peak together the sum peaks, "
         "and attention should have its bar there. Grey lines: the same inputs in random order, where only the match "
         "of each token with itself is left, at lag 0. On the right heads are counted at their two peaks: on the "
         "line these are equal. A head that looks nowhere in particular has a highest score too, so those with a "
         "direction (blue) are counted apart. In a causal model only lags up to 0 can be compared.",
    published="In roberta-base the weighted sum of head(1,1), here L0H0, has a gentle peak near lag -2 and that of "
              "head(8,9), here L7H8, a sharp one at -1, as their attention has (Yamamoto and Matsuzaki, figure 7).",
    figure="figure 7",
    says=says,
    weights_only=True,
    numbers={
        "documents": "documents read (0: positions alone)",
        "heads": "heads drawn",
        "lag": "the lag, in tokens, at which their mean score is highest",
        "sharpness": "how far that peak stands above the median within 10 tokens, in standard deviations: a wave has "
                     "1.4, one spike 4.7",
        "offset": "the offset, in tokens, at which their mean attention is highest",
        "n_directed": f"heads that give an offset other than 0 at least {TIMES} times what uniform attention gives",
        "agree_directed": "share of these whose scores are highest at the offset with most attention",
        "agree_directed_null": "the same for shuffled pairs of heads: mean, 95 % quantile",
        "same_direction_directed": "share of these whose scores are highest on the same side as their attention",
        "same_direction_directed_null": "the same for shuffled pairs of heads: mean, 95 % quantile",
        "agree": "share of all heads whose scores are highest at the offset with most attention",
        "agree_null": "the same for shuffled pairs of heads: mean, 95 % quantile",
        "same_direction": "share of all heads with both on the same side, or both at 0",
        "same_direction_null": "the same for shuffled pairs of heads: mean, 95 % quantile",
        "n_beyond": "heads of a causal model whose scores are highest to the right, which the mask hides"})
def lags(model, *, head: str = "auto", reach: int = 0, bias: int = 0, text: str = "sample", documents: int = 20,
         tokens: int = 0, seed: int = 0):
    """Cross-correlation of queries and keys, and the lag at which their scores peak.

    head: heads to draw, as L0H0,L1H2; auto: the sharpest to the left, to the right, and the broadest
    reach: lags to draw on each side, 10 or more (0: 30, or as many as the tokens allow)
    bias: 1 adds the biases of query and key, so that scores are exact; the paper leaves them out
    text: file or folder with one document or paragraph a line, - for standard input, or sample
    documents: documents to read (0: as many as the text holds, at most 100)
    tokens: length of each document (0: the model's longest input)
    seed: seed of the shuffles
    """
    corpus.within("bias", bias, 0, 1)
    read = None if model.missing else corpus.documents(model, text, documents, tokens)
    T = read.T if read else tokens or model.config.n_ctx
    corpus.within("tokens", T, NEAR + 1, model.config.n_ctx)
    reach = reach or min(REACH, T - 1)
    corpus.within("reach", reach, NEAR, T - 1)
    chosen = heads.chosen(head, model, read)
    split = {pair: factors.svd(*inputs.query_key(model, *pair, bias)) for pair in chosen}

    def measure(i, document):
        X, attention = _inside(model, document, T, reach)
        mixed = np.random.default_rng((seed, i)).permutation(T)
        return {"attention": attention, "scores": np.array([_scores(model, layer, X[layer], bias) for layer in X])} \
            | _curves("", split, X, reach, bias) \
            | _curves("_shuffled", split, {layer: x[mixed] for layer, x in X.items()}, reach, bias)
    found = stream.gather(measure, read or [None], "documents")
    mean = {name: total / len(read or [None]) for name, total in found.items()}
    for name in ("attention", "scores", "score", "score_shuffled"):
        mean[name] = profiles.mean_attention(mean[name], T)  # for each pair of tokens
    compared = _compared(mean, T, model.config.causal, seed)
    return {"documents": len(read or []), "T": T, "causal": model.config.causal, "lags": profiles.offsets(reach),
            "singular": np.array([S[:COLUMNS] for _, S, _ in split.values()])} | compared | \
        _drawn(mean, compared, chosen, inputs.layers(model))


def _inside(model, document, T, reach):
    """Input {layer: X [T D]} and attention profiles [L H R] of one document, or (None) of positions alone."""
    if document is None:
        there = inputs.layers(model)
        return {layer: inputs.of_positions(model, layer, T) for layer in there}, \
            np.array([heads.from_positions(model, layer, T, reach) for layer in there])
    found = []

    def look(pattern):
        found.append(profiles.profile(pattern[0], reach))
        return pattern
    return dict(enumerate(inputs.of_text(model, document, {"pattern": look}))), np.array(found)


def _scores(model, layer, x, bias):
    """Sum of the scores at each lag within the reach of the profiles, for every head of a layer: [T D] -> [H R]."""
    w, H = model.layers[layer], model.config.n_heads
    q, k = (x @ W + b * bias for W, b in ((w.W_Q, w.b_Q), (w.W_K, w.b_K)))
    q, k = (a.reshape(len(x), H, -1).swapaxes(0, 1) for a in (q, k))
    return _within(maths.weighted(maths.xcov(q, k), np.ones((H, q.shape[-1]))), NEAR)


def _within(curve, reach):
    """The lags -reach ... reach of [... 2T - 1]."""
    middle = curve.shape[-1] // 2
    return curve[..., middle - reach:middle + reach + 1]


def _curves(suffix, split, X, reach, bias):
    """xcorr of the first columns [n R J] and the weighted sum over all [n R] of the heads drawn."""
    columns, sums = [], []
    for (layer, _), (U_Q, S, U_K) in split.items():
        x = factors.with_ones(X[layer]) if bias else X[layer]
        q, k = x @ U_Q, x @ U_K
        columns.append(_within(maths.xcorr(q, k)[:, :COLUMNS].T, reach).T)
        sums.append(_within(maths.weighted(maths.xcov(q, k), S), reach))
    return {"xcorr" + suffix: columns, "score" + suffix: sums}


def _compared(mean, T, causal, seed):
    """Peaks of scores and of attention in every head, how often they are the same, and how often by chance."""
    attention = _within(mean["attention"], NEAR)
    lag, sharpness = maths.peak(mean["scores"], NEAR, causal)
    best, most = attention.argmax(axis=-1), attention.max(axis=-1)
    offset = profiles.offsets()[best]
    uniform = profiles.mean_attention(profiles.uniform(T, causal), T)[best]
    directed = (offset != 0) & (most >= TIMES * uniform)
    found = {"lag_of_heads": lag, "sharpness_of_heads": sharpness, "offset_of_heads": offset,
             "attention_of_heads": most, "directed": directed, "n_directed": directed.sum(),
             "n_beyond": causal * (maths.peak(mean["scores"], NEAR)[0] > 0).sum()}
    for suffix, members in (("", directed | True), ("_directed", directed)):
        for name, a, b in (("agree", lag, offset), ("same_direction", np.sign(lag), np.sign(offset))):
            share, null = nulls.matches(a[members], b[members], seed)
            varied = min(len(np.unique(a[members])), len(np.unique(b[members]))) > 1 and null[1] < 1
            if varied or not suffix:  # else every deal gives the same, or 5 % of them all that there is to find
                found |= {name + suffix: share, name + suffix + "_null": null}
    return found


def _drawn(mean, compared, chosen, there):
    """Curves and peaks of the heads drawn."""
    rows = tuple(np.array([(there.index(layer), head) for layer, head in chosen]).T)
    peaks = (("lag", "lag"), ("sharpness", "sharpness"), ("offset", "offset"), ("at_offset", "attention"))
    return {name: mean[name] for name in ("xcorr", "xcorr_shuffled", "score", "score_shuffled")} | \
        {name: compared[f"{of}_of_heads"][rows] for name, of in peaks} | \
        {"attention": mean["attention"][rows], "heads": np.array([heads.name(*pair) for pair in chosen]),
         "papers_heads": np.array([heads.papers_name(*pair) for pair in chosen])}
