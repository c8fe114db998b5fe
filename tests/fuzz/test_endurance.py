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


EARLY = """
import sys
import numpy as np
import endurance, minitx
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
sys.exit(endurance.main(["--minutes", "1", "--seed", "3"]))
"""


def test_a_cache_that_is_valid_before_the_pass_is_found():
    status, text = python("-c", EARLY)
    assert status in (1, 3), text
    assert re.search("over a cache .* is off|is NaN, inf|in append", text), text
