"""Are sharp peaks of attention scores due to position embeddings?

Every query and key is a sum over sources: position, word, what layers wrote, token type, biases. So
every score is an exact sum of a term for each pair of sources, and the peak of a head, how far its
mean score at one lag stands above that at the others, is divided among them; the term position x
position is divided further among the waves that it is made of. The paper leaves open what makes its
sharpest peaks, which look at the next token.

Where positions enter the scores, position is what no word changes: the mean query and the mean key
as their places turn them, and the bias by distance; word is the rest of every query and key.

N documents, T tokens, L layers, H heads, C sources, R lags (positive: the key stands to the right),
n heads drawn, W bands of periods.
"""

import numpy as np

from ..contract import Asks, Of, Without, options, register
from ..drawing import Part, Rows, When, bar_sample, draw, figures, line_sample
from ..machine.language import filled, label, translated
from ..maths import lags as lag_maths
from ..maths import profiles, stats
from ..maths import sources as maths
from ..measures import by_mechanism, heads, inputs, mean_kernel, score_moves
from ..running.stream import UNSAVED
from ..texts import corpus
from . import _sources_scores, _sources_split

NEAR = profiles.REACH  # lags within which a peak is compared
HALF = 0.5  # of a peak, from which a term makes it
MOST = 0.9  # of the sharp heads: "yes" allows one exception in ten
SHUFFLES = 20  # of the query positions
LONG = 8  # tokens: the paper's waves have this period or a longer one
NEARLY_NOTHING = 0.05  # of the largest term: such curves are grey
SHOWN = 3  # heads with curves of their own
LISTED = 16  # heads with a bar
TOLD = 6  # heads in the sentence
GIVEN = "c2p", "p2c"  # the terms of place that a model may compute itself
GIVEN_SAYS = (
    ". The model's own position terms, which position × position estimates, are {c2p_share:.2f} "
    "(content-to-position) and {p2c_share:.2f} (position-to-content) of these peaks, estimated "
    "together {position_share:.2f}"
)
POSITION = _sources_split.SOURCES.index("position")
GROUPS = {  # terms together, whichever of the two is the query's: name -> colour
    "position × position": draw.BLUE,
    "position × word": draw.SKY,
    "position × layers": draw.GREEN,
    "word × word": draw.ORANGE,
    "word × layers": "#8C564B",
    "layers × layers": draw.PURPLE,
    "type, bias": draw.GREY,
}
LEGEND = {"loc": "outside upper left", "ncols": 4}


def sources(
    model,
    run=UNSAVED,
    *,
    head: str = "auto",
    text: options.Text = "sample",
    documents: options.TwoDocuments = 16,
    tokens: options.Tokens = 0,
    seed: options.Seed = 0,
):
    """Each head's scores decomposed by components of queries and keys, and the cause of its peak.

    head: heads to tell about, as L0H0,L1H2; auto: those that give more than half of their attention
    to a neighbour, or else the sharpest at -1 and at +1
    """
    way = by_mechanism.of_model(model, WAYS)
    if head != "auto":
        heads.select(head, model)  # names that are none are noticed before the work
    document_set = None
    T = tokens or model.config.n_ctx
    if not model.missing:
        document_set = corpus.documents(model, text, documents, tokens)
        options.at_least("documents", len(document_set), 2)
        T = document_set.T
    options.within("tokens", T, NEAR + 1, model.config.n_ctx)
    causal = model.config.causal
    visible = profiles.visible(T, causal)
    mean, positions = way(model, document_set, visible, seed, run)
    fit = maths.LagFit(visible)
    result = {"documents": len(document_set or []), "T": T, "causal": causal}
    result |= {"layers": np.array(inputs.layers(model)), "lags": profiles.offsets()}
    result["sources"] = np.array(_sources_split.SOURCES)
    result |= _divide(mean, fit, T, causal)
    result |= _positions(positions, result, visible, fit, seed)
    chosen_heads = _choose(head, model, result)
    result |= _by_head(result, chosen_heads)
    return result | _headline(result)


