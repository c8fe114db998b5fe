"""Work in chunks on several threads. NumPy's loops and BLAS release Python's lock.

There are as many threads as NumPy's BLAS has, so OPENBLAS_NUM_THREADS and the like limit both;
while chunks run, BLAS itself has one thread, so that no core gets two. Where NumPy's BLAS cannot be
asked (Accelerate, MKL) everything but its own products runs on one thread. This saves 9 to 22%
of a pass over long or many texts, and nothing for short ones. Where several threads of a program
run passes at once, each pass has its part of the cores: on all of them they would only wait for
each other.
"""

import ctypes
import math
import os
import threading
import weakref
from contextlib import contextmanager, suppress
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue

import numpy as np

from .interrupt import kept
from .mapped import PIECE


def _blas_functions():
    """The functions that get and set the number of threads of NumPy's OpenBLAS.

    Another BLAS is left alone: they do nothing.
    """
    # threadpoolctl does the same for any BLAS, in a thousand times the time: `spread` calls often
    library = ctypes.CDLL(np.linalg._umath_linalg.__file__)  # or one that it needs
    for name in (
        "scipy_openblas_{}_num_threads64_",
        "scipy_openblas_{}_num_threads",
        "openblas_{}_num_threads64_",
        "openblas_{}_num_threads",
    ):
        if hasattr(library, name.format("set")):
            return getattr(library, name.format("get")), getattr(library, name.format("set"))
    return (lambda: 1), (lambda n: None)


count, limit = _blas_functions()  # count() -> threads in use; limit(n) changes their number


class Passes:
    """The threads of the program that run a pass now, which share the cores."""

    def __init__(self):
        self.begin()

    def begin(self):
        """No thread runs a pass."""
        self.threads = weakref.WeakSet()  # one that ends inside a pass is gone from here, too
        self.whole = 1  # threads of BLAS before the first of these passes
        self.met = False  # whether two of them were at work at once
        self.lock = threading.Lock()  # one thread at a time begins or ends a pass

    @contextmanager
    def running(self):
        """Inside `with`, this thread runs a pass."""
        me = threading.current_thread()
        if me in self.threads:  # a hook that runs a pass
            yield
            return
        try:
            with self.lock:
                if not self.threads:
                    self.whole = count()
                self.threads.add(me)
                if len(self.threads) > 1:
                    self.met = True
                    limit(self.part(self.whole))
            yield
        finally:
            with self.lock:
                self.threads.discard(me)
                if self.met:
                    self.met = bool(self.threads)
                    limit(self.part(self.whole))

    def part(self, n):
        """Of n threads, those that each pass has."""
        return max(1, n // max(1, len(self.threads)))


passes = Passes()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=passes.begin)  # a fork copies no threads


# Rows of a product: with fewer than SPLIT_ROWS it is faster as one call on all threads of BLAS, but
# with 2 to FEW_ROWS, as beams have, in calls of at most SMALL multiplications: for these OpenBLAS
# makes no copy of the matrix, which took half the time. Measured, as the others in kernels.py.
SPLIT_ROWS, FEW_ROWS, SMALL = 384, 8, 1_000_000
FEATURES = 96  # output features in a chunk of a product of many rows


def even_step(n, most):
    """How long each chunk of range(n) is, at most `most`: all threads are done together."""
    if n <= most:
        return n
    most = max(1, most)
    n_threads = count()
    n_turns = math.ceil(n / (most * n_threads))
    return math.ceil(n / (n_turns * n_threads))


def product_step(rows, W):  # [N D], [D M]
    """How many of the M output features of rows W are computed in one call."""
    D, n_features = W.shape
    n_rows = rows.shape[0]
    step = n_features
    if W.size > PIECE:
        step = even_step(n_features, PIECE / D)
    if n_rows >= SPLIT_ROWS:
        return min(step, max(FEATURES, n_features // count()))
    if 2 <= n_rows <= FEW_ROWS and W.flags.f_contiguous:  # GPT-2's are not
        return min(step, max(1, SMALL // rows.size))
    return step


class Chunks:
    """The work of one call of `spread`, done in chunks by its caller and by helpers that are free.

    Whatever fails or is interrupted:
    1. when `wait` is over, nobody works on a chunk any more (an interrupt ends the wait itself);
    2. a helper that comes too late finds no chunk, and is not waited for;
    3. no chunk is done twice, and after an error no further one begins.
    """

    def __init__(self, work, n, step):
        self.work, self.n, self.step = work, n, step
        self.starts = iter(range(0, n, step))  # under Python's lock each is given out once
        self.started = []  # a mark from everyone who takes part
        self.ended = SimpleQueue()  # from each of them, at the end: None or an error

    def do(self):
        """Do chunks until none is left; a thread on a busy core does fewer."""
        for start in self.starts:
            self.work(start, min(start + self.step, self.n))

    def take_part(self, run):
        """Do chunks by `run(self.do)`, and report the end whatever happens."""
        try:
            self.started.append(True)
            self.ended.put(run(self.do))
        except BaseException as error:
            self.ended.put(error)

    def wait(self):
        """Wait for everyone who takes part -> their errors."""
        for _ in self.starts:
            pass  # after an error: no further chunk begins
        ended = [self.ended.get() for _ in self.started]
        return [error for error in ended if error is not None]


def spread(work, n, step):
    """work(i, j) for the chunks i:j of range(n), `step` long but at least 1, on all threads.

    A single chunk is done here and has all threads of BLAS to itself. Raises the chunks' first
    error, an interrupt before any other.
    """
    if n <= step:  # every product of one row but that with the vocabulary: no calls but its own
        return work(0, n) if n else None
    step = max(1, step)
    chunks = Chunks(work, n, step)
    n_threads = count()
    if n_threads == 1:
        return chunks.do()
    errors = []
    try:
        limit(1)
        _call_helpers(chunks, min(n_threads, math.ceil(n / step)) - 1)
        chunks.take_part(_here)
    finally:
        try:
            errors = chunks.wait()
        finally:
            limit(passes.part(n_threads) if passes.met else n_threads)
    if errors:
        errors.sort(key=lambda error: isinstance(error, Exception))
        first = errors[0]
        errors.clear()
        try:
            raise first
        finally:
            del first  # else the error and this frame would keep each other, and arrays, alive


def _here(function):
    return function()


class Team:
    """The helper threads of one process and the jobs that wait for them."""

    def __init__(self):
        self.jobs = SimpleQueue()
        self.size = 0

    def grow(self, size):
        """Start helpers until there are `size`, or as many as the system allows."""
        with suppress(RuntimeError):  # no thread can start: Python ends, or the system has no more
            while self.size < size:
                helper = threading.Thread(target=_help, args=(self.jobs,), daemon=True)
                with kept():
                    helper.start()
                self.size += 1


def _help(jobs):
    """The life of a helper: one job after another; it keeps none of them while it waits."""
    while True:
        jobs.get()()


_teams: dict = {}  # by process, because a fork copies no threads


def _call_helpers(chunks, n):
    """Ask n helpers to take part, each in a copy of this context (NumPy keeps errstate there)."""
    team = _teams.setdefault(os.getpid(), Team())
    team.grow(n)
    for _ in range(min(n, team.size)):
        team.jobs.put(partial(chunks.take_part, copy_context().run))
