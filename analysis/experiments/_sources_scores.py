"""Scores split by whether words change them, where positions enter the scores (rotary, a bias).

A query is its mean over words, the same everywhere before a position turns it, and what its word
adds. `position` is the mean query or key as its place turns it, and with it the bias by distance;
`word` is the rest. So position × position is the kernel of a head, exactly what no word changes.
Queries have the mean of one half of the documents, keys of the other. In DeBERTa a query that is
compared with a distance is split in the same way: the mean one belongs to position × position.

L layers, H heads, G heads of keys, T tokens, d width of a head, R lags, W bands, r pairs.
"""

import numpy as np

from minitx import distances, head_weights

from ..maths import positional_kernel, profiles
from ..maths import sources as maths
from ..measures import mean_kernel, score_moves
from . import _sources_split as split

POSITION, WORD = (split.SOURCES.index(name) for name in ("position", "word"))


class Means:
    """Mean queries [L H d] and keys [L G d] over words and positions, of halves of documents."""

    def __init__(self, model, documents, run):
        by_place = mean_kernel.means(model, documents, run)
        self.model = model
        self.queries, self.keys = (
            [by_place[f"{name}_{half}"].mean(axis=2) for half in mean_kernel.HALVES]
            for name in mean_kernel.before_turn(model)
        )

    def split(self, part, half):
        """The Split of a Part: queries have the means of this half, keys those of the other."""
        model, layer = self.model, part.layer
        places = np.arange(part.q.shape[1])
        q = self._by_source(part.q, self.queries[half][layer], places, layer)
        k = self._by_source(part.k, self.keys[1 - half][layer], places, layer)
        k = head_weights.for_each_head(k, q.shape[1], axis=1)
        scores = score_moves.scores(model, part, places, places)
        distance = places - places[:, None]
        added = {}
        bias = mean_kernel.added(model, distance)
        if bias is not None:
            added[POSITION, POSITION] = bias
        if model.config.pos_terms:
            added = _terms(model, layer, q, k, distance)
        return split.Split(q * model.config.attn_scale(layer), k, scores, added)

    def _by_source(self, x, mean, places, layer):
        """Queries or keys [H T d] by source, each as positions turn it: [C H T d]."""
        result = np.zeros((len(split.SOURCES), *x.shape), x.dtype)
        result[POSITION] = self._turn(np.broadcast_to(mean[:, None], x.shape), places, layer)
        result[WORD] = self._turn(x, places, layer) - result[POSITION]
        return result

    def _turn(self, x, places, layer):
        """x [H T d] as these positions turn it in a layer."""
        rotary = self.model.config.rotary
        if not rotary or rotary[layer] is None:
            return x
        return score_moves.turn(np.ascontiguousarray(x), places, rotary[layer])

    def positions(self, layer, T):
        """The Positions of a layer."""
        pairs = [(self.queries[half][layer], self.keys[1 - half][layer]) for half in (0, 1)]
        return Positions(self.model, layer, pairs, T)


def _terms(model, layer, q, k, distance):
    """What DeBERTa's terms add to the products of sources: {(source, source): [H T T]}."""
    added = {}
    for source in (POSITION, WORD):
        by_name = mean_kernel.terms(model, layer, q[source], k[source], distance)
        for name, x in by_name.items():
            pair = (source, POSITION) if name == "c2p" else (POSITION, source)
            added[pair] = added.get(pair, 0.0) + x
    return added


class Positions:
    """Position × position of one layer on T positions, from mean queries and keys."""

    def __init__(self, model, layer, pairs, T):
        self.model, self.layer, self.pairs, self.T = model, layer, pairs, T
        self.embed = None
        if model.config.pos_terms:
            self.embed = distances.table(model.config, model.weights)

    def scores(self, order=None):
        """Scores [H T T], the queries' positions in this order or their own."""
        places = np.arange(self.T)
        order = places if order is None else order
        total = 0
        for query, key in self.pairs:
            q, k = (np.repeat(x[:, None], self.T, axis=1) for x in (query, key))
            part = score_moves.Part(self.layer, q, k, None, self.embed)
            total = total + score_moves.scores(self.model, part, order, places)
        return total / len(self.pairs)

    def shuffled(self, order):
        """Sums by lag with the query positions in another order: [H R]."""
        near = profiles.REACH
        sums = maths.diagonal_sums(self.scores(order))
        return sums[:, self.T - 1 - near : self.T + near]

    def by_band(self, band, n):
        """Sums by lag of the turned pairs of each band with themselves, [W W H R]; a bias has none.

        band: as `bands` gives it.
        """
        lags = profiles.offsets()
        H = self.model.config.n_heads
        result = np.zeros((n, n, H, len(lags)))
        rotary = self.model.config.rotary
        if not rotary or rotary[self.layer] is None:
            return result
        turn = rotary[self.layer].for_length(self.T)
        scale = self.model.config.attn_scale(self.layer) * turn.scale**2 / len(self.pairs)
        frequencies = np.array(turn.frequencies)
        own = _band_of(frequencies, n)
        for query, key in self.pairs:
            for w in range(n):
                inside = np.tile(own == w, 2)
                q, k = (x[:, : len(inside)] * inside for x in (query, key))
                k = head_weights.for_each_head(k, H)
                result[w, w] += scale * positional_kernel.rotary(q, k, frequencies, lags)
        return result * (self.T - abs(lags))

    def flat(self, band, n):
        """Share of each band in a peak to which all pairs give alike, 0 without pairs: [W]."""
        turns = [turn.for_length(self.T) for turn in self.model.config.rotary if turn is not None]
        if not turns:
            return np.zeros(n)
        counts = np.bincount(_band_of(np.array(turns[0].frequencies), n), minlength=n)
        return counts / counts.sum()


def _band_of(frequencies, n):
    """The band [r] of each pair by its period, of those of `maths.bands`; slow ones the last."""
    edges = np.array(maths.EDGES[:n])
    return np.searchsorted(edges, 2 * np.pi / frequencies, side="right") - 1
