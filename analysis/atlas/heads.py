"""Every head of one stack: where its queries and keys lie, and where it looks, in four passes.

The passes find the means, the scale, the plane, and then the points with what is counted of all
heads. A pass holds one layer of one document at a time (measures/joint_fit.py).

L layers, H heads, T queries and S keys of a document, d width of a head, C components.
"""

from typing import NamedTuple

import numpy as np

from ..maths import joint
from ..maths.factors import signs
from ..measures import joint_fit
from ..texts import joined as of_texts
from . import patches

STRONGEST = 5  # keys that are kept of each query
NEAREST = 10  # a key is near if no more keys of its sentence are as near
REACH = 8  # offsets on both sides
OFFSETS = np.arange(-REACH, REACH + 1)
REPEATS = "same token", "induction"  # kinds of keys that a repeated token tells of
SHUFFLES = 19  # of the keys; the largest of all heads in all of them is what chance gives
DEPTH = 3  # components that are drawn
KEPT = "q", "k", "q_norm", "k_norm", "index", "weight"  # of each document


class Part:
    """A part of a run, whose states have names of their own."""

    def __init__(self, run, name):
        self.run, self.name = run, name

    def gather(self, measure, documents, what, keep=()):
        """As of stream.Run."""
        return self.run.gather(measure, documents, f"{self.name}, {what}", keep)


class Fit(NamedTuple):
    """How the queries and keys of each head are moved and drawn."""

    moves: dict  # c [L H], a [L H d]
    centre: np.ndarray  # [L H d]
    components: np.ndarray  # [L H d C]
    facts: dict  # correlations of products and distances [L H], with their nulls


def fit(model, documents, settings, seed, run, components=DEPTH):
    """The Fit of a stack on some documents."""
    moves, _, best, curves = joint_fit.moved(model, documents, settings, seed, run)
    facts = joint_fit.correlations(curves, best) | {"best": best["own"]}
    return Fit(moves, *planes(model, documents, settings, moves, run, components), facts)


def fit_like(model, documents, settings, best, run):
    """The Fit of a stack whose heads take given scales [L H], numbers of joint.transform_of."""
    means = joint_fit.means_of(model, documents, settings, run)
    moves = joint.transform_of(best, means, settings.distance)
    return Fit(moves, *planes(model, documents, settings, moves, run, DEPTH), {})


def planes(model, documents, settings, moves, run, components):
    """Centre [L H d] and leading directions [L H d C] of all points of each head."""
    drawn = joint.DISTANCES[settings.distance].drawn

    def use(layer, *_):
        pair = [drawn(x) for x in joint_fit.stages(layer, moves)[1]]
        x = np.concatenate(pair, axis=1)
        return {"sum": x.sum(axis=1), "square": x.swapaxes(1, 2) @ x, "n": x.shape[1]}

    sums = _gathered(model, documents, settings, use, run, "documents: planes")
    n = sums["n"][:, None, None]
    centre = sums["sum"] / n
    covariance = sums["square"] / n[..., None] - centre[..., None] * centre[..., None, :]
    return centre, leading(covariance, components)


def leading(covariance, n):
    """The n directions of largest variance, their largest entries positive: [... d d] -> [... d n].

    Where there are fewer directions, columns of zeros stand in the place of the others.
    """
    _, directions = np.linalg.eigh(covariance)  # variances ascend
    U = directions[..., ::-1][..., :n]
    U = U * signs(U)
    short = max(0, n - U.shape[-1])
    return np.pad(U, [(0, 0)] * (U.ndim - 1) + [(0, short)])


def places(layer, settings, fitted):
    """Coordinates of the queries [H T C] and keys [H S C] of a layer, and both after the move."""
    drawn = joint.DISTANCES[settings.distance].drawn
    pair = joint_fit.stages(layer, fitted.moves)[1]
    centre = fitted.centre[layer.index][:, None]
    U = fitted.components[layer.index]
    return [(drawn(x) - centre) @ U for x in pair], pair


