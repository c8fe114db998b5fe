"""Does a position mechanism generalize beyond the training length?

Several models side by side, one row each: how sharply a head looks at one neighbour, how far heads
look, how much of a token's position the stream holds, what the loss is without positions, and in
inputs of up to four times the trained length; whether heads follow moved keys, and depend on one
band of waves. What makes no sense in a model is left out, and said. n models, L layers, K lengths.
"""

import re
from functools import partial
from typing import Annotated

import numpy as np

from ..contract import Asks, Each, Without, options, register, verdict
from ..drawing import Names, Part, Rows, When, bar_sample, draw, figures, line_sample
from ..machine.language import filled, label, translated
from ..measures import other_models, position_probe
from ..running.stream import UNSAVED
from . import _mechanisms_row

FACTORS = _mechanisms_row.FACTORS
LONGEST = f"{FACTORS[-1]:g} times"
IN_ALL = ("sharp", "sharp_null", "sharp_interval", "sharp_head", "sharp_offset")
IN_ALL += ("reach", "reach_null", "reach_interval", "r2", "r2_null", "r2_interval")
OF_ONE = "r2_by_layer", "r2_by_layer_null", "r2_by_layer_interval", "without"
OFF = "loss", "loss_null", "off", "off_null", "off_interval"
MOVE = "follow", "follow_null", "follow_cells", *_mechanisms_row.OF_DIAL
NAMED = "named", "named_null", "named_cells", "slope_named", "slope_named_null"
NOTCH = "lost", "lost_null", "need"
REASONS = "no_off", "no_length", "no_move", "no_notch"
LENGTH = "loss_by_length", "by_length", "by_length_null", "by_length_interval", "loss_frequencies"
# of what a model predicts beyond word frequencies, kept at the longest length: yes, and partly
GOES_ON, HALF = 0.95, 0.5
KEEPS = Each(
    "kept_of_learned",
    null="kept_null",
    interval="kept_ends",
    enough=GOES_ON,
    most=np.inf,
    margin=HALF,
)
PLACES = Each("r2", enough=np.inf)
WORDS = {  # how a place enters
    "learned": "a learned table",
    "sinusoidal": "a table of sinusoids",
    "rotary": "turned queries and keys",
    "buckets": "a bias by bucket",
    "alibi": "ALiBi",
    "disentangled": "terms of content and position",
    "none": "nothing",
}


def mechanisms(
    model,
    run=UNSAVED,
    *,
    others: str = "",
    text: options.Text = "sample",
    documents: Annotated[int, options.AtLeast(position_probe.LEAST)] = 60,
    tokens: options.Tokens = 0,
    every: options.Count = 16,
    seed: options.Seed = 0,
):
    """Sharpness, reach, positions in the stream, the loss without positions and in longer inputs.

    others: models to put beside it, joined by commas: names, folders; zoo, bundled: all of these
    documents: documents of the trained length to read; of longer ones a quarter as many
    tokens: length of each document, which counts as the trained one (0: the model's longest input)
    every: of a masked model's tokens one in so many is hidden, all of them at once
    """
    models = [model, *other_models.others(others, model)]
    rows = [_mechanisms_row.Row(i, x, text, documents, tokens) for i, x in enumerate(models)]
    measured = [row.measure(every, seed, run) for row in rows]
    result = {"models": np.array([row.name for row in rows])}
    result["mechanism"] = np.array([row.mechanism for row in rows])
    result["causal"] = np.array([row.model.config.causal for row in rows])
    result["T"] = np.array([row.T for row in rows])
    result["interval_documents"] = min(position_probe.parts(row.documents)[-1] for row in rows)
    result["factors"] = np.array(FACTORS)
    result["asked"] = np.array([row.asked for row in rows])
    for reason in REASONS:
        result[reason] = np.array([values.get(reason, "") for values in measured])
    for i, values in enumerate(measured):
        result |= {f"{name}_{i}": values[name] for name in OF_ONE if name in values}
    result |= _stack(measured, IN_ALL, [True] * len(rows), rows, "models")
    result |= _stack(measured, OFF, result["no_off"] == "", rows, "switched")
    result |= _stack(measured, LENGTH, result["no_length"] == "", rows, "lengthened")
    result |= _stack(measured, MOVE, result["no_move"] == "", rows, "moved")
    by_kernel = np.array([values.get("by_kernel", False) for values in measured])
    result |= _stack(measured, NAMED, by_kernel, rows, "by_kernel")
    result |= _stack(measured, NOTCH, result["no_notch"] == "", rows, "notched")
    return result | _longest(result) | _pairs(result)


