"""What the residual stream is made of: an exact split into all that was written to it, through the norms.

A LayerNorm maps x to w (x - mean(x)) / sigma + b. With the 1/sigma of each token frozen at its value on this input,
that is linear in x: each part c of the stream goes its own way, to w (c - mean(c)) / sigma, and b joins the biases.
Order: `split`, the walk through the layers; its steps; what is measured of the parts. B batch, T tokens, S keys,
H heads, D width. The parts are arrays [B T D] by name: word, position, type, attention, mlp, bias, carried.
"""

from typing import NamedTuple

import numpy as np


class Stage(NamedTuple):
    """The stream at one point of the forward pass, and what the norms on the way there did to it."""
    point: object      # the trace's name for it: the parts sum to the array that the trace holds there
    parts: dict        # name -> [B T D]
    scale: np.ndarray  # [B T] product of the norms' 1/sigma: the diagonal of S in the blog post's S P L
    gain: np.ndarray   # [D] product of the norms' w: the diagonal of its L


def split(points, weights, layers, pre_norm, *, by_layer=False, carried=False):
    """Yield a Stage at each of `stages`; points are looked up only when its turn comes.

    points: {name or (name, layer): array} as a trace holds them: embed, pos_embed, type_embed (if there are types),
    the scale of each norm, attn_out, mlp_out, and pattern if `carried`. weights, layers: arrays by minitx's names.
    `bias` is every b_O, b_out and norm's b; what b_V gives is counted as attention. by_layer: attention and mlp of
    each layer apart, as ("attention", 3). carried: position that attention moves to other tokens, by V and W_O with
    the pattern frozen, and what later layers move on of it, is a part of its own and no longer attention.
    """
    stream = _embedded(points, weights)
    yield Stage(("resid_pre", 0), *stream)
    for i, w in enumerate(layers):
        read = _norm(stream, "ln1", points, w, i) if pre_norm else stream
        if pre_norm:
            yield Stage(("ln1", i), *read)
        moved = {"carried": _moved(read[0], points["pattern", i], w)} if carried else {}
        name = ("attention", i) if by_layer else "attention"
        stream = _write(stream, {name: points["attn_out", i] - w.b_O - sum(moved.values()), "bias": w.b_O} | moved)
        stream = stream if pre_norm else _norm(stream, "ln1", points, w, i)
        name = ("mlp", i) if by_layer else "mlp"
        stream = _write(stream, {name: points["mlp_out", i] - w.b_out, "bias": w.b_out})
        stream = stream if pre_norm else _norm(stream, "ln2", points, w, i)
        yield Stage(("resid_post", i), *stream)
    if pre_norm:
        yield Stage("ln_final", *_norm(stream, "ln_final", points, weights))


def stages(n_layers, pre_norm):
    """Where `split` stops: the stream before and after each layer and, if pre_norm, what is read of it, normed."""
    inside = ("ln1", "resid_post") if pre_norm else ("resid_post",)
    return [("resid_pre", 0), *((name, i) for i in range(n_layers) for name in inside), *["ln_final"][:pre_norm]]


def _embedded(points, weights):
    """(parts, scale, gain) of the first layer's input."""
    names = {"word": "embed", "position": "pos_embed", "type": "type_embed"}
    parts = {part: points[name] for part, name in names.items() if name in points}
    zeros = np.zeros_like(parts["word"])
    stream = parts | {"bias": zeros}, 1 + zeros[..., 0], 1 + zeros[0, 0]
    return stream if weights.ln_embed_w is None else _norm(stream, "ln_embed", points, weights)


def _norm(stream, name, points, w, layer=None):
    """(parts, scale, gain) after the norm `name`."""
    parts, passed, gain = stream
    scale = points[f"{name}_scale" if layer is None else (f"{name}_scale", layer)]
    weight, bias = getattr(w, f"{name}_w"), getattr(w, f"{name}_b")
    return frozen(parts, scale, weight, bias), passed * scale, gain * weight


def _write(stream, new):
    """(parts, scale, gain) with what a layer adds."""
    parts, *passed = stream
    return parts | {name: parts.get(name, 0.0) + x for name, x in new.items()}, *passed


def _moved(read, pattern, w):
    """What attention makes of the position part and of what was moved before."""
    return carry(read["position"] + read.get("carried", 0.0), pattern, w.W_V, w.W_O)


def frozen(parts, scale, w, b):
    """Parts after a LayerNorm whose 1/sigma is given, scale [B T]: w (c - mean(c)) scale; b joins `bias`."""
    passed = {name: (c - c.mean(-1, keepdims=True)) * scale[..., None] * w for name, c in parts.items()}
    return passed | {"bias": passed["bias"] + b}


def carry(x, pattern, W_V, W_O):
    """What attention makes of x with its pattern frozen and no bias: [B T D], [B H T S], [D D], [D D] -> [B T D]."""
    v = (x @ W_V).reshape(*x.shape[:2], pattern.shape[1], -1).swapaxes(1, 2)
    return (pattern @ v).swapaxes(1, 2).reshape(x.shape) @ W_O


def shares(parts):
    """{name: [B T]} <c, x> / <x, x> of each part c of the stream x: how much of x it makes up; they sum to 1.

    Below 0 where a part points against the stream that it is in.
    """
    x = sum(parts.values())
    return {name: _dot(c, x) / _dot(x, x) for name, c in parts.items()}


def ratios(parts):
    """{name: [B T]} <c, c> / <x, x>, squared lengths; their sum is over 1 where parts undo each other."""
    x = sum(parts.values())
    return {name: _dot(c, c) / _dot(x, x) for name, c in parts.items()}


def _dot(a, b):
    return np.einsum("...d,...d->...", a, b)


def alike(a, b):
    """Squared cosine of two tables [T D] with their columns centred: the share of b's power that is a, scaled."""
    a, b = (x - x.mean(axis=0) for x in (np.asarray(a, np.float64), np.asarray(b, np.float64)))
    return np.vdot(a, b) ** 2 / np.maximum(np.vdot(a, a) * np.vdot(b, b), 1e-300)
