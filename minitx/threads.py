"""Work in pieces on several threads, and memory used again. NumPy's loops and BLAS release Python's lock.

There are as many threads as NumPy's BLAS has, so OPENBLAS_NUM_THREADS and the like limit both; while pieces run, BLAS
has one: no core gets two. Where it cannot be asked (Accelerate, MKL), all but its own products runs on one thread.
"""
import ctypes
import math
import os
import weakref
from _thread import start_new_thread
from collections import defaultdict, deque
from contextlib import suppress
from contextvars import copy_context  # in which NumPy keeps errstate
from operator import call
from queue import SimpleQueue

import numpy as np

SPARE = 1 << 29  # bytes of memory of arrays that are gone, kept for the next ones
_spare = defaultdict(list)  # by size
_teams = defaultdict(lambda: (SimpleQueue(), []))  # work and helpers, by process: a fork copies no threads
_blas = ctypes.CDLL(np.linalg._umath_linalg.__file__)  # looks into the libraries that this one needs, too
_names = [name for name in ("scipy_openblas_{}_num_threads64_", "openblas_{}_num_threads64_", "openblas_{}_num_threads")
          if hasattr(_blas, name.format("set"))]
threads, _set_threads = (getattr(_blas, _names[0].format(verb)) if _names else lambda *n: 1 for verb in ("get", "set"))

def spread(work, n, step):
    """work(i, j) for the pieces i:j of range(n), `step` long; a single piece has all threads of BLAS to itself."""
    pieces, count = iter(range(0, n, step)), threads() if step < n else 1
    def drain():
        for i in pieces:  # whoever is free takes the next, so a thread on a busy core takes fewer
            work(i, min(i + step, n))
    return drain() if count == 1 else _share(drain, pieces, min(count, math.ceil(n / step)) - 1, count)

def _share(drain, pieces, others, count):  # drain() here and in so many helpers; nobody works any more when it returns
    begun, ended = [], SimpleQueue()
    def part(run):
        try:
            begun.append(run)  # who begins too late to be waited for finds no piece
            ended.put(run(drain))
        except BaseException as error:
            ended.put(error)
    try:
        _set_threads(1)
        _ask(part, others)
        part(call)
    finally:
        try:  # an interrupt may come here too
            list(pieces)  # after an error, none of the rest begins
            errors = [error for error in [ended.get() for _ in begun] if error is not None]
        finally:
            _set_threads(count)
    if errors:
        errors[:] = [min(errors, key=lambda error: isinstance(error, Exception))]  # an interrupt before all others
        raise errors.pop()  # what a frame still held would hold the frame

def _ask(part, n):  # n helpers to do their part, each in a context of its own
    jobs, helpers = _teams[os.getpid()]
    with suppress(RuntimeError):  # no thread may start: Python ends, or the system has no more
        while len(helpers) < n:
            helpers.append(start_new_thread(deque, (map(call, iter(jobs.get, None)), 0)))  # calls whatever comes
    for _ in helpers[:n]:
        jobs.put(lambda run=copy_context().run: part(run))

def empty(shape, dtype):
    """np.empty; if large, in the memory of an array that is gone, as the system takes its time to clear new memory."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size < 1 << 20:
        return np.empty(shape, dtype)
    size += -size % (1 << size.bit_length() - 3)  # few sizes, so that texts of other lengths find something
    try:
        memory = _spare[size].pop()
    except IndexError:
        memory = np.empty(size, np.uint8)
    array = np.frombuffer(memoryview(memory), dtype, math.prod(shape))  # views of it hold it, not `memory`
    weakref.finalize(array, _give_back, memory).atexit = False  # when the last view is gone, and only then
    return array.reshape(shape)

def _give_back(memory):
    if sum(size * len(spare) for size, spare in list(_spare.items())) + memory.nbytes > SPARE:
        return _spare.clear()
    _spare[memory.nbytes].append(memory)
