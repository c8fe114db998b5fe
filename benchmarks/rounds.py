"""Processes in turn: each system waits in a process of its own, and one works at a time.

A round asks every peer of a case once, in an order that changes from round to round, so that
other work of the machine affects all of them. Before each turn the others' threads are given time
to stop spinning. There are several sets of fresh processes, because the places of arrays in memory
are random and stay the same for the life of a process.
"""

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from minitx.analysis.machine import doctor

# seconds before each turn: OpenBLAS's second thread was seen to spin for 0.10 after its last work,
# ONNX Runtime's for 0.04, torch's for 0.01
PAUSE = 0.15
WATCHED = 0.3  # seconds in which nobody works, to see how busy the machine is by itself
THREADS = "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"
PEERS = "benchmarks.peers"
AGREE = 1e-3  # of an array's largest entry: all systems are exact to float32
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
    """The environment of a peer: this number of threads, no network, nothing that pins kernels."""
    pins = (*doctor.PINS, *doctor.THREADS)
    env = {key: value for key, value in os.environ.items() if key not in pins}
    env |= dict.fromkeys(THREADS, str(threads))
    return env | {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}


class Failed(RuntimeError):
    """A peer that cannot do what it was asked to."""


class Process:
    """One system waiting for orders."""

    def __init__(self, system, work, threads, module=PEERS):
        command = [sys.executable, "-m", module, system, str(work), str(threads)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        root = Path(__file__).parents[1]
        self.process = subprocess.Popen(
            command,
            text=True,
            **pipes,
            stderr=subprocess.DEVNULL,
            env=environment(threads),
            cwd=root,
        )

    def ask(self, **order):
        """Send one order and return its answer; raises Failed if there is none, or an error."""
        try:
            print(json.dumps(order), file=self.process.stdin, flush=True)
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise Failed(f"the process ended ({self.process.wait()})")
        answer = json.loads(line)
        if "error" in answer:
            raise Failed(answer["error"])
        return answer

    def end(self):
        """End its orders and wait until it has ended."""
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class Processes(dict):
    """{system: its process}, started when it is first needed, all ended with the context."""

    def __init__(self, work, threads, module=PEERS):
        self.work, self.threads = work, threads
        self.module = module  # whose classes the systems are

    def __missing__(self, system):
        self[system] = Process(system, self.work, self.threads, self.module)
        return self[system]

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for process in self.values():
            process.end()
        self.clear()


def orders(peers, rounds, shift=0):
    """The peers in the order of each round.

    One round goes forwards, the next backwards, then both begin one place further on. So in every
    2 n rounds of n peers each peer has every place twice. shift: number of the set; a set continues
    where the previous one ended.
    """
    for r in range(rounds):
        k = (r // 2 + shift * -(-rounds // 2)) % len(peers)
        turned = [*peers[k:], *peers[:k]]
        yield turned[::-1] if r % 2 else turned


def checked(results):
    """Compare {peer: arrays} name by name with the first peer that has the name.

    Returns {peer: what is wrong} and the largest distance: difference over the largest entry.
    """
    reference, wrong = {}, {}
    largest = 0.0
    for peer, arrays in results.items():
        for name, x in arrays.items():
            first = reference.setdefault(name, x)
            if first.shape != x.shape:
                wrong[peer] = f"{name} is {list(x.shape)}, of another system {list(first.shape)}"
                continue
            far = _distance(x, first)
            largest = max(largest, far)
            if not far <= AGREE:  # NaN is not
                wrong[peer] = f"{name} differs by {far:.1e} of the largest entry; allowed {AGREE}"
    return wrong, largest


def _distance(x, reference):
    """Largest difference over the largest entry."""
    difference = np.abs(np.subtract(x, reference, dtype=float)).max()
    return float(difference / max(np.abs(reference).max(), 1e-30))


def prepared(case, processes):
    """Ask every peer once, which loads and warms, and compare the results.

    Returns {peer: why it is left out} and the largest distance.
    """
    lost, arrays = {}, {}
    path = processes.work / f"arrays-{os.getpid()}.npz"
    for peer in case.peers:
        try:
            processes[peer.split("/")[0]].ask(**order(case, peer), arrays=str(path))
            with np.load(path) as file:
                arrays[peer] = dict(file)
        except Failed as error:
            lost[peer] = str(error)
        finally:
            path.unlink(missing_ok=True)
    wrong, distance = checked(arrays)
    return lost | wrong, distance


def order(case, peer):
    """What a process has to do in a turn of this peer."""
    task = peer.split("/")[1]
    return {"task": task, "shape": case.shape, "batch": case.batch, "tokens": case.tokens}


def turn(case, peer, processes):
    """One turn: seconds, and [peak, private] bytes of the process.

    The seconds of a fresh process count from its start.
    """
    system = peer.split("/")[0]
    if not case.fresh:
        answer = processes[system].ask(**order(case, peer))
        return answer["seconds"], answer["memory"]
    start = time.perf_counter()
    process = Process(system, processes.work, processes.threads)
    try:
        answer = process.ask(**order(case, peer))
        return time.perf_counter() - start, answer["memory"]
    finally:
        process.end()


@contextlib.contextmanager
def spinning(wanted):
    """Another process that computes on one core all the while."""
    if not wanted:
        yield
        return
    process = subprocess.Popen(
        [sys.executable, "-c", SPIN, str(os.getpid())], stdout=subprocess.PIPE
    )
    try:
        process.stdout.readline()
        yield
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def measure(case, processes, rounds, shift=0, show=lambda line: None):
    """Measure one case in one set of processes.

    Returns a record: seconds and memory {peer: [rounds]}, lost {peer: why}, distance, busy cores.
    """
    show(f"{case.name}: loading")
    lost, distance = {}, None
    if case.compared:
        lost, distance = compared(case, processes)
    peers = [peer for peer in case.peers if peer not in lost]
    record = {"seconds": {peer: [] for peer in peers}, "memory": {peer: [] for peer in peers}}
    record |= {"lost": lost, "distance": distance, "busy": doctor.busy_cores(WATCHED)}
    with spinning(case.busy):
        turns = list(orders(peers, rounds, shift)) if peers else []
        for r, peers_in_turn in enumerate(turns):
            show(f"{case.name}: round {r + 1}/{rounds}")
            take_turns(case, peers_in_turn, processes, record)
    if not case.fresh:
        record["memory"] = {}
    return record


def compared(case, processes):
    """What `prepared` returns; in its own processes where every turn has a fresh one."""
    if not case.fresh:
        return prepared(case, processes)
    with Processes(processes.work, processes.threads) as own:
        return prepared(case, own)


def take_turns(case, peers, processes, record):
    """One round; a peer that fails is lost, and its measurements are dropped."""
    for peer in peers:
        if peer in record["lost"]:
            continue
        time.sleep(PAUSE)
        try:
            seconds, memory = turn(case, peer, processes)
        except Failed as error:
            record["lost"][peer] = str(error)
            del record["seconds"][peer], record["memory"][peer]
        else:
            record["seconds"][peer].append(seconds)
            record["memory"][peer].append(memory)
