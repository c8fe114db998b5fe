"""Things that are done every week, by minitx, TransformerLens and nnsight on equal weights.

    python -m benchmarks.weekly [--models tiny-gpt2 gpt2] [--rounds 5] [--tasks sweep ...]

Each system has a process of its own with one thread; they work in turn. For each task: lines of
code, the largest difference of what both return, processor time (the median of rounds), and the
most memory that the process held meanwhile, libraries and model included. Lines are those of the
methods below without imports, in the form of `ast.unparse`, so that a statement is a line whatever
its length. Texts are random ids, 32 in each. gpt2: random weights of that shape. nnsight is left
out where it is not installed, and has no task that would be arithmetic of one's own.

Order: what is asked, each task for all, what of it is compared, the table.
"""

import argparse
import ast
import inspect
import os
import statistics
import sys
import tempfile
import textwrap
import time
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

import minitx
from minitx import circuits, weights
from minitx.analysis.machine import progress
from minitx.analysis.machine.files import write
from minitx.analysis.measures import losses
from minitx.circuits.repeated import RandomTexts
from minitx.machine import threads

from . import lens, machine, peers, rounds, shapes

ROOT = Path(__file__).parents[1]
MODELS = "tiny-stories", "tiny-gpt2", "gpt2"
TOKENS, TEXTS, PAIRS, NEW, BEST = 32, 20, 4, 20, 10  # tokens of a text; texts; …
LAYER, HEAD, PLACE, NEURON = 2, 1, 7, 17
RIGHT, WRONG = 11, 23  # ids of the two answers
SENDER = 0, 1  # layer and head
TWICE, HALF = 16, 24  # texts that are said twice, and the tokens of one half
KINDS = "previous", "duplicate", "induction"
TASKS = {  # name: what the table calls it
    "cached_run": "a pass that keeps everything",
    "activation": "one activation",
    "ablate": "a head set to 0",
    "patch": "a residual stream patched at one place",
    "sweep": "every head patched, one at a time",
    "lens": "logit lens of all layers",
    "attribution": "direct logit attribution by head",
    "steer": "a steering vector, and 20 tokens with it",
    "generate": "20 tokens",
    "patterns": "attention of all layers",
    "head_out": "what each head writes, all layers",
    "composition": "query composition of all pairs of heads",
    "gradient": "gradient of the loss by a residual stream",
    "edges": "attribution patching of all edges, 4 pairs",
    "probe": "a linear probe on 20 labelled texts",
    "examples": "the 10 texts of 20 where a neuron is largest",
    "collect": "residual streams of 20 texts on disk",
    "statistics": "mean and deviation of each neuron",
    "custom": "an edit of one's own in every layer",
    "loss": "loss of each token",
    "detectors": "scores of three kinds of heads, 16 texts said twice",
    "paths": "a head patched into the queries of each later head, 4 pairs",
}


