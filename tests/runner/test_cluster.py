"""Documents on the workers of a cluster: the same bytes as on threads, whatever fails."""

import contextlib
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import minitx
from minitx import analysis
from minitx.analysis import commands, experiments  # noqa: F401  (fills the registry)
from minitx.analysis.runner import cluster, executor, registry, shipping, stream

pytest.importorskip("distributed", reason="needs the extra dask")

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
    """A client of two worker processes; a document may take two of them along."""
    import dask

    with contextlib.ExitStack() as stack:
        few = {"distributed.scheduler.allowed-failures": 1}
        stack.enter_context(dask.config.set(few))
        yield cluster._started(2, stack)


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


def test_weights_travel_by_name_and_are_mapped_again():
    model = minitx.load("tiny-roberta")
    package = shipping.Sender().pack(lambda i, x: (model, x))
    assert len(package.content) < 20_000  # measured 4,100; the weights have 4.4 million bytes
    again, _ = shipping.unpack(package)(0, None)
    W, own = again.layers[1].W_Q, model.layers[1].W_Q
    assert np.array_equal(W, own) and not np.shares_memory(W, own)
    assert not W.flags.writeable and W.strides == own.strides
    assert again.config == model.config and again.tokenizer.folder == model.tokenizer.folder


def test_an_array_that_comes_before_its_model_travels_by_name_too():
    model = minitx.load("tiny-roberta")
    table = model.weights.W_E
    package = shipping.Sender().pack(lambda i, x: (table, model))
    assert len(package.content) < 20_000
    again, of_model = shipping.unpack(package)(0, None)
    assert again is of_model.weights.W_E


def test_other_arrays_keep_their_layout():
    """Products of the same numbers laid out otherwise may differ in the last digit."""
    x = np.arange(24.0).reshape(2, 3, 4)
    for view in (x.T, x.swapaxes(0, 1), x[:, ::2].swapaxes(1, 2), x[:, 1:, 1:]):
        again = shipping.unpack(shipping.Sender().pack(lambda i, _, view=view: view))(0, None)
        assert np.array_equal(again, view)
        assert np.argsort(again.strides).tolist() == np.argsort(view.strides).tolist()


def test_other_weights_are_refused():
    files = shipping.Sender().files_of(minitx.load("tiny-roberta").tokenizer.folder)
    assert files.name == "tiny-roberta"
    other = files._replace(hashes=(("model.safetensors", "0" * 64),))
    with pytest.raises(ValueError, match=r"model.safetensors: sha256 \w{12}…; wanted sha256 000"):
        shipping.folder_of(other)
    with pytest.raises(ValueError, match="there is no folder /nowhere on its machine"):
        shipping.folder_of(files._replace(folder="/nowhere", name=""))
    assert shipping.folder_of(files._replace(folder="/nowhere")).name == "tiny-roberta"


def otherwise(dask_worker):
    """A worker's numbers would differ in the last digit."""
    from minitx.analysis.runner import shipping

    shipping._unpacked.clear()
    stated = shipping.computing()
    shipping.computing = lambda: stated | {"BLAS": "another"}


def as_before(dask_worker):
    """The worker as it was."""
    import importlib

    from minitx.analysis.runner import shipping

    importlib.reload(shipping)


def test_a_worker_that_would_compute_otherwise_is_refused_by_name(workers, capsys):
    import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    first, second = sorted(workers.nthreads())
    whole = ROWS.astype(float).sum(axis=0)
    try:
        workers.run(otherwise, workers=[first])
        sums = gathered(lambda i, x: {"sum": x, "pid": os.getpid(), "all": x})
        assert np.array_equal(sums["all"], ROWS) and np.allclose(sums["sum"], whole)
        message = f"minitx: worker {first} is refused: it computes with BLAS another; wanted "
        assert message in capsys.readouterr().err
        workers.run(otherwise, workers=[second])
        with executor.use(cluster.Cluster(lambda: workers)):
            with pytest.raises(cluster.Gone, match="every worker is refused"):
                gathered(lambda i, x: {"sum": x, "all": x})
    finally:
        workers.run(as_before)
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


