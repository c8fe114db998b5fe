"""Attention and scores under the five conditions where positions enter the scores (rotary, a bias).

Words are averaged out: query and key of every layer are their means over words, before a position
turns them. Positions are off: nothing is turned, and no bias added. L layers, H heads, G heads of
keys, T tokens, R lags, n heads drawn, J columns drawn of each.
"""

from functools import partial

import numpy as np

from ..maths import lags as lag_maths
from ..maths import profiles
from ..maths import sources as maths
from ..measures import conditions, mean_kernel, position_edits
from ..running import passes

WORDS = {"positions": "words averaged out", "words": "positions off"}  # of these two conditions


class ScoresRead:
    """Reads a text under a condition; columns: of query and key, the fastest turned pairs first."""

    def __init__(self, model, documents, pairs, columns, run):
        self.model, self.pairs, self.columns = model, pairs, columns
        self.reach = conditions.reach(documents.T)
        means = mean_kernel.overall(model, mean_kernel.means(model, documents, run))
        self.means = dict(zip(mean_kernel.before_turn(model), means))

    def words(self, name):
        """What a condition is called."""
        return WORDS.get(name, conditions.CONDITIONS[name].words)

    def reading(self, tokens, name):
        """A Reading of attention [L H R], scores [L H R] and xcorr [n R J] under a condition."""
        off = position_edits.off(self.model.config) if name == "words" else passes.NOTHING
        hook = self._averaged if name == "positions" else passes.identity
        return self._reading(tokens, self._measure, edits=off, hook=hook)

    def shuffled(self, document, order):
        """A Reading of the scores [L H R] of a document whose tokens stand in another order."""
        return self._reading(document, partial(self._scores, order=order))

    def _averaged(self, name, x, layer=None):
        """The hook that puts mean queries and keys in the place of a token's own."""
        if name not in self.means:
            return x
        return np.broadcast_to(self.means[name][layer][None, :, None], x.shape).astype(x.dtype)

    def _reading(self, tokens, measure, **changes):
        """A Reading of measure(list of each layer's q, k, scores and pattern by name)."""
        layers = []

        def watch(name, x, layer=None):
            if name == "q":
                layers.append({})
            if name in ("q", "k", "scores", "pattern"):
                layers[-1][name] = x[0].copy()

        def value(_):
            return measure(layers)

        return passes.Reading(self.model, tokens, watch, value, **changes)

    def _measure(self, layers):
        """Attention and scores of all heads [L H R], xcorr [n R J] of those drawn."""
        attention = np.array([profiles.profile(x["pattern"], self.reach) for x in layers])
        curves = [self._columns(layers[layer], head) for layer, head in self.pairs]
        return {"attention": attention, "scores": self._scores(layers), "xcorr": np.array(curves)}

    def _columns(self, points, head):
        """xcorr [R J] of a head's queries and keys."""
        shared = len(points["q"]) // len(points["k"])
        q, k = points["q"][head], points["k"][head // shared]
        curves = lag_maths.xcorr(q[:, : self.columns], k[:, : self.columns])
        return curves[len(q) - 1 - profiles.REACH : len(q) + profiles.REACH]

    def _scores(self, layers, order=slice(None)):
        """Sum of the scores at each lag near 0: [L H R]; of hidden keys the product alone."""
        by_layer = []
        for i, points in enumerate(layers):
            product = mean_kernel.product(points["q"], points["k"], self.model.config.attn_scale(i))
            scores = np.where(np.isneginf(points["scores"]), product, points["scores"])
            sums = maths.diagonal_sums(scores[:, order][:, :, order])
            T = scores.shape[-1]
            by_layer.append(sums[:, T - 1 - profiles.REACH : T + profiles.REACH])
        return np.array(by_layer)
