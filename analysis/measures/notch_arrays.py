"""Heads without one band of their positions' waves: attention kept, and the loss.

Where a table tells positions, a band of its waves is taken out of what one layer reads; where
queries and keys are turned, the pairs whose period is in the band stand still. N documents, T
tokens, n ordinary ones, l layers, K bands and last all waves, W ways, H heads, R offsets, r pairs
of features.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from ..contract import options
from ..maths import bands as maths
from ..maths import moves, profiles, spectra
from ..texts import corpus
from . import by_mechanism, heads, inputs, later_layers, score_moves
from . import position_parts as reading

USUAL = 4  # bands, or as many as there are

KEPT = 0.5  # of a head's attention at its offset; with less it has lost its direction
WAYS = {  # name -> positions [n D] without, or with, this band of their waves
    "without": maths.without,
    "evenly": maths.evenly_without,
    "alone": maths.alone,
}


class Asked(NamedTuple):
    """The options of `notch`."""

    layer: int
    bands: int
    text: str
    documents: int
    tokens: int
    losses: int
    what: str = "documents"  # words for the progress


def measure(model, run, asked):
    """Arrays of `notch`; raises Nothing where no wave tells positions."""
    result = by_mechanism.of_model(model, BY_MECHANISM)(model, run, asked)
    result |= _kept(result, model.config.causal)
    return result | _summary(result)


def _documents(model, asked):
    document_set = corpus.documents(model, asked.text, asked.documents, asked.tokens)
    options.several(document_set)
    return document_set


def _by_table(model, run, asked):
    """Attention with a band taken out of the positions that a layer reads."""
    layers = inputs.layers_named(model, asked.layer)
    document_set = _documents(model, asked)
    N, places = len(document_set), document_set.ordinary()
    n = document_set.size
    bands = asked.bands if asked.bands != USUAL else min(USUAL, maths.most_octaves(n))
    limits = [*maths.octaves(n, bands), (1, n // 2)]  # the last: all waves
    n_losses = min(asked.losses, N)
    total = reading.total(model, document_set, run, asked.what)

    def of_document(i, document):
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

    sums = run.gather(of_document, document_set, asked.what)
    result = {"T": document_set.T, "n": n, "documents": N, "layers": np.array(layers)}
    names = [*maths.names(bands), "all waves"]
    result |= {"limits": np.array(limits), "bands": np.array(names)}
    result |= {name: sums[name] / N for name in ("still", "attention", "energy")}
    return result | _loss_results(sums, layers, n_losses)


def _attention(model, readings, limits, places):
    """Attention by offset as it is [l H R], in each of WAYS [l W K H R], energies [l K]."""
    still, changed, energies = [], [], []
    for r in readings:
        x, parts = r.positions, _parts(r, limits)
        still.append(_layer_attention(model, r, x, places))
        rows = [[way(x, part) for part in parts] for way in WAYS.values()]
        changed.append([[_layer_attention(model, r, new, places) for new in row] for row in rows])
        energies.append([maths.energy(x, part) for part in parts])
    return {"still": np.array(still), "attention": np.array(changed), "energy": np.array(energies)}


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


def _turned(model, run, asked):
    """Attention with the pairs of one octave of periods standing still, in one layer."""
    layers = score_moves.layers(model, asked.layer)
    document_set = _documents(model, asked)
    N, places = len(document_set), document_set.ordinary()
    turns = [model.config.rotary[layer].for_length(document_set.T).frequencies for layer in layers]
    limits = maths.periods(max(map(max, turns)), asked.bands)
    ways = [_ways_to_turn(turn, limits, document_set.T) for turn in turns]
    n_losses = min(asked.losses, N)

    def of_document(i, document):
        parts, _ = yield score_moves.of_document_read(model, document)
        sums = _turned_attention(model, [parts[layer] for layer in layers], ways, places)
        given = later_layers.task(model, document, places, i)
        if given is not None and n_losses:
            sums["losses"] = np.zeros((len(layers), 1 + len(WAYS), len(limits)))
            if i < n_losses:
                sums["losses"] += _turned_losses(model, given, layers, ways) / n_losses
        return sums

    sums = run.gather(of_document, document_set, asked.what)
    result = {"T": document_set.T, "n": document_set.size, "documents": N}
    result |= {"layers": np.array(layers), "limits": np.array(limits)}
    result["bands"] = np.array([*maths.period_names(limits[:-1]), "all waves"])
    result |= {name: sums[name] / N for name in ("still", "attention")}
    result["energy"] = np.array([_energies(turn, limits, document_set.T) for turn in turns])
    return result | _loss_results(sums, layers, n_losses)


def _energies(frequencies, limits, n):
    """Share of the variance of the turns over n positions that each band's pairs have: [K]."""
    _, variance = maths.turns(frequencies, n)
    return maths.pairs_inside(frequencies, limits) @ variance / variance.sum()


def _ways_to_turn(frequencies, limits, n):
    """What turns queries and keys of a layer in each of WAYS: lists [W][K] of functions.

    A band's pairs stand still; all pairs turn less, so that as much variance is lost; all pairs but
    the band's stand still.
    """
    inside = maths.pairs_inside(frequencies, limits)
    less = [partial(_turn_less, left=1 - share) for share in _energies(frequencies, limits, n)]
    without, alone = ([partial(_turn_others, still=x) for x in xs] for xs in (inside, ~inside))
    return [without, less, alone]


