"""What an encoder-decoder says of a source, token by token, and what it looks at for each.

A step reads one token and says the next: the query of a step is that of the token *before* the one
that is said. L layers, H heads, T steps, S tokens of the source.
"""

from itertools import islice
from typing import NamedTuple

import numpy as np

import minitx
from minitx.inputs import TooLong

from ..texts import corpus
from ..texts import pairs as of_pairs
from ..texts.refusals import NotApplicable
from . import losses

AS_MANY = 100  # sources that are read where their number is not given
SHORTEST, LONGEST = 3, 64  # tokens that a model says of a source


class Spoken(NamedTuple):
    """A source and what is said of it."""

    source: np.ndarray  # [S] ids
    inputs: np.ndarray  # [T] ids that the decoder reads, the start token first
    outputs: np.ndarray  # [T] the id that it says behind each
    sequences: np.ndarray | None = None  # [S] of a source of two texts, as a Joined has them


def greedy(model, source):
    """What the model says of a source [S] or text, its likeliest token at each step.

    Settings of the folder that generate does not support are ignored. Raises NotApplicable for a
    head that says no tokens.
    """
    head = model.config.task_head
    if head != "causal":
        raise NotApplicable(f"the head of this checkpoint is {head}: it says nothing of a source")
    tokens = _ids(model.encoder, source)
    n = min(LONGEST, model.config.n_ctx)
    row = minitx.generate(model, n=n, source=tokens, ignore_settings=True)
    return Spoken(tokens, row[:-1], row[1:])


def forced(model, source, target):
    """A given target, text or ids, that the decoder reads whatever it would say by itself."""
    outputs = _ids(model, target)
    inputs = np.array([model.config.start_id, *outputs[:-1]])
    return Spoken(_ids(model.encoder, source), inputs, outputs)


def _ids(model, given):
    """Ids [T] of a text, or ids as they are; raises TooLong for more than it reads."""
    tokens = model.tokenizer.encode(given) if isinstance(given, str) else np.asarray(given)
    n = model.config.n_ctx
    if len(tokens) > n:
        what = f"{given!r:.80}" if isinstance(given, str) else "a text of token ids"
        raise TooLong(f"{what} has {len(tokens)} tokens; this model reads at most {n}")
    return tokens


class Task(NamedTuple):
    """A source, what is to be said of it, and where that comes from."""

    source: np.ndarray  # [S] ids
    pair: of_pairs.Pair | None = None


def tasks(model, text, pairs, documents, tokens, seed):
    """The Tasks of a text or, if `pairs` is not "", of a file of pairs.

    documents: how many (0: all, at most AS_MANY). tokens: only the first of each source, this many.
    Raises ValueError for a text and pairs.
    """
    if not pairs:
        longest = tokens or model.encoder.config.n_ctx
        real = corpus.texts(model.encoder, text, 0, longest)
        return [Task(source) for source in islice(real, documents or AS_MANY)]
    if text != "sample":
        raise ValueError(f"text is {text!r} and pairs {pairs!r}; wanted one of them")
    listed = of_pairs.pairs(pairs, documents or AS_MANY, seed)
    encode = model.encoder.tokenizer.encode
    return [Task(encode(pair.source), pair) for pair in listed]


def of_task(model, task):
    """The Spoken of a Task: its target, or the model's own greedy output."""
    if task.pair is None or task.pair.target is None:
        return greedy(model, task.source)
    return forced(model, task.source, task.pair.target)


class Outputs(corpus.DocumentSet):
    """What a decoder reads at N sources, T tokens of each, the start token first.

    sources: ids [S] of each. left_out: how many outputs had fewer than T tokens.
    """

    def __init__(self, model, said, T):
        long_enough = [x for x in said if len(x.inputs) >= T]
        self.model, self.n, self.T, self.size = model, len(long_enough), T, T - 1
        self.before, self.after = np.array([model.config.start_id]), np.zeros(0, int)
        self.spool = [x.inputs[1:T] for x in long_enough]
        self.sources = [x.source for x in long_enough]
        self.left_out = len(said) - self.n

    def first(self, n=1):
        """The first n of them: [n T]."""
        return np.array([*islice(self, n)])


def outputs(model, given, tokens=0):
    """What the decoder reads at these Tasks, as Outputs.

    tokens: of each, longer ones are cut; 0: the median length. Raises ValueError if none is as
    long, or for less than SHORTEST, of which no profile can be told; NotApplicable if all are less.
    """
    said = [of_task(model, task) for task in given]
    lengths = sorted(len(x.inputs) for x in said)
    if lengths[-1] < SHORTEST:
        raise NotApplicable(f"the decoder reads at most {lengths[-1]} tokens; wanted {SHORTEST}")
    T = tokens or max(SHORTEST, lengths[len(lengths) // 2])
    if not SHORTEST <= T <= lengths[-1]:
        raise ValueError(
            f"--tokens is {T}; wanted {SHORTEST} to {lengths[-1]}, the longest that the decoder "
            f"reads at these {len(said)} sources"
        )
    return Outputs(model, said, T)


def traced(model, said, keep, edits=None, **options):
    """The Trace of a Spoken. options: further keywords of `minitx.run`."""
    return minitx.run(model, said.inputs, keep, edits, source=said.source, **options)


def ordinary(model, tokens):
    """Which of a text's tokens are its own, not put there by the tokenizer: [S] bool."""
    before, after = losses.ends(model, tokens)
    is_own = np.zeros(len(tokens), bool)
    is_own[before : len(tokens) - after] = True
    return is_own


def steps(model, said):
    """A label for each step: the token that is read, an arrow, the token that is said."""
    inputs, outputs = (corpus.labels(model, tokens) for tokens in (said.inputs, said.outputs))
    return [f"{a}→{b}" for a, b in zip(inputs, outputs)]


def shares_pieces(model):
    """Whether source and target are written with the same pieces."""
    own, of_source = model.weights.W_E, model.encoder.weights.W_E
    return own.shape == of_source.shape and np.array_equal(own, of_source)
