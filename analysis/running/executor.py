"""Who measures documents: an executor takes them one by one and gives results in their order.

`results(measure, numbered)` is all there is to one: `measure(index, document)` of every pair in
`numbered`, in that order, with a bounded number of documents at work. What is done where changes no
result, so that sums are the same bytes for every executor.
"""

import contextlib
import os
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar

WORKERS = min(os.cpu_count() or 1, 8)  # each holds the patterns of one layer of one document
AHEAD = 2  # documents in the pool at once, for each thread


class Threads:
    """Documents side by side on n threads of this process."""

    def __init__(self, n=WORKERS):
        self.n = n

    def results(self, measure, numbered):
        """measure(index, document) of each, in the order of the documents.

        Whatever ends this early, an error or an interrupt, no further document begins.
        """
        pool = ThreadPoolExecutor(self.n)
        waiting = deque()
        try:
            for index, document in numbered:
                waiting.append(pool.submit(measure, index, document))
                if len(waiting) == AHEAD * self.n:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


THREADS = Threads()
_current: ContextVar = ContextVar("executor")


def current():
    """The executor that documents go through here: threads, unless another is in use."""
    return _current.get(THREADS)


@contextlib.contextmanager
def use(executor):
    """Inside `with`, documents go through this executor, whoever gathers them."""
    token = _current.set(executor)
    try:
        yield
    finally:
        _current.reset(token)