def _stack(measured, names, are_in, rows, label):
    """Arrays [n ...] of the rows that have these numbers, and the names of their models."""
    numbers = np.flatnonzero(are_in)
    if not len(numbers):
        return {}
    result = {label: np.array([rows[i].name for i in numbers])}
    return result | {name: np.array([measured[i][name] for i in numbers]) for name in names}


def _longest(r):
    """The change of the loss at the longest length, by itself; what is kept at its upper end.

    It is a share of what a model predicts better than the frequencies do.
    """
    if "by_length" not in r:
        return {}
    names = "by_length", "by_length_null", "by_length_interval"
    result = {name.replace("by_length", "longest"): r[name][:, -1] for name in names}
    learned = r["loss_frequencies"] - r["loss_by_length"][:, FACTORS.index(1)]
    result["learned"] = learned
    kept = kept_ends(result)[:, 0]
    # the null: word frequencies alone
    return result | {"kept": kept, "kept_null": np.zeros(len(kept))}


def kept_ends(r):
    """The least and the most that is kept of it: [n 2]."""
    learned = np.maximum(r["learned"], verdict.NATS)[:, None]
    return 1 - r["longest_interval"][:, ::-1] / learned


def _pairs(r):
    """Of the rotary models: attention left without the fastest pairs, and without any others."""
    numbers = [i for i in range(len(r["models"])) if f"without_{i}" in r]
    if not numbers:
        return {}
    left = np.array([r[f"without_{i}"] for i in numbers])
    result = {"turned": r["models"][numbers], "without_fastest": left[:, 0]}
    return result | {"without_fastest_null": left[:, 1:].min(axis=1)}


def losses(r):
    """What the losses of each model are, or why there are none: texts [n]."""
    return [_losses_of(r, i) for i in range(len(r["models"]))]


LOSSES = {  # of places off, and of longer inputs, without a reason and with one
    ("off", True): "no places: {reason}; ",
    ("off", False): "without positions the loss changes by {change} nats; ",
    ("longest", True): "longer inputs: {reason}.",
    ("longest", False): "at {LONGEST} {T} tokens by {change}, which needs {asked}.",
}


def _losses_of(r, i):
    values = {"LONGEST": label(LONGEST), "T": r["T"][i], "asked": label(str(r["asked"][i]))}
    text = ""
    for name, reasons in ("off", "no_off"), ("longest", "no_length"):
        row = _number(r, i, reasons)
        values["reason"] = label(str(r[reasons][i]))
        values["change"] = "" if row is None else _change(r, name, row)
        text += filled(LOSSES[name, row is None], **values)
    return text


def moves(r):
    """What the heads of each model do if keys are moved, or a band is left out: texts [n]."""
    texts = []
    for i in range(len(r["models"])):
        moved = _sentence(r, i, "no_move", MOVES)
        notched = _sentence(r, i, "no_notch", LOST)
        texts.append("; ".join(filter(None, (moved, _named_of(r, i), notched))) + ".")
    return texts


MOVES = (
    "Keys moved: slope {slope:+.2f} (offsets shuffled: {slope_null:.2f}), {follow:.0%} of "
    "{follow_cells} cells exact (up to {follow_null:.0%}; half or more in {n_orders_follow} of "
    "{n_orders} random orders of positions)"
)
BY_KERNEL = (
    "where the kernel peaks at a head's offset: slope {slope_named:+.2f} ({slope_named_null:.2f}), "
    "{named:.0%} of {named_cells} cells exact (up to {named_null:.0%})"
)
WITHOUT = {"no_move": "Keys moved: {reason}", "no_notch": "one band out: {reason}"}
LOST = "one band out: {lost:.0%} of {need} heads lose their direction ({lost_null:.0%})"
CHANGE = "{change:+.2f} ({low:+.2f} to {high:+.2f}; signs at random up to {null:z.2f})"


def _filled_at(template, r, row):
    """A template filled from the arrays that it names, at this row."""
    return filled(template, **{name: r[name][row] for name in re.findall(r"{(\w+)", template)})


def _sentence(r, i, reasons, template):
    """The template of one model, or without its numbers why there are none."""
    row = _number(r, i, reasons)
    if row is None:
        return filled(WITHOUT[reasons], reason=label(str(r[reasons][i])))
    return _filled_at(template, r, row)


def _named_of(r, i):
    """What heads do whose kernel peaks where they look; "" where there are none."""
    name = r["models"][i]
    if "by_kernel" not in r or name not in r["by_kernel"]:
        return ""
    return _filled_at(BY_KERNEL, r, r["by_kernel"].tolist().index(name))


def _change(r, name, i):
    """'+0.53 (+0.50 to +0.56; signs at random up to 0.06)'."""
    low, high = r[f"{name}_interval"][i]
    null = r[f"{name}_null"][i]
    return filled(CHANGE, change=r[name][i], low=low, high=high, null=null)