def test_a_document_that_fails_on_every_worker_is_named(workers):
    def measure(i, x):
        if i == 7:
            raise MemoryError("no room")
        return {"all": x}

    with pytest.raises(ValueError, match=r"^document 7 \('.*'\): MemoryError: no room$"):
        gathered(measure)


def test_the_text_of_a_document_that_fails_is_shown(workers):
    model = minitx.load("tiny-roberta")
    documents = [model.tokenizer.encode(text) for text in ("A dog.", "A cat sat on the mat.")]

    def measure(i, document):
        if i == 1:
            raise registry.NotApplicable("no cats")
        return {"n": len(document) + model.config.n_layers}

    message = r"^document 1 \('A cat sat on the mat.'\): no cats$"
    with pytest.raises(registry.NotApplicable, match=message):
        stream.UNSAVED.gather(measure, documents, "texts")


def test_a_document_that_fails_on_one_worker_is_done_by_another(workers):
    first = sorted(workers.nthreads())[0]

    def measure(i, x):
        from distributed import get_worker

        if get_worker().address == first:
            raise OSError("its disk is full")
        return {"all": x}

    assert np.array_equal(gathered(measure)["all"], ROWS)


def test_a_worker_that_dies_loses_nothing(workers, tmp_path):
    here = {"sum": (ROWS / np.float32(3)).astype(float)}
    died = tmp_path / "died"

    def measure(i, x):
        import os
        import signal

        if i == 20 and not died.exists():
            died.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return {"sum": x / np.float32(3), "all": x}

    sums = gathered(measure)
    total = 0.0
    for row in here["sum"]:
        total = total + row
    assert died.exists() and np.array_equal(sums["sum"], total)


def test_a_document_under_which_workers_die_is_named(workers):
    def measure(i, x):
        import os
        import signal

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

    results = executor.current().results(third_of(), documents())
    for done, _ in enumerate(results):
        ahead.append(len(taken) - done)
    assert done == 299
    # measured 7 at first, up to 256 in a batch later
    assert ahead[0] <= 8 and max(ahead) <= 7 * cluster.LARGEST


def third_of():
    """A measure that travels."""
    return lambda i, x: {"sum": x / 3}


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
        stack.enter_context(executor.use(cluster.Cluster(lambda: alone)))
        message = r"nothing was finished for \d s on its 0 workers; .* --resume goes on"
        with pytest.raises(cluster.Gone, match=message):
            gathered(lambda i, x: {"all": x})


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
def test_a_scheduler_that_is_gone_ends_the_run(tmp_path):
    import workers as tool
    from distributed import Client

    with tool.cluster(tmp_path, 1) as (address, processes):
        with Client(address, set_as_default=False, timeout=30) as far:
            seen = []

            def measure(i, x):
                import time

                time.sleep(0.05)
                return {"all": x}

            with pytest.raises(cluster.Gone, match="the cluster at tcp://.* --resume goes on"):
                for _ in cluster.Cluster(lambda: far).results(measure, enumerate(ROWS)):
                    if not seen:
                        processes[0].send_signal(signal.SIGKILL)
                    seen.append(time.monotonic())
            far._timeout = 0.1  # else closing it waits for the scheduler
    assert seen


def test_flags_that_contradict_each_other_are_refused(capsys, monkeypatch):
    command = ["run", "profiles", "tiny-roberta", "--workers"]
    assert commands.run_command([*command, "2", "--scheduler", "tcp://127.0.0.1:1"]) == 2
    assert "--workers 2 starts processes here" in capsys.readouterr().err
    assert commands.run_command([*command, "-1"]) == 2
    assert "--workers is -1; wanted 1 or more" in capsys.readouterr().err
    monkeypatch.setattr(cluster, "LOOK", 1.0)
    assert commands.run_command([*command[:3], "--scheduler", "tcp://127.0.0.1:1"]) == 2
    assert "there is no scheduler at tcp://127.0.0.1:1" in capsys.readouterr().err
    monkeypatch.setattr(cluster.importlib.util, "find_spec", lambda name: None)
    assert commands.run_command([*command, "2"]) == 2
    message = "--workers needs distributed: pip install 'minitx[dask]'"
    assert message in capsys.readouterr().err


def test_importing_analysis_imports_no_dask():
    code = (
        "import sys, minitx.analysis.commands; print([*{'dask', 'distributed'} & {*sys.modules}])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
