"""Task heads: what a model is asked for, and which tokens it is asked about.

A head is one or two linear layers behind the last stream (`logits` in model.py); the names of its
tensors are in loading/families/, and loading/checkpoint.py finds out which of them a file holds.
Axis letters: see model.py.
"""

from typing import NamedTuple

import numpy as np


class Head(NamedTuple):
    """One kind of task head: `config.task_head` is its name."""

    axes: str  # of its logits: V scores over the vocabulary, C over classes
    meaning: str
    saved_from: str = ""  # how classes of the reference library that hold it end
    classes: tuple[str, ...] = ()  # their names where they are always the same

    @property
    def of_classes(self):
        """Whether the scores are over classes, not over the vocabulary."""
        return self.axes.endswith("C")

    @property
    def is_pooled(self):
        """Whether one token of each text is read for the whole text."""
        return "T" not in self.axes


HEADS = {
    "masked": Head("B T V", "the word at each position, itself hidden"),
    "causal": Head("B T V", "the word after each token"),
    "sequence": Head("B C", "the class of the text", "ForSequenceClassification"),
    "token": Head("B T C", "the class of each token", "ForTokenClassification"),
    "question": Head(
        "B T C", "start and end of the answer", "ForQuestionAnswering", ("start", "end")
    ),
    "next_sentence": Head(
        "B C",
        "whether text two follows text one",
        "ForNextSentencePrediction",
        ("follows", "does not follow"),
    ),
    "choice": Head(
        "B C", "how well a text fits; each row is a choice", "ForMultipleChoice", ("fit",)
    ),
    "image": Head("B C", "the class of the picture", "ForImageClassification"),
    "taught": Head(
        "B C", "the same, mean of two classifiers (DeiT)", "ForImageClassificationWithTeacher"
    ),
    "projection": Head("B C", "the vector that is compared with a text's (CLIP)", "WithProjection"),
    "replaced": Head(
        "B T C", "whether each token was put in another's place", "ForPreTraining", ("replaced",)
    ),
}


def saved_with(architecture):
    """The names of heads that a class of the reference library may be saved with."""
    classes = {name: head.saved_from for name, head in HEADS.items() if head.saved_from}
    return [name for name, ending in classes.items() if architecture.endswith(ending)]


def is_pooled(task_head):
    """Whether a head, or None, gives one row of scores for a whole text."""
    return task_head is not None and HEADS[task_head].is_pooled


def of_classes(task_head):
    """Whether a head, or None, gives scores over classes."""
    return task_head is not None and HEADS[task_head].of_classes


def axes_of_logits(task_head):
    """Letters of the axes of a head's logits."""
    return HEADS[task_head].axes.split()


def require_head(model):
    """Raises ValueError if the model has no head that gives logits."""
    if reason := why_no_logits(model):
        raise ValueError(reason)


def why_no_logits(model):
    """The sentence on a model without a head that gives logits; "" where it has one."""
    cfg = model.config
    if cfg.task_head and not cfg.no_head:
        return ""
    text = f"this checkpoint ({cfg.architecture or cfg.model_type}) has no head that gives logits"
    if cfg.no_head:
        return f"{text}: {cfg.no_head}"
    return f"{text}; tensors that were not read: {', '.join(model.unused[:6]) or 'none'}"


OF_PICTURES = "image", "taught"  # they may read several vectors side by side
READS = {  # what a head for a picture reads: the tokens of which it takes the mean
    "class": slice(0, 1),
    "distillation": slice(1, 2),
    "patches": slice(1, None),  # of a model with one special token
}


def token_shares(T, cfg):  # -> [r T]
    """Each token's share of the r vectors that a head for a picture reads side by side."""
    share = np.zeros((len(cfg.head_reads), T))
    for row, name in zip(share, cfg.head_reads):
        row[READS[name]] = 1
    return share / share.sum(axis=1, keepdims=True)


def read_tokens(cfg, batch, source=None):  # -> [B T] bool
    """Which tokens the head reads: one of each text that is classified, else all valid ones.

    As in the reference library the ids determine it (READ_AT), for an encoder-decoder those of its
    source, a Batch. Raises ValueError for texts in which there is no such token.
    """
    own_valid = batch[1]
    rule = cfg.read_at or ("last" if cfg.causal else "first")
    if not is_pooled(cfg.task_head) or cfg.mean_pooled or rule == "first":
        return own_valid
    ids, valid = (batch if source is None else source)[:2]
    column = READ_AT[rule](ids, _between(valid), cfg.read_id)
    if source is not None:
        column = _column_of_target(column, valid, own_valid)
    return np.arange(own_valid.shape[1]) == column[:, None]


