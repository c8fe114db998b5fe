"""Are this model's position embeddings periodic, like those of other models?

The position tables of several models side by side, as they are, each with the line that its own
rows in random order stay below. n models, T positions and D columns of each, F = T//2 + 1
frequencies.
"""

from functools import partial

import numpy as np

from ..contract import Asks, Every, Of, options, register
from ..drawing import Bar, Part, Rows, bars, draw, figures, row
from ..machine.language import filled
from ..maths import nulls, spectra
from ..measures import inputs, other_models
from ..running.stream import UNSAVED

ABREAST = 2  # charts in a row


def models(
    model,
    run=UNSAVED,
    *,
    others: str = "bundled",
    shuffles: options.Shuffles = nulls.SHUFFLES,
    seed: options.Seed = 0,
):
    """Amplitude spectra of the position tables of several models.

    others: models to compare with, joined by commas: names, folders; bundled: all that come with
    the project
    """
    every = [model, *_others(others, model)]
    result, summaries = {}, []
    for i, other in enumerate(every):
        curves, summary = _measure(inputs.varying(other), shuffles, seed)
        result |= {f"{name}_{i}": curve for name, curve in curves.items()}
        summaries.append(summary)
    for name in summaries[0]:
        result[name] = np.array([summary[name] for summary in summaries])
    result["models"] = np.array([other_models.name(other) for other in every])
    result["weights"] = np.array([other_models.hashes(other) for other in every])
    return result


def _others(names, model):
    """The models to compare with.

    Raises FileNotFoundError for an unknown name, ValueError for a model without position table.
    """
    others = other_models.others(names, model, partial=True)
    lacking = [other_models.name(x) for x in others if x.weights.W_pos is None]
    if lacking:
        raise ValueError(f"--others {', '.join(lacking)}: no position table in this checkpoint")
    return others


def _measure(table, n, seed):
    """Curves of one table, and its summary with what its shuffled rows give."""
    T, D = table.shape
    amplitudes = spectra.amplitude(table)
    mean, quartiles = spectra.summary(amplitudes)
    shuffled, slow_shuffled = [], []
    for surrogate in nulls.row_shuffles(table, n, seed):
        of_surrogate = spectra.amplitude(surrogate)
        shuffled.append(of_surrogate.mean(axis=1))
        slow_shuffled.append(_slow(of_surrogate, T))
    shuffled = np.array(shuffled)
    curves = {"frequency": np.arange(len(mean)), "spectrum": mean}
    curves["quartiles"] = quartiles[[0, 2]]
    summary = {"T": T, "D": D, "level": shuffled[:, 1:].mean()} | _peak(mean, shuffled, T)
    summary |= _waves(mean, shuffled, T)
    summary["slow"] = _slow(amplitudes, T)
    summary["slow_null"] = np.quantile(slow_shuffled, nulls.CHANCE)
    return curves, summary


def _peak(mean, shuffled, T):
    """The highest peak of a spectrum [F] away from 0, and what those of shuffles [n F] reach."""
    least = spectra.lowest(T)
    height, frequency = spectra.highest_peak(mean, least)
    result = {"peak": height, "peak_at": frequency}
    result["peak_null"] = spectra.peak_null(shuffled, least)
    result["rise"] = spectra.rise(mean, least)
    result["rise_null"] = spectra.rise_null(shuffled, least)
    result["peak_period"] = T / frequency if frequency else 0.0
    return result


def _waves(mean, shuffled, T):
    """The largest amplitude of a spectrum [F], and its fastest wave above those of shuffles."""
    largest = shuffled[:, 1:].max(axis=1)
    line = np.quantile(largest, nulls.CHANCE)
    frequency = 1 + mean[1:].argmax()
    fastest = max(spectra.above(mean, line), default=0)
    by_chance = [max(spectra.above(spectrum, line), default=0) for spectrum in shuffled]
    result = {"amplitude": mean[frequency], "amplitude_null": line}
    result["frequency_of_largest"] = frequency
    result["period_of_largest"] = spectra.period(frequency, T)
    result["fastest"] = fastest / T
    result["fastest_null"] = np.quantile(by_chance, nulls.CHANCE, method="lower") / T
    result["fastest_period"] = T / fastest if fastest else 0.0
    return result


