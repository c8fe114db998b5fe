"""How much each token, and each head, adds to one number that a model gives: a log-probability.

Gradient × input: the sum of x dy/dx, exact only where y is linear. Integrated gradients
(Sundararajan, Taly & Yan 2017): the gradient's mean on the straight path from a baseline x' to x,
times x - x'. Their sum is y(x) - y(x'), whatever the model: completeness, which is checked. The
mean is taken at the points of Gauss and Legendre, more of them until the sum is complete.
Ablation: what y loses when one part alone is at its baseline.

Tokens are the rows of the word embedding, positions as they are; heads are their z, all of them on
the path together. T tokens, L layers, H heads, D width, n points.
"""

from typing import NamedTuple

import numpy as np
import scipy

import minitx
from minitx.heads import is_pooled

from . import losses

COMPLETE = 1e-3  # of the largest part: how far the sum may be from the whole
POINTS = 16, 32, 64, 128, 256
HELD = 2**25  # numbers that passes keep for gradients, at most, about: 128 MiB


class Wanted(NamedTuple):
    """The number that is attributed: the log-probability of a token, or a class."""

    tokens: np.ndarray  # [T]
    place: int  # whose logits are read; of a whole text: 0
    what: int  # the token or class
    types: np.ndarray | None = None  # [T] token types; None: those of a single text


class Attributed(NamedTuple):
    """What each part adds, in nats: [T] or [L H]."""

    integrated: np.ndarray
    times_input: np.ndarray
    ablated: np.ndarray
    error: float  # of the sum, as a share of the largest part


def asked(model, tokens, types=None, place=None):
    """The likeliest token where the text itself hides one; else what `likeliest` asks: a Wanted."""
    if model.config.task_head == "masked" and place is None:
        hidden = np.flatnonzero(tokens == losses.mask_token(model.tokenizer))
        if len(hidden):
            return _with_best(model, Wanted(tokens, int(hidden[0]), 0, types))
    return likeliest(model, tokens, types, place)


def likeliest(model, tokens, types=None, place=None):
    """The likeliest token at a position, hidden there in a masked model, or class: a Wanted.

    place: None is the middle of a masked model's text, or the end of another's.
    """
    cfg = model.config
    is_masked = cfg.task_head == "masked"
    if place is None:
        place = len(tokens) // 2 if is_masked else len(tokens) - 1
    if is_pooled(cfg.task_head):
        place = 0
    if is_masked:
        tokens = tokens.copy()
        tokens[place] = losses.mask_token(model.tokenizer)
    return _with_best(model, Wanted(tokens, place, 0, types))


def _with_best(model, wanted):
    """The same with the likeliest token or class there."""
    return wanted._replace(what=int(_logits(model, wanted.tokens[None], wanted)[0].argmax()))


def _logits(model, tokens, wanted, **options):
    """The logits that are asked for, of each row [B T]: [B V] in float64."""
    x = minitx.forward(model, tokens, types=_types(wanted, len(tokens)), **options)
    if not is_pooled(model.config.task_head):
        x = x[:, wanted.place, None]
    y = minitx.logits(model, x, valid=np.ones(tokens.shape, bool), tokens=tokens)
    return y.reshape(len(tokens), -1).astype(np.float64)


def _types(wanted, B):
    """Token types of B copies of a text: [B T], or None."""
    return None if wanted.types is None else np.tile(wanted.types, (B, 1))


