"""Do position embeddings have waves that peak away from frequency 0?

Amplitude spectra and principal components of the position embeddings, each beside what chance
gives; the words of a text are the control, averaged over documents, so that no single one decides.
A wave is a peak away from frequency 0: a slow drift over the whole table is not a wave. Models that
saw short inputs most of the time learned their first rows in other ways than the rest, so a range
of rows can be looked at alone. T rows, D columns, F = T//2 + 1 frequencies, n shuffles.
"""

import numpy as np

from ..maths import nulls, spectra
from ..measures import inputs
from ..runner import draw, options, verdict
from ..runner.registry import Answer, register
from ..runner.stream import UNSAVED
from ..texts import corpus

AS_MANY = 16  # documents whose words are the control, where their number is not given
COMPONENTS = (4, 12)  # those of which the paper gives the share
SINGLE = 0.5  # of a column's power in one line, from which the column is a single wave
SHARES = (0.5, 0.9, 0.99)  # of the variance, and the components that reach them


def positions(
    model,
    run=UNSAVED,
    *,
    rows: str = "",
    text: options.Text = "sample",
    documents: options.Size = 0,
    shuffles: options.Count = nulls.SHUFFLES,
    seed: options.Seed = 0,
):
    """Amplitude spectra and principal components of the position table.

    rows: rows of the table, such as 0:128, the last one not included; without it all that a token
    reads. Words are then those of the same places. Peaks of ranges of different length compare by
    their nulls alone, as amplitudes grow with the number of rows
    text: text of the word embeddings: file, folder, - for standard input, or sample
    documents: documents over which the words' amplitudes are averaged (0: as many as the text
    holds, at most 16)
    shuffles: surrogates of each kind
    seed: seed of the surrogates
    """
    whole = inputs.reachable(model)
    places = inputs.row_range(rows, len(whole))
    table = whole[places]
    T = len(table)
    result = {"T": T, "frequency": np.arange(T // 2 + 1), "lowest": spectra.lowest(T)}
    result |= {"first_row": places.start, "last_row": places.stop - 1, "rows": len(whole)}
    result |= _spectrum("position", spectra.amplitude(table))
    result |= _lines(table, shuffles, seed)
    if not model.missing:
        texts = corpus.documents(model, text, documents, most=AS_MANY)
        result |= _words(model, texts, shuffles, seed, run, places)
    result |= _chance(table, shuffles, seed)
    result |= _peaks(result["position_mean"], result, T)
    result |= _explained(table, seed)
    return result


def _spectrum(name, amplitudes):
    """Mean and quartiles over the columns of amplitudes [F D], under a name."""
    mean, quartiles = spectra.summary(amplitudes)
    return {f"{name}_mean": mean, f"{name}_quartiles": quartiles}


def _lines(table, n, seed):
    """How many columns are a single wave, how many of these are slow, and what shuffles give."""
    portions, frequencies = spectra.line_shares(spectra.amplitude(table))
    is_single = portions >= SINGLE
    counts = [_count_lines(x) for x in nulls.row_shuffles(table, n, seed)]
    result = {"n_single": is_single.sum(), "columns": len(portions)}
    result["n_single_null"] = np.quantile(counts, nulls.CHANCE)
    return result | {"n_slow": (is_single & (frequencies < spectra.lowest(len(table)))).sum()}


def _count_lines(table):
    """Columns of [T D] that are a single wave."""
    return (spectra.line_shares(spectra.amplitude(table))[0] >= SINGLE).sum()


def _words(model, texts, n, seed, run=UNSAVED, places=slice(None)):
    """Spectrum of the word embeddings, averaged over documents; the same where words are shuffled.

    places: those of the words that are read. A shuffle puts the words of every document in another
    order, so that its spectrum is an average over as many documents.
    """

    def measure(i, document):
        words = model.weights.W_E[document[places]] * model.config.embed_scale
        orders = nulls.row_shuffles(words, n, (seed, i))
        shuffled = nulls.distribution(spectra.mean_amplitude, orders)
        return {"amplitudes": spectra.amplitude(words), "shuffled": shuffled}

    sums = run.gather(measure, texts, "amplitudes of words")
    shuffled = sums["shuffled"] / len(texts)  # [n F]
    result = {"words_documents": len(texts)} | _spectrum("words", sums["amplitudes"] / len(texts))
    lowest = spectra.lowest(len(range(texts.T)[places]))
    result["words"] = spectra.largest(result["words_mean"])
    result["words_null"] = np.quantile(_largest(shuffled), nulls.CHANCE)
    result["words_peak"], result["words_peak_at"] = spectra.highest_peak(
        result["words_mean"], lowest
    )
    result["words_peak_null"] = spectra.peak_null(shuffled, lowest)
    return result


def _largest(curves):
    """Largest amplitude of each spectrum away from frequency 0: [n F] -> [n]."""
    return curves[:, 1:].max(axis=1)


def _chance(table, n, seed):
    """Spectra [n F] of shuffled tables and of noise, reduced to what is drawn and compared."""
    shuffled = nulls.distribution(spectra.mean_amplitude, nulls.row_shuffles(table, n, seed))
    noise = nulls.distribution(spectra.mean_amplitude, nulls.gaussian(table, n, seed))
    line = np.quantile(_largest(shuffled), nulls.CHANCE)
    result = {
        "shuffled_mean": shuffled.mean(axis=0),
        "gaussian_mean": noise.mean(axis=0),
        "shuffled_largest": _largest(shuffled),
        "gaussian_largest": _largest(noise),
    }
    result["amplitude_null"] = line
    result["peak_null"] = spectra.peak_null(shuffled, spectra.lowest(len(table)))
    result["rise_null"] = spectra.rise_null(shuffled, spectra.lowest(len(table)))
    result["n_above_null"] = (shuffled[:, 1:] > line).sum(axis=1).max()
    result["n_peaks_null"] = max(len(spectra.peaks(spectrum)) for spectrum in shuffled)
    return result


def _peaks(spectrum, chance, T):
    """The highest peak of a spectrum [F], its largest amplitude, and all that stands out of it."""
    line = chance["amplitude_null"]
    above = spectra.above(spectrum, line)
    peaks = spectra.peaks(spectrum)
    largest = 1 + spectrum[1:].argmax()  # frequency of the largest amplitude
    height, frequency = spectra.highest_peak(spectrum, spectra.lowest(T))
    summits = spectra.maxima(spectrum, chance["peak_null"], spectra.lowest(T))
    result = {"peak": height, "peak_at": frequency, "peaks_away": summits}
    result["peaks_listed"] = np.array(", ".join(map(str, summits)) or "none")
    result["peak_period"] = spectra.period(frequency, T) if frequency else 0.0
    result |= {"above_all": above, "n_above": len(above), "peaks": peaks, "n_peaks": len(peaks)}
    result["above"] = spectra.maxima(spectrum, line)
    result["rise"] = spectra.rise(spectrum, spectra.lowest(T))
    result["amplitude"] = spectra.largest(spectrum)
    result["frequency_of_largest"] = largest
    result["period_of_largest"] = spectra.period(largest, T)
    return result


def _explained(table, seed):
    """Cumulative variance of the table and of one table of noise."""
    noise = next(nulls.gaussian(table, 1, seed))
    result = {}
    for name, rows, suffix in (("position", table, ""), ("gaussian", noise, "_null")):
        explained = spectra.explained(rows)
        result[f"{name}_explained"] = explained
        for c in COMPONENTS:
            last = min(c, len(explained)) - 1  # all of the variance beyond the last component
            result[f"explained_{c}{suffix}"] = explained[last]
        result[f"n_components{suffix}"] = 1 + np.searchsorted(explained, SHARES)
    return result


def says(r):
    """What the numbers show, in plain words."""
    return (
        f"{_says_rows(r)}{_says_peak(r)}{_says_lines(r)} The largest amplitude of all is "
        f"{r['amplitude']:.3g}, at frequency {r['frequency_of_largest']} (shuffled rows: "
        f"{r['amplitude_null']:.3g})."
        f"{_says_words(r)} "
        f"4 components hold {r['explained_4']:.2%} of the variance (noise: "
        f"{r['explained_4_null']:.2%}) and 12 hold {r['explained_12']:.2%} (noise: "
        f"{r['explained_12_null']:.2%})."
    )


def _says_rows(r):
    """Which rows these are, where they are not all."""
    if r["T"] == r["rows"]:
        return ""
    return (
        f"Rows {r['first_row']} to {r['last_row']} of 0 to {r['rows'] - 1} alone, as a table of "
        f"{r['T']} rows. "
    )


def _says_peak(r):
    """Whether the table has a peak away from 0."""
    place = f", at {r['peak_at']} cycles (a period of {r['peak_period']:.3g} tokens)"
    side = "above" if r["peak"] > r["peak_null"] else "not above"
    return (
        f"The highest peak of {r['lowest']} cycles or more is {r['peak']:.3g}"
        f"{place if r['peak_at'] else ''}: {side} the {r['peak_null']:.3g} that peaks of shuffled "
        f"rows stay below in 99 % of cases. {_says_rise(r)}"
    )


def _says_lines(r):
    """How many columns are a single wave each, as those of a sinusoidal table are."""
    return (
        f" {r['n_single']} of the {r['columns']} columns have half of their power or more at one "
        f"frequency each (shuffled rows: {r['n_single_null']:.0f} at most), {r['n_slow']} of these "
        f"below {r['lowest']} cycles."
    )


def _says_rise(r):
    """Whether the spectrum has more than a slope with lines that stand out of it."""
    if r["rise"] > r["rise_null"]:
        return (
            f"Towards faster waves the amplitudes rise again, {r['rise']:.3g} times (shuffled "
            f"rows: up to {r['rise_null']:.3g})."
        )
    return (
        f"Towards faster waves the amplitudes only fall: they rise {r['rise']:.3g} times at most "
        f"(shuffled rows: up to {r['rise_null']:.3g}), so there are low frequencies only."
    )


def _says_words(r):
    """The same for words, where there are any."""
    if "words" not in r:
        return ""
    n = r["words_documents"]
    return (
        f" In the words of {n} document{'' if n == 1 else 's, averaged,'} the highest such peak is "
        f"{r['words_peak']:.4g} (shuffled: {r['words_peak_null']:.4g})."
    )


def answer(r):
    """Yes if a peak away from 0 is above chance and the spectrum rises to it; partly if only one of
    these holds. A slope alone has peaks too: lines that stand out of it.
    """
    value = f"{r['peak']:.2f} at {r['peak_at']} cycles" if r["peak_at"] else "0 peaks"
    measure = (
        f"amplitude of the table's highest peak of {r['lowest']} or more cycles in {r['T']} "
        f"tokens{_named_rows(r)}, and the rise to it"
    )
    chance = f"{r['peak_null']:.2f}, {r['rise_null']:.2f}"
    findings = [verdict.of(r, name, most=np.inf) for name in ("peak", "rise")]
    return Answer(verdict.every(*findings), measure, f"{value}, {r['rise']:.2f}", chance)


def _named_rows(r):
    """', rows 0 to 127', where these are not all."""
    return "" if r["T"] == r["rows"] else f", rows {r['first_row']} to {r['last_row']}"


def plot(r):
    """Spectra on the left, cumulative variance on the right."""
    figure = draw.figure(12.5, 5)
    left, right = figure.subplots(1, 2, width_ratios=(1.7, 1))
    _draw_spectra(left, r)
    _draw_variance(right, r)
    return figure


def _draw_spectra(axes, r):
    T = int(r["T"])
    if "words_mean" in r:  # a partial checkpoint may have no words
        n = r["words_documents"]
        text = f"word embeddings of {n} document{'' if n == 1 else 's'}"
        _draw_curve(axes, r, "words", draw.ORANGE, text)
    _draw_curve(axes, r, "position", draw.BLUE, "position embeddings")
    _draw_nulls(axes, r)
    _label_peaks(axes, r)
    means = [r[name] for name in ("position_mean", "words_mean", "shuffled_mean") if name in r]
    top = max(mean[1:].max() for mean in means)
    axes.set(xlim=(0, T / 2), ylim=(0, 1.55 * top))
    axes.axvspan(0, r["lowest"] - 0.5, color=draw.GREY, alpha=0.12, linewidth=0)
    axes.set(
        xlabel=f"frequency (cycles in {T} tokens{_named_rows(r)})",
        ylabel="amplitude, mean over columns",
    )
    axes.legend(loc="upper right")
    draw.period_axis(axes, T)


def _draw_curve(axes, r, name, color, text):
    """Mean and quartiles of the columns."""
    f = r["frequency"]
    low, _, high = r[f"{name}_quartiles"]
    axes.fill_between(f, low, high, color=color, alpha=0.2, linewidth=0)
    axes.plot(f, r[f"{name}_mean"], color=color, label=f"{text}: mean, quartiles")


def _draw_nulls(axes, r):
    """Mean spectra of the surrogates, and the lines that shuffles do not reach."""
    f = r["frequency"]
    text = "null: position rows shuffled"
    axes.plot(f, r["shuffled_mean"], color=draw.GREY, linestyle="--", label=text)
    text = "null: Gaussian noise (nearly the line before)"
    axes.plot(f, r["gaussian_mean"], color=draw.GREEN, linestyle=":", label=text)
    lowest, last = r["lowest"], f[-1]
    text = "99 % of the peaks of shuffled position rows are lower"
    axes.hlines(r["peak_null"], lowest, last, color="black", linewidth=0.8, label=text)
    if "words" in r:
        text = "99 % of the peaks of shuffled words are lower"
        line = r["words_peak_null"]
        axes.hlines(line, lowest, last, color=draw.VERMILION, linewidth=0.8, label=text)


def _label_peaks(axes, r):
    """Frequencies of up to six peaks above chance, away from 0."""
    style = {"ha": "center", "fontsize": 10, "color": draw.BLUE}
    for peak in _spaced(r["peaks_away"], int(r["T"]) / 24)[:6]:
        point = peak, r["position_mean"][peak]
        axes.annotate(f"{peak}", point, xytext=(0, 3), textcoords="offset points", **style)


def _spaced(frequencies, least):
    """Frequencies without those too near to a higher one to be labelled beside it."""
    kept = []
    for f in frequencies:
        if all(abs(f - other) >= least for other in kept):
            kept.append(f)
    return kept


def _draw_variance(axes, r):
    """Cumulative variance of the position table and of noise."""
    _draw_cumulative(axes, 100 * r["position_explained"], draw.BLUE, "-")
    _draw_cumulative(axes, 100 * r["gaussian_explained"], draw.GREEN, ":")
    style = {"transform": axes.transAxes, "ha": "right"}
    axes.text(0.97, 0.16, "position embeddings", color=draw.BLUE, **style)
    axes.text(0.97, 0.09, "null: Gaussian noise", color=draw.GREEN, **style)
    axes.set(ylim=(0, 102), xlim=(0, min(len(r["gaussian_explained"]), 40)))
    axes.set(xlabel="principal components", ylabel="variance explained (%)")


def _draw_cumulative(axes, percent, color, line):
    """One curve, with the share of the paper's numbers of components."""
    axes.plot(np.arange(1, len(percent) + 1), percent, line, color=color)
    style = {"fontsize": 10, "color": color}
    for c in COMPONENTS:
        if c <= len(percent):
            point = c, percent[c - 1]
            axes.plot(*point, "o", color=color, markersize=4)
            text = f"{c}: {percent[c - 1]:.0f} %"
            axes.annotate(text, point, xytext=(4, -12), textcoords="offset points", **style)


register(
    positions,
    draw=plot,
    look="Where the blue curve rises above the black line, outside the grey, the table holds a "
    "wave that its rows in random order do not give. In the grey lie slow waves and drifts "
    "over the whole table: they tell near from far, and do not count as a peak. A curve that "
    "only falls, like the curve of a drift, has low frequencies only, though single lines "
    "may stand out. The words of a text (orange) are the control, with a line of their own "
    "(red): their order does not repeat. Frequency 0, the mean of each column, is drawn but "
    "does not set the scale.",
    published="RoBERTa and BERT peak at several frequencies away from 0, RoBERTa higher; GPT-2 has "
    "low frequencies only; word embeddings have no peak. In roberta-base 4 components explain "
    "50.51 % of the variance and 12 explain 92.23 % (Yamamoto and Matsuzaki, figures 3, 8, 9).",
    figure="figures 3 and 9",
    says=says,
    answer=answer,
    weights_only=True,
    numbers={
        "peak": "amplitude (mean over columns) of the position table's highest peak away from 0: a "
        f"local maximum of more than {spectra.DRIFT} cycles and periods of {spectra.SLOW} tokens "
        "or less; 0: none",
        "peak_null": "99 % quantile of the highest such peak over shuffles of the rows",
        "peak_at": "frequency of that peak of the position table, in cycles over its rows",
        "rise": "mean amplitude of a band away from 0 of the position table over the least mean "
        "amplitude of the slower bands: 1 if amplitudes only fall with frequency",
        "rise_null": "99 % quantile of that quotient over shuffles of the rows",
        "n_single": "columns of the position table that have half of their power or more at one "
        "frequency and its neighbours, 0 left out: a single wave each",
        "n_single_null": "99 % quantile of the number of such columns over shuffles of the rows",
        "n_slow": "columns that are a single wave, or drift, slower than a peak away from 0 may be",
        "words_peak": "amplitude of the highest peak away from 0 of the word embeddings, averaged "
        "over the documents of a text",
        "words_peak_null": "99 % quantile of the highest such peak over shuffles of the words",
        "explained_4": "variance of the position table explained by 4 principal components",
        "explained_4_null": "variance that 4 components explain of Gaussian noise with as much "
        "variance in each column",
        "explained_12": "variance of the position table explained by 12 principal components",
        "explained_12_null": "variance that 12 components explain of Gaussian noise with as much "
        "variance in each column",
        "amplitude": "largest amplitude of the position table at any frequency but 0, slow drift "
        "included, mean over columns",
        "amplitude_null": "99 % quantile of the largest amplitude over shuffles of the rows",
        "frequency_of_largest": "frequency of the largest amplitude, in cycles over its rows",
        "period_of_largest": "period of the largest amplitude, in tokens",
        "n_above": "frequencies of the position table, slow drift included, above the largest "
        "amplitude that 99 % of the shuffles of its rows reach anywhere",
        "n_above_null": "most frequencies above that line in any shuffle of the rows",
        "n_peaks": "local maxima of the position table above 5 times its median amplitude, slow "
        "drift included",
        "n_peaks_null": "most local maxima above 5 times the median amplitude in any shuffle",
        "n_components": "principal components that hold 50, 90 and 99 % of the variance of the "
        "position table",
        "n_components_null": "principal components that hold 50, 90 and 99 % of the variance of "
        "Gaussian noise",
        "words": "largest amplitude of the word embeddings at any frequency but 0, averaged over "
        "the documents of a text",
        "words_null": "99 % quantile of the largest amplitude over shuffles of the words",
        "words_documents": "documents over which the words' amplitudes are averaged",
        "peaks_listed": "frequencies of all peaks of the position table away from 0 above chance, "
        "the highest first, in cycles over its rows",
    },
    labels={"n_components": ("50 %", "90 %", "99 %")},
)