def _of_table(model, documents, visible, seed, run):
    """Means over documents of what `_measure_layer` gives, stacked over layers; TablePositions."""
    T = len(visible)
    if documents is None:
        splits, placed = _sources_split.of_positions(model, T)
        order = np.random.default_rng((seed, 0)).permutation(T)
        by_layer = [_measure_layer(split, visible, order) for split in splits]
        sums = stats.stacked(by_layer)
        sums["attention"] = np.array(
            [heads.from_positions(model, layer, T) for layer in inputs.layers(model)]
        )
        return sums, _positions_of_table(model, placed)
    placed = _sources_split.places(model, documents, run)

    def measure(i, document):
        order = np.random.default_rng((seed, i)).permutation(T)
        attention = []

        def note_profile(name, x, layer=None):
            if name == "pattern":
                attention.append(profiles.profile(x[0]))

        def look(_, split):
            return _measure_layer(split, visible, order)

        by_layer = yield _sources_split.along(model, document, placed, i % 2, look, note_profile)
        return stats.stacked(by_layer) | {"attention": np.array(attention)}

    sums = run.gather(measure, documents, "documents")
    means = {name: total / len(documents) for name, total in sums.items()}
    return means, _positions_of_table(model, placed)


def _in_scores(model, documents, visible, seed, run):
    """The same where positions enter the scores, with the Places of every layer."""
    inputs.check_uncapped(model)
    T = len(visible)
    means = _sources_scores.Means(model, documents, run)

    def measure(i, document):
        order = np.random.default_rng((seed, i)).permutation(T)
        parts, _ = yield score_moves.of_document_read(model, document)
        by_layer = []
        for part in parts:
            sums = _measure_layer(means.split(part, i % 2), visible, order)
            sums["attention"] = profiles.profile(score_moves.moved_pattern(model, part, "keys", 0))
            sums |= _given(model, part, T)
            by_layer.append(sums)
        return stats.stacked(by_layer)

    sums = run.gather(measure, documents, "documents")
    positions = [means.positions(layer, T) for layer in inputs.layers(model)]
    return {name: total / len(documents) for name, total in sums.items()}, positions


def _given(model, part, T):
    """Sums by lag of the terms of position that the model has itself (DeBERTa), by name [H R]."""
    places = np.arange(T)
    distance = places - places[:, None]
    if not model.config.pos_terms:
        return {}
    by_name = mean_kernel.terms(model, part.layer, part.q, part.k, distance)
    near = slice(T - 1 - NEAR, T + NEAR)
    return {name: maths.diagonal_sums(x)[:, near] for name, x in by_name.items()}


WAYS = by_mechanism.entries(
    table=_of_table,
    rotary=_in_scores,
    bias=_in_scores,
    terms=_in_scores,
    none=f"nothing to divide: {by_mechanism.NO_PLACES}",
)


def _measure_layer(split, visible, order):
    """Sums of one layer: of terms by lag, of scores squared and by lag, with tokens shuffled."""
    q, k, scores, added = split
    T = len(visible)
    centred = maths.within_rows(scores, visible)
    mixed = maths.within_rows(scores[:, order][:, :, order], visible)
    terms = maths.lag_sums(q, k, NEAR)
    products = maths.term_products(q, k, centred)
    for pair, x in added.items():
        terms[pair] += maths.diagonal_sums(x)[:, T - 1 - NEAR : T + NEAR]
        products[pair] += (x * centred).sum(axis=(-2, -1))
    whole = maths.diagonal_sums(scores)[:, T - 1 - NEAR : T + NEAR]
    error = abs(terms.sum(axis=(0, 1)) - whole).max() / max(abs(whole).max(), 1e-300)
    result = {"terms": terms, "error": error, "products": products}
    result["squares"] = np.einsum("hij,hij->h", centred, centred, dtype=np.float64)
    result["by_lag"] = maths.diagonal_sums(centred)
    result["by_lag_shuffled"] = maths.diagonal_sums(mixed)
    result["squares_shuffled"] = np.einsum("hij,hij->h", mixed, mixed, dtype=np.float64)
    return result


