"""Does a way to know places go on past the trained length?

Several models side by side, one row each: how sharply a head looks at one neighbour, how far heads
look, how much of a token's place the stream holds, what the loss is without places, and in inputs
of up to four times the trained length. What makes no sense in a model is left out, and said. n
models, L layers, K lengths. Order: the experiment, its parts; the words; the picture.
"""

import textwrap
from typing import Annotated

import numpy as np

from ..measures import compared, mechanism_row, position_probe
from ..runner import draw, options, verdict
from ..runner.registry import Answer, register
from ..runner.stream import UNSAVED

FACTORS = mechanism_row.FACTORS
LONGEST = f"{FACTORS[-1]:g} times"
IN_ALL = ("sharp", "sharp_null", "sharp_interval", "sharp_head", "sharp_offset")
IN_ALL += ("reach", "reach_null", "reach_interval", "r2", "r2_null", "r2_interval")
OF_ONE = "r2_by_layer", "r2_by_layer_null", "r2_by_layer_interval", "without"
OFF = "loss", "loss_null", "off", "off_null", "off_interval"
LENGTH = "loss_by_length", "by_length", "by_length_null", "by_length_interval", "loss_frequencies"
# of what a model predicts beyond word frequencies, kept at the longest length: yes, and partly
GOES_ON, HALF = 0.95, 0.5
NULLS = {  # what the words call chance
    "sharp": "uniform attention",
    "reach": "uniform attention",
    "r2": "places shuffled",
    "off": "signs at random up to",
    "longest": "signs at random up to",
}
WORDS = {  # how a place enters
    "learned": "a learned table",
    "sinusoidal": "a table of sinusoids",
    "rotary": "turned queries and keys",
    "buckets": "a bias by bucket",
    "alibi": "ALiBi",
    "none": "nothing",
}


def mechanisms(
    model,
    run=UNSAVED,
    *,
    others: str = "",
    text: options.Text = "sample",
    documents: Annotated[int, options.AtLeast(position_probe.LEAST)] = 60,
    tokens: options.Size = 0,
    every: options.Count = 16,
    seed: options.Seed = 0,
):
    """Sharpness, reach, places in the stream, and the loss without places and in longer inputs.

    others: models to put beside it, joined by commas: names, folders; zoo, bundled: all of these
    text: file or folder with one document or paragraph a line, - for standard input, or sample
    documents: documents of the trained length to read; of longer ones a quarter as many
    tokens: length of each document, which counts as the trained one (0: the model's longest input)
    every: of a masked model's tokens one in so many is hidden, all of them at once
    seed: seed of the shuffled places and of the random signs
    """
    models = [model, *compared.others(others, model)]
    rows = [mechanism_row.Row(i, x, text, documents, tokens) for i, x in enumerate(models)]
    measured = [row.measure(every, seed, run) for row in rows]
    result = {"models": np.array([row.name for row in rows])}
    result["mechanism"] = np.array([row.mechanism for row in rows])
    result["causal"] = np.array([row.model.config.causal for row in rows])
    result["T"] = np.array([row.T for row in rows])
    result["factors"] = np.array(FACTORS)
    result["asked"] = np.array([row.asked for row in rows])
    for reason in ("no_off", "no_length"):
        result[reason] = np.array([values.get(reason, "") for values in measured])
    for i, values in enumerate(measured):
        result |= {f"{name}_{i}": values[name] for name in OF_ONE if name in values}
    result |= _stack(measured, IN_ALL, [True] * len(rows), rows, "models")
    result |= _stack(measured, OFF, result["no_off"] == "", rows, "switched")
    result |= _stack(measured, LENGTH, result["no_length"] == "", rows, "lengthened")
    return result | _longest(result) | _pairs(result)


def _stack(measured, names, are_in, rows, label):
    """Arrays [n ...] of the rows that have these numbers, and the names of their models."""
    numbers = np.flatnonzero(are_in)
    if not len(numbers):
        return {}
    result = {label: np.array([rows[i].name for i in numbers])}
    return result | {name: np.array([measured[i][name] for i in numbers]) for name in names}


