"""What is to be continued: from what a user gives to padded ids."""

from typing import NamedTuple

import numpy as np

from .inputs import Batch, as_batch, check_batch, check_source, is_text, padded, shifted


class Prompts(NamedTuple):
    """What is to be continued, and in which form the result is wanted."""

    batch: Batch  # padded on the left
    source: Batch | None  # of an encoder-decoder
    ragged: bool  # a list of rows is wanted, without padding
    single: bool  # only one row was given, not a list of them


def read_prompts(model, prompt, valid, source, source_valid):
    """Texts, ids or nothing, and the source of an encoder-decoder, as Prompts."""
    check_source(model, source)
    source_batch = None
    if source is not None:
        source_batch = as_batch(model.encoder, source, source_valid)
    given = source if prompt is None else prompt
    if given is None:
        raise ValueError("no prompt; wanted a text, a list of texts, or ids to continue")
    rows = None
    if prompt is None:
        rows = [[model.config.start_id]] * len(source_batch.tokens)
    else:
        rows = _rows_of_ids(model, prompt)
    ragged = rows is not None and (prompt is not None or is_text(source))
    single = isinstance(given, str) or (not ragged and np.ndim(given) == 1)
    if rows is None:
        return Prompts(check_batch(model.config, prompt, valid), source_batch, ragged, single)
    if valid is not None:
        text = "valid goes with an array of token ids; texts and rows of several lengths are padded"
        raise ValueError(f"{text} here")
    tokens, is_token = padded(rows, model.config.pad_id, left=True)
    return Prompts(check_batch(model.config, tokens, is_token), source_batch, ragged, single)


def _rows_of_ids(model, prompt):
    """Ids of each prompt, if these are texts or of several lengths; None for an array of ids."""
    rows = [prompt] if isinstance(prompt, str) else prompt
    if not len(rows):
        return None
    if isinstance(rows[0], str):
        rows = [model.tokenizer.encode(text) for text in rows]
        return rows if model.encoder is None else [shifted(model.config, row) for row in rows]
    several_lengths = np.ndim(rows[0]) > 0 and len({len(row) for row in rows}) > 1
    return rows if several_lengths else None


def check_generates(model):
    """Raises ValueError for a model that cannot continue a text."""
    task_head = model.config.task_head
    if task_head != "causal":
        text = f"generate needs a causal language model; this one has head {task_head!r}"
        raise ValueError(text)


def check_room(model, batch, n):
    """Raises ValueError if prompts, with n new tokens each, do not fit the model."""
    if not batch.valid[:, -1].all():
        raise ValueError("a row ends in padding; pad prompts on the left to continue them")
    longest, n_ctx = int(batch.valid.sum(axis=1).max()), model.config.n_ctx
    if model.config.n_pos and longest + n - 1 > n_ctx:  # the last new token is not read
        raise ValueError(f"{longest} tokens and {n} new ones; this model reads at most {n_ctx}")
