"""The residual stream of one text, layer by layer: whole, or split into what it is a sum of.

T tokens, L layers, D width.
"""

from collections import ChainMap

import numpy as np

from minitx import forward
from minitx.model import identity

from ..maths import residual as maths
from . import losses


def states(model, tokens, condition=None, **options):
    """Residual stream after the embeddings and after every layer: [L+1 T D].

    The last is after the final norm. condition, options: as for the losses.
    """
    stream = []
    condition_hook = losses.tap(model, condition)

    def hook(name, x, layer=None):
        x = condition_hook(name, x, layer)
        if name == "resid_post" or (name == "resid_pre" and layer == 0):
            stream.append(x[0].copy())
        return x

    final = forward(model, tokens, hook=hook, **options)[0]
    return np.array([*stream[:-1], final])  # the last layer's stream as the final norm leaves it


def unit_vectors(x):
    """Vectors of length 1, in float64: [... D] -> [... D]."""
    x = np.asarray(x, np.float64)
    return x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-30)


def walk(model, document, look, *, instead=({},), carried=False, hook=identity):
    """Split the stream along a forward pass; what look(stages, x) gives at every point, a list.

    At each of maths.residual.stages, `stages` holds a Stage for every dictionary of `instead`; its
    arrays by name take the place of the points, all else staying as it was. x [1 T D]: the stream.
    hook: sees the pass first. Only one layer's points are held at a time.
    """
    cfg = model.config
    held = {}
    arrays = model.weights, model.layers, cfg.pre_norm
    splits = [maths.split(ChainMap(own, held), *arrays, carried=carried) for own in instead]
    stops = maths.stages(cfg.n_layers, cfg.pre_norm)
    results = []

    def tap(name, x, layer=None):
        x = hook(name, x, layer)
        point = name if layer is None else (name, layer)
        if name.endswith(("embed", "_scale", "_out")) or (carried and name == "pattern"):
            held[point] = x
        if point in stops:
            results.append(look([next(split) for split in splits], x))
            held.clear()
        return x

    forward(model, document, hook=tap)
    return results
