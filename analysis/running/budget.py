"""What a report does in so many minutes: documents, their length, and what it leaves out.

COSTS says how many passes of the model each experiment takes; a pass of each length is timed. Of
the ways to read, in the order of `ways`, the first that fits is taken; where none does, the last
one, and of COSTS, from its end, every experiment that still fits; of the others those for which
time is left when these are done. N documents, T tokens.
"""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

from minitx import forward, logits

from ..contract import registry, sides
from ..machine import files
from ..machine.language import filled, translated
from . import blas

USUAL = 10.0  # minutes
SPARE = 0.8  # of them are planned: loading, drawing and other programs take the rest
LAST = 0.9  # of them: until then what was left out may still be done, if it ends by then
TRUSTED = 1.0  # of all seconds expected: as much is taken to come true until more is known
IDLE = 1.1  # times what cores that are never idle would take: a report of six shapes on two cores
HEADS = 72  # of the model by which COSTS were measured
UNIT = 128  # tokens of a pass by which is counted what does not depend on the documents
SLOW = 0.2  # seconds of a pass from which on no longer one is timed
LONGER = 1.1  # what a pass of twice the length takes, in passes, over two
SHORTEST = 100  # tokens, from which on heads show where they look
NUMBERS = 24, 16, 12, 8  # of documents; with fewer than 8 an interval is wider than what it is of


class Kind(NamedTuple):
    """Of a model, what passes depend on."""

    is_masked: bool = True
    n_heads: int = HEADS  # of all layers
    reads_pictures: bool = False
    has_table: bool = True  # of positions
    logits: float = 1.0  # a pass with the logits of all tokens, in passes


class Cost(NamedTuple):
    """What an experiment takes: seconds whatever the model, and passes."""

    seconds: float  # figures, and what Python does
    fixed: float = 0.0  # passes of UNIT tokens, whatever the documents
    each: float = 0.0  # passes of a document's length, for each document
    documents: int = 0  # or pairs, that it reads by itself
    is_own: bool = False  # that number stays: rows for features, or as many as a text holds
    tokens: int = 0  # of each (0: the model's longest input)
    hidden: float = 0.0  # of UNIT tokens, one at a time: a masked model's pass for each
    by_head: bool = False  # as many more as the model has more than HEADS
    causal: float = 1.0  # of all this in a causal model with a table of positions
    no_table: float = 1.0  # of all this where a model has no table of positions

    def length(self, T, longest):
        """Tokens of a document where T are read at most (0: as by itself)."""
        own = self.tokens or longest
        return min(own, T) if T else own

    def of_document(self, length, kind):
        """Passes of a document of this length."""
        passes = self.each * (kind.n_heads / HEADS if self.by_head else 1.0)
        return passes * max(1.0, self.hidden * length / UNIT * kind.is_masked)

    def share(self, kind):
        """Of all this, what it takes in such a model."""
        if not kind.has_table:
            return self.no_table
        return 1.0 if kind.is_masked or kind.reads_pictures else self.causal


