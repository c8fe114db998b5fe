"""What the residual stream is made of: an exact split into its parts, through the norms.

A LayerNorm maps x to w (x - mean(x)) / sigma + b. With the 1/sigma of each token frozen at its
value on this input, that is linear in x: each part c of the stream becomes w (c - mean(c)) / sigma,
and b joins the biases.

B batch, T tokens, S keys, H heads, D width. The parts are arrays [B T D] by name: word, position,
type, attention, mlp, bias, carried. What the walk hands on is a tuple (parts, scale, gain).

Order: `split`, the walk through the layers; its steps; what is measured of the parts.
"""

from typing import NamedTuple

import numpy as np


class Stage(NamedTuple):
    """The stream at one point of the forward pass, and what the norms up to it did to it.

    The parts sum to the stream, which is what the trace holds at that point:

    >>> import minitx
    >>> model = minitx.load("tiny-gpt2")
    >>> trace = minitx.run(model, "A dog")
    >>> stage = next(split(trace, model.weights, model.layers, pre_norm=True))
    >>> stage.point, np.allclose(sum(stage.parts.values()), trace[stage.point])
    (('resid_pre', 0), True)
    """

    # the trace's name for it: the parts sum to the array that the trace holds there
    point: object
    parts: dict  # name -> [B T D]
    # [B T] product of the norms' 1/sigma: the diagonal of S in the blog post's S P L
    scale: np.ndarray
    gain: np.ndarray  # [D] product of the norms' w behind any W_map: the diagonal of its L


def split(points, weights, layers, pre_norm, *, by_layer=False, carried=False):
    """Yield a Stage at each of `stages`; points are looked up only when its turn comes.

    points: {name or (name, layer): array} as a trace holds them: embed, pos_embed, type_embed (if
    there are types), the scale of each norm, attn_out, mlp_out, and pattern if `carried`. weights,
    layers: arrays by minitx's names. `bias` is every b_O, b_out and norm's b; what b_V gives is
    counted as attention. by_layer: attention and mlp of each layer apart, as ("attention", 3).
    carried: the position that attention moves to other tokens (by V and W_O with the pattern
    frozen), and what later layers move on from it, is a separate part and not counted as attention.

    The parts of the last stream:

    >>> import minitx
    >>> model = minitx.load("tiny-gpt2")
    >>> trace = minitx.run(model, "A dog")
    >>> *_, last = split(trace, model.weights, model.layers, model.config.pre_norm)
    >>> last.point, np.allclose(sum(last.parts.values()), trace["ln_final"], atol=1e-5)
    ('ln_final', True)
    >>> list(last.parts)
    ['word', 'position', 'bias', 'attention', 'mlp']
    """
    stream = _embedded(points, weights)
    yield Stage(("resid_pre", 0), *stream)
    for i, w in enumerate(layers):
        attended = stream  # what the attention layer reads
        if pre_norm:
            attended = _norm(stream, "ln1", points, w, i)
            yield Stage(("ln1", i), *attended)
        name = ("attention", i) if by_layer else "attention"
        moved = _moved(attended[0], points["pattern", i], w) if carried else None
        written = _written(name, points["attn_out", i], w.b_O)
        stream = _write(stream, written if moved is None else _carried(name, written, moved))
        if not pre_norm:
            stream = _norm(stream, "ln1", points, w, i)
        name = ("mlp", i) if by_layer else "mlp"
        stream = _write(stream, _written(name, points["mlp_out", i], w.b_out))
        if not pre_norm:
            stream = _norm(stream, "ln2", points, w, i)
        yield Stage(("resid_post", i), *stream)
    if pre_norm:
        yield Stage("ln_final", *_norm(stream, "ln_final", points, weights))


def stages(n_layers, pre_norm):
    """Where `split` stops: the stream before the first layer and after each.

    If pre_norm, also the normed stream that attention layers and the head read.

    For a model with one layer, with norms after each addition as in BERT, or before as in GPT-2:

    >>> stages(1, pre_norm=False)
    [('resid_pre', 0), ('resid_post', 0)]
    >>> stages(1, pre_norm=True)
    [('resid_pre', 0), ('ln1', 0), ('resid_post', 0), 'ln_final']
    """
    points = [("resid_pre", 0)]
    for i in range(n_layers):
        if pre_norm:
            points.append(("ln1", i))
        points.append(("resid_post", i))
    if pre_norm:
        points.append("ln_final")
    return points


def _embedded(points, weights):
    """(parts, scale, gain) of the first layer's input."""
    names = {"word": "embed", "position": "pos_embed", "type": "type_embed"}
    parts = {part: points[name] for part, name in names.items() if name in points}
    zeros = np.zeros_like(parts["word"])
    stream = parts | {"bias": zeros}, 1 + zeros[..., 0], 1 + zeros[0, 0]
    if weights.ln_embed_w is None:
        return stream
    return _mapped(_norm(stream, "ln_embed", points, weights), weights)


