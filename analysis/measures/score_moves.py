"""Attention of one layer whose keys or queries stand elsewhere, where positions enter the scores.

Turned queries and keys get the angle of another position (rotary), a term of the scores that of
another distance (buckets, ALiBi, the terms of DeBERTa). Nothing comes round the end, and no
document is averaged: it is exact in every layer.

l layers, S shifts, H heads, G heads of keys, T tokens, d width of a head, R offsets, K shifts of
the loss.
"""

from typing import NamedTuple

import numpy as np

from minitx import distances
from minitx.kernels import softmax_
from minitx.model import identity
from minitx.positions import Place, angles, turned

from ..contract.registry import NotApplicable
from ..maths import lags as lag_maths
from ..maths import moves, profiles
from ..running import passes
from . import inputs, later_layers, mean_kernel, position_moves


class Part(NamedTuple):
    """What the scores of one layer on one document are made of."""

    layer: int
    q: np.ndarray  # [H T d] before a place turns them
    k: np.ndarray  # [G T d]
    hidden: np.ndarray  # [H T T] bool: the keys that no query sees
    embed: np.ndarray | None = None  # [1 R D] what stands at each distance (DeBERTa)


class Parts(NamedTuple):
    """The Part of every layer, and the streams [L T D] before them."""

    layers: list
    streams: list


def of_document_read(model, document):
    """A Reading of the Parts of one document [T]."""
    kept, hidden, streams = {}, [], []
    embed = [None]

    def watch(name, x, layer=None):
        kind = name.removesuffix("_in")
        if kind in ("q", "k") and (kind, layer) not in kept:  # before the turn, if there is one
            kept[kind, layer] = x[0].copy()
        if name == "dist_embed":
            embed[0] = x
        if name == "scores":
            hidden.append(np.isneginf(x[0]))
        if name == "resid_pre":
            streams.append(x[0].copy())

    def value(_):
        layers = [Part(i, kept["q", i], kept["k", i], x, *embed) for i, x in enumerate(hidden)]
        return Parts(layers, streams)

    return passes.Reading(model, document, watch, value)


def of_document(model, document):
    """The Parts of one document [T]."""
    return passes.value(of_document_read(model, document))


def layers(model, layer=-1):
    """The layers that --layer names, of those whose scores a position enters."""
    inputs.check_uncapped(model)
    cfg = model.config
    named = inputs.layers_named(model, layer)
    moved = [i for i in named if not cfg.rotary or cfg.rotary[i]]
    if not moved:
        raise NotApplicable(f"needs a layer in which positions enter; layer {layer} has none")
    return moved


def turn(x, places, rotary):
    """Queries or keys [H T d] turned as those of these positions [T] of a document of T tokens."""
    frequencies = rotary.for_length(len(places)).frequencies
    return turned(x[None], angles(frequencies, places[None], x.dtype), rotary.scale)[0]


def scores(model, part, of_q, of_k, turn=turn):
    """Scores of a layer [H T T] whose queries and keys stand at these positions [T].

    turn: what a position does to queries and keys, where it turns them.
    """
    cfg = model.config
    q, k = part.q, part.k
    rotary = cfg.rotary[part.layer] if cfg.rotary else None
    if rotary is not None:
        q, k = turn(q, of_q, rotary), turn(k, of_k, rotary)
    scores = mean_kernel.product(q, k, cfg.attn_scale(part.layer))
    lags = of_k - of_q[:, None]
    by_distance = mean_kernel.added(model, lags)
    if cfg.pos_terms:
        by_distance = _terms(model, part, q, k, lags)
    return scores if by_distance is None else scores + by_distance.astype(scores.dtype)


def _terms(model, part, q, k, lags):
    """Terms of content with position and the reverse, by the lags [T T] of keys: [H T T]."""
    row = distances.distance_row(model.config, lags)[None]
    place = Place(None, 1.0, None, distances.Distances(part.embed, row))
    w = model.layers[part.layer]
    return distances.place_terms(q[None], k[None], w, place, model.config, identity)[0]


def pattern(model, part, of_q, of_k, turn=turn):
    """Attention of a layer [H T T] whose queries and keys stand at these positions [T]."""
    moved = scores(model, part, of_q, of_k, turn)
    return softmax_(np.where(part.hidden, -np.inf, moved).astype(part.q.dtype))


def moved_pattern(model, part, move, s):
    """Attention of a layer with keys, queries or both moved by s, a number or [T]: [H T T]."""
    places = np.arange(part.q.shape[1])
    moved = places + s
    of_q, of_k = (moved if move in (kind, "both") else places for kind in ("queries", "keys"))
    return pattern(model, part, of_q, of_k)


def attention(model, part, move, ways, places, wide):
    """As `position_moves.attention`: mean attention by offset at every move [W H R].

    In a causal model queries count only from where all near keys are seen: the first ones have no
    other key than the nearest.
    """
    queries = slice(places.start + wide * model.config.causal, places.stop)
    by_way = []
    for s in ways:
        moved = moved_pattern(model, part, move, s)
        by_way.append(moves.attention_between(moved, queries, places, wide))
    return np.array(by_way)


def losses(model, given, layers, shifts, used):
    """As `position_moves.losses`: [l 2 K+1], with the pattern of one layer replaced."""
    steps = position_moves.loss_shifts(shifts)
    result = np.zeros((len(layers), 2, 1 + len(steps)))
    if not used:
        return result
    parts, streams = of_document(model, given.tokens)
    plain = later_layers.loss(model, given, streams[-1], len(streams) - 1, {})
    result[..., 0] = plain
    for i, layer in enumerate(layers):
        for j, s in enumerate(steps, 1):
            for way, move in enumerate(("keys", "both")):
                points = {("pattern", layer): moved_pattern(model, parts[layer], move, s)[None]}
                result[i, way, j] = later_layers.loss(model, given, streams[layer], layer, points)
    return result * used


def of_kernel(model, document, by_place, layers):
    """The lag [l H] at which the kernel of each head peaks, and by how many nats.

    by_place: means over documents, see `mean_kernel.means`. document: one of them.
    """
    near, causal = profiles.REACH, model.config.causal
    query, key = mean_kernel.overall(model, by_place)
    curves = mean_kernel.curves(model, document, query, key)[layers]
    lag, _ = lag_maths.peak(curves, near, causal)
    return lag, lag_maths.height(curves, lag, near, causal)