def _longest(r):
    """The change of the loss at the longest length, by itself."""
    if "by_length" not in r:
        return {}
    names = "by_length", "by_length_null", "by_length_interval"
    result = {name.replace("by_length", "longest"): r[name][:, -1] for name in names}
    return result | _kept(r["loss_frequencies"], r["loss_by_length"], result["longest_interval"])


def _kept(by_frequencies, losses, interval):
    """Share kept at the longest length of what a model predicts better than frequencies: [n].

    From the upper end of the interval of the change.
    """
    learned = by_frequencies - losses[:, FACTORS.index(1)]
    kept = 1 - interval[:, 1] / np.maximum(learned, verdict.NATS)
    # the null: word frequencies alone
    return {"learned": learned, "kept": kept, "kept_null": np.zeros(len(kept))}


def _pairs(r):
    """Of the rotary models: attention left without the fastest pairs, and without any others."""
    numbers = [i for i in range(len(r["models"])) if f"without_{i}" in r]
    if not numbers:
        return {}
    left = np.array([r[f"without_{i}"] for i in numbers])
    result = {"turned": r["models"][numbers], "without_fastest": left[:, 0]}
    return result | {"without_fastest_null": left[:, 1:].min(axis=1)}


def says(r):
    """What the numbers show, in plain words."""
    return " ".join(_says_of(r, i) for i in range(len(r["models"])))


def _says_of(r, i):
    """One model."""
    side = "the past" if r["causal"][i] else "both sides"
    return (
        f"{r['models'][i]} ({r['mechanism'][i]}; reads {side}): its sharpest head, "
        f"{r['sharp_head'][i]}, gives {_says_number(r, 'sharp', i, '.2f')} to "
        f"{r['sharp_offset'][i]:+d}; heads look {_says_number(r, 'reach', i, '.1f')} tokens far; "
        f"R² of a token's place {_says_number(r, 'r2', i, '.3f')}; {_says_losses(r, i)}"
    )


def _says_number(r, name, i, how):
    """'0.53 (0.50 to 0.56; uniform attention 0.06)'."""
    low, high = r[f"{name}_interval"][i]
    return (
        f"{r[name][i]:{how}} ({low:{how}} to {high:{how}}; {NULLS[name]} {_null(r, name, i, how)})"
    )


def _null(r, name, i, how):
    """What chance gives, without a minus before 0."""
    return f"{r[f'{name}_null'][i]:z{how.removeprefix('+')}}"


def _says_losses(r, i):
    """The losses of one model, or why there are none."""
    off, longest = (_number(r, i, reasons) for reasons in ("no_off", "no_length"))
    text = f"no places: {r['no_off'][i]}; "
    if off is not None:
        change = _says_number(r, "off", off, "+.2f")
        text = f"without places the loss changes by {change} nats; "
    if longest is None:
        return f"{text}longer inputs: {r['no_length'][i]}."
    change = _says_number(r, "longest", longest, "+.2f")
    return f"{text}at {LONGEST} {r['T'][i]} tokens by {change}, which needs {r['asked'][i]}."


def _number(r, i, reasons):
    """The row of model i in arrays of the models without a reason; None if it has one."""
    if r[reasons][i]:
        return None
    return int((r[reasons][:i] == "").sum())


def answer(r):
    """Yes if every model keeps at the longest length what it predicts better than frequencies do.

    Partly if some do. A model that predicts no better at its trained length, or no worse without
    positions, is undecided.
    """
    if "kept" not in r:
        findings = [verdict.beside(*pair, enough=np.inf) for pair in zip(r["r2"], r["r2_null"])]
        n_above = sum(finding.verdict in verdict.EFFECTS for finding in findings)
        measure = "models whose stream tells the places of tokens (none predicts tokens)"
        value = f"{n_above} of {len(findings)}"
        return Answer(verdict.every(*findings), measure, value, "by chance: 0")
    pairs = zip(np.where(_has_learned(r), r["kept"], np.nan), r["kept_null"])
    findings = [verdict.beside(*pair, enough=GOES_ON, most=np.inf, margin=HALF) for pair in pairs]
    n_on = sum(finding.verdict == "yes" for finding in findings)
    measure = (
        f"models that keep {GOES_ON:.0%} of what they predict better than word frequencies at "
        f"{LONGEST} the trained length"
    )
    low, high = r["longest"].min(), r["longest"].max()
    value = f"{n_on} of {len(findings)} ({low:+.2f} to {high:+.2f} nats)"
    chance = f"changes of {r['longest_null'].max():.2f} nats at most"
    return Answer(verdict.every(*findings), measure, value, chance)


