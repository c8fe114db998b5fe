"""Does a head's direction hang on one band of the position waves?

One band of frequencies is taken out of the positions that the queries and keys of one layer read,
and all else stays as it was. For comparison as much energy is taken evenly from all frequencies,
and the band alone is left. N documents, T tokens, n ordinary ones, l layers, K bands, H heads, R
offsets.

Order: the experiment, its parts; the words; the picture.
"""

from typing import Annotated

import numpy as np

from ..contract import options
from ..contract.registry import register
from ..contract.rules import Asks, Of
from ..drawing import draw
from ..drawing.panels import Part, curves
from ..drawing.sentences import Rows, When
from ..maths import bands as maths
from ..maths import moves, profiles, spectra
from ..measures import heads, inputs, later_layers
from ..measures import position_parts as reading
from ..running.stream import UNSAVED
from ..texts import corpus

KEPT = 0.5  # of a head's attention at its offset; with less it has lost its direction
MAJORITY = 0.5  # of the heads that need positions
WAYS = {  # name -> positions [n D] without, or with, this band of their waves
    "without": maths.without,
    "evenly": maths.evenly_without,
    "alone": maths.alone,
}
TITLES = {
    "without": "band taken out",
    "evenly": "null: same energy, evenly",
    "alone": "band alone",
}
NAMED = 32  # heads, at most, that are named and numbered in the figure


