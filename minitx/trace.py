"""See and change what happens inside: POINTS lists the names, `run` records and edits them."""

import difflib
import math
from typing import NamedTuple

import numpy as np

from . import show
from .inputs import as_batch
from .model import forward, logits, require_head


class Point(NamedTuple):
    """One intermediate of the forward pass."""

    axes: str  # letters: see model.py
    meaning: str
    per_layer: bool = True  # False: it occurs once in a pass
    needs: str = ""  # what a model must have, one of NEEDS; empty: every model has the point


# what a point may need -> does a model meet it? given: whether the caller gave token types
NEEDS = {
    "token types": lambda model, given: given or model.config.default_type is not None,
    "a norm of the embeddings": lambda model, given: model.weights.ln_embed_w is not None,
    "a final norm": lambda model, given: model.weights.ln_final_w is not None,
    "a task head": lambda model, given: model.config.task_head is not None,
}


def _norm(name, what, **rest):
    """The three points of a LayerNorm; `what` is described as 'norm' or 'norm: its use'."""
    norm = what.partition(":")[0]
    return {
        f"{name}_mean": Point("B T", f"mean that the {norm} takes off", **rest),
        f"{name}_scale": Point("B T", f"1/sigma that the {norm} multiplies by", **rest),
        name: Point("B T D", what, **rest),
    }


# one name, one meaning in all families, in the order of the forward pass
POINTS = {
    "embed": Point("B T D", "rows of the word embedding", False),
    "pos_embed": Point("B T D", "rows of the position embedding", False),
    "type_embed": Point("B T D", "rows of the token-type embedding", False, "token types"),
    **_norm(
        "ln_embed",
        "LayerNorm of the embedding sum",
        per_layer=False,
        needs="a norm of the embeddings",
    ),
    "resid_pre": Point("B T D", "residual stream before the layer"),
    **_norm("ln1", "first LayerNorm: attention's input (GPT-2) or the sum after it (BERT)"),
    "q": Point("B H T d", "queries"),
    "k": Point("B H T d", "keys"),
    "v": Point("B H T d", "values"),
    "scores": Point("B H T S", "scaled q.k; -inf where a key is hidden"),
    "pattern": Point("B H T S", "softmax of scores: the attention"),
    "z": Point("B H T d", "pattern times values"),
    "attn_out": Point("B T D", "what attention writes to the residual stream"),
    "resid_mid": Point("B T D", "residual stream between attention and MLP"),
    **_norm("ln2", "second LayerNorm: the MLP's input (GPT-2) or the sum after it (BERT)"),
    "pre": Point("B T M", "MLP before the activation"),
    "post": Point("B T M", "MLP after the activation"),
    "mlp_out": Point("B T D", "what the MLP writes to the residual stream"),
    "resid_post": Point("B T D", "residual stream after the layer"),
    **_norm("ln_final", "final LayerNorm (GPT-2)", per_layer=False, needs="a final norm"),
    "logits": Point(
        "B T V", "scores over the vocabulary, or [B C] over classes", False, "a task head"
    ),
}
OVERWRITTEN = {"scores", "pre"}  # by the in-place kernels that come next


class Trace(show.Shown):
    """What a run recorded: trace["q", 3], trace["logits"], trace.stack("q") [L ...], trace.nbytes.

    `.tokens` and `.valid` [B T] are the input; `.values` maps a name or (name, layer) to its array.
    """

    def __init__(self, batch, keep, edits):
        self.tokens, self.valid = batch.tokens, batch.valid
        self.values = {}
        self._keep = frozenset(keep)
        self._edits = edits
        self.wanted = {*keep, *edits}  # points that the pass has still to reach

    def _summary(self):
        return show.trace(self.tokens, self.values, POINTS)

    def __call__(self, name, x, layer=None):
        """The hook that `forward` calls -> x, or what takes its place."""
        key = name if layer is None else (name, layer)
        if key in self._edits:
            x = _edited(key, x, self._edits[key])
        if key in self._keep:
            # other points are never overwritten, so they need no copy
            self.values[key] = x.copy(order="K") if name in OVERWRITTEN else x
        self.wanted.discard(key)
        if not self.wanted:
            raise Complete
        return x

    def __getitem__(self, key):
        if key not in self.values:
            hint = f"kept: {list(self.values)}"
            if key in POINTS and POINTS[key].per_layer:
                hint = f"trace[{key!r}, layer] or trace.stack({key!r})"
            raise KeyError(f"{key!r} is not in this trace; {hint}")
        return self.values[key]

    def stack(self, name):
        """One point of all layers as an array [L ...]."""
        layers = sorted(key[1] for key in self.values if isinstance(key, tuple) and key[0] == name)
        if not layers or layers != list(range(len(layers))):
            raise KeyError(f"{name!r} was kept in layers {layers}; stack needs all of them")
        return np.stack([self.values[name, layer] for layer in layers])

    @property
    def nbytes(self):
        """Bytes of the recorded arrays, point by point."""
        return sum(x.nbytes for x in self.values.values())


