"""Heads that stand out, each beside what chance gives to any head, and how far the planes lie.

A head is flagged if the common rule (contract/verdict.py) calls its value an effect. Null of
offsets and of repeated tokens: shuffled keys, the largest of all heads, offsets and shuffles; of
repeated tokens also what the head gives to other tokens at the same distances, if that is more.
Null of the shapes: heads whose W_Q and W_K have their entries shuffled; the largest of them, or
what a head of a model of this size exceeds once in 100 models by a normal law, whichever is more.

L layers, H heads, O orders of the keys (their own, then shuffled).
"""

from dataclasses import replace

import numpy as np
import scipy

from ..contract import verdict
from ..machine.language import filled, translated
from .heads import NEAREST
from .records import Flag, Lie, Misleads

LEAST = 20  # queries that are needed
RISK = 0.01  # that any head is above the null of a shape
HEADS = 96  # with shuffled weights, at least
SIDES = "queries", "keys"
REPEATED = {  # kinds of heads.REPEATS
    "same token": "gives {value:.0%} of its attention to the same token elsewhere, where it is",
    "induction": "gives {value:.0%} of its attention to what followed the same token before",
}
SHAPES = {
    "type": "types of tokens explain {value:.0%} of the variance of its tokens' {side}",
    "position": "positions explain {value:.0%} of the variance of its {side}",
    "row": "rows of the picture explain {value:.0%} of the variance of its {side}",
    "column": "columns of the picture explain {value:.0%} of the variance of its {side}",
    "spiral": "its {side} turn around a centre as positions go on, {value:.0%} of an even spiral",
    "line": "its {side} lie along a line by position, which explains {value:.0%} of their variance",
}
ENOUGH = {"line": 0.5}  # of the variance: a spiral lies along a line in part
AT_OFFSET = "gives {value:.0%} of its attention to {where}"
BESIDE = {"before": "the token before", "after": "the token after"}
FAR = {"before": "the token {n} before", "after": "the token {n} after"}
BY_CHANCE = "chance, in any head: {null:.0%}"
BESIDE_REPEATED = "keys shuffled, in any head: {null:.0%}; other tokens as far away: {far:.0%}"
# of the head whose plane differs most from the whole space, by what a document is
MISLEADS = {
    noun: (
        f"In {{head}} {{space:.0%}} of the strongest keys are among the {{n}} keys of their {noun} "
        "that are nearest in the whole space, but {plane:.0%} in the plane (keys shuffled: "
        "{chance:.0%})."
    )
    for noun in ("sentence", "picture")
}


def is_beyond(value, null):
    """Whether a share is beyond its null by the common rule."""
    return verdict.beside(value, null).verdict in verdict.EFFECTS


def of_counts(sums, places):
    """Flags of heads that look at an offset, or where a repeated token tells them to.

    places: each offset in words.
    """
    n = sums["offset_queries"][0]
    offsets = _means(sums["offsets"], n)  # [L O H offsets]
    for layer, head in np.ndindex(offsets.shape[0], offsets.shape[2]):
        values = offsets[layer, 0, head]
        best = int(values.argmax())
        said = filled(AT_OFFSET, value=values[best], where=places[best])
        yield from _flag(layer, head, "offset", values[best], offsets[:, 1:].max(), said)
    for number, (kind, text) in enumerate(REPEATED.items()):
        yield from _of_tokens(sums, number, kind, text)


def _of_tokens(sums, number, kind, text):
    """Flags of a kind of REPEATED: beyond shuffled keys in any head, and other tokens as far."""
    n = sums["token_queries"][0, number]
    share = _means(sums["tokens"][..., number], n)  # [L O H]
    as_far = _means(sums["as_far"][..., number], n)  # [L H]
    for layer, head in np.ndindex(as_far.shape):
        value, far = share[layer, 0, head], as_far[layer, head]
        null = share[:, 1:].max()
        beside = filled(BESIDE_REPEATED, null=null, far=far)
        said = filled(text, value=value)
        yield from _flag(layer, head, kind, value, max(null, far), said, beside)