def asked(ids):
    """Random ids of a vocabulary: a text, another, pairs that differ in one token, texts."""
    rng = np.random.default_rng(0)
    clean = rng.integers(5, ids, (PAIRS, TOKENS // 2))
    corrupt = clean.copy()
    corrupt[:, PLACE] = rng.integers(5, ids, PAIRS)
    text, other, *texts = rng.integers(5, ids, (TEXTS + 2, TOKENS))
    labels = [i % 2 for i in range(TEXTS)]
    given = {"clean": clean, "corrupt": corrupt, "text": text, "other": other, "labels": labels}
    twice = np.tile(rng.integers(5, ids, (TWICE, HALF)), 2)
    return SimpleNamespace(**given, texts=np.array(texts), twice=twice)


def answer(logits):
    """The difference of the two answers' logits, for each text."""
    return logits[:, -1, RIGHT] - logits[:, -1, WRONG]


class Minitx:
    """The tasks by minitx."""

    def __init__(self, folder, n_threads):
        threads.limit(n_threads)
        self.model = minitx.load(folder)
        self.asked = asked(len(self.model.weights.W_E))
        self.heads = RandomTexts(self.model, 1, HALF, np.random.default_rng(0))
        self.heads.repeated, self.heads.first = self.asked.twice, 0

    def cached_run(self, of):
        return minitx.run(self.model, of.text)

    def activation(self, of):
        return minitx.run(self.model, of.text, ("resid_post", LAYER))

    def ablate(self, of):
        def off(z):
            z[:, HEAD] = 0
            return z

        return minitx.run(self.model, of.text, "logits", {("z", LAYER): off})["logits"]

    def patch(self, of):
        source = minitx.run(self.model, of.other, ("resid_post", LAYER))["resid_post", LAYER]

        def patched(x):
            x[:, PLACE] = source[:, PLACE]
            return x

        return minitx.run(self.model, of.text, "logits", {("resid_post", LAYER): patched})["logits"]

    def sweep(self, of):
        return minitx.sweep(self.model, of.text, of.other, lambda y: answer(y)[0], "z")

    def lens(self, of):
        return minitx.logits(
            self.model,
            minitx.final_norm(
                self.model, minitx.run(self.model, of.text, "resid_post").stack("resid_post")
            ),
        )

    def attribution(self, of):
        return circuits.logit_attribution(self.model, of.text, RIGHT, WRONG)

    def steer(self, of):
        v = minitx.steering_vector(self.model, of.texts[:6], of.texts[6:12], LAYER)
        return minitx.generate(self.model, of.text, NEW, edits=minitx.steer(v, 4.0))

    def generate(self, of):
        return minitx.generate(self.model, of.text, NEW)

    def patterns(self, of):
        return minitx.run(self.model, of.text, "pattern").stack("pattern")

    def head_out(self, of):
        return minitx.run(self.model, of.text, "head_out").stack("head_out")

    def composition(self, of):
        return circuits.composition(self.model, "q", n_draws=1)["q"]

    def gradient(self, of):
        return minitx.gradients(self.model, of.text[:-1], of.text[1:], ("resid_pre", LAYER))

    def edges(self, of):
        return circuits.attribute(self.model, of.clean, of.corrupt, answer, exact=False)

    def probe(self, of):
        return minitx.fit_probe(self.model, of.texts, of.labels, ("resid_post", LAYER)).accuracy

    def examples(self, of):
        return minitx.top_examples(self.model, of.texts, ("post", LAYER), NEURON, BEST)

    def collect(self, of):
        return minitx.collect(self.model, of.texts, "resid_post", of.folder)

    def statistics(self, of):
        rows = [minitx.run(self.model, x, ("post", LAYER))["post", LAYER][0] for x in of.texts]
        return np.mean(rows, (0, 1)), np.std(rows, (0, 1))

    def custom(self, of):
        return minitx.run(self.model, of.text, "logits", {"mlp_out": lambda x: 0.5 * x})["logits"]

    def loss(self, of):
        return losses.causal(self.model, of.text)

    def detectors(self, of):
        return self.heads.attention(self.model, repeated=True)

    def paths(self, of):
        how = {"sender": SENDER, "receiver": "q", "into": "corrupt", "null": False}
        return circuits.path_patch(self.model, of.clean, of.corrupt, answer, **how)

    def seen(self, task, raw):
        """What is compared."""
        if task == "cached_run":
            return np.stack([x.sum() for x in (raw["resid_post", -1], raw["logits"])])
        if task == "activation":
            return raw["resid_post", LAYER]
        if task == "attribution":
            return raw.heads
        if task == "edges":
            return self.edges_seen(raw)
        if task == "detectors":
            return np.array([raw[kind] for kind in KINDS])
        if task == "paths":
            values = raw.into_corrupt.mean(axis=0)
            values[: SENDER[0] + 1] = 0  # no path leads there
            return values
        if task == "gradient":
            return raw["resid_pre", LAYER]
        if task == "examples":
            return raw.values
        if task == "collect":
            return raw["resid_post", LAYER]
        return np.nan_to_num(np.asarray(raw))

    def edges_seen(self, scored):  # -> [E]
        """Scores in the answer's own units, sorted by name."""
        sides = self.asked.clean, self.asked.corrupt
        both = [minitx.run(self.model, ids, "logits")["logits"] for ids in sides]
        whole = (answer(both[0]) - answer(both[1])).mean()
        names = [tuple(tuple(node) for node in edge) for edge in scored.names]
        return lens.sorted_by_name(dict(zip(names, scored.scores * whole)))


class TransformerLens:
    """The tasks by TransformerLens, as its documentation has them."""

    def __init__(self, folder, n_threads):
        import torch
        from transformer_lens import patching
        from transformer_lens.head_detector import detect_head
        from transformer_lens.tools import analysis

        torch.set_num_threads(n_threads)
        self.torch, self.patching, self.tools, self.detect = torch, patching, analysis, detect_head
        self.folder, self._folded = folder, None
        self.bridge = lens.bridge(folder, torch.float32, no_processing=True)
        self.run = self.bridge.run_with_cache
        self.asked = in_torch(asked(self.bridge.cfg.d_vocab), torch)
        self.masks = [torch.tensor(mask, dtype=torch.float32) for mask in masks()]

    @property
    def folded(self):
        """The same with its norms folded into the weights, as two of its tools ask for."""
        if self._folded is None:
            self._folded = lens.bridge(self.folder, self.torch.float32, fold_value_biases=False)
        return self._folded

    def cached_run(self, of):
        return self.run(of.text)

    def activation(self, of):
        name = f"blocks.{LAYER}.hook_resid_post"
        return self.run(of.text, names_filter=name)[1][name]

    def ablate(self, of):
        def off(z, hook):
            z[:, :, HEAD] = 0
            return z

        return self.bridge.run_with_hooks(of.text, fwd_hooks=[(f"blocks.{LAYER}.attn.hook_z", off)])

    def patch(self, of):
        name = f"blocks.{LAYER}.hook_resid_post"
        source = self.run(of.other, names_filter=name)[1][name]

        def patched(x, hook):
            x[:, PLACE] = source[:, PLACE]
            return x

        return self.bridge.run_with_hooks(of.text, fwd_hooks=[(name, patched)])

    def sweep(self, of):
        cache = self.run(of.other)[1]
        return self.patching.get_act_patch_attn_head_out_all_pos(
            self.bridge, of.text, cache, lambda y: answer(y)[0]
        )

    def lens(self, of):
        return self.tools.logit_lens(self.bridge, of.text, positions=None).values[1:]

    def attribution(self, of):
        return self.tools.direct_logit_attribution(
            self.folded, of.text, answer_tokens=RIGHT, incorrect_tokens=WRONG, unit="head", pos=-1
        )

    def steer(self, of):
        name = f"blocks.{LAYER}.hook_resid_pre"
        last = [self.run(x[None], names_filter=name)[1][name][0, -1] for x in of.texts[:12]]
        v = self.torch.stack(last[:6]).mean(0) - self.torch.stack(last[6:]).mean(0)
        with self.bridge.hooks(fwd_hooks=[(name, lambda x, hook: x + 4.0 * v)]):
            return self.bridge.generate(
                of.text, NEW, do_sample=False, stop_at_eos=False, verbose=False
            )

    def generate(self, of):
        return self.bridge.generate(of.text, NEW, do_sample=False, stop_at_eos=False, verbose=False)

    def patterns(self, of):
        cache = self.run(of.text, names_filter=lambda name: name.endswith("hook_pattern"))[1]
        return self.torch.stack([*cache.values()])

    def head_out(self, of):
        cache = self.run(of.text)[1]
        return cache.stack_head_results()

    def composition(self, of):
        return self.folded.all_composition_scores("Q").scores

    def gradient(self, of):
        slopes = {}
        hooks = [(f"blocks.{LAYER}.hook_resid_pre", lambda x, hook: slopes.update(own=x.clone()))]
        with self.bridge.hooks(bwd_hooks=hooks):
            self.bridge(of.text, return_type="loss").backward()
        return slopes["own"]

    def edges(self, of):
        config = self.tools.EdgeAttributionConfig(granularity="edge")
        return self.tools.attribution_patch(
            self.bridge, of.clean, of.corrupt, lambda y: answer(y)[0], config
        )

    def probe(self, of):
        from sklearn.linear_model import LogisticRegression
        from sklearn.model_selection import cross_val_score

        name = f"blocks.{LAYER}.hook_resid_post"
        rows = [self.run(x[None], names_filter=name)[1][name][0, -1] for x in of.texts]
        model = LogisticRegression(max_iter=1000)
        return cross_val_score(model, self.torch.stack(rows), of.labels).mean()

    def examples(self, of):
        name = f"blocks.{LAYER}.mlp.hook_post"
        largest = [
            self.run(x[None], names_filter=name)[1][name][0, :, NEURON].max() for x in of.texts
        ]
        return self.torch.stack(largest).topk(BEST)

    def collect(self, of):
        names = [f"blocks.{i}.hook_resid_post" for i in range(self.bridge.cfg.n_layers)]
        caches = [self.run(x[None], names_filter=names)[1] for x in of.texts]
        for name in names:
            np.save(of.folder / f"{name}.npy", self.torch.cat([c[name][0] for c in caches]))

    def statistics(self, of):
        name = f"blocks.{LAYER}.mlp.hook_post"
        rows = [self.run(x[None], names_filter=name)[1][name][0] for x in of.texts]
        x = self.torch.cat(rows)
        return x.mean(0), x.std(0, correction=0)

    def custom(self, of):
        hooks = [(lambda name: name.endswith("hook_mlp_out"), lambda x, hook: 0.5 * x)]
        return self.bridge.run_with_hooks(of.text, fwd_hooks=hooks)

    def loss(self, of):
        return self.bridge(of.text, return_type="loss", loss_per_token=True)

    def detectors(self, of):
        scores = []
        for row in of.twice[:, None]:
            cache = self.run(row, remove_batch_dim=True)[1]
            scores.append([self.detect(self.bridge, row, mask, cache=cache) for mask in self.masks])
        return scores

    def paths(self, of):
        z = [self.run(x, names_filter=lens.is_z)[1] for x in (of.clean, of.corrupt)]
        return self.patching.get_act_patch_direct_path(
            self.bridge, of.corrupt, *z, lambda y: answer(y).mean(), *SENDER, verbose=False
        )

    def seen(self, task, raw):
        """What is compared."""
        cfg = self.bridge.cfg
        if task == "cached_run":
            last = raw[1][f"blocks.{cfg.n_layers - 1}.hook_resid_post"]
            return np.array([float(x.sum()) for x in (last, raw[0])])
        if task == "attribution":
            return raw.attribution[: cfg.n_layers * cfg.n_heads].reshape(-1, cfg.n_heads).numpy()
        if task == "edges":
            return lens.sorted_by_name(lens.edges(raw))
        if task == "detectors":  # a share of all attention, here of the queries that are asked
            means = [self.torch.stack(scores).mean(0).numpy() for scores in zip(*raw)]
            return np.stack(
                [x * len(mask) / mask.sum().item() for x, mask in zip(means, self.masks)]
            )
        if task == "gradient":
            return raw[:, :-1].numpy()
        if task == "generate":  # and what its whole passes give
            how = {"do_sample": False, "stop_at_eos": False, "verbose": False}
            again = self.bridge.generate(self.asked.text, NEW, use_past_kv_cache=False, **how)
            return self.torch.cat([raw, again]).numpy()
        if task == "head_out":
            return raw.reshape(cfg.n_layers, cfg.n_heads, TOKENS, -1).numpy()
        if task == "examples":
            return raw.values.numpy()
        if task == "collect":
            return np.load(self.asked.folder / f"blocks.{LAYER}.hook_resid_post.npy")
        if task == "statistics":
            return np.stack(raw)
        return np.asarray(raw)


class Nnsight:
    """The tasks by nnsight, but for those that would be arithmetic of one's own."""

    def __init__(self, folder, n_threads):
        import nnsight
        import torch
        from nnsight import TransformersModel
        from sklearn.linear_model import LogisticRegression
        from sklearn.model_selection import cross_val_score
        from transformers import GPT2LMHeadModel

        torch.set_num_threads(n_threads)
        self.torch, self.save = torch, nnsight.save
        self.score, self.probing = cross_val_score, LogisticRegression(max_iter=1000)
        whole = GPT2LMHeadModel.from_pretrained(folder, attn_implementation="eager")
        self.model = TransformersModel(whole.float().eval(), tokenizer=lens.tokenizer())
        self.layers, self.head = self.model.transformer.h, self.model.lm_head
        cfg = whole.config
        d = cfg.n_embd // cfg.n_head
        self.heads = [slice(i * d, (i + 1) * d) for i in range(cfg.n_head)]  # columns of z
        self.asked = in_torch(asked(cfg.vocab_size), torch)

    def cached_run(self, of):
        with self.model.trace(of.text) as tracer:
            cache = tracer.cache()
        return cache

    def activation(self, of):
        with self.model.trace(of.text):
            x = self.layers[LAYER].output.save()
        return x

    def ablate(self, of):
        with self.model.trace(of.text):
            self.layers[LAYER].attn.c_proj.input[..., self.heads[HEAD]] = 0
            logits = self.head.output.save()
        return logits

    def patch(self, of):
        with self.model.trace(of.other):
            source = self.layers[LAYER].output[:, PLACE].save()
        with self.model.trace(of.text):
            self.layers[LAYER].output[:, PLACE] = source
            logits = self.head.output.save()
        return logits

    def sweep(self, of):
        with self.model.trace(of.other):
            z = self.save([layer.attn.c_proj.input for layer in self.layers])
        values = []
        for layer, new in zip(self.layers, z):
            for own in self.heads:
                with self.model.trace(of.text):
                    layer.attn.c_proj.input[..., own] = new[..., own]
                    value = answer(self.head.output).save()
                values.append(value)
        return values

    def lens(self, of):
        norm = self.model.transformer.ln_f
        with self.model.trace(of.text):
            rows = self.save([self.head(norm(layer.output)) for layer in self.layers])
        return rows

    def steer(self, of):
        last, before = [], self.layers[LAYER - 1]
        for x in of.texts[:12]:
            with self.model.trace(x[None]):
                row = before.output[0, -1].save()
            last.append(row)
        v = self.torch.stack(last[:6]).mean(0) - self.torch.stack(last[6:]).mean(0)
        with self.model.generate(of.text, max_new_tokens=NEW, do_sample=False) as tracer:
            for _ in tracer.iter[:NEW]:
                before.output[:] += 4.0 * v
            ids = tracer.result.save()
        return ids

    def generate(self, of):
        with self.model.generate(of.text, max_new_tokens=NEW, do_sample=False) as tracer:
            ids = tracer.result.save()
        return ids

    def patterns(self, of):
        with self.model.trace(of.text):
            patterns = self.save([layer.attn.output[1] for layer in self.layers])
        return patterns

    def gradient(self, of):
        with self.model.trace(of.text, labels=of.text):
            x = self.layers[LAYER - 1].output
            with self.model.output.loss.backward():
                slope = x.grad.save()
        return slope

    def probe(self, of):
        rows = []
        for x in of.texts:
            with self.model.trace(x[None]):
                row = self.layers[LAYER].output[0, -1].save()
            rows.append(row)
        return self.score(self.probing, self.torch.stack(rows), of.labels).mean()

    def examples(self, of):
        largest = []
        for x in of.texts:
            with self.model.trace(x[None]):
                value = self.layers[LAYER].mlp.act.output[0, :, NEURON].max().save()
            largest.append(value)
        return self.torch.stack(largest).topk(BEST)

    def collect(self, of):
        texts = []
        for x in of.texts:
            with self.model.trace(x[None]):
                rows = self.save([layer.output[0] for layer in self.layers])
            texts.append(rows)
        for i, rows in enumerate(zip(*texts)):
            np.save(of.folder / f"{i}.npy", self.torch.cat(rows))

    def statistics(self, of):
        rows = []
        for x in of.texts:
            with self.model.trace(x[None]):
                values = self.layers[LAYER].mlp.act.output[0].save()
            rows.append(values)
        x = self.torch.cat(rows)
        return x.mean(0), x.std(0, correction=0)

    def custom(self, of):
        with self.model.trace(of.text):
            for layer in self.layers:
                layer.mlp.output[:] *= 0.5
            logits = self.head.output.save()
        return logits

    def loss(self, of):
        with self.model.trace(of.text):
            y = self.head.output[0, :-1].save()
        return self.torch.nn.functional.cross_entropy(y, of.text[0, 1:], reduction="none")

    def seen(self, task, raw):
        """What is compared."""
        n, n_heads = len(self.layers), len(self.heads)
        if task == "cached_run":
            last = raw[f"model.transformer.h.{n - 1}"].output, raw["model.lm_head"].output
            return np.array([float(x.sum()) for x in last])
        if task == "sweep":
            return self.torch.stack(raw).reshape(n, n_heads).numpy()
        if task in ("lens", "patterns", "statistics"):
            return self.torch.stack([*raw]).numpy()
        if task == "gradient":
            return raw[:, :-1].numpy()
        if task == "generate":
            return raw.numpy()
        if task == "examples":
            return raw.values.numpy()
        if task == "collect":
            return np.load(self.asked.folder / f"{LAYER}.npy")
        return np.asarray(raw)


def in_torch(of, torch):
    """What is asked, with texts as torch has them."""
    for name in ("clean", "corrupt", "texts", "twice"):
        setattr(of, name, torch.tensor(getattr(of, name)))
    for name in ("text", "other"):
        setattr(of, name, torch.tensor(getattr(of, name))[None])
    return of


def lines_of(function):
    """How many lines of code a function has, without its name, description and blank lines."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    body = tree.body[0].body
    if ast.get_docstring(tree.body[0]) is not None:
        body = body[1:]
    return sum(len(ast.unparse(x).splitlines()) for x in body)


def masks():
    """For each of KINDS the keys that a head of the kind looks at: [T T] of 0 and 1."""
    query = np.arange(2 * HALF)
    for back, first in ((1, 1), (HALF, HALF), (HALF - 1, HALF)):
        mask = np.zeros((2 * HALF, 2 * HALF))
        mask[query[first:], query[first:] - back] = 1
        yield mask


SLOPES = "gradient", "edges"  # tasks for which torch keeps what gradients need
SYSTEMS = {"minitx": Minitx, "transformer-lens": TransformerLens, "nnsight": Nnsight}
OPTIONAL = "nnsight"  # left out where it is not installed


def carried_out(system, order):
    """Carry out an order once: processor seconds, and the most memory held meanwhile."""
    task = getattr(system, order["task"])
    if not isinstance(system, Minitx):
        system.torch.set_grad_enabled(order["task"] in SLOPES)
    with tempfile.TemporaryDirectory() as folder:
        system.asked.folder = Path(folder) / "new"
        system.asked.folder.mkdir()
        Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from here
        start = time.process_time()
        raw = task(system.asked)
        seconds = time.process_time() - start
        memory = peers.memory()
        if order.get("arrays"):
            np.savez(order["arrays"], seen=np.squeeze(system.seen(order["task"], raw)))
    return {"seconds": seconds, "memory": memory}


# --- the table


class Row(NamedTuple):
    """One task on one model: {system: what was measured}, minitx's first."""

    task: str
    lines: dict[str, int]
    differences: dict[str, str]  # of what minitx returns from what another does, the largest
    seconds: dict[str, float]  # medians
    megabytes: dict[str, float]

    def cells(self, systems):
        """As the table has it; a system that does not do the task has a dash."""
        own = self.seconds["minitx"]
        times = {name: f"{x * 1e3:.3g} ({x / own:.2g})" for name, x in self.seconds.items()}
        times["minitx"] = f"{own * 1e3:.3g}"
        memory = {name: f"{x:.0f}" for name, x in self.megabytes.items()}
        parts = self.lines, times, memory, self.differences | {"minitx": None}
        rows = [[str(part.get(name, "-")) for name in systems] for part in parts]
        rows[-1] = rows[-1][1:]
        return f"| {' | '.join([TASKS[self.task], *map(' · '.join, rows)])} |"

    def is_behind(self, part):
        """Whether another system has less."""
        values = getattr(self, part)
        return values["minitx"] > min(values.values())


def measured(task, model, processes, n_rounds, systems):
    """One row: all are asked once, which loads and warms, then in turn."""
    able = [name for name in systems if hasattr(SYSTEMS[name], task)]
    order = {"task": task, "shape": model}
    values, seconds, peaks = {}, {}, {}
    with tempfile.TemporaryDirectory() as folder:
        for name in able:
            path = f"{folder}/{name}.npz"
            processes[name].ask(**order, arrays=path)
            values[name] = np.load(path)["seen"]
    for turn in rounds.orders(able, n_rounds):
        for name in turn:
            answer = processes[name].ask(**order)
            seconds.setdefault(name, []).append(answer["seconds"])
            peaks.setdefault(name, []).append(answer["memory"][0] / 1e6)
    lines = {name: lines_of(getattr(SYSTEMS[name], task)) for name in able}
    own = values.pop("minitx")
    differences = {name: difference(task, own, other) for name, other in values.items()}
    medians = {name: statistics.median(given) for name, given in seconds.items()}
    largest = {name: max(given) for name, given in peaks.items()}
    return Row(task, lines, differences, medians, largest)


def difference(task, own, other):
    """What the table says of what both return."""
    if task == "probe":
        return "split in other ways"
    if task in ("steer", "generate"):
        wrong = np.atleast_1d((own != other).sum(-1))
        more = "".join(f"; {n} without its cache" for n in wrong[1:])
        return f"{wrong[0]} of {NEW} tokens{more}"
    return f"{abs(own - other).max():.1e} of {abs(other).max():.2g}"


COLUMNS = "lines", "ms (times minitx's)", "MB", "largest difference"


def page(tables, settings, systems):
    """The tables of all models as Markdown."""
    text = ["# Things that are done every week, beside other kits\n", settings]
    text.append(f"\nCells are of {' · '.join(systems)}; -: arithmetic of one's own.")
    for model, rows in tables.items():
        text.append(f"\n| {' | '.join([model, *COLUMNS])} |\n{'|---' * (1 + len(COLUMNS))}|")
        text += [row.cells(systems) for row in rows]
        ends = []
        for part in ("seconds", "lines"):
            behind = [TASKS[row.task] for row in rows if row.is_behind(part)]
            ends.append(", ".join(behind) or "none")
        text.append(f"\nBehind in time: {ends[0]}. Behind in lines: {ends[1]}.")
    return "\n".join(text) + "\n"


def main(argv=None):
    """Measure, print and write the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.weekly", description=__doc__)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=[*TASKS])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--work", type=Path, default=ROOT / ".venv-bench/work")
    parser.add_argument("--out", type=Path, help="benchmarks/results/weekly/DAY.md")
    args = parser.parse_args(argv)
    work = args.work.resolve()
    systems = [name for name in SYSTEMS if name != OPTIONAL or find_spec(name)]
    out = args.out or ROOT / f"benchmarks/results/weekly/{machine.today()}.md"
    out.parent.mkdir(parents=True, exist_ok=True)
    tables, settings = {}, stated(args.rounds, systems)
    for model in args.models:
        prepare(work, model)
        with rounds.Processes(work, 1, "benchmarks.weekly") as processes:
            tables[model] = []
            for task in args.tasks:
                progress.show(f"{model}: {task}")
                row = measured(task, model, processes, args.rounds, systems)
                tables[model].append(row)
                write(out, page(tables, settings, systems))
    progress.show("")
    print(page(tables, settings, systems))


def prepare(work, model):
    """The folder of a model below `work`: random weights, or the bundled model."""
    if model in shapes.SHAPES:
        shapes.make(work, model)
    else:
        work.mkdir(parents=True, exist_ok=True)
        (work / model).unlink(missing_ok=True)  # of a checkout that may be gone
        (work / model).symlink_to(weights.find(model).resolve())


def stated(n_rounds, systems):
    """What the numbers were measured with."""
    names = "torch", "transformers", *systems[1:], "numpy"
    listed = ", ".join(f"{name} {metadata.version(name)}" for name in names)
    line, commit = machine.described(1)["line"], machine.commit()
    return f"""{machine.today()}, {line}. minitx {commit}; {listed}.

Made by `python -m benchmarks.weekly`: one thread each, in turn, processor time, medians of
{n_rounds} rounds; memory is the most that a process held during a task, libraries and model
included. float32; texts of {TOKENS} random ids. A statement is a line, whatever its length. Where
minitx reports a null (steering vector, composition, probe, examples), its time has that work,
which the others do not do."""


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in SYSTEMS:
        os.environ["HF_HUB_OFFLINE"] = "1"
        peers.main(*sys.argv[1:], SYSTEMS, carried_out)
    else:
        main()
