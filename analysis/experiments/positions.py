"""Frequencies and principal components of the position embeddings, against words and against chance.

T rows that a token can reach, D columns, F frequencies, C components. Order: what is drawn, what is computed.
"""

import numpy as np

from .. import corpus, draw, inputs, nulls, spectra
from ..registry import experiment

COMPONENTS = (4, 12)  # those of which the paper gives the share
SHARES = (0.5, 0.9, 0.99)  # of the variance, and the components that reach them


def plot(r):
    """Spectra on the left, cumulative variance on the right."""
    figure = draw.figure(10, 4.2)
    left, right = figure.subplots(1, 2, width_ratios=(1.7, 1))
    _spectra(left, r)
    _variance(right, r)
    return figure


def _spectra(axes, r):
    f, T = r["frequency"], int(r["T"])
    for name, color, text in (("words", draw.ORANGE, "word embeddings of one document"),
                              ("position", draw.BLUE, "position embeddings")):
        if f"{name}_mean" not in r:  # a partial checkpoint may have no words
            continue
        axes.fill_between(f, *r[f"{name}_quartiles"][[0, 2]], color=color, alpha=0.2, linewidth=0)
        axes.plot(f, r[f"{name}_mean"], color=color, label=f"{text}: mean, quartiles")
    axes.plot(f, r["shuffled_mean"], color=draw.GREY, linestyle="--", label="null: position rows shuffled")
    axes.plot(f, r["gaussian_mean"], color=draw.GREEN, linestyle=":", label="null: Gaussian noise")
    axes.axhline(r["amplitude_null"], color="black", linewidth=0.8, label="99.9 % of these shuffles stay below")
    if "words" in r:
        axes.axhline(r["words_null"], color=draw.ORANGE, linewidth=0.8, label="the same for the words shuffled")
    for peak in _apart(r["above"], T / 24)[:6]:
        axes.annotate(f"{peak}", (peak, r["position_mean"][peak]), xytext=(0, 3), textcoords="offset points",
                      ha="center", fontsize=8, color=draw.BLUE)
    top = max(np.max(r[name][1:]) for name in ("position_mean", "words_mean", "shuffled_mean") if name in r)
    axes.set(xlim=(0, T / 2), ylim=(0, 1.5 * top), xlabel=f"frequency (cycles in {T} tokens)",
             ylabel="amplitude, mean over columns")
    axes.legend(loc="upper right")
    draw.period_axis(axes, T)


def _apart(frequencies, least):
    """Frequencies without those too near to a higher one to be labelled beside it."""
    kept = []
    for f in frequencies:
        if all(abs(f - other) >= least for other in kept):
            kept.append(f)
    return kept


def _variance(axes, r):
    for name, color, style in (("position", draw.BLUE, "-"), ("gaussian", draw.GREEN, ":")):
        share = 100 * r[f"{name}_explained"]
        axes.plot(np.arange(1, len(share) + 1), share, style, color=color)
        for c in (c for c in COMPONENTS if c <= len(share)):
            axes.plot(c, share[c - 1], "o", color=color, markersize=4)
            axes.annotate(f"{c}: {share[c - 1]:.0f} %", (c, share[c - 1]), xytext=(4, -11),
                          textcoords="offset points", fontsize=8, color=color)
    axes.text(0.97, 0.16, "position embeddings", transform=axes.transAxes, ha="right", color=draw.BLUE)
    axes.text(0.97, 0.09, "null: Gaussian noise", transform=axes.transAxes, ha="right", color=draw.GREEN)
    axes.set(ylim=(0, 102), xlim=(0, min(len(share), 40)), xlabel="principal components",
             ylabel="variance explained (%)")


def says(r):
    """What the numbers show, in plain words."""
    wave = (f"The largest amplitude is {r['amplitude'] / r['amplitude_null']:.2f} times what shuffled rows reach, at "
            f"frequency {r['frequency_of_largest']} (a period of {r['period_of_largest']:.3g} tokens).")
    words = f" In the words of a text the largest is {r['words'] / r['words_null']:.2f} times." if "words" in r else ""
    return (f"{wave}{words} 4 components hold {r['explained_4']:.2%} of the variance (noise: "
            f"{r['explained_4_null']:.2%}) and 12 hold {r['explained_12']:.2%} (noise: {r['explained_12_null']:.2%}).")


