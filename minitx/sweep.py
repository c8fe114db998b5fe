"""Activation patching: which layer, at which token or in which head, carries what a text says."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import product
from typing import Any, SupportsFloat

import numpy as np

from .arrays import Model
from .edits import Edit, edits_by_point
from .heads import read_tokens
from .inputs import Batch, Ids, Texts, as_batch
from .machine.progress import bar, step
from .model import Start, forward, logits
from .points import expand, has_texts, points
from .trace import Complete, Trace, run

TOKENS = 128  # of patched runs that are computed at once


def sweep(
    model: Model,
    text: Texts | Ids,
    source: Texts | Ids,
    measure: Callable[[np.ndarray], SupportsFloat],
    point: str = "resid_pre",
    *,
    edits: Mapping[Any, Edit] | None = None,
    progress: Callable[[int, int], object] | bool | None = None,
) -> np.ndarray:  # [L T] or [L H]
    """The measure on `text` when one activation at a time is patched in from a run of `source`.

    A patch is `point` in one layer, at one index of its second axis: a token of the streams
    (resid_pre, attn_out, mlp_out: [L T]), a head of q, k, v, z or pattern ([L H]). Figures usually
    subtract the measure without a patch (Meng et al. 2022, figure 1).
    text, source: as for `run`, both with the same number of tokens.
    measure: f(logits) -> number; logits as `run` records them, [B T V].
    edits: as for `run`, in the runs of both texts and in every patched run; the patch comes last.
    progress: True for a bar, or f(done, total), called after each of the L x T, or L x H, runs.
    Raises ValueError if the two texts or the point do not fit.

    >>> import minitx
    >>> model = minitx.load("tiny-gpt2")
    >>> largest = lambda logits: logits[0, -1].max()
    >>> minitx.sweep(model, "The dog ran", "The cat ran", largest).shape  # 4 layers, 5 tokens
    (4, 5)
    >>> minitx.sweep(model, "The dog ran", "The cat ran", largest, "z").shape  # and 4 heads
    (4, 4)
    """
    batch = as_batch(model, text)
    other = as_batch(model, source)
    _check(model, point, batch, other)
    if not callable(measure):
        raise ValueError(f"measure is {measure!r:.80}; wanted a function of logits")
    edits_by_point(edits or {}, points(model, batch.types is not None), model)
    edits = dict(edits or {})
    values = _run(model, other, point, edits).stack(point)  # [L B T ...] or [L B H ...]
    streams = _run(model, batch, "resid_pre", edits)
    L, n = len(values), values.shape[2]
    n_copies = 1  # edits are of these texts alone
    if not edits and has_texts(point):
        n_copies = at_once(batch)
    results = np.empty((L, n))
    done = 0
    with bar(progress is True, "patches", L * n):
        for layer, first in product(range(L), range(0, n, n_copies)):
            indices = range(first, min(first + n_copies, n))
            patched = edits | {(point, layer): _patch(values[layer], indices)}
            start = Start(layer, copies(streams["resid_pre", layer], len(indices)))
            several = Batch(*(copies(x, len(indices)) for x in batch))
            y = _logits(model, several, patched, start if layer else None)
            for i, own in zip(indices, np.split(y, len(indices))):
                results[layer, i] = _number(measure(own))
                step()
                done += 1
                if callable(progress):
                    progress(done, L * n)
    return results


def at_once(batch: Batch) -> int:
    """How many copies of these texts are patched, each at another place, in one pass."""
    return max(1, TOKENS // batch.valid.size)


def copies(x, n):  # [B ...] -> [n B ...]
    """The texts of an array n times, one copy behind the other; None stays None."""
    return x if x is None or n == 1 else np.concatenate([x] * n)


def _run(model, batch, keep, edits):
    return run(model, batch.tokens, keep, edits, valid=batch.valid, types=batch.types)


def _logits(model, batch, edits, start):
    """The logits of an edited run that begins at a layer; all before it is as without the patch."""
    available = points(model, batch.types is not None)
    edits = edits_by_point(edits, available, model)
    trace = Trace(model, batch, None, expand(["logits"], available, model), edits)
    with suppress(Complete):
        options = {"valid": batch.valid, "types": batch.types}
        x = forward(model, batch.tokens, **options, start=start, hook=trace)
        logits(model, x, valid=read_tokens(model.config, batch, None), hook=trace)
    return trace["logits"]


def _patch(values, indices):
    """The edit of as many copies of the texts: each takes one index of the second axis."""

    def patched(x):
        each = x.reshape(len(indices), -1, *x.shape[1:])
        for copy, i in zip(each, indices):
            copy[:, i] = values[:, i]
        return x

    return patched


def _check(model, point, batch, other):
    """Raises ValueError for texts of different lengths, or a point that is not in every layer."""
    names = list(dict.fromkeys(key[0] for key in points(model) if isinstance(key, tuple)))
    if point not in names:
        raise ValueError(f"point is {point!r}; a sweep takes one of: {', '.join(names)}")
    if not np.array_equal(batch.valid, other.valid):
        given = list(other.tokens.shape)
        wanted = list(batch.tokens.shape)
        text = f"the source has tokens {given}, the text {wanted}"
        raise ValueError(f"{text}; wanted two texts with the same number of tokens")


def _number(value):
    """What a measure gave. Raises ValueError unless it is one real number."""
    if np.ndim(value):
        shape = list(np.shape(value))
        raise ValueError(f"the measure returns an array {shape}; wanted one number per run")
    if np.asarray(value).dtype.kind in "USc" or not hasattr(value, "__float__"):
        raise ValueError(f"the measure returns {value!r:.80}; wanted one number per run")
    return value