def _groups(model, wanted, points):
    """As many rows of the points at a time as HELD allows.

    Of each token a layer keeps weights of attention, about 12 vectors and 4 of its MLP's width.
    """
    cfg, T = model.config, len(wanted.tokens)
    of_token = cfg.n_heads * T + 12 * cfg.d_model + 4 * cfg.d_mlp
    size = max(1, HELD // (cfg.n_layers * T * of_token))
    for first in range(0, len(next(iter(points.values()))), size):
        yield {key: x[first : first + size] for key, x in points.items()}


def values(model, wanted, points):
    """Log-probability of what is wanted with points replaced {key: [B ...]}: [B]."""
    groups = _groups(model, wanted, points)
    return np.concatenate([_values(model, wanted, rows) for rows in groups])


def _values(model, wanted, points):
    """`values` of some rows."""

    def hook(name, x, layer=None):
        key = name if layer is None else (name, layer)
        return points.get(key, x)

    B = len(next(iter(points.values())))
    y = _logits(model, np.tile(wanted.tokens, (B, 1)), wanted, hook=hook)
    return y[:, wanted.what] - scipy.special.logsumexp(y, axis=1)


def gradients(model, wanted, points):
    """Gradients of that by the replaced points, of each row: {key: [B ...]}."""
    groups = [_gradients(model, wanted, rows) for rows in _groups(model, wanted, points)]
    return {key: np.concatenate([group[key] for group in groups]) for key in points}


def _gradients(model, wanted, points):
    """`gradients` of some rows."""
    B = len(next(iter(points.values())))
    tokens = np.tile(wanted.tokens, (B, 1))
    shape = (B,) if is_pooled(model.config.task_head) else tokens.shape
    targets = np.full(shape, -100)
    targets.reshape(B, -1)[:, wanted.place] = wanted.what
    given = {"types": _types(wanted, B), "valid": np.ones(tokens.shape, bool)}
    grads = minitx.gradients(model, tokens, targets, [*points], edits=points, **given)
    return {key: -B * grads[key].astype(np.float64) for key in points}  # of a mean over B


def of_tokens(model, wanted, baseline):
    """What each token adds; baseline [D]: the embedding of no word."""
    trace = minitx.run(model, wanted.tokens, "embed", types=wanted.types)
    x = {"embed": trace["embed"][0].astype(np.float64)}
    base = {"embed": np.broadcast_to(baseline, x["embed"].shape).astype(np.float64)}
    index = np.arange(len(wanted.tokens))
    rows = np.repeat(x["embed"][None], len(index), 0)
    rows[index, index] = baseline
    return _attributed(model, wanted, x, base, {"embed": rows}, lambda x: x["embed"].sum(-1))


def of_heads(model, wanted):
    """What each head adds; the baseline is a z of zeros."""
    trace = minitx.run(model, wanted.tokens, "z", types=wanted.types)
    L, H = model.config.n_layers, model.config.n_heads
    x = {("z", layer): trace["z", layer][0].astype(np.float64) for layer in range(L)}  # [H T d]
    base = {key: np.zeros_like(z) for key, z in x.items()}

    def summed(parts):
        return np.array([parts["z", layer].sum((-2, -1)) for layer in range(L)])

    whole = values(model, wanted, _rows(x, x, [1.0]))[0]
    ablated = [_without(model, wanted, x, layer, whole) for layer in range(L)]
    parts = _attributed(model, wanted, x, base, None, summed)
    return parts._replace(ablated=np.array(ablated).reshape(L, H))


def _without(model, wanted, x, layer, whole):
    """What is lost without each head of one layer, later layers following: [H]."""
    z = x["z", layer]
    rows = np.repeat(z[None], len(z), 0)
    rows[np.arange(len(z)), np.arange(len(z))] = 0
    dtype = model.weights.W_E.dtype
    return whole - values(model, wanted, {("z", layer): rows.astype(dtype)})


def lost_by_mlps(model, wanted):
    """What is lost without each MLP, later layers following: [L]."""
    trace = minitx.run(model, wanted.tokens, "mlp_out", types=wanted.types)
    whole = values(model, wanted, dict(trace))[0]
    without = [{key: np.zeros_like(x)} for key, x in trace.items()]
    return np.array([whole - values(model, wanted, points)[0] for points in without])


def _rows(x, base, fractions):
    """The points on the path at these fractions of the way: {key: [n ...]}."""
    ways = {key: np.multiply.outer(fractions, end - base[key]) for key, end in x.items()}
    return {key: base[key] + way for key, way in ways.items()}


def _attributed(model, wanted, x, base, others, summed):
    """Attributed parts of the points x, from their baselines; others: rows with one at its own."""
    dtype = model.weights.W_E.dtype

    def typed(rows):
        return {key: row.astype(dtype) for key, row in rows.items()}

    ends = values(model, wanted, typed(_rows(x, base, [0.0, 1.0])))
    difference = {key: x[key] - base[key] for key in x}
    at_end = gradients(model, wanted, typed(_rows(x, base, [1.0])))
    times_input = summed({key: at_end[key][0] * difference[key] for key in x})
    for n in POINTS:
        roots, weights = np.polynomial.legendre.leggauss(n)
        along = gradients(model, wanted, typed(_rows(x, base, (roots + 1) / 2)))
        mean = {key: np.tensordot(weights / 2, g, 1) for key, g in along.items()}
        integrated = summed({key: mean[key] * difference[key] for key in x})
        error = abs(integrated.sum() - (ends[1] - ends[0])) / abs(integrated).max()
        if error < COMPLETE:
            break
    ablated = np.zeros(1)
    if others is not None:
        ablated = ends[1] - values(model, wanted, typed(others))
    return Attributed(integrated, times_input, ablated, error)