# Fitted to reports on encoders of 6 layers and width 384 and of BERT-base's shape, and on decoders
# of 6 layers and width 512 and of GPT-2's shape, where they had the experiment (passes that several
# share are cheaper in GPT-2); estimates: that of alignment, and how much more many heads take. What
# says least is first.
COSTS = {
    "relearn": Cost(2, 1700),
    "circuit": Cost(3, 100, 160, 24, tokens=UNIT, by_head=True, no_table=0.3),
    "joint-grid": Cost(1.5, 420, no_table=0.3),
    "attribution": Cost(2, 10, 400, 8, tokens=32, by_head=True),
    "mechanisms": Cost(4, 25, 32, 60),
    "paths": Cost(1.2, 10, 70, 24, tokens=UNIT, by_head=True, no_table=0.3),
    "patch": Cost(2, 10, 55, 24, tokens=UNIT, by_head=True),
    "reviews": Cost(1.5, 800),
    "projections": Cost(0.5, 5, 18, 8, tokens=64, hidden=16),
    "inject-positions": Cost(2.5, 1, 26, 20, no_table=0.02),
    "scale-positions": Cost(2.5, 1, 23, 20),
    "mask-positions": Cost(3, 10, 15, 36, tokens=64, hidden=6),
    "shift": Cost(1, 1, 8, 20, hidden=4),
    "slices": Cost(0.3, 10, 18, 4),
    "dial": Cost(0.7, 8, 12, 16, causal=4.0, no_table=0.4),
    "notch": Cost(0.7, 25, 9, 12, causal=8.0, no_table=0.3),
    "joint-space": Cost(1.5, 20),
    "probe": Cost(1, 100, 9, 60, is_own=True),
    "remove-positions": Cost(2, 4, 7, 20, hidden=5),
    "rotation": Cost(2, 280, 2, 1, no_table=0.05),
    "profiles": Cost(1.3, 5, 3, 100, is_own=True),
    "conditions": Cost(1, 2, 11, 8),
    "sources": Cost(0.8, 15, 9, 16),
    "components": Cost(1, 40, 10, 16),
    "extraction": Cost(0.6, 5, 2, 16),
    "positions": Cost(0.7, 15, 4, 16, is_own=True),
    "queries-keys": Cost(1, 160),
    "kernel": Cost(1.4, 12, 9, 20),
    "lags": Cost(1.2, 35, 8, 20),
    "residual": Cost(0.5, 1, 2, 8),
    "chain": Cost(0.7, 1, 10, 8),
    "bases": Cost(0.4, 30, 1, 16),
    "cca": Cost(0.3, 35, 4, 24, is_own=True),
    "norms": Cost(0.4, 16, 0.5, 60, is_own=True),
    "mixing": Cost(0.4, 3, 2, 8),
    "parts": Cost(0.3, 5),
    "shapes": Cost(0.3, 8),
    "attribute": Cost(0.4, 10),
    "alignment": Cost(0.5, 5, 3, 100, is_own=True),
    "singular-values": Cost(0.5, 20),
    "heads": Cost(0.5, 32),
    "attention": Cost(0.5, 70),
    "predict": Cost(0.5, 10),
    "models": Cost(2.2, 8),
}
# Fitted to a report on ViT-base's shape, 16 pictures of 197 tokens; what says least is first.
OF_PICTURES = {
    "joint-space": Cost(1.5, 34, 31, 64),
    "dial": Cost(0.7, 2, 4.5, 64),
    "sources": Cost(0.8, 4, 4.3, 64),
    "conditions": Cost(1, 12, 4.4, 64),
    "remove-positions": Cost(2, 2, 4, 64),
    "cca": Cost(0.3, 4, 1.3, 64, is_own=True),
    "profiles": Cost(1.3, 1.5, 7.3, 64),
    "positions": Cost(0.7, 7),
}
OF_TABLE = {  # what reads a table of positions
    *("models", "singular-values", "relearn", "reviews", "shift", "remove-positions", "positions"),
    *("norms", "queries-keys", "extraction", "residual", "chain"),
}
OF_LOGITS = {  # of a causal model the logits of all tokens can cost as much as all layers
    *("circuit", "attribution", "mechanisms", "paths", "patch", "projections", "inject-positions"),
    *("scale-positions", "mask-positions", "shift", "dial", "notch", "remove-positions"),
    *("attribute", "predict"),
}
OTHERS = Cost(1, 20)  # what is not listed


class Plan(NamedTuple):
    """What a report is to do."""

    minutes: float
    documents: int  # read at most (0: as many as each experiment reads by itself)
    tokens: int  # of each (0: the model's longest input)
    left_out: tuple[str, ...]
    expected: dict[str, float]  # experiment -> seconds on one core, of those left out too
    seconds: float  # of all that is not left out, side by side
    reads_pictures: bool = False
    cores: int = 1

    def options(self, experiment):
        """What an experiment reads otherwise than by itself."""
        cost = costs(self.reads_pictures).get(experiment.name, OTHERS)
        options = {}
        if 0 < self.documents < cost.documents and not cost.is_own:
            [name] = experiment.option_names & {"documents", "n_pairs"}
            options[name] = self.documents
        if cost.documents and self.tokens and not 0 < cost.tokens <= self.tokens:
            options["tokens"] = self.tokens
        return {name: value for name, value in options.items() if name in experiment.option_names}

    @property
    def is_whole(self):
        """Whether every experiment is as without a limit."""
        return not (self.documents or self.tokens or self.left_out)


def costs(reads_pictures):
    """{experiment: Cost} of models of pictures, or of texts."""
    return OF_PICTURES if reads_pictures else COSTS


# --- how it is chosen


def choose(seconds, names, minutes, n=1, documents=0, tokens=0, kind=None):
    """The Plan for these experiments, by name, in so many minutes on n cores.

    seconds: {T: of a pass over T tokens}. documents, tokens: as a user gave them, and they stay.
    kind: a Kind (masked, of HEADS heads). What is left out may leave time for more documents.
    """
    most, kind = minutes * 60 * SPARE, kind or Kind()

    def first_that_fits(names):
        for N, T in ways([*seconds], documents, tokens):
            plan = _plan(seconds, names, minutes, n, (documents, N, T), kind)
            if plan.seconds <= most:
                break
        return plan

    plan = first_that_fits(names)
    listed = [name for name in costs(kind.reads_pictures) if name in plan.expected]
    kept = {name: x for name, x in plan.expected.items() if name not in listed}
    for name in reversed(listed):
        more = kept | {name: plan.expected[name]}
        if side_by_side(more, n) <= most:
            kept = more
    left_out = tuple(name for name in listed if name not in kept)
    plan = first_that_fits([*kept])
    whole = _plan(seconds, names, minutes, n, (documents, plan.documents, plan.tokens), kind)
    return plan._replace(left_out=left_out, expected=whole.expected)


