"""How positions form in a training: every measure of `moments` against the step.

`compute` reads the snapshots of a history, one after another. Results of other seeds and kinds,
made in the same way, may lie beside it in one file (seeds.py): they say in which order measures
form, and whether one kind learns sooner than another. words.py tells both. S snapshots.
"""

import numpy as np

from . import moments
from .moments import MEASURES, What

__all__ = ["MEASURES", "What", "compute"]


def compute(history, what, tell=lambda done: None):
    """{name: array [S ...]} of a minitx.History, and its `losses`, of each step.

    tell: called with how many snapshots are done, after each. Raises ValueError for a history
    without snapshots, or a text that is too short.

    >>> import minitx
    >>> config = {"model_type": "gpt2", "n_layer": 1, "n_head": 2, "n_embd": 16, "n_positions": 32}
    >>> config |= {"vocab_size": 300, "layer_norm_epsilon": 1e-5, "activation_function": "gelu"}
    >>> history = minitx.train(config, ["the dog ran to the sea"] * 20, steps=2, batch=2)
    >>> results = compute(history, What(documents=12, shuffles=9))
    >>> results["steps"], results["looks"].shape  # heads look at 21 offsets
    (array([0, 1, 2]), (3, 1, 2, 21))
    """
    if len(history.snapshots) < 2:
        raise ValueError(f"the history has {len(history.snapshots)} snapshots; wanted 2 or more")
    rows = []
    for step in history.snapshots:
        rows.append(moments.measured(history.model_after(step), what))
        tell(len(rows))
    result = moments.stacked(rows) | {"steps": np.array(history.snapshots)}
    return result | {"losses": np.asarray(history.losses)}
