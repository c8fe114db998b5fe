"""Does the rotation that maps a head's queries to its keys show where it looks?

A rotation turns a head's queries into its keys, and at each frequency its angles are shifts by a
number of tokens. The weights settle a part of the basis and leave the rest free, so what is drawn
is the mean of the maps from several random bases, beside how far these differ. T tokens, D width, F
frequencies with 0, A bins of angles, R key offsets (positive: to the right), n columns of a basis,
L layers, H heads, G random bases, C heads compared; g [F n] is the amplitude at each frequency and
angle, theta [n] are the angles. Where a position turns queries and keys, the angles are those of
the turned pairs, and nothing is arbitrary.
"""

from typing import Annotated, Literal, NamedTuple

import numpy as np

from ..contract import Asks, NotApplicable, Share, Without, options, register, verdict
from ..drawing import Bar, Names, Rows, When, bars, draw, each, figures, row
from ..machine.language import filled, translated
from ..maths import factors, layout, nulls, profiles, spectra, stats
from ..maths import gauge as settled
from ..maths import rotation as maths
from ..measures import by_mechanism, heads, inputs
from ..running.stream import UNSAVED
from ..texts import corpus
from . import _rotation_pairs
from ._rotation_pairs import highest

TEXT = "text"  # what is read, or positions alone
MEAN = "mean"  # of the maps from random bases
COMPLETIONS = MEAN, "lapack", "procrustes", "thin"
TITLES = {
    MEAN: "mean of {n} random bases",
    "lapack": "the published basis",
    "procrustes": "the smallest rotation",
    "thin": "the settled columns alone",
}
LAYOUTS = "line", "band"  # of one shift; horizontal
MEANS = {"directed": "{x:z.2f} with a direction", "others": "{x:z.2f} without a direction"}
COUNTS = "{n} of {all} heads with a direction", "{n} of {all} heads without a direction"
BASES = ("mean of\nrandom bases", "published", "smallest\nrotation", "settled\ncolumns")
SHIFTS = (1, 2, 3)  # to both sides, in tokens or in tens, hundreds of them: the curves in the maps
DEALS = 1000  # of angles among frequencies, and of maps among heads
SHUFFLES = 200  # of the rows of the position table
TURNS = 200  # of the frequencies of a map, each by an angle of its own
SETTLED = 0.5  # gauge from which two maps have more in common than not
MOST = 0.9  # share of the heads with a direction from which the answer is yes
LEAST_SPREAD = 1e-9  # of two measures over heads, below which their correlation is rounding
GAUGES = (
    "gauge",
    "gauge_peaks",
    "gauge_lapack",
    "gauge_lapack_peaks",
    "gauge_positions",
    "gauge_peaks_positions",
    "one_offset",
)


class Conditions(NamedTuple):
    """What the measures of every head have in common."""

    causal: bool
    completion: str
    gauge: int  # number of random bases
    peaks: np.ndarray  # frequencies at which the position table has its peaks
    seed: int


def rotation(
    model,
    run=UNSAVED,
    *,
    head: options.Heads = "auto",
    completion: Literal["mean", "lapack", "procrustes", "thin"] = MEAN,
    input: Literal["text", "positions"] = "text",
    gauge: Annotated[int, options.Within(2, 50)] = 8,
    compare: Annotated[int, options.Within(0, 1000)] = 16,
    text: options.Text = "sample",
    documents: options.Count = 1,
    tokens: options.Tokens = 0,
    seed: options.Seed = 0,
):
    """Angles between queries and keys, by frequency, and how far the weights settle them.

    completion: basis where weights settle none: mean (of the maps from random ones), lapack (as
    published), procrustes (smallest rotation), thin (none)
    input: text (first document), or positions (alone, as always in a partial checkpoint)
    gauge: random bases with which the maps are made and compared
    compare: heads in which bases are compared, those with the clearest direction first (0: all)
    documents: documents whose mean attention is compared with the maps, which are of the first
    """
    way = by_mechanism.of_model(model, WAYS)
    given = head, text, documents, tokens, seed
    return way(model, run, given, (completion, input, gauge, compare))


