"""Changes as edits of a forward pass: one small function for each kind of change.

T tokens, n of them the text's own, L layers, H heads, D width.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

import minitx

from ..maths import masks
from ..measures import spoken, switched
from .positions import POSITIONS

STACKS = "", "encoder", "decoder", "cross"
PREFIX = {"": "", "encoder": "enc_", "decoder": "", "cross": "cross_"}
# of a whole layer, by stack: what it writes to the residual stream
WRITES = {
    "": ("attn_out", "mlp_out"),
    "encoder": ("enc_attn_out", "enc_mlp_out"),
    "decoder": ("attn_out", "cross_out", "mlp_out"),
    "cross": ("cross_out",),
}


class Place(NamedTuple):
    """Where changes are made: one stack of a model, reading one text."""

    name: str  # of the stack, one of STACKS
    model: minitx.Model  # the whole of it
    stack: minitx.Model  # whose positions, layers and heads these are
    tokens: np.ndarray  # [T] that this stack reads
    said: np.ndarray | None  # [T] what the decoder reads; None in a single stack
    source: np.ndarray | None  # [S]; None in a single stack

    @property
    def T(self):
        """Tokens that the stack reads."""
        return len(self.tokens)

    def point(self, name):
        """The name of a point in this stack."""
        return PREFIX[self.name] + name

    @property
    def positions(self):
        """The points at which positions enter: rows of a table, angles, a term of the scores."""
        return [self.point(name) for name in switched.points(self.stack.config)]

    @property
    def is_by_distance(self):
        """Whether only a term of the scores says where tokens are."""
        return self.positions == [self.point("pos_bias")]

    def own(self):
        """Places of the text's own tokens, without special ones: [n]."""
        return np.flatnonzero(spoken.ordinary(self.stack, self.tokens))

    def run(self, keep, edits):
        """A Trace of the whole model."""
        if self.source is None:
            return minitx.run(self.model, self.tokens, keep, edits)
        return minitx.run(self.model, self.said, keep, edits, source=self.source)


def stack_of(model, name):
    """The stack of that name; ValueError for one that this model does not have."""
    wanted = STACKS[1:] if model.encoder is not None else STACKS[:1]
    if name not in wanted:
        names = ", ".join(map(repr, wanted))
        raise ValueError(f"stack is {name!r}; this {model.config.model_type} has {names}")
    return model.encoder if name == "encoder" else model


def place(name, model, tokens, source=None):
    """The Place of a stack; tokens [T]: of an encoder-decoder what its decoder reads."""
    stack = stack_of(model, name)
    reads = source if name == "encoder" else tokens
    said = None if source is None else tokens
    return Place(name, model, stack, np.asarray(reads), said, source)


# what cannot be


def check(changes, where):
    """Raise ValueError for changes that this model, or this text, cannot take."""
    if where.name == "cross" and (changes.positions != "on" or changes.dial or changes.mask):
        raise ValueError(
            "cross-attention reads no positions of its own, and between two texts there is no "
            "distance; positions, dial and mask are those of the encoder or the decoder"
        )
    if not where.positions and (changes.positions != "on" or changes.dial):
        raise ValueError(f"this {where.stack.config.model_type} has no positions to change")
    POSITIONS[changes.positions].check(changes, where)
    _check_dial(changes, where)
    _check_off(changes, where.stack.config)
    if changes.mask and changes.mask.meaning == "library-now" and where.stack.config.causal:
        raise ValueError(
            "meaning 'library-now' shows a causal model what comes later; wanted one of the others"
        )


def _check_dial(changes, where):
    n = len(where.own())
    if abs(changes.dial) >= max(n, 1):
        raise ValueError(f"dial is {changes.dial}; a text of {n} own tokens takes less than {n}")


def _check_off(changes, cfg):
    L, H = cfg.n_layers, cfg.n_heads
    layers = [*changes.layers_off, *(layer for layer, _ in changes.heads_off)]
    heads = [head for _, head in changes.heads_off]
    for what, numbers, n in ("layer", layers, L), ("head", heads, H):
        if numbers and max(numbers) >= n:
            raise ValueError(f"{what} {max(numbers)} is to be off; wanted 0 to {n - 1}")


# what is


def edits(changes, where):
    """{point: array or f(x)} of `minitx.run`, for changes that `check` lets pass."""
    by_point = _positions(changes, where) | _mask(changes, where) | _off(changes, where)
    if changes.dial and where.is_by_distance:
        (point,) = where.positions
        before = by_point.get(point, _same)
        by_point[point] = partial(_columns, index=dialled(changes, where), before=before)
    elif changes.dial:
        by_point |= _keys(changes, where, by_point)
    return by_point


def _same(x):
    return x


def _positions(changes, where):
    """The edit of where positions enter."""
    by_point = POSITIONS[changes.positions].edits(changes, where)
    return {where.point(name): edit for name, edit in by_point.items()}


def dialled(changes, where):
    """The same for the dial: the token `dial` places further on, cyclically among own tokens."""
    index, own = np.arange(where.T), where.own()
    index[own] = np.roll(own, -changes.dial)
    return index


def _columns(x, index, before):  # [1 H T S]: keys alone get other positions
    return before(x)[..., index]


def _keys(changes, where, by_point):
    """Keys of all layers from a run in which positions are moved by the dial."""
    entered, index = where.positions[0], dialled(changes, where)
    before, point = by_point.get(entered, _same), where.point("k")

    def moved(x):
        rows = before(x) if callable(before) else before[None]
        return rows[:, index]

    trace = where.run([point], by_point | {entered: moved})
    return {(point, layer): trace[point, layer] for layer in range(len(where.stack.layers))}


def _mask(changes, where):
    """The edits of scores and attention that a mask makes."""
    if changes.mask is None:
        return {}
    cfg, rule = where.stack.config, masks.meaning(changes.mask.meaning)
    function, seed = changes.mask.function(), changes.mask.null_seed
    values = masks.build_mask(function, where.T, cfg.n_heads, cfg.causal, seed)
    values = values.astype(where.stack.weights.W_E.dtype)
    prepared = rule.prepare(values)
    by_point = {where.point(rule.point): lambda x: rule.combine(x, prepared)}
    if rule.values:
        by_point[where.point("pattern")] = lambda pattern: pattern * values
    return by_point


def _off(changes, where):
    """The edits that take heads and layers out."""
    by_layer = {}
    for layer, head in changes.heads_off:
        by_layer.setdefault(layer, []).append(head)
    point = where.point("z")
    by_point = {(point, layer): partial(_without, heads=h) for layer, h in by_layer.items()}
    for layer in changes.layers_off:
        by_point |= {(point, layer): np.zeros_like for point in WRITES[where.name]}
    return by_point


def _without(z, heads):  # [1 H T d]
    z[:, heads] = 0
    return z
