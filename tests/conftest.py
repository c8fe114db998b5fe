"""What all tests share: one BLAS thread, a cache of their own, two models.

Products are small here and the machine may be busy: threads that wait for each other would cost
more than they bring.
"""

import gc
import io
import os
import shutil
import signal
import sys
import tempfile

import pytest

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is imported
os.environ["MINITX_LANG"] = "en"  # whatever the locale
# where these are set pytest shows all of a difference, and works for minutes on one of megabytes
for name in ("CI", "BUILD_NUMBER"):
    os.environ.pop(name, None)
# a suite that a shell starts in the background ignores SIGINT, as would the programs it interrupts
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# thousands of small files are written and removed: in memory, where there is enough of it
if "TMPDIR" not in os.environ and os.access("/dev/shm", os.W_OK):
    if shutil.disk_usage("/dev/shm").free > 4e9:
        os.environ["TMPDIR"] = tempfile.tempdir = "/dev/shm"


def pytest_addoption(parser):
    """What holds for a release alone is tried where it is asked for."""
    parser.addoption("--release", action="store_true", help="also tests of a release: translations")


def pytest_collection_modifyitems(config, items):
    """Leave out tests of a release."""
    if not config.getoption("--release"):
        items[:] = [item for item in items if not item.get_closest_marker("release")]


def pytest_collection_finish():
    """What is there when the tests begin stays: no search for garbage goes through it again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def cache(tmp_path_factory):
    """What commands keep between runs, they keep here."""
    os.environ["MINITX_CACHE"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(autouse=True)
def one_thread():
    """One BLAS thread, whatever the environment says and whatever the test before has set."""
    from minitx.machine import threads

    threads.limit(1)
    yield
    threads.limit(1)


@pytest.fixture(scope="session")
def bundled():
    """The bundled tiny-roberta."""
    import minitx

    return minitx.load("tiny-roberta")


@pytest.fixture(scope="session")
def causal(tmp_path_factory):
    """A small random causal model."""
    from analysis_models import gpt2

    import minitx

    return minitx.load(gpt2(tmp_path_factory.mktemp("gpt2")))


@pytest.fixture
def piped(monkeypatch):
    """A function that makes a text standard input, which is spooled once in a process."""
    from minitx.analysis.texts import storage

    def pipe(text):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        storage._spooled.cache_clear()

    yield pipe
    storage._spooled.cache_clear()


@pytest.fixture
def empty_figures(monkeypatch):
    """Every experiment draws empty axes, for tests of what else it writes."""
    from undrawn import without_figures

    without_figures(monkeypatch)