@experiment(
    asks="Are position embeddings waves?",
    draw=plot,
    look="Where the blue curve rises above the black line, the table holds a wave that the same rows in "
         "random order do not give. The words of a text (orange) are the control, with a line of their own: they come "
         "in no order that repeats. Frequency 0, the mean of each column, is drawn but does not set the scale.",
    published="RoBERTa and BERT peak at several frequencies away from 0, RoBERTa higher; GPT-2 has low "
              "frequencies only; word embeddings have no peak. In roberta-base 4 components explain 50.51 "
              "% of the variance and 12 explain 92.23 % (Yamamoto and Matsuzaki, figures 3, 8, 9).",
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
        "n_components_null": "the same in Gaussian noise"})
def positions(model, *, text: str = "sample", shuffles: int = 500, seed: int = 0):
    """Amplitude spectra and principal components of the position table.

    text: text of the word embeddings: file, folder, - for standard input, or sample
    shuffles: surrogates of each kind
    seed: seed of the surrogates
    """
    corpus.at_least("shuffles", shuffles, 1)
    table = inputs.reachable(model)
    found = {"T": len(table), "frequency": np.arange(len(table) // 2 + 1)} | _spectrum("position", table)
    if not model.missing:
        words = model.weights.W_E[corpus.documents(model, text, 1).first()[0]]
        found |= _spectrum("words", words)
        line = np.quantile(_largest_shuffled(words, shuffles, seed), 0.999)
        found |= {"words": spectra.largest(found["words_mean"]), "words_null": line}
    found |= _chance(table, shuffles, seed)
    return found | _peaks(found["position_mean"], found["amplitude_null"], len(table)) | _explained(table, seed)


def _spectrum(name, x):
    """Mean and quartiles of the amplitudes under a name."""
    mean, quartiles = spectra.summary(spectra.amplitude(x))
    return {f"{name}_mean": mean, f"{name}_quartiles": quartiles}


def _largest_shuffled(x, n, seed):
    """Largest mean amplitude of each shuffle [n]."""
    return nulls.distribution(lambda rows: spectra.largest(_mean_spectrum(rows)), nulls.row_shuffles(x, n, seed))


def _mean_spectrum(x):
    """[T D] -> [F]."""
    return spectra.amplitude(x).mean(axis=1)


def _peaks(spectrum, line, T):
    peaks, highest = spectra.peaks(spectrum), 1 + spectrum[1:].argmax()
    everywhere = spectra.above(spectrum, line)
    return {"n_above": len(everywhere), "above_all": everywhere, "above": spectra.maxima(spectrum, line),
            "peaks": peaks, "n_peaks": len(peaks), "amplitude": spectra.largest(spectrum),
            "frequency_of_largest": highest, "period_of_largest": spectra.period(highest, T)}


def _chance(table, n, seed):
    """Spectra [n F] of shuffled tables and of noise, reduced to what is drawn and compared."""
    shuffled = nulls.distribution(_mean_spectrum, nulls.row_shuffles(table, n, seed))
    noise = nulls.distribution(_mean_spectrum, nulls.gaussian(table, n, seed))
    return {"shuffled_mean": shuffled.mean(axis=0), "gaussian_mean": noise.mean(axis=0),
            "shuffled_largest": shuffled[:, 1:].max(axis=1), "gaussian_largest": noise[:, 1:].max(axis=1),
            "amplitude_null": (line := np.quantile(shuffled[:, 1:].max(axis=1), 0.999)),
            "n_above_null": (shuffled[:, 1:] > line).sum(axis=1).max(),
            "n_peaks_null": max(len(spectra.peaks(spectrum)) for spectrum in shuffled)}


def _explained(table, seed):
    """Cumulative variance of the table and of one table of noise; all of it beyond the last component."""
    found = {"position_explained": spectra.explained(table),
             "gaussian_explained": spectra.explained(next(nulls.gaussian(table, 1, seed)))}
    for c in COMPONENTS:
        for name, suffix in (("position", ""), ("gaussian", "_null")):
            share = found[f"{name}_explained"]
            found[f"explained_{c}{suffix}"] = share[min(c, len(share)) - 1]
            found[f"n_components{suffix}"] = 1 + np.searchsorted(share, SHARES)
    return found
