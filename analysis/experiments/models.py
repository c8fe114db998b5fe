"""Do all models make waves of their positions?

The position tables of several models side by side, each against the same table in random order.
n models, T positions and D columns of each, F = T//2 + 1 frequencies.
"""

import numpy as np

import minitx
from minitx import weights

from ..maths import nulls, spectra
from ..measures import inputs
from ..runner import draw, options, results
from ..runner.registry import register
from ..runner.stream import UNSAVED

SLOW = 16  # tokens: waves with a longer period count as slow
KINDS = {  # whether any wave is above chance, whether all of these are slow
    (True, True): "low frequencies only",
    (True, False): "not low frequencies only",
    (False, True): "no wave above chance",
}
ABREAST = 2  # charts in a row


def models(model, run=UNSAVED, *, others: str = "bundled", shuffles: int = 500, seed: int = 0):
    """Amplitude spectra of the position tables of several models.

    others: models to compare with, joined by commas: names, folders; bundled: all that come with
    the project
    shuffles: surrogates of each table
    seed: seed of the surrogates
    """
    options.at_least("shuffles", shuffles, 1)
    compared = [model, *_others(others, model)]
    result, summaries = {}, []
    for i, other in enumerate(compared):
        curves, summary = _measure(inputs.reachable(other), shuffles, seed)
        result |= {f"{name}_{i}": curve for name, curve in curves.items()}
        summaries.append(summary)
    for name in summaries[0]:
        result[name] = np.array([summary[name] for summary in summaries])
    result["models"] = np.array([_name(other) for other in compared])
    result["weights"] = np.array([_hashes(other) for other in compared])
    return result


def _others(names, model):
    """The models to compare with.

    Raises FileNotFoundError for an unknown name, ValueError for a model without position table.
    """
    if names == "bundled":
        own = model.tokenizer.folder.resolve()
        wanted = [name for name in weights.bundled() if weights.find(name).resolve() != own]
    else:
        wanted = [name.strip() for name in names.split(",") if name.strip()]
    others = [minitx.load(weights.find(name), partial=True) for name in wanted]
    lacking = [name for name, other in zip(wanted, others) if other.weights.W_pos is None]
    if lacking:
        raise ValueError(f"--others {', '.join(lacking)}: no position table in this checkpoint")
    return others


def _name(model):
    return model.tokenizer.folder.resolve().name


def _hashes(model):
    """sha256 of the weight files in one string."""
    return " ".join(results.hashes(model.tokenizer.folder).values())


def _measure(table, n, seed):
    """Curves of one table in units of what its shuffled rows reach, and its summary."""
    T, D = table.shape
    amplitudes = spectra.amplitude(table)
    mean, quartiles = spectra.summary(amplitudes)
    shuffled = nulls.distribution(spectra.mean_amplitude, nulls.row_shuffles(table, n, seed))[:, 1:]
    line = np.quantile(shuffled.max(axis=1), nulls.CHANCE)
    curves = {"frequency": np.arange(len(mean)), "spectrum": mean / line}
    curves["quartiles"] = quartiles[[0, 2]] / line
    peak = 1 + mean[1:].argmax()
    fastest = _fastest(mean, line)
    summary = {"T": T, "D": D, "level": shuffled.mean() / line}
    summary["frequency_of_largest"] = peak
    summary["period_of_largest"] = spectra.period(peak, T)
    summary["fastest_period"] = T / fastest if fastest else 0.0
    another = spectra.amplitude(next(nulls.row_shuffles(table, 1, seed + 1)))
    summary |= _waves(amplitudes, line, T)
    summary |= {f"{name}_null": value for name, value in _waves(another, line, T).items()}
    return curves, summary


def _fastest(spectrum, line):
    """Highest frequency at which [F] is above a line, in cycles over the table; 0: none."""
    return max(spectra.above(spectrum, line), default=0)


def _waves(amplitudes, line, T):
    """How high, how fast and how slow the waves of [F D] are."""
    mean = amplitudes.mean(axis=1)
    result = {"times": spectra.largest(mean) / line}
    result["fastest"] = _fastest(mean, line) / T
    result["slow"] = _slow(amplitudes, T)
    return result


def _slow(amplitudes, T):
    """Share of the power of [F D] in slow waves; frequency 0 is left out."""
    power = np.square(amplitudes[1:], dtype=np.float64).sum(axis=1)
    slow = spectra.period(1 + np.arange(len(power)), T) > SLOW
    return power[slow].sum() / power.sum()


