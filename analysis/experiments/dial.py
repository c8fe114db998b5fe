"""If the positions of keys are shifted, does attention follow?

The keys of one layer read their input with positions moved by s tokens, and all else stays as it
was: a head that finds offset o by positions then attends to o - s, one that finds it by words stays
at o. Where no table is read, the keys are turned as s tokens further on (rotary), or the bias of a
score is that of a distance s tokens longer (buckets, ALiBi). N documents, T tokens, n ordinary
ones, l layers, S shifts, H heads, R offsets, K shifts of the loss.
"""

from functools import partial
from typing import Annotated, Literal

import numpy as np

from ..contract import Asks, Each, Without, options, register, verdict
from ..drawing import Names, Part, Rows, When, draw, few, figures, row
from ..maths import profiles
from ..measures import dial_arrays, heads, position_moves
from ..running.stream import UNSAVED

MOST = 0.9  # of a layer's cells exactly as expected: the layer follows; one exception in ten
ABREAST = 3  # layers of a figure
HUES = draw.BLUE, draw.VERMILION, draw.GREEN, draw.PURPLE, draw.ORANGE, draw.SKY  # of heads
WEIGHTS = "weight", "weight_dealt"  # attention to the expected offset, and its null
DIRECTION, N_ORDERS = profiles.DIRECTION, position_moves.N_ORDERS


def dial(
    model,
    run=UNSAVED,
    *,
    move: Literal["keys", "queries", "both"] = "keys",
    layer: Annotated[int, options.AtLeast(-1)] = -1,
    reach: Annotated[int, options.Within(1, 8)] = 4,
    text: options.Text = "sample",
    documents: options.Documents = 16,
    tokens: options.Tokens = 0,
    losses: Annotated[int, options.AtLeast(0)] = 4,
    seed: options.Seed = 0,
):
    """Where heads with a direction look, and the loss, when their layer's positions are moved.

    move: what reads moved positions; both is the control, in which nothing may move
    layer: the layer that reads them (-1: all, one after another)
    reach: largest shift on each side, in tokens
    documents: documents to read (0: as many as the text holds, at most 100); a partial checkpoint
    reads positions alone
    losses: documents whose loss is measured
    """
    shifts = np.arange(-reach, reach + 1)
    asked = dial_arrays.Asked(move, layer, text, documents, tokens, losses, seed)
    return dial_arrays.measure(model, run, asked, shifts) | {"move": move}


EXACT = Each("layer_n_exact", out_of="layer_n_cells", enough=MOST, where="layer_n_cells")
MOVED = {"keys": "keys", "queries": "queries", "both": "queries and keys together"}
EXPECTED = {"keys": "o - s", "queries": "o + s", "both": "o still"}


def counts(r):
    """Exact cells of the layers that follow, then of the others."""
    findings = EXACT.by_entry(Names(r))
    follows = [i for i, finding in findings.items() if finding.verdict in verdict.EFFECTS]
    others = [i for i in findings if i not in follows]
    return "; ".join(
        f"{r['layer_n_exact'][group].sum()} of {r['layer_n_cells'][group].sum()} in "
        f"{_layer_list(r['layers'][group])}"
        for group in (follows, others)
        if group
    )


def _layer_list(numbers):
    """'L0-L2, L5'."""
    runs = np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1)
    texts = [f"L{run[0]}-L{run[-1]}" if len(run) > 1 else f"L{run[0]}" for run in runs if len(run)]
    return ", ".join(texts)


def _layers(r):
    """Numbers of the layers in which heads have a direction."""
    return [i for i, cells in enumerate(r["layer_n_cells"]) if cells]


def _by_layer(r):
    """Attended offset against the shift, up to ABREAST layers in a figure."""
    with_heads = _layers(r)
    blocks = [with_heads[i : i + ABREAST] for i in range(0, len(with_heads), ABREAST)]
    most = min(r["directed"].sum(axis=1).max(initial=0), len(HUES) + 1)
    deep = 3.6 + 0.25 * -(-most // 2)  # with the legends below the panels
    return [Part(partial(_draw_layers, layers=block), deep) for block in blocks or [[]]]


def _draw_layers(figure, r, layers):
    """A line for each head of some layers."""
    if not layers:
        draw.nothing(figure.subplots(), "no head has a direction")
        return
    panels = figure.subplots(1, len(layers), squeeze=False, sharey=True)[0]
    for axes, i in zip(panels, layers):
        _draw_lines(axes, r, i)
    panels[0].set_ylabel("offset with most attention\n(tokens; heads a little apart)")
    panels[0].locator_params(axis="y", integer=True)


def _draw_lines(axes, r, i):
    """One layer: lines of its heads, a little apart, and where they ought to lie."""
    shifts = r["shifts"]
    directed = np.flatnonzero(r["directed"][i])
    for number, (head, style) in enumerate(zip(directed, _styles(r, i, directed))):
        shown = r["told"][i, :, head] | (shifts == 0)
        x = shifts[shown]
        axes.plot(x, r["expected"][i, shown, head], color=draw.GREY, linewidth=3, zorder=0)
        apart = min(0.12, 0.6 / len(directed)) * (number - (len(directed) - 1) / 2)
        attended = r["attended"][i, shown, head] + apart
        axes.plot(x, attended, "o-", **style)
    exact, cells = r["layer_n_exact"][i], r["layer_n_cells"][i]
    slope = f"{r['layer_slope'][i]:+.2f}"
    axes.set_title(f"layer {r['layers'][i]}: {exact} of {cells} exact, slope {slope}")
    moved = {"both": "both"}.get(str(r["move"]), f"the {r['move']}")
    axes.set_xlabel(f"s, shift of {moved} (tokens)")
    axes.set_xticks(shifts)
    below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.17), "ncols": 2}
    axes.legend(**below, handlelength=1.2, columnspacing=0.8, borderpad=0)


