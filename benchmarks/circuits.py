"""minitx.circuits beside TransformerLens on the same weights: differences, time, lines of code.

    pip install torch transformers transformer_lens
    python -m benchmarks.circuits [FOLDER] [--shape gpt2] [--dtype float64] [--rounds 5]

Both run in this process, in turn, each on one thread: logit attribution by head, detectors on
random tokens that are repeated, one head's output patched into the queries of every later head,
clean into corrupt, and attribution patching of all edges. FOLDER: a GPT-2; by default the bundled
tiny-gpt2. --shape: random weights of a shape of shapes.py, made where they are missing. Times are
medians. Lines are those of the methods that run, without their comments and the conversion of what
they return.

Order: what is asked, each task for both, the same form for both, lines, the table.
"""

import argparse
import ast
import inspect
import os
import textwrap
import time
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np

import minitx
from minitx import circuits, threads, weights
from minitx.circuits.repeated import RandomTexts

from . import shapes

PAIRS, TOKENS, CHANGED = 4, 16, 7  # texts, their length, the place where clean and corrupt differ
RIGHT, WRONG = 11, 23  # ids of the two answers
SENDER = 0, 1  # layer and head
TASKS = "attribution", "detectors", "paths", "edges"
WORK = Path(__file__).parents[1] / ".venv-bench/work"
KINDS = "previous", "duplicate", "induction"
NODES = {"attn_head_out": "head", "mlp_out": "mlp", "mlp_in": "mlp"}
NODES |= {f"{letter}_input": letter for letter in "qkv"}


class Asked(NamedTuple):
    """What both are asked about."""

    clean: np.ndarray  # [N T]
    corrupt: np.ndarray
    repeated: np.ndarray  # [B T]: random tokens, said twice
    n: int  # of them


def answer(logits):
    """The difference of the two answers' logits, for each text."""
    return logits[:, -1, RIGHT] - logits[:, -1, WRONG]


class Minitx:
    """The four tasks by minitx."""

    def __init__(self, folder, dtype):
        self.model = minitx.load(folder, dtype=dtype)
        self.texts = RandomTexts(self.model, 16, 24, np.random.default_rng(0))

    def asked(self):
        """Random texts that differ in one token, and texts that repeat."""
        rng = np.random.default_rng(0)
        ids = len(self.model.weights.W_E)
        clean = rng.integers(5, ids, (PAIRS, TOKENS))
        corrupt = clean.copy()
        corrupt[:, CHANGED] = rng.integers(5, ids, PAIRS)
        return Asked(clean, corrupt, self.texts.repeated, 24)

    def attribution(self, asked):
        """What each component adds to the answer."""
        return circuits.logit_attribution(self.model, asked.clean[0], RIGHT, WRONG)

    def detectors(self, asked):
        """Attention of each kind, without the nulls of detect_heads."""
        return self.texts.attention(self.model, repeated=True)

    def paths(self, asked):
        """The answer with the path into each head's queries patched."""
        how = {"sender": SENDER, "receiver": "q", "into": "corrupt", "null": False}
        return circuits.path_patch(self.model, asked.clean, asked.corrupt, answer, **how)

    def edges(self, asked):
        """Estimated effects of all edges."""
        return circuits.attribute(self.model, asked.clean, asked.corrupt, answer, exact=False)


