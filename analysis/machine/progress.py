"""How far a long loop is: one line, rewritten in place; nothing where stderr is not a terminal.

A loop that will take LONG says so once, also where stderr is a file.
"""

import contextlib
import sys
import time
from contextvars import ContextVar

from .language import filled, translated

SHOWN_EVERY = 0.2  # seconds
SURE = 10.0  # seconds, after which the rate tells how long all will take
LONG = 600.0  # seconds
WARNING = "{what}: {n}, about {time} at this rate"
WORKERS = "; `minitx plan` says what workers bring, --workers takes them"


_bars = ContextVar("bars", default=False)


@contextlib.contextmanager
def bars(wanted):
    """Context in which each loop has a bar of tqdm, in a notebook, too, if that is `wanted`."""
    token = _bars.set(wanted)
    try:
        yield
    finally:
        _bars.reset(token)


class Line:
    """'documents 12/100, 8.1 a second, 11 s left'; or a bar, where `bars` are wanted.

    before: how many an interrupted run has done; they do not count for the rate. for_workers:
    whether workers can do some of them.
    """

    def __init__(self, what, total, before=0, for_workers=False):
        self.what, self.for_workers = what, for_workers
        self.total = total
        self.before = before
        self.start = self.shown = time.monotonic()
        self.is_judged = False
        self.bar = _bar(what, total, before) if _bars.get() else None

    def update(self, done):
        """Show that `done` are done, every SHOWN_EVERY seconds."""
        if self.bar is not None:
            self.bar.update(done - self.bar.n)
            return
        now = time.monotonic()
        if done > self.before and now - self.shown > SHOWN_EVERY:
            self.shown = now
            seconds_each = (now - self.start) / (done - self.before)
            show(describe(self.what, done, self.total, seconds_each))
            if now - self.start > SURE and not self.is_judged:
                self.is_judged = True
                self.warn((self.total - done) * seconds_each)

    def warn(self, seconds):
        """Say once what a long loop will take."""
        if seconds > LONG:
            show("")
            values = {"what": translated(self.what), "n": f"{self.total:,}"}
            said = filled(WARNING, time=duration(seconds), **values)
            said += translated(WORKERS) if self.for_workers else ""
            print(f"minitx: {said}", file=sys.stderr)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        show("")  # the line is gone before a message comes
        if self.bar is not None:
            self.bar.close()


def _bar(what, total, before):
    from tqdm.auto import tqdm

    return tqdm(total=total, initial=before, desc=translated(what))


def describe(what, done, total, seconds):
    """The line, when each takes this many seconds."""
    rate = 1 / max(seconds, 1e-9)
    left = (total - done) * seconds
    values = {"what": translated(what), "done": f"{done}/{total}", "rate": rate, "left": left}
    return filled("{what} {done}, {rate:.3g} a second, {left:.0f} s left", **values)


def duration(seconds):
    """Format a duration in seconds."""
    if seconds < 100:
        return f"{seconds:.2g} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:,.1f} h"


def show(line):
    """Replace the current line of the terminal."""
    if sys.stderr and sys.stderr.isatty():  # None: it was closed before the start
        terminal = getattr(sys.stderr, "stream", sys.stderr)  # what is under escapes.Terminal
        print(f"\r\x1b[K{line}", end="", file=terminal, flush=True)
