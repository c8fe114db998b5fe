"""How fast encoder-decoders are beside the reference library: BART-base's shape, random weights.

    python -m benchmarks.pairs [--small] [--rounds N] [--work FOLDER] [--out FILE.md]

Each system works in a process of its own, one at a time, in turn within each round (rounds.py).
Ratios are taken within rounds. Read downward: the systems, the cases, what is counted, the table,
the command. A few minutes on two cores; torch and transformers have to be installed.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

import minitx
from minitx import model as forward_pass
from minitx.analysis.machine import progress
from minitx.analysis.machine.files import write

from . import machine, peers, rounds, shapes
from .cases import Case

ROOT = Path(__file__).parents[1]
SOURCE, TARGET, NEW, BEAMS = 128, 32, 64, 4
ATTENTION = "q", "k", "v", "pattern"
INTERNALS = [
    *(f"{stack}{name}" for stack in ("enc_", "", "cross_") for name in ATTENTION),
    *(f"{stack}resid_{name}" for stack in ("enc_", "") for name in ("pre", "post")),
]


class Minitx(peers.Minitx):
    """minitx on a source, and on a target where one is read."""

    def nothing(self, source):
        """The decoder's final stream of 32 tokens."""
        return {"hidden": self.call.forward(self.model, target(source), source=source)}

    def internals(self, source):
        """Queries, keys, values, attention and streams of all layers of both stacks."""
        return self.call.run(self.model, target(source), INTERNALS, source=source)

    def everything(self, source):
        """Every point there is, the logits among them."""
        return self.call.run(self.model, target(source), source=source)

    def greedy(self, source):
        """64 tokens of a source, each the likeliest."""
        return {"tokens": self.call.generate(self.model, source=source, n=NEW)}

    def beams(self, source):
        """The same with 4 beams."""
        tokens = self.call.generate(self.model, source=source, n=NEW, num_beams=BEAMS)
        return {"tokens": tokens}

    def seen(self, raw):
        """Common names -> arrays, of the last layer."""
        if isinstance(raw, dict):
            return raw
        points = {"hidden": "resid_post", "cross": "cross_pattern", "own": "pattern"}
        return {name: raw[point, -1] for name, point in points.items()}


class Transformers(peers.Transformers):
    """The reference library with fused attention, and with its cache."""

    def nothing(self, source):
        """The decoder's final stream of 32 tokens."""
        return {"hidden": self._pass(source).last_hidden_state}

    def greedy(self, source):
        """64 tokens of a source, each the likeliest."""
        return self._generated(source)

    def beams(self, source):
        """The same with 4 beams."""
        return self._generated(source, num_beams=BEAMS)

    def _pass(self, source, **options):
        tokens = self.torch.as_tensor(target(source))
        return self._run(self.body, source, decoder_input_ids=tokens, **options)

    def _generated(self, source, **options):
        with self.torch.inference_mode():
            source = self.torch.as_tensor(source)
            options |= {"max_new_tokens": NEW, "do_sample": False, "use_cache": True}
            mask = self.torch.ones_like(source)
            return {"tokens": self.whole.generate(source, attention_mask=mask, **options)}


class Eager(Transformers):
    """The reference library as it yields the same internals: outputs, and hooks on q, k and v."""

    attention = "eager"

    def __init__(self, folder, threads):
        super().__init__(folder, threads)
        self.caught = []
        for name, module in self.body.named_modules():
            if name.endswith((".q_proj", ".k_proj", ".v_proj")):
                module.register_forward_hook(self._catch)

    def _catch(self, module, inputs, output):
        """A hook that keeps a module's output; it returns None, so that nothing is replaced."""
        self.caught.append(output)

    def internals(self, source):
        """Queries, keys, values, attention and hidden states of all layers of both stacks."""
        self.caught = []
        options = {"output_attentions": True, "output_hidden_states": True, "use_cache": False}
        return {"out": self._pass(source, **options), "caught": self.caught}

    def seen(self, raw):
        """Common names -> arrays, of the last layer."""
        if "out" in raw:
            out = raw["out"]
            raw = {"hidden": out.decoder_hidden_states[-1]}
            raw |= {"cross": out.cross_attentions[-1], "own": out.decoder_attentions[-1]}
        return super().seen(raw)


PEERS = {"minitx": Minitx, "transformers": Transformers, "transformers-eager": Eager}


def target(source):
    """What the decoder reads beside a source: the start token and 31 others, the same for all."""
    tokens = source[:, :TARGET].copy()
    tokens[:, 0] = shapes.BART["decoder_start_token_id"]
    return tokens


# --- what is measured


