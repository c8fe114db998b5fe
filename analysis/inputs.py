"""What the attention layers read, and the weights with which they read it. T tokens, D width, d width of a head.

Order: the input of a text, the input of positions alone, the weights of one head.
"""

import numpy as np

from minitx import forward
from minitx.kernels import moments, normalise

from .registry import Unfit


def reachable(model):
    """Rows of the position table that a token can read, first token first: [T D]."""
    cfg = model.config
    if model.weights.W_pos is None:
        raise Unfit("needs the position table, which this checkpoint lacks")
    return np.asarray(model.weights.W_pos[cfg.offset:cfg.offset + cfg.n_ctx])


def of_text(model, document, edits=()):
    """Input X [L T D] of every attention layer on one document [T]; edits: {point: array or f(x)} as in `run`."""
    point, edits, found = "ln1" if model.config.pre_norm else "resid_pre", dict(edits), []

    def tap(name, x, layer=None):
        if name in edits:
            x = np.ascontiguousarray(edits[name](x) if callable(edits[name]) else edits[name], x.dtype)
        if name == point:
            found.append(x[0].copy())
        return x
    forward(model, document, at=tap)
    return np.array(found)


def of_positions(model, layer=0, T=None):
    """Input X [T D] of a layer, were there nothing but positions in the stream.

    Exact share of the input in layer 0 up to the norm's scale, which words would change; in later layers what it
    would be if the layers before had written nothing.
    """
    cfg, w = model.config, model.weights
    x = reachable(model)[:T]
    if w.W_type is not None and cfg.default_type is not None:
        x = x + w.W_type[cfg.default_type]
    gain, bias = (model.layers[layer].ln1_w, model.layers[layer].ln1_b) if cfg.pre_norm \
        else (w.ln_embed_w, w.ln_embed_b)
    if gain is None or bias is None:
        raise Unfit(f"needs the norm before layer {layer}, which this checkpoint lacks")
    return normalise(x, *moments(x, cfg.eps), gain, bias)


def layers(model):
    """Numbers of the layers whose query and key weights are there."""
    found = [w.index for w in model.layers if not any(x is None for x in (w.W_Q, w.W_K, w.b_Q, w.b_K))]
    if not found:
        raise Unfit("needs query and key weights, which this checkpoint lacks")
    return found


def query_key(model, layer, head, bias=False):
    """W_Q [D d] and W_K [D d] of one head, and with bias=True b_Q [d] and b_K [d] behind them."""
    w, part = model.layers[layer], slice(head * model.config.d_head, (head + 1) * model.config.d_head)
    if w.W_Q is None or w.W_K is None:
        raise ValueError(f"layer {layer} has no query and key weights in this checkpoint; layers {layers(model)} have")
    return [x[..., part] for x in ((w.W_Q, w.W_K, w.b_Q, w.b_K) if bias else (w.W_Q, w.W_K))]
