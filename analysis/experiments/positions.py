"""Are position embeddings waves?

Amplitude spectra and principal components of the position embeddings, each beside what chance
gives; the words of a text are the control. T rows that a token can reach, D columns,
F = T//2 + 1 frequencies.
"""

import numpy as np

from ..maths import nulls, spectra
from ..measures import inputs
from ..runner import draw, options
from ..runner.registry import register
from ..runner.stream import UNSAVED
from ..texts import corpus

COMPONENTS = (4, 12)  # those of which the paper gives the share
SHARES = (0.5, 0.9, 0.99)  # of the variance, and the components that reach them


def positions(model, run=UNSAVED, *, text: str = "sample", shuffles: int = 500, seed: int = 0):
    """Amplitude spectra and principal components of the position table.

    text: text of the word embeddings: file, folder, - for standard input, or sample
    shuffles: surrogates of each kind
    seed: seed of the surrogates
    """
    options.at_least("shuffles", shuffles, 1)
    table = inputs.reachable(model)
    T = len(table)
    result = {"T": T, "frequency": np.arange(T // 2 + 1)}
    result |= _spectrum("position", table)
    if not model.missing:
        document = corpus.documents(model, text, 1).first()[0]
        result |= _words(model.weights.W_E[document], shuffles, seed)
    result |= _chance(table, shuffles, seed)
    result |= _peaks(result["position_mean"], result["amplitude_null"], T)
    result |= _explained(table, seed)
    return result


def _spectrum(name, x):
    """Mean and quartiles over the columns of the amplitudes of [T D], under a name."""
    mean, quartiles = spectra.summary(spectra.amplitude(x))
    return {f"{name}_mean": mean, f"{name}_quartiles": quartiles}


def _words(embeddings, n, seed):
    """Spectrum of the word embeddings [T D] of a document, and what its shuffles reach."""
    result = _spectrum("words", embeddings)
    shuffled = nulls.distribution(spectra.mean_amplitude, nulls.row_shuffles(embeddings, n, seed))
    result["words"] = spectra.largest(result["words_mean"])
    result["words_null"] = np.quantile(_largest(shuffled), nulls.CHANCE)
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
    result["n_above_null"] = (shuffled[:, 1:] > line).sum(axis=1).max()
    result["n_peaks_null"] = max(len(spectra.peaks(spectrum)) for spectrum in shuffled)
    return result


def _peaks(spectrum, line, T):
    """Frequencies that stand out of a spectrum [F], by two rules, and its largest amplitude."""
    above = spectra.above(spectrum, line)
    peaks = spectra.peaks(spectrum)
    largest = 1 + spectrum[1:].argmax()  # frequency of the largest amplitude
    result = {"above_all": above, "n_above": len(above), "peaks": peaks, "n_peaks": len(peaks)}
    result["above"] = spectra.maxima(spectrum, line)
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
    wave = (
        f"The largest amplitude is {r['amplitude'] / r['amplitude_null']:.2f} times what shuffled "
        f"rows reach, at frequency {r['frequency_of_largest']} (a period of "
        f"{r['period_of_largest']:.3g} tokens)."
    )
    words = ""
    if "words" in r:
        times = r["words"] / r["words_null"]
        words = f" In the words of a text the largest is {times:.2f} times."
    return (
        f"{wave}{words} 4 components hold {r['explained_4']:.2%} of the variance (noise: "
        f"{r['explained_4_null']:.2%}) and 12 hold {r['explained_12']:.2%} (noise: "
        f"{r['explained_12_null']:.2%})."
    )


def plot(r):
    """Spectra on the left, cumulative variance on the right."""
    figure = draw.figure(10, 4.2)
    left, right = figure.subplots(1, 2, width_ratios=(1.7, 1))
    _draw_spectra(left, r)
    _draw_variance(right, r)
    return figure


def _draw_spectra(axes, r):
    T = int(r["T"])
    if "words_mean" in r:  # a partial checkpoint may have no words
        _draw_curve(axes, r, "words", draw.ORANGE, "word embeddings of one document")
    _draw_curve(axes, r, "position", draw.BLUE, "position embeddings")
    _draw_nulls(axes, r)
    _label_peaks(axes, r)
    means = [r[name] for name in ("position_mean", "words_mean", "shuffled_mean") if name in r]
    top = max(mean[1:].max() for mean in means)
    axes.set(xlim=(0, T / 2), ylim=(0, 1.5 * top))
    axes.set(xlabel=f"frequency (cycles in {T} tokens)", ylabel="amplitude, mean over columns")
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
    text = "null: Gaussian noise"
    axes.plot(f, r["gaussian_mean"], color=draw.GREEN, linestyle=":", label=text)
    text = "99.9 % of these shuffles stay below"
    axes.axhline(r["amplitude_null"], color="black", linewidth=0.8, label=text)
    if "words" in r:
        text = "the same for the words shuffled"
        axes.axhline(r["words_null"], color=draw.ORANGE, linewidth=0.8, label=text)


def _label_peaks(axes, r):
    """Frequencies of up to six peaks above chance."""
    style = {"ha": "center", "fontsize": 8, "color": draw.BLUE}
    for peak in _spaced(r["above"], int(r["T"]) / 24)[:6]:
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
    style = {"fontsize": 8, "color": color}
    for c in COMPONENTS:
        if c <= len(percent):
            point = c, percent[c - 1]
            axes.plot(*point, "o", color=color, markersize=4)
            text = f"{c}: {percent[c - 1]:.0f} %"
            axes.annotate(text, point, xytext=(4, -11), textcoords="offset points", **style)


register(
    positions,
    draw=plot,
    look="Where the blue curve rises above the black line, the table holds a wave that the same "
    "rows in random order do not give. The words of a text (orange) are the control, with a line "
    "of their own: they come in no order that repeats. Frequency 0, the mean of each column, is "
    "drawn but does not set the scale.",
    published="RoBERTa and BERT peak at several frequencies away from 0, RoBERTa higher; GPT-2 has "
    "low frequencies only; word embeddings have no peak. In roberta-base 4 components explain "
    "50.51 % of the variance and 12 explain 92.23 % (Yamamoto and Matsuzaki, figures 3, 8, 9).",
    figure="figures 3 and 9",
    says=says,
    weights_only=True,
    numbers={
        "amplitude": "largest amplitude away from frequency 0, mean over columns",
        "amplitude_null": "99.9 % quantile of the same over shuffles of the rows",
        "frequency_of_largest": "its frequency, in cycles over the whole table",
        "period_of_largest": "its period, in tokens",
        "n_above": "frequencies whose amplitude is above that quantile",
        "n_above_null": "the most in any shuffle of the rows",
        "above_all": "these frequencies, ascending",
        "above": "the local maxima among these, the highest first",
        "peaks": "another rule: local maxima above 5 times the median amplitude",
        "n_peaks": "how many pass it",
        "n_peaks_null": "the most in any shuffle of the rows",
        "words": "largest amplitude of the word embeddings of a text, which should have no peak",
        "words_null": "99.9 % quantile of the same over shuffles of these rows",
        "explained_4": "variance explained by 4 principal components",
        "explained_4_null": "the same in Gaussian noise with the same variance in each column",
        "explained_12": "variance explained by 12 principal components",
        "explained_12_null": "the same in Gaussian noise with the same variance in each column",
        "n_components": "principal components that hold 50, 90 and 99 % of the variance",
        "n_components_null": "the same in Gaussian noise",
    },
)
