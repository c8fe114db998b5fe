"""Does this model make waves of its positions, as others do?

The position tables of several models side by side, as they are, each with the line that its own
rows in random order stay below. n models, T positions and D columns of each, F = T//2 + 1
frequencies.
"""

import numpy as np

from ..maths import nulls, spectra
from ..measures import compared, inputs
from ..runner import draw, options, verdict
from ..runner.registry import Answer, register
from ..runner.stream import UNSAVED

ABREAST = 2  # charts in a row
LISTS = (  # results with an entry for each model
    *("peak", "peak_at", "peak_period", "amplitude", "frequency_of_largest", "period_of_largest"),
    *("rise", "slow", "fastest", "fastest_period", "weights"),
)


def models(
    model,
    run=UNSAVED,
    *,
    others: str = "bundled",
    shuffles: options.Count = nulls.SHUFFLES,
    seed: options.Seed = 0,
):
    """Amplitude spectra of the position tables of several models.

    others: models to compare with, joined by commas: names, folders; bundled: all that come with
    the project
    shuffles: surrogates of each table
    seed: seed of the surrogates
    """
    every = [model, *_others(others, model)]
    result, summaries = {}, []
    for i, other in enumerate(every):
        curves, summary = _measure(inputs.reachable(other), shuffles, seed)
        result |= {f"{name}_{i}": curve for name, curve in curves.items()}
        summaries.append(summary)
    for name in summaries[0]:
        result[name] = np.array([summary[name] for summary in summaries])
    result["models"] = np.array([compared.name(other) for other in every])
    result["weights"] = np.array([compared.hashes(other) for other in every])
    return result


def _others(names, model):
    """The models to compare with.

    Raises FileNotFoundError for an unknown name, ValueError for a model without position table.
    """
    others = compared.others(names, model, partial=True)
    lacking = [compared.name(x) for x in others if x.weights.W_pos is None]
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


def says(r):
    """What the numbers show, in plain words."""
    described = " ".join(_says_of(r, i) for i in range(len(r["models"])))
    return (
        f"{described} Amplitudes grow with the number of positions: compare them only between "
        "models with the same number of positions."
    )


def _says_of(r, i):
    """One model."""
    side = "above" if r["peak"][i] > r["peak_null"][i] else "not above"
    period = r["peak_period"][i]
    place = f" (a period of {period:.3g} tokens)" if period else ""
    return (
        f"{r['models'][i]}: the highest peak away from 0 is {r['peak'][i]:.3g}{place}, {side} the "
        f"{r['peak_null'][i]:.3g} of shuffled rows; towards faster waves the amplitudes rise again "
        f"{r['rise'][i]:.3g} times (shuffled: {r['rise_null'][i]:.3g}); the largest amplitude of "
        f"all is {r['amplitude'][i]:.3g}, of {r['period_of_largest'][i]:.3g} tokens; periods above "
        f"{spectra.SLOW} tokens hold {r['slow'][i]:.1%} of the power (shuffled: "
        f"{r['slow_null'][i]:.1%})."
    )


def answer(r):
    """Yes if this model's table has a peak away from 0 and rises to it; partly if one of these.

    The other models stand beside it and do not count.
    """
    findings = [
        verdict.beside(r[name][0], r[f"{name}_null"][0], most=np.inf) for name in ("peak", "rise")
    ]
    others = ((r["peak"] > r["peak_null"]) & (r["rise"] > r["rise_null"]))[1:]
    measure = (
        "amplitude of this model's highest peak away from 0, rise to it; models that have both"
    )
    value = f"{r['peak'][0]:.2f}, {r['rise'][0]:.2f}; {others.sum()} of {len(others)} others"
    chance = f"{r['peak_null'][0]:.2f}, {r['rise_null'][0]:.2f}"
    return Answer(verdict.every(*findings), measure, value, chance)