def notch(
    model,
    run=UNSAVED,
    *,
    layer: Annotated[int, options.AtLeast(-1)] = -1,
    bands: Annotated[int, options.Within(1, 8)] = 4,
    text: options.Text = "sample",
    documents: options.Documents = 12,
    tokens: options.Tokens = 0,
    losses: Annotated[int, options.AtLeast(0)] = 2,
):
    """Which heads lose their direction, and what the loss says, without a band of the waves.

    layer: the layer that reads them (-1: all, one after another)
    bands: how many; the fastest has periods of 2 to 4 tokens, each other twice as long
    losses: documents whose loss is measured
    """
    inputs.reachable(model)
    layers = inputs.layers_named(model, layer)
    document_set = corpus.documents(model, text, documents, tokens)
    options.several(document_set)
    N, places = len(document_set), document_set.ordinary()
    n = document_set.size
    limits = [*maths.octaves(n, bands), (1, n // 2)]  # the last: all waves
    n_losses = min(losses, N)
    total = reading.total(model, document_set, run)

    def measure(i, document):
        passed = yield reading.of_document_read(model, document)
        others = (total - passed.inputs) / (N - 1)
        readings = [*reading.readings(model, passed, others, places, layers)]
        sums = _attention(model, readings, limits, places)
        given = later_layers.task(model, document, places, i)
        if given is not None and n_losses:
            sums["losses"] = np.zeros((len(layers), 1 + len(WAYS), len(limits)))
            if i < n_losses:
                sums["losses"] += _losses(model, given, others, places, layers, limits) / n_losses
        return sums

    sums = run.gather(measure, document_set, "documents")
    result = {"T": document_set.T, "n": n, "documents": N, "layers": np.array(layers)}
    result |= {"limits": np.array(limits), "bands": np.array([*maths.names(bands), "all waves"])}
    result |= {name: sums[name] / N for name in ("still", "attention", "energy")}
    result |= _kept(result, model.config.causal)
    return result | _summary(result) | _loss_results(sums, layers)


def _attention(model, readings, limits, places):
    """Attention by offset as it is [l H R], in each of WAYS [l W K H R], energies [l K]."""
    still, changed, energies = [], [], []
    for r in readings:
        x, parts = r.positions, _parts(r, limits)
        still.append(_layer_attention(model, r, x, places))
        rows = [[way(x, part) for part in parts] for way in WAYS.values()]
        changed.append([[_layer_attention(model, r, new, places) for new in row] for row in rows])
        energies.append([maths.energy(x, part) for part in parts])
    return {
        "still": np.array(still),
        "attention": np.array(changed),
        "energy": np.array(energies),
    }


def _parts(r, limits):
    """The bands of the positions that a layer reads: K arrays [n D]."""
    return [spectra.bandpass(r.positions, *band) for band in limits]


def _layer_attention(model, r, positions, places):
    """Mean attention by offset of a layer whose queries and keys read these positions: [H R]."""
    q, k = _queries_keys(model, r, positions)
    pattern = reading.pattern(model, r.layer, q, k)
    return moves.attention_between(pattern, places, places)


def _queries_keys(model, r, positions):
    """Queries and keys of a layer that read these positions [n D]."""
    x = r.put(positions.astype(r.x.dtype))
    return reading.queries(model, r.layer, x), reading.keys(model, r.layer, x)


def _losses(model, given, others, places, layers, limits):
    """Losses of one document: [l 1+W K]; the first row as the model is."""
    passed = reading.of_document(model, given.tokens)
    last = len(passed.streams) - 1
    plain = later_layers.loss(model, given, passed.streams[last], last, {})
    result = np.full((len(layers), 1 + len(WAYS), len(limits)), plain)
    for i, r in enumerate(reading.readings(model, passed, others, places, layers)):
        parts = _parts(r, limits)
        for way, change in enumerate(WAYS.values(), 1):
            for band, part in enumerate(parts):
                q, k = _queries_keys(model, r, change(r.positions, part))
                points = {("q", r.layer): q, ("k", r.layer): k}
                stream = passed.streams[r.layer]
                result[i, way, band] = later_layers.loss(model, given, stream, r.layer, points)
    return result


def _kept(r, causal):
    """Attention that each head keeps at its own offset, as a share, in each of WAYS: [l K H]."""
    offset = r["still"].argmax(axis=-1)  # [l H]
    own = np.take_along_axis(r["still"], offset[..., None], axis=-1)[..., 0]
    index = offset[:, None, None, :, None]
    changed = np.take_along_axis(r["attention"], index, axis=-1)[..., 0]  # [l W K H]
    kept = changed / np.maximum(own, 1e-300)[:, None, None]
    result = {f"kept_{way}": kept[:, i] for i, way in enumerate(WAYS)}
    result["directed"] = profiles.directed(r["still"], r["n"], causal=causal)
    result |= heads.by_strength(own, result["directed"])
    result["least_kept"] = result["kept_without"][:, :-1].min(axis=1)
    result["offset"] = offset - profiles.REACH
    return result


def _summary(r):
    """Of the heads with a direction that need positions: how many lose it without a band.

    They need positions if they lose it without any waves. The last band, of all, is left out.
    """
    directed = r["directed"]
    needs = directed & (r["kept_without"][:, -1] < KEPT)  # [l H]
    kept = {way: np.moveaxis(r[f"kept_{way}"][:, :-1], 1, -1)[needs] for way in WAYS}  # [heads K]
    least = {way: x.min(axis=1) for way, x in kept.items()}
    most = kept["alone"].max(axis=1)
    result = {"n_directed": directed.sum(), "n_need": needs.sum()}
    result["n_lost"] = (least["without"] < KEPT).sum()
    result["n_lost_null"] = (least["evenly"] < KEPT).sum()
    result["n_enough"] = (most >= KEPT).sum()
    result["kept"], result["kept_null"] = (_mean(least[way], 1.0) for way in ("without", "evenly"))
    result["alone"] = _mean(most, 0.0)
    result["alone_null"] = _mean(r["kept_without"][:, -1][needs], 0.0)
    result["by_band_lost"] = (kept["without"] < KEPT).sum(axis=0)
    result["by_band_lost_null"] = (kept["evenly"] < KEPT).sum(axis=0)
    result["by_band_enough"] = (kept["alone"] >= KEPT).sum(axis=0)
    result["band_names"] = r["bands"][:-1]
    return result


def _mean(x, empty):
    """Mean of an array, or what stands for that of none."""
    return x.mean() if len(x) else empty


def _loss_results(sums, layers):
    """The loss, and by how much it rises in each of WAYS: [l K] each."""
    if "losses" not in sums:
        return {}
    rise = sums["losses"][:, 1:] - sums["losses"][:, :1]
    result = {f"rise_{way}": rise[:, i] for i, way in enumerate(WAYS)}
    result["loss"] = sums["losses"][0, 0, 0]
    of_bands = rise[:, 0, :-1]
    layer, band = np.unravel_index(of_bands.argmax(), of_bands.shape)
    result["rise"], result["rise_null"] = rise[layer, 0, band], rise[layer, 1, band]
    return result | {"rise_layer": layers[layer], "rise_band": band}


def _draw_all(figure, r):
    """What each head with a direction keeps, band by band, in each of WAYS; beside it the loss."""
    widths = (1, 1, 1, 1.3) if "loss" in r else (1, 1, 1)
    axes = figure.subplots(1, len(widths), width_ratios=widths)
    for i, way in enumerate(WAYS):
        image = _draw_kept(axes[i], r, way)
        if i:
            axes[i].set_yticklabels([])
    axes[0].set_ylabel("head, and its offset")
    label = "attention kept at the head's offset"
    figure.colorbar(image, ax=axes[:3], location="bottom", label=label, shrink=0.5, aspect=30)
    if "loss" in r:
        _draw_loss(axes[3], r)


def _draw_kept(axes, r, way):
    """A row for each head with a direction, a column for each band."""
    places = np.argwhere(r["directed"])
    kept = r[f"kept_{way}"].swapaxes(1, 2)[r["directed"]]  # [heads K]
    shown = kept if len(kept) else np.zeros((1, len(r["bands"])))
    image = axes.imshow(shown, cmap="viridis", vmin=0, vmax=1, aspect="auto")
    step = -(-len(places) // NAMED) or 1
    named = [_name(r, *place) for place in places[::step]]
    axes.set_yticks(range(0, len(places), step), named)
    axes.set_xticks(range(len(r["bands"])), r["bands"], rotation=30, ha="right")
    axes.set(xlabel="periods (tokens)", title=TITLES[way] if len(kept) else "no direction")
    if len(places) <= NAMED:
        for i, j in np.ndindex(kept.shape):
            color = "black" if kept[i, j] > 0.6 else "white"
            text = f"{kept[i, j]:.2f}"
            axes.text(j, i, text, ha="center", va="center", fontsize=10, color=color)
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
    heads.describe_strengths,
    " Without any waves of the positions that their layer reads, {n_need} of them lose it: they "
    "keep less than half of their attention at their offset.",
    When("n_need < n_directed", " The others read no positions."),
    " {n_lost} of these {n_need} "
    "lose it without one band (with as much energy taken evenly from all frequencies: "
    "{n_lost_null}). By period: ",
    Rows("{bands} tokens: {by_band_lost} ({by_band_lost_null})"),
    ". Without the band that a head needs most it keeps {kept:.2f} on average (null: "
    "{kept_null:.2f}). One band alone is enough for {n_enough}; the best one leaves {alone:.2f} on "
    "average (without any waves: {alone_null:.2f}).",
]

register(
    notch,
    look="Each row is a head with a direction, each column a band of periods. The panels show how "
    "much of its attention at its offset a head keeps when the positions that its layer's queries "
    "and keys read lack the band (dark: the head needs it), when they lack as much energy of all "
    "frequencies, and when they have that band alone (bright: it is enough). A head that is bright "
    "even without all waves reads no positions in its layer. Among the others, a head that keeps "
    "all its attention whichever band is taken out, and little with one band alone, reads waves of "
    "many periods at once.",
    published="The paper draws waves of a period near ten tokens and leaves open whether sharp "
    "peaks at one neighbour can be made of them.",
    figure="asked by the paper",
    per_head=("least_kept", "offset"),
    least_documents=2,
    numbers="""
        n_lost: heads that read positions, and keep less than half without one of the bands
            null: heads that keep less than half with as much energy taken evenly from all
            frequencies
        kept: attention kept at its offset without the band that a head needs most, mean
            null: attention kept with as much energy taken evenly, at worst, mean of heads
        n_enough: heads that keep half or more with one band alone
            no null: the attention that the best band leaves is beside its null
        alone: attention kept with the best band alone, mean over heads that read positions
            null: attention that heads keep without any waves
        by_band_lost by band_names: heads that lose their direction without each band
            null: heads that lose their direction when as much energy as each band's is taken evenly
            from all frequencies
        by_band_enough by band_names: heads that keep their direction with each band alone
            no null: the attention that the best band leaves is beside its null
        rise: largest rise of the loss without a band in one layer, in nats per token
            null: rise of the loss in that layer with as much energy taken evenly
        fact loss: mean loss in nats per token as the model is (masked models: one in 8 hidden)
        fact n_need: heads with a direction that lose it without all waves: they read positions
        fact n_directed: heads with a direction: {profiles.DIRECTION}
        fact n_by_strength by strengths: heads with a direction, by the attention to their offset
        fact documents: documents measured
    """,
    answer=Asks(
        "heads with a direction from positions that lose half of it without one band",
        value="{n_lost} of {n_need} (kept {kept:.2f})",
        chance="{n_lost_null} (kept {kept_null:.2f})",
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
    draw=Part(_draw_all, height=lambda r: np.clip(0.3 * r["n_directed"], 1.8, 9) + 2.3),
    shares_passes=True,
)