def _by_table(model, run, given, drawn):
    """Maps of queries and keys that read a table of positions; drawn: what tells how."""
    head, text, documents, tokens, seed = given
    completion, input, gauge, compare = drawn
    if model.missing:
        input = "positions"
    document_set = attended = None
    T = tokens or model.config.n_ctx
    if input == "text":
        document_set = corpus.documents(model, text, tokens=tokens)
        attended = corpus.documents(model, text, documents, tokens)
        T = document_set.T
    options.within("tokens", T, profiles.REACH + 1, model.config.n_ctx)
    pairs = heads.select(head, model, document_set, run)
    _check_weights(model, pairs)
    layers = inputs.layers(model)
    alone = {layer: inputs.of_positions(model, layer, T).astype(float) for layer in layers}
    X, positions = alone, {}
    if input == "text":
        of_text = inputs.of_text(model, document_set.first()[0]).astype(float)
        X, positions = dict(enumerate(of_text)), alone
    peaks, n_peaks = _find_peaks(inputs.reachable(model)[:T], seed)
    conditions = Conditions(model.config.causal, completion, gauge, peaks, seed)
    result = {"T": T, "D": model.config.d_model, "input": input, "completion": completion}
    result |= {"bases": gauge, "peaks": peaks, "n_peaks": n_peaks}
    result["angle"] = maths.bin_centres()
    result |= _look_at_attention(model, attended, T, run)
    compared = _choose_heads(result["clearness"], pairs, list(X), compare)
    result |= _measure_heads(model, X, positions, compared, pairs, conditions)
    result |= _measure_noise(model, X, conditions)
    result |= _compare_all_heads(model, X, result, seed)
    return result | _summarize(result, compared, pairs, list(X), seed)


WAYS = by_mechanism.entries(
    table=_by_table,
    rotary=_rotation_pairs.measure,
    bias="nothing to turn: a bias by distance turns no query",
    none=f"nothing to turn: {by_mechanism.NO_PLACES}",
)


def _check_weights(model, pairs):
    """Raise NotApplicable for a head to draw that turns nothing, or where there is none to draw."""
    if not pairs:
        raise NotApplicable("rotation needs a head with query and key weights; here all are zero")
    for pair in pairs:
        if inputs.is_pruned(model, *pair):
            name = heads.name(*pair)
            raise NotApplicable(f"{name} has no rotation: its query or key weights are zero")


def _find_peaks(table, seed):
    """Frequencies at which a position table [T D] has a peak, and how many are above chance.

    A peak is a local maximum of the mean amplitude, above 99% of the largest amplitudes of tables
    with their rows in random order. Where none is, the highest frequency is taken.
    """
    spectrum = spectra.mean_amplitude(table)
    shuffles = nulls.row_shuffles(table, SHUFFLES, seed)
    largest = nulls.distribution(lambda x: spectra.largest(spectra.mean_amplitude(x)), shuffles)
    peaks = spectra.maxima(spectrum, np.quantile(largest, nulls.CHANCE))
    highest = 1 + spectrum[1:].argmax(keepdims=True)
    return np.sort(peaks if len(peaks) else highest), len(peaks)


def _look_at_attention(model, document_set, T, run):
    """Offset with most attention of all heads [L H], and which of them have a direction."""
    if document_set is None:
        mean = heads.attention_to_positions(model, T)
    else:
        mean = heads.attention_over(model, document_set, T, run)
    result = {"attention_of_heads": profiles.offsets()[mean.argmax(axis=-1)]}
    result["directed"] = profiles.directed(mean, T, causal=model.config.causal)
    result["clearness"] = np.where(profiles.offsets() == 0, 0, mean).max(axis=-1)
    return result | {"n_directed": result["directed"].sum()}