def plot(r):
    """A chart for each model, all on one scale."""
    n = len(r["models"])
    rows = -(-n // ABREAST)
    figure = draw.figure(12.5, 3.3 * rows + 0.6)
    grid = figure.subplots(rows, ABREAST, squeeze=False).ravel()
    top = 1.5 * max(r["amplitude"].max(), r["peak_null"].max())
    low = 0.7 * min(r[f"spectrum_{i}"].min() for i in range(n))
    for axes in grid[n:]:
        axes.set_visible(False)
    for i, axes in enumerate(grid[:n]):
        axes.set(yscale="log", ylim=(low, top), ylabel="amplitude, mean over columns")
        _draw_spectrum(axes, r, i)
        _label_spectrum(axes, r, i)
    figure.legend(*grid[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


def _draw_spectrum(axes, r, i):
    """One model: mean and quartiles over columns, and the shuffles."""
    f, lowest = r[f"frequency_{i}"], spectra.lowest(int(r["T"][i]))
    low, high = r[f"quartiles_{i}"]
    text = "quartiles of the columns"
    axes.fill_between(f, low, high, color=draw.BLUE, alpha=0.2, linewidth=0, label=text)
    axes.plot(f, r[f"spectrum_{i}"], color=draw.BLUE, label="mean over columns")
    text = "null: rows shuffled, mean"
    axes.axhline(r["level"][i], color=draw.GREY, linestyle="--", linewidth=1, label=text)
    text = "99 % of the peaks of shuffled rows are lower"
    axes.hlines(r["peak_null"][i], lowest, f[-1], color="black", linewidth=0.9, label=text)
    axes.axvspan(0, lowest - 0.5, color=draw.GREY, alpha=0.12, linewidth=0)


def _label_spectrum(axes, r, i):
    """The highest peak above chance, the title and both scales."""
    T = int(r["T"][i])
    if r["peak"][i] > r["peak_null"][i]:
        style = {"textcoords": "offset points", "fontsize": 10, "color": draw.BLUE, "ha": "center"}
        point = r["peak_at"][i], r["peak"][i]
        axes.annotate(f"{r['peak_at'][i]}: {r['peak'][i]:.2f}", point, xytext=(0, 5), **style)
    axes.set(xlim=(0, T / 2), xlabel=f"frequency (cycles in {T} tokens)")
    axes.set_title(
        f"{draw.literal(str(r['models'][i]))} (T {T}, D {r['D'][i]}): {r['slow'][i]:.0%} of the "
        f"power\nin periods above {spectra.SLOW} tokens (99 % of shuffles: less than "
        f"{r['slow_null'][i]:.0%})"
    )
    axes.yaxis.set_major_formatter("{x:g}")
    draw.period_axis(axes, T)


register(
    models,
    draw=plot,
    look="Each chart is the spectrum of one model's position table, as it is, and all have one "
    "logarithmic scale; compare amplitudes only between models with the same number of "
    "positions. Above the black line there is a wave that the model's own rows in random "
    "order do not give. Compare where the hills stand: in the grey at the left (slow waves "
    "and drifts over the whole context) or away from it (waves of a few tokens), and how "
    "high they are.",
    published="BERT and RoBERTa peak away from frequency 0, RoBERTa higher; GPT-2 has low "
    "frequencies only; a Japanese BERT is among those shown (Yamamoto and Matsuzaki, figure 8).",
    figure="figure 8",
    says=says,
    answer=answer,
    weights_only=True,
    numbers={
        "peak": "amplitude (mean over columns) of each model's highest peak away from 0: a local "
        f"maximum of more than {spectra.DRIFT} cycles and periods of {spectra.SLOW} tokens or "
        "less; 0: none",
        "peak_null": "99 % quantile of the highest such peak over shuffles of the model's rows",
        "rise": "mean amplitude of a band away from 0 over the least mean amplitude of slower "
        "bands, of each model: 1 if amplitudes only fall with frequency",
        "rise_null": "99 % quantile of that quotient over shuffles of the model's rows",
        "peak_at": "frequency of each model's highest peak, in cycles over its whole table",
        "slow": "share of each model's power (squared amplitude) in waves with periods above "
        f"{spectra.SLOW} tokens",
        "slow_null": "99 % quantile of that share over shuffles of the rows",
        "amplitude": "largest amplitude of each model at any frequency but 0, slow drift included",
        "amplitude_null": "99 % quantile of the largest amplitude over shuffles of the rows",
        "fastest": "highest frequency at which each model's amplitude is above the largest of 99 % "
        "of its shuffles, in cycles per token; 0: none",
        "fastest_null": "99 % quantile of that frequency over shuffles of the rows",
        "frequency_of_largest": "frequency of each model's largest amplitude, in cycles over its "
        "whole table",
        "period_of_largest": "period of each model's largest amplitude, in tokens",
        "peak_period": "period of each model's highest peak, in tokens; 0: none",
        "fastest_period": "period of each model's fastest wave above chance, in tokens; 0: none",
        "weights": "sha256 of the weight files of each model",
    },
    labels=dict.fromkeys(LISTS, "models"),
)
