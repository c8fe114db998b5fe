"""Task heads: what a model is asked for, and which tokens it is asked about.

A head is one or two linear layers behind the last stream (`logits` in model.py); the names of its
tensors are in families/, and checkpoint.py finds out which of them a file holds. Axis letters: see
model.py.
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
    "masked": Head("B T V", "the word at each place, itself hidden"),
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


def classified_token(x, valid, cfg):  # [B T D] -> [B 1 D]
    """The stream at each text's first valid token, or at its last in a causal model.

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
    token = T - 1 - valid[:, ::-1].argmax(axis=1) if cfg.causal else valid.argmax(axis=1)
    return np.take_along_axis(x, token[:, None, None], axis=1)
