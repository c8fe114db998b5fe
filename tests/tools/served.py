"""The live page of some models: to ask in this process, or served in a thread of its own."""

import contextlib

from starlette.testclient import TestClient

from minitx.analysis.live import server

PORT = 8642
HERE = f"http://127.0.0.1:{PORT}"


def client(runs, text):
    """A browser's page of a Runs on this machine: a fault of the server is answered, not raised."""
    application = server.app(runs, PORT, text)
    return TestClient(application, base_url=HERE, raise_server_exceptions=False)


@contextlib.contextmanager
def listening(runs, text):
    """The port on which the live page of a Runs is served."""
    page = server.Serving(runs, text=text)
    try:
        yield int(page.address.rstrip("/").rpartition(":")[2])
    finally:
        page.close()
