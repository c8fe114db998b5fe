"""Queries and keys as signals over positions, for the lag at which they fit.

Where a table tells positions, a layer's input X [T D] holds them, and queries and keys are X W_Q
and X W_K. Where queries and keys are turned by their place (Su et al. 2021) X holds none: there
they are read after the turn. T tokens, L layers, H heads, d width of a head, R lags. A signal is X,
or [2 H T d].
"""

import numpy as np

from minitx import head_weights

from ..contract.registry import NotApplicable
from ..maths import factors, profiles
from ..maths import lags as maths
from ..running import passes
from . import heads, inputs


def signals(model, bias):
    """The Inputs or Turned of a model; raises NotApplicable where scores have another part."""
    if model.config.rotary and not model.config.n_pos:
        return Turned(model)
    inputs.reachable(model)
    return Inputs(model, bias)


def middle(curve, reach):
    """The lags -reach ... reach of [... 2T - 1]."""
    centre = curve.shape[-1] // 2
    return curve[..., centre - reach : centre + reach + 1]


def summed(q, k, reach):
    """Sum of the scores at each lag near 0: [H T d] twice -> [H R]."""
    weights = np.ones((len(q), q.shape[-1]))
    return middle(maths.weighted(maths.xcov(q, k), weights), reach)


class Inputs:
    """A signal is the input of a layer [T D]; bias: add those of query and key."""

    def __init__(self, model, bias):
        self.model, self.bias = model, bias
        self.layers = inputs.layers(model)

    def of_document(self, document, reach):
        """A Reading: {layer: signal} and attention profiles [L H R] of a document."""
        reading = inputs.with_profiles(self.model, document, reach=reach)

        def value(final):
            X, attention = reading.value(final)
            return dict(enumerate(X)), attention

        return reading._replace(value=value)

    def of_positions(self, T, reach):
        """The same of positions alone, without a pass."""
        X = {layer: inputs.of_positions(self.model, layer, T) for layer in self.layers}
        attention = [heads.from_positions(self.model, x, T, reach) for x in self.layers]
        return X, np.array(attention)

    def reordered(self, x, order):
        """A signal with its places in another order."""
        return x[order]

    def scores(self, layer, of_query, of_key, reach):
        """Sum of the scores at each lag near 0, for every head of a layer: [H R]."""
        w, cfg = self.model.layers[layer], self.model.config
        sides = []
        for letter, x in zip("QK", (of_query, of_key)):
            b = head_weights.biases(w, cfg, letter)[:, None] * self.bias
            sides.append(x @ head_weights.matrices(w, cfg, letter) + b)
        return summed(*sides, reach)

    def factors(self, layer, head):
        """U_Q, S, U_K of a head: its columns by their singular values."""
        return factors.svd(*inputs.query_key(self.model, layer, head, self.bias))

    def columns(self, x, head, split):
        """Queries and keys of a head by column [T n] twice; split: its `factors`."""
        U_Q, _, U_K = split
        x = factors.with_ones(x) if self.bias else x
        return x @ U_Q, x @ U_K


class Turned:
    """A signal is queries and keys after the turn [2 H T d], with biases, as scores have them."""

    def __init__(self, model):
        if model.missing:
            raise NotApplicable(
                "needs the whole model, since its forward pass rotates queries and keys"
            )
        self.model = model
        self.layers = [*range(model.config.n_layers)]

    def of_document(self, document, reach):
        """A Reading: {layer: signal} and attention profiles [L H R] of a document."""
        kept, attention = {"q": [], "k": []}, []

        def watch(name, x, layer=None):
            if name in kept:
                kept[name].append(head_weights.for_each_head(x[0], self.model.config.n_heads))
            if name == "pattern":
                attention.append(profiles.profile(x[0], reach))

        def value(_):
            pairs = zip(kept["q"], kept["k"])
            return {layer: np.array(pair) for layer, pair in enumerate(pairs)}, np.array(attention)

        return passes.Reading(self.model, document, watch, value)

    def reordered(self, x, order):
        """A signal with its places in another order."""
        return x[:, :, order]

    def scores(self, layer, of_query, of_key, reach):
        """Sum of the scores at each lag near 0, for every head of a layer: [H R]."""
        return summed(of_query[0], of_key[1], reach)

    def factors(self, layer, head):
        """Every feature is a column, those of the fastest pairs first, and all weigh alike."""
        d = self.model.config.d_head
        return np.eye(d), np.ones(d), np.eye(d)

    def columns(self, x, head, split):
        """Queries and keys of a head by column [T n] twice."""
        return x[0, head], x[1, head]