def cases(shape, n):
    """The cases; minitx's own peer stands first in each."""
    captured = "minitx/internals", "minitx/everything", "transformers-eager/internals"
    more = {"shape": shape, "tokens": SOURCE, "rounds": n}
    text = f"source {SOURCE}, target {TARGET}"
    yield Case("captured", f"{text}, internals captured", captured, **more)
    nothing = "minitx/nothing", "transformers/nothing"
    yield Case("nothing", f"{text}, nothing captured", nothing, **more)
    greedy = "minitx/greedy", "transformers/greedy"
    yield Case("greedy", f"source {SOURCE}, {NEW} tokens, greedy", greedy, **more)
    beams = "minitx/beams", "transformers/beams"
    yield Case("beams", f"source {SOURCE}, {NEW} tokens, {BEAMS} beams", beams, **more)


def counted(folder):
    """How often cross-attention's keys and values are computed: {case: (times, steps, layers)}."""
    model = minitx.load(folder)
    source = shapes.ids(folder.name, 1, SOURCE)
    compute, calls = forward_pass.keys_values, []

    def keys_values(x, w, *others):
        calls.append(hasattr(w, "ln_cross_w"))
        return compute(x, w, *others)

    counts = {}
    forward_pass.keys_values = keys_values
    try:
        for name, beams in ("greedy", 1), ("beams", BEAMS):
            calls.clear()
            minitx.generate(model, source=source, n=NEW, num_beams=beams)
            counts[name] = sum(calls), NEW, model.config.n_layers
    finally:
        forward_pass.keys_values = compute
    return counts


# --- the table


def quartiles(values, form):
    """The median, and the quartiles in brackets."""
    low, middle, high = (form.format(x) for x in np.quantile(values, (0.25, 0.5, 0.75)))
    return f"{middle} ({low}-{high})"


def lines(case, record):
    """A row of the table for each peer of a case: its seconds, and its ratio to minitx's."""
    own = np.array(record["seconds"][case.peers[0]])
    for peer, seconds in record["seconds"].items():
        ratio = quartiles(np.array(seconds) / own, "{:.2f}×") if peer != case.peers[0] else ""
        milliseconds = quartiles(1000 * np.array(seconds), "{:.4g}")
        yield f"| {case.what} | {peer} | {milliseconds} ms | {ratio} |"
    for peer, why in record["lost"].items():
        yield f"| {case.what} | {peer} | left out: {why} | |"


def page(settings, records, counts):
    """The whole table as Markdown, with what it was measured on."""
    versions = ", ".join(f"{name} {version}" for name, version in settings["versions"].items())
    text = [
        f"# Encoder-decoders beside the reference library, {settings['day']}\n",
        f"{settings['line']}; two threads. minitx at commit {settings['commit']}; {versions}.\n",
        f"Shape of {settings['shape']}, random weights, one text; {settings['rounds']} rounds of "
        "one run, each system in a process of its own, in turn. Median and quartiles; ratios are "
        "taken within rounds, and above 1 they are in favour of minitx. All outputs were compared "
        "before anything was timed.\n",
        "| case | system/task | time | over minitx |\n|---|---|---|---|",
    ]
    for case, record in records:
        text += lines(case, record)
    text.append("")
    for case, record in records:
        busy, far = record["busy"], record["distance"]
        text.append(f"`{case.name}`: outputs {far:.0e} apart; busy cores before: {busy:.2f}.  ")
    text.append("")
    for name, (times, steps, layers) in counts.items():
        text.append(
            f"Keys and values of cross-attention, {name}: computed {times} times in {steps} steps "
            f"of {layers} layers, once a layer and source.  "
        )
    return "\n".join(text) + "\n"


# --- the command


def main(argv=None):
    """Measure, print and write the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pairs", description=__doc__)
    parser.add_argument("--small", action="store_true", help="a small shape, to try it out")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--work", type=Path, default=ROOT / ".venv-bench/work")
    parser.add_argument("--out", type=Path, help="benchmarks/results/pairs/DAY.md")
    args = parser.parse_args(argv)
    shape = "bart-small" if args.small else "bart-base"
    out = args.out or ROOT / f"benchmarks/results/pairs/{machine.today()}.md"
    folder = shapes.make(args.work.resolve(), shape)
    settings = {"day": machine.today(), "shape": shape, "rounds": args.rounds}
    settings |= {"line": machine.described(2)["line"], "commit": machine.commit()}
    versions = machine.versions()
    settings["versions"] = {name: versions[name] for name in ("torch", "transformers", "numpy")}
    records = []
    with rounds.Processes(folder.parent, 2, "benchmarks.pairs") as processes:
        for case in cases(shape, args.rounds):
            records.append((case, rounds.measure(case, processes, case.rounds, 0, progress.show)))
    progress.show("")
    text = page(settings, records, counted(folder))
    out.parent.mkdir(parents=True, exist_ok=True)
    write(out, text)
    print(text)


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in PEERS:
        peers.main(*sys.argv[1:], PEERS)
    else:
        main()
