"""What a report does in so many minutes: documents, their length, and what it leaves out.

COSTS says how many passes of the model each experiment takes; a pass of each length is timed. Of
the ways to read, in the order of `ways`, the first that fits is taken; where none does, the last
one, and of COSTS, from its end, every experiment that still fits. N documents, T tokens.

Order: what experiments take, a plan, how it is chosen, what is timed, in words, for --resume.
"""

import json
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from minitx import forward

from ..contract import registry, sides
from ..machine import files
from ..machine.language import filled, translated
from . import blas

USUAL = 10.0  # minutes
SPARE = 0.8  # of them are planned: loading, drawing and other programs take the rest
UNIT = 128  # tokens of a pass by which is counted what does not depend on the documents
SHORTEST = 100  # tokens, from which on heads show where they look
NUMBERS = 24, 16, 12, 8  # of documents; with fewer than 8 an interval is wider than what it is of


class Cost(NamedTuple):
    """What an experiment takes, in passes."""

    fixed: float  # of UNIT tokens, whatever the documents
    each: float = 0.0  # of a document's length, for each document
    documents: int = 0  # that it reads by itself
    is_own: bool = False  # that number stays: rows for features, or as many as a text holds


# Measured on an encoder of 6 layers with documents of UNIT tokens; estimates: attribution, reviews,
# circuit, slices, parts, shapes, mixing, projections, alignment, cca. What says least comes first.
COSTS = {
    "relearn": Cost(1800),
    "joint-grid": Cost(420),
    "attribution": Cost(10, 600, 8),
    "mechanisms": Cost(20, 63, 60),
    "mask-positions": Cost(10, 35, 36),
    "inject-positions": Cost(1, 37, 20),
    "scale-positions": Cost(1, 29, 20),
    "reviews": Cost(1500),
    "paths": Cost(2800),
    "circuit": Cost(1700),
    "patch": Cost(1700),
    "shift": Cost(1, 36, 20),
    "slices": Cost(5, 12, 4),
    "dial": Cost(20, 33, 16),
    "notch": Cost(80, 24, 12),
    "joint-space": Cost(15),
    "probe": Cost(160, 15, 60, is_own=True),
    "remove-positions": Cost(4, 16, 20),
    "rotation": Cost(360, 2, 1),
    "profiles": Cost(5, 3, 100, is_own=True),
    "conditions": Cost(2, 8, 8),
    "sources": Cost(10, 6, 16),
    "components": Cost(28, 5, 16),
    "extraction": Cost(5, 7, 16),
    "positions": Cost(84, 8, 16, is_own=True),
    "queries-keys": Cost(100),
    "kernel": Cost(9, 2, 20),
    "lags": Cost(28, 3, 20),
    "residual": Cost(1, 4, 8),
    "chain": Cost(1, 3, 8),
    "bases": Cost(19, 1, 16),
    "cca": Cost(30, 3, 20),
    "norms": Cost(50, 1, 60, is_own=True),
    "projections": Cost(5, 2, 8),
    "mixing": Cost(5, 5, 8),
    "parts": Cost(30),
    "shapes": Cost(30),
    "attribute": Cost(30),
    "alignment": Cost(5, 3, 100, is_own=True),
    "singular-values": Cost(20),
    "heads": Cost(130),
    "attention": Cost(15),
    "predict": Cost(15),
    "models": Cost(30),
}
OTHERS = Cost(20)  # what is not listed


class Plan(NamedTuple):
    """What a report is to do."""

    minutes: float
    documents: int  # read at most (0: as many as each experiment reads by itself)
    tokens: int  # of each (0: the model's longest input)
    left_out: tuple[str, ...]
    expected: dict[str, float]  # experiment -> seconds on one core
    seconds: float  # of all, side by side

    def options(self, experiment):
        """What an experiment reads otherwise than by itself."""
        cost = COSTS.get(experiment.name, OTHERS)
        options = {}
        if 0 < self.documents < cost.documents and not cost.is_own:
            options["documents"] = self.documents
        if cost.documents and self.tokens:
            options["tokens"] = self.tokens
        names = {option.name for option in experiment.options}
        return {name: value for name, value in options.items() if name in names}

    @property
    def is_whole(self):
        """Whether every experiment is as without a limit."""
        return not (self.documents or self.tokens or self.left_out)


