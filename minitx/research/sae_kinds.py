"""Kinds of sparse autoencoders: encoders of x [... D], norms of x, and random dictionaries."""

import numpy as np


def relu(h):
    """The part above 0."""
    return np.maximum(h, 0)


def top_k(h, k):
    """relu of the k largest of the last axis, 0 elsewhere."""
    if k == 0:
        return np.zeros_like(h)
    largest = np.argpartition(h, -k, axis=-1)[..., -k:]
    values = np.take_along_axis(h, largest, -1)
    f = np.zeros_like(h)
    np.put_along_axis(f, largest, relu(values), -1)
    return f


def _standard(x, w, settings):
    return relu(x @ w["W_enc"] + w["b_enc"])


def _jumprelu(x, w, settings):
    h = x @ w["W_enc"] + w["b_enc"]
    return relu(h) * (h > w["threshold"])


def _topk(x, w, settings):
    h = x @ w["W_enc"] + w["b_enc"]
    if settings.rescale:
        h = h * np.linalg.norm(w["W_dec"], axis=1)
    return top_k(h, settings.k)


def _gated(x, w, settings):
    h = x @ w["W_enc"]
    magnitude = relu(h * np.exp(w["r_mag"]) + w["b_mag"])
    return magnitude * (h + w["b_gate"] > 0)


ENCODERS = {
    "standard": _standard,
    "jumprelu": _jumprelu,
    "topk": _topk,
    "gated": _gated,
}


def _no_norm(x):
    scale = np.ones_like(x[..., :1])
    return 0 * scale, scale


def _layer_norm(x):
    mean = x.mean(axis=-1, keepdims=True)
    deviation = x.std(axis=-1, keepdims=True, ddof=1)  # as torch's
    return mean, deviation


def _constant_norm(x):
    length = np.linalg.norm(x, axis=-1, keepdims=True)
    return 0 * length, length / x.shape[-1] ** 0.5


# settings -> (mean, scale) that are taken off x
NORMS = {
    "none": _no_norm,
    "layer_norm": _layer_norm,
    "constant_norm_rescale": _constant_norm,
}


def explained(x, y):  # [... D], [... D] -> share of the variance
    """1 less the squared error over the squared distance from the mean."""
    x = x.reshape(-1, x.shape[-1])
    left = x - y.reshape(x.shape)
    spread = x - x.mean(axis=0)
    return float(1 - (left * left).sum() / (spread * spread).sum())


def at_random(x, F, k, seed):
    """x from the k of F random unit vectors along which it is largest; one scale is fitted."""
    D = x.shape[-1]
    W = np.random.default_rng(seed).standard_normal((F, D))
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    mean = x.reshape(-1, D).mean(axis=0)
    centred = x - mean
    y = top_k(centred @ W.T, k) @ W
    scale = (y * centred).sum() / max((y * y).sum(), 1e-300)
    return mean + scale * y
