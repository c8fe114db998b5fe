"""What `minitx plan` says beside what a run takes, in seconds of processors.

    python -m benchmarks.scale [--model tiny-roberta] [--documents 1000 10000] [--tokens 64]
        [--workers 2]

The plan is learnt from 24 documents. Both are counted in seconds of processors, which busy
neighbours change little: of the workers, and of the process that reads and adds up, with its
scheduler. Documents are random words.
"""

import argparse
import contextlib
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

import minitx
from minitx.analysis import EXPERIMENTS
from minitx.analysis.running import blas, cluster, cost, executor, stream
from minitx.analysis.texts import formats

from .workers import way_of

EXPERIMENT = "profiles"


class Processor:
    """A clock that stands while others use the processor."""

    perf_counter = staticmethod(time.process_time)


def main(argv=None):
    """Print a line for each number of documents."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", default="tiny-roberta")
    parser.add_argument("--documents", type=int, nargs="+", default=[1000, 10_000])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=64)
    given = parser.parse_args(argv)
    cost.time = Processor
    model = minitx.load(given.model)
    print("documents   workers, s: planned   taken   client, s: planned   taken   MB sent   back")
    with tempfile.TemporaryDirectory() as folder, blas.one_thread_of_blas():
        for n in given.documents:
            options = {
                "text": formats.of(write(Path(folder), model, n, given.tokens), is_ids=True),
                "tokens": given.tokens,
            }
            plan = cost.plan(EXPERIMENTS[EXPERIMENT], model, options, n)
            workers, here = taken(model, options | {"documents": n}, given.workers)
            planned = cost.of_workers(plan), workers, cost.of_client(plan) + plan.fixed, here
            moved = plan.sent / 1e6, plan.returned / 1e6
            print(f"{n:9,}", *(f"{x:12.2f}" for x in (*planned, *moved)), flush=True)


def write(folder, model, n, tokens):
    """A file with n documents of random ids, a line each."""
    path = folder / f"{n}.txt"
    rng = np.random.default_rng(0)
    with path.open("w", encoding="ascii") as file:
        for _ in range(n):
            print(*rng.integers(5, model.config.n_vocab, tokens), file=file)
    return path


def taken(model, options, n_workers):
    """Processor seconds of the workers, and of this process, in a run."""
    experiment = EXPERIMENTS[EXPERIMENT]
    checked = experiment.checked(options)
    with contextlib.ExitStack() as stack:
        client = cluster._started(n_workers, stack)
        with executor.use(way_of(client)):
            before, here = client.run(time.process_time), of_this_process()
            experiment.run(model, stream.UNSAVED, **checked)
            after, here = client.run(time.process_time), of_this_process() - here
    return sum(after.values()) - sum(before.values()), here


def of_this_process():
    """Its processor seconds so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
