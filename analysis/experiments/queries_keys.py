"""Are queries and keys periodic, with a phase shift between them?

Columns of Q = X U_Q and K = X U_K over positions in a few heads, where
W_A = W_Q W_K^T = U_Q S U_K^T; the paper shows two columns of one head. Periodic columns are counted
in all heads, as a share of a head's width. T tokens, D width, d width of a head, r columns of Q,
L layers (of a partial checkpoint those with weights), H heads, n heads drawn, c columns drawn of
each, R lags, positive to the right.
"""

import re
from functools import partial
from typing import Annotated, Literal, NamedTuple

import numpy as np

from ..contract import Asks, Of, Without, options, register, sides
from ..drawing import Part, When, bar_sample, draw, figures, line_sample
from ..machine.language import filled, translated
from ..maths import factors, nulls, profiles, spectra, stats, waves
from ..measures import heads, inputs
from ..running.stream import UNSAVED
from ..texts import corpus

SHUFFLES = 200  # of the rows: a periodic column is above what 99% of them reach
FIRST = 64  # positions that the paper draws
MAJORITY = 0.5  # share of heads with a direction above which "most of them" is said
MOST = 16  # heads of --head, as a layer of a small model has
COLUMNS = 6  # of each head, that a figure holds
ALONE = "positions"  # the input without words
SHOWN = 2  # columns of each head, and bands, that are drawn where none are chosen


class Settings(NamedTuple):
    """What is measured in every head."""

    columns: np.ndarray | None  # None: those that carry most of the bands
    bands: np.ndarray  # [B 2], in cycles over the document
    reach: int  # farthest lag
    seed: int


