"""minitx.circuits beside TransformerLens on the same weights: differences, and processor time.

    pip install torch transformers transformer_lens
    python -m benchmarks.circuits [FOLDER] [--dtype float64] [--rounds 5]

Both run in this process, in turn, each on one thread: logit attribution by head, detectors on
random tokens that are repeated, one head's output patched into the queries of every later head, and
attribution patching of all edges. FOLDER: a GPT-2; by default the bundled tiny-gpt2. Times are
medians. path_patch measures both directions and their nulls, four runs where the other has one.

Order: the two models, what is asked, each task for both, the table.
"""

import argparse
import os
import time
from collections import defaultdict
from typing import NamedTuple

import numpy as np

import minitx
from minitx import circuits, threads, weights
from minitx.circuits.repeated import RandomTexts

PAIRS, TOKENS, CHANGED = 4, 16, 7  # texts, their length, the place where clean and corrupt differ
RIGHT, WRONG = 11, 23  # ids of the two answers
SENDER = 0, 1  # layer and head
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
        """[L H]"""
        return circuits.logit_attribution(self.model, asked.clean[0], RIGHT, WRONG).heads

    def detectors(self, asked):
        """[3 L H]"""
        by_kind = self.texts.attention(self.model, repeated=True)
        return np.array([by_kind[kind] for kind in KINDS])

    def paths(self, asked):
        """[L H]: the answer with the path into each head's queries patched, 0 where none leads."""
        pairs = asked.clean, asked.corrupt, answer
        path = circuits.path_patch(self.model, *pairs, sender=SENDER, receiver="q")
        values = path.into_corrupt.mean(axis=0)
        values[: SENDER[0] + 1] = 0
        return values

    def edges(self, asked):
        """[E], in the answer's own units, sorted by name."""
        pairs = asked.clean, asked.corrupt, answer
        scored = circuits.attribute(self.model, *pairs, exact=False)
        both = [minitx.run(self.model, ids, "logits")["logits"] for ids in pairs[:2]]
        whole = (answer(both[0]) - answer(both[1])).mean()
        names = [tuple(tuple(node) for node in edge) for edge in scored.names]
        return sorted_by_name(dict(zip(names, scored.scores * whole)))


class TransformerLens:
    """The four tasks by TransformerLens, as its documentation has them."""

    def __init__(self, folder, dtype):
        import torch

        torch.set_num_threads(1)
        self.torch = torch
        self.dtype = getattr(torch, dtype)
        self.plain = self._bridge(folder, no_processing=True)
        self.plain.to_tokens = lambda ids, **_: ids  # they are ids already
        # b_V stays where it is, as in minitx; to fold the last norm is asked for by the tool
        self.folded = self._bridge(folder, fold_value_biases=False)

    def _bridge(self, folder, **how):
        from transformer_lens.model_bridge import TransformerBridge
        from transformer_lens.model_bridge.sources import _hf_format
        from transformers import GPT2LMHeadModel, PreTrainedTokenizerFast

        _hf_format.get_tokenizer_with_bos = lambda tokenizer: tokenizer  # else loaded from a hub
        file = weights.find("tiny-gpt2") / "tokenizer.json"
        tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(file))
        tokenizer.pad_token = tokenizer.eos_token = tokenizer.bos_token = tokenizer.decode([0])
        whole = GPT2LMHeadModel.from_pretrained(folder, attn_implementation="eager")
        options = {"hf_model": whole.to(self.dtype).eval(), "tokenizer": tokenizer}
        bridge = TransformerBridge.boot_transformers("gpt2", dtype=self.dtype, **options)
        bridge.enable_compatibility_mode(disable_warnings=True, **how)
        return bridge.eval()

    def attribution(self, asked):
        """[L H]"""
        from transformer_lens.tools.analysis import direct_logit_attribution

        ids = self.torch.tensor(asked.clean[:1])
        tokens = {"answer_tokens": RIGHT, "incorrect_tokens": WRONG}
        with self.torch.no_grad():
            parts = direct_logit_attribution(self.folded, ids, **tokens, unit="head", pos=-1)
        cfg = self.folded.cfg
        heads = parts.attribution[: cfg.n_layers * cfg.n_heads]
        return heads.reshape(cfg.n_layers, cfg.n_heads).numpy()

    def detectors(self, asked):
        """[3 L H]: its score is a share of all attention, here of the queries that are asked."""
        from transformer_lens.head_detector import detect_head

        total = 0.0
        for row in self.torch.tensor(asked.repeated):
            ids = row[None]
            with self.torch.no_grad():
                _, cache = self.plain.run_with_cache(ids, remove_batch_dim=True)
            scores = []
            for mask in masks(asked, self.dtype, self.torch):
                score = detect_head(self.plain, ids, mask, cache=cache)
                scores.append(score.numpy() * len(row) / mask.sum().item())
            total = total + np.array(scores)
        return total / len(asked.repeated)

    def paths(self, asked):
        """[L H]"""
        from transformer_lens import patching

        clean, corrupt = map(self.torch.tensor, asked[:2])
        with self.torch.no_grad():
            caches = [
                self.plain.run_with_cache(ids, names_filter=is_z)[1] for ids in (clean, corrupt)
            ]
            values = patching.get_act_patch_direct_path(
                self.plain, corrupt, *caches, lambda y: answer(y).mean(), *SENDER, verbose=False
            )
        return values.numpy()

    def edges(self, asked):
        """[E], sorted by name; those of each place are added up."""
        from transformer_lens.tools.analysis import attribution_patching as tool

        clean, corrupt = map(self.torch.tensor, asked[:2])
        config = tool.EdgeAttributionConfig(granularity="edge")
        scored = tool.attribution_patch(self.plain, clean, corrupt, lambda y: answer(y)[0], config)
        sums = defaultdict(float)
        for edge, score in scored.edge_scores.items():
            sums[tuple(named(node) for node in edge)] += float(score)
        return sorted_by_name(sums)


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


def measured(systems, asked, task, rounds):
    """The results of both, and their processor times, in turn."""
    results = [getattr(system, task)(asked) for system in systems]
    times = [[], []]
    for _ in range(rounds):
        for system, own in zip(systems, times):
            start = time.process_time()
            getattr(system, task)(asked)
            own.append(time.process_time() - start)
    return results, [np.median(own) for own in times]


def main(argv=None):
    """Print a row for each task."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", nargs="?", default=str(weights.find("tiny-gpt2")))
    parser.add_argument("--dtype", choices=("float64", "float32"), default="float64")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(argv)
    threads.limit(1)
    os.environ["HF_HUB_OFFLINE"] = "1"
    ours = Minitx(options.folder, options.dtype)
    systems = ours, TransformerLens(options.folder, options.dtype)
    asked = ours.asked()
    print(
        "| task | largest difference | largest value | minitx, ms | TransformerLens, ms | ratio |"
    )
    print("|---|---|---|---|---|---|")
    for task in ("attribution", "detectors", "paths", "edges"):
        (a, b), (own, other) = measured(systems, asked, task, options.rounds)
        distance = f"{abs(a - b).max():.1e} | {abs(b).max():.2f}"
        print(f"| {task} | {distance} | {own * 1e3:.1f} | {other * 1e3:.1f} | {other / own:.2f} |")


if __name__ == "__main__":
    main()