def _slow(amplitudes, T):
    """Share of the power of [F D] in slow waves; frequency 0 is left out."""
    power = np.square(amplitudes[1:], dtype=np.float64).sum(axis=1)
    slow = spectra.period(1 + np.arange(len(power)), T) > spectra.SLOW
    return power[slow].sum() / power.sum()


def of_period(r):
    """The period of each model's highest peak, in words."""
    words = " (a period of {period:.3g} tokens)"
    return [filled(words, period=period) if period else "" for period in r["peak_period"]]


def side(r):
    """On which side of its null each model's highest peak is."""
    return np.where(r["peak"] > r["peak_null"], "above", "not above")


def with_both(r):
    """How many other models have a peak and rise to it, in words."""
    others = ((r["peak"] > r["peak_null"]) & (r["rise"] > r["rise_null"]))[1:]
    return filled("{n} of {all} others", n=others.sum(), all=len(others))


def _spectra(r):
    """A chart for each model, ABREAST in a figure."""
    n = len(r["models"])
    blocks = [range(n)[i : i + ABREAST] for i in range(0, n, ABREAST)]
    return [Part(partial(_draw_spectra, models=block), height=4) for block in blocks]


def _draw_spectra(figure, r, models):
    """Charts of some models, all on one scale."""
    grid = figure.subplots(1, ABREAST, squeeze=False)[0]
    top = 1.5 * max(r["amplitude"].max(), r["peak_null"].max())
    low = 0.7 * min(r[f"spectrum_{i}"].min() for i in range(len(r["models"])))
    for axes in grid[len(models) :]:
        axes.set_visible(False)
    for i, axes in zip(models, grid):
        axes.set(yscale="log", ylim=(low, top), ylabel="amplitude, mean over columns")
        _draw_spectrum(axes, r, i)
        _label_spectrum(axes, r, i)
    figure.legend(*grid[0].get_legend_handles_labels(), loc="outside upper left", ncols=4)


def _draw_spectrum(axes, r, i):
    """One model: mean and quartiles over columns, and the shuffles."""
    f, lowest = r[f"frequency_{i}"], spectra.lowest(int(r["T"][i]))
    low, high = r[f"quartiles_{i}"]
    text = "quartiles of the columns"
    axes.fill_between(f, low, high, color=draw.BLUE, alpha=0.2, linewidth=0, label=text)
    axes.plot(f, r[f"spectrum_{i}"], color=draw.BLUE, label="mean over columns")
    text = "null: rows shuffled, mean"
    axes.axhline(r["level"][i], color=draw.GREY, linestyle="--", linewidth=1, label=text)
    text = "99% of the peaks of shuffled rows are lower"
    axes.hlines(r["peak_null"][i], lowest, f[-1], color="black", linewidth=0.9, label=text)
    axes.axvspan(0, lowest - 0.5, color=draw.GREY, alpha=0.12, linewidth=0)


TITLE = (
    "{name} (T {T}, D {D}): {slow:.0%} of the power\nin periods above {SLOW} tokens (99% of "
    "shuffles: less than {slow_null:.0%})"
)


def _label_spectrum(axes, r, i):
    """The highest peak above chance, the title and both scales."""
    T = int(r["T"][i])
    if r["peak"][i] > r["peak_null"][i]:
        style = {"textcoords": "offset points", "fontsize": 10, "color": draw.BLUE, "ha": "center"}
        point = r["peak_at"][i], r["peak"][i]
        axes.annotate(f"{r['peak_at'][i]}: {r['peak'][i]:.2f}", point, xytext=(0, 5), **style)
    axes.set(xlim=(0, T / 2), xlabel=f"frequency (cycles in {T} tokens)")
    values = {"name": draw.literal(str(r["models"][i])), "T": T, "D": r["D"][i]}
    values |= {"slow": r["slow"][i], "slow_null": r["slow_null"][i]}
    axes.set_title(filled(TITLE, SLOW=spectra.SLOW, **values))
    axes.yaxis.set_major_formatter("{x:g}")
    draw.period_axis(axes, T)


