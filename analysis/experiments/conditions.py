"""Do heads keep their direction when one word is repeated, so that only positions differ?

The same heads under five inputs: a text, its words in random order, one of its words everywhere (a
word of its own for each document), positions alone (words at zero, an input that no model reads)
and words alone (positions at zero); and what remains of each head's attention and of the peak of
its scores. A peak that stays when words are shuffled need not be made by positions: words copied
from the neighbours, in whatever order, may make it.

Where positions enter the scores, by turned queries and keys or a bias, words are averaged out
instead of set to zero: queries and keys are their means, and positions are off where nothing is
turned or added.

N documents, T tokens, L layers, H heads, R lags or offsets (positive: the key stands to the right),
I conditions, n heads drawn, J columns drawn of each.
"""

from functools import partial

import numpy as np

from ..contract import Asks, Of, Without, options, register
from ..drawing import Rows, When, bar_sample, draw, each, figures, line_sample, row
from ..machine.language import filled
from ..maths import factors, nulls, profiles
from ..maths import lags as lag_maths
from ..maths import sources as maths
from ..measures import by_mechanism, heads, inputs, mean_kernel, position_edits
from ..measures import conditions as inputs_given
from ..running import passes
from ..running.stream import UNSAVED
from ..texts import corpus

CONDITIONS = inputs_given.CONDITIONS
REPEATED = [*CONDITIONS].index("repeated")
NEAR = profiles.REACH
COLUMNS = 20  # of query and key, those with the largest singular values, as in the paper
KEPT = 0.5  # of its attention on the text, from which a head keeps its direction where most goes
MOST = 0.9  # of the heads with a direction: "yes" allows one exception in ten
DRAWN = 3  # heads, where none are named
TOLD = 6  # heads in the sentence
# what a head's direction is built on: whether it stays on a repeated word, on words alone, shuffled
KINDS = {
    "positions": lambda positions, words, shuffled: positions & ~words,
    "words alone": lambda positions, words, shuffled: words & ~positions,
    "either": lambda positions, words, shuffled: words & positions,
    "both, words in any order": lambda positions, words, shuffled: ~words & ~positions & shuffled,
    "both, words in order": lambda positions, words, shuffled: ~words & ~positions & ~shuffled,
}
COLORS = (draw.BLUE, draw.ORANGE, draw.GREEN, draw.VERMILION, draw.PURPLE)


def conditions(
    model,
    run=UNSAVED,
    *,
    head: str = "auto",
    text: options.Text = "sample",
    documents: options.Documents = 8,
    tokens: options.Tokens = 0,
    seed: options.Seed = 0,
):
    """Attention and scores of the same heads on a text, on its words shuffled, on one word
    repeated, on positions alone, and on words alone.

    head: heads to draw, as L0H0,L1H2; auto: the sharpest head with a direction of each layer, three
    at most
    """
    make_reader = by_mechanism.of_model(model, READERS)
    texts = corpus.documents(model, text, documents, tokens)
    options.within("tokens", texts.T, NEAR + 1, model.config.n_ctx)
    pairs = _select(head, model, texts, run)
    reader = make_reader(model, texts, pairs, COLUMNS, run)
    mean = _gather(texts, reader, seed, run)
    T, causal = texts.T, model.config.causal
    result = {"documents": len(texts), "T": T, "causal": causal, "lags": profiles.offsets()}
    result["conditions"] = np.array([reader.words(name) for name in CONDITIONS])
    everywhere = profiles.mean_attention(mean["attention"], T)  # [I L H R], up to half of T
    result["attention"] = profiles.within(everywhere, NEAR)
    for name in ("scores", "scores_shuffled"):
        result[name] = profiles.mean_attention(mean[name], T)
    result["xcorr"] = mean["xcorr"]
    variance = mean["squares_repeated"] - result["attention"][REPEATED] ** 2
    result["spread_repeated"] = np.sqrt(np.maximum(variance, 0))  # 0 may be -1e-17
    result |= _own_offsets(result, T, causal)
    result |= _keeps(result, everywhere)
    result |= _kinds(result)
    return result | _by_head(result, pairs)


def _select(names, model, documents, run):
    """Heads by name; for 'auto' the sharpest with a direction of each layer, DRAWN at most."""
    if names != "auto":
        return heads.select(names, model)
    attention = heads.mean_attention(model, documents, run)
    directed = profiles.directed(attention, documents.T, causal=model.config.causal)
    away = attention * (profiles.offsets() != 0)
    sharp = np.where(directed, away.max(axis=-1), 0)  # [L H]
    layers = np.argsort(-sharp.max(axis=1), kind="stable")[:DRAWN]
    pairs = [(int(i), int(sharp[i].argmax())) for i in sorted(layers) if sharp[i].any()]
    return pairs or heads.auto(attention)


