"""What several commands print."""

import contextlib
import sys
import time

from ..contract import wording
from ..machine.language import filled


def headline(number):
    """The line of one headline number, with its null if it has one."""
    text = f"{number['means']}: {wording.labelled(number)}"
    if "null" in number:
        text += f"   [{number['null_means']}: {wording.words(number['null'])}]"
    return text


def written(files, begin=None):
    """'out/a.svg .npz written in 0.3 s': the line on what was written, and since when."""
    if begin is None:
        return filled("{files} written", files=files)
    seconds = time.monotonic() - begin
    return filled("{files} written in {seconds:.1f} s", files=files, seconds=seconds)


def progress_beside(json):
    """With `json`, lines of progress go to stderr, so that stdout has only JSON."""
    return contextlib.redirect_stdout(sys.stderr if json else sys.stdout)
