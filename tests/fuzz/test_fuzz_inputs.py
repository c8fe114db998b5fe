"""Damaged files that are no checkpoints, and damaged requests: none is read without a word.

`make fuzz-inputs` tries ten thousand.
"""

import sys

import pytest
from processes import python

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="a signal ends what takes too long")

TRIED = """
import sys
import fuzz_inputs
{planted}
sys.exit(fuzz_inputs.main(["--cases", "{cases}", "--seed", "{seed}", *{more}]))
"""


def tried(planted="", cases=150, seed=1, more=()):
    """(exit code, what is printed) of cases with something planted."""
    text = TRIED.format(planted=planted, cases=cases, seed=seed, more=list(more))
    return python("-c", text)


def test_damaged_inputs_are_refused_in_a_line_or_read_as_they_are():
    status, text = tried()
    assert status == 0 and ", 0 defects\n" in text, text
    assert text.count(" clear") > 15


PLANTED = {  # what is then said of a case -> the kind of input, what is planted
    "silent": (
        "training",
        "from minitx.training import saved\nsaved.digest_of = lambda *_: 'as it was'",
    ),
    "RecursionError": (
        "results",
        "from minitx.analysis.running import stream\nstream.DAMAGED = OSError, ValueError",
    ),
}


@pytest.mark.parametrize("said", PLANTED)
def test_what_is_planted_is_found(said):
    kind, planted = PLANTED[said]
    status, text = tried(planted, 300, 3, ["--only", kind])
    assert status == 1 and f"\n  {said}: " in text, text
