"""Texts, one at a time, through a model, and a point of it as rows: one vector for each token.

No text is padded, so what is computed of one depends on no other. T tokens, F numbers of a vector.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..heads import axes_of_logits
from ..inputs import Batch, as_batch, as_model, check_runs, is_text
from ..points import POINTS, expand, name_of, points
from ..trace import run


def reader(model):
    """A Model, or that of a name, that reads texts in one stack. Raises ValueError for others."""
    model = as_model(model)
    cfg = model.config
    if cfg.picture is not None:
        side = "; its text side is model.text" if model.text is not None else ""
        text = f"this model ({cfg.model_type}) reads pictures"
        raise ValueError(f"{text}; expected a model that reads texts{side}")
    if model.encoder is not None:
        text = f"this model ({cfg.model_type}) is an encoder-decoder"
        raise ValueError(f"{text}; expected a single stack, such as its encoder: model.encoder")
    check_runs(model, None)
    return model


def point_of(model, key):
    """The one point of a key. Raises ValueError unless it has one vector for each token."""
    keys = expand(key, points(model), model)
    if key is None or len(keys) != 1:
        last = model.config.n_layers - 1
        text = f"{key!r:.80} is {len(keys)} points"
        raise ValueError(f"{text}; expected one, such as ('resid_post', layer), layer 0 to {last}")
    axes = axes_of(model, keys[0])
    is_by_token = len(axes) == 3 and axes[1] == "T"
    is_by_head = len(axes) == 4 and axes[1] in "HG" and axes[2] == "T" and axes[3] != "S"
    if axes[0] != "B" or not (is_by_token or is_by_head):
        raise ValueError(
            f"{keys[0]!r} is [{' '.join(axes)}]; expected a point with one vector for each token, "
            "such as resid_post, mlp_out, post or z"
        )
    return keys[0]


def axes_of(model, key):
    """The letters of a point's axes."""
    if key == "logits":
        return axes_of_logits(model.config.task_head)
    return POINTS[name_of(key)].axes.split()


def listed(texts: Any, name="texts") -> list:
    """One text or row of ids, or several, as a list. Raises ValueError where there is none."""
    if isinstance(texts, str):
        return [texts]
    every = [*texts] if isinstance(texts, Iterable) else []
    if not every:
        raise ValueError(f"{name} are {texts!r:.80}; expected a list of texts, or of rows of ids")
    if np.ndim(every[0]) == 0 and not isinstance(every[0], str):
        return [np.asarray(texts)]
    return every


def encoded(model, texts: Sequence) -> list[Batch]:
    """Each text, pair of texts, or row of ids as a Batch of its own, checked before any pass."""
    return [encode(model, text, i) for i, text in enumerate(texts)]


def encode(model, text, number):
    """One text as a Batch. Raises ValueError that names its number if it is too long."""
    try:
        batch = as_batch(model, [text] if is_text(text) else text)
    except ValueError as error:  # it was the first of one
        raise ValueError(str(error).replace("text 0 ", f"text {number} ", 1)) from None
    n, longest = batch.tokens.shape[1], model.config.n_ctx
    if n > longest:
        raise ValueError(f"text {number} has {n} tokens; this model reads at most {longest}")
    return batch


def vectors(model, batch, keys, edits=None):  # -> {key: [T F]}
    """The vectors of one text's tokens at each of these points; heads stand side by side."""
    trace = run(model, batch.tokens, keys, edits, valid=batch.valid, types=batch.types)
    return {key: rows(trace[key]) for key in keys}


def rows(x):  # [1 T F], or [1 H T d] -> [T F], or [T H*d]
    """The numbers of each token."""
    if x.ndim == 3:
        return x[0]
    return x[0].swapaxes(0, 1).reshape(x.shape[2], -1)


def random_of(model, seed):
    """A model of the same shape with random weights."""
    from ..analysis.measures import document_features

    return document_features.untrained(model, np.random.default_rng(seed))


def choice(name, value, choices):
    """The entry of a value in a dictionary. Raises ValueError that lists what there is."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} is {value!r:.80}; expected one of: {', '.join(choices)}")
    return choices[value]


POOLS = {  # vectors of a text's tokens [T F] -> [1 F]
    "last": lambda x: x[-1:],
    "mean": lambda x: x.mean(axis=0, keepdims=True, dtype=np.float64),
}