class TransformerLens:
    """The four tasks by TransformerLens, as its documentation has them."""

    def __init__(self, folder, dtype, asked):
        import torch

        torch.set_num_threads(1)
        self.torch = torch
        self.dtype = getattr(torch, dtype)
        self.plain = bridge(folder, self.dtype, no_processing=True)
        # b_V stays where it is, as in minitx; to fold the last norm is asked for by the tool
        self.folded = bridge(folder, self.dtype, fold_value_biases=False)
        self.masks = [*masks(asked, self.dtype, torch)]

    def attribution(self, asked):
        """What each component adds to the answer."""
        from transformer_lens.tools.analysis import direct_logit_attribution

        ids = self.torch.tensor(asked.clean[:1])
        tokens = {"answer_tokens": RIGHT, "incorrect_tokens": WRONG}
        with self.torch.no_grad():
            return direct_logit_attribution(self.folded, ids, **tokens, unit="head", pos=-1)

    def detectors(self, asked):
        """Its scores of each text, by kind."""
        from transformer_lens.head_detector import detect_head

        scores = []
        for row in self.torch.tensor(asked.repeated):
            with self.torch.no_grad():
                _, cache = self.plain.run_with_cache(row[None], remove_batch_dim=True)
            for mask in self.masks:
                scores.append(detect_head(self.plain, row[None], mask, cache=cache))
        return scores

    def paths(self, asked):
        """The answer with the path into each head's queries patched."""
        from transformer_lens import patching

        caches = []
        with self.torch.no_grad():
            sides = [self.torch.tensor(ids) for ids in (asked.clean, asked.corrupt)]
            for ids in sides:
                caches.append(self.plain.run_with_cache(ids, names_filter=is_z)[1])
            return patching.get_act_patch_direct_path(
                self.plain, sides[1], *caches, lambda y: answer(y).mean(), *SENDER, verbose=False
            )

    def edges(self, asked):
        """Estimated effects of all edges, place by place."""
        from transformer_lens.tools.analysis import attribution_patching as tool

        sides = [self.torch.tensor(ids) for ids in (asked.clean, asked.corrupt)]
        config = tool.EdgeAttributionConfig(granularity="edge")
        return tool.attribution_patch(self.plain, *sides, lambda y: answer(y)[0], config)


class OfMinitx:
    """What minitx returns, as arrays."""

    def __init__(self, system):
        self.model = system.model

    def attribution(self, table, asked):
        """[L H]"""
        return table.heads

    def detectors(self, by_kind, asked):
        """[3 L H]"""
        return np.array([by_kind[kind] for kind in KINDS])

    def paths(self, effects, asked):
        """[L H], 0 where no path leads."""
        values = effects.into_corrupt.mean(axis=0)
        values[: SENDER[0] + 1] = 0
        return values

    def edges(self, scored, asked):
        """[E], in the answer's own units, sorted by name."""
        both = [minitx.run(self.model, ids, "logits")["logits"] for ids in asked[:2]]
        whole = (answer(both[0]) - answer(both[1])).mean()
        names = [tuple(tuple(node) for node in edge) for edge in scored.names]
        return sorted_by_name(dict(zip(names, scored.scores * whole)))


class OfTransformerLens:
    """What TransformerLens returns, as arrays."""

    def __init__(self, system):
        self.cfg, self.masks = system.folded.cfg, system.masks

    def attribution(self, parts, asked):
        """[L H]"""
        heads = parts.attribution[: self.cfg.n_layers * self.cfg.n_heads]
        return heads.reshape(self.cfg.n_layers, self.cfg.n_heads).numpy()

    def detectors(self, scores, asked):
        """[3 L H]: its score is a share of all attention, here of the queries that are asked."""
        n = len(KINDS)
        T = asked.repeated.shape[1]
        by_kind = []
        for i, mask in enumerate(self.masks):
            mean = sum(score.numpy() for score in scores[i::n]) / len(asked.repeated)
            by_kind.append(mean * T / mask.sum().item())
        return np.array(by_kind)

    def paths(self, values, asked):
        """[L H]"""
        return values.numpy()

    def edges(self, scored, asked):
        """[E], sorted by name; those of each place are added up."""
        sums = defaultdict(float)
        for edge, score in scored.edge_scores.items():
            sums[tuple(named(node) for node in edge)] += float(score)
        return sorted_by_name(sums)


def bridge(folder, dtype, **how):
    """A GPT-2 of a folder in TransformerLens, which is given ids."""
    from transformer_lens.model_bridge import TransformerBridge
    from transformer_lens.model_bridge.sources import _hf_format
    from transformers import GPT2LMHeadModel

    _hf_format.get_tokenizer_with_bos = lambda tokenizer: tokenizer  # else loaded from a hub
    whole = GPT2LMHeadModel.from_pretrained(folder, attn_implementation="eager")
    options = {"hf_model": whole.to(dtype).eval(), "tokenizer": tokenizer()}
    system = TransformerBridge.boot_transformers("gpt2", dtype=dtype, **options)
    system.enable_compatibility_mode(disable_warnings=True, **how)
    system.to_tokens = lambda ids, **_: ids  # they are ids already
    return system.eval()


