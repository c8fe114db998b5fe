"""Heads by name and by what they do.

Layers and heads count from 0 (L0H0); the paper's head(1,1) is the same one. L layers (of a partial
checkpoint: those whose query and key weights are there), H heads, T tokens, R offsets.
"""

import re

import numpy as np

from minitx.kernels import softmax_

from ..machine import language
from ..maths import profiles
from ..running import passes, stream
from . import inputs

SHARP = 0.5  # mean attention to one offset from which a head counts as looking at a position
LOOKED_AT = 8  # documents from which heads are chosen


def name(layer, head):
    """Name of a head: L0H0."""
    return f"L{layer}H{head}"


def papers_name(layer, head):
    """Name of a head in the paper, which counts from 1: head(1,1)."""
    return f"head({layer + 1},{head + 1})"


def named(pairs):
    """Results that name heads drawn, as (layer, head): here, and as the paper counts them."""
    names = np.array([name(*pair) for pair in pairs])
    return {"heads": names, "papers_heads": np.array([papers_name(*pair) for pair in pairs])}


def parse(names, config):
    """'L0H0,L2H3' -> [(0, 0), (2, 3)]; L1 is all heads of a layer, head(1,1) the paper's L0H0.

    Raises ValueError if a name is not a head of this model, or if there is none.
    """
    parts = re.findall(r"head\([^)]*\)|[^,\s]+", names)
    pairs = [pair for text in parts for pair in _parse_name(text, config)]
    if not pairs:
        raise ValueError("--head names no head: wanted L0H0,L1H2 or auto")
    return [*dict.fromkeys(pairs)]


def _parse_name(text, config):
    """'L2H3' -> [(2, 3)]; 'L2' -> all of this layer."""
    own = re.fullmatch(r"L(\d+)(?:H(\d+))?", text)
    papers = re.fullmatch(r"head\(\s*(\d+)\s*,\s*(\d+)\s*\)", text)
    layer, heads = -1, range(config.n_heads)
    if own:
        layer = int(own[1])
        heads = [int(own[2])] if own[2] else heads
    elif papers:
        layer = int(papers[1]) - 1
        heads = [int(papers[2]) - 1]
    if 0 <= layer < config.n_layers and 0 <= heads[0] < config.n_heads:
        return [(layer, head) for head in heads]
    last = name(config.n_layers - 1, config.n_heads - 1)
    raise ValueError(
        f"{text!r} is not a head of this model: wanted L0H0 to {last}, joined by commas, L0 for "
        "all of a layer, head(1,1) as the paper counts, or auto"
    )


def select(names, model, documents=None, run=stream.UNSAVED, among=None):
    """Heads by name, or for 'auto' the sharpest to the left, to the right, and the broadest.

    'auto' uses attention on these documents or, without documents, attention from positions
    alone; pruned heads, which attend to all tokens alike, are left out. among: layers of which they
    are chosen (None: all). Raises ValueError for a layer without weights.
    """
    layers = inputs.layers(model)
    if names == "auto":
        attention = mean_attention(model, documents, run)
        places = [(layers[i], head) for i, head in np.ndindex(attention.shape[:2])]
        is_other = [among is not None and layer not in among for layer, _ in places]
        left_out = is_other | np.array([inputs.is_pruned(model, *place) for place in places])
        if not left_out.all():
            attention[left_out.reshape(attention.shape[:2])] = 0
        return [(layers[i], head) for i, head in auto(attention)]
    pairs = parse(names, model.config)
    lacking = [name(layer, head) for layer, head in pairs if layer not in layers]
    if lacking:
        raise ValueError(
            f"{', '.join(lacking)}: no query and key weights in this checkpoint; "
            f"those of layers {', '.join(map(str, layers))} are there"
        )
    return pairs


def mean_attention(model, documents=None, run=stream.UNSAVED):
    """Mean attention by offset for every head: [L H R].

    On the first documents, or from positions alone if there are none.
    """
    if documents is None:
        return attention_to_positions(model)
    few = documents.first(LOOKED_AT)
    return attention_over(model, few, documents.T, run, "choosing heads")


def attention_to_positions(model, T=None):
    """Mean attention by offset if the stream held T positions alone, of every head: [L H R]."""
    by_layer = [from_positions(model, layer, T) for layer in inputs.layers(model)]
    return profiles.mean_attention(np.array(by_layer), T or model.config.n_ctx)


def attention_over(model, documents, T, run=stream.UNSAVED, what="reading attention"):
    """Mean attention by offset over documents of T tokens, of every head: [L H R].

    what: words for the progress of this pass.
    """

    def measure(_, document):
        return {"profile": (yield profiles_read(model, document))}

    total = run.gather(measure, documents, what)["profile"]
    return profiles.mean_attention(total / len(documents), T)