def _divide(mean, fit, T, causal):
    """Mean scores by lag, the terms' parts of peaks and of the variance, how Toeplitz heads are."""
    terms = np.moveaxis(mean["terms"], 0, 2) / (T - abs(profiles.offsets()))  # [C C L H R]
    scores = terms.sum(axis=(0, 1))
    lag, _ = lag_maths.peak(scores, NEAR, causal)
    attention = profiles.mean_attention(mean["attention"], T)
    products = np.moveaxis(mean["products"], 0, 2)
    result = {"terms": terms, "scores": scores, "lag_of_heads": lag, "attention": attention}
    result["peak_of_terms"] = maths.peak_parts(terms, lag, causal)
    result["variance_of_terms"] = maths.over(products, mean["squares"])
    result["directed"] = profiles.directed(attention, T, causal=causal)
    for end in ("", "_shuffled"):
        explained = fit.explained(mean["by_lag" + end])
        result["toeplitz_of_heads" + end] = maths.over(explained, mean["squares" + end])
    result["error"] = mean["error"].max()
    result["position_share_of_heads"] = result["peak_of_terms"][POSITION, POSITION]
    for name in [name for name in GIVEN if name in mean]:
        by_lag = mean[name] / (T - abs(profiles.offsets()))
        split = np.array([[by_lag, scores - by_lag]])
        result[f"{name}_share_of_heads"] = maths.peak_parts(split, lag, causal)[0, 0]
    result["position_variance_of_heads"] = result["variance_of_terms"][POSITION, POSITION]
    return result


def _positions(positions, r, visible, fit, seed):
    """Waves of position x position: parts of each peak [W W L H], and how Toeplitz it is."""
    T, causal = len(visible), bool(r["causal"])
    names, band = maths.bands(T)
    whole = maths.rise(r["scores"], r["lag_of_heads"], causal)
    orders = np.random.default_rng(seed).permuted(np.tile(np.arange(T), (SHUFFLES, 1)), axis=1)
    pairs = T - abs(profiles.offsets())
    waves, by_chance, toeplitz = [], [], []
    for i, of_layer in enumerate(positions):
        lag, peak = r["lag_of_heads"][i], whole[i]
        terms = of_layer.by_band(band, len(names)) / pairs
        waves.append(maths.over(maths.rise(terms, lag, causal), peak))
        shuffled = np.array([of_layer.shuffled(order) for order in orders]) / pairs
        by_chance.append(maths.over(maths.rise(shuffled, lag, causal), peak))
        toeplitz.append(_toeplitz(of_layer.scores(), visible, fit))
    result = {"waves_of_heads": np.stack(waves, axis=2), "bands": names}
    result["waves_flat"] = positions[0].flat(band, len(names))
    result["has_waves"] = result["waves_flat"].any()
    result["band_is_long"] = _is_long(T, band, len(names))
    result["position_shares_null"] = np.stack(by_chance, axis=1)  # [SHUFFLES L H]
    result["position_toeplitz_of_heads"] = np.array(toeplitz)
    return result


def _positions_of_table(model, placed):
    by_layer = enumerate(inputs.layers(model))
    return [
        TablePositions([_both_ways(model, layer, x) for x in placed.halves[:, i]])
        for i, layer in by_layer
    ]


class TablePositions:
    """Position x position of a layer, from what two halves of documents have at each position."""

    def __init__(self, sides):
        self.sides = sides  # queries and keys [H T d] of each half

    def by_band(self, band, n):
        """Sums by lag of each pair of bands, the queries' and the keys': [W W H R]."""
        banded = [[_in_bands(x, band, n) for x in side] for side in self.sides]
        (q_even, k_even), (q_odd, k_odd) = banded
        return (maths.lag_sums(q_even, k_odd, NEAR) + maths.lag_sums(q_odd, k_even, NEAR)) / 2

    def shuffled(self, order):
        """Sums by lag with the query positions in another order: [H R]."""
        (q_even, k_even), (q_odd, k_odd) = self.sides
        even = maths.lag_sums(q_even[None, :, order], k_odd[None], NEAR)
        odd = maths.lag_sums(q_odd[None, :, order], k_even[None], NEAR)
        return (even + odd)[0, 0] / 2

    def scores(self):
        """Scores of positions, twice: [H T T]."""
        (q_even, k_even), (q_odd, k_odd) = self.sides
        return q_even @ k_odd.swapaxes(-1, -2) + q_odd @ k_even.swapaxes(-1, -2)

    def flat(self, band, n):
        """What a spike, of all frequencies alike, has in each band: [W]."""
        counts = np.bincount(band[1:], minlength=n)
        return counts / counts.sum()


def _is_long(T, band, n):
    """Which bands hold periods of LONG tokens or more only: [W]."""
    period = T / np.maximum(np.arange(len(band)), 1)
    shortest = [period[band == i].min(initial=np.inf) for i in range(n)]
    return np.array(shortest) >= LONG * (1 - 1e-9)


