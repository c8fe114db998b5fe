"""Do position embeddings have spectral peaks away from frequency 0?

Amplitude spectra and principal components of the position embeddings, each beside what chance
gives; the words of a text are the control, averaged over documents, so that no single one decides.
A wave is a peak away from frequency 0: a slow drift over the whole table is not a wave. Models that
saw short inputs most of the time learned their first rows in other ways than the rest, so a range
of rows can be looked at alone. T rows, D columns, F = T//2 + 1 frequencies, n shuffles.
"""

import numpy as np

from ..contract import Asks, Every, Of, options, register
from ..drawing import When, draw, row
from ..maths import nulls, spectra
from ..measures import inputs
from ..running.stream import UNSAVED
from ..texts import corpus

AS_MANY = 16  # documents whose words are the control, where their number is not given
COMPONENTS = (4, 12)  # those of which the paper gives the share
SINGLE = 0.5  # of a column's power in one line, from which the column is a single wave


def positions(
    model,
    run=UNSAVED,
    *,
    rows: str = "",
    text: options.Text = "sample",
    documents: options.Documents = 0,
    shuffles: options.Shuffles = nulls.SHUFFLES,
    seed: options.Seed = 0,
):
    """Amplitude spectra and principal components of the position table.

    rows: rows of the table, such as 0:128, the last one not included; without it all that a token
    reads. Words are then those of the same positions. Peaks of ranges of different length compare
    by their nulls alone, as amplitudes grow with the number of rows
    text: text of the word embeddings
    documents: documents over which the words' amplitudes are averaged (0: as many as the text
    holds, at most 16)
    shuffles: surrogates of each kind
    """
    whole = inputs.varying(model)
    places = inputs.row_range(rows, len(whole))
    table = whole[places]
    T = len(table)
    result = {"T": T, "frequency": np.arange(T // 2 + 1), "lowest": spectra.lowest(T)}
    result |= {"first_row": places.start, "last_row": places.stop - 1, "rows": len(whole)}
    result |= _spectrum("position", spectra.amplitude(table))
    result |= _lines(table, shuffles, seed)
    if not model.missing:
        texts = corpus.documents(model, text, documents, most=AS_MANY, any_length=False)
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
    counts = []
    for x in nulls.row_shuffles(table, n, seed):
        counts.append((spectra.line_shares(spectra.amplitude(x))[0] >= SINGLE).sum())
    result = {"n_single": is_single.sum(), "columns": len(portions)}
    result["n_single_null"] = np.quantile(counts, nulls.CHANCE)
    return result | {"n_slow": (is_single & (frequencies < spectra.lowest(len(table)))).sum()}


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
    result["peak_period"] = spectra.period(frequency, T) if frequency else 0.0
    result |= {"above_all": above, "peaks": peaks}
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
    return result


def read_for_words(r):
    """Of how many documents the words are."""
    n = r["words_documents"]
    return f"{n} document{'' if n == 1 else 's'}"


def longest(r):
    """The longest period in tokens that a peak may have."""
    return r["T"] / r["lowest"]


def named_rows(r):
    """', rows 0 to 127', where these are not all."""
    return "" if r["T"] == r["rows"] else f", rows {r['first_row']} to {r['last_row']}"


def _draw_spectra(axes, r):
    T = int(r["T"])
    if "words_mean" in r:  # a partial checkpoint may have no words
        _draw_curve(axes, r, "words", draw.ORANGE, f"word embeddings of {read_for_words(r)}")
    _draw_curve(axes, r, "position", draw.BLUE, "position embeddings")
    _draw_nulls(axes, r)
    _label_peaks(axes, r)
    means = [r[name] for name in ("position_mean", "words_mean", "shuffled_mean") if name in r]
    top = max(mean[1:].max() for mean in means)
    axes.set(xlim=(0, T / 2), ylim=(0, 2 * top))
    axes.axvspan(0, r["lowest"] - 0.5, color=draw.GREY, alpha=0.12, linewidth=0)
    axes.set(
        xlabel=f"frequency (cycles in {T} tokens{named_rows(r)})",
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
    text = "99% of the peaks of shuffled position rows are lower"
    axes.hlines(r["peak_null"], lowest, last, color="black", linewidth=0.8, label=text)
    if "words" in r:
        text = "99% of the peaks of shuffled words are lower"
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
            text = f"{c}: {percent[c - 1]:.0f}%"
            axes.annotate(text, point, xytext=(4, -12), textcoords="offset points", **style)


RISE = When(
    "rise > rise_null",
    "Towards faster waves the amplitudes rise again, {rise:.3g} times (shuffled rows: up to "
    "{rise_null:.3g}).",
    When(
        "amplitude > amplitude_null",
        "Towards faster waves the amplitudes only fall: they rise {rise:.3g} times at most "
        "(shuffled rows: up to {rise_null:.3g}), so there are low frequencies only.",
        "Towards faster waves the amplitudes rise {rise:.3g} times at most (shuffled rows: up to "
        "{rise_null:.3g}).",
    ),
)

register(
    positions,
    look="Where the blue curve rises above the level line, outside the grey, the table holds a "
    "wave that its rows in random order do not give. In the grey lie slow waves and drifts over "
    "the whole table: they distinguish near from far, and do not count as a peak. A curve that "
    "only falls, like the curve of a drift, has low frequencies only, though single lines may "
    "stand out. The words of a text (orange) are the control, with a line of their own "
    "(vermilion): their order does not repeat. Frequency 0, the mean of each column, is drawn but "
    "does not set the scale.",
    published="RoBERTa and BERT peak at several frequencies away from 0, RoBERTa higher; GPT-2 has "
    "low frequencies only; word embeddings have no peak. In roberta-base 4 components explain "
    "50.51% of the variance and 12 explain 92.23% (Yamamoto and Matsuzaki, figures 3, 8, 9).",
    figure="figures 3 and 9",
    weights_only=True,
    numbers="""
        peak: amplitude (mean over columns) of the position table's highest peak away from 0: a
            local maximum of more than {spectra.DRIFT} cycles and periods of {spectra.SLOW} tokens
            or less; 0: none
            null: 99% quantile of the highest such peak over shuffles of the rows
        peak_at: frequency of that peak of the position table, in cycles over its rows
            no null: its height has one
        rise: mean amplitude of a band away from 0 of the position table over the least mean
            amplitude of the slower bands: 1 if amplitudes only fall with frequency
            null: 99% quantile of that quotient over shuffles of the rows
        n_single: columns of the position table that have half of their power or more at one
            frequency and its neighbours, 0 left out: a single wave each
            null: 99% quantile of the number of such columns over shuffles of the rows
        words_peak: amplitude of the highest peak away from 0 of the word embeddings, averaged over
            the documents of a text
            null: 99% quantile of the highest such peak over shuffles of the words
        explained_[4|12]: variance of the position table explained by [4|12] principal components
            null: variance that [4|12] components explain of Gaussian noise with as much variance in
            each column
        amplitude: largest amplitude of the position table at any frequency but 0, slow drift
            included, mean over columns
            null: 99% quantile of the largest amplitude over shuffles of the rows
        fact words_documents: documents over which the words' amplitudes are averaged
    """,
    answer=Asks(
        "amplitude of the table's highest peak (period {longest:.3g} tokens or less){named_rows}, "
        "rise from slower waves (a ratio)",
        value=[
            When("peak_at", "height {peak:.2f} at {peak_period:.3g} tokens", "0 peaks"),
            ", rise {rise:.2f}",
        ],
        chance="height {peak_null:.2f}, rise {rise_null:.2f}",
        rule=Every(Of("peak", most=np.inf), Of("rise", most=np.inf)),
    ),
    says=[
        When(
            "T != rows", "Rows {first_row} to {last_row} of {rows} alone, as a table of {T} rows. "
        ),
        "The highest peak with a period of {longest:.3g} tokens or less is {peak:.3g}",
        When("peak_at", ", at {peak_period:.3g} tokens ({peak_at} cycles)"),
        ": ",
        When("peak > peak_null", "above", "not above"),
        " the {peak_null:.3g} that 99% of the peaks of shuffled rows do not reach. ",
        RISE,
        " {n_single} of the {columns} columns have half of their power or more at one frequency "
        "each (shuffled rows: {n_single_null:.0f} at most), {n_slow} of these slower. The largest "
        "amplitude of all is {amplitude:.3g}, at a period of {period_of_largest:.3g} tokens "
        "(shuffled rows: {amplitude_null:.3g}).",
        When(
            "words_documents",
            [
                " In the words of {read_for_words}",
                When("words_documents != 1", ", averaged,"),
                " the highest such peak is {words_peak:.4g} (shuffled: {words_peak_null:.4g}).",
            ],
        ),
        " 4 components hold {explained_4:.2%} of the variance (noise: {explained_4_null:.2%}) and "
        "12 hold {explained_12:.2%} (noise: {explained_12_null:.2%}).",
    ],
    draw=row(_draw_spectra, _draw_variance, widths=(1.7, 1), height=5),
)