def ways(lengths, documents=0, tokens=0):
    """(documents at most, tokens) in the order in which they are tried; 0: as by itself.

    The length is halved before the number falls: an interval over few documents is wide.

    >>> ways([512, 256, 128])
    [(0, 0), (24, 0), (24, 256), (24, 128), (16, 128), (12, 128), (8, 128)]
    >>> ways([512, 256, 128], documents=30)
    [(0, 0)]
    """
    if documents or tokens:
        return [(0, 0)]
    _, *shorter = sorted(lengths, reverse=True)
    shortest = shorter[-1] if shorter else 0
    by_length = [(NUMBERS[0], T) for T in (0, *shorter)]
    return [(0, 0), *by_length, *((N, shortest) for N in NUMBERS[1:])]


def _plan(seconds, names, minutes, n, documents, kind):
    """The Plan of one way to read: documents that a user gave, at most so many, T tokens."""
    given, most, T = documents
    curve = [0, *sorted(seconds)], [0.0, *sorted(seconds.values())]  # a pass by its length
    of_unit = seconds[min(seconds)] * min(1.0, UNIT / min(seconds))
    expected = {}
    for name in names:
        cost = costs(kind.reads_pictures).get(name, OTHERS)
        by_itself = min(cost.documents, most) if most and not cost.is_own else cost.documents
        N = given if given and cost.documents else by_itself
        length = cost.length(T, max(seconds))
        of_documents = N * cost.of_document(length, kind) * np.interp(length, *curve)
        passes = cost.fixed * of_unit + of_documents
        whole = float(cost.seconds + passes * (kind.logits if name in OF_LOGITS else 1.0))
        expected[name] = whole * cost.share(kind)
    whole = side_by_side(expected, n)
    return Plan(minutes, most, T, (), expected, whole, kind.reads_pictures, n)


def passes(name):
    """About how many passes an experiment takes by itself."""
    cost = COSTS.get(name, OTHERS)
    return cost.fixed + cost.documents * cost.of_document(UNIT, Kind())


def shares_passes(name):
    """Whether an experiment is to share its passes: it can, and reads several documents."""
    is_of_many = name not in COSTS or COSTS[name].documents > 1
    return registry.get(name).shares_passes and is_of_many


