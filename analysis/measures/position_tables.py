"""Tables that can replace the position table, and a condition that does so.

P positions, D width.
"""

from dataclasses import replace

import numpy as np

from ..contract.registry import NotApplicable
from ..drawing import draw
from . import inputs

WAYS = {  # name -> the table [P D] that replaces the position table [P D]
    "zero": lambda table, rng: np.zeros_like(table),
    "mean": lambda table, rng: np.broadcast_to(table.mean(axis=0, dtype=np.float64), table.shape),
    "shuffled": lambda table, rng: rng.permutation(table),
    # row t is row t + half, round the end
    "shifted": lambda table, rng: np.roll(table, -(len(table) // 2), axis=0),
}
COLORS = {"kept": draw.GREY} | dict(zip(WAYS, (draw.BLUE, draw.ORANGE, draw.GREEN, draw.PURPLE)))
PREDICTS = {"causal": "loss", "masked": "pseudo-loss"}


def check_head(model, name):
    """Raise NotApplicable if the model predicts no tokens; name: of the experiment."""
    head = model.config.task_head
    if head not in PREDICTS:
        raise NotApplicable(
            f"{name} needs a masked or causal language model; this checkpoint's head is {head}"
        )


def stand_in(rows):
    """The condition in which `rows` [P D] replace the position table."""

    def hook(name, x, layer=None):
        if name == "pos_embed":
            return np.broadcast_to(rows[: x.shape[1]], x.shape)
        return x

    return lambda model: hook


def with_table(model, table):
    """The model with another position table."""
    weights = type(model.weights)(**vars(model.weights) | {"W_pos": table})
    return replace(model, weights=weights)


def tables(model, seed):
    """Every way's table [P D], of the rows that a token can reach."""
    table = inputs.reachable(model)
    by_way = {}
    for way, make in WAYS.items():
        by_way[way] = make(table, np.random.default_rng(seed)).astype(table.dtype)
    return by_way