def from_positions(model, layer, T=None, reach=profiles.REACH):
    """Attention profiles of a layer's heads if the stream held positions alone: [H R]."""
    x = inputs.of_positions(model, layer, T)
    is_seen = profiles.visible(len(x), model.config.causal)
    causal_mask = np.where(is_seen, 0, -np.inf).astype(x.dtype)
    by_head = []
    for head in range(model.config.n_heads):
        W_Q, W_K, b_Q, b_K = inputs.query_key(model, layer, head, bias=True)
        q = x @ W_Q + b_Q
        k = x @ W_K + b_K
        scores = q @ k.T * model.config.attn_scale(layer) + causal_mask
        by_head.append(profiles.profile(softmax_(scores), reach))
    return np.array(by_head)


def auto(attention):
    """The sharpest head to the left, to the right, and the broadest: [L H R] -> up to three pairs.

    Pairs are (layer, head). Sharp: the most attention to one offset. Broad: the most attention to
    all other tokens within reach, among the heads whose attention to each single offset is at most
    half of this.
    """
    offsets = profiles.offsets(attention.shape[-1] // 2)
    near = attention * (offsets != 0)
    left = np.where(offsets < 0, near, 0).max(axis=-1)
    right = np.where(offsets > 0, near, 0).max(axis=-1)
    total = near.sum(axis=-1)
    broad = np.where(near.max(axis=-1) > 0.5 * total, -1, total)
    pairs = []
    for measure in (left, right, broad):
        layer, head = np.unravel_index(measure.argmax(), measure.shape)
        pair = int(layer), int(head)
        if measure.max() > 0 and pair not in pairs:
            pairs.append(pair)
    return pairs


def by_strength(attention, directed):
    """Heads with a direction, by how much attention they give to their offset: [L H], bool [L H].

    {"strengths": names of the bands, "n_by_strength": heads in each}.
    """
    names = np.array([*profiles.STRENGTHS])
    return {"strengths": names, "n_by_strength": profiles.by_strength(attention, directed)}


def describe_strengths(r):
    """' Heads by the attention to their offset: 0.1 to 0.25: 2; ….', nothing without heads."""
    if not r["n_directed"]:
        return ""
    pairs = zip(r["strengths"], r["n_by_strength"])
    counts = "; ".join(f"{language.label(str(name))}: {n}" for name, n in pairs)
    return language.filled(" Heads by the attention to their offset: {counts}.", counts=counts)


def head_profiles(model, document, edits=passes.NOTHING, reach=profiles.REACH, source=None):
    """Attention of every head to each offset, summed over queries: ids [T] -> [L H R].

    reach: offsets from -reach to reach, R of them. edits: {point: f(x)}, which replaces x. source:
    the ids [S] that a decoder reads in its cross-attention.
    """
    return passes.value(profiles_read(model, document, edits, reach, source))


def profiles_read(model, document, edits=passes.NOTHING, reach=profiles.REACH, source=None):
    """The Reading of `head_profiles`."""

    def measure(points, layer):
        return profiles.profile(points["pattern"][0], reach)

    return _by_layer(model, document, edits, measure, np.array, source)


def score_profiles_read(model, document, edits=passes.NOTHING, reach=profiles.REACH, source=None):
    """The Reading of profiles of attention and of `scores_before_mask` of every head: [2 L H R]."""
    inputs.check_uncapped(model)

    def measure(points, layer):
        scores = scores_before_mask(points["q"][0], points["k"][0], model.config.attn_scale(layer))
        both = (points["pattern"][0], scores)
        return [profiles.profile(x, reach) for x in both]

    return _by_layer(model, document, edits, measure, lambda x: np.array(x).swapaxes(0, 1), source)


def scores_before_mask(q, k, scale):
    """Scores of all pairs, masked ones too, minus the mean of each query: [... T S].

    In a trace hidden scores are -inf already, so they are computed again: [... T d], [... S d]. A
    constant for a query changes no attention.
    """
    scores = scale * q @ k.swapaxes(-1, -2)
    return scores - scores.mean(axis=-1, keepdims=True)


def _by_layer(model, document, edits, measure, value, source=None):
    """A Reading: value(list of measure({point: array}, layer) of every layer's q, k, pattern)."""
    measured, points = [], {}

    def watch(name, x, layer=None):
        if name in ("q", "k", "pattern"):
            points[name] = x
        if name == "pattern":
            measured.append(measure(points, layer))

    options = {} if source is None else {"source": source}
    return passes.Reading(model, document, watch, lambda _: value(measured), edits, options)