class Complete(Exception):
    """Ends a forward pass whose trace has all that was asked for."""


def _edited(key, x, edit):
    """What an edit, an array or f(x) -> array, puts in the place of x: same shape, dtype, order."""
    value = np.asarray(edit(x.copy(order="K")) if callable(edit) else edit)
    new = np.empty_like(x)
    try:
        np.copyto(new, value)
    except (ValueError, TypeError):
        given, wanted = (f"{y.dtype} {list(y.shape)}" for y in (value, x))
        raise ValueError(f"the edit of {key!r} gives {given}; wanted {wanted}") from None
    return new


def run(
    model,
    text,
    keep=None,
    edits=None,
    *,
    valid=None,
    types=None,
    positions=None,
    mask=None,
):
    """Forward pass with the points in `keep` recorded (None: all) and those in `edits` replaced.

    text: a text, a list of texts, or token ids [T] or [B T].
    keep: names, or (name, layer).
    edits: {name or (name, layer): array or f(x) -> array}; points are recorded as edited.
    valid, types, positions, mask: as for `forward`.
    Returns a Trace. The pass ends with the last point of `keep` and `edits`: keep=[("q", 0)] costs
    a part of one layer. Raises ValueError for a point that the model does not have.
    """
    batch = as_batch(model, text, valid, types)
    available = points(model, batch.types is not None)
    keep = expand(keep, available, model)
    trace = Trace(batch, keep, _edits_by_point(edits or {}, available, model))
    try:
        x = forward(
            model,
            batch.tokens,
            valid=batch.valid,
            types=batch.types,
            positions=positions,
            mask=mask,
            hook=trace,
        )
        logits(model, x, valid=batch.valid, hook=trace)  # nothing else can still be wanted
    except Complete:
        pass
    return trace


def _edits_by_point(edits, available, model):
    """{point: edit}; an edit of one layer wins against one of the same point in all layers."""
    by_point = {}
    general_first = sorted(edits, key=lambda key: isinstance(key, tuple))
    for key in general_first:
        for point in expand([key], available, model):
            by_point[point] = edits[key]
    return by_point


def cost(model, text, keep=None, *, types=None):
    """Bytes that the trace of `run(model, text, keep, types=types)` would hold."""
    batch = as_batch(model, text, types=types)
    cfg = model.config
    B, T = batch.tokens.shape
    sizes = {"B": B, "T": T, "S": T, "H": cfg.n_heads, "d": cfg.d_head}
    sizes |= {"D": cfg.d_model, "M": cfg.d_mlp, "V": cfg.n_vocab}
    shapes = {name: [sizes[axis] for axis in p.axes.split()] for name, p in POINTS.items()}
    if cfg.task_head == "sequence":
        shapes["logits"] = [B, model.weights.W_U.shape[1]]
    recorded = expand(keep, points(model, batch.types is not None), model)
    n_numbers = sum(math.prod(shapes[_name(key)]) for key in recorded)
    return n_numbers * model.weights.W_pos.itemsize


def points(model, types=False):
    """All points of a model: names, and (name, layer) for those of the layers.

    types: whether token types are given.
    """
    keys = []
    for name, point in POINTS.items():
        if point.needs and not NEEDS[point.needs](model, types):
            continue
        if point.per_layer:
            keys += [(name, layer) for layer in range(model.config.n_layers)]
        else:
            keys.append(name)
    return keys


def expand(names, available, model):
    """Names, or (name, layer), as points of the model, each once, in order; None: all points."""
    if names is None:
        return available
    if isinstance(names, str) or names in available:
        names = [names]
    expanded = {}
    for key in names:
        matches = [point for point in available if key in (point, _name(point))]
        if not matches:
            _refuse(key, model)
        expanded |= dict.fromkeys(matches)
    return list(expanded)


def _name(key):
    """The name in a point's key, which is a name or (name, layer)."""
    return key[0] if isinstance(key, tuple) and len(key) == 2 else key


def _refuse(key, model):
    """Raises ValueError that says why the model has no such point."""
    name = _name(key)
    if not isinstance(name, str) or name not in POINTS:
        close = ", ".join(difflib.get_close_matches(str(name), POINTS, 3, 0.4)) or "none"
        raise ValueError(f"unknown point {name!r}; near to it: {close}; all: {', '.join(POINTS)}")
    if name == "logits":
        require_head(model)
    cfg, point = model.config, POINTS[name]
    why = f", layers 0 to {cfg.n_layers - 1}" if point.per_layer else ""
    raise ValueError(f"this model has no point {key!r} ({cfg.model_type}{why})")