def _gather(documents, reader, seed, run):
    """Means over documents under every condition: {name: [I ...]}."""
    same = passes.value(reader.reading(documents.first()[0], inputs_given.SAME))

    def measure(i, document):
        by_condition = []
        for name in CONDITIONS:
            if name == inputs_given.SAME:
                by_condition.append(same)
                continue
            tokens = inputs_given.tokens(documents, i, document, name, seed)
            by_condition.append((yield reader.reading(tokens, name)))
        sums = {name: np.array([given[name] for given in by_condition]) for name in same}
        order = np.random.default_rng((seed, i)).permutation(len(document))
        sums["scores_shuffled"] = yield reader.shuffled(document, order)
        repeated = profiles.within(sums["attention"][REPEATED], NEAR)
        sums["squares_repeated"] = profiles.mean_attention(repeated, documents.T) ** 2
        return sums

    sums = run.gather(measure, documents, "documents")
    return {name: total / len(documents) for name, total in sums.items()}


class TableRead:
    """Reads a text under a condition where a table tells positions."""

    def __init__(self, model, documents, pairs, columns, run):
        self.model, self.columns = model, columns
        self.reach = inputs_given.reach(documents.T)
        self.split = {pair: factors.svd(*inputs.query_key(model, *pair)) for pair in pairs}

    def words(self, name):
        """What a condition is called."""
        return CONDITIONS[name].words

    def reading(self, tokens, name):
        """A Reading of attention [L H R], scores [L H R] and xcorr [n R J] under a condition."""
        reading = inputs_given.stream_and_profiles(self.model, tokens, name, self.reach)
        return reading._replace(value=lambda final: self._measure(*reading.value(final)))

    def shuffled(self, document, order):
        """A Reading of the scores [L H R] of a document whose inputs are in another order."""
        reading = inputs.reading(self.model, document)

        def value(final):
            return inputs_given.scores_by_lag(self.model, reading.value(final)[:, order])

        return reading._replace(value=value)

    def _measure(self, X, attention):
        """Attention and scores of all heads [L H R], xcorr [n R J] of those drawn."""
        curves = []
        T = X.shape[1]
        middle = slice(T - 1 - NEAR, T + NEAR)
        for (layer, _), (U_Q, _, U_K) in self.split.items():
            q, k = (X[layer] @ U[:, : self.columns] for U in (U_Q, U_K))
            curves.append(lag_maths.xcorr(q, k)[middle])
        scores = inputs_given.scores_by_lag(self.model, X)
        return {"attention": attention, "scores": scores, "xcorr": np.array(curves)}


WORDS = {"positions": "words averaged out", "words": "positions off"}  # of these two conditions


