"""The residual stream of one text, layer by layer: whole, or split into what it is a sum of.

T tokens, L layers, D width.
"""

from collections import ChainMap

import numpy as np

from minitx.model import identity

from ..maths import residual as maths
from ..running import passes
from . import losses


def states(model, tokens, condition=None, **options):
    """Residual stream after the embeddings and after every layer: [L+1 T D].

    The last is after the final norm. condition, options: as for the losses.
    """
    return passes.value(states_read(model, tokens, condition, **options))


def states_read(model, tokens, condition=None, edits=passes.NOTHING, **options):
    """The Reading of `states`. edits: {point: array or f(x)}."""
    stream = []

    def watch(name, x, layer=None):
        if name == "resid_post" or (name == "resid_pre" and layer == 0):
            stream.append(x[0].copy())

    def value(final):
        return np.array([*stream[:-1], final[0]])  # the last as the final norm leaves it

    hook = identity if condition is None else losses.tap(model, condition)
    return passes.Reading(model, tokens, watch, value, edits, options, hook)


def unit_vectors(x):
    """Vectors of length 1, in float64: [... D] -> [... D]."""
    x = np.asarray(x, np.float64)
    return x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-30)


def walk(model, document, look, *, instead=({},), carried=False, watch=passes.unwatched):
    """A Reading that splits the stream along a pass: a list of look(stages, x) at every point.

    At each of maths.residual.stages, `stages` holds a Stage for every dictionary of `instead`; its
    arrays by name replace the points, and all else stays as it was. x [1 T D]: the stream.
    watch: sees the pass first. Only one layer's points are held at a time.
    """
    cfg = model.config
    held = {}
    arrays = model.weights, model.layers, cfg.pre_norm
    splits = [maths.split(ChainMap(own, held), *arrays, carried=carried) for own in instead]
    stops = maths.stages(cfg.n_layers, cfg.pre_norm)
    results = []

    def tap(name, x, layer=None):
        watch(name, x, layer)
        point = name if layer is None else (name, layer)
        if name.endswith(("embed", "_scale", "_out")) or (carried and name == "pattern"):
            held[point] = x
        if point in stops:
            results.append(look([next(split) for split in splits], x))
            held.clear()

    return passes.Reading(model, document, tap, lambda _: results)