def says(r):
    """What the numbers show, in plain words."""
    described = " ".join(_says_of(r, i) for i in range(len(r["models"])))
    return (
        f"{described} Low frequencies only: no wave above chance has a period of {SLOW} tokens or "
        "less."
    )


def _says_of(r, i):
    """One model."""
    return (
        f"{r['models'][i]}: {_kind(r['fastest'][i])}; the largest, of "
        f"{r['period_of_largest'][i]:.3g} tokens, is {r['times'][i]:.1f} times what shuffled rows "
        f"reach, and periods above {SLOW} tokens hold {r['slow'][i]:.1%} of the power (shuffled: "
        f"{r['slow_null'][i]:.1%})."
    )


def _kind(fastest):
    """The kind of a spectrum by its fastest wave above chance, in cycles per token; 0: none."""
    kind = KINDS[bool(fastest), bool(fastest * SLOW < 1)]
    if not fastest:
        return kind
    return f"waves above chance have periods of {1 / fastest:.3g} tokens and more: {kind}"


def plot(r):
    """A chart for each model, all with the same height: amplitude over that of shuffled rows."""
    n = len(r["models"])
    rows = -(-n // ABREAST)
    figure = draw.figure(10, 2.6 * rows + 0.5)
    grid = figure.subplots(rows, ABREAST, squeeze=False).ravel()
    top = 1.4 * max(r["times"].max(), 1)
    low = 0.7 * min(r[f"spectrum_{i}"].min() for i in range(n))
    for axes in grid[n:]:
        axes.set_visible(False)
    for i, axes in enumerate(grid[:n]):
        axes.set(yscale="log", ylim=(low, top), ylabel="amplitude / null")
        _draw_spectrum(axes, r, i)
        _label_spectrum(axes, r, i)
    figure.legend(*grid[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


def _draw_spectrum(axes, r, i):
    """One model: mean and quartiles over columns, and the shuffles."""
    f = r[f"frequency_{i}"]
    low, high = r[f"quartiles_{i}"]
    text = "quartiles of the columns"
    axes.fill_between(f, low, high, color=draw.BLUE, alpha=0.2, linewidth=0, label=text)
    axes.plot(f, r[f"spectrum_{i}"], color=draw.BLUE, label="mean over columns")
    text = "null: rows shuffled, mean"
    axes.axhline(r["level"][i], color=draw.GREY, linestyle="--", linewidth=1, label=text)
    axes.axhline(1, color="black", linewidth=0.8, label="99.9 % of the shuffles stay below")


def _label_spectrum(axes, r, i):
    """The frequency of the largest amplitude, the title and both scales."""
    T, peak = int(r["T"][i]), int(r["frequency_of_largest"][i])
    point = peak, r["times"][i]
    style = {"textcoords": "offset points", "fontsize": 8, "color": draw.BLUE}
    axes.annotate(f"{peak}", point, xytext=(3, 2), **style)
    axes.set(xlim=(0, T / 2), xlabel=f"frequency (cycles in {T} tokens)")
    axes.set_title(
        f"{draw.literal(str(r['models'][i]))} (T {T}, D {r['D'][i]})\n"
        f"{r['slow'][i]:.0%} of power in periods above {SLOW} (null {r['slow_null'][i]:.0%})"
    )
    axes.yaxis.set_major_formatter("{x:g}")
    draw.period_axis(axes, T)


register(
    models,
    draw=plot,
    look="Each chart is the spectrum of one model's position table, divided by the largest "
    "amplitude that its rows reach in random order, so that all have one scale: above the black "
    "line there is a wave. Compare where the hills stand: at the left edge (slow drifts over the "
    "whole context) or away from it (waves of a few tokens). The scale is logarithmic.",
    published="BERT and RoBERTa peak away from frequency 0, RoBERTa higher; GPT-2 has low "
    "frequencies only; a Japanese BERT is among those shown (Yamamoto and Matsuzaki, figure 8).",
    figure="figure 8",
    says=says,
    weights_only=True,
    numbers={
        "models": "models compared",
        "times": "largest amplitude away from frequency 0, over the 99.9 % quantile of the same in "
        "shuffled rows",
        "times_null": "the same for one more shuffle of the rows",
        "frequency_of_largest": "its frequency, in cycles over the whole table",
        "period_of_largest": "its period, in tokens",
        "fastest": "highest frequency at which the amplitude is above that quantile, in cycles per "
        "token; 0: none",
        "fastest_null": "the same for that shuffle",
        "fastest_period": "its period, in tokens; 0: none",
        "slow": f"share of the power (squared amplitude) in waves with periods above {SLOW} tokens",
        "slow_null": "the same for that shuffle",
        "weights": "sha256 of their weight files",
    },
)