def _has_learned(r):
    """Whether each model that was read in longer inputs predicts, and uses places for it: [n]."""
    has_learned = r["learned"] > verdict.NATS
    for i, name in enumerate(r["lengthened"]):
        if "switched" in r and name in r["switched"]:
            row = r["switched"].tolist().index(name)
            has_learned[i] &= r["off"][row] > r["off_null"][row] + verdict.NATS
    return has_learned


def plot(r):
    """A row of five charts for each model."""
    n = len(r["models"])
    figure = draw.figure(12.5, 1.45 * n + 1.3)
    grid = figure.subplots(n, 5, squeeze=False, sharex="col", width_ratios=(1, 1, 1.2, 1, 1.2))
    for i, row in enumerate(grid):
        _draw_bar(row[0], r, "sharp", i)
        _draw_bar(row[1], r, "reach", i)
        _draw_probe(row[2], r, i)
        _draw_off(row[3], r, i)
        _draw_lengths(row[4], r, i)
        row[0].set_title(f"{draw.literal(str(r['models'][i]))}: {_place(r, i)}")
        row[0].set_xlim(0, 1)
    _label(grid[-1], r)
    _same_scale(grid, r)
    figure.legend(handles=[*_describe_lines()], loc="outside lower center", ncols=3)
    return figure


def _place(r, i):
    """How a place enters, in words."""
    return " and ".join(WORDS[name] for name in str(r["mechanism"][i]).split(" + "))


def _draw_bar(axes, r, name, i, j=None):
    """A number with its interval, and a line for what chance gives."""
    j = i if j is None else j
    value, (low, high), null = r[name][j], r[f"{name}_interval"][j], r[f"{name}_null"][j]
    axes.barh(0, value, height=0.5, color=draw.BLUE, alpha=0.5)
    axes.plot([low, high], [0, 0], color=draw.BLUE, linewidth=3, solid_capstyle="butt")
    axes.plot([null, null], [-0.4, 0.4], color="black", linewidth=1.2)
    axes.set(ylim=(-0.7, 0.7), yticks=[])


def _draw_probe(axes, r, i):
    """R² by layer, and with shuffled places."""
    r2 = r[f"r2_by_layer_{i}"]
    layers = np.arange(len(r2))
    low, high = r[f"r2_by_layer_interval_{i}"].T
    axes.fill_between(layers, low, high, color=draw.BLUE, alpha=0.25, linewidth=0)
    axes.plot(layers, r2, "o-", color=draw.BLUE, markersize=3)
    axes.plot(layers, r[f"r2_by_layer_null_{i}"], color="black", linewidth=1.2)
    axes.set(ylim=(-0.15, 1.05), yticks=[0, 1])


def _draw_off(axes, r, i):
    """The change of the loss without places, or why there is none."""
    j = _number(r, i, "no_off")
    if j is None:
        _draw_reason(axes, r["no_off"][i])
    else:
        _draw_bar(axes, r, "off", i, j)


def _draw_lengths(axes, r, i):
    """The change of the loss against the length, with its interval and what chance gives."""
    j = _number(r, i, "no_length")
    if j is None:
        _draw_reason(axes, r["no_length"][i])
        return
    x = np.log2(FACTORS)
    low, high = r["by_length_interval"][j].T
    null = r["by_length_null"][j]
    axes.fill_between(x, low, high, color=draw.BLUE, alpha=0.25, linewidth=0)
    axes.plot(x, r["by_length"][j], "o-", color=draw.BLUE, markersize=3)
    axes.plot(x, null, color="black", linewidth=1.2)