def _choose_heads(clearness, pairs, layers, n):
    """Heads to compare, (layer, number), in order: those drawn, and n by their clearness [L H].

    Half of these have the clearest directions, the others are spread evenly over what is left. All
    heads are compared if n is 0 or there are no more.
    """
    if not 0 < n < clearness.size:
        n = clearness.size
    clearest_first = np.argsort(-clearness.ravel(), kind="stable")
    clear, others = np.split(clearest_first, [n // 2])
    evenly = np.linspace(0, len(others) - 1, n - n // 2).astype(int)
    places = [*clear, *np.sort(others)[evenly]]
    rows, numbers = np.unravel_index(places, clearness.shape)
    return sorted({*pairs, *((layers[i], int(j)) for i, j in zip(rows, numbers))})


def _measure_heads(model, X, positions, compared, pairs, conditions):
    """What `_compare_bases` gives of each head compared, and `_measure_head` of each head drawn."""
    each, drawn = [], {}
    for layer, number in compared:
        W_Q, W_K = inputs.query_key(model, layer, number)
        rotations = {MEAN: _from_random_bases(W_Q, W_K, conditions)}
        rotations |= {name: [maths.of_head(W_Q, W_K, name)] for name in COMPLETIONS[1:]}
        measures, maps = _compare_bases(X[layer], rotations, conditions)
        if layer in positions:
            alone, _ = _compare_bases(positions[layer], rotations, conditions)
            measures |= {f"{name}_positions": alone[name] for name in ("gauge", "gauge_peaks")}
        measures |= _lay_out(maps[conditions.completion], len(X[layer]), conditions)
        each.append(measures)
        if (layer, number) in pairs:
            drawn[layer, number] = _measure_head(X[layer], W_Q, W_K, rotations, maps, conditions)
    result = {f"compared_{name}": x for name, x in stats.stacked(each).items()}
    result["compared"] = np.array([heads.name(*pair) for pair in compared])
    in_order = [drawn[pair] for pair in pairs]
    return result | stats.stacked(in_order)


def _from_random_bases(W_Q, W_K, conditions):
    """G Rotations of a head."""
    seeds = range(conditions.seed, conditions.seed + conditions.gauge)
    return [maths.of_head(W_Q, W_K, "random", seed) for seed in seeds]


def _compare_bases(x, rotations, conditions):
    """How settled the map of x [T D] is, and which offset each basis shows; and the maps of x.

    offsets, filters [4]: in the order of COMPLETIONS.
    """
    maps = {name: maths.maps(x, basis) for name, basis in rotations.items()}
    shapes = settled.shape(settled.energies(maps[MEAN]))
    published = settled.shape(settled.energies(maps["lapack"]))[0]
    peaks = conditions.peaks
    inside = settled.share_read(x, rotations["thin"][0].U_Q)
    result = {"gauge": settled.gauge(shapes), "gauge_peaks": settled.gauge(shapes, None, peaks)}
    result["gauge_lapack"] = settled.gauge(shapes, published)
    result["gauge_lapack_peaks"] = settled.gauge(shapes, published, peaks)
    result |= {"gauge_by_frequency": settled.by_frequency(shapes), "read": inside}
    result |= {"read_peaks": inside[peaks - 1].mean()}
    excess = {name: _excess(of_basis, len(x)) for name, of_basis in maps.items()}
    fits = {name: _fits(of_basis, len(x)) for name, of_basis in maps.items()}
    for name, values in (("offsets", excess), ("filters", fits)):
        result[name] = [highest(values[basis].mean(axis=0), conditions.causal) for basis in maps]
    by_basis = highest(excess[MEAN], conditions.causal)
    _, counts = np.unique(by_basis, return_counts=True)
    return result | {"one_offset": counts.max() / len(by_basis)}, maps


def _energy_by_offset(maps, T):
    """Shares of the energy by key offset, minus Delta, own and expected: [G R] twice.

    Expected are those with the angles of other frequencies, on average.
    """
    by_lag = [[of(*basis, T) for basis in maps] for of in (maths.by_lag, maths.expected_by_lag)]
    return np.array(by_lag)[..., ::-1]


def _excess(maps, T):
    """Shares by key offset above those with other frequencies' angles: [G R]."""
    own, expected = _energy_by_offset(maps, T)
    return own - expected


def _fits(maps, T):
    """The matched filter [G R] by key offset."""
    return np.array([maths.matched_filter(*of_basis, T) for of_basis in maps])


def _lay_out(maps, T, conditions):
    """The strongest line of one shift and horizontal band of a head's maps, beside chance.

    is_line, is_band: whether it is more than chance gives and more than the other; *_null: how
    often a map with each frequency rotated at random is.
    """
    energy = settled.energies(maps).mean(axis=0)
    counts = [maths.binned(np.ones((1, len(theta))), theta)[0] for _, theta in maps]
    rows = layout.rows_of(energy, np.sum(counts, axis=0), T)
    shifts = layout.shifts(T)
    along = {"line": layout.along_lines(rows, shifts), "band": layout.along_bands(rows)}
    by_chance = dict(zip(("band", "line"), layout.by_chance(rows, shifts, TURNS, conditions.seed)))
    places = {"line_shift": -shifts, "band_angle": maths.bin_centres()}
    result = {name: values[along[name[:4]].argmax()] for name, values in places.items()}
    lines = {name: np.quantile(x, nulls.CHANCE) for name, x in by_chance.items()}
    for name, other in (("line", "band"), ("band", "line")):
        highest = along[name].max()
        result |= {name: highest, f"{name}_null": lines[name]}
        result[f"is_{name}"] = highest > max(lines[name], along[other].max())
        chance = (by_chance[name] > lines[name]) & (by_chance[name] > by_chance[other])
        result[f"is_{name}_null"] = chance.mean()
    return result


def _measure_head(x, W_Q, W_K, rotations, maps, conditions):
    """Maps [F A], shares by key offset [R], and the fit of one head."""
    drawn = rotations[conditions.completion]
    query_part = factors.seen(x, W_Q, W_K)  # what queries read of x
    key_part = factors.seen(x, W_K, W_Q)
    of_keys = [r._replace(U_Q=r.U_K) for r in drawn]
    of_parts = {
        "whole": maps[conditions.completion],
        "queries": maths.maps(query_part, drawn),
        "keys": maths.maps(key_part, of_keys),
    }
    result = {}
    for name, several in of_parts.items():
        result[name] = settled.energies(several).mean(axis=0).astype(np.float32)
    result["spread"] = settled.spread(settled.energies(maps[MEAN])).astype(np.float32)
    result |= _offset_shares(maps[conditions.completion], len(x), conditions)
    return result | _fit(x, rotations["thin"][0], conditions.seed)


def _offset_shares(maps, T, conditions):
    """Shares of the energy by key offset, those that chance gives, the offset most above it."""
    share, expected = _energy_by_offset(maps, T).mean(axis=1)
    excess = share - expected
    best = highest(excess, conditions.causal) + profiles.REACH
    result = {"share_by_offset": share, "dealt_by_offset": expected}
    result |= {"offset": profiles.offsets()[best], "share": share[best]}
    result |= {"share_null": expected[best], "excess": excess[best]}
    by_chance = _deal(maps, T, conditions) - expected
    places = highest(by_chance, conditions.causal) + profiles.REACH
    result["excess_null"] = np.quantile(by_chance[range(DEALS), places], nulls.CHANCE)
    result["filter_by_offset"] = _fits(maps, T).mean(axis=0)
    result["filter_offset"] = highest(result["filter_by_offset"], conditions.causal)
    return result


def _deal(maps, T, conditions):
    """Mean shares by key offset of several maps, with the angles of other frequencies: [DEALS R].

    All maps get the same deals, as what the weights settle is the same in all.
    """
    by_basis = [maths.dealt_by_lag(*of_basis, T, DEALS, conditions.seed) for of_basis in maps]
    return sum(by_basis)[:, ::-1] / len(maps)


def _fit(x, thin, seed):
    """How much of the keys a rotation explains, and of noise."""
    noise = np.random.default_rng(seed).standard_normal((2, len(x), thin.U_Q.shape[1]))
    fit = maths.fit(x @ thin.U_Q, x @ thin.U_K)
    return {"fit": fit, "fit_null": maths.fit(*noise)}


def _measure_noise(model, X, conditions):
    """The gauge of a head with random weights."""
    D, d = model.config.d_model, model.config.d_head
    rng = np.random.default_rng(conditions.seed)
    rotations = _from_random_bases(*rng.standard_normal((2, D, d)), conditions)
    everywhere, at_peaks = [], []
    for x in X.values():
        shapes = settled.shape(settled.energies(maths.maps(x, rotations)))
        everywhere.append(settled.gauge(shapes))
        at_peaks.append(settled.gauge(shapes, None, conditions.peaks))
    return {"gauge_random": np.mean(everywhere), "gauge_peaks_random": np.mean(at_peaks)}


def _compare_all_heads(model, X, r, seed):
    """Offsets of all heads [L H] from what the weights determine, beside that of most attention."""
    best = []
    for layer in X:
        for number in range(model.config.n_heads):
            W_Q, W_K = inputs.query_key(model, layer, number)
            query_part = factors.seen(X[layer], W_Q, W_K)
            maps = maths.maps(query_part, [maths.of_head(W_Q, W_K, "thin")])
            best.append(highest(_excess(maps, len(query_part))[0], model.config.causal))
    offset = np.array(best).reshape(r["directed"].shape)
    attention, directed = r["attention_of_heads"], r["directed"]
    result = {"offset_of_heads": offset}
    pairs = {"agree": (offset.ravel(), attention.ravel())}
    if directed.any():
        pairs["agree_directed"] = offset[directed], attention[directed]
    for name, pair in pairs.items():
        result[name], (_, result[f"{name}_null"]) = nulls.matches(*pair, seed)
    return result


def _summarize(r, compared, pairs, layers, seed):
    """Measures of the heads drawn; of the heads compared, with a direction and without."""
    places = tuple(np.transpose([(layers.index(layer), number) for layer, number in compared]))
    directed, attention = r["directed"][places], r["attention_of_heads"][places]
    result = {"compared_directed": directed, "compared_attention": attention}
    drawn = [compared.index(pair) for pair in pairs]
    result |= heads.named(pairs)
    result["attention_offset"] = attention[drawn]
    for name in GAUGES:
        if f"compared_{name}" in r:
            values = r[f"compared_{name}"]
            result[f"{name}_of_drawn"] = values[drawn]
            result |= _mean_by_kind(name, values, directed)
    result |= _count_layouts(r, directed, drawn)
    gauge, share = r["compared_gauge_peaks"], r["compared_read_peaks"]
    if min(gauge.std(), share.std()) > LEAST_SPREAD:
        result["follows"] = np.corrcoef(gauge, share)[0, 1]
    if directed.any():
        result |= _count_right(r, directed, attention, seed)
    return result


def _count_layouts(r, directed, drawn):
    """Shares of the heads compared whose maps have a line of one shift, or a horizontal band."""
    names = "line", "line_null", "line_shift", "band", "band_null", "band_angle"
    result = {name: r[f"compared_{name}"][drawn] for name in names}
    for name in LAYOUTS:
        for null in ("", "_null"):
            values = r[f"compared_is_{name}{null}"].astype(float)
            result[f"{name}s{null}"] = values.mean()
            if directed.any():
                result[f"{name}s_directed{null}"] = values[directed].mean()
    return result


def _mean_by_kind(name, values, directed):
    """Means of a measure of the heads compared [C]: with a direction, without."""
    result = {}
    for kind, members in zip(MEANS, (directed, ~directed)):
        if members.any():
            result[f"{name}_{kind}"] = values[members].mean()
    return result


def _count_right(r, directed, attention, seed):
    """How many heads with a direction show the offset of their attention [C], in each basis [4]."""
    expected = attention[directed, None]
    result = {"n_compared": directed.sum()}
    result["right_by_basis"] = (r["compared_offsets"][directed] == expected).mean(axis=0)
    result["filter_by_basis"] = (r["compared_filters"][directed] == expected).mean(axis=0)
    result["right"] = result["right_by_basis"][0]

    def count(offsets):
        return np.mean(offsets[directed] == attention[directed])

    shuffles = nulls.row_shuffles(r["compared_offsets"][:, 0], DEALS, seed)
    result["right_null"] = np.quantile(nulls.distribution(count, shuffles), nulls.CHANCE)
    result["gauge_peaks_directed_null"] = r["gauge_peaks_random"]
    result["gauge_directed_null"] = r["gauge_random"]
    return result


def _count(share, of="n_compared"):
    """A piece of a sentence: how many heads a share of them is."""
    return lambda r: f"{r[share] * Names(r)[of]:.0f}"


def _by_kind(name):
    """A piece of a sentence: '0.51 with a direction, 0.06 without a direction'."""

    def phrases(r):
        means = {said: r.get(f"{name}_{kind}") for kind, said in MEANS.items()}
        return ", ".join(filled(said, x=x) for said, x in means.items() if x is not None)

    return phrases


def _describe_settled(r):
    """How many maps are settled, by the rule that two have more in common than not."""
    at_peaks = r["compared_gauge_peaks"] >= SETTLED
    everywhere = r["compared_gauge"] >= SETTLED
    directed = r["compared_directed"]
    phrases = []
    for members, said in zip((directed, ~directed), COUNTS):
        if members.any():
            phrases.append(filled(said, n=at_peaks[members].sum(), all=members.sum()))
    counts = {"everywhere": everywhere.sum(), "n": len(directed)}
    counts["peaks"] = translated(" and in ").join(phrases)
    return filled(
        "So the weights settle the map (by {SETTLED} or more) at the peaks in {peaks}, over all "
        "frequencies in {everywhere} of {n}. Where they do not, most of what a map shows, the "
        "published one too, is an arbitrary choice of basis.",
        SETTLED=SETTLED,
        **counts,
    )


def more(r):
    """Whether the offset of each head drawn has more than chance gives [n]."""
    return np.where(r["excess"] > r["excess_null"], "more", "no more")


def _draw_one_head(figure, r, i):
    """The map of one head, its gauge, the energy by offset; below, what they mean."""
    panels = figure.subplots(1, 3, width_ratios=(1.15, 1, 1))
    amplitude = np.sqrt(r["whole"][i])
    image = _draw_map(panels[0], r, amplitude / max(amplitude[1:].max(), 1e-300))
    _draw_gauge(panels[1], r, i)
    _draw_offsets(panels[2], r, i)
    panels[0].set_ylabel(f"{r['heads'][i]}, {r['papers_heads'][i]}\nangle (radians)")
    drawn = TITLES[str(r["completion"])].format(n=r["bases"])
    panels[0].set_title(f"{drawn}\n{_title_of_map(r, i)}")
    _draw_periods(panels[0], r)
    above = panels[2].secondary_xaxis("top", functions=(np.negative, np.negative))
    above.set_xlabel("Δ, shift of the waves (tokens)")
    for axes in panels[:2]:
        axes.set_xlabel(f"frequency (cycles in {r['T']} tokens)")
    panels[2].set_xlabel("offset of the key that fits (tokens)")
    style = {"location": "bottom", "aspect": 30, "label": "amplitude / largest"}
    figure.colorbar(image, ax=panels[0], **style)
    samples = [x for axes in panels[1:] for x in axes.get_legend_handles_labels()[0]]
    figure.legend(handles=samples, loc="outside lower center", ncols=4)


def _title_of_map(r, i):
    """Line and band, 'line Δ +2, key -2: 31.0% (null 5.0%)'."""
    line, line_null, band, band_null = (
        r[name][i] for name in ("line", "line_null", "band", "band_null")
    )
    key = int(r["line_shift"][i])
    shift = f"line Δ {draw.offset(-key)}, key {draw.offset(key)}"
    return f"{shift}: {line:.1%} (null {line_null:.1%})\nband: {band:.1%} (null {band_null:.1%})"


def _draw_map(axes, r, values):
    """Heat map over frequency and angle [F A], from 0 to 1, with curves of whole shifts."""
    last = _last_frequency(r)
    half = np.pi / len(r["angle"])  # of a bin
    extent = (0.5, last + 0.5, r["angle"][0] - half, r["angle"][-1] + half)
    scale = {"vmin": 0, "vmax": 1, "cmap": "Blues", "origin": "lower"}
    image = axes.imshow(values[1 : last + 1].T, aspect="auto", extent=extent, **scale)
    _draw_shifts(axes, int(r["T"]), last)
    axes.set(xlim=(0.5, last + 0.5), ylim=(-np.pi, np.pi), yticks=range(-3, 4))
    return image


def _last_frequency(r):
    """Frequency up to which the maps are drawn: 99% of what queries read."""
    return layout.last_frequency(r["queries"].sum(axis=0))


def _draw_shifts(axes, T, last):
    """Curves of shifts by whole tokens, up to the frequency `last`: the paper's Δ (key offset)."""
    for number in (*SHIFTS, *(-n for n in SHIFTS)):
        delta = number * layout.unit(T, last)
        theta = np.sign(delta) * np.linspace(0, np.pi, 200)
        f = maths.lag_curve(theta, T, delta)
        inside = f <= last
        axes.plot(f[inside], theta[inside], color=draw.VERMILION, linewidth=0.6)
        height, side, edge = LABELS[abs(number)]
        end = np.flatnonzero(inside & (abs(theta) < height))[-1]  # clear of the frame
        style = {"ha": side, "va": edge[number < 0], "fontsize": 10, "color": draw.VERMILION}
        style["bbox"] = draw.OVER_LINES
        text = f" Δ {draw.offset(delta)} ({draw.offset(-delta)}) "
        axes.annotate(text, (f[end], theta[end]), **style)


# Of the label of a curve: the angle at which it stands, its side that touches the curve, and its
# edge for a shift to the left and to the right
LABELS = {
    1: (1.6, "left", ("top", "bottom")),
    2: (2.5, "left", ("center", "center")),
    3: (2.5, "right", ("center", "center")),
}


def _draw_periods(axes, r):
    above = axes.secondary_xaxis("top")
    frequencies = np.unique(np.linspace(1, _last_frequency(r), 5).astype(int))
    periods = r["T"] / frequencies
    above.set_xticks(frequencies, [f"{p:.0f}" if p > 10 else f"{p:.1f}" for p in periods])
    above.set_xlabel("period (tokens)")


def _draw_gauge(axes, r, i):
    """Gauge and share read at each frequency; the peaks of the table, the means in the title."""
    last = _last_frequency(r)
    f = np.arange(1, last + 1)
    place = r["compared"].tolist().index(r["heads"][i])
    gauge = r["compared_gauge_by_frequency"][place]
    peaks = r["peaks"][r["peaks"] <= last]
    share = r["compared_read"][place][:last]
    axes.plot(f, share, color=draw.ORANGE, linewidth=1, label="share that queries read")
    axes.plot(f, gauge[:last], color=draw.BLUE, linewidth=1, label="bases agree")
    axes.plot(peaks, gauge[peaks - 1], "o", color=draw.BLUE, markersize=4, label="at the peaks")
    everywhere, at_peaks = r["gauge_of_drawn"][i], r["gauge_peaks_of_drawn"][i]
    axes.set_title(
        f"random bases agree: {everywhere:z.2f} (null {r['gauge_random']:z.2f}),\n"
        f"at the table's peaks {at_peaks:z.2f} (null {r['gauge_peaks_random']:z.2f})"
    )
    axes.set(xlim=(0.5, last + 0.5), ylim=(-0.2, 1.05), ylabel="correlation, or share")


def _draw_offsets(axes, r, i):
    """Share of the energy at each key offset, beside its null and the matched filter."""
    offsets = profiles.offsets()
    share, expected = r["share_by_offset"][i], r["dealt_by_offset"][i]
    fit = r["filter_by_offset"][i]
    axes.bar(offsets, share, width=0.8, color=draw.SKY, label="share of the energy")
    dashed = {"color": draw.GREY, "linestyle": "--", "marker": "o", "markersize": 2.5}
    axes.plot(offsets, expected, label="null: angles of other frequencies", **dashed)
    axes.plot(offsets, fit, color=draw.PURPLE, label="matched filter")
    low, high = min(0, fit.min()), max(share.max(), expected.max(), fit.max(), 1e-6)
    axes.set(ylim=(1.15 * low, 1.1 * high), ylabel="share of the energy")
    triangle = {"color": draw.VERMILION, "markersize": 8, "clip_on": False}
    axes.plot(r["attention_offset"][i], 1.15 * low, "^", label="most attention", **triangle)
    verdict = "above" if r["excess"][i] > r["excess_null"][i] else "within"
    axes.set_title(
        f"energy: {draw.offset(r['offset'][i])}, {verdict} chance; filter: "
        f"{draw.offset(r['filter_offset'][i])};\n"
        f"most attention: {draw.offset(r['attention_offset'][i])}"
    )


def _draw_settled(axes, r):
    """Gauge of every head compared against the share that it reads, both at the peaks."""
    gauge, share = r["compared_gauge_peaks"], r["compared_read_peaks"]
    kinds = (
        (r["compared_directed"], draw.BLUE, "with a direction"),
        (~r["compared_directed"], draw.GREY, "without a direction"),
    )
    for members, color, label in kinds:
        axes.plot(share[members], gauge[members], "o", color=color, label=label)
    line = r["gauge_peaks_random"]
    axes.axhline(line, color="black", linestyle="--", linewidth=1, label="null: random weights")
    axes.legend(loc="upper left")
    axes.set(xlim=(0, 1.02), ylim=(min(-0.05, gauge.min() - 0.05), 1.05))
    axes.set_xlabel("share of the input that queries read")
    axes.set_ylabel("how far random bases agree\n(correlation of their maps)")
    title = "at the peaks of the position table"
    if "follows" in r:
        title += f":\na head's map is settled as far as it reads ({r['follows']:.2f})"
    axes.set_title(title)


def _draw_right(axes, r):
    """Share of the heads with a direction in which each basis shows the offset of attention."""
    axes.set_title("heads with a direction whose map\nshows the offset that they attend to")
    axes.set(xlim=(0, 1.2), yticks=range(len(BASES)), yticklabels=BASES, ylim=(3.6, -0.9))
    axes.set_xlabel("share of these heads")
    if "right" not in r:
        return
    places = np.arange(len(BASES))
    readings = (("right_by_basis", draw.SKY, "energy"), ("filter_by_basis", draw.PURPLE, "filter"))
    for i, (name, color, label) in enumerate(readings):
        heights = {"height": 0.32, "color": color, "label": label}
        drawn = axes.barh(places + 0.36 * i - 0.18, r[name], **heights)
        axes.bar_label(drawn, fmt="{:.0%}", padding=2)  # a bar of 0 is said
    line = {"color": "black", "linestyle": "--", "linewidth": 1, "label": "null: maps shuffled"}
    axes.plot(2 * [r["right_null"]], (-0.4, len(BASES) - 0.5), **line)
    axes.legend(loc="upper left", ncols=3, columnspacing=0.8, handlelength=1.2)


OFFSETS = [
    "The mean map of {bases} random bases shows the offset of attention in ",
    _count("right"),
    " of {n_compared} heads with a direction (maps of the heads compared shuffled: up to ",
    _count("right_null"),
    "). On average {one_offset_directed:.0%} of a head's bases show one and the same offset. The "
    "columns that the weights settle show, alone, the offset of attention in {agree_directed:.0%} "
    "of all heads with a direction (pairs shuffled: up to {agree_directed_null:.0%}).",
]
GAUGE = [
    "How far do a head's maps from two random bases correlate within a frequency? At the peaks of "
    "the position table ({peaks.size} frequencies): ",
    _by_kind("gauge_peaks"),
    " (random weights: {gauge_peaks_random:z.2f}). Over all frequencies: ",
    _by_kind("gauge"),
    " ({gauge_random:z.2f}).",
    When(
        "input == TEXT",
        [" At the peaks, from positions alone: ", _by_kind("gauge_peaks_positions"), "."],
    ),
    " ",
    _describe_settled,
    When(
        "follows",
        " Over the heads, how far a map is settled at the peaks goes with the share of the drawn "
        "signal that the queries read there (correlation {follows:.2f}).",
    ),
]
LINES = [
    "Of {compared.size} maps ",
    _count("lines", "compared.size"),
    " have a line of one shift and ",
    _count("bands", "compared.size"),
    " a horizontal band (each frequency rotated at random: {lines_null:.1%} and {bands_null:.1%} "
    "of them).",
    When(
        "n_compared",
        [
            " Of the {n_compared} with a direction it is ",
            _count("lines_directed"),
            " and ",
            _count("bands_directed"),
            ".",
        ],
    ),
]
DRAWN = Rows(
    "{heads} shows {offset:offset} with {share:.1%} of the energy (with the angles of other "
    "frequencies {share_null:.1%}; {more} than chance gives), and attends to "
    "{attention_offset:offset}.",
    join=" ",
)

OF_TABLE = [
    When(
        "n_directed",
        OFFSETS,
        "No head has a direction, so no offset can be compared with that of attention.",
    ),
    " ",
    GAUGE,
    " ",
    LINES,
    " The maps drawn: ",
    DRAWN,
    When("input == TEXT", "", " All this is from positions alone, without words."),
]
PAIRS = [
    "A position turns queries and keys here, {pairs} pairs of features of each head, so that no "
    "basis is chosen and nothing is arbitrary. ",
    When(
        "n_directed",
        [
            "The angles of the mean query and key fit best at the offset of attention in ",
            _count("right"),
            " of {n_compared} heads with a direction (angles of a head dealt among its pairs: up "
            "to ",
            _count("right_dealt"),
            "; heads shuffled: up to ",
            _count("right_shuffled"),
            ").",
        ],
        "No head has a direction, so no offset can be compared with that of attention.",
    ),
]

OF_MAPS = row(
    _draw_settled,
    _draw_right,
    bars(  # variance of the keys that one rotation of the queries explains
        Bar("fit", None, null="fit_null"),
        ticks="heads",
        title="keys explained by one rotation\nof queries (dashes, null: noise)",
        ylabel="variance explained",
        ylim=(0, 1),
    ),
    widths=(1, 1, 0.9),
    height=3.6,
)
OF_PAIRS = each(_rotation_pairs.paint, 3.2, "heads")
OF_HEADS = each(_draw_one_head, 4.6, "heads")


register(
    rotation,
    look="A wave that is turned by an angle is moved by a number of tokens; the orange lines are "
    "moves by Δ = ±1, ±2 and ±3 tokens (or tens, hundreds of tokens, where waves are so slow that "
    "nearer lines would be one). A positive Δ is attention to the left: in parentheses is the "
    "offset of the key that then fits the query, -Δ. Dark blue along one line means a head that "
    "looks there; waves moved by more than half a turn show on the other side. A head's weights "
    "settle only some columns of its basis, and a map needs all of them; so the map is the mean "
    "over several random choices of the others. The middle panel shows for each frequency how far "
    "these agree: the correlation of two such maps, 1 where the weights settle the map (null: a "
    "head with random weights). It rises with the share of the input that the head's queries read "
    "(orange); the first figure shows this for all heads compared. The bars add up the map by "
    "offset; the dashed line is with the angles of other frequencies. Each angle counts for the "
    "nearest offset there, so that a wave of 2.9 tokens moved by 2 is counted as moved by 1 the "
    "other way; the matched filter (purple) asks instead how well a shift by each offset fits all "
    "waves together. It is the circular cross-correlation of queries and keys, so it adds no "
    "evidence to `lags`. The title of a map has the share of its energy along the best line of one "
    "shift and along the best horizontal band (one angle at all frequencies), beyond an even "
    "spread; null: what 99% of maps with each frequency rotated at random stay below. In the first "
    "figure, at the right: one rotation explains something of pure noise too.",
    published="In roberta-base the map of head(1,1), here L0H0, which looks weakly left, peaks "
    "between the curves of 1 and 3 tokens; the map of head(2,3), here L1H2, which looks one to the "
    "right, peaks on the curve of -1 (Yamamoto and Matsuzaki, figure 6). The maps of GPT-2 have "
    "horizontal bands, no lines of one shift (appendix C of their longer paper).",
    figure="figure 6",
    weights_only=True,
    per_head=("offset_of_heads", "attention_of_heads"),
    numbers="""
        right: share of the heads with a direction in which the offset that stands out in the mean
            map of random bases is the offset of most attention
            null: its 99% quantile with the maps of the heads compared shuffled; of turned pairs
            the larger one of heads shuffled and of angles dealt among a head's pairs
        gauge_peaks_directed: correlation within a frequency of two maps from random bases, at the
            peaks of the position table, heads with a direction
            null: that correlation for a head with random weights
        gauge_directed: correlation within a frequency of two maps from random bases, all
            frequencies, heads with a direction
            null: that correlation for a head with random weights
        follows: correlation over heads between that of their maps and the share of the drawn signal
            that their queries read, at the peaks of the position table
            no null: it decides nothing
        one_offset_directed: share of a head's random bases that show its most frequent offset, mean
            over heads with a direction
            no null: whether that offset is the right one has one
        [lines|bands]: share of all heads compared whose map has [more of its energy along a line of
            one shift than along any angle|a horizontal band: more of its energy at one angle, at
            all frequencies, than along any shift], and than chance gives
            null: that share in {TURNS} maps with each frequency rotated at random
        fact n_directed: heads with a direction: {profiles.DIRECTION}
        [agree_directed|agree]: share of all heads[ with a direction|] whose offset, by only the
            columns that the weights settle, is the offset of most attention
            null: its 99% quantile with the pairs of heads shuffled
    """,
    answer=Asks(
        When(
            "pairs",
            "heads with a direction whose rotary pairs match best at the offset that they "
            "attend to",
            "heads with a direction whose map from queries to keys (mean over bases) shows the "
            "offset that they attend to",
        ),
        value=[_count("right"), " of {n_compared} compared (of {n_directed})"],
        chance=[
            "up to ",
            _count("right_null"),
            " of {n_compared}, ",
            When("pairs", "heads or angles shuffled", "maps shuffled"),
        ],
        rule=Share("right", enough=MOST, margin=lambda r: verdict.of_few(r["n_compared"])),
        without=Without("n_directed", "0 heads with a direction", "0"),
    ),
    says=When("pairs", PAIRS, OF_TABLE),
    draw=figures(lambda r: OF_PAIRS(r) if "pairs" in r else [OF_MAPS, *OF_HEADS(r)]),
    shares_passes=True,
)