def _both_ways(model, layer, x):
    """Queries and keys [H T d] of positions [T D], without biases."""
    cfg, w = model.config, model.layers[layer]
    q, k = (_sources_split.project(x[None], w, cfg, letter, bias=0.0)[0] for letter in "QK")
    return q * cfg.attn_scale(layer), k


def _in_bands(x, band, n):
    """Queries or keys in n bands: [H T d] -> [n H T d]."""
    H, T, d = x.shape
    table = x.swapaxes(0, 1).reshape(T, H * d)
    return maths.in_bands(table, band, n).reshape(n, T, H, d).swapaxes(1, 2)


def _toeplitz(scores, visible, fit):
    """Share of the variance of position x position [H T T] that the lag explains: [H]."""
    centred = maths.within_rows(scores, visible)
    squares = np.square(centred).sum(axis=(-2, -1))
    return maths.over(fit.explained(maths.diagonal_sums(centred)), squares)


def _choose(names, model, r):
    """Rows and columns (layer's row, head) of the heads to tell about, the sharpest first."""
    layers = r["layers"].tolist()
    if names != "auto":
        return [(layers.index(layer), head) for layer, head in heads.select(names, model)]
    neighbours = r["attention"][..., [NEAR - 1, NEAR + 1]]  # [L H 2]
    sharpest_first = np.argsort(-neighbours.max(axis=-1), axis=None, kind="stable")
    places = [np.unravel_index(i, neighbours.shape[:2]) for i in sharpest_first]
    sharp = [place for place in places if neighbours[place].max() > heads.SHARP]
    if sharp:
        return sharp
    by_side = neighbours.reshape(-1, 2).argmax(axis=0).tolist()
    if r["causal"]:  # nothing is seen to the right
        by_side = by_side[:1]
    return [np.unravel_index(i, neighbours.shape[:2]) for i in dict.fromkeys(by_side)]


def _by_head(r, places):
    """What is told of the heads chosen."""
    rows, columns = (np.array(x) for x in zip(*places))
    numbers = r["layers"][rows]
    named = [heads.name(*pair) for pair in zip(numbers, columns)]
    result = {"heads": np.array(named), "rows": rows, "columns": columns}
    attention = r["attention"][rows, columns] * (profiles.offsets() != 0)
    result["at_offset"] = attention.max(axis=1)
    result["offset"] = profiles.offsets()[attention.argmax(axis=1)]
    result["lag"] = r["lag_of_heads"][rows, columns]
    given = [f"{name}_share" for name in GIVEN if f"{name}_share_of_heads" in r]
    own = "position_share", "position_variance", "toeplitz", "position_toeplitz"
    for name in (*own, *given):
        result[name] = r[f"{name}_of_heads"][rows, columns]
    result["toeplitz_null"] = r["toeplitz_of_heads_shuffled"][rows, columns]
    result["position_share_null"] = np.quantile(
        r["position_shares_null"][:, rows, columns], 0.99, axis=0
    )
    waves = r["waves_of_heads"][:, :, rows, columns]  # [W W n]
    is_long = r["band_is_long"]
    result["waves"] = np.einsum("wwn->nw", waves)  # what two waves of one band make
    result["long_waves"] = waves[is_long][:, is_long].sum(axis=(0, 1))
    result["long_waves_null"] = result["position_share"] * r["waves_flat"][is_long].sum()
    return result


def _headline(r):
    """Counts, and means by layer."""
    places = r["rows"], r["columns"]
    makes = r["position_share"] >= HALF
    by_chance = r["position_shares_null"][:, places[0], places[1]] >= HALF
    result = {"n_sharp": len(makes), "n_positions": makes.sum()}
    result["n_positions_null"] = by_chance.sum(axis=1).max()
    result["n_long"] = (r["long_waves"] >= HALF).sum()
    result["layer_names"] = np.array([f"layer {layer}" for layer in r["layers"]])
    for name in ("position_variance", "toeplitz"):
        result[name + "_by_layer"] = r[name + "_of_heads"].mean(axis=1)
    result["toeplitz_by_layer_null"] = r["toeplitz_of_heads_shuffled"].mean(axis=1)
    directed, share = r["directed"], r["position_share_of_heads"]
    result["n_directed_by_layer"] = directed.sum(axis=1)
    result["n_positions_by_layer"] = (directed & (share >= HALF)).sum(axis=1)
    result["groups"] = np.array([*GROUPS])
    result["peak_by_group"] = _grouped(r["peak_of_terms"][:, :, places[0], places[1]]).T
    result["terms_by_group"] = _grouped(r["terms"][:, :, places[0], places[1]]).swapaxes(0, 1)
    return result