def _number(r, i, reasons):
    """The row of model i in arrays of the models without a reason; None if it has one."""
    if r[reasons][i]:
        return None
    return int((r[reasons][:i] == "").sum())


def kept_of_learned(r):
    """What each model that was read in longer inputs keeps: [n].

    Nothing can be asked of one, nan, that predicts no better than frequencies at its trained
    length, or no worse without positions.
    """
    has_learned = r["learned"] > verdict.NATS
    for i, name in enumerate(r["lengthened"]):
        if "switched" in r and name in r["switched"]:
            row = r["switched"].tolist().index(name)
            has_learned[i] &= r["off"][row] > r["off_null"][row] + verdict.NATS
    return np.where(has_learned, r["kept"], np.nan)


def n_on(r):
    """How many models go on."""
    findings = KEEPS.by_entry(Names(r, globals())).values()
    return sum(finding.verdict == "yes" for finding in findings)


def n_above(r):
    """How many models have streams that tell positions."""
    findings = PLACES.by_entry(Names(r)).values()
    return sum(finding.verdict in verdict.EFFECTS for finding in findings)


def side(r):
    """What each model reads."""
    return np.where(r["causal"], "the past", "both sides")


def _draw_first(figure, r):
    """A row for each model: what needs no change of it."""
    grid = figure.subplots(len(r["models"]), 3, squeeze=False, sharex="col")
    for i, row in enumerate(grid):
        _draw_bar(row[0], r, i, "sharp")
        _draw_bar(row[1], r, i, "reach")
        _draw_curve(row[2], r, i, "r2_by_layer", np.arange(len(r[f"r2_by_layer_{i}"])))
        row[2].set(ylim=(-0.15, 1.05), yticks=[0, 1], ylabel="R²")
        row[0].set(xlim=(0, 1), title=_titled(r, i))
    most = max(len(r[f"r2_by_layer_{i}"]) for i in range(len(r["models"])))
    grid[-1, 2].set_xticks(np.arange(most)[:: -(-most // 7)])
    _label(figure, grid[-1], AXES[:3])


def _draw_changes(figure, r):
    """A row for each model: what happens when it, or its input, is changed."""
    grid = figure.subplots(len(r["models"]), 3, squeeze=False, sharex="col")
    for i, row in enumerate(grid):
        for axes, (reasons, paint) in zip(row, LAST.items()):
            _draw_if_measured(axes, r, i, reasons, paint)
        row[0].set_title(_titled(r, i))
        row[1].set_ylabel("loss (nats)")
    if "follow" in r:
        grid[0, -1].set_xlim(0, 1)
    grid[-1, 1].set_xticks(np.log2(FACTORS), ["½", "1", "2", "4"])
    _label(figure, grid[-1], AXES[3:])
    _same_scale(grid, r)


def _titled(r, i):
    """The name of a model, and how its places enter."""
    kinds = str(r["mechanism"][i]).split(" + ")
    place = translated(" and ").join(label(WORDS[name]) for name in kinds)
    return f"{draw.literal(str(r['models'][i]))}: {place}"


def _height(r):
    """Inches of a figure with a row for each model."""
    return 1.45 * len(r["models"]) + 1.3


def _draw_bar(axes, r, i, name):
    """A number with its interval, if it has one, and a line for what chance gives."""
    null = r[f"{name}_null"][i]
    axes.barh(0, r[name][i], height=0.5, color=draw.BLUE, alpha=0.5)
    if f"{name}_interval" in r:
        line = {"color": draw.BLUE, "linewidth": 3, "solid_capstyle": "butt"}
        axes.plot(r[f"{name}_interval"][i], [0, 0], **line)
    axes.plot([null, null], [-0.4, 0.4], color="black", linewidth=1.2)
    axes.set(ylim=(-0.7, 0.7), yticks=[])


def _draw_curve(axes, r, i, name, x):
    """A number over x with its interval, and what chance gives, of row i or of model i."""
    names = (f"{name}{part}" for part in ("", "_interval", "_null"))
    values, ends, null = (r[name][i] if name in r else r[f"{name}_{i}"] for name in names)
    axes.fill_between(x, *ends.T, color=draw.BLUE, alpha=0.25, linewidth=0)
    axes.plot(x, values, "o-", color=draw.BLUE, markersize=3)
    axes.plot(x, null, color="black", linewidth=1.2)


LAST = {  # the charts that not every model has, by why it has none: paint(axes, r, row)
    "no_off": partial(_draw_bar, name="off"),
    "no_length": partial(_draw_curve, name="by_length", x=np.log2(FACTORS)),
    "no_move": partial(_draw_bar, name="follow"),
}


def _draw_if_measured(axes, r, i, reasons, paint):
    """A chart of one model, or why there is none."""
    row = _number(r, i, reasons)
    if row is not None:
        paint(axes, r, row)
        return
    words = draw.literal(draw.wrapped(str(r[reasons][i]), 24))
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
            row[1].set_ylim(low - room, high + room)


AXES = (  # of the columns
    "attention to one neighbour (sharpest head)",
    "how far heads look (tokens)",
    "a token's position, by layer (0: the embeddings)",
    "loss without positions (change in nats)",
    "length of inputs (1: trained)",
    "heads that follow moved keys (share)",
)


def _label(figure, axes, names):
    """Names of the columns, under the last row, and what bars, lines and bands are."""
    for each, name in zip(axes, names):
        each.set_xlabel(name)
    samples = [bar_sample("this model", color=draw.BLUE, alpha=0.5)]
    samples += [line_sample("interval of 95%", color=draw.BLUE, linewidth=4, alpha=0.6)]
    samples += [line_sample("what chance gives", color="black")]
    figure.legend(handles=samples, loc="outside lower center", ncols=3)


register(
    mechanisms,
    draw=figures(Part(_draw_first, height=_height), Part(_draw_changes, height=_height)),
    look="One row per model. The bar of a sharp head is near 1, far to the right of the "
    "upright line, which is uniform attention. A short bar of the reach means that the model "
    "looks at near tokens. R² above its line in a row without any mechanism is due to the causal "
    "mask. A long bar of the loss without positions means that the model needs them. The "
    "chart of the length falls or is flat if a mechanism generalizes beyond the training "
    "length, and rises if it does not. A learned table has no rows there: it is repeated from "
    "its start.",
    published="ALiBi and T5's buckets generalize beyond the training length, sinusoids and rotary "
    "positions do not (Press et al. 2022). Causal models without positions infer them from the "
    "mask (Haviv et al. 2022) and generalize to longer inputs (Kazemnejad et al. 2023). The "
    "fastest pairs of rotary models make heads that look at one neighbour (Barbero et al. 2024). "
    "Rotary positions make training converge faster (Su et al. 2021; the paper gives a reason): "
    "models are compared here at the end of training; `minitx forming` follows how they get there.",
    numbers="""
        sharp by models: attention of the sharpest head to one offset, not 0, on documents that
            were not used to choose it
            null: the largest uniform attention at any offset
        reach by models: mean distance, in tokens, at which heads look
            null: mean distance of uniform attention
        r2 by models: R² of a token's position from the residual stream, in the best layer
            null: R² when the positions of each document are shuffled
        [off|longest] by [switched|lengthened]: change of the loss [without positions|at {LONGEST}
            the training length], in nats per token
            null: 99% quantile of the change if each document's had a random sign
        follow by moved: share of heads with a direction, times shifts of the keys of their layer,
            that attend exactly where the moved keys predict (`dial`)
            null: 99% quantile of that share with attended offsets shuffled over the shifts
        slope by moved: tokens that the attended offset moves for each token that keys are moved
            null: 99% quantile of the absolute slope with offsets shuffled over the shifts
        lost by notched: share of the heads with a direction from positions that lose it without one
            band of their waves, or one octave of rotary pairs, but not when as much energy is
            removed evenly from all frequencies (`notch`)
            null: share of those for which the reverse is true
        without_fastest by turned: attention of the sharpest head of a rotary model to its offset
            if the fastest quarter of the pairs is not rotated
            null: its minimum without another quarter
    """,
    answer=Asks(
        "models that keep {GOES_ON:.0%} of their gain over word frequencies at {LONGEST} the "
        "training length; change of the loss",
        value=[
            "{n_on} of {kept.size}, trained once; {longest.min:+.2f} ",
            When("kept.size == 1", "nats", "to {longest.max:+.2f} nats"),
        ],
        chance="changes of the loss by {longest_null.max:.2f} nats at most",
        rule=KEEPS,
        without=Without(
            "loss_by_length",
            Asks(
                "models whose stream encodes the positions of tokens (none predicts tokens)",
                value="{n_above} of {r2.size}",
                chance="by chance: 0",
                rule=PLACES,
            ),
        ),
    ),
    says=Rows(
        "{models} ({mechanism}; reads {side}): its sharpest head, {sharp_head}, gives {sharp:.2f} "
        "({sharp_interval:to .2f}; uniform attention {sharp_null:z.2f}) to {sharp_offset:+d}; "
        "heads look {reach:.1f} ({reach_interval:to .1f}; uniform attention {reach_null:z.1f}) "
        "tokens far; R² of a token's position {r2:.3f} ({r2_interval:to .3f}; positions shuffled "
        "{r2_null:z.3f}); {losses} {moves}",
        join=" ",
    ),
    least_documents=position_probe.LEAST,
    shares_passes=True,
)
