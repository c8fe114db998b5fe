"""The live page of some models, served by this process in a thread of its own."""

import contextlib

from minitx.analysis.live import server


@contextlib.contextmanager
def listening(runs, text):
    """The port on which the live page of a Runs is served."""
    page = server.Serving(runs, text=text)
    try:
        yield int(page.address.rstrip("/").rpartition(":")[2])
    finally:
        page.close()
