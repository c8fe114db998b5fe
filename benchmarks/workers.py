"""What workers cost beside what they compute: `--workers` against one process, and a large cluster.

    python -m benchmarks.workers FOLDER [--documents 24] [--tokens 512] [--rounds 3]
    python -m benchmarks.workers FOLDER --simulated 64 [--seconds 0.6] [--bytes 50000]
    python -m benchmarks.workers FOLDER --memory 100000

The first times head profiles on random weights of roberta-base's shape in turn: in this process,
with one worker and with two. Beside seconds it gives the processor time that client and scheduler,
and the workers outside of the measure, take for a document, which busy neighbours change little.
The second has threads that only sleep in place of workers, and gives the scheduler's and the
client's processor time, and the share of the time in which the threads had something to do. The
third gives the peak memory of this process and of two workers after 100, 1,000 … short documents.

Order: the command line, real work, simulated workers, memory, a cluster in processes of its own.
"""

import argparse
import contextlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np

import minitx
from minitx.analysis.measures import heads
from minitx.analysis.running import blas, cluster, executor, stream

from . import shapes

SHAPE = "roberta-base"
SHORT = 16  # tokens
ROOT = Path(__file__).parents[1]


def main(argv=None):
    """Print one of both tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where the random weights are, or are written")
    for name, default in (
        ("documents", 24),
        ("tokens", 512),
        ("rounds", 3),
        ("simulated", 0),
        ("each", 20),
        ("memory", 0),
    ):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--seconds", type=float, default=0.6, help="of a stand-in for a document")
    parser.add_argument("--bytes", type=int, default=50_000, help="of its result")
    arguments = parser.parse_args(argv)
    if arguments.simulated:
        simulate(arguments)
    elif arguments.memory:
        measure_memory(arguments.memory)
    else:
        measure_overhead(arguments)


# --- real work


def measure_overhead(arguments):
    """Print a line for each round of each way."""
    model = minitx.load(shapes.make(arguments.folder, SHAPE))
    documents = shapes.ids(SHAPE, arguments.documents, arguments.tokens)
    print("way          a document, s   processor, s: measure   workers beside   client beside")
    with contextlib.ExitStack() as stack, blas.one_thread_of_blas():
        ways = {0: executor.THREADS}
        for n in (1, 2):
            client = cluster._started(n, stack)
            ways[n] = way_of(client)
        for _ in range(arguments.rounds + 1):  # the first warms all up, and reads the weights
            for n, way in ways.items():
                show(n, *timed(model, documents, way), n_documents=len(documents))


def way_of(client):
    """The way to measure documents on the workers of a client."""
    return cluster.Cluster(partial(_same, client))


def _same(x):
    return x


def timed(model, documents, way):
    """(seconds, processor seconds of the measure, of its workers, of this process) of all."""

    def measure(_, document):
        begin = time.thread_time()
        profiles = heads.head_profiles(model, document)
        return {"profiles": profiles, "cpu": time.thread_time() - begin}

    with executor.use(way):
        workers = of_workers(way)
        here, begin = time.process_time(), time.monotonic()
        sums = stream.UNSAVED.gather(measure, documents, "documents")
        seconds = time.monotonic() - begin
        here = time.process_time() - here
    return seconds, float(sums["cpu"]), of_workers(way) - workers, here


def of_workers(way):
    """Processor seconds that the workers have taken so far."""
    if way is executor.THREADS:
        return 0.0
    return sum(way.connect().run(time.process_time).values())


def show(n, seconds, measure, workers, here, n_documents):
    """Print a line."""
    own = "this process" if n == 0 else f"{n} worker{'s' * (n > 1)}"
    if n == 0:
        workers, here = measure, here - measure
    cells = (seconds, measure, workers - measure, here)
    print(own, *(f"{x / n_documents:14.4f}" for x in cells), flush=True)


# --- simulated workers


def simulate(arguments):
    """Print what a scheduler and a client take for documents that only take time."""
    import psutil
    from distributed import Client

    n_processes = max(1, arguments.simulated // 8)
    n = arguments.each * arguments.simulated
    with tempfile.TemporaryDirectory() as folder:
        with running(Path(folder), n_processes, 8) as (address, processes):
            with Client(address, set_as_default=False) as client:
                client.wait_for_workers(n_processes, timeout=120)
                scheduler = psutil.Process(processes[0].pid)
                before, here = scheduler.cpu_times().user, time.process_time()
                seconds, batches = slept(client, n, arguments)
                taken = scheduler.cpu_times().user - before, time.process_time() - here
    ideal = n * arguments.seconds / arguments.simulated
    print(
        f"{n} documents of {arguments.seconds} s in {batches} batches on {8 * n_processes} threads"
    )
    print(f"{seconds:.1f} s; {ideal / seconds:.0%} of the time the threads had something to do")
    print(
        f"scheduler: {1e3 * taken[0] / n:.2f} ms a document, {1e3 * taken[0] / batches:.2f} a batch"
    )
    print(f"client: {1e3 * taken[1] / n:.2f} ms a document, {taken[1] / seconds:.0%} of its time")


def slept(client, n, arguments):
    """(seconds, batches) of documents that sleep."""
    result = np.zeros(arguments.bytes // 8)
    duration = arguments.seconds

    def measure(i, _):
        import time

        time.sleep(duration)
        return {"x": result}

    way = cluster.Cluster(lambda: client)
    begin = time.monotonic()
    with executor.use(way):
        stream.UNSAVED.gather(measure, np.zeros((n, 512), int), "documents")
    return time.monotonic() - begin, way.n_batches


# --- memory


def measure_memory(most):
    """Print a line for 100, 1,000 … up to `most` documents of SHORT tokens of the least model."""
    model = minitx.load("tiny-roberta")
    print("documents   seconds   peak of the client, MB   of the workers, MB")
    with contextlib.ExitStack() as stack, blas.one_thread_of_blas():
        client = cluster._started(2, stack)
        with executor.use(way_of(client)):
            n = 100
            while n <= most:
                begin = time.monotonic()
                stream.UNSAVED.gather(partial(_profiles, model), Drawn(n, model), "documents")
                seconds = time.monotonic() - begin
                peaks = [f"{peak_MB():.1f}", *(f"{x:.1f}" for x in client.run(peak_MB).values())]
                print(f"{n:9,} {seconds:9.1f}", *peaks, sep="   ", flush=True)
                n *= 10


def _profiles(model, _, document):
    return {"profiles": heads.head_profiles(model, document)}


class Drawn:
    """N documents of SHORT tokens, each drawn when its turn comes."""

    def __init__(self, n, model):
        self.n, self.n_vocab = n, model.config.n_vocab

    def __len__(self):
        return self.n

    def __iter__(self):
        rng = np.random.default_rng(0)
        return (rng.integers(5, self.n_vocab, SHORT) for _ in range(self.n))


def peak_MB():
    """The largest resident memory that this process had so far."""
    unit = 1e6 if sys.platform == "darwin" else 1e3
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


# --- a cluster


@contextlib.contextmanager
def running(folder, n_workers=2, n_threads=1):
    """(address, processes) of a scheduler in a process of its own, with workers in theirs."""
    file = folder / "scheduler.json"
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
    own = ["--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", str(file)]
    commands = [["scheduler", *own, "--port", "0"]]
    commands += [["worker", *own, "--nthreads", str(n_threads)]] * n_workers
    processes = []
    try:
        for command in commands:
            whole = [sys.executable, "-m", "dask", *command]
            how = {"cwd": folder, "env": environment, "stderr": subprocess.DEVNULL}
            processes.append(subprocess.Popen(whole, **how))
            wait_for(file, processes[0])
        yield json.loads(file.read_text(encoding="utf-8"))["address"], processes
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait(timeout=60)


def wait_for(file, process):
    """Wait until the scheduler has written its address."""
    while not (file.is_file() and file.stat().st_size):
        if process.poll() is not None:
            raise RuntimeError("the scheduler did not start")
        time.sleep(0.1)


if __name__ == "__main__":
    main()
