"""What several commands print."""

import contextlib
import sys

from ..contract import wording


def headline(number):
    """The line of one headline number, with its null if it has one."""
    text = f"{number['means']}: {wording.labelled(number)}"
    if "null" in number:
        text += f"   [{number['null_means']}: {wording.words(number['null'])}]"
    return text


def progress_beside(json):
    """With `json`, lines of progress go to stderr, so that stdout has only JSON."""
    return contextlib.redirect_stdout(sys.stderr if json else sys.stdout)