def side_by_side(expected, n):
    """Seconds of all on n cores; those that share passes are on half of the cores."""
    whole = sum(expected.values())
    shared = sum(x for name, x in expected.items() if shares_passes(name))
    longest = max((x for name, x in expected.items() if not shares_passes(name)), default=0.0)
    return max(whole / n, shared / max(1, n // 2), longest)


# --- what is timed


def of_model(model, minutes, n, given):
    """The Plan of a report on a model, for which passes are timed; None without a limit.

    given: options for all experiments.
    """
    if not minutes or model.missing:
        return None
    documents, tokens = (given.get(name, 0) for name in ("documents", "tokens"))
    reader = sides.reader(model)
    cfg = reader.config
    kind = kind_of(reader)._replace(logits=_with_logits(reader))
    tried = [cfg.n_ctx] if kind.reads_pictures else lengths(cfg.n_ctx, tokens)
    seconds = _of_lengths(reader, tried, n)
    names = [name for name in registry.EXPERIMENTS if name not in _needless(model)]
    return choose(seconds, names, minutes, n, documents, tokens, kind)


def kind_of(model):
    """The Kind of a model that reads texts or pictures itself."""
    cfg = model.config
    is_masked, n_heads = cfg.task_head == "masked", cfg.n_layers * cfg.n_heads
    has_table = model.weights.W_pos is not None
    return Kind(is_masked, n_heads, cfg.picture is not None, has_table)


def _needless(model):
    """Experiments that have nothing to measure in such a model."""
    if model.config.picture is not None:
        return registry.EXPERIMENTS.keys() - registry.OF_PICTURES.keys()
    left = {"alignment"} if model.encoder is None else set()
    if sides.reader(model).weights.W_pos is None:
        left |= OF_TABLE
    return left if model.config.task_head == "masked" else left | {"relearn"}


def lengths(longest, tokens=0):
    """Lengths of documents that a report may read: the longest, and its halves.

    >>> lengths(512), lengths(150), lengths(512, tokens=64)
    ([512, 256, 128], [150], [64])
    """
    if tokens:
        return [tokens]
    tried = [longest]
    while tried[-1] // 2 >= SHORTEST:
        tried.append(tried[-1] // 2)
    return tried


def _of_lengths(model, lengths, n):
    """{T: seconds of a pass}; from a slow one on, longer ones are reckoned from it."""
    seconds = {}
    for T in sorted(lengths):
        known = max(seconds, default=0)
        is_slow = seconds.get(known, 0.0) > SLOW
        seconds[T] = seconds[known] * 2 * LONGER if is_slow else _timed(model, T, n)
    return seconds


def _timed(model, T, n):
    """Seconds of a pass over T tokens on one core, alone or while all n are busy: the longer."""
    rng, cfg = np.random.default_rng(0), model.config
    of_pictures = cfg.picture is not None
    tokens = rng.random((T, cfg.n_vocab)) if of_pictures else rng.integers(cfg.n_vocab, size=T)

    def seconds(_, clock=time.thread_time):
        begin = clock()
        forward(model, tokens)
        return clock() - begin

    with blas.one_thread_of_blas(), ThreadPoolExecutor(n) as threads:
        alone = min(seconds(i, time.perf_counter) for i in range(2))
        return max(alone, *threads.map(seconds, range(n)))


def _with_logits(model):
    """What a pass of a causal model with the logits of all tokens takes, in passes."""
    if model.config.task_head != "causal":
        return 1.0
    tokens = np.arange(min(UNIT, model.config.n_ctx)) % model.config.n_vocab

    def seconds(compute, *given):
        begin = time.thread_time()
        x = compute(model, *given)
        return time.thread_time() - begin, x

    with blas.one_thread_of_blas():
        (of_pass, x), _ = (seconds(forward, tokens) for _ in range(2))
        return 1.0 + min(seconds(logits, x)[0] for _ in range(2)) / of_pass


# --- in words


def says(plan):
    """What a plan reads and leaves out, in a sentence."""
    if not plan.left_out:
        return filled("{reads}; leaves out nothing", reads=_reads(plan))
    text = "{reads}; leaves out, unless time is left: {names}"
    return filled(text, reads=_reads(plan), names=", ".join(plan.left_out))


def _reads(plan):
    """Documents and their length, where they are limited."""
    N, T = plan.documents, plan.tokens
    if T:
        text = "reads {N} documents of {T} tokens for each experiment that needs no more"
        return filled(text, N=N, T=T)
    if N and plan.reads_pictures:
        return filled("reads {N} pictures for each experiment that needs no more", N=N)
    if N:
        return filled("reads {N} documents for each experiment that needs no more", N=N)
    return translated("reads as many documents as each experiment asks for")


def time_left(plan, waiting, finished, passed):
    """Seconds that a report still takes, after so many; finished: {experiment: its seconds}.

    waiting: the experiments that are at work or still to come. Of those left out the ones that will
    fit are counted, too.
    """
    ratio = slower(plan, finished)

    def left(names):
        expected = {name: plan.expected.get(name, 0.0) for name in (*finished, *names)}
        return max(IDLE * side_by_side(expected, plan.cores) * ratio - passed, 0.0)

    coming = [*waiting]
    for name in reversed(plan.left_out):
        is_new = name not in finished and name not in coming
        if is_new and fits(plan, name, finished, passed + left(coming)):
            coming.append(name)
    return left(coming)


def slower(plan, finished):
    """How much longer experiments take than expected, by those that are finished: {name: seconds}.

    A few tell little of the others, so that a part of what was expected counts with them.
    """
    trusted = TRUSTED * sum(plan.expected[name] for name in plan.expected.keys() - plan.left_out)
    expected = trusted + sum(plan.expected.get(name, 0.0) for name in finished)
    return (trusted + sum(finished.values())) / expected if expected else 1.0


def fits(plan, name, finished, passed):
    """Whether an experiment that was left out ends within the minutes, begun after so many seconds.

    >>> plan = Plan(10.0, 8, 128, ("dial",), {"lags": 300.0, "dial": 60.0}, 300.0)
    >>> fits(plan, "dial", {"lags": 250.0}, 250.0), fits(plan, "dial", {"lags": 500.0}, 500.0)
    (True, False)
    """
    return passed + plan.expected[name] * slower(plan, finished) <= plan.minutes * 60 * LAST


# --- for --resume


def kept(path, plan):
    """The plan that an interrupted report left at this path; without one this plan, which stays."""
    try:
        record = json.loads(Path(path).read_text("utf-8"))
        return Plan(**record | {"left_out": tuple(record["left_out"])})
    except (OSError, ValueError, TypeError, KeyError):
        if not plan.is_whole:
            files.write(path, files.as_json(plan._asdict()))
        return plan
