"""How long gradients take beside PyTorch's: forward and backward, and one step of learning.

    python -m benchmarks.learning [--rounds N] [--out FILE.json] [--only CASE] [--threads N]

Each system works in a process of its own, one at a time, in turn within each round. Ratios are
taken within rounds: of processor time, which other programs on the machine change less, and of the
clock's, which says more of two threads on an idle machine. Cases: tiny-roberta, 32 texts of 256
tokens, a fifth of them to be told; the shape of roberta-base with random weights, 1 text of 128;
and one step of the recipe of weights/training/train.py for tiny-roberta, its batches at contexts
256 and 64. --threads: of each system. Needs torch and the reference library.

Order: the command, a worker, the two systems.
"""

import argparse
import contextlib
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from minitx.memory import all_freed_memory_kept

from . import machine, rounds

CASES = {
    "tiny-roberta": (32, 256),
    "roberta-base": (1, 128),
    "recipe": (32, 256),
    "recipe-64": (64, 64),
}
SYSTEMS = "minitx", "torch", "torch-bfloat16"  # the last in the recipes alone
TOLD = 0.2
ROBERTA_BASE = {"vocab_size": 50265, "max_position_embeddings": 514, "type_vocab_size": 1}


def main():
    """Measure, print a line for each case and system, write the numbers."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", choices=CASES)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--worker", nargs=2, metavar=("CASE", "SYSTEM"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        work(*given.worker)
        return
    record = {
        "machine": machine.described(given.threads)["line"],
        "commit": machine.commit(),
        "cases": {},
    }
    cases = [given.only] if given.only else [*CASES]
    for case in cases:
        record["cases"][case] = measured(case, given.rounds, given.threads)
        print(case, json.dumps(record["cases"][case]), flush=True)
    if given.out:
        given.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def measured(case, n, n_threads):
    """Medians of seconds, memory, loss, and of the ratios to torch within rounds."""
    names = [name for name in SYSTEMS if case.startswith("recipe") or name != "torch-bfloat16"]
    workers = {name: started(case, name, n_threads) for name in names}
    answers = {name: [] for name in names}
    for _ in range(n + 1):  # the first warms up
        for name, worker in workers.items():
            worker.stdin.write("go\n")
            worker.stdin.flush()
            answers[name].append(json.loads(worker.stdout.readline()))
    for worker in workers.values():
        worker.communicate()
    summary = {}
    for name, rows in answers.items():
        summary[name] = {key: float(np.median([r[key] for r in rows[1:]])) for key in rows[0]}
        for key in ("cpu", "wall"):
            ratios = [own[key] / of[key] for own, of in zip(rows[1:], answers["torch"][1:])]
            summary[name][f"{key}_ratio"] = float(np.median(ratios))
    return summary


def started(case, system, n_threads):
    """A worker's process, on this number of threads."""
    command = [sys.executable, "-m", "benchmarks.learning", "--worker", case, system]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    return subprocess.Popen(command, text=True, env=rounds.environment(n_threads), **pipes)


def work(case, system):
    """A line of JSON for each line that is read: seconds, loss, memory above that of the model."""
    once = of_minitx(case) if system == "minitx" else of_torch(case, system)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    is_learning = system == "minitx"  # as `train` and `tune` have it; torch's memory is its own
    with all_freed_memory_kept() if is_learning else contextlib.nullcontext():
        for _ in sys.stdin:
            wall, cpu = time.perf_counter(), time.process_time()
            loss = once()
            answer = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
            print(json.dumps(answer | {"loss": loss, "MB": peak / 1024}), flush=True)


def batch(case):
    """Random tokens, and targets of a fifth of them [B T]."""
    rng = np.random.default_rng(0)
    tokens = rng.integers(5, 1024, CASES[case])
    return tokens, np.where(rng.random(tokens.shape) < TOLD, tokens, -100)


def library(case):
    """The reference library's model."""
    import torch
    from transformers import RobertaConfig, RobertaForMaskedLM

    from minitx import weights

    torch.manual_seed(0)
    if case == "roberta-base":
        return RobertaForMaskedLM(RobertaConfig(**ROBERTA_BASE)).eval()
    return RobertaForMaskedLM.from_pretrained(weights.find("tiny-roberta"), dtype=torch.float32)


def of_minitx(case):
    """A function that takes all gradients of a batch, and in `recipe` a step -> loss."""
    import tempfile

    import minitx
    from minitx.parameters import owners
    from minitx.training.batches import Batch
    from minitx.training.loop import Loop
    from minitx.training.start import in_one_vector
    from minitx.weights.training.recipe import HOW

    given = Batch(*batch(case))
    if case == "roberta-base":
        with tempfile.TemporaryDirectory() as folder:
            library(case).save_pretrained(folder)
            model = minitx.load(folder)
            learned = [*dict.fromkeys(owners(model).values())]
            minitx.gradients(model, *given[:2], learned)  # reads the file
    else:
        model = minitx.load("tiny-roberta")
        learned = [*dict.fromkeys(owners(model).values())]
    if not case.startswith("recipe"):
        return lambda: minitx.gradients(model, *given[:2], learned).loss
    how = HOW._replace(steps=1 << 30, rate=1e-5, warm_up=0.0)
    loop = Loop(in_one_vector(model, {}, "float32"), Always(given), how)

    def once():
        loop.step()
        return loop.losses[-1]

    return once


class Always(NamedTuple):
    """What gives the same batch at every step."""

    given: tuple

    def batch(self, step, size, seed):
        """The Batch."""
        return self.given


def of_torch(case, system):
    """The same by automatic derivatives; `recipe`: a step of recipe_in_torch.py."""
    import torch

    tokens, targets = map(torch.from_numpy, batch(case))
    if case.startswith("recipe"):
        return of_recipe(system, tokens, targets)
    model = library(case).eval()

    def once():
        model.zero_grad()
        loss = model(input_ids=tokens, labels=targets).loss
        loss.backward()
        return loss.item()

    return once


def of_recipe(system, tokens, targets):
    """A step of recipe_in_torch.py, its products in float32 or bfloat16."""
    import torch
    from safetensors.torch import load_file

    from minitx import weights

    from .recipe_in_torch import Recipe

    stored = load_file(weights.find("tiny-roberta") / "model.safetensors")
    recipe = Recipe(stored, system.endswith("bfloat16"))
    places = torch.nonzero(targets.flatten() != -100)[:, 0]
    return lambda: recipe.step(tokens, places, targets.flatten()[places])


if __name__ == "__main__":
    main()