def read_in(trace, model):  # -> [B T] bool
    """The same of a Trace of texts whose sources have no padding."""
    source = None
    if trace.source is not None:
        source = trace.source, np.ones(trace.source.shape, bool)
    return read_tokens(model.config, (trace.tokens, trace.valid), source)


def _between(valid):  # [B T] bool -> [B T] bool
    """From the first valid token to the last: the library reads a token that a mask hides, too."""
    after_first = np.logical_or.accumulate(valid, axis=1)
    return after_first & np.logical_or.accumulate(valid[:, ::-1], axis=1)[:, ::-1]


def _last_of_text(ids, valid, pad):  # [B T], [B T] bool -> [B]
    """The last token that is no padding by its id, either."""
    if pad is None:
        return _last(valid)
    is_text = valid & (ids != pad)
    return np.where(is_text.any(axis=1), _last(is_text), valid.argmax(axis=1))


def _last_end(ids, valid, end):
    """The last end token. Raises ValueError unless all texts have as many of them, one or more."""
    is_end = valid & (ids == end)
    counts = sorted({*is_end.sum(axis=1).tolist()})
    if len(counts) > 1 or counts == [0]:
        text = f"the texts have {' or '.join(map(str, counts))} end tokens (id {end})"
        raise ValueError(f"{text}; the head reads the last one: wanted the same number in each")
    return _last(is_end)


def _first_end(ids, valid, end):
    """The first end token; the first token where there is none."""
    is_end = valid & (ids == end)
    return np.where(is_end.any(axis=1), is_end.argmax(axis=1), valid.argmax(axis=1))


def _largest_id(ids, valid, end):
    """The first of the largest id, which was the end token's in the vocabulary of CLIP."""
    return np.where(valid, ids, -1).argmax(axis=1)


READ_AT = {  # Config.read_at -> (ids, valid, Config.read_id) -> column of each text
    "last": _last_of_text,
    "last_end": _last_end,
    "first_end": _first_end,
    "largest_id": _largest_id,
}


def _last(seen):  # [B T] bool -> [B]
    return seen.shape[1] - 1 - seen[:, ::-1].argmax(axis=1)


def _column_of_target(column, source_valid, valid):  # [B] -> [B]
    """The decoder's column of the same number as a column of the source, padding not counted.

    Raises ValueError unless the decoder reads as many tokens.
    """
    lengths = [seen.sum(axis=1).tolist() for seen in (source_valid, valid)]
    if lengths[0] != lengths[1]:
        text = f"the sources have {lengths[0]} tokens, the decoder's texts {lengths[1]}"
        raise ValueError(f"{text}; this head reads the decoder at the source's end: wanted as many")
    number = source_valid.cumsum(axis=1)[np.arange(len(column)), column]
    return (valid.cumsum(axis=1) == number[:, None]).argmax(axis=1)


def require_padding(cfg, batch):
    """Raises ValueError for texts of which nothing says where they end, as the reference library.

    Those are several, read by a causal classifier whose config.json names no padding.
    """
    is_last = (cfg.read_at or ("last" if cfg.causal else "")) == "last"
    if is_last and is_pooled(cfg.task_head) and cfg.read_id is None and len(batch.tokens) > 1:
        text = f"{len(batch.tokens)} texts, and config.json has no pad_token_id"
        raise ValueError(f"{text}: this head reads the last token; wanted valid=")


def classified_token(x, valid, cfg):  # [B T D] -> [B 1 D]
    """The stream at each text's first valid token, or at its last in a causal model.

    valid: what `read_tokens` gives, or bool of the tokens alone.
    Some ModernBERT have the mean of a text's tokens in its place; some models of pictures have
    several vectors side by side, [B 1 rD].
    """
    B, T, _ = x.shape
    if cfg.head_reads:
        return (token_shares(T, cfg).astype(x.dtype) @ x).reshape(B, 1, -1)
    valid = np.ones((B, T), bool) if valid is None else np.atleast_2d(np.asarray(valid, bool))
    if cfg.mean_pooled:
        share = valid / valid.sum(axis=1, keepdims=True)
        return share[:, None].astype(x.dtype) @ x
    is_last = cfg.causal or cfg.read_at
    token = _last(valid) if is_last else valid.argmax(axis=1)
    return np.take_along_axis(x, token[:, None, None], axis=1)