class ScoresRead:
    """The same where positions enter the scores (rotary, a bias); the fastest turned pairs first.

    Words are averaged out: query and key of every layer are their means over words, before a
    position turns them. Positions are off: nothing is turned, and no bias added.
    """

    def __init__(self, model, documents, pairs, columns, run):
        self.model, self.pairs, self.columns = model, pairs, columns
        self.reach = inputs_given.reach(documents.T)
        means = mean_kernel.overall(model, mean_kernel.means(model, documents, run))
        self.means = dict(zip(mean_kernel.before_turn(model), means))

    def words(self, name):
        """What a condition is called."""
        return WORDS.get(name, CONDITIONS[name].words)

    def reading(self, tokens, name):
        """A Reading of attention [L H R], scores [L H R] and xcorr [n R J] under a condition."""
        off = position_edits.off(self.model.config) if name == "words" else passes.NOTHING
        hook = self._averaged if name == "positions" else passes.identity
        return self._reading(tokens, self._measure, edits=off, hook=hook)

    def shuffled(self, document, order):
        """A Reading of the scores [L H R] of a document whose tokens stand in another order."""
        return self._reading(document, partial(self._scores, order=order))

    def _averaged(self, name, x, layer=None):
        """The hook that puts mean queries and keys in the place of a token's own."""
        if name not in self.means:
            return x
        return np.broadcast_to(self.means[name][layer][None, :, None], x.shape).astype(x.dtype)

    def _reading(self, tokens, measure, **changes):
        """A Reading of measure(list of each layer's q, k, scores and pattern by name)."""
        layers = []

        def watch(name, x, layer=None):
            if name == "q":
                layers.append({})
            if name in ("q", "k", "scores", "pattern"):
                layers[-1][name] = x[0].copy()

        return passes.Reading(self.model, tokens, watch, lambda _: measure(layers), **changes)

    def _measure(self, layers):
        """Attention and scores of all heads [L H R], xcorr [n R J] of those drawn."""
        attention = np.array([profiles.profile(x["pattern"], self.reach) for x in layers])
        curves = [self._columns(layers[layer], head) for layer, head in self.pairs]
        return {"attention": attention, "scores": self._scores(layers), "xcorr": np.array(curves)}

    def _columns(self, points, head):
        """xcorr [R J] of a head's queries and keys."""
        shared = len(points["q"]) // len(points["k"])
        q, k = points["q"][head], points["k"][head // shared]
        curves = lag_maths.xcorr(q[:, : self.columns], k[:, : self.columns])
        return curves[len(q) - 1 - NEAR : len(q) + NEAR]

    def _scores(self, layers, order=slice(None)):
        """Sum of the scores at each lag near 0: [L H R]; of hidden keys the product alone."""
        by_layer = []
        for i, points in enumerate(layers):
            product = mean_kernel.product(points["q"], points["k"], self.model.config.attn_scale(i))
            scores = np.where(np.isneginf(points["scores"]), product, points["scores"])
            sums = maths.diagonal_sums(scores[:, order][:, :, order])
            T = scores.shape[-1]
            by_layer.append(sums[:, T - 1 - NEAR : T + NEAR])
        return np.array(by_layer)


READERS = by_mechanism.entries(
    table=TableRead,
    rotary=ScoresRead,
    bias=ScoresRead,
    none=f"nothing to take away: {by_mechanism.NO_PLACES}",
)


def _own_offsets(r, T, causal):
    """Each head's offset on the text, and what remains there of attention and scores: [I L H]."""
    attention, scores = r["attention"], r["scores"]
    away = profiles.offsets() != 0
    best = np.where(away, attention[0], -1).argmax(axis=-1)
    offset = profiles.offsets()[best]
    remaining = np.take_along_axis(attention, best[None, ..., None], axis=-1)[..., 0]
    rise = maths.rise(scores, offset[None], causal)
    result = {"offset_of_heads": offset, "attention_of_heads": remaining, "rise_of_heads": rise}
    result["directed"] = profiles.directed(attention[0], T, causal=causal)
    result["score_kept_of_heads"] = maths.over(rise, np.maximum(rise[0], 0))
    result["rise_of_heads_shuffled"] = maths.rise(r["scores_shuffled"], offset, causal)
    result["n_directed"] = result["directed"].sum()
    result |= heads.by_strength(remaining[0], result["directed"])
    uniform = profiles.mean_attention(profiles.uniform(T, causal), T)
    result["uniform_of_heads"] = uniform[best]
    return result


def _keeps(r, everywhere):
    """Heads that keep their offset: it has most attention, and at least KEPT of that on the text.

    The null: heads with a peak as high anywhere would have it at their offset in one of K cases, of
    the K offsets that a query sees. One head alone has to keep its offset among all of up to half a
    document, as one of NEAR would do by chance too often.
    """
    directed = r["directed"]
    attention = everywhere if r["n_directed"] == 1 else r["attention"]  # [I L H R]
    reach = attention.shape[-1] // 2
    has_peak = attention.max(axis=-1) >= KEPT * r["attention_of_heads"][0]
    keeps = has_peak & (profiles.highest(attention) == r["offset_of_heads"])
    n_kept, n_peaks = ((each & directed).sum(axis=(1, 2)) for each in (keeps, has_peak))
    K = 1 + reach * (1 if r["causal"] else 2)
    result = {"keeps": keeps, "n_kept": n_kept, "n_offsets": K}
    return result | {"n_kept_null": nulls.count(n_peaks, 1 / K)}


def _kinds(r):
    """What the direction of each head is built on, by the conditions under which it keeps it."""
    by_name = dict(zip(CONDITIONS, r["keeps"]))
    alone = by_name["repeated"], by_name["words"], by_name["shuffled"]
    kinds = [r["directed"] & is_kind(*alone) for is_kind in KINDS.values()]
    result = {"n_by_kind": np.array([kind.sum() for kind in kinds])}
    result["kinds"] = np.array([*KINDS])
    result["kind_of_heads"] = np.array(kinds).argmax(axis=0)
    return result


def _by_head(r, pairs):
    """Results of the heads drawn, and all heads with a direction, sharpest first."""
    rows, columns = (np.array(x) for x in zip(*pairs))
    result = {"heads": np.array([heads.name(*pair) for pair in pairs])}
    result["drawn"] = np.array(pairs)
    result["offset"] = r["offset_of_heads"][rows, columns]
    for i, name in enumerate(CONDITIONS):
        result["at_offset_" + name] = r["attention_of_heads"][i, rows, columns]
        result["score_" + name] = r["score_kept_of_heads"][i, rows, columns]
    result["at_offset_text_null"] = r["uniform_of_heads"][rows, columns]
    result["at_offset_repeated_spread"] = r["spread_repeated"][
        rows, columns, result["offset"] + NEAR
    ]
    places = np.argwhere(r["directed"])
    sharpest_first = np.argsort(-r["attention_of_heads"][0][r["directed"]], kind="stable")
    result["directed_heads"] = places[sharpest_first]
    return result


def sharpest(r):
    """The first TOLD heads with a direction."""
    return "; ".join(_describe_head(r, *place) for place in r["directed_heads"][:TOLD])


def _describe_head(r, layer, head):
    """'L0H3 at -1: attention 0.99 0.99 0.98 0.01, scores 1.00 1.00 0.97 0.00'."""
    values = {"head": heads.name(layer, head)}
    values["offset"] = draw.offset(r["offset_of_heads"][layer, head])
    for name, what in ("attention", "attention_of_heads"), ("scores", "score_kept_of_heads"):
        values[name] = " ".join(f"{x:.2f}" for x in r[what][:, layer, head])
    return filled("{head} at {offset}: attention {attention}, scores {scores}", **values)


def _draw_drawn(figure, r, i):
    """Head i of those drawn, a column for each condition, as in the paper."""
    grid = figure.subplots(1, len(CONDITIONS), sharey=True)
    for n, axes in enumerate(grid):
        _draw_condition(axes, r, i, n)
        attention = r["attention_of_heads"][n, *r["drawn"][i]]
        axes.set_title(f"{r['conditions'][n]}\n{attention:.2f}")
    grid[0].set_ylabel(f"{r['heads'][i]}, looks at {draw.offset(r['offset'][i])}")
    grid[len(CONDITIONS) // 2].set_xlabel("lag (tokens, + right)")
    figure.legend(handles=[*_samples()], loc="outside lower center", ncols=4)


def _draw_condition(axes, r, row, i):
    """Attention, xcorr and mean score of one head under one condition."""
    layer, head = r["drawn"][row]
    lags = r["lags"]
    visible = lags <= (0 if r["causal"] else NEAR)
    axes.bar(lags, r["attention"][i, layer, head], 0.8, **BAR)
    axes.plot(lags, r["xcorr"][i, row], **COLUMN)
    curves = r["scores"][:, layer, head, visible]
    curves = curves - np.median(curves, axis=-1, keepdims=True)
    highest = np.full(visible.sum(), curves.max())
    null = r["scores_shuffled"][layer, head, visible]
    axes.plot(lags[visible], maths.over(null - np.median(null), highest), **NULL)
    axes.plot(lags[visible], maths.over(curves[i], highest), **SCORE)
    axes.axhline(0, color="black", linewidth=0.5)
    axes.set_ylim(-0.8, 1.2)


SCORE = {"color": draw.BLUE, "linewidth": 1.6}
NULL = {"color": "black", "linestyle": "--", "linewidth": 1, "zorder": 3}
COLUMN = {"color": draw.SKY, "linewidth": 0.5}
BAR = {"color": draw.VERMILION, "alpha": 0.55}


def _samples():
    yield bar_sample("mean attention", **BAR)
    yield line_sample("cross-correlation, column by column", **COLUMN)
    yield line_sample("mean score, highest of the row = 1", **SCORE)
    yield line_sample("null: inputs in random order", **NULL)


def _draw_all(axes, r):
    """The attention of each head with a direction to its offset, under every condition."""
    if not r["n_directed"]:
        draw.nothing(axes, "no head has a direction")
        return
    x = np.arange(len(CONDITIONS))
    for layer, head in r["directed_heads"]:
        color = COLORS[r["kind_of_heads"][layer, head]]
        axes.plot(x, r["attention_of_heads"][:, layer, head], "o-", color=color, linewidth=1)
    for color, kind, n in zip(COLORS, r["kinds"], r["n_by_kind"]):
        if n:
            axes.plot([], [], "o-", color=color, label=f"{kind}: {n}")
    axes.set_xticks(x, [draw.wrapped(str(words), 8) for words in r["conditions"]])
    axes.set(ylim=(-0.03, 1.03), xlim=(-0.3, len(x) - 0.7))
    axes.set_ylabel("attention to its offset on the text")
    axes.set_title(f"{r['n_directed']} heads with a direction, and what it is built on")
    axes.legend(**draw.BESIDE)


register(
    conditions,
    draw=figures(row(_draw_all), each(_draw_drawn, 3.6, "heads")),
    look="The first figure has all heads with a direction, coloured by the source of the "
    "direction, on five inputs: the text, its words in random order, one word repeated, positions "
    "with words at zero, words without positions. Each of the others has one head on these; "
    "the number above is the attention to the head's offset. A head that reads positions keeps "
    "its bar, and the peak of its scores (blue), on a repeated word and loses both without "
    "positions. Words at zero are an input that no model is trained on: a head that loses its "
    "direction there but keeps it on a repeated word still reads positions. A head that keeps "
    "it on shuffled words, but neither on a repeated word nor on words alone, needs both: an "
    "earlier head finds the neighbour by position and copies its word, and this head reads the "
    "copied word. The light blue lines are the columns of query and key, without their biases; "
    "the dashed line is the peak with inputs in random order. Scores are shown minus their "
    "median, and the highest of a row is 1, because without words the norms scale positions up.",
    published="In roberta-base the sharp peak of head(8,9) at -1 vanishes on positions alone; on "
    "words alone the columns' correlations are mostly flat, though their sum is large at the "
    "neighbour; with words shuffled it stays: adjacency is built on words and positions (Yamamoto "
    "and Matsuzaki, figures 9 and 11 and section 5).",
    figure="EMNLP, figures 9 and 11",
    numbers="""
        fact n_directed: heads with a direction on the text: {profiles.DIRECTION}
        fact n_by_strength by strengths: heads with a direction, by the attention to their offset on
            the text
        n_kept by conditions: heads with a direction that keep it: at least {KEPT:.0%} of their
            attention to that offset, and more than to any other, by condition
            null: 99% quantile if every head with a peak as high had it at any of the offsets
        fact n_offsets: offsets compared, those that a query sees within {NEAR} tokens, or for one
            head alone within half a document
        fact n_by_kind by kinds: heads with a direction, by the source of the direction
        fact offset by heads: offset other than 0 to which each plotted head attends most on the
            text
        at_offset_text by heads: mean attention to that offset on the text
            null: uniform attention at that offset
        at_offset_[shuffled|repeated] by heads: mean attention to that offset, [words shuffled|one
            word repeated]
            no null: it is compared with the attention on the text
        fact at_offset_repeated_spread by heads: its standard deviation over the repeated words,
            one for each document
        at_offset_[positions|words] by heads: mean attention to that offset on [positions|words]
            alone
            no null: it is compared with the attention on the text
        fact documents: documents read
    """,
    answer=Asks(
        "heads with a direction whose offset keeps half of its attention, and has most, with one "
        "word repeated",
        value=f"{{n_kept[{REPEATED}]}} of {{n_directed}}",
        chance=f"up to {{n_kept_null[{REPEATED}]:.0f}} of {{n_directed}}, peaks at any offset",
        rule=Of(f"n_kept[{REPEATED}]", out_of="n_directed", enough=MOST),
        without=Without("n_directed", "0 of {directed.size} heads with one", "0 heads"),
    ),
    says=When(
        "n_directed",
        [
            "{n_directed} of {directed.size} heads have a direction; ",
            f"{{n_kept[{REPEATED}]}} of these keep it when one word is repeated: their offset "
            "still has most attention, and at least {KEPT:.0%} of that on the text (peaks at any "
            f"of {{n_offsets}} offsets: up to {{n_kept_null[{REPEATED}]:.0f}}). As many under each "
            "condition: ",
            Rows("{conditions}: {n_kept} (by chance up to {n_kept_null:.0f})", first=1),
            ". Built on: ",
            Rows("{kinds}: {n_by_kind}", where="n_by_kind", join=", "),
            ". Attention at the offset, and the peak of the scores there as a share of the peak on "
            "the text, for {conditions}: {sharpest}.",
            heads.describe_strengths,
        ],
        "0 of {directed.size} heads have a direction that they could keep.",
    ),
    per_head=("offset_of_heads",),
    shares_passes=True,
)
