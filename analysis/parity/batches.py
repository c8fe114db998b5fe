"""Rows of token ids as the batches that are compared: each alone, and all in one padded batch."""

import numpy as np

from minitx.heads import is_pooled
from minitx.inputs import padded, shifted

from ..contract.sides import reader
from .library import Inputs


def of_rows(rows, model):
    """[Inputs] of rows of ids for a Model: one for each, and one for all, padded on the right."""
    groups = [[row] for row in rows]
    if len(rows) > 1:
        groups.append(rows)
    return [of_group(group, model) for group in groups]


def of_group(rows, model):
    """Rows of ids as Inputs; an encoder-decoder reads them as source and, shifted, as target.

    Any ids would do for a target. Where its vocabulary is smaller, ids beyond it become its last.
    """
    cfg = model.config
    if model.encoder is not None and is_pooled(cfg.task_head):
        rows = [ended(row, cfg.end_id) for row in rows]
    own = padded(rows, reader(model).config.pad_id)
    if model.encoder is None:
        return Inputs(*own)
    targets = [np.minimum(shifted(cfg, row)[: cfg.n_ctx], cfg.n_vocab - 1) for row in rows]
    return Inputs(*padded(targets, cfg.pad_id), *own)


def ended(row, end_id):
    """Ids with one end token, at the end, where the library looks for the class of a source."""
    return [*(token for token in row[:-1] if token != end_id), end_id]


def random_rows(cfg, n, most, seed):
    """n rows of random ids of several lengths up to `most`, none of which stands for padding."""
    rng = np.random.default_rng(seed)
    lengths = np.linspace(most, max(2, most // 4), n).astype(int)
    rows = [rng.integers(0, cfg.n_vocab - 1, length) for length in lengths]
    return [row + (row >= cfg.pad_id) for row in rows]