def _grouped(terms):
    """Terms [C C ...] added up by the two sources, whichever is the query's: [groups ...]."""
    sums = {name: np.zeros(terms.shape[2:]) for name in GROUPS}
    for a, query in enumerate(_sources_split.SOURCES):
        for b, key in enumerate(_sources_split.SOURCES):
            first, second = sorted((query, key), key=_sources_split.SOURCES.index)
            name = f"{first} × {second}"
            group = name if name in GROUPS else "type, bias"
            sums[group] += terms[a, b]
    return np.array([*sums.values()])


def any_sharp(r):
    """Whether a head gives more than SHARP of its attention to a neighbour."""
    return r["at_offset"].max() > heads.SHARP


def sharpest(r):
    """What makes the peaks of the first heads, one by one."""
    n = len(r["heads"])
    more = filled("; and {n} more", n=n - TOLD) if n > TOLD else ""
    return "; ".join(_describe_head(r, i) for i in range(min(n, TOLD))) + more


PEAK = {  # what is said of a head's peak, and of its scores if they are highest at another lag
    False: "{head} gives {weight:.2f} of its attention to {offset}: position × position makes "
    "{share:.2f} of the peak, {rest}",
    True: "{head} gives {weight:.2f} of its attention to {offset}, and its scores are highest at "
    "{lag}: position × position makes {share:.2f} of the peak, {rest}",
}
BY_DISTANCE = "of which the bias by distance is a part"
TERMS_OF_PLACE = "of which the terms of position are parts"
LONG_WAVES = "and waves of {LONG} tokens or more make {waves:.2f} of that (a spike: {spike:.2f})"


def _describe_head(r, i):
    """'L0H3 at -1 (0.99 of its attention): 1.00 positions, 0.44 waves of 8 tokens or more'."""
    share, offset, lag = (r[name][i] for name in ("position_share", "offset", "lag"))
    values = {"head": r["heads"][i], "weight": r["at_offset"][i], "share": share}
    values |= {"offset": draw.offset(offset), "lag": draw.offset(lag)}
    return filled(PEAK[bool(lag != offset)], rest=_rest_of_peak(r, i, share), **values)


def _rest_of_peak(r, i, share):
    """What else a head's peak is made of, or which waves make the positions' part."""
    if share >= HALF and not r["has_waves"]:
        return translated(TERMS_OF_PLACE if "c2p_share" in r else BY_DISTANCE)
    if share >= HALF:
        waves, spike = r["long_waves"][i], r["long_waves_null"][i]
        return filled(LONG_WAVES, waves=waves, LONG=LONG, spike=spike)
    largest = r["peak_by_group"][i].argmax()
    return f"{label(str(r['groups'][largest]))} {r['peak_by_group'][i, largest]:.2f}"


def _draw_scores(figure, r):
    """Mean scores of sharp heads by source."""
    n = min(len(r["heads"]), SHOWN)
    grid = figure.subplots(1, n, squeeze=False)[0]
    for i, axes in enumerate(grid):
        _draw_curves(axes, r, i)
    grid[0].set_ylabel("mean score, less its mean")
    samples = [line_sample("the whole score", color="black", linewidth=3)]
    samples += [line_sample(name, color=color) for name, color in GROUPS.items()]
    samples += [line_sample("nearly nothing", **SMALL)]
    figure.legend(handles=samples, **LEGEND)


SMALL = {"color": draw.GREY, "linestyle": ":"}


def _draw_curves(axes, r, i):
    """Mean score of a head by lag, whole and by group of terms, each less its mean."""
    lags = r["lags"]
    if r["causal"]:
        lags = lags[lags <= 0]
    curves = r["terms_by_group"][i][:, : len(lags)]
    curves = curves - curves.mean(axis=1, keepdims=True)
    axes.plot(lags, curves.sum(axis=0), color="black", linewidth=4)
    small = NEARLY_NOTHING * abs(curves).max()
    for curve, color in zip(curves[::-1], [*GROUPS.values()][::-1]):
        axes.plot(lags, curve, **{"color": color} if abs(curve).max() > small else SMALL)
    axes.set_xlabel("lag (tokens, + right)")
    axes.locator_params(axis="x", integer=True)
    axes.set_title(
        f"{r['heads'][i]}: {draw.offset(r['offset'][i])} has {r['at_offset'][i]:.2f}\n"
        f"position × position: {r['position_share'][i]:.2f}"
    )


