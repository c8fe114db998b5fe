"""How far a long loop is: one line, rewritten in place; nothing where stderr is not a terminal."""

import sys
import time

SHOWN_EVERY = 0.2  # seconds


class Line:
    """'documents 12/100, 8.1 a second, 11 s left'.

    before: how many an interrupted run has done; they do not count for the rate.
    """

    def __init__(self, what, total, before=0):
        self.what = what
        self.total = total
        self.before = before
        self.start = self.shown = time.monotonic()

    def update(self, done):
        """Show that `done` are done, every SHOWN_EVERY seconds."""
        now = time.monotonic()
        if done > self.before and now - self.shown > SHOWN_EVERY:
            self.shown = now
            seconds_each = (now - self.start) / (done - self.before)
            show(describe(self.what, done, self.total, seconds_each))

    def __enter__(self):
        return self

    def __exit__(self, *error):
        show("")  # the line is gone before a message comes


def describe(what, done, total, seconds):
    """The line, when each takes this many seconds."""
    rate = 1 / max(seconds, 1e-9)
    left = (total - done) * seconds
    return f"{what} {done}/{total}, {rate:.3g} a second, {left:.0f} s left"


def show(line):
    """Replace the current line of the terminal."""
    if sys.stderr.isatty():
        terminal = getattr(sys.stderr, "stream", sys.stderr)  # what is under escapes.Terminal
        print(f"\r\x1b[K{line}", end="", file=terminal, flush=True)
