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


PLANTED = {  # what is planted -> what the tool then says
    "not the same bytes": """
from minitx.analysis.running import stream
restored = stream.Run._restored
def again(self, *arguments):
    done, sums = restored(self, *arguments)
    return max(0, done - 1), sums
stream.Run._restored = again
killed.ACCIDENTS = ()
""",
    "is lost with 0 bytes free": """
from minitx.analysis.contract import results
from minitx.analysis.running import stream
write_all = results.write_all
def early(contents, before):
    before()
    write_all(contents)
results.write_all = early
killed.ACCIDENTS, killed.killed = [killed.full_disk], lambda *arguments: []
killed.ROOM = [0]
stream.Run._save = lambda *arguments: None
""",
    # without the lock the second run may end well, or without the state that the first one removed
    "Two runs in one folder: status ": """
from contextlib import nullcontext
from minitx.analysis.running import stream
stream._alone = lambda path: nullcontext(path.touch())
killed.ACCIDENTS, killed.killed = [killed.two_at_once], lambda *arguments: []
""",
}


@pytest.mark.parametrize("said", PLANTED)
def test_what_is_planted_is_found(said):
    status, text = python("-c", TRIED.format(planted=PLANTED[said], kills=1))
    assert status == 1 and said in text, text