def _draw_shares(figure, r):
    """Bars of the peaks, of their waves where a table makes some, and what the lag explains."""
    widths = {_draw_parts: 1.15, _draw_waves: 1.15, _draw_toeplitz: 1}
    if not r["has_waves"]:
        del widths[_draw_waves]
    grid = figure.subplots(1, len(widths), width_ratios=[*widths.values()])
    for panel, axes in zip(widths, grid):
        panel(axes, r)
    samples = [bar_sample(name, color=color) for name, color in GROUPS.items()]
    figure.legend(handles=samples, **LEGEND)


def _draw_parts(axes, r):
    """Bars: what the peak of each head is made of; negative parts hang below 0."""
    n = min(len(r["heads"]), LISTED)
    places = np.arange(n)
    up, down = np.zeros((2, n))
    for name, part in zip(GROUPS, r["peak_by_group"][:n].T):
        bottom = np.where(part >= 0, up, down)
        axes.bar(places, part, 0.75, bottom, color=GROUPS[name])
        up, down = up + np.maximum(part, 0), down + np.minimum(part, 0)
    axes.plot(places, r["position_share_null"][:n], "_", color="black", markersize=12)
    axes.axhline(0, color="black", linewidth=0.7)
    axes.set_xticks(places, r["heads"][:n], rotation=90)
    axes.set_xlim(-0.6, max(n, SHOWN) - 0.4)
    axes.set_ylabel("share of the peak")
    axes.set_title("what peaks are made of (dash:\npositions, 99% of shuffled positions)")


def _draw_waves(axes, r):
    """Bars: what the waves of a band make of the peak of each head; dashes: a spike's."""
    n, names = min(len(r["heads"]), SHOWN), r["bands"]
    width = 0.8 / n
    for i in range(n):
        places = np.arange(len(names)) + width * (i - (n - 1) / 2)
        shade = 0.35 + 0.65 * (n - i) / n
        axes.bar(places, r["waves"][i], width, color=draw.BLUE, alpha=shade, label=r["heads"][i])
        spike = r["waves_flat"] * r["position_share"][i]
        axes.plot(places, spike, "_", color="black", markersize=40 * width)
    axes.axhline(0, color="black", linewidth=0.7)
    axes.set_xticks(range(len(names)), names, rotation=45)
    axes.set_xlabel("period of the wave (tokens)")
    axes.set_ylabel("share of the peak")
    axes.set_title("waves in position × position\n(dash: a spike, all waves alike)")
    axes.legend()


def _draw_toeplitz(axes, r):
    """A dot for each head: variance of the scores by lag alone, and position x position's share."""
    L = len(r["layers"])
    for i, layer in enumerate(r["layers"]):
        color = draw.shade(i, L)
        label = f"layer {layer}" if L <= TOLD or i in (0, L - 1) else None
        x, y = r["position_variance_of_heads"][i], r["toeplitz_of_heads"][i]
        axes.plot(x, y, "o", color=color, label=label)
    axes.axhline(r["toeplitz_of_heads_shuffled"].max(), color=draw.GREY, linestyle="--")
    axes.set(xlabel="position × position", ylabel="the lag alone")
    axes.set_title("share of the variance of scores\n(dashed: tokens shuffled, at most)")
    axes.legend()


SHARPEST = [
    "sharpest heads at -1 or +1 in which position × position makes at least half of the score's "
    "peak",
    When("documents", "", ", positions alone"),
]
NEIGHBOUR = f"heads with more than {heads.SHARP} of their attention at -1 or +1"
GIVES = When("n_sharp == 1", "1 head gives", "{n_sharp} heads give")


