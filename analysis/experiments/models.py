"""Position embeddings of several models side by side: their waves, each against the same table in random order.

n models, T positions and D columns of each, F = T//2 + 1 frequencies. Order: the picture, the experiment, one table.
"""

import numpy as np

import minitx
import weights

from .. import corpus, draw, inputs, nulls, results, spectra
from ..registry import experiment

SLOW = 16  # tokens: waves with a longer period count as slow
KINDS = {  # whether any wave is above chance, whether all of these are slow
    (True, True): "low frequencies only", (True, False): "not low frequencies only",
    (False, True): "no wave above chance"}
ABREAST = 2  # charts in a row


def plot(r):
    """A chart for each model, all with the same height: amplitude over that of shuffled rows."""
    n = len(r["models"])
    rows, frequencies = -(-n // ABREAST), [r[f"frequency_{i}"] for i in range(n)]
    figure = draw.figure(10, 2.6 * rows + 0.5)
    grid = figure.subplots(rows, ABREAST, squeeze=False).ravel()
    top = 1.4 * max(r["times"].max(), 1)
    low = 0.7 * min(r[f"spectrum_{i}"].min() for i in range(n))
    for i, axes in enumerate(grid):
        axes.set_visible(i < n)
        if i < n:
            axes.set(yscale="log", ylim=(low, top), ylabel="amplitude / null")
            _spectrum(axes, r, i, frequencies[i])
    figure.legend(*grid[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


def _spectrum(axes, r, i, f):
    """One model: mean and quartiles over columns, the shuffles, the highest frequency."""
    T, best = int(r["T"][i]), int(r["frequency_of_largest"][i])
    axes.fill_between(f, *r[f"quartiles_{i}"], color=draw.BLUE, alpha=0.2, linewidth=0,
                      label="quartiles of the columns")
    axes.plot(f, r[f"spectrum_{i}"], color=draw.BLUE, label="mean over columns")
    axes.axhline(r["level"][i], color=draw.GREY, linestyle="--", linewidth=1, label="null: rows shuffled, mean")
    axes.axhline(1, color="black", linewidth=0.8, label="99.9 % of the shuffles stay below")
    axes.annotate(f"{best}", (best, r["times"][i]), xytext=(3, 2), textcoords="offset points", fontsize=8,
                  color=draw.BLUE)
    axes.set(xlim=(0, T / 2), xlabel=f"frequency (cycles in {T} tokens)")
    axes.set_title(f"{draw.literal(str(r['models'][i]))} (T {T}, D {r['D'][i]})\n"
                   f"{r['slow'][i]:.0%} of power in periods above {SLOW} (null {r['slow_null'][i]:.0%})")
    axes.yaxis.set_major_formatter("{x:g}")
    draw.period_axis(axes, T)


def says(r):
    """What the numbers show, in plain words."""
    each = " ".join(
        f"{name}: {_above(fastest)}; the largest, of {period:.3g} tokens, is {times:.1f} times what shuffled rows "
        f"reach, and periods above {SLOW} tokens hold {slow:.1%} of the power (shuffled: {null:.1%})."
        for name, times, fastest, period, slow, null in zip(*(r[key] for key in (
            "models", "times", "fastest", "period_of_largest", "slow", "slow_null"))))
    return f"{each} Low frequencies only: no wave above chance has a period of {SLOW} tokens or less."


def _above(fastest):
    """What the fastest wave above chance, in cycles per token, makes of the spectrum; 0: there is none."""
    periods = f"waves above chance have periods of {1 / fastest:.3g} tokens and more: " if fastest else ""
    return periods + KINDS[bool(fastest), bool(fastest * SLOW < 1)]


@experiment(
    asks="Do all models make waves of their positions?",
    draw=plot,
    look="Each chart is the spectrum of one model's position table, divided by the largest amplitude that its rows "
         "reach in random order, so that all have one scale: above the black line there is a wave. Compare where the "
         "hills stand: at the left edge (slow drifts over the whole context) or away from it (waves of a few tokens). "
         "The scale is logarithmic.",
    published="BERT and RoBERTa peak away from frequency 0, RoBERTa higher; GPT-2 has low frequencies only; a "
              "Japanese BERT is among those shown (Yamamoto and Matsuzaki, figure 8).",
    figure="figure 8",
    says=says,
    weights_only=True,
    numbers={
        "models": "models compared",
        "times": "largest amplitude away from frequency 0, over the 99.9 % quantile of the same in shuffled rows",
        "times_null": "the same for one more shuffle of the rows",
        "frequency_of_largest": "its frequency, in cycles over the whole table",
        "period_of_largest": "its period, in tokens",
        "fastest": "highest frequency at which the amplitude is above that quantile, in cycles per token; 0: none",
        "fastest_null": "the same for that shuffle",
        "fastest_period": "its period, in tokens; 0: none",
        "slow": f"share of the power (squared amplitude) in waves with periods above {SLOW} tokens",
        "slow_null": "the same for that shuffle",
        "weights": "sha256 of their weight files"})
def models(model, *, others: str = "bundled", shuffles: int = 500, seed: int = 0):
    """Amplitude spectra of the position tables of several models.

    others: models to compare with, joined by commas: names, folders; bundled: all that come with the project
    shuffles: surrogates of each table
    seed: seed of the surrogates
    """
    corpus.at_least("shuffles", shuffles, 1)
    compared = [model, *_others(others, model)]
    each = [_of(inputs.reachable(one), shuffles, seed) for one in compared]
    found = {f"{name}_{i}": one[name] for i, one in enumerate(each) for name in ("frequency", "spectrum", "quartiles")}
    return found | {name: np.array([one["summary"][name] for one in each]) for name in each[0]["summary"]} | \
        {"models": np.array([_name(one) for one in compared]), "weights": np.array([_hashes(one) for one in compared])}


def _others(names, model):
    """The models to compare with; FileNotFoundError for an unknown name, ValueError for one without positions."""
    own = model.tokenizer.folder.resolve()
    wanted = [name for name in weights.bundled() if weights.find(name).resolve() != own] \
        if names == "bundled" else [name.strip() for name in names.split(",") if name.strip()]
    found = [minitx.load(weights.find(name), partial=True) for name in wanted]
    if lacking := [name for name, one in zip(wanted, found) if one.weights.W_pos is None]:
        raise ValueError(f"--others {', '.join(lacking)}: no position table in this checkpoint")
    return found


def _name(model):
    return model.tokenizer.folder.resolve().name


def _hashes(model):
    """sha256 of the weight files in one string."""
    return " ".join(results.hashes(model.tokenizer.folder).values())


def _of(table, n, seed):
    """Spectrum of one table in units of what its shuffled rows reach, and its summary."""
    T, amplitudes = len(table), spectra.amplitude(table)
    mean, quartiles = spectra.summary(amplitudes)
    shuffled = nulls.distribution(lambda rows: spectra.amplitude(rows).mean(axis=1),
                                  nulls.row_shuffles(table, n, seed))
    line = np.quantile(shuffled[:, 1:].max(axis=1), 0.999)
    of_another = spectra.amplitude(next(nulls.row_shuffles(table, 1, seed + 1)))
    another, highest = of_another.mean(axis=1), 1 + mean[1:].argmax()
    fastest, fastest_null = (max(spectra.above(x, line), default=0) for x in (mean, another))
    curves = {"frequency": np.arange(len(mean)), "spectrum": mean / line, "quartiles": quartiles[[0, 2]] / line}
    return curves | {"summary": {
        "T": T, "D": table.shape[1], "level": shuffled[:, 1:].mean() / line,
        "times": spectra.largest(mean) / line, "times_null": spectra.largest(another) / line,
        "frequency_of_largest": highest, "period_of_largest": spectra.period(highest, T),
        "fastest": fastest / T, "fastest_null": fastest_null / T, "fastest_period": T / fastest if fastest else 0.0,
        "slow": _slow(amplitudes, T), "slow_null": _slow(of_another, T)}}


def _slow(amplitudes, T):
    """Share of the power of [F D] in slow waves; frequency 0 is left out."""
    power = np.square(amplitudes[1:], dtype=np.float64).sum(axis=1)
    return power[spectra.period(1 + np.arange(len(power)), T) > SLOW].sum() / power.sum()