def _means(sums, n):
    """Means over queries; 0 where there are too few of them."""
    return np.where(n >= LEAST, sums / np.maximum(n, 1), 0.0)


def where(offset):
    """An offset in words.

    >>> where(-1), where(0), where(2)
    ('the token before', 'the token itself', 'the token 2 after')
    """
    if offset == 0:
        return translated("the token itself")
    side = "before" if offset < 0 else "after"
    return filled(BESIDE[side] if abs(offset) == 1 else FAR[side], n=abs(offset))


def _flag(layer, head, kind, value, null, said, beside=""):
    """The Flag of a head, if it is beyond chance."""
    value, null = float(value), float(null)
    if is_beyond(value, null) and value >= ENOUGH.get(kind, 0):
        words = f"{said} ({beside or filled(BY_CHANCE, null=null)})"
        yield Flag(layer, head, kind, value, null, words)


def of_shapes(values, chance):
    """Flags of the shapes of points: {kind: [2 L H]} of the model, and of shuffled weights."""
    for kind, text in SHAPES.items():
        if kind not in values:
            continue
        null = reached(chance[kind], values[kind][0].size)
        for layer, head in np.ndindex(values[kind].shape[1:]):
            both = values[kind][:, layer, head]
            side = int(both.argmax())
            said = filled(text, value=both[side], side=translated(SIDES[side]))
            yield from _flag(layer, head, kind, both[side], null, said)


def reached(chance, n_heads):
    """What chance reaches in any of n heads: the largest, or what a normal law says.

    >>> float(reached(np.array([0.1, 0.1]), 10)), float(reached(np.array([0.0, 1.0]), 10))
    (0.1, 1.0)
    """
    larger = chance.max(axis=0).ravel() if chance.ndim > 1 else chance
    normal = larger.mean() + scipy.stats.norm.isf(RISK / n_heads) * larger.std()
    return np.clip(max(larger.max(), normal), 0, 1)


def n_shuffles(model):
    """How often the weights of a model are shuffled, so that chance has enough heads."""
    return -(-HEADS // (model.config.n_layers * model.config.n_heads))


def shuffled(model, seed):
    """The model with the entries of all W_Q and W_K in random order, each matrix by itself."""
    rng = np.random.default_rng(seed)

    def mixed(part):
        changed = {}
        for name in ("W_Q", "W_K"):
            x = getattr(part, name)
            changed[name] = rng.permutation(x.ravel()).reshape(x.shape)
        return _with(part, changed)

    layers = []
    for layer in model.layers:
        own = mixed(layer)
        cross = getattr(layer, "cross", None)
        layers.append(own if cross is None else _with(own, {"cross": mixed(cross)}))
    encoder = None if model.encoder is None else shuffled(model.encoder, seed)
    return replace(model, layers=tuple(layers), encoder=encoder)


def _with(part, changes):
    """A namespace of arrays with others in their place."""
    return type(part)(**vars(part) | changes)


def lie(sums, others, noun="sentence"):
    """The Lie of all heads, and the head that misleads most, if any does beyond chance.

    others: what trust.py says of other projections. noun: what a document is.
    """
    n = np.maximum(sums["queries"], 1)[:, None, None, None]
    near = sums["near"] / n  # [L O H 2]
    plane, space = np.moveaxis(near, -1, 0)
    gap = abs(plane - space)  # [L O H]
    own = gap[:, 0]
    layer, head = np.unravel_index(own.argmax(), own.shape)
    worst = None
    if is_beyond(own[layer, head], gap[:, 1:].max()):
        near_by = {"space": space[layer, 0, head], "plane": plane[layer, 0, head]}
        near_by["chance"] = plane[layer, 1:, head].mean()
        said = filled(MISLEADS[noun], head=f"L{layer}H{head}", n=NEAREST, **near_by)
        worst = Misleads(int(layer), int(head), said)
    by_chance = [x[:, 1:].mean(axis=1) for x in (plane, space)]
    return Lie(plane[:, 0], space[:, 0], *by_chance, worst, others)