def _draw_reason(axes, reason):
    """Why there is no chart."""
    words = draw.literal(textwrap.fill(str(reason), 24))
    style = {"ha": "center", "va": "center", "fontsize": 10, "color": draw.GREY}
    axes.text(0.5, 0.5, words, transform=axes.transAxes, **style)
    axes.set_yticks([])


def _same_scale(grid, r):
    """One scale for all changes of the loss against the length."""
    if "by_length" not in r:
        return
    low, high = r["by_length_interval"].min(), r["by_length_interval"].max()
    room = 0.1 * (high - low)
    for i, row in enumerate(grid):
        if not r["no_length"][i]:
            row[4].set_ylim(low - room, high + room)


def _label(axes, r):
    """The titles of the columns, under the last row."""
    axes[0].set_xlabel("attention to one neighbour\n(sharpest head)")
    axes[1].set_xlabel("how far heads look (tokens)")
    axes[2].set_xlabel("layer (0: the embeddings)\nR² of a token's place")
    axes[3].set_xlabel("loss without places\n(change in nats)")
    axes[4].set_xlabel("length of inputs (1: trained)\nchange of the loss in nats")
    most = max(len(r[f"r2_by_layer_{i}"]) for i in range(len(r["models"])))
    axes[2].set_xticks(np.arange(most)[:: -(-most // 7)])
    axes[4].set_xticks(np.log2(FACTORS), ["½", "1", "2", "4"])


def _describe_lines():
    """What bars, lines and bands are."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    yield Patch(color=draw.BLUE, alpha=0.5, linewidth=0, label="this model")
    yield Line2D([], [], color=draw.BLUE, linewidth=4, alpha=0.6, label="interval of 95 %")
    yield Line2D([], [], color="black", label="what chance gives")


register(
    mechanisms,
    draw=plot,
    says=says,
    answer=answer,
    look=(
        "One row a model. A sharp head's bar is near 1, far right of the black line, which is "
        "uniform attention. A short bar of the reach is a model that looks near. R² above black in "
        "a row without any mechanism is the causal mask at work. A long bar of the loss without "
        "places says that the model needs them. The last chart falls or is flat where a mechanism "
        "goes on past the trained length, and rises where it does not. A learned table has no rows "
        "there: its own are read again from the start."
    ),
    published=(
        "ALiBi and T5's buckets go on past the trained length, sinusoids and rotary positions do "
        "not (Press et al. 2022). Causal models without positions know them from the mask (Haviv "
        "et al. 2022) and go on to longer inputs (Kazemnejad et al. 2023). The fastest pairs of "
        "rotary models make heads that look at one neighbour (Barbero et al. 2024). Rotary "
        "positions make training converge faster (Su et al. 2021; the paper gives a reason): that "
        "is not measured here, where models are compared at the end of their training alone."
    ),
    numbers={
        "sharp": (
            "attention of the sharpest head to one offset, not 0, on documents that did not choose "
            "it"
        ),
        "sharp_null": "the most that uniform attention gives to one offset",
        "reach": "mean distance, in tokens, of what heads look at",
        "reach_null": "mean distance that uniform attention looks",
        "r2": "R² of a token's place from the residual stream, in the best layer",
        "r2_null": "R² when the places of each document are shuffled",
        "off": "change of the loss without places, in nats a token",
        "off_null": "99 % quantile of the change if each document's had a random sign",
        "longest": f"change of the loss at {LONGEST} the trained length, in nats a token",
        "longest_null": "99 % quantile of the change if each document's had a random sign",
        "without_fastest": (
            "attention of the sharpest head of a rotary model to its offset if the fastest quarter "
            "of the pairs is not turned"
        ),
        "without_fastest_null": "the least of it without another quarter",
    },
    labels={
        "sharp": "models",
        "reach": "models",
        "r2": "models",
        "off": "switched",
        "longest": "lengthened",
        "without_fastest": "turned",
    },
    least_documents=position_probe.LEAST,
)
