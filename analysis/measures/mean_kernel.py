"""What a model's scores are once words are averaged out: its own pass with mean queries and keys.

Query and key of every layer are put to their mean over words before a position turns them. What is
left of the scores depends on positions alone, and the model itself computes it, whatever the
mechanism (Config.mechanisms). The formula of each mechanism stands beside it.

T tokens, L layers, H heads, G heads of keys, d width of a head, R lags.
"""

from typing import NamedTuple

import numpy as np

from minitx import distances, forward, head_weights
from minitx.model import identity

from ..maths import positional_kernel as maths
from ..maths import profiles
from ..running import passes
from . import inputs

HALVES = "even", "odd"  # documents of which means are taken apart, so that no text is on both sides


class Alone(NamedTuple):
    """Scores and what is added to them, of every layer, from mean queries and keys."""

    scores: np.ndarray  # [L H T T]; where a query may not look, the product alone
    bias: np.ndarray  # [L H T T], their part that is no product of query and key; there 0


def before_turn(model):
    """The points of queries and keys before their place turns them."""
    return ("q_in", "k_in") if model.config.rotary else ("q", "k")


def as_before_turn(model, name, layer):
    """q_in or k_in for q or k of a layer that turns none (SmolLM3's fourth); else the name."""
    rotary = model.config.rotary
    is_still = rotary and name in ("q", "k") and rotary[layer] is None
    return f"{name}_in" if is_still else name


def means(model, documents, run, what="documents"):
    """Mean queries and keys at each place: {"q_even": [L H T d], "q_odd", "k_even", "k_odd"}.

    Where they are turned, also before that: "q_in_even" and so on. Two documents or more are
    needed. what: words for the progress.
    """
    names = {"q", "k", *before_turn(model)}

    def measure(i, document):
        arrays = {name: [] for name in names}

        def watch(name, x, layer=None):
            for each in {name, as_before_turn(model, name, layer)} & names:
                arrays[each].append(x[0].copy())

        def value(_):
            return {f"{name}_{HALVES[i % 2]}": np.array(x) for name, x in arrays.items()}

        return (yield passes.Reading(model, document, watch, value))

    sums = run.gather(measure, documents, f"mean queries and keys, {what}")
    n = len(documents)
    counts = {"even": (n + 1) // 2, "odd": n // 2}
    return {name: total / counts[name.rpartition("_")[2]] for name, total in sums.items()}


def overall(model, by_place):
    """Mean query and key over words and positions, before the turn: [L H d], [L G d]."""
    return [
        (by_place[f"{name}_even"] + by_place[f"{name}_odd"]).mean(axis=2) / 2
        for name in before_turn(model)
    ]


def run_alone(model, document, query, key):
    """The Alone of a document's places: every query and key [L H d] is the mean one."""
    inputs.check_uncapped(model)
    mean = dict(zip(before_turn(model), (query, key)))
    kept = {name: [] for name in ("scores", "q", "k")}

    def hook(name, x, layer=None):
        point = as_before_turn(model, name, layer)
        if point in mean:
            x = np.broadcast_to(mean[point][layer][None, :, None], x.shape).astype(x.dtype)
        if name in kept:
            kept[name].append(x[0].copy())
        return x

    forward(model, document, hook=hook)
    scores = np.array(kept["scores"])
    by_layer = enumerate(zip(kept["q"], kept["k"]))
    products = np.array([product(q, k, model.config.attn_scale(i)) for i, (q, k) in by_layer])
    hidden = np.isneginf(scores)
    scores = np.where(hidden, products, scores)
    return Alone(scores, scores - products)


def product(q, k, scale):
    """Scores [H T S] of queries [H T d] and keys [G S d], each of which serves H/G heads."""
    return scale * (q @ head_weights.for_each_head(k, len(q)).swapaxes(-1, -2))


def formula(model, query, key, lags, T):
    """What the mechanisms in the scores give at each lag: [L H R]; None where there is none.

    query [L H d], key [L G d]: the mean ones, before they are turned. T: tokens of a document.
    """
    cfg = model.config
    layers = range(cfg.n_layers)
    by_lag = added(model, lags)
    turns = cfg.rotary
    if not turns and by_lag is None:
        return None
    curves = np.zeros((cfg.n_layers, cfg.n_heads, len(lags)))
    for layer in layers:
        if turns and turns[layer]:
            k = head_weights.for_each_head(key[layer], cfg.n_heads)
            scale = cfg.attn_scale(layer) * turns[layer].scale ** 2
            frequencies = turns[layer].for_length(T).frequencies
            curves[layer] += scale * maths.rotary(query[layer], k, frequencies, lags)
    return curves if by_lag is None else curves + by_lag


def added(model, lags):
    """The bias that a model stores or computes for each lag: [...] -> [H ...], or None."""
    cfg = model.config
    if cfg.alibi:
        return -np.multiply.outer(distances.slopes(cfg.n_heads), abs(lags))
    if cfg.n_buckets:
        rows = np.asarray(model.weights.W_rel, np.float64)
        return np.moveaxis(rows[distances.bucket(cfg, lags)], -1, 0)
    return None


def curves(model, document, query, key):
    """The kernel [L H R] within reach, by the formula or, where none is known, by the model's pass.

    A term of the scores that compares content with distances (DeBERTa) has no formula.
    """
    known = formula(model, query, key, profiles.offsets(), len(document))
    if known is not None and not model.config.pos_terms:
        return known
    return maths.mean_by_lag(run_alone(model, document, query, key).scores, profiles.REACH)


def terms(model, layer, q, k, distance):
    """DeBERTa's terms of a layer's scores, {"c2p", "p2c": [H T S]}, at distances key - query [T S].

    q [H T d], k [H S d].
    """
    cfg, w = model.config, model.layers[layer]
    row = distances.distance_row(cfg, distance)
    embed = distances.table(cfg, model.weights)
    scale = cfg.attn_scale(layer)
    by_name = {}
    if "c2p" in cfg.pos_terms:
        rows = distances.of_distances("K", embed, w, cfg, identity)[0]  # [H R d]
        by_name["c2p"] = scale * np.take_along_axis(q @ rows.swapaxes(-1, -2), row[None], axis=-1)
    if "p2c" in cfg.pos_terms:
        rows = distances.of_distances("Q", embed, w, cfg, identity)[0]
        p2c = np.take_along_axis(k @ rows.swapaxes(-1, -2), row.T[None], axis=-1)
        by_name["p2c"] = scale * p2c.swapaxes(-1, -2)
    return by_name


def distinct(model, lags):
    """Whether a bias tells each lag from the two beside it: bool [...]; in a wide bucket not."""
    cfg = model.config
    if not cfg.n_buckets and not cfg.pos_terms:
        return np.ones(np.shape(lags), bool)
    number = distances.bucket if cfg.n_buckets else distances.distance_row
    before, own, after = (number(cfg, lags + step) for step in (-1, 0, 1))
    return (own != before) & (own != after)