def queries_keys(
    model,
    run=UNSAVED,
    *,
    head: options.Heads = "auto",
    columns: str = "auto",
    input: Literal["auto", "text", "positions"] = "auto",
    low: options.Size = 0,
    high: options.Size = 0,
    bias: bool = False,
    reach: options.Size = 0,
    show: Annotated[int, options.OrZero(options.AtLeast(8))] = 0,
    text: options.Text = "sample",
    tokens: options.Tokens = 0,
    seed: options.Seed = 0,
):
    """Columns of queries and keys against position, filtered and not, and the shift between them.

    columns: columns to show, from 0, as 4,5 (the paper's 5 and 6); auto: the one that carries most
    of each band, or of a single band the 2
    input: text (first document), positions (alone), or auto: text, positions in a partial
    checkpoint
    low: lowest frequency that the filter keeps, in cycles over the document (0: half an octave
    below the peak; if high is 0 too, another peak that is as high gets a band of its own)
    high: highest frequency that it keeps (0: half an octave above the peak)
    bias: add the biases of queries and keys, so that the scores are exact; the paper leaves them
    out
    reach: farthest lag tried, in tokens (0: 10, or half a period of the peak if that is longer)
    show: positions to draw (0: 64, or two periods of the peak if they are longer)
    """
    documents, T = _documents(model, input, text, tokens)
    peaks = waves.as_high(inputs.reachable(model)[:T], seed)
    banded, bands = _bands(peaks, T, low, high)
    reach = reach or min(max(10, T // peaks[0] // 2), T // 2)
    show = show or min(max(FIRST, 2 * T // min(banded)), T)
    options.within("reach", reach, 1, T // 2)
    options.within("show", show, 8, T)
    r = min(model.config.d_head, model.config.d_model + bias)
    settings = Settings(_columns(columns, r), bands, reach, seed)
    attention = _attention(model, head, documents, run)
    pairs = _heads(model, head, attention)
    result = _measure(model, pairs, documents, T, bias, settings)
    result |= _count_all(model, documents, T, bias, settings)
    result |= _directed(result, attention, T, model.config.causal)
    result |= heads.named(pairs) | {"papers_columns": result["columns"] + 1}
    result |= {"T": T, "show": show, "frequency": peaks[0], "bands": bands}
    asked = low or high
    result["band_names"] = np.array(["chosen" if asked else f"around {f} cycles" for f in banded])
    is_inside = [any(low <= f <= high for low, high in bands) for f in peaks]
    result["left_out"] = np.array(peaks, int)[~np.array(is_inside)]
    result["input"] = "positions" if documents is None else "text"
    result["lags"] = profiles.offsets(reach)
    result["causal"] = model.config.causal
    result["r"] = result["S"].shape[1]
    return result


def _documents(model, source, text, tokens):
    """(documents of T tokens, T), or (None, T) for positions alone."""
    if source == "text" and model.missing:
        lacking = sides.lacking(model)
        raise ValueError(f"--input is text, but {lacking}; wanted positions or auto")
    if source == "positions" or model.missing:
        documents = None
        T = tokens or model.config.n_ctx
    else:
        documents = corpus.documents(model, text, tokens=tokens)
        T = documents.T
    options.within("tokens", T, 16, model.config.n_ctx)
    return documents, T


def band(f, T, low=0, high=0):
    """The band (low, high) as given; for 0 half an octave below or above f.

    Raises ValueError unless 1 <= low <= high <= T // 2.
    """
    low = low or max(round(f / 2**0.5), 1)
    high = high or min(round(f * 2**0.5), T // 2)
    if not 1 <= low <= high <= T // 2:
        raise ValueError(
            f"--low {low} --high {high}: wanted a band within 1 to {T // 2} cycles, low before high"
        )
    return low, high


def _bands(peaks, T, low, high):
    """The peaks that get a band, and their bands [B 2]: the first, and one that is as high.

    Bands are an octave wide and apart; with --low or --high there is one.
    """
    banded = peaks[:1]
    if not (low or high):
        far = [f for f in peaks if max(f, peaks[0]) >= 2 * min(f, peaks[0])]
        banded += far[: SHOWN - 1]
    return banded, np.array([band(f, T, low, high) for f in banded])


def _columns(columns, r):
    """'4,5' -> [4, 5]; None for auto."""
    if columns == "auto":
        return None
    numbers = re.split(r"[,\s]+", columns.strip())
    valid = all(re.fullmatch(r"\d+", number) and int(number) < r for number in numbers)
    if not valid or len(numbers) > COLUMNS:
        raise ValueError(
            f"--columns {columns!r}: wanted up to {COLUMNS} of the columns 0 to {r - 1}, joined by "
            "commas, or auto"
        )
    return np.array([int(number) for number in numbers])


def _heads(model, names, attention):
    """Pairs (layer, head); auto: by mean attention [L H R]."""
    if names == "auto":
        layers = inputs.layers(model)
        return [(layers[i], head) for i, head in heads.auto(attention)]
    return heads.select(names, model)


def _attention(model, names, documents, run):
    """Mean attention by offset of every head [L H R]; the names of heads are checked before."""
    n = 0 if names == "auto" else len(heads.select(names, model))
    if n > MOST:
        raise ValueError(f"--head names {n} heads; a figure has at most {MOST}")
    return heads.mean_attention(model, documents, run)


def _measure(model, pairs, documents, T, bias, settings):
    """All that is drawn and said of every head, stacked: {name: [n ...]}."""
    measured = []
    for pair, (x, bare) in zip(pairs, _inputs(model, pairs, documents, T, bias)):
        W = _weights(model, *pair, bias)
        svd = factors.svd(*W)
        result = _measure_columns(x, svd, settings)
        result["replaced"] = waves.replaced(x, *W)
        if bare is not None:
            result |= _measure_words(bare, svd, result, settings)
        measured.append(result)
    return stats.stacked(measured)


def _inputs(model, pairs, documents, T, bias):
    """What each head reads, [T D] ([T D + 1] with bias), and the same without positions or None."""
    if documents is None:
        alone = [inputs.of_positions(model, layer, T) for layer, _ in pairs]
        return [(_exact(x, bias), None) for x in alone]
    document = documents.first()[0]
    whole = inputs.of_text(model, document)  # [L T D]
    bare = inputs.of_text(model, document, {"pos_embed": np.zeros_like})
    return [(_exact(whole[layer], bias), _exact(bare[layer], bias)) for layer, _ in pairs]


def _exact(x, bias):
    """Input [T D] in float64; with bias a last column of ones meets the biases."""
    x = np.asarray(x, np.float64)
    return factors.with_ones(x) if bias else x


def _weights(model, layer, head, bias):
    """W_Q and W_K of a head, [D d] each; with bias the biases are a last row, [D + 1 d]."""
    tensors = inputs.query_key(model, layer, head, bias=bool(bias))
    tensors = [np.asarray(x, np.float64) for x in tensors]
    if not bias:
        return tensors
    W_Q, W_K, b_Q, b_K = tensors
    return [np.vstack([W_Q, b_Q]), np.vstack([W_K, b_K])]


def _count_all(model, documents, T, bias, settings):
    """Share of each head's width that is periodic columns, and their shift, [L H] each.

    by_chance [L H shuffles]: the share in shuffles of the rows; share_periodic_text, where there is
    a text: without positions; lag_of_heads: 0 for a head without periodic columns.
    """
    numbers = inputs.layers(model)
    by_layer = _inputs(model, [(layer, 0) for layer in numbers], documents, T, bias)
    measured = []
    for layer, (x, bare) in zip(numbers, by_layer):
        for head in range(model.config.n_heads):
            svd = factors.svd(*_weights(model, layer, head, bias))
            measured.append(_measure_head(x, bare, svd, model.config.d_head, settings))
    result = {"layers": np.array(numbers)}
    for name in measured[0]:
        of_heads = np.array([of_head[name] for of_head in measured])
        result[name] = of_heads.reshape(len(numbers), -1, *of_heads.shape[1:])
    result["share_periodic_null"] = _reached(result["by_chance"], axis=-1)
    return result


def _measure_head(x, bare, svd, width, settings):
    """The periodic columns of one head as a share of its width, and the lag of their shift."""
    is_periodic, by_chance = _find_periodic(x, svd, settings.seed)
    U_Q, S, U_K = (factor[..., : len(is_periodic)][..., is_periodic] for factor in svd)
    result = {"share_periodic": is_periodic.sum() / width, "by_chance": by_chance / width}
    result["lag_of_heads"] = 0
    if is_periodic.any():
        curves = waves.correlation(x @ U_Q, x @ U_K, settings.reach)  # [R periodic]
        result["lag_of_heads"] = (curves @ S).argmax() - settings.reach
    if bare is not None:
        is_periodic, _ = _find_periodic(bare, svd, settings.seed)
        result["share_periodic_text"] = is_periodic.sum() / width
    return result


def _directed(r, attention, T, causal):
    """The periodic columns of all heads in a few numbers; attention [L H R] tells a direction.

    largest: over all heads; typical: the median of the heads with a direction, 0 without any.
    """
    directed = profiles.directed(attention, T, causal=causal)
    share, by_chance = r["share_periodic"], r["by_chance"]
    result = {"directed": directed, "n_directed": directed.sum()}
    result["largest"] = share.max()
    result["largest_null"] = _reached(by_chance.max(axis=(0, 1)))
    result |= {"typical": 0.0, "typical_null": 0.0}
    if directed.any():
        result["typical"] = np.median(share[directed])
        result["typical_null"] = _reached(np.median(by_chance[directed], axis=0))
    by_words = r.get("share_periodic_text", r["share_periodic_null"])
    is_periodic = directed & (share > np.maximum(r["share_periodic_null"], by_words))
    result["n_periodic_heads"] = is_periodic.sum()
    result["n_shifted_heads"] = (is_periodic & (r["lag_of_heads"] != 0)).sum()
    result["n_shifted_heads_null"] = (1 - nulls.CHANCE) * directed.sum()
    layer, head = np.unravel_index(share.argmax(), share.shape)
    result["most_periodic"] = heads.name(r["layers"][layer], head)
    return result


def _reached(counts, axis=None):
    """A count, or a share, that 99% of the shuffles do not surpass."""
    return np.quantile(counts, nulls.CHANCE, axis=axis, method="higher")


def _measure_columns(x, svd, settings):
    """Columns of one head's queries and keys, and the shift between them, with their nulls."""
    U_Q, S, U_K = svd
    reach, seed = settings.reach, settings.seed
    q, k = x @ U_Q, x @ U_K
    r = q.shape[1]
    columns, bands = _choose(q, k, S, settings)
    result = {"columns": columns, "column_bands": bands, "S": S}
    is_periodic, by_chance = _find_periodic(x, svd, seed)
    result["n_periodic"] = is_periodic.sum()
    result["n_periodic_null"] = _reached(by_chance)
    q, k = q[:, columns], k[:, columns]
    result |= {"q": q.T, "q_band": _filtered(q, bands), "k": k.T, "k_band": _filtered(k, bands)}
    correlation = waves.correlation(q, k, reach)  # [R c]
    result["xcorr"] = correlation.T
    result["lag"] = correlation.argmax(axis=0) - reach
    result["correlation"] = correlation.max(axis=0)
    lines = {(*band,): waves.by_chance(x, q, r, *band, reach, seed) for band in bands.tolist()}
    result["correlation_null"] = [lines[*band][j] for j, band in enumerate(bands.tolist())]
    return result


def _choose(q, k, S, settings):
    """The columns to draw of queries and keys [T r], no two the same, and the band of each [c 2].

    Of several bands each has the column that carries most of it, of one band the SHOWN that do.
    Columns that were chosen have the band of which they carry most, for each of its frequencies.
    """
    bands = settings.bands
    wide = 1 + bands[:, 1] - bands[:, 0]
    carried = [waves.carried(q, k, S, *band) for band in bands]
    carried = np.array(carried) / wide[:, None]  # [B r]
    if settings.columns is not None:
        return settings.columns, bands[carried[:, settings.columns].argmax(axis=0)]
    order = np.argsort(-carried, axis=1, kind="stable").tolist()
    if len(bands) == 1:
        columns = np.sort(order[0][:SHOWN])
        return columns, bands.repeat(len(columns), axis=0)
    columns = []
    for of_band in order[: len(S)]:
        columns.append(next(j for j in of_band if j not in columns))
    return np.array(columns), bands[: len(columns)]


def _filtered(x, bands):
    """Each column of [T c] with its own band [c 2] alone: [c T]."""
    return np.array([spectra.bandpass(x, *band)[:, j] for j, band in enumerate(bands)])


def _find_periodic(x, svd, seed):
    """Which columns are periodic in query and key both, and how many are in each shuffle."""
    U_Q, S, U_K = svd
    kept = S > len(U_Q) * np.finfo(S.dtype).eps * S[0]  # the others are any directions at all
    q, k = x @ U_Q, x @ U_K
    return waves.periodic(q[:, kept], k[:, kept], SHUFFLES, seed)


def _measure_words(bare, svd, measured, settings):
    """The same columns at the same lags without positions: what the words alone give."""
    U_Q, _, U_K = svd
    columns = measured["columns"]
    q, k = (bare @ U_Q)[:, columns], (bare @ U_K)[:, columns]
    correlation = waves.correlation(q, k, settings.reach)  # [R c]
    best = measured["lag"] + settings.reach
    result = {"xcorr_text": correlation.T}
    result["correlation_text"] = correlation[best, np.arange(len(columns))]
    result["n_periodic_text"] = _find_periodic(bare, svd, settings.seed)[0].sum()
    return result


def shown(r):
    """A sentence on each head drawn."""
    return " ".join(_says_of(r, i) for i in range(len(r["heads"])))


def _says_of(r, i):
    columns, lag = r["columns"][i], r["lag"][i]
    value, null = r["correlation"][i], r["correlation_null"][i]
    head = {"head": r["heads"][i], "n": r["n_periodic"][i], "r": r["r"]}
    head |= {"null": r["n_periodic_null"][i], "columns": _list(columns, "{}")}
    head |= {"lags": _list(map(draw.offset, lag), "{}"), "above": (value > null).sum()}
    head |= {"correlations": _list(value, "{:.2f}"), "random": _list(null, "{:.2f}")}
    return filled(SHOWN_HEAD, shown=len(value), **head)


SHOWN_HEAD = (
    "{head}: {n} of {r} columns are periodic in query and key (rows shuffled: {null:.0f}); in "
    "columns {columns} they correlate most at lags of {lags} tokens, with {correlations}; in "
    "{above} of {shown} this is more than random directions reach ({random})."
)


def _list(values, form):
    return translated(" and ").join(map(form.format, values))


def _of_columns(r):
    places = np.ndindex(r["q"].shape[:2])
    return [Part(partial(_draw_one, head=head, j=j), height=3.4) for head, j in places]


def _draw_one(figure, r, head, j):
    """One column: as it is, filtered, and how alike query and key are at each lag."""
    plain, filtered, lags = panels = figure.subplots(1, 3, width_ratios=(2, 2, 1))
    _draw_wave(plain, r, "", head, j)
    _draw_wave(filtered, r, "_band", head, j)
    _name_band(filtered, r, head, j)
    _draw_correlation(lags, r, head, j)
    plain.set_ylabel(
        f"{r['heads'][head]}, column {r['columns'][head, j]}\n"
        f"({r['papers_heads'][head]}, {r['papers_columns'][head, j]})",
        fontsize=10,
    )
    _label_panels(panels, r)
    figure.legend(handles=[*_samples(r)], loc="outside upper left", ncols=3, borderpad=0)


def _draw_wave(axes, r, suffix, head, j):
    """A column of the query and of the key over the first positions."""
    positions = np.arange(r["show"])
    for name, color in (("q", draw.BLUE), ("k", draw.ORANGE)):
        column = r[name + suffix][head, j, : len(positions)]
        axes.plot(positions, column, color=color, linewidth=1.1)
    axes.axhline(0, color="black", linewidth=0.5)
    axes.set_xlim(0, positions[-1])


def _name_band(axes, r, head, j):
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.28 * (high - low))
    low, high = r["column_bands"][head, j]
    periods = f"{r['T'] / high:.3g} to {r['T'] / low:.3g}"
    text = f"{low} to {high} cycles in {r['T']} tokens, periods of {periods}"
    axes.text(0.01, 0.98, text, transform=axes.transAxes, va="top", fontsize=10, color="#444444")


def _draw_correlation(axes, r, head, j):
    """Correlation at each lag, its highest point marked, and both nulls."""
    lags, lag, highest = r["lags"], r["lag"][head, j], r["correlation"][head, j]
    axes.axhline(r["correlation_null"][head, j], color=draw.GREY, linestyle="--", linewidth=1)
    if "xcorr_text" in r:
        axes.plot(lags, r["xcorr_text"][head, j], ":", color=draw.GREEN, linewidth=1.5)
    size = 2 if len(lags) < 60 else 0
    axes.plot(lags, r["xcorr"][head, j], "o-", color="black", markersize=size, linewidth=1)
    axes.plot(lag, highest, "o", color=draw.VERMILION, markersize=5)
    axes.axvline(0, color="black", linewidth=0.5)
    if r["causal"]:
        axes.axvspan(0, lags[-1], color=draw.GREY, alpha=0.15, linewidth=0)
    style = {"ha": "right", "va": "bottom", "color": draw.VERMILION, "fontsize": 10}
    text = f"{draw.offset(lag)}: {highest:.2f}"
    axes.text(0.98, 0.03, text, transform=axes.transAxes, **style)
    axes.set(ylim=(-1.05, 1.05), xlim=(lags[0], lags[-1]))


def _label_panels(panels, r):
    source = {"positions": "positions alone", "text": "a text"}[str(r["input"])]
    titles = (
        f"values of query and key, of {source},\nfirst {r['show']} of {r['T']} positions",
        _title_of_filter(r),
        "correlation by lag,\nnot filtered",
    )
    labels = ("position (tokens)", "position (tokens)", "lag (tokens, + = right)")
    for axes, title, label in zip(panels, titles, labels):
        axes.set(title=title, xlabel=label)


def _title_of_filter(r):
    """What the filter keeps, and the peaks that are as high but in none of its bands."""
    kept = "filtered, in the band chosen"
    if "chosen" not in r["band_names"]:
        kept = "filtered around peaks of the position table"
    left_out = [str(f) for f in r["left_out"]]
    if not left_out:
        return f"{kept}\n(as high in the table, left out: none)"
    named = ", ".join(left_out[:LISTED]) + ", …" * (len(left_out) > LISTED)
    left_out = filled("(as high in the table, left out: {named} cycles)", named=named)
    return f"{kept}\n{left_out}"


LISTED = 4  # frequencies, at most, that a title names


def _samples(r):
    yield line_sample("query", color=draw.BLUE)
    yield line_sample("key", color=draw.ORANGE)
    yield line_sample("correlation of query and key", color="black", marker="o", markersize=3)
    random = "null: 99% of random directions stay below"
    yield line_sample(random, color=draw.GREY, linestyle="--")
    if "xcorr_text" in r:
        yield line_sample("null: the text without positions", color=draw.GREEN, linestyle=":")
    if r["causal"]:
        yield bar_sample("hidden from the query", color=draw.GREY, alpha=0.15)


register(
    queries_keys,
    look="Blue and orange are one column of the query and of the key, token after token. Where "
    "both are the same wave and one runs ahead, the correlation peaks at that lag (vermilion): "
    "each query meets the matching key so many tokens away, and attention goes there. The middle "
    "panels keep one octave around the position table's highest peak, or around another peak that "
    f"is as high ({waves.AS_HIGH} of it), without the mean and most of the words; the column is "
    "the one that carries most of that octave. The correlation is of the columns as they are. A "
    "peak counts only above the dashed line, which random directions in place of U_K reach in 1 "
    "of 100 cases when the most fitting of as many columns is taken; what stays without positions "
    "(dotted) comes from the words. Where the waves match in the grey, to the right, a causal head "
    "sees only the slope that leads there.",
    published="With W_A = U_Q S U_K^T, about 4 to 12 columns of X U_Q and X U_K are periodic in "
    "heads that attend by position, and query and key are out of phase in them: the paper's "
    "head(1,1), here L0H0, columns 5 and 6, here 4 and 5 (Yamamoto and Matsuzaki, figure 4).",
    figure="figure 4",
    weights_only=True,
    per_head=("share_periodic", "lag_of_heads"),
    numbers="""
        n_shifted_heads: heads with a direction that have more periodic columns than 99% of the
            shuffles and than the text without positions, in which query and key are most alike at a
            lag other than 0
            null: the 1% of the heads with a direction that exceed 99% of the shuffles by chance
        fact n_directed: heads with a direction: {profiles.DIRECTION}
        [typical|largest]: share of a head's width that is periodic in query and key both, [median
            of the heads with a direction|in the head with the largest]
            null: 99% quantile of [that median|the largest share of any head] over shuffles of the
            rows
        fact most_periodic: head with the largest share of periodic columns
        lag by heads: tokens by which the key's column is shifted against the query's, in the
            columns shown: the lag of their highest correlation within reach
            no null: the correlation has one
        correlation by heads: highest correlation of query and key within reach, of the columns
            shown as they are, not filtered
            null: 99% quantile of that correlation for random orthonormal directions in place of
            U_K
        correlation_text by heads: correlation of query and key at that lag without positions: what
            the words alone give
            no null: it is a null
        n_periodic by heads: columns of the heads shown whose largest amplitude of more than
            {spectra.DRIFT} cycles is above 99% of the shuffles of the rows, in query and key both
            null: 99% quantile of the number of such columns over shuffles of the rows
        n_periodic_text by heads: periodic columns of the heads shown without positions: what the
            words alone give
            no null: it is a null
        fact frequency: the highest peak of the position table, around which the first band lies, in
            cycles over the document
        fact bands by band_names: the lowest and the highest frequency that the filter keeps, in
            cycles over the document, around the highest peak and one that is as high
        fact heads: heads shown
        fact columns by heads: columns shown of each head, in the order of the singular values, from
            0
        replaced by heads: largest change of a score, over the largest score, when (W_A, I) takes
            the place of (W_Q, W_K)
            no null: 0 but for rounding
    """,
    answer=Asks(
        "heads with a direction whose queries and keys are periodic, with a phase shift between "
        "them",
        value="{n_shifted_heads:.0f} of {n_directed}",
        chance="{n_shifted_heads_null:.2g} of {n_directed} expected",
        rule=Of("n_shifted_heads", out_of="n_directed", enough=MAJORITY),
        without=Without("n_directed", "0 heads with a direction", "0 heads"),
    ),
    says=[
        "The head with the most columns that are periodic in query and key, {most_periodic}, has "
        "{largest:.0%} of its width (rows shuffled: at most {largest_null:.0%} in 99% of cases); "
        "the median of the {n_directed} heads with a direction has {typical:.0%} (shuffled: "
        "{typical_null:.0%}). {shown}",
        When("causal", When("lag.max > 0", " A causal head cannot look to the right.")),
        " Replacing (W_Q, W_K) by (W_A, I) changes no score by more than {replaced.max:.0e} of the "
        "largest.",
        When(
            "input == ALONE",
            " All this is of positions alone, without words, where any smooth column counts as "
            "periodic.",
        ),
    ],
    draw=figures(_of_columns),
    shares_passes=True,
)