def _mapped(stream, weights):
    """(parts, scale, gain) at the width of the stream, where embeddings have another (ALBERT)."""
    W_map = getattr(weights, "W_map", None)
    if W_map is None:
        return stream
    parts = {name: x @ W_map for name, x in stream[0].items()}
    parts["bias"] = parts["bias"] + weights.b_map
    return parts, stream[1], np.ones(W_map.shape[1])


def _norm(stream, name, points, w, layer=None):
    """(parts, scale, gain) after the norm `name`."""
    parts, scale_before, gain_before = stream
    point = f"{name}_scale"
    scale = points[point] if layer is None else points[point, layer]
    weight = getattr(w, f"{name}_w")
    bias = getattr(w, f"{name}_b")
    if bias is None:
        bias = np.zeros_like(weight)
    return frozen(parts, scale, weight, bias), scale_before * scale, gain_before * weight


def _write(stream, new):
    """(parts, scale, gain) with what a layer adds."""
    parts, scale, gain = stream
    return parts | {name: parts.get(name, 0.0) + x for name, x in new.items()}, scale, gain


def _written(name, out, b):
    """The parts that attention or an MLP writes; some models have no biases."""
    return {name: out} if b is None else {name: out - b, "bias": b}


def _carried(name, written, moved):
    """The parts that attention writes, with what it moved as a part of its own."""
    return written | {name: written[name] - moved, "carried": moved}


def _moved(parts, pattern, w):
    """What attention makes of the position part and of what was moved before."""
    return carry(parts["position"] + parts.get("carried", 0.0), pattern, w.W_V, w.W_O)


def frozen(parts, scale, w, b):
    """Parts after a LayerNorm with given 1/sigma, scale [B T]: w (c - mean(c)) scale.

    b joins the part `bias`.

    With the norm's mean taken off and its scale, here 2, as it was on this input:

    >>> parts = {"word": np.array([[[3.0, 1.0]]]), "bias": np.zeros((1, 1, 2))}
    >>> frozen(parts, scale=np.array([[2.0]]), w=np.ones(2), b=np.array([0.5, 0.5]))
    {'word': array([[[ 2., -2.]]]), 'bias': array([[[0.5, 0.5]]])}
    """
    passed = {
        name: (c - c.mean(-1, keepdims=True)) * scale[..., None] * w for name, c in parts.items()
    }
    return passed | {"bias": passed["bias"] + b}


def carry(x, pattern, W_V, W_O):
    """What attention makes of x [B T D] with its pattern [B H T S] frozen and no bias: [B T D].

    W_V is [D A], or narrower where heads share values; W_O is [A D].

    A head that looks at the token before moves each token's vector there:

    >>> x = np.array([[[1.0, 2.0], [3.0, 4.0]]])
    >>> pattern = np.array([[[[1.0, 0.0], [1.0, 0.0]]]])
    >>> carry(x, pattern, np.eye(2), np.eye(2))
    array([[[1., 2.],
            [1., 2.]]])
    """
    H = pattern.shape[1]
    v = (x @ W_V).reshape(*x.shape[:2], -1, len(W_O) // H).swapaxes(1, 2)
    v = np.repeat(v, H // v.shape[1], axis=1)
    return (pattern @ v).swapaxes(1, 2).reshape(*x.shape[:2], -1) @ W_O


def projection_shares(parts):
    """{name: [B T]} <c, x> / <x, x> of each part c of the stream x: how much of x it makes up.

    They sum to 1; a share is below 0 where a part points against the stream.

    Of the stream [3, 1], and they sum to 1:

    >>> parts = {"word": np.array([[[3.0, 0.0]]]), "position": np.array([[[0.0, 1.0]]])}
    >>> projection_shares(parts)
    {'word': array([[0.9]]), 'position': array([[0.1]])}
    """
    x = sum(parts.values())
    return {name: _dot(c, x) / _dot(x, x) for name, c in parts.items()}


def ratios(parts):
    """{name: [B T]} <c, c> / <x, x>, squared lengths.

    Their sum is above 1 where parts cancel each other.

    Two parts that nearly cancel each other are each larger than their sum:

    >>> ratios({"attention": np.array([[[3.0]]]), "mlp": np.array([[[-2.0]]])})
    {'attention': array([[9.]]), 'mlp': array([[4.]])}
    """
    x = sum(parts.values())
    return {name: _dot(c, c) / _dot(x, x) for name, c in parts.items()}


def _dot(a, b):
    return np.einsum("...d,...d->...", a, b)


def squared_cosine(a, b):
    """Squared cosine of two tables [T D] with centred columns.

    It is the share of b's power that a scaled copy of a explains.

    A table and twice the same table; then two tables that have nothing in common:

    >>> x = np.array([[1.0], [-1.0], [1.0], [-1.0]])
    >>> y = np.array([[1.0], [1.0], [-1.0], [-1.0]])
    >>> float(squared_cosine(x, 2 * x)), float(squared_cosine(x, y))
    (1.0, 0.0)
    """
    a = np.asarray(a, np.float64)
    b = np.asarray(b, np.float64)
    a = a - a.mean(axis=0)
    b = b - b.mean(axis=0)
    return np.vdot(a, b) ** 2 / np.maximum(np.vdot(a, a) * np.vdot(b, b), 1e-300)
