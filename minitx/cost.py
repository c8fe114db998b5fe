"""What a trace will hold, in bytes, before it is recorded: from the axes of its points alone."""

import math
from collections.abc import Sequence

from numpy.typing import ArrayLike

from .arrays import Model
from .heads import axes_of_logits
from .inputs import Ids, Texts
from .model import CROSS, ENCODER
from .points import POINTS, Key, expand, name_of, points
from .trace import read_inputs


def cost(
    model: Model,
    text: Texts | Ids | None,
    keep: Key | Sequence[Key] | None = None,
    *,
    source: Texts | Ids | None = None,
    types: ArrayLike | None = None,
) -> int:
    """Size in bytes of the trace of `run(model, text, keep, source=source, types=types)`.

    All points of a short text, and the queries alone:

    >>> import minitx
    >>> model = minitx.load("tiny-roberta")
    >>> minitx.cost(model, "A dog"), minitx.cost(model, "A dog", keep="q")
    (228840, 10240)
    >>> minitx.run(model, "A dog", keep="q").nbytes
    10240
    """
    batch, source_batch = read_inputs(model, text, source, None, types=types)
    sizes = {"": _sizes(model, batch)}
    if source_batch is not None:
        sizes[ENCODER] = _sizes(model.encoder, source_batch)
        sizes[CROSS] = sizes[""] | {"S": sizes[ENCODER]["S"]}
    recorded = expand(keep, points(model, batch.types is not None), model)
    shapes = {key: _shape(name_of(key), sizes) for key in recorded}
    if "logits" in shapes:
        letters = sizes[""] | {"C": model.weights.W_U.shape[1]}
        shapes["logits"] = [letters[axis] for axis in axes_of_logits(model.config.task_head)]
    return sum(map(math.prod, shapes.values())) * model.weights.W_E.itemsize


def _sizes(model, batch):
    """{letter of an axis: its size} for the points of one stack."""
    cfg = model.config
    B, T = batch.valid.shape
    sizes = {"1": 1, "B": B, "T": T, "S": T, "V": cfg.n_vocab}
    sizes |= {"D": cfg.d_model, "M": cfg.d_mlp, "d": cfg.d_head}
    sizes |= {"H": cfg.n_heads, "G": cfg.n_kv}
    sizes["E"] = cfg.d_embed or cfg.d_model
    sizes["A"] = cfg.n_heads * cfg.d_head
    sizes["K"] = cfg.n_kv * cfg.d_head
    sizes["R"] = cfg.n_distances
    for turn in cfg.rotary:
        if turn is not None:
            sizes["r"] = len(turn.frequencies)
    return sizes


def _shape(name, sizes):
    """Sizes of a point's axes; sizes: {how a point begins: {letter of an axis: size}}."""
    begins = [part for part in (CROSS, ENCODER) if name.startswith(part)]
    by_letter = sizes["".join(begins)]
    return [by_letter[axis] for axis in POINTS[name].axes.split()]
