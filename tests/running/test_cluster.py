"""Documents on the workers of a cluster: the same bytes as on threads, whatever fails."""

import contextlib
import gc
import importlib
import os
import signal
import socket
import sys
import threading
import time

import numpy as np
import pytest

import minitx
from benchmarks.workers import running
from minitx import analysis
from minitx.analysis import commands, experiments  # noqa: F401  (fills the registry)
from minitx.analysis.contract import registry
from minitx.analysis.running import cluster, executor, shipping, stream

pytest.importorskip("distributed", reason="needs the extra dask")

# distributed leaves the socket of a worker that ended to the garbage collector
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <ssl.SSLSocket:ResourceWarning")

ROWS = np.random.default_rng(0).standard_normal((60, 3)).astype(np.float32)
SMALL = {
    "profiles": {"documents": 6, "tokens": 48},
    "lags": {"documents": 4, "tokens": 64},
    "remove-positions": {"documents": 4, "tokens": 64},
    "probe": {"documents": 8, "tokens": 48},
    "joint-grid": {"documents": 4, "tokens": 32},
}


@pytest.fixture(scope="module")
def client():
    """A client of two worker processes."""
    with contextlib.ExitStack() as stack:
        yield cluster._started(2, stack)


@pytest.fixture
def mortal():
    """Two worker processes of its own for a test in which they die; a document may take two along.

    Where the machine is too busy to start them again, no other test waits for them.
    """
    import dask

    with contextlib.ExitStack() as stack:
        few = {"distributed.scheduler.allowed-failures": 1}
        stack.enter_context(dask.config.set(few))
        client = cluster._started(2, stack)
        stack.enter_context(executor.use(cluster.Cluster(lambda: client)))
        yield client


@pytest.fixture
def workers(client):
    """An executor of its own for a test."""
    with executor.use(cluster.Cluster(lambda: client)):
        yield client


def gathered(measure, rows=ROWS):
    """Sums, and all rows."""
    return stream.UNSAVED.gather(measure, rows, "rows", keep=("all",))


def test_sums_are_the_same_bytes_in_the_same_order(client):
    scale = np.float32(3)

    def measure(i, x):
        return {"sum": x / scale, "all": x}

    here = gathered(measure)
    with executor.use(cluster.Cluster(lambda: client)):
        far = gathered(measure)
    assert np.array_equal(far["all"], ROWS)
    assert all(np.array_equal(here[name], far[name]) for name in here)


@pytest.mark.parametrize("name", SMALL)
def test_experiments_give_the_same_bytes(client, name):
    here = analysis.run(name, "tiny-roberta", **SMALL[name])
    far = analysis.run(name, "tiny-roberta", client=client, **SMALL[name])
    assert here.settings == far.settings and here.arrays.keys() == far.arrays.keys()
    for key, x in here.arrays.items():
        assert x.tobytes() == far.arrays[key].tobytes(), key


def test_a_model_that_was_changed_is_computed_as_it_is(client):
    model = minitx.load("tiny-roberta")
    W_pos = model.weights.W_pos[::-1].copy()
    model.weights.W_pos = W_pos
    here = analysis.run("profiles", model, **SMALL["profiles"])
    far = analysis.run("profiles", model, client=client, **SMALL["profiles"])
    assert here.settings["changed"] == ["W_pos"]
    assert here.arrays["profiles"].tobytes() == far.arrays["profiles"].tobytes()


def otherwise(dask_worker):
    """A worker's numbers would differ in the last digit."""
    shipping._unpacked.clear()
    stated = shipping.computing()
    shipping.computing = lambda: stated | {"BLAS": "another"}


def with_other_files(dask_worker):
    """A worker's model has other weights."""
    shipping.folder_of.cache_clear()
    shipping.arrays_of.cache_clear()
    shipping._hashes = lambda folder: {"model.safetensors": "0" * 64}


def as_before(dask_worker):
    """The worker as it was."""
    importlib.reload(shipping)


def slowly(measure):
    """The same in so much time that both workers get documents."""

    def slow(i, x):
        time.sleep(0.05)
        return measure(i, x)

    return slow