def points(model, documents, settings, fitted, run, seed):
    """Every point of these documents, padded to the longest, and sums of what is counted.

    Kept of each document: q, k [L H T C], norms, the strongest keys and their weights.
    """
    T, S = map(max, lengths(documents, settings.cross))

    def use(layer, document, rng):
        (q, k), _ = pair = places(layer, settings, fitted)
        kept = {"q": _padded(q, T), "k": _padded(k, S)}
        kept["q_norm"] = _padded(np.linalg.norm(layer.q, axis=-1), T)
        kept["k_norm"] = _padded(np.linalg.norm(layer.k, axis=-1), S)
        index, weight = strongest(layer.pattern, layer.seen)
        kept |= {"index": _padded(index, T, np.int16), "weight": _padded(weight, T, np.float16)}
        return kept | counted(layer, document, pair, settings, rng)

    return _gathered(model, documents, settings, use, run, "documents: points", seed)


def coordinates(model, documents, settings, fitted, run):
    """Every point alone: [L H n+m C]."""
    T, S = map(max, lengths(documents, settings.cross))

    def use(layer, *_):
        q, k = places(layer, settings, fitted)[0]
        return {"q": _padded(q, T), "k": _padded(k, S)}

    kept = _gathered(model, documents, settings, use, run, "documents: points")
    return joined(kept, documents, settings.cross)


def joined(kept, documents, cross):
    """Points of all documents one after another, queries first: [L H n+m C]."""
    of_queries, of_keys = lengths(documents, cross)
    points = unpadded(kept["q"], of_queries), unpadded(kept["k"], of_keys)
    return np.concatenate(points, axis=2)


def lengths(documents, cross):
    """How many queries each document has, and how many keys."""
    return [len(queries_of(x)) for x in documents], [len(keys_of(x, cross)) for x in documents]


def unpadded(x, lengths):
    """[N L H T ...] of documents, each of its own length -> [L H n ...]."""
    return np.concatenate([row[:, :, :n] for row, n in zip(x, lengths)], axis=2)


def counts(model, documents, settings, fitted, run, seed):
    """The sums alone, of documents that are not drawn."""

    def use(layer, document, rng):
        return counted(layer, document, places(layer, settings, fitted), settings, rng)

    return _gathered(model, documents, settings, use, run, "documents: counts", seed)


def _gathered(model, documents, settings, use, run, what, seed=0):
    """What a run gathers of use(layer, document, rng) of every layer of every document."""

    def measure(index, document):
        rng = np.random.default_rng((seed, index))
        return joint_fit.map_layers(model, document, lambda x: use(x, document, rng), settings)

    return run.gather(measure, documents, what, KEPT)


def queries_of(document):
    """The ids whose queries a document has; of a picture the numbers of its patches."""
    if isinstance(document, of_texts.Joined):
        return document.ids
    return getattr(document, "patches", getattr(document, "inputs", document))


def keys_of(document, cross):
    """The ids whose keys a document has, those of its source in cross-attention."""
    return getattr(document, "source", document) if cross else queries_of(document)


def _padded(x, T, dtype=np.float32):
    """[H t ...] -> [H T ...]"""
    ends = [(0, 0), (0, T - x.shape[1])] + [(0, 0)] * (x.ndim - 2)
    return np.pad(x, ends).astype(dtype)


def strongest(pattern, seen, n=STRONGEST):
    """The n keys with most attention of each query, and their weights: [H T S] -> [H T n] twice.

    -1 and 0 where a query sees fewer keys. Of equal ones the first comes first.
    """
    hidden = np.where(seen, pattern, -1)
    most = min(n, pattern.shape[-1])
    order = (-hidden).argsort(axis=-1, kind="stable")[..., :most]
    weight = np.take_along_axis(hidden, order, -1)
    ends = [(0, 0), (0, 0), (0, n - most)]
    order, weight = np.pad(order, ends, constant_values=-1), np.pad(weight, ends)
    return np.where(weight < 0, -1, order), np.maximum(weight, 0)