def _turn_others(x, places, rotary, still):
    """Queries or keys [H T d] turned as in `score_moves.turn`, but for these pairs, bool [r]."""
    rotary = rotary.for_length(len(places))
    frequencies = np.where(still, 0, rotary.frequencies)
    return score_moves.turn(x, places, rotary._replace(frequencies=frequencies))


def _turn_less(x, places, rotary, left):
    """Queries or keys [H T d] whose turns keep their mean, and this share of their variance."""
    mean, _ = maths.turns(rotary.for_length(len(places)).frequencies, len(places))
    turned = score_moves.turn(x, places, rotary)
    r = len(mean)
    pairs = rotary.scale * mean * (x[..., :r] + 1j * x[..., r : 2 * r])
    common = np.concatenate([pairs.real, pairs.imag, x[..., 2 * r :]], axis=-1)
    return (common + max(left, 0) ** 0.5 * (turned - common)).astype(x.dtype)


def _turned_attention(model, parts, ways, places):
    """As `_attention`, without energies."""
    own, changed = [], []
    for part, layer_ways in zip(parts, ways):
        look = partial(_look, model, part, places)
        own.append(look(score_moves.turn))
        changed.append([[look(turn) for turn in way] for way in layer_ways])
    return {"still": np.array(own), "attention": np.array(changed)}


def _look(model, part, places, turn):
    """Mean attention by offset of a layer whose queries and keys are turned so: [H R]."""
    return moves.attention_between(_pattern(model, part, turn), places, places)


def _pattern(model, part, turn):
    """Attention of a layer whose queries and keys are turned so: [H T T]."""
    places = np.arange(part.q.shape[1])
    return score_moves.pattern(model, part, places, places, turn)


def _turned_losses(model, given, layers, ways):
    """As `_losses`: losses of one document [l 1+W K]; the first row as the model is."""
    parts, streams = score_moves.of_document(model, given.tokens)
    plain = later_layers.loss(model, given, streams[-1], len(streams) - 1, {})
    result = np.full((len(layers), 1 + len(WAYS), len(ways[0][0])), plain)
    for i, layer in enumerate(layers):
        for way, band in np.ndindex(result.shape[1] - 1, result.shape[2]):
            pattern = _pattern(model, parts[layer], ways[i][way][band])[None]
            points = {("pattern", layer): pattern}
            loss = later_layers.loss(model, given, streams[layer], layer, points)
            result[i, 1 + way, band] = loss
    return result


BY_MECHANISM = by_mechanism.entries(
    table=_by_table,
    rotary=_turned,
    bias="nothing to take out: a bias by distance has no waves",
    terms="nothing to take out: terms by distance have no waves",
    none=f"nothing to take out: {by_mechanism.NO_PLACES}",
)


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

    They need positions if they lose it without any waves. The last band, of all, is left out. A
    band counts for a head that keeps its direction when the same energy is removed evenly; the null
    counts the reverse (McNemar 1947).
    """
    directed = r["directed"]
    needs = directed & (r["kept_without"][:, -1] < KEPT)  # [l H]
    kept = {way: np.moveaxis(r[f"kept_{way}"][:, :-1], 1, -1)[needs] for way in WAYS}  # [heads K]
    loses, loses_evenly = (kept[way] < KEPT for way in ("without", "evenly"))
    by_band, by_band_null = loses & ~loses_evenly, loses_evenly & ~loses  # [heads K]
    most = kept["alone"].max(axis=1)
    rows, most_needed = np.arange(len(most)), kept["without"].argmin(axis=1)
    result = {"n_directed": directed.sum(), "n_need": needs.sum()}
    result |= {"n_lost": by_band.any(axis=1).sum(), "n_lost_null": by_band_null.any(axis=1).sum()}
    result["n_enough"] = (most >= KEPT).sum()
    for name, way in ("kept", "without"), ("kept_null", "evenly"):
        result[name] = _mean(kept[way][rows, most_needed], 1.0)
    result["alone"] = _mean(most, 0.0)
    result["alone_null"] = _mean(r["kept_without"][:, -1][needs], 0.0)
    result["by_band_lost"] = by_band.sum(axis=0)
    result["by_band_lost_null"] = by_band_null.sum(axis=0)
    result["by_band_enough"] = (kept["alone"] >= KEPT).sum(axis=0)
    result["band_names"] = r["bands"][:-1]
    return result


def _mean(x, empty):
    """Mean of an array, or what stands for that of none."""
    return x.mean() if len(x) else empty


def _loss_results(sums, layers, n_losses):
    """The loss, and by how much it rises in each of WAYS: [l K] each."""
    if "losses" not in sums:
        return {}
    rise = sums["losses"][:, 1:] - sums["losses"][:, :1]
    result = {f"rise_{way}": rise[:, i] for i, way in enumerate(WAYS)}
    result |= {"loss": sums["losses"][0, 0, 0], "loss_documents": n_losses}
    of_bands = rise[:, 0, :-1]
    layer, band = np.unravel_index(of_bands.argmax(), of_bands.shape)
    result["rise"], result["rise_null"] = rise[layer, 0, band], rise[layer, 1, band]
    return result | {"rise_layer": layers[layer], "rise_band": band}