@pytest.fixture
def spoilt(workers):
    """A function that spoils a worker; all are as before in the end."""
    import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield lambda how, worker: workers.run(how, workers=[worker])
    workers.run(as_before)
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


def test_a_worker_that_would_compute_otherwise_is_refused_by_name(workers, spoilt, capsys):
    first, second = sorted(workers.nthreads())
    whole = ROWS.astype(float).sum(axis=0)
    spoilt(otherwise, first)
    sums = gathered(slowly(lambda i, x: {"sum": x, "all": x}))
    assert np.array_equal(sums["all"], ROWS) and np.allclose(sums["sum"], whole)
    message = f"minitx: worker {first} is refused: it computes with BLAS another; wanted "
    assert message in capsys.readouterr().err
    spoilt(otherwise, second)
    with executor.use(cluster.Cluster(lambda: workers)):
        with pytest.raises(cluster.Gone, match="every worker was rejected"):
            gathered(lambda i, x: {"sum": x, "all": x})


def test_a_worker_with_other_weights_is_refused_by_name(bundled, workers, spoilt, capsys):
    first = min(workers.nthreads())
    spoilt(with_other_files, first)
    sums = gathered(slowly(lambda i, x: {"n": bundled.weights.W_E.shape[1], "all": x}))
    assert sums["n"] == 128 * len(ROWS) and np.array_equal(sums["all"], ROWS)
    error = capsys.readouterr().err
    assert f"minitx: worker {first} is refused: " in error
    assert "sha256 000000000000…; wanted sha256 " in error or "no such file" in error


def test_a_document_that_fails_on_every_worker_is_named(workers):
    def measure(i, x):
        if i == 7:
            raise MemoryError("no room")
        return {"all": x}

    with pytest.raises(ValueError, match=r"^document 7 \('.*'\): MemoryError: no room$"):
        gathered(measure)


def test_the_text_of_a_document_that_fails_is_shown(bundled, workers):
    documents = [bundled.tokenizer.encode(text) for text in ("A dog.", "A cat sat on the mat.")]

    def measure(i, document):
        if i == 1:
            raise registry.NotApplicable("no cats")
        return {"n": len(document) + bundled.config.n_layers}

    message = r"^document 1 \('A cat sat on the mat.'\): no cats$"
    with pytest.raises(registry.NotApplicable, match=message):
        stream.UNSAVED.gather(measure, documents, "texts")


def test_a_document_that_fails_on_one_worker_is_done_by_another(workers):
    first = sorted(workers.nthreads())[0]

    def measure(i, x):
        from distributed import get_worker

        time.sleep(0.05)
        if get_worker().address == first:
            raise OSError("its disk is full")
        return {"all": x}

    assert np.array_equal(gathered(measure)["all"], ROWS)


def test_a_worker_that_dies_loses_nothing(mortal, tmp_path):
    died = tmp_path / "died"

    def measure(i, x):
        if i == 20 and not died.exists():
            died.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return {"sum": x / np.float32(3), "all": x}

    total = sum((ROWS / np.float32(3)).astype(float))
    assert np.array_equal(gathered(measure)["sum"], total) and died.exists()


def test_a_document_under_which_workers_die_is_named(mortal):
    def measure(i, x):
        if i == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return {"all": x}

    with pytest.raises(ValueError, match=r"^document 2 \('.*'\): KilledWorker: "):
        gathered(measure, ROWS[:4])


def test_few_documents_are_read_ahead(workers):
    """So memory does not grow with their number."""
    taken, ahead = [], []

    def documents():
        for i, x in enumerate(np.tile(ROWS, (5, 1))):
            taken.append(i)
            yield i, x

    results = executor.current().results(lambda i, x: {"sum": x / 3}, documents())
    for done, _ in enumerate(results):
        ahead.append(len(taken) - done)
    assert done == 299
    # measured 7 at first, up to 256 in a batch later
    assert ahead[0] <= 8 and max(ahead) <= 7 * cluster.LARGEST