def _styles(r, i, directed):
    """The line of each head, the bolder the more attention it gives to its offset without a shift.

    The boldest have a colour and a label, 'L0H3 -1: 0.97', with that attention, mean over the
    documents; the others are grey.
    """
    offsets, wide = r["offset"][i, directed], r["attention"].shape[-1] // 2
    attention = r["attention"][i, len(r["shifts"]) // 2, directed, offsets + wide]
    hues = dict(zip(np.argsort(-attention, kind="stable").tolist(), HUES))
    others = iter(["the others"])
    for number, (head, offset, share) in enumerate(zip(directed, offsets, attention)):
        style = {"linewidth": 0.7 + 1.7 * share, "markersize": 2.5 + 2.5 * share}
        if number in hues:
            label = f"{heads.name(r['layers'][i], head)} {draw.offset(offset)}: {share:.2f}"
            yield style | {"color": hues[number], "label": label}
        else:
            yield style | {"color": draw.GREY, "label": next(others, "_")}


def _in_order(n):
    """(number, colour, label of another) of n curves in an order, those that are grey first."""
    others = np.delete(np.arange(n), few(n)).tolist()
    grey = [(i, draw.GREY, "_" if number else "the others") for number, i in enumerate(others)]
    return [*grey, *((i, draw.shade(i, n), None) for i in few(n).tolist())]


def _draw_weights(axes, r):
    """Attention at the expected offset, mean over the heads of each layer, with the null."""
    rows = _layers(r)
    if not rows:
        draw.nothing(axes, "no head has a direction")
        return
    shifts = r["shifts"]
    for number, color, other in _in_order(len(rows)):
        i = rows[number]
        cells = r["told"][i]
        shown = cells.any(axis=1)
        x, n = shifts[shown], cells.sum(axis=1)[shown]
        of_layer, null = ((r[name][i] * cells).sum(axis=1)[shown] / n for name in WEIGHTS)
        style = {"color": color, "markersize": 4, "label": other or f"layer {r['layers'][i]}"}
        axes.plot(x, of_layer, "o-", **style)
        if other is None:
            axes.plot(x, null, ":", color=color)
    axes.plot([], [], ":", color=draw.GREY, label="null: own move for each token")
    axes.set(ylim=(0, 1.02), xlabel="shift (tokens)", ylabel="attention to the expected offset")
    axes.set_xticks(shifts)
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


def _draw_loss(axes, r):
    """Rise of the loss in every layer, with keys moved and with both moved."""
    if "loss" not in r:
        axes.set_visible(False)
        return
    for i, color, other in _in_order(len(r["layers"])):
        label = other or f"keys of layer {r['layers'][i]}"
        axes.plot(r["loss_shifts"], r["rise_keys"][i], "o-", markersize=4, color=color, label=label)
        axes.plot(r["loss_shifts"], r["rise_both"][i], ":", color=color)
    axes.plot([], [], ":", color=draw.GREY, label="control: both moved")
    axes.set(xlabel="shift (tokens)", ylabel=f"rise of the loss\n(nats, from {r['loss']:.2f})")
    axes.set_xticks(r["loss_shifts"])
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


BY_STRENGTH = Rows(
    "{strengths}: {strength_n_exact} of {strength_n_cells} exact (shuffled: at most "
    "{strength_n_exact_null:.0f})",
    where="strength_n_cells",
)

register(
    dial,
    draw=figures(_by_layer, row(_draw_weights, _draw_loss, height=3.6)),
    look="Each line is a head with a direction: it shows the most attended offset when the "
    "positions of its layer's keys are moved. A head on its grey band, of slope -1, follows the "
    "positions; a level line is a head that finds its offset by words, its own or words copied "
    "by earlier layers, and does not depend on positions. A further figure has the attention to "
    "the expected offset (dotted: every key moved by a different amount) and the rise of the "
    "loss (dotted: queries and keys moved together, which should change nothing). In layer 0 "
    "the moved positions are exact, through its norms; in deeper layers they are a mean over "
    "other documents. If positions enter the scores, by rotated keys or a bias, every layer is "
    "exact. Heads whose kernel (`kernel`) peaks where they look, possibly at their own token, "
    "are reported separately: they must follow.",
    published="The blog post aims to show that position components contribute to inference; the "
    "paper shows that waves and attention agree, not that one causes the other.",
    figure="raised in the blog post",
    numbers="""
        n_exact: heads with a direction, times shifts, that attend exactly where expected
            null: 99% quantile of the exact cells with attended offsets shuffled over the shifts
        slope: tokens that the attended offset moves for each token of the shift, mean of heads
            null: 99% quantile of the absolute mean slope with offsets shuffled over the shifts
        layer_slope by layer_names: slope in each layer, mean over its heads with a
            direction; 0 without any
            null: absolute slope in each layer with offsets shuffled over the shifts
        layer_n_exact by layer_names: exact cells in each layer
            null: exact cells in each layer with offsets shuffled over the shifts
        fact layer_n_cells by layer_names: heads with a direction, times shifts, in each layer
        n_orders_follow: random orders of positions, of {N_ORDERS}, in which at least half of the
            cells are exact although the keys are in that order
            no null: it is what chance gives
        n_exact_named: exact cells of the heads whose mean query and key, rotated or biased, fit
            best where they look, by {verdict.MARGIN} nats or more
            null: exact cells of the heads that the kernel names, offsets shuffled over the shifts
        slope_named: mean slope of the heads whose kernel peaks where they look
            null: absolute mean slope of such heads with offsets shuffled over the shifts
        fact n_cells_named: cells of the heads whose kernel peaks where they look
        fact n_shared: heads left out because their offset has a bucket with other distances
        rise: largest rise of the loss with the keys of one layer moved, in nats per token
            null: rise of the loss with queries and keys of that layer moved together
        fact loss: mean loss in nats per token without a shift (masked models: one in 8 hidden)
        fact n_cells: heads with a direction, times shifts other than 0
        fact n_directed: heads with a direction: {DIRECTION}
        fact n_by_strength by strengths: heads with a direction, by the attention to
            their offset without a shift
        strength_n_exact by strengths: exact cells, by the attention to the offset without a shift
            null: exact cells with attended offsets shuffled over the shifts, 99% quantile
        fact strength_n_cells by strengths: cells, by the attention to the offset without a shift
        fact documents: documents measured; 0: positions alone
    """,
    answer=Asks(
        "(head, shift) pairs, of heads with a direction, that attend exactly where the shifted "
        "positions predict",
        value="{counts}",
        chance="{n_exact_null:.0f}; random orders: {n_orders_follow} of {n_orders}",
        rule=EXACT,
        without=Without("n_cells", "0 of 0: no head has a direction", "0"),
    ),
    says=[
        When(
            "n_cells",
            "With the positions of the {MOVED[move]} of one layer moved by s tokens, attention "
            "goes exactly where expected in {n_exact} of {n_cells} cells, a head and a shift each "
            "(offsets shuffled over the shifts: in at most {n_exact_null:.0f}). ",
        ),
        "Heads that attended to offset o, counted at each shift: ",
        Rows(
            "layer {layers}: {layer_n_exact} of {layer_n_cells} exactly at {EXPECTED[move]}, "
            "slope {layer_slope:+.2f}, attention there {layer_mean_weight:.2f} (each token moved "
            "by a different amount: {layer_mean_weight_null:.2f})",
            where="layer_n_cells",
            none="no head has a direction",
        ),
        ". With attended offsets shuffled over the shifts slopes are within {slope_null:.2f}; with "
        "keys in {n_orders} random orders of "
        "positions, at least half of the cells are exact in {n_orders_follow} of them, at most "
        "{most_in_orders} in any.",
        When(
            "n_cells_named",
            " Of the heads whose kernel peaks where they look, {n_exact_named} of {n_cells_named} "
            "cells are exact (shuffled: at most {n_exact_named_null:.0f}), slope "
            "{slope_named:+.2f}.",
        ),
        When(
            "n_shared",
            " {n_shared} heads are left out: their offset shares a bucket with others, so that a "
            "move would not show.",
        ),
        When(
            "strength_n_cells",
            [" By the attention to the offset without a shift: ", BY_STRENGTH, "."],
        ),
        When(
            "documents",
            "",
            " The input was positions alone, without words, and each layer was run as if earlier "
            "layers wrote nothing; heads that attend to their own token by position count, too.",
        ),
        When(
            "loss",
            " The loss, {loss:.2f} nats, rises most with the keys of layer {rise_layer} moved by "
            "{rise_shift}: by {rise:+.2f}; with its queries and keys moved together, by "
            "{rise_null:+.2f}.",
        ),
    ],
    per_head=("slopes", "offset"),
    least_documents=2,
    weights_only=True,
    shares_passes=True,
)
