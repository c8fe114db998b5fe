"""Small products on a busy machine: BLAS threads that wait for each other would cost more than they bring."""
import os

import pytest

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is imported
for name in ("CI", "BUILD_NUMBER"):  # there pytest looks for all of a difference; of megabytes, for minutes
    os.environ.pop(name, None)


@pytest.fixture(autouse=True, scope="session")
def cache(tmp_path_factory):
    """What commands keep between runs, they keep here."""
    os.environ["MINITX_CACHE"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture
def one_thread():
    """Counts are those of one thread, whatever the machine has; afterwards BLAS has as many as before."""
    from minitx import threads
    before = threads.threads()
    threads._set_threads(1)
    yield
    threads._set_threads(before)


@pytest.fixture(scope="session")
def bundled():
    """The bundled tiny-roberta."""
    import minitx
    import weights
    return minitx.load(weights.find("tiny-roberta"))


@pytest.fixture(scope="session")
def causal(tmp_path_factory):
    """A small random causal model."""
    import minitx
    from analysis_models import gpt2
    return minitx.load(gpt2(tmp_path_factory.mktemp("gpt2")))
