"""See and change what happens inside: points.py lists the names, `run` records and edits them."""

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .arrays import Model
from .edits import Edit, edited, edits_by_point
from .heads import why_no_logits
from .images import names
from .inputs import (
    Ids,
    Texts,
    as_batch,
    as_model,
    as_target,
    asked_tokens,
    check_source,
    source_arguments,
)
from .machine import show
from .masks import Mask
from .model import forward, logits
from .points import OVERWRITTEN, POINTS, Key, expand, from_first, name_of, points, text_of


class Trace(show.Shown, Mapping[Key, np.ndarray]):
    """What a run recorded: trace["q", 3], trace["logits"], trace.stack("q") [L ...], trace.nbytes.

    A mapping from each recorded point, a name or (name, layer), to its array. Layer -1 is the last;
    `"q" in trace` is True if queries of any layer were recorded.
    `.tokens` [B T]: the input's ids, `.labels` [B T] the same as text; `.valid` [B T]: False on
    padding. `.source`, `.source_labels` [B S]: ids and text of an encoder-decoder's source.

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

    __eq__ = object.__eq__  # a trace equals only itself: == of arrays is not one answer
    __hash__ = object.__hash__

    tokens: np.ndarray  # [B T]
    valid: np.ndarray  # [B T] bool
    arrays: dict[Key, np.ndarray]

    def __init__(self, model, batch, source, keep, edits):
        self.tokens, self.valid = batch.tokens, batch.valid
        self.source = None if source is None else source.tokens
        self.arrays = {}
        self._model = model
        self._keep = frozenset(keep)
        self._edits = edits
        self.wanted = {*keep, *edits}  # points that the pass has still to reach

    def _summary(self):
        return show.trace(self.valid, self.arrays, POINTS)

    def __call__(self, name: str, x: np.ndarray, layer: int | None = None) -> np.ndarray:
        """The hook that `forward` calls -> x, or what takes its place."""
        key = name if layer is None else (name, layer)
        if key in self._edits:
            x = edited(key, x, self._edits[key])
        if key in self._keep:
            # other points are never overwritten, so they need no copy
            self.arrays[key] = x.copy(order="K") if name in OVERWRITTEN else x
        self.wanted.discard(key)
        if not self.wanted:
            raise Complete
        return x

    def asks(self, name: str, layer: int | None = None) -> bool:
        """Whether a point that is computed on request is kept or edited."""
        key = name if layer is None else (name, layer)
        return key in self._keep or key in self._edits

    def __getitem__(self, key: Key) -> np.ndarray:
        point = from_first(key, self._model)
        if point not in self.arrays:
            raise KeyError(f"{key!r} is not in this trace; {self._recorded(name_of(key))}")
        return self.arrays[point]

    def __contains__(self, key: object) -> bool:
        point = from_first(key, self._model)
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
        if name == "logits" and (reason := why_no_logits(self._model)):
            return reason
        names = dict.fromkeys(map(name_of, self.arrays))
        return f"recorded: {', '.join(names) or 'nothing'}"

    def stack(self, name: str) -> np.ndarray:
        """One point of all layers as an array [L ...]."""
        layers = self._layers(name)
        if not layers or layers != list(range(len(layers))):
            raise KeyError(f"{name!r} was kept in layers {layers}; stack needs all of them")
        return np.stack([self.arrays[name, layer] for layer in layers])

    def to_dict(self) -> dict[str, np.ndarray]:
        """The arrays by names that are texts, "q.3" and "logits", as files have them.

        They are the trace's own, not copies. np.savez takes them as its keywords.

        >>> import minitx
        >>> trace = minitx.run(minitx.load("tiny-gpt2"), "A dog", keep=[("q", 3), "logits"])
        >>> {name: x.shape for name, x in trace.to_dict().items()}
        {'q.3': (1, 4, 3, 32), 'logits': (1, 3, 1024)}
        """
        return {text_of(key): x for key, x in self.arrays.items()}

    @property
    def labels(self) -> np.ndarray:
        """The model's pieces of text for the tokens [B T], as labels of rows and columns."""
        return _pieces(self._model, self.tokens)

    @property
    def source_labels(self) -> np.ndarray | None:
        """The same for the tokens of the source [B S]; None in a single stack."""
        return None if self.source is None else _pieces(self._model.encoder, self.source)

    @property
    def nbytes(self) -> int:
        """Bytes of the recorded arrays, point by point."""
        return sum(x.nbytes for x in self.arrays.values())


def _pieces(model, ids):
    if model.config.picture is not None:
        return np.array([names(model.config.picture)[: ids.shape[1]]] * len(ids))
    return np.array([model.tokenizer.pieces(row) for row in ids]).reshape(ids.shape)


class Complete(Exception):
    """Ends a forward pass whose trace has all that was asked for."""


def run(
    model: Model | str | PathLike[str],
    text: Texts | Ids | None,
    keep: Key | Sequence[Key] | None = None,
    edits: Mapping[Any, Edit] | None = None,
    *,
    source: Texts | Ids | None = None,
    source_valid: ArrayLike | None = None,
    valid: ArrayLike | None = None,
    types: ArrayLike | None = None,
    positions: ArrayLike | None = None,
    mask: Mask | None = None,
    enc_mask: Mask | None = None,
    cross_mask: Mask | None = None,
) -> Trace:
    """Forward pass with the points in `keep` recorded and those in `edits` replaced.

    model: a Model, or its name, which is then loaded at each call.
    text: a text, a list of texts, or token ids [T] or [B T]. In an encoder-decoder it is the
    decoder's input: ids as given, a text after the start token, or None for the start token alone.
    source: the input of an encoder-decoder's encoder, in the same forms.
    keep: names, or (name, layer); layer -1 is the last. None: all but what each head writes
    (head_out), which has H times the size of the stream.
    edits: {name or (name, layer): array or f(x) -> array}, of the point's shape, of that
    without its first axis, the same for all texts, or one number. Points are recorded as edited.
    source_valid, valid, types, positions, mask, enc_mask, cross_mask: as for `forward`.
    Returns a Trace. The pass stops after the last point of `keep` and `edits`: keep=[("q", 0)]
    costs a part of one layer. Raises ValueError for a point that the model does not have.

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
    model = as_model(model)
    batch, source_batch = read_inputs(model, text, source, source_valid, valid, types)
    available = points(model, batch.types is not None)
    keep = expand(keep, available, model)
    trace = Trace(model, batch, source_batch, keep, edits_by_point(edits or {}, available, model))
    options = dict(types=batch.types, positions=positions, mask=mask)
    if source_batch is not None:
        options |= dict(enc_mask=enc_mask, cross_mask=cross_mask, **source_arguments(source_batch))
    try:
        x = forward(model, batch.tokens, valid=batch.valid, hook=trace, **options)
        asked_at = asked_tokens(model.config, text, valid, batch, source_batch)
        logits(model, x, valid=asked_at, hook=trace)  # nothing else can still be wanted
    except Complete:
        pass
    return trace


def read_inputs(model, text, source, source_valid, valid=None, types=None):
    """Two checked Batches: what the model reads, and the source of an encoder-decoder, or None."""
    check_source(model, source)
    if source is None:
        return as_batch(model, text, valid, types), None
    source_batch = as_batch(model.encoder, source, source_valid)
    return as_target(model, text, valid, types, source_batch), source_batch