def test_documents_that_are_done_are_soon_forgotten(workers, monkeypatch):
    """Dask keeps the messages to its workers, for people who look for errors."""
    monkeypatch.setattr(cluster.Pace, "size", lambda pace, n_threads: 1)
    documents = np.arange(100 * 7).reshape(100, 7)
    gathered(lambda i, row: {"all": row[0], "sum": row}, documents)
    gc.collect()
    batches = [x for x in gc.get_objects() if isinstance(x, list) and len(x) == 1]
    pairs = [x[0] for x in batches if isinstance(x[0], tuple) and len(x[0]) == 2]
    kept = [x for _, x in pairs if isinstance(x, np.ndarray) and x.shape == (7,)]
    assert len(kept) < 50


def test_batches_are_bounded_in_time_and_bytes():
    pace = cluster.Pace()
    assert pace.size(2) == 1  # nothing is known
    pace.note([{"x": np.zeros(10)}] * 10, 0.1)
    assert pace.size(2) == 50  # half a second
    assert pace.size(2000) == cluster.LARGEST
    pace.note([{"x": np.zeros(1 << 19)}] * 10, 0.1)
    assert pace.size(2) == 3  # 8 MB in a batch, and half of the documents have 4
    pace.note([{"x": np.zeros(1)}], 1000)
    assert pace.size(2) == 1
    rows = iter(enumerate(np.zeros((8, 1 << 19))))
    assert len(cluster._next(rows, 100)) == 3 and len(cluster._next(rows, 2)) == 2


def test_nothing_waits_forever(monkeypatch):
    monkeypatch.setattr(cluster, "PATIENCE", 1.5)
    monkeypatch.setattr(cluster, "POLL", 0.2)
    with contextlib.ExitStack() as stack:
        alone = cluster._started(0, stack)
        end = threading.Timer(20, alone.close)  # where this fails
        end.start()
        stack.callback(end.cancel)
        stack.enter_context(executor.use(cluster.Cluster(lambda: alone)))
        message = r"no task finished for \d s on its 0 workers; .* --resume to continue"
        with pytest.raises(cluster.Gone, match=message):
            gathered(lambda i, x: {"all": x})


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
def test_a_scheduler_that_is_gone_ends_the_run(tmp_path):
    from distributed import Client

    with running(tmp_path, 1) as (address, processes):
        with Client(address, set_as_default=False, timeout=30) as far:
            seen = []

            def measure(i, x):
                time.sleep(0.05)
                return {"all": x}

            with pytest.raises(cluster.Gone, match="the cluster at tcp://.* --resume to continue"):
                for _ in cluster.Cluster(lambda: far).results(measure, enumerate(ROWS)):
                    if not seen:
                        processes[0].send_signal(signal.SIGKILL)
                    seen.append(time.monotonic())
            far._timeout = 1  # else closing it waits for the scheduler
    assert seen


def test_flags_that_contradict_each_other_are_refused(capsys, monkeypatch):
    command = "run profiles tiny-roberta --workers".split()
    assert commands.run_command([*command, "2", "--scheduler", "tcp://127.0.0.1:1"]) == 2
    assert "--workers 2 starts processes here" in capsys.readouterr().err
    assert commands.run_command([*command, "-1"]) == 2
    assert "--workers is -1; wanted 1 or more" in capsys.readouterr().err
    monkeypatch.setattr(cluster, "LOOK", 1.0)
    assert commands.run_command([*command[:3], "--scheduler", "tcp://127.0.0.1:1"]) == 2
    assert "there is no scheduler at 'tcp://127.0.0.1:1'" in capsys.readouterr().err
    for address in "x", " ", "tcp://", "http://127.0.0.1:1", "inproc://1":
        assert commands.run_command([*command[:3], "--scheduler", address]) == 2
        assert f"--scheduler is {address!r}; wanted HOST:PORT" in capsys.readouterr().err
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        assert commands.run_command([*command[:3], "--scheduler", address]) == 2
    assert "it said nothing in 1 s" in capsys.readouterr().err
    monkeypatch.setattr(cluster.importlib.util, "find_spec", lambda name: None)
    assert commands.run_command([*command, "2"]) == 2
    message = "--workers needs distributed: pip install 'minitx[dask]'"
    assert message in capsys.readouterr().err
