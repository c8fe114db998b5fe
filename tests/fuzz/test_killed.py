"""A few kills and every accident of a run; and what is planted there is found.

`make killed` tries twenty moments of five experiments. Linux only.
"""

import sys

import pytest
from processes import python

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks and limits")


# figures without drawings: half of a run's time would be its figure
TRIED = """
import sys
import killed, pytest, undrawn
undrawn.without_figures(pytest.MonkeyPatch())
{planted}
sys.exit(killed.main(["--kills", "{kills}", "norms"]))
"""


def test_after_kills_and_accidents_nothing_is_lost():
    status, text = python("-c", TRIED.format(planted="", kills=2))
    assert status == 0 and text.endswith("nothing lost\n"), text
    assert "norms: 2 kills" in text and ", 0 of these not the same bytes" in text
    assert text.count(": one line, and nothing lost\n") == 4


AGAIN = """
from minitx.analysis.running import stream
restored = stream.Run._restored
def again(self, *arguments):
    done, sums = restored(self, *arguments)
    return max(0, done - 1), sums
stream.Run._restored = again
killed.ACCIDENTS = ()
"""


def test_a_document_that_is_read_again_is_found():
    status, text = python("-c", TRIED.format(planted=AGAIN, kills=1))
    assert status == 1 and "not the same bytes" in text, text
