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


def test_a_damage_that_is_read_without_a_word_is_found():
    planted = "from minitx.learning import saved\nsaved.digest_of = lambda *_: 'as it was'"
    status, text = tried(planted, 300, 3, ["--only", "training"])
    assert status == 1 and "\n  silent: " in text, text