register(
    sources,
    look="The second figure has the mean score of the sharpest heads by lag, decomposed into terms "
    "that sum to it exactly: where the blue line coincides with that of the sum, positions "
    "cause the peak; where other lines do, words cause it, or what earlier layers computed "
    "from words and positions. In layer 0 the position term is that of the table; in later "
    "layers it is the mean at each position over documents, for queries over one half of them "
    "and for keys over the other. In the first figure bars divide each peak among the terms, "
    "and position × position among the periods of its waves: a spike has all frequencies "
    "equally (dashes), and waves of long periods alone cannot form a narrow peak. Its "
    "panel at the right shows the share of the variance of a token's scores that the lag "
    "explains (Toeplitz scores depend only on it), and the share of position × position.",
    published="The paper leaves open whether its solitary peaks, such as that of head(8,9) of "
    "roberta-base at -1, are made of position waves, as none of its waves is faster than 8 tokens "
    "(Yamamoto and Matsuzaki, section 5). Wennberg and Henter (2021) found that position-based "
    "scores are nearly Toeplitz.",
    figure="section 5",
    weights_only=True,
    least_documents=2,
    per_head=(
        "lag_of_heads",
        *(f"{name}_of_heads" for name in ("position_share", "position_variance", "toeplitz")),
    ),
    numbers="""
        n_positions: sharpest heads at -1 or +1 in which position × position is at least half of
            the peak of the scores
            null: the most in {SHUFFLES} shuffles of the query positions
        fact n_sharp: heads with more than {heads.SHARP} of their attention at -1 or +1; if there
            are none, the sharpest on each side
        n_long: sharpest heads in which position waves of {LONG} tokens or more are at least half
            of the peak
            no null: the share that these waves hold has one
        position_share by heads: share of position × position in the peak of the scores
            null: 99% quantile of that share over {SHUFFLES} shuffles of the query positions
        [c2p|p2c]_share by heads: share of the [content-to-position|position-to-content] term in the
            peak[ (DeBERTa)|]
            no null: terms sum to the whole exactly
        long_waves by heads: share of position waves with periods of {LONG} tokens or more in the
            peak
            null: their share if all frequencies contributed equally, as in a spike
        fact offset by heads: offset other than 0 with most attention, in tokens
        fact at_offset by heads: mean attention to that offset
        toeplitz by heads: share of the variance of a token's scores that the lag alone explains
            null: share of the variance that the lag explains with tokens in random order, which
            keeps each token's score with itself
        n_positions_by_layer by layer_names: heads with a direction whose peak is at least half
            position × position, by layer
            no null: the share of each sharp head has one
        fact n_directed_by_layer by layer_names: heads with a direction ({profiles.DIRECTION}), by
            layer
        toeplitz_by_layer by layer_names: share of the variance of scores that the lag alone
            explains, mean over the heads
            null: share of the variance that the lag explains with tokens in random order, mean over
            the heads
        fact documents: documents read (0: positions alone)
    """,
    answer=Asks(
        When("any_sharp", SHARPEST, NEIGHBOUR),
        value="{n_positions} of {n_sharp}",
        chance="{n_positions_null} of {n_sharp}, positions shuffled",
        rule=Of("n_positions", out_of="n_sharp", enough=MOST),
        without=Without("any_sharp", "0 of {lag_of_heads.size}", "0 heads"),
    ),
    says=[
        When("any_sharp", GIVES, "No head gives"),
        f" more than {heads.SHARP} of ",
        When("any_sharp", "the", "its"),
        " attention to a neighbour. Position × position is at least half of the peak in "
        "{n_positions} of {n_sharp} (query positions shuffled: at most {n_positions_null})",
        When("has_waves", ", and waves of {LONG} tokens or more alone would suffice in {n_long}"),
        ". {sharpest}. Heads with a direction whose peak is due to positions: ",
        Rows(
            "{layer_names} {n_positions_by_layer} of {n_directed_by_layer}",
            where="n_directed_by_layer",
            join=", ",
            none="there are none",
        ),
        When("c2p_share", GIVEN_SAYS, ""),
        ". The lag alone explains this share of the variance of scores, layer by layer: "
        "{toeplitz_by_layer:.2f} (tokens shuffled: {toeplitz_by_layer_null.max:.2f} at most).",
        When(
            "documents",
            "",
            " All this is from positions alone, since this checkpoint lacks words and outputs of "
            "layers: here a peak has no other source, and only the waves and the lag are "
            "informative.",
        ),
    ],
    draw=figures(Part(_draw_shares, height=5.2), Part(_draw_scores, height=4)),
    shares_passes=True,
)
