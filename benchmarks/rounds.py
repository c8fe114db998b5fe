"""Processes in turn: each system waits in a process of its own, and one at a time works.

A round asks every peer of a case once, in an order that changes from round to round, so that whatever the machine does
meanwhile falls on all of them. Before each turn the others' threads are given time to stop spinning. Several sets of
fresh processes: where in memory things happen to lie is a matter of luck that stays for the life of a process.
"""
import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from analysis import doctor

PAUSE = 0.15  # seconds before each turn: OpenBLAS's second thread was seen to spin for 0.10 after its last work,
#               ONNX Runtime's for 0.04, torch's for 0.01
WATCHED = 0.3  # seconds in which nobody works, to see how busy the machine is by itself
THREADS = "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"
AGREE = 1e-3  # of an array's largest entry: what is timed is exact, in float32
SPIN = """
import os, sys
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
print(flush=True)
while os.getppid() == int(sys.argv[1]):
    for _ in range(1_000_000):
        pass
"""


def environment(threads):
    """The environment of a peer: nothing that pins kernels, so many threads, no network."""
    kept = {key: value for key, value in os.environ.items() if key not in (*doctor.PINS, *doctor.THREADS)}
    return kept | dict.fromkeys(THREADS, str(threads)) | {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}


class Failed(RuntimeError):
    """A peer that cannot do what it was asked to."""


class Process:
    """One system waiting for orders."""

    def __init__(self, system, work, threads):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.peers", system, str(work), str(threads)], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment(threads),
            cwd=Path(__file__).parents[1])

    def ask(self, **order):
        """Send one order and wait for its answer; Failed if it ends otherwise."""
        try:
            print(json.dumps(order), file=self.process.stdin, flush=True)
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        told = json.loads(line) if line else {"error": f"the process ended ({self.process.wait()})"}
        if "error" in told:
            raise Failed(told["error"])
        return told

    def end(self):
        """Let it go."""
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class Processes(dict):
    """{system: its process}, each started when it is first asked for, all ended with the context."""

    def __init__(self, work, threads):
        self.work, self.threads = work, threads

    def __missing__(self, system):
        self[system] = Process(system, self.work, self.threads)
        return self[system]

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for process in self.values():
            process.end()
        self.clear()


def orders(peers, rounds, shift=0):
    """The peers in the order of each round: one forwards, the next backwards, then both begun a place further on.

    So in every 2 n rounds of n peers each comes at every place twice. shift: number of the set, so that a set goes on
    where the one before it ended.
    """
    for r in range(rounds):
        k = (r // 2 + shift * -(-rounds // 2)) % len(peers)
        turned = [*peers[k:], *peers[:k]]
        yield turned[::-1] if r % 2 else turned


def checked(found):
    """{peer: arrays} compared name by name with whoever has the name first -> {peer: what is wrong}, largest distance.

    A distance is the largest difference over the largest entry.
    """
    reference, wrong, largest = {}, {}, 0.0
    for peer, arrays in found.items():
        for name, x in arrays.items():
            first = reference.setdefault(name, x)
            if first.shape != x.shape:
                wrong[peer] = f"{name} is {list(x.shape)}, of another system {list(first.shape)}"
                continue
            far = float(np.abs(np.subtract(x, first, dtype=float)).max() / max(np.abs(first).max(), 1e-30))
            largest = max(largest, far)
            if not far <= AGREE:
                wrong[peer] = f"{name} differs by {far:.1e} of the largest entry; allowed {AGREE}"
    return wrong, largest


def prepared(case, processes):
    """Ask everybody once, which loads and warms, and compare the results -> {peer: why it is out}, distance."""
    lost, found = {}, {}
    path = processes.work / f"arrays-{os.getpid()}.npz"
    for peer in case.peers:
        try:
            processes[peer.split("/")[0]].ask(**order(case, peer), arrays=str(path))
            with np.load(path) as arrays:
                found[peer] = dict(arrays)
        except Failed as error:
            lost[peer] = str(error)
        finally:
            path.unlink(missing_ok=True)
    wrong, distance = checked(found)
    return lost | wrong, distance


def order(case, peer):
    """What a process is told to do in a turn of this peer."""
    return {"task": peer.split("/")[1], "shape": case.shape, "batch": case.batch, "tokens": case.tokens}


def turn(case, peer, processes):
    """One turn -> seconds, and [peak, private] bytes of the process; a fresh one counts from its start."""
    if not case.fresh:
        told = processes[peer.split("/")[0]].ask(**order(case, peer))
        return told["seconds"], told["memory"]
    start = time.perf_counter()
    process = Process(peer.split("/")[0], processes.work, processes.threads)
    try:
        told = process.ask(**order(case, peer))
        return time.perf_counter() - start, told["memory"]
    finally:
        process.end()


@contextlib.contextmanager
def spinning(wanted):
    """Another process that computes on one core all the while."""
    if not wanted:
        yield
        return
    process = subprocess.Popen([sys.executable, "-c", SPIN, str(os.getpid())], stdout=subprocess.PIPE)
    try:
        process.stdout.readline()
        yield
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def measure(case, processes, rounds, shift=0, show=lambda line: None):
    """One case in one set of processes -> seconds and memory {peer: [rounds]}, those lost, distance, busy cores."""
    show(f"{case.name}: loading")
    lost, distance = {}, None
    if case.compared:
        with Processes(processes.work, processes.threads) if case.fresh else contextlib.nullcontext(processes) as asked:
            lost, distance = prepared(case, asked)
    ready = [peer for peer in case.peers if peer not in lost]
    busy = doctor.busy_cores(WATCHED)
    seconds, memory = ({peer: [] for peer in ready} for _ in range(2))
    with spinning(case.busy):
        for r, turns in enumerate(orders(ready, rounds, shift) if ready else ()):
            show(f"{case.name}: round {r + 1}/{rounds}")
            for peer in (peer for peer in turns if peer not in lost):
                time.sleep(PAUSE)
                try:
                    used, held = turn(case, peer, processes)
                except Failed as error:
                    lost[peer] = str(error)
                    del seconds[peer], memory[peer]
                    continue
                seconds[peer].append(used)
                memory[peer].append(held)
    return {"seconds": seconds, "memory": memory if case.fresh else {}, "lost": lost, "distance": distance,
            "busy": busy}
