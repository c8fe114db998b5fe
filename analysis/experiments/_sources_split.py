"""Queries and keys of every layer by the sources of what they are computed from.

With the scale of every norm held at its value, the input of an attention layer is a sum of what was
written to the stream (maths/residual.py), and so are its queries and keys:

- `position`: in layer 0 the position table's own part, exactly. In later layers the mean at a
  position over documents, from whatever part wrote it: for queries over one half of them, for keys
  over the other, so that no text is on both sides. What all positions have in common is not counted
  as position and is left to the other sources.
- `word`: the word embedding's own part.
- `layers`: what attention and MLPs wrote, minus its `position` part.
- `type`, `bias`: the token type's part; the biases of norms, of what was written, of queries and
  keys.

C sources, L layers, H heads, T tokens, D width, d width of a head.
"""

from typing import NamedTuple

import numpy as np

from minitx import head_weights
from minitx.kernels import mean_and_inverse_std

from ..maths import residual as maths
from ..measures import inputs, residual_stream
from ..running import passes

SOURCES = "position", "word", "layers", "type", "bias"
HALVES = "places_even", "places_odd"  # sums over the documents with even and with odd numbers


class Places(NamedTuple):
    """Mean position at every layer's input, over two halves of the documents."""

    halves: np.ndarray  # [2 L T D]; the mean over all places is taken off
    common: np.ndarray  # [L D], that mean


class Split(NamedTuple):
    """Queries and keys of one layer on one document."""

    q: np.ndarray  # [C H T d], times the factor that scores have
    k: np.ndarray  # [C H T d]
    scores: np.ndarray  # [H T T], from the input as it is, not from its parts
    # {(source of the query, of the key), by number: [H T T]}: what is added to their product
    added: dict = {}  # noqa: RUF012


def places(model, documents, run):
    """Positions over the documents with even and with odd numbers; 2 or more are needed.

    For layer 0 it is the position table's part, for later layers the whole input.
    """

    def measure(i, document):
        by_layer = []

        def look(layer, parts, x):
            by_layer.append(x if layer else parts["position"])

        yield _walk(model, document, look)
        return {HALVES[i % 2]: np.array(by_layer)}

    sums = run.gather(measure, documents, "positions")
    n = len(documents)
    means = np.array([sums[HALVES[0]] / ((n + 1) // 2), sums[HALVES[1]] / (n // 2)])
    return _centred(means)


def _centred(means):
    """Positions from means [2 L T D]."""
    common = means.mean(axis=(0, 2))
    return Places(means - common[:, None], common)


def along(model, document, placed, half, look, watch=passes.unwatched):
    """A Reading: a list of look(layer, Split) for every layer of a forward pass.

    placed: Places. half: 0 or 1, the half whose positions the queries have; keys have the other's.
    watch: sees the pass.
    """

    def look_at_parts(layer, parts, x):
        sides = []
        for side in (half, 1 - half):
            place = placed.halves[side, layer].astype(x.dtype)
            sides.append(_by_source(parts, layer, place, placed.common[0].astype(x.dtype)))
        return look(layer, _split(model, layer, *sides, x))

    return _walk(model, document, look_at_parts, watch)


def _walk(model, document, look, watch=passes.unwatched):
    """A Reading: look(layer, parts {name: [T D]}, x [T D]) of every layer's input, in a list."""
    cfg = model.config
    results = []

    def visit(stages, x):
        layer = _reading_layer(stages[0].point, cfg)
        if layer is not None:
            parts = {name: part[0] for name, part in stages[0].parts.items()}
            results.append(look(layer, parts, x[0]))

    split = residual_stream.walk(model, document, visit, watch=watch)
    return split._replace(value=lambda _: results)


def _reading_layer(point, cfg):
    """Number of the layer whose attention reads the stream at a point; None: none does."""
    name, layer = point if isinstance(point, tuple) else (point, None)
    if cfg.pre_norm:
        return layer if name == "ln1" else None
    layer += name == "resid_post"
    return layer if layer < cfg.n_layers else None


def _by_source(parts, layer, place, common):
    """The input of a layer by source [C T D], which sum to it."""
    zeros = np.zeros_like(parts["word"])
    position, bias = parts["position"] - common, parts["bias"] + common
    written = zeros
    if layer:
        written = parts["attention"] + parts["mlp"] + parts["position"] - place
        position, bias = place, parts["bias"]
    return np.array([position, parts["word"], written, parts.get("type", zeros), bias])


def _split(model, layer, X_q, X_k, x):
    """The Split of a layer from its input: by source [C T D] for queries and keys, and whole."""
    cfg, w = model.config, model.layers[layer]
    scale = cfg.attn_scale(layer)
    q, k = project(X_q, w, cfg, "Q") * scale, project(X_k, w, cfg, "K")
    whole_q, whole_k = (project(x[None], w, cfg, letter)[0] for letter in "QK")
    whole_q = whole_q * scale
    return Split(q, k, whole_q @ whole_k.swapaxes(-1, -2))


def project(X, w, cfg, letter, bias=1.0):
    """Queries, or keys, of every source; the bias joins the last: [C T D] -> [C H T d]."""
    y = X[:, None] @ head_weights.matrices(w, cfg, letter)
    y[-1] += bias * head_weights.biases(w, cfg, letter)[:, None]
    return y


def of_positions(model, T):
    """The Split of every layer that is there if the stream held positions alone, and Places.

    In layer 0 that is exact up to the norm's scale, which words would change; later layers read
    what they would read if the layers before had written nothing.
    """
    splits, placed = [], []
    for layer in inputs.layers(model):
        parts, x = _parts_of_positions(model, layer, T)
        common = parts["position"].mean(axis=0)
        X = _by_source(parts, 0, None, common)
        splits.append(_split(model, layer, X, X, x))
        placed.append(parts["position"])
    return splits, _centred(np.array([placed, placed]))


def _parts_of_positions(model, layer, T):
    """Parts {name: [T D]} of a layer's input, and the input [T D], with nothing but positions."""
    cfg, w = model.config, model.weights
    x = inputs.of_positions(model, layer, T)
    position = inputs.reachable(model)[:T]
    parts = {"word": np.zeros_like(position), "position": position}
    if w.W_type is not None and cfg.default_type is not None:
        parts["type"] = np.broadcast_to(w.W_type[cfg.default_type], position.shape)
    parts["bias"] = np.zeros_like(position)
    norm = inputs.norm_before(model, layer)
    if norm is None:
        return parts, x
    _, scale = mean_and_inverse_std(sum(parts.values()), cfg.eps)
    return maths.frozen(parts, scale, *norm), x
