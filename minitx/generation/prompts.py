"""What is to be continued: from what a user gives to padded ids, and back to rows of ids."""

from typing import NamedTuple

import numpy as np

from ..inputs import Batch, as_batch, check_batch, check_source, is_text, padded, shifted
from .constraints import until


class Prompts(NamedTuple):
    """What is to be continued, and in which form the result is wanted."""

    batch: Batch  # padded on the left
    source: Batch | None  # of an encoder-decoder
    ragged: bool  # a list of rows is wanted, without padding
    single: bool  # only one row was given, not a list of them

    def with_new(self, new, stop):
        """Each prompt and its new tokens [B n], in the form that is wanted."""
        tokens, valid = self.batch.tokens, self.batch.valid
        rows = [*np.concatenate([tokens, new], axis=1)]
        if self.ragged:
            own = [row[is_token] for row, is_token in zip(tokens, valid)]
            rows = [np.concatenate([row, until(stop, more)]) for row, more in zip(own, new)]
        if self.single:
            return rows[0]
        return rows if self.ragged else np.array(rows)


def read_prompts(model, prompt, valid, source, source_valid):
    """Texts, ids or nothing, and the source of an encoder-decoder, as Prompts."""
    check_source(model, source)
    sources = None if source is None else _source(model, source, source_valid)
    if prompt is None:
        return _starts(model.config, valid, source, sources)
    rows = _rows_of_ids(model, prompt)
    if rows is None:
        batch = check_batch(model.config, prompt, valid)
        return Prompts(batch, sources, ragged=False, single=_is_row(prompt))
    _refuse_valid(valid)
    tokens, is_token = padded(rows, model.config.pad_id, left=True)
    batch = check_batch(model.config, tokens, is_token)
    return Prompts(batch, sources, ragged=True, single=isinstance(prompt, str))


def _starts(cfg, valid, source, sources):
    """The start token alone for each source, in the form in which the source is given."""
    if sources is None:
        raise ValueError("no prompt; wanted a text, a list of texts, or ids to continue")
    _refuse_valid(valid)
    batch = check_batch(cfg, [[cfg.start_id]] * len(sources.tokens))
    ragged = is_text(source) or _several_lengths(source)
    return Prompts(batch, sources, ragged, single=isinstance(source, str) or _is_row(source))


def _source(model, source, valid):
    """What an encoder-decoder reads as a checked Batch; rows of several lengths are padded."""
    if is_text(source) or not _several_lengths(source):
        return as_batch(model.encoder, source, valid)
    _refuse_valid(valid)
    cfg = model.encoder.config
    return check_batch(cfg, *padded(source, cfg.pad_id))


def _rows_of_ids(model, prompt):
    """Ids of each prompt, if these are texts or of several lengths; None for an array of ids."""
    if not is_text(prompt):
        return prompt if _several_lengths(prompt) else None
    texts = [prompt] if isinstance(prompt, str) else prompt
    for text in texts:
        model.tokenizer.warn_of_unknown(text)
    rows = [model.tokenizer.encode(text) for text in texts]
    return rows if model.encoder is None else [shifted(model.config, row) for row in rows]


def _several_lengths(rows):
    """Whether these are rows of ids that make no array."""
    if not np.iterable(rows) or len(rows) < 2 or not np.ndim(rows[0]):
        return False
    return len({len(row) for row in rows}) > 1


def _is_row(given):
    """Whether these are the ids of one text."""
    return not is_text(given) and np.ndim(given[0]) == 0


def _refuse_valid(valid):
    """Raises ValueError if `valid` is given where it is not accepted."""
    if valid is not None:
        text = "valid goes with an array of token ids; texts and rows of several lengths are padded"
        raise ValueError(f"{text} here")


def check_generates(model, ignore_settings=False):
    """Raises ValueError for a model that cannot continue a text, or not as its folder says."""
    task_head = model.config.task_head
    if task_head != "causal":
        text = f"generate needs a causal language model; this one has head {task_head!r}"
        raise ValueError(text)
    refused = model.config.generation.refused
    if refused and not ignore_settings:
        raise ValueError(refused)


def check_stop(stop, n_vocab):
    """Raises ValueError for a token that cannot end a row."""
    is_token = isinstance(stop, int | np.integer) and -1 <= stop < n_vocab
    if stop is not None and not is_token:
        raise ValueError(
            f"stop={stop!r:.80}; wanted a token id from 0 to {n_vocab - 1}, or -1 for none"
        )


def check_room(model, batch, n, reads_last=False):
    """Raises ValueError if prompts, with n new tokens each, do not fit the model."""
    if not batch.valid[:, -1].all():
        raise ValueError("a row ends in padding; pad prompts on the left to continue them")
    longest, n_ctx = int(batch.valid.sum(axis=1).max()), model.config.n_ctx
    n_read = longest + n - (not reads_last)  # the last new token is read for `keep` alone
    if model.config.n_pos and n_read > n_ctx:
        why = " and keep reads the last, too;" if reads_last else ""
        text = f"{longest} tokens and {n} new ones;{why} this model reads at most {n_ctx}"
        raise ValueError(text)
