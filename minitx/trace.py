"""See and change what happens inside: POINTS lists the names, `run` records and edits them."""

import difflib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from . import show
from .inputs import Ids, Texts, as_batch
from .model import Mask, Model, forward, logits, require_head

Key = str | tuple[str, int]  # of a point: its name, or (name, layer)
Edit = ArrayLike | Callable[[np.ndarray], ArrayLike]


class Point(NamedTuple):
    """One intermediate of the forward pass.

    The table of all points, POINTS, by name:

    >>> import minitx
    >>> minitx.POINTS["pattern"].axes, minitx.POINTS["pattern"].meaning
    ('B H T S', 'softmax of scores: the attention')
    >>> [name for name, point in minitx.POINTS.items() if point.axes == "B H T d"]
    ['q', 'k', 'v', 'z']
    """

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
    "resid_pre": Point("B T D", "residual stream before the layer; normed as resid_post is"),
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
    "resid_post": Point(
        "B T D", "residual stream after the layer: normed in BERT, in GPT-2 by final_norm"
    ),
    **_norm("ln_final", "final LayerNorm (GPT-2)", per_layer=False, needs="a final norm"),
    "logits": Point(
        "B T V", "scores over the vocabulary, or [B C] over classes", False, "a task head"
    ),
}
OVERWRITTEN = {"scores", "pre"}  # by the in-place kernels that come next


