"""The live page of some models, served by this process in a thread of its own."""

import contextlib
import threading

import uvicorn

from minitx.analysis.live import server


@contextlib.contextmanager
def listening(runs, text):
    """The port on which the live page of a Runs is served."""
    listener = server.listening(0)
    port = listener.getsockname()[1]
    application = server.app(runs, port, text)
    running = uvicorn.Server(uvicorn.Config(application, **server.OPTIONS))
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield port
    finally:
        running.should_exit = True
        thread.join(20)
        listener.close()
        assert not thread.is_alive()
