"""Processes in turn: each system waits in a process of its own, and one at a time works.

A round asks every peer of a case once, in an order that changes from round to round, so that whatever the machine does
meanwhile falls on all of them. Before each turn the others' threads are given time to stop spinning. Several sets of
fresh processes: where in memory things happen to lie is a matter of luck that stays for the life of a process.
"""
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

PAUSE = 0.05  # seconds before each turn; OpenBLAS's threads spin for 0.03 after their last work
PINS = "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "MKL_CBWR", "MKL_ENABLE_INSTRUCTIONS", "OPENBLAS_VERBOSE"
THREADS = "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"
AGREE = 1e-3  # of an array's largest entry: what is timed is exact, in float32


def environment(threads):
    """The environment of a peer: nothing that pins kernels, so many threads, no network."""
    kept = {key: value for key, value in os.environ.items() if key not in PINS}
    return kept | dict.fromkeys(THREADS, str(threads)) | {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}


class Failed(RuntimeError):
    """A peer that cannot do what it was asked to."""


class Process:
    """One system waiting for orders."""

    def __init__(self, system, folder, threads):
        self.command = [sys.executable, "-m", "benchmarks.peers", system, str(folder), str(threads)]
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True, env=environment(threads),
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
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def orders(peers, rounds, shift=0):
    """The order of the peers in each round: every peer comes first, second, … equally often, forwards and backwards.

    Lists of peers, one for each round; `shift` is the number of the set, so that sets begin differently.
    """
    for r in range(rounds):
        k = (r + shift) % len(peers)
        turned = [*peers[k:], *peers[:k]]
        yield turned[::-1] if r % 2 else turned


def differences(arrays, reference):
    """{name: largest difference over the largest entry} for the names that both have; ValueError if there are none."""
    common = sorted(set(arrays) & set(reference))
    if not common:
        raise ValueError(f"nothing in common: {sorted(arrays)} and {sorted(reference)}")
    return {name: float(np.abs(arrays[name] - reference[name]).max() / max(np.abs(reference[name]).max(), 1e-30))
            for name in common}


def checked(case, found):
    """Compare {peer: arrays} with each other, name by name; -> {peer: why not}, and the largest difference."""
    reference, wrong, largest = {}, {}, 0.0
    for peer, arrays in found.items():
        for name in arrays:
            reference.setdefault(name, arrays[name])
        worst = max(differences(arrays, reference).values())
        largest = max(largest, worst)
        if not worst <= AGREE:
            wrong[peer] = f"{case.name}: {peer} differs by {worst:.1e} of the largest entry; allowed {AGREE}"
    return wrong, largest


def prepared(case, processes, work):
    """Ask everybody once, which loads and warms, and compare the results -> {peer: process}, {peer: error}, distance."""
    ready, lost, found = {}, {}, {}
    for peer in case.peers:
        system, task = peer.split("/")
        path = work / f"{system}-{task}.npz"
        try:
            processes[system].ask(task=task, **inputs(case), arrays=str(path))
            with np.load(path) as arrays:
                found[peer] = dict(arrays)
            path.unlink()
            ready[peer] = processes[system]
        except Failed as error:
            lost[peer] = str(error)
    wrong, largest = checked(case, found)
    return {peer: p for peer, p in ready.items() if peer not in wrong}, lost | wrong, largest


def inputs(case):
    """What an order says of a case."""
    return {"shape": case.shape, "batch": case.batch, "tokens": case.tokens}


def measure(case, processes, work, rounds, shift, show=lambda line: None):
    """{"seconds": {peer: [rounds]}, "lost": {peer: why}, "distance": …} of one case in one set of processes."""
    ready, lost, distance = prepared(case, processes, work)
    seconds = {peer: [] for peer in ready}
    for r, order in enumerate(orders(list(ready), rounds, shift)):
        show(f"{case.name}: round {r + 1}/{rounds}")
        for peer in order:
            time.sleep(PAUSE)
            seconds[peer].append(ready[peer].ask(task=peer.split("/")[1], **inputs(case))["seconds"])
    return {"seconds": seconds, "lost": lost, "distance": distance}