register(
    models,
    draw=figures(
        row(
            bars(
                Bar("peak", "highest peak", null="peak_null"),
                ticks="models",
                null="99% of the peaks of shuffled rows are lower",
                ylabel="amplitude, mean over columns",
            ),
            bars(
                Bar("rise", "rise towards faster waves", draw.ORANGE, null="rise_null"),
                ticks="models",
                null="99% of shuffles: less",
                ylabel="times the least of slower waves",
            ),
            height=4.2,
        ),
        _spectra,
    ),
    look="The first figure has the highest peak of each table and its rise from slower waves. "
    "Each other chart is the spectrum of one model's position table, as it is, and all have "
    "one logarithmic scale; compare amplitudes only between models with the same number of "
    "positions. Above the level line there is a wave that the model's own rows in random "
    "order do not give. Compare where the hills stand: in the grey at the left (slow waves "
    "and drifts over the whole context) or away from it (waves of a few tokens), and how high "
    "they are.",
    published="BERT and RoBERTa peak away from frequency 0, RoBERTa higher; GPT-2 has low "
    "frequencies only; a Japanese BERT is among those shown (Yamamoto and Matsuzaki, figure 8).",
    figure="figure 8",
    weights_only=True,
    numbers="""
        peak by models: amplitude (mean over columns) of each model's highest peak away from 0: a
            local maximum of more than {spectra.DRIFT} cycles and periods of {spectra.SLOW} tokens
            or less; 0: none
            null: 99% quantile of the highest such peak over shuffles of the model's rows
        rise by models: mean amplitude of a band away from 0 over the least mean amplitude of slower
            bands, of each model: 1 if amplitudes only fall with frequency
            null: 99% quantile of that quotient over shuffles of the model's rows
        peak_at by models: frequency of each model's highest peak, in cycles over its whole table
            no null: where a peak is; what has a null is its height
        slow by models: share of each model's power (squared amplitude) in waves with periods above
            {spectra.SLOW} tokens
            null: 99% quantile of that share over shuffles of the rows
        amplitude by models: largest amplitude of each model at any frequency but 0, slow drift
            included
            null: 99% quantile of the largest amplitude over shuffles of the rows
        fastest by models: highest frequency at which each model's amplitude is above the largest of
            99% of its shuffles, in cycles per token; 0: none
            null: 99% quantile of that frequency over shuffles of the rows
        period_of_largest by models: period of each model's largest amplitude, in tokens
            no null: where that amplitude is; what has a null is its size
        peak_period by models: period of each model's highest peak, in tokens; 0: none
            no null: peak_at in other units
        fact weights by models: sha256 of the weight files of each model
    """,
    answer=Asks(
        "this model's highest peak away from frequency 0, and its rise (a ratio); other models "
        "with both",
        value="height {peak[0]:.2f}, rise {rise[0]:.2f}; {with_both}",
        chance="height {peak_null[0]:.2f}, rise {rise_null[0]:.2f}",
        rule=Every(Of("peak[0]", most=np.inf), Of("rise[0]", most=np.inf)),
    ),
    says=[
        Rows(
            "{models}: the highest peak away from 0 is {peak:.3g}{of_period}, {side} the "
            "{peak_null:.3g} of shuffled rows; towards faster waves the amplitudes rise again "
            "{rise:.3g} times (shuffled: {rise_null:.3g}); the largest amplitude of all is "
            "{amplitude:.3g}, of {period_of_largest:.3g} tokens; periods above {spectra.SLOW} "
            "tokens hold {slow:.1%} of the power (shuffled: {slow_null:.1%}).",
            join=" ",
        ),
        " Amplitudes grow with the number of positions: compare them only between models with the "
        "same number of positions.",
    ],
)
