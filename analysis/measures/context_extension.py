"""A model made to read longer inputs than it was trained on, and what tells it where a token is.

Turned queries and keys and terms of the scores go on by themselves. Sinusoids are computed further.
A learned table has no further rows: its own are read again from the start. P positions, D width.
"""

from dataclasses import replace

import numpy as np

from minitx import positions

CLOSE = 0.01  # of the amplitude: rows nearer to sinusoids are sinusoids
HOW = {  # mechanism -> what a longer input needs
    "learned": "rows of the table again from the start",
    "sinusoidal": "the sinusoids computed further",
    "none": "nothing",
    "rotary": "nothing",
    "alibi": "nothing",
    "buckets": "nothing",
    "disentangled": "nothing",
}


def mechanisms(model):
    """What tells this model where a token is: a list of names of HOW.

    As Config.mechanisms, but a table that is 0 tells nothing, and one whose rows are sinusoids is
    called so.
    """
    names = list(model.config.mechanisms)
    if "learned" in names and model.weights.W_pos is not None:
        rows = _rows(model)
        kind = "learned"
        if not rows.any():
            kind = "none"
        elif _further(rows, len(rows)) is not None:
            kind = "sinusoidal"
        names[names.index("learned")] = kind
    known = [name for name in names if name != "none"]
    return known or ["none"]


def lengthened(model, n):
    """A Model that reads inputs of n tokens, or as many as it reads by itself if these are more."""
    cfg = model.config
    if n <= cfg.n_ctx:
        return model
    if not cfg.n_pos:
        return replace(model, config=replace(cfg, n_ctx=n))
    before = model.weights.W_pos[: cfg.offset]
    table = np.concatenate([before, _longer(_rows(model), n)]).astype(before.dtype)
    longer = replace(cfg, n_ctx=n, n_pos=len(table))
    weights = type(model.weights)(**vars(model.weights) | {"W_pos": table})
    return replace(model, config=longer, weights=weights)


def _rows(model):
    """The rows that a token can read [P D]."""
    cfg = model.config
    return model.weights.W_pos[cfg.offset : cfg.offset + cfg.n_ctx]


def _longer(rows, n):
    """Rows [P D] and what follows them: [n D]."""
    further = _further(rows, n)
    if further is None:
        return rows[np.arange(n) % len(rows)]
    return np.concatenate([rows, further[len(rows) :]])


def _further(rows, n):
    """Sinusoids [n D] that begin as these rows [P D] do; None if the rows are no sinusoids.

    Sines and cosines stand in two halves (positions.sinusoids) or side by side (Vaswani et al.
    2017).
    """
    P, D = rows.shape
    halves = positions.sinusoids(n, D).astype(np.float64)
    side_by_side = np.empty_like(halves)
    n_sines = (D + 1) // 2
    side_by_side[:, ::2] = halves[:, :n_sines]
    side_by_side[:, 1::2] = halves[:, n_sines:]
    for known in (halves, side_by_side):
        first = known[:P]
        size = (rows * first).sum() / (first * first).sum()
        if abs(rows - size * first).max() < CLOSE * abs(size):
            return size * known
    return None
