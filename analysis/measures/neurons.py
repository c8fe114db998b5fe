"""One score element by element: q and k of a pair of tokens in a head, and their products.

score = scale sum_e q_e k_e + what the model adds by distance. q and k are sums over what was
written to the stream (maths/residual.py), so that each product is one of words', positions' and the
rest's. d width of a head.
"""

import numpy as np

import minitx
from minitx import head_weights

from ..maths import residual
from . import inputs

REST = 2  # of words, positions and the rest
CLOSE = 1e-3  # of the largest element: parts that miss q or k by more are not exact


def of_pair(model, tokens, layer, head, query, key, **options):
    """q and k [d], the factor and the score; what words and positions hold of it, or None.

    options: further keywords of `minitx.run`. "shares" [3 3]: the products of the query's words,
    positions and the rest with the key's, which sum to the product of q and k; None without a
    table of positions. Raises NotApplicable for a model that caps its scores.
    """
    inputs.check_uncapped(model)
    trace = minitx.run(model, tokens, **options)
    group = model.config.n_heads // model.config.n_kv
    q, k = trace["q", layer][0, head, query], trace["k", layer][0, head // group, key]
    scale = model.config.attn_scale(layer)
    answer = {"q": q.tolist(), "k": k.tolist(), "scale": float(scale)}
    score = float(trace["scores", layer][0, head, query, key])
    if not np.isfinite(score):
        raise ValueError(f"query {query} does not see key {key} in layer {layer}")
    answer["score"] = score
    parts = _parts(model, trace, layer, head, (query, key))
    if parts is None or not all(map(_is_exact, parts, (q, k))):
        return answer | {"shares": None}
    return answer | {"shares": (parts[0] @ parts[1].T * scale).tolist()}


def _parts(model, trace, layer, head, places):
    """q and k [3 d] by word, position and the rest, or None."""
    cfg, w = model.config, model.layers[layer]
    if model.weights.W_pos is None or cfg.rotary:
        return None
    point = ("ln1", layer) if cfg.pre_norm else ("resid_post", layer - 1)
    point = ("resid_pre", 0) if not cfg.pre_norm and layer == 0 else point
    stages = residual.split(trace, model.weights, model.layers, cfg.pre_norm)
    stage = next(stage for stage in stages if stage.point == point)
    both = []
    for place, letter in zip(places, "QK"):
        own = {name: part[0, place] for name, part in stage.parts.items()}
        named = own.pop("word"), own.pop("position")
        x = np.array([*named, sum(own.values())], np.float64)
        y = x @ head_weights.matrices(w, cfg, letter)[head]
        y[REST] += head_weights.biases(w, cfg, letter)[head]
        both.append(y)
    return both


def _is_exact(parts, whole):
    """Whether parts [3 d] sum to a query or a key [d]."""
    return abs(parts.sum(axis=0) - whole).max() <= CLOSE * abs(whole).max()