# --- how it is chosen


def choose(seconds, names, minutes, n=1, documents=0, tokens=0):
    """The Plan for these experiments, by name, in so many minutes on n cores.

    seconds: {T: of a pass over T tokens}. documents, tokens: as a user gave them, and they stay.
    """
    most = minutes * 60 * SPARE
    for N, T in ways([*seconds], documents, tokens):
        plan = _plan(seconds, names, minutes, n, (documents, N, T))
        if plan.seconds <= most:
            break
    kept = {name: x for name, x in plan.expected.items() if name not in COSTS}
    for name in reversed([name for name in COSTS if name in plan.expected]):
        more = kept | {name: plan.expected[name]}
        if side_by_side(more, n) <= most:
            kept = more
    left_out = tuple(name for name in COSTS if name in plan.expected and name not in kept)
    return plan._replace(left_out=left_out, expected=kept, seconds=side_by_side(kept, n))


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


def _plan(seconds, names, minutes, n, documents):
    """The Plan of one way to read: documents that a user gave, at most so many, T tokens."""
    given, most, T = documents
    unit = min(seconds)
    of_unit, of_document = seconds[unit] * UNIT / unit, seconds[T or max(seconds)]
    expected = {}
    for name in names:
        cost = COSTS.get(name, OTHERS)
        by_itself = min(cost.documents, most) if most and not cost.is_own else cost.documents
        N = given if given and cost.documents else by_itself
        expected[name] = cost.fixed * of_unit + N * cost.each * of_document
    return Plan(minutes, most, T, (), expected, side_by_side(expected, n))


def side_by_side(expected, n):
    """Seconds of all on n cores; those that share passes are on half of the cores."""
    whole = sum(expected.values())
    shared = sum(x for name, x in expected.items() if registry.get(name).shares_passes)
    return max(whole / n, shared / max(1, n // 2))


# --- what is timed


def of_model(model, minutes, n, given):
    """The Plan of a report on a model, for which passes are timed; None without a limit.

    given: options for all experiments. A model of pictures has no limit: it has few experiments.
    """
    if not minutes or model.config.picture is not None or model.missing:
        return None
    documents, tokens = (given.get(name, 0) for name in ("documents", "tokens"))
    reader = sides.reader(model)
    seconds = {T: _timed(reader, T) for T in lengths(reader.config.n_ctx, tokens)}
    return choose(seconds, [*registry.EXPERIMENTS], minutes, n, documents, tokens)


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


def _timed(model, T):
    """Seconds of a pass over T tokens on one core: of two tries the quicker one."""
    tokens = np.random.default_rng(0).integers(model.config.n_vocab, size=T)
    tries = []
    with blas.one_thread_of_blas():
        for _ in range(2):
            begin, of_cores = time.perf_counter(), time.process_time()
            forward(model, tokens)
            spent = time.perf_counter() - begin, time.process_time() - of_cores
            tries.append(max(spent))
    return min(tries)


# --- in words


def says(plan):
    """What a plan reads and leaves out, in a sentence."""
    if not plan.left_out:
        return filled("{reads}; leaves out nothing", reads=_reads(plan))
    return filled("{reads}; leaves out {names}", reads=_reads(plan), names=", ".join(plan.left_out))


def _reads(plan):
    """Documents and their length, where they are limited."""
    N, T = plan.documents, plan.tokens
    if T:
        return filled("reads at most {N} documents of {T} tokens for each experiment", N=N, T=T)
    if N:
        return filled("reads at most {N} documents for each experiment", N=N)
    return translated("reads as many documents as each experiment asks for")


def time_left(plan, finished, passed):
    """Seconds that a report still takes, after so many; finished: {experiment: its seconds}.

    What is expected is corrected by how long the finished ones took, beside what they were to take.
    """
    expected = sum(plan.expected.get(name, 0.0) for name in finished)
    slower = sum(finished.values()) / expected if expected else 1.0
    return max(plan.seconds * slower - passed, 0.0)


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