class Trace(show.Shown, Mapping[Key, np.ndarray]):
    """What a run recorded: trace["q", 3], trace["logits"], trace.stack("q") [L ...], trace.nbytes.

    A mapping from each recorded point, a name or (name, layer), to its array. Layer -1 is the
    model's last; `"q" in trace` says whether queries of any layer were recorded.
    `.tokens` and `.valid` [B T] are the input, `.labels` [B T] its tokens as text.

    >>> import minitx
    >>> model = minitx.load("tiny-roberta")
    >>> trace = minitx.run(model, "A dog", keep=["q", ("pattern", -1)])
    >>> list(trace)
    [('q', 0), ('q', 1), ('q', 2), ('q', 3), ('pattern', 3)]
    >>> "pattern" in trace, ("pattern", 0) in trace
    (True, False)
    >>> trace["pattern", -1].shape, trace.labels.shape
    ((1, 4, 5, 5), (1, 5))
    """

    __eq__ = (
        object.__eq__
    )  # two traces are the same only if they are one: arrays have no one answer
    __hash__ = object.__hash__

    tokens: np.ndarray  # [B T]
    valid: np.ndarray  # [B T] bool
    arrays: dict[Key, np.ndarray]

    def __init__(self, model, batch, keep, edits):
        self.tokens, self.valid = batch.tokens, batch.valid
        self.arrays = {}
        self._model = model
        self._keep = frozenset(keep)
        self._edits = edits
        self.wanted = {*keep, *edits}  # points that the pass has still to reach

    def _summary(self):
        return show.trace(self.tokens, self.arrays, POINTS)

    def __call__(self, name: str, x: np.ndarray, layer: int | None = None) -> np.ndarray:
        """The hook that `forward` calls -> x, or what takes its place."""
        key = name if layer is None else (name, layer)
        if key in self._edits:
            x = _edited(key, x, self._edits[key])
        if key in self._keep:
            # other points are never overwritten, so they need no copy
            self.arrays[key] = x.copy(order="K") if name in OVERWRITTEN else x
        self.wanted.discard(key)
        if not self.wanted:
            raise Complete
        return x

    def __getitem__(self, key: Key) -> np.ndarray:
        point = _from_first(key, self._model)
        if point not in self.arrays:
            raise KeyError(f"{key!r} is not in this trace; {self._recorded(_name(key))}")
        return self.arrays[point]

    def __contains__(self, key: object) -> bool:
        point = _from_first(key, self._model)
        return point in self.arrays or bool(self._layers(key))

    def __iter__(self) -> Iterator[Key]:
        return iter(self.arrays)

    def __len__(self) -> int:
        return len(self.arrays)

    def _layers(self, name):
        """Layers in which a point was recorded."""
        return sorted(key[1] for key in self.arrays if isinstance(key, tuple) and key[0] == name)

    def _recorded(self, name):
        """What an error says of the point `name`, or of all points where it was not recorded."""
        if layers := self._layers(name):
            return f"recorded in layers {layers}: trace[{name!r}, layer] or trace.stack({name!r})"
        names = dict.fromkeys(map(_name, self.arrays))
        return f"recorded: {', '.join(names) or 'nothing'}"

    def stack(self, name: str) -> np.ndarray:
        """One point of all layers as an array [L ...]."""
        layers = self._layers(name)
        if not layers or layers != list(range(len(layers))):
            raise KeyError(f"{name!r} was kept in layers {layers}; stack needs all of them")
        return np.stack([self.arrays[name, layer] for layer in layers])

    @property
    def labels(self) -> np.ndarray:
        """The model's pieces of text for the tokens [B T], as labels of rows and columns."""
        pieces = self._model.tokenizer.pieces(self.tokens)
        return np.array(pieces).reshape(self.tokens.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the recorded arrays, point by point."""
        return sum(x.nbytes for x in self.arrays.values())


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
    model: Model,
    text: Texts | Ids,
    keep: Key | Sequence[Key] | None = None,
    edits: Mapping[Any, Edit] | None = None,
    *,
    valid: ArrayLike | None = None,
    types: ArrayLike | None = None,
    positions: ArrayLike | None = None,
    mask: Mask | None = None,
) -> Trace:
    """Forward pass with the points in `keep` recorded (None: all) and those in `edits` replaced.

    text: a text, a list of texts, or token ids [T] or [B T].
    keep: names, or (name, layer); layer -1 is the last.
    edits: {name or (name, layer): array or f(x) -> array}; points are recorded as edited.
    valid, types, positions, mask: as for `forward`.
    Returns a Trace. The pass ends with the last point of `keep` and `edits`: keep=[("q", 0)] costs
    a part of one layer. Raises ValueError for a point that the model does not have.

    The attention of 4 heads between 5 tokens; then the logits without head 0 of every layer:

    >>> import minitx
    >>> model = minitx.load("tiny-roberta")
    >>> trace = minitx.run(model, "A dog", keep=["pattern", "logits"])
    >>> trace["pattern", 0].shape
    (1, 4, 5, 5)
    >>> def without_head_0(z):
    ...     z[:, 0] = 0
    ...     return z
    >>> ablated = minitx.run(model, "A dog", keep="logits", edits={"z": without_head_0})
    >>> bool((ablated["logits"] != trace["logits"]).any())
    True
    """
    batch = as_batch(model, text, valid, types)
    available = points(model, batch.types is not None)
    keep = expand(keep, available, model)
    trace = Trace(model, batch, keep, _edits_by_point(edits or {}, available, model))
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


def cost(
    model: Model,
    text: Texts | Ids,
    keep: Key | Sequence[Key] | None = None,
    *,
    types: ArrayLike | None = None,
) -> int:
    """Bytes that the trace of `run(model, text, keep, types=types)` would hold.

    All points of a short text, and the queries alone:

    >>> import minitx
    >>> model = minitx.load("tiny-roberta")
    >>> minitx.cost(model, "A dog"), minitx.cost(model, "A dog", keep="q")
    (228840, 10240)
    >>> minitx.run(model, "A dog", keep="q").nbytes
    10240
    """
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
    if isinstance(names, str) or _from_first(names, model) in available:
        names = [names]
    expanded = {}
    for key in names:
        wanted = _from_first(key, model)
        matches = [point for point in available if wanted in (point, _name(point))]
        if not matches:
            _refuse(key, model)
        expanded |= dict.fromkeys(matches)
    return list(expanded)


def _from_first(key, model):
    """("q", -1) -> ("q", last layer), as lists count; any other key as it is."""
    if isinstance(key, tuple) and len(key) == 2 and isinstance(key[1], int | np.integer):
        name, layer = key
        return name, layer + model.config.n_layers if layer < 0 else layer
    return key


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
