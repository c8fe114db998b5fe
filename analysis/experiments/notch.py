"""Does a head's direction depend on one band of the position waves?

One band of frequencies is taken out of the positions that the queries and keys of one layer read,
and all else stays as it was. For comparison as much energy is taken evenly from all frequencies,
and the band alone is left. Where queries and keys are turned, the pairs of features of one octave
stand still, all pairs turn less, or all but the octave's stand still. N documents, T tokens, n
ordinary ones, l layers, K bands, H heads, R offsets.
"""

from typing import Annotated

import numpy as np

from ..contract import Asks, Of, options, register
from ..drawing import Part, Rows, When, curves, draw, figures, row
from ..drawing.maps import write
from ..maths import profiles
from ..measures import heads, notch_arrays
from ..running.stream import UNSAVED

MAJORITY = 0.5  # of the heads that need positions
WAYS, DIRECTION = notch_arrays.WAYS, profiles.DIRECTION
TITLES = {"without": "band taken out", "evenly": "null: as much, evenly", "alone": "band alone"}
NAMED = 32  # heads, at most, that are named and numbered in the figure


def notch(
    model,
    run=UNSAVED,
    *,
    layer: Annotated[int, options.AtLeast(-1)] = -1,
    bands: Annotated[int, options.Within(1, 8)] = notch_arrays.USUAL,
    text: options.Text = "sample",
    documents: options.Documents = 12,
    tokens: options.Tokens = 0,
    losses: Annotated[int, options.AtLeast(0)] = 4,
):
    """Which heads lose their direction, and how the loss changes, without a band of the waves.

    layer: the layer that reads them (-1: all, one after another)
    bands: how many; the fastest has periods of 2 to 4 tokens, each other twice as long
    losses: documents whose loss is measured
    """
    asked = notch_arrays.Asked(layer, bands, text, documents, tokens, losses)
    return notch_arrays.measure(model, run, asked)


def _draw_ways(figure, r):
    """What each head with a direction keeps, band by band, in each of WAYS."""
    if not r["directed"].any():
        draw.nothing(figure.subplots(), "no head has a direction")
        return
    axes = figure.subplots(1, len(WAYS))
    for i, way in enumerate(WAYS):
        image = _draw_kept(axes[i], r, way)
        if i:
            axes[i].set_yticklabels([])
    axes[0].set_ylabel("head, and its offset")
    label = "attention kept at the head's offset"
    figure.colorbar(image, ax=axes, location="bottom", label=label, shrink=0.5, aspect=30)


def _draw_kept(axes, r, way):
    """A row for each head with a direction, a column for each band."""
    places = np.argwhere(r["directed"])
    kept = r[f"kept_{way}"].swapaxes(1, 2)[r["directed"]]  # [heads K]
    image = axes.imshow(kept, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    step = -(-len(places) // NAMED) or 1
    named = [_name(r, *place) for place in places[::step]]
    axes.set_yticks(range(0, len(places), step), named)
    axes.set_xticks(range(len(r["bands"])), r["bands"], rotation=30, ha="right")
    axes.set(xlabel="periods (tokens)", title=TITLES[way])
    if len(places) <= NAMED:
        write(axes, kept, 1)
    return image


def _name(r, i, head):
    return f"{heads.name(r['layers'][i], head)} {draw.offset(r['offset'][i, head])}"


_draw_loss = curves(
    "rise_without",
    null="rise_evenly",
    names="layers",
    ticks="bands",
    legend={**draw.BESIDE, "title": "layer"},
    title="loss: rise from {loss:.2f} (nats)\ndashed, null: evenly",
    xlabel="periods taken out (tokens)",
)

DIRECTED = [
    "{n_directed} of {directed.size} heads have a direction.",
    " Without any waves in their layer's positions, {n_need} of them lose it: they "
    "keep less than half of their attention at their offset.",
    When("n_need < n_directed", " The others do not read positions."),
    " {n_lost} of these {n_need} lose it without one band, and keep it with the same energy "
    "removed evenly from all frequencies (the reverse: {n_lost_null}). By period: ",
    Rows("{bands} tokens: {by_band_lost} ({by_band_lost_null})"),
    ". Without the band that a head needs most it keeps {kept:.2f} on average (null: "
    "{kept_null:.2f}). One band alone is sufficient for {n_enough}; the best one keeps {alone:.2f} "
    "on average (without any waves: {alone_null:.2f}).",
    heads.describe_strengths,
]

register(
    notch,
    look="Each row is a head with a direction, each column a band of periods. The panels show "
    "how much of the attention to its offset a head keeps when the band is removed from the "
    "positions of its layer's queries and keys (pale: the head needs the band), when the same "
    "energy is removed from all frequencies, and when only that band is left (dark: it is "
    "sufficient). A head that is dark even without all waves does not read positions in its "
    "layer. Among the others, a head that keeps its attention without any single band, and "
    "little with one band alone, reads waves of many periods at once.",
    published="The paper shows waves with a period near ten tokens and leaves open whether they "
    "can form sharp peaks at one neighbour.",
    figure="raised in the paper",
    per_head=("least_kept", "offset"),
    least_documents=2,
    numbers="""
        n_lost: heads that read positions, and keep less than half without one of the bands, but
            half or more when as much energy is removed evenly from all frequencies
            null: heads with a band for which the reverse is true
        kept: attention kept at its offset without the band that a head needs most, mean
            null: attention kept when as much energy as that of this band is removed evenly, mean of
            heads
        n_enough: heads that keep half or more with one band alone
            no null: the attention that the best band leaves is beside its null
        alone: attention kept with the best band alone, mean over heads that read positions
            null: attention that heads keep without any waves
        by_band_lost by band_names: heads that lose their direction without each band, and keep it
            when its energy is removed evenly from all frequencies
            null: heads for which the reverse is true
        by_band_enough by band_names: heads that keep their direction with each band alone
            no null: the attention that the best band leaves is beside its null
        rise: largest rise of the loss without a band in one layer, in nats per token
            null: rise of the loss in that layer when as much energy is removed evenly
        fact loss: mean loss in nats per token of the unchanged model (masked models: one in 8
            hidden)
        fact n_need: heads with a direction that lose it without all waves: they read positions
        fact n_directed: heads with a direction: {DIRECTION}
        fact n_by_strength by strengths: heads with a direction, by the attention to their offset
        fact documents: documents measured
    """,
    answer=Asks(
        "heads that owe their direction to positions and lose half of it without one band, but "
        "not evenly",
        value="{n_lost} of {n_need} (share kept: {kept:.2f})",
        chance="{n_lost_null} evenly alone (share kept: {kept_null:.2f})",
        rule=Of("n_lost", out_of="n_need", enough=MAJORITY),
    ),
    says=[
        When("n_directed", DIRECTED, "No head has a direction that it could lose."),
        When(
            "loss",
            " The loss, {loss:.2f} nats, rises most without the periods of {bands[rise_band]} "
            "tokens in layer {rise_layer}: by {rise:+.2f} (null: {rise_null:+.2f}).",
        ),
    ],
    draw=figures(
        Part(_draw_ways, height=lambda r: np.clip(0.3 * r["n_directed"], 1.8, 9) + 2.3),
        lambda r: [row(_draw_loss, height=4)] if "loss" in r else [],
    ),
    shares_passes=True,
)
