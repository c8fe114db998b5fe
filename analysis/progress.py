"""How far a long loop is: one line, rewritten in place; nothing where stderr is not a terminal."""

import sys
import time

SHOWN_EVERY = 0.2  # seconds


def track(items, what, total):
    """Yield the items, showing how many of `total` are done, the rate and the time left."""
    start = shown = time.monotonic()
    try:
        for done, item in enumerate(items):
            now = time.monotonic()
            if done and now - shown > SHOWN_EVERY:
                shown = now
                show(describe(what, done, total, now - start))
            yield item
    finally:
        clear()


def describe(what, done, total, seconds):
    """'documents 12/100, 8.1 a second, 11 s left'"""
    rate = done / max(seconds, 1e-9)
    return f"{what} {done}/{total}, {rate:.3g} a second, {(total - done) / rate:.0f} s left"


def show(line):
    """Replace the current line of the terminal."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)


def clear():
    """Remove the current line."""
    show("")
