"""How far a long loop is: one line, rewritten in place; nothing where stderr is not a terminal."""

import sys
import time

SHOWN_EVERY = 0.2  # seconds


class Line:
    """'documents 12/100, 8.1 a second, 11 s left'; those done before do not count for the rate."""

    def __init__(self, what, total, before=0):
        self.what, self.total, self.before = what, total, before
        self.start = self.shown = time.monotonic()

    def update(self, done):
        """Say that so many are done, now and then."""
        now = time.monotonic()
        if done > self.before and now - self.shown > SHOWN_EVERY:
            self.shown = now
            show(describe(self.what, done, self.total, (now - self.start) / (done - self.before)))

    def __enter__(self):
        return self

    def __exit__(self, *error):  # the line is gone before a message comes
        show("")


def describe(what, done, total, seconds):
    """The line, at so many seconds each."""
    return f"{what} {done}/{total}, {1 / max(seconds, 1e-9):.3g} a second, {(total - done) * seconds:.0f} s left"


def show(line):
    """Replace the current line of the terminal."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)
