"""Positions switched at run time, whatever the mechanism: off, or each token given another's.

Edits for `minitx.run` at the points where positions enter: rows of a table, angles by which queries
and keys are turned, terms of the scores by distance, or the distances that terms are of. T tokens,
n of them moved.
"""

from functools import partial

import numpy as np

ENTERS = {  # mechanism (Config.mechanisms) -> the point at which it enters
    "learned": "pos_embed",
    "sinusoidal": "pos_embed",
    "rotary": "pos_angle",
    "buckets": "pos_bias",
    "alibi": "pos_bias",
    "disentangled": "pos_row",
}


def points(config):
    """Where positions enter a stack, in the order of the pass; none in a model without any."""
    return [*dict.fromkeys(ENTERS[name] for name in config.mechanisms)]


def off(config):
    """{point: edit} that take all positions away: nothing added, nothing turned."""
    added = [point for point in points(config) if point != "pos_row"]
    return dict.fromkeys([*added, *config.pos_terms], np.zeros_like)


def moved(config, index):
    """{point: edit} by which token t has the position of token index[t]; index: [T]."""
    return {point: partial(MOVES[point], index=index) for point in points(config)}


def rows(x, index):  # [B T D] or [B T r]
    """The rows of the tokens at `index`."""
    return x[:, index]


def _rows_and_columns(x, index):  # [B H T S] or [B T S]
    return x[..., index, :][..., index]


MOVES = {"pos_embed": rows, "pos_angle": rows}
MOVES |= dict.fromkeys(("pos_bias", "pos_row"), _rows_and_columns)


def condition(edits):
    """The condition, as the losses want it, in which {point: edit} stand in the place of points."""

    def hook(name, x, layer=None):
        return edits[name](x) if name in edits else x

    return lambda model: hook
