"""What a model learns from: batches of documents, with a target for every place that counts.

Words: full documents of one length, in which hidden words or the next ones are to be told. Classes:
texts as they are, padded, with a label each; or the same texts in their own and in a random order
of words, which are the two classes. B texts, T tokens.

Batch number i is a function of the seed and i alone, so a loop may go on from any of them.
"""

import functools
from typing import NamedTuple

import numpy as np

from minitx.inputs import padded
from minitx.learning.gradients import UNCOUNTED

from ..measures import losses
from ..texts import corpus, formats

FATES = 0.8, 0.9  # of the words to tell: hidden; another word up to here; the rest as they are
ORDERS = "original", "shuffled"


class Batch(NamedTuple):
    """What `minitx.gradients` is given."""

    tokens: np.ndarray  # [B T]
    targets: np.ndarray  # [B T], or [B]
    valid: np.ndarray  # [B T]


class Words:
    """Full documents [N T]: a masked model tells hidden words, a causal one the next."""

    classes = ()

    def __init__(self, model, text, n, T, column="", share=0.15):
        cfg = model.config
        if cfg.task_head not in ("masked", "causal") or model.encoder is not None:
            raise ValueError(
                f"this model's head is {cfg.task_head}; words are learned by one stack with the "
                "head masked or causal, --task labels or order by any single stack"
            )
        self.cfg, self.share = cfg, share
        documents = corpus.documents(model, formats.of(text, column=column), n, T, 1 << 40)
        self.rows = np.array([*documents])
        self.inner = documents.ordinary()
        self.mask_id = None
        if not cfg.causal:
            self.mask_id = losses.mask_token(model.tokenizer)
        self.groups = np.arange(len(self.rows))

    def batch(self, numbers, rng):
        """These documents with their targets."""
        tokens = self.rows[numbers]
        valid = np.ones(tokens.shape, bool)
        targets = np.full(tokens.shape, UNCOUNTED)
        if self.mask_id is None:
            targets[:, :-1] = tokens[:, 1:]
            return Batch(tokens, targets, valid)
        draws = rng.random(tokens[:, self.inner].shape) < self.share
        draws[:, 0] |= ~draws.any()  # one at least
        is_told = np.zeros(tokens.shape, bool)
        is_told[:, self.inner] = draws
        targets[is_told] = tokens[is_told]
        fate = rng.random(tokens.shape)
        others = rng.permutation(tokens[:, self.inner].ravel())[: is_told.sum()]
        others = np.resize(others, is_told.sum())  # words as often as the texts have them
        replaced = tokens.copy()
        replaced[is_told] = np.where(fate[is_told] < FATES[1], others, tokens[is_told])
        replaced[is_told & (fate < FATES[0])] = self.mask_id
        return Batch(replaced, targets, valid)


class Labels:
    """Texts as they are, each with its label."""

    def __init__(self, model, text, n, T, column="", label=""):
        named = formats.of(text, column=column, label=label)
        documents = corpus.texts(model, named, n, T or model.config.n_ctx)
        lacking = [i for i, name in enumerate(documents.labels) if not name]
        if lacking:
            raise ValueError(
                f"document {lacking[0] + 1} of {text!r} has no label; wanted a folder with pos/ "
                "and neg/, or --label with the column of labels"
            )
        self.cfg = model.config
        self.rows = [*documents]
        self.classes = sorted(set(documents.labels))
        if len(self.classes) < 2:
            raise ValueError(f"all labels of {text!r} are {self.classes[0]!r}; wanted two or more")
        self.targets = np.array([self.classes.index(name) for name in documents.labels])
        self.groups = np.arange(len(self.rows))

    def batch(self, numbers, rng):
        """These documents, padded, with their classes."""
        tokens, valid = padded([self.rows[i] for i in numbers], self.cfg.pad_id)
        return Batch(tokens, self.targets[numbers], valid)


class Order:
    """Each document twice: its words in their own order, and in a random one."""

    classes = ORDERS

    def __init__(self, model, text, n, T, column="", seed=0):
        named = formats.of(text, column=column)
        documents = corpus.texts(model, named, n, T or model.config.n_ctx)
        self.cfg = model.config
        self.rows = []
        for i, row in enumerate(documents):
            self.rows += [row, documents.shuffled(i, row, seed)]
        self.targets = np.arange(len(self.rows)) % 2
        self.groups = np.arange(len(self.rows)) // 2  # both stay on one side

    batch = Labels.batch


class Split(NamedTuple):
    """Numbers of the documents that are learned from, and of those that are held out."""

    learned: np.ndarray
    held_out: np.ndarray


def split(groups, share, seed):
    """A share of the groups of documents is held out, at least one; the rest is learned from."""
    n = groups.max() + 1
    n_held = max(1, round(share * n))
    if n_held >= n:
        text = f"{n} documents, of which {n_held} are held out; nothing is left to learn from"
        raise ValueError(f"{text}: take more --documents, a longer text, or fewer --tokens")
    is_held = np.isin(groups, np.random.default_rng((seed, n)).permutation(n)[:n_held])
    return Split(np.flatnonzero(~is_held), np.flatnonzero(is_held))


def drawn(numbers, step, size, seed):
    """The documents of one step: all of them in a random order, then all again in another."""
    times, places = np.divmod(np.arange(step * size, (step + 1) * size), len(numbers))
    picked = [order(len(numbers), seed, k)[i] for k, i in zip(times.tolist(), places)]
    return numbers[picked]


@functools.lru_cache(maxsize=4)
def order(n, seed, k):
    """The order of n documents when they are gone through for the k-th time."""
    return np.random.default_rng((seed, n, k)).permutation(n)
