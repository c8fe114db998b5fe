"""Some seconds of random threads, forks and interrupts; and what is planted there is found.

`make endurance` goes on for two hours. Linux only.
"""

import re
import sys

import pytest
from processes import TOOLS, python

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks, alarms and /proc")


def test_some_seconds_give_the_bytes_of_one_thread():
    status, text = python(str(TOOLS / "endurance.py"), "--moves", "40", "--seed", "3")
    assert status == 0 and text.endswith("all the same bytes\n"), text
    counts = {what: int(n) for n, what in (item.split(" ", 1) for item in counted(text))}
    assert counts["jobs of workers"] > 10  # measured 300
    assert counts["interrupts"] > 3  # measured 80
    others = ("jobs of workers", "interrupts", "of these hung")
    assert sum(n for what, n in counts.items() if what not in others) == 40
    assert {"interrupted_cache", "half_read", "gathered", "process"} <= counts.keys()


def counted(text):
    """The items of the summary's first line."""
    (line,) = [line for line in text.splitlines() if "jobs of workers," in line]
    return line.split(", ")


PLANT = """
import sys, threading, time
import numpy as np
import endurance, jobs, minitx
from minitx import activations, cache, kernels, model, threads
from minitx.analysis.running import stream
arguments = ["--minutes", "1", "--seed", "3"]
{planted}
sys.exit(endurance.main(arguments))
"""
# what is planted -> what the tool then says
PLANTED = {
    "a buffer that all threads share": """
buffer = np.zeros(1 << 22, np.float32)
gate, inside = activations.gate_, threading.Lock()
def shared(x, factor):
    buffer[: x.size] = x.ravel()
    time.sleep(1e-4)
    x[...] = buffer[: x.size].reshape(x.shape)
    return gate(x, factor)
activations.gate_ = shared
""",
    "a cache that is valid before the pass": """
forward = minitx.forward
def early(model, tokens, cache=None, **options):
    n = 0 if cache is None else len(cache) + np.shape(tokens)[-1]
    try:
        return forward(model, tokens, cache=cache, **options)
    except KeyboardInterrupt:
        if cache is not None and n:
            cache.valid = np.ones((1, n), bool)
        raise
minitx.forward = early
endurance.MOVES = {endurance.Endurance.interrupted_cache: 1}
""",
    "documents that a resumed run reads again": """
restored = stream.Run._restored
def again(self, *arguments):
    done, sums = restored(self, *arguments)
    return max(0, done - 1), sums
stream.Run._restored = again
endurance.MOVES = {endurance.Endurance.gathered: 1}
""",
    "a lock that nobody releases": """
endurance.LIMIT = 3
recorded, lock = minitx.run, threading.Lock()
def locked(*arguments, **options):
    if "(worker)" in threading.current_thread().name:
        lock.acquire()
    return recorded(*arguments, **options)
minitx.run = locked
endurance.MOVES = {endurance.Endurance.loaded: 1}  # no other move waits for the workers
""",
    "memory that nobody frees": """
digest, kept = jobs.digest, []
def keeping(result):
    kept.append(np.ones(1 << 16))
    return digest(result)
jobs.digest = keeping
endurance.SETTLED = 0
arguments[1] = "0.05"
""",
}
SAID = {  # a pattern
    "a buffer that all threads share": "is off by",
    "a cache that is valid before the pass": "over a cache .* is off|is NaN, inf|in append",
    "documents that a resumed run reads again": "a sum over documents in MainThread is off by",
    "a lock that nobody releases": r"\(worker\) has hung for",
    "memory that nobody frees": "memory grew",
}


@pytest.mark.parametrize("what", PLANTED)
def test_what_is_planted_is_found(what):
    status, text = python("-c", PLANT.format(planted=PLANTED[what]))
    assert status in (1, 3) and re.search(SAID[what], text), text


FREED = """
import numpy as np
import endurance
before = endurance.resident()
blocks = [np.ones(1 << 13) for _ in range(1000)]
most, last = endurance.resident(), blocks.pop()
del blocks
print(most - before >> 20, endurance.resident() - before >> 20)
"""


def test_what_is_free_is_not_counted():
    """The last of 1,000 blocks, 62 MiB in all, stays in use: malloc keeps the pages below it."""
    most, left = map(int, python("-c", FREED)[1].split())
    assert most > 55 and left < 5