def counted(layer, document, pair, settings, rng):
    """Sums over the queries of one layer; the first row is of its own keys, others are shuffled.

    near [O H 2]: strongest keys among the nearest in plane and space, of queries [1]. offsets
    [O H offsets], of offset_queries [offsets]. tokens [O H 2]: attention by REPEATS, of
    token_queries [2]; as_far [H 2] beside it.
    """
    coordinates, moved = pair
    orders = joint.shuffled_keys(layer.seen, SHUFFLES, rng)
    own = np.arange(layer.seen.shape[1]) * np.ones_like(orders[:1])
    orders = np.concatenate([own, orders])  # [O T S]
    flat = [x[..., :2] for x in coordinates]
    far = joint.distances(*flat, "euclidean"), joint.distances(*moved, settings.distance)
    is_near = [joint.ranks(x, layer.seen) <= NEAREST for x in far]
    return nearness(layer, is_near, orders) | looks(layer, document, settings, orders)


def nearness(layer, is_near, orders):
    """Sums of near [O H 2], plane before space, and of the queries that see several keys."""
    sees_several = layer.seen.sum(axis=-1) > 1
    rows = np.flatnonzero(sees_several)
    best = layer.pattern.argmax(axis=-1)[:, rows]  # [H t]
    keys = orders[:, rows, best]  # [O H t]
    H = np.arange(len(best))[:, None]
    near = [table[H, rows, keys].sum(axis=-1) for table in is_near]
    return {"near": np.stack(near, axis=-1), "queries": len(rows)}


def looks(layer, document, settings, orders):
    """Sums of attention to each offset, to the same token, and to what followed it before.

    as_far [H 2]: for both, what the head gives to other tokens at the same distances.
    """
    T, S = layer.seen.shape
    offset = np.arange(S) - np.arange(T)[:, None]
    repeated = [x & layer.seen for x in repeats(document, settings.cross, offset)]
    masks = [*(x & layer.seen for x in at_offsets(document, offset)), *repeated]
    pairs = [np.nonzero(mask) for mask in masks]
    # where a key lies in a shuffle: attention goes along with the key
    sums = [[_attention(layer.pattern, pair, order) for pair in pairs] for order in orders]
    table = np.moveaxis(np.array(sums), 1, 2)  # [O H masks]
    n = np.array([mask.any(axis=1).sum() for mask in masks])
    tokens = len(REPEATS)
    result = {"offsets": table[..., :-tokens], "tokens": table[..., -tokens:]}
    result |= {"offset_queries": n[:-tokens], "token_queries": n[-tokens:]}
    return result | {"as_far": np.stack([as_far(layer, x, offset) for x in repeated], axis=-1)}


def at_offsets(document, offset):
    """Masks [T S] of the keys at each offset; of a picture's patches at those of patches.py."""
    if hasattr(document, "grid"):
        return patches.at_offsets(document.grid)
    return [offset == x for x in OFFSETS]


def repeats(document, cross, offset):
    """Masks [T S] of keys, in the order of REPEATS, that a repeated token tells a query to look at.

    The same token elsewhere, and the token that followed an earlier one that is the same.
    """
    q_ids, k_ids = queries_of(document), keys_of(document, cross)
    is_same = q_ids[:, None] == k_ids
    if cross:
        return is_same, np.zeros_like(is_same)
    followed = np.pad(is_same[:, :-1], [(0, 0), (1, 0)])
    return is_same & (offset != 0), followed & (offset < 0)


def as_far(layer, mask, offset):
    """What a mask [T S] would get if heads knew distances alone, summed over its entries: [H].

    For each entry the mean attention to the keys at its offset that are not in the mask.
    """
    others = layer.seen & ~mask
    number = offset - offset.min()
    n = number.max() + 1
    entries = np.bincount(number[mask], minlength=n)
    known = np.maximum(np.bincount(number[others], minlength=n), 1)
    sums = [np.bincount(number[others], x[others], n) for x in layer.pattern]
    return np.array(sums) / known @ entries


def _attention(pattern, pair, order):
    """Attention to the keys of some rows that stand in an order [T S]: [H T S] -> [H]."""
    rows, keys = pair
    return pattern[:, rows, order[rows, keys]].sum(axis=-1)
