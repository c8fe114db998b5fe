"""Heads by name and by what they do. Layers and heads count from 0 (L0H0); the paper's head(1,1) is the same one.

Order: names, then the choice behind --head auto. L layers (of a partial checkpoint: those whose query and key
weights are there), H heads, T tokens, R offsets.
"""

import re

import numpy as np

from minitx.kernels import softmax_

from . import inputs, profiles, stream

SHARP = 0.5  # mean attention to one offset from which a head counts as looking at a position
LOOKED_AT = 8  # documents from which heads are chosen


def name(layer, head):
    """L0H0."""
    return f"L{layer}H{head}"


def papers_name(layer, head):
    """head(1,1): the paper counts from 1."""
    return f"head({layer + 1},{head + 1})"


def parse(names, config):
    """'L0H0,L2H3' -> [(0, 0), (2, 3)]; ValueError for what is no head of the model."""
    found = []
    for one in filter(None, re.split(r"[,\s]+", names)):
        parts = re.fullmatch(r"L(\d+)H(\d+)", one)
        pair = tuple(map(int, parts.groups())) if parts else (config.n_layers, 0)
        if pair[0] >= config.n_layers or pair[1] >= config.n_heads:
            last = name(config.n_layers - 1, config.n_heads - 1)
            raise ValueError(f"{one!r} is no head of this model: wanted L0H0 to {last}, joined by commas, or auto")
        found.append(pair)
    if not found:
        raise ValueError("--head names no head: wanted L0H0,L1H2 or auto")
    return found


def chosen(names, model, documents=None):
    """Heads by name, or for 'auto' the sharpest to the left, to the right, and the broadest on these documents.

    Without documents they are chosen by attention from positions alone. ValueError for a layer without weights.
    """
    there = inputs.layers(model)
    if names == "auto":
        return [(there[i], head) for i, head in auto(mean_attention(model, documents))]
    found = parse(names, model.config)
    if lacking := [name(*pair) for pair in found if pair[0] not in there]:
        raise ValueError(f"{', '.join(lacking)}: no query and key weights in this checkpoint; "
                         f"those of layers {', '.join(map(str, there))} are there")
    return found


def mean_attention(model, documents=None):
    """Mean attention by offset on the first documents, or from positions alone, for every head: [L H R]."""
    if documents is None:
        found = np.array([from_positions(model, layer) for layer in inputs.layers(model)])
        return profiles.mean_attention(found, model.config.n_ctx)
    few = documents.first(LOOKED_AT)

    def measure(_, document):
        return {"profile": stream.head_profiles(model, document)}
    found = stream.gather(measure, few, "choosing heads")["profile"] / len(few)
    return profiles.mean_attention(found, documents.T)


def from_positions(model, layer, T=None, reach=profiles.REACH):
    """Attention profiles of a layer's heads, were there nothing but positions in the stream: [H R]."""
    x = inputs.of_positions(model, layer, T)
    hide = np.where(np.tri(len(x), dtype=bool) | (not model.config.causal), 0, -np.inf).astype(x.dtype)
    found = []
    for head in range(model.config.n_heads):
        W_Q, W_K, b_Q, b_K = inputs.query_key(model, layer, head, bias=True)
        scores = (x @ W_Q + b_Q) @ (x @ W_K + b_K).T * model.config.attn_scale(layer) + hide
        found.append(profiles.profile(softmax_(scores), reach))
    return np.array(found)


def auto(attention):
    """The sharpest head to the left, to the right, and the broadest: [L H R] -> up to three pairs (layer, head).

    Sharp: the most attention to one offset. Broad: the most attention to all other tokens within reach, among the
    heads that give no single offset more than half of that.
    """
    offsets = profiles.offsets(attention.shape[-1] // 2)
    near = attention * (offsets != 0)
    side = [np.where(offsets * sign > 0, near, 0).max(axis=-1) for sign in (-1, 1)]
    broad = np.where(near.max(axis=-1) > 0.5 * near.sum(axis=-1), -1, near.sum(axis=-1))
    best = [np.unravel_index(measure.argmax(), measure.shape) for measure in (*side, broad) if measure.max() > 0]
    return [*dict.fromkeys((int(layer), int(head)) for layer, head in best)]