def tokenizer():
    """One that both kits ask for, where ids alone are given."""
    from transformers import PreTrainedTokenizerFast

    file = weights.find("tiny-gpt2") / "tokenizer.json"
    given = PreTrainedTokenizerFast(tokenizer_file=str(file))
    given.pad_token = given.eos_token = given.bos_token = given.decode([0])
    return given


def is_z(name):
    """Whether a point of TransformerLens is the heads' output."""
    return name.endswith("hook_z")


def named(node):
    """A node of TransformerLens as minitx names it."""
    name = NODES.get(node.kind, node.kind)
    return name, None if name == "logits" else node.layer, node.head


def sorted_by_name(scores):
    """Scores {name: score} in the order of their names."""
    return np.array([scores[name] for name in sorted(scores, key=str)])


def masks(asked, dtype, torch):
    """For each of KINDS the keys that a head of the kind looks at: [T T] of 0 and 1."""
    T = asked.repeated.shape[1]
    place = np.arange(T)
    second = place >= asked.n
    for back, is_asked in ((1, place > 0), (asked.n, second), (asked.n - 1, second)):
        mask = np.zeros((T, T))
        mask[place[is_asked], place[is_asked] - back] = 1
        yield torch.tensor(mask, dtype=dtype)


def lines_of(function):
    """How many lines of code a function has, without its name, description and blank lines."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    body = tree.body[0].body
    if ast.get_docstring(tree.body[0]) is not None:
        body = body[1:]
    return sum(len(ast.unparse(x).splitlines()) for x in body)


def measured(systems, asked, task, rounds):
    """What both return, and their processor times, in turn."""
    results = [getattr(system, task)(asked) for system in systems]
    times = [[], []]
    for _ in range(rounds):
        for system, own in zip(systems, times):
            start = time.process_time()
            getattr(system, task)(asked)
            own.append(time.process_time() - start)
    return results, [np.median(own) for own in times]


def row(systems, readers, asked, task, rounds):
    """A row of the table."""
    results, (own, other) = measured(systems, asked, task, rounds)
    a, b = (getattr(reader, task)(x, asked) for reader, x in zip(readers, results))
    distance = f"{abs(a - b).max():.1e} | {abs(b).max():.2f}"
    times = f"{own * 1e3:.1f} | {other * 1e3:.1f} | {other / own:.2f}"
    lines = " | ".join(str(lines_of(getattr(system, task))) for system in systems)
    return f"| {task} | {distance} | {times} | {lines} |"


def main(argv=None):
    """Print a row for each task."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", nargs="?", default=str(weights.find("tiny-gpt2")))
    parser.add_argument("--shape", choices=shapes.SHAPES, help="random weights in their place")
    parser.add_argument("--work", type=Path, default=WORK, help="where random weights are kept")
    parser.add_argument("--dtype", choices=("float64", "float32"), default="float64")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS)
    options = parser.parse_args(argv)
    threads.limit(1)
    os.environ["HF_HUB_OFFLINE"] = "1"
    folder = options.folder
    if options.shape:
        folder = str(shapes.make(options.work, options.shape))
    ours = Minitx(folder, options.dtype)
    asked = ours.asked()
    systems = ours, TransformerLens(folder, options.dtype, asked)
    readers = OfMinitx(systems[0]), OfTransformerLens(systems[1])
    columns = "largest difference", "largest value", "minitx, ms", "TransformerLens, ms", "ratio"
    print(f"| task | {' | '.join(columns)} | lines | lines, TransformerLens |")
    print("|---" * 8 + "|")
    for task in options.tasks:
        print(row(systems, readers, asked, task, options.rounds), flush=True)


if __name__ == "__main__":
    main()
