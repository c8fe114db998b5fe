"""What the recipes share: books, a model that grows in stages, a checkpoint in float16.

Read downward: books and their pieces, stages, files and options. In NumPy alone, by
minitx.learning.
"""

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from safetensors.numpy import load_file, save

from minitx import weights
from minitx.learning.batches import NOTHING, Words
from minitx.learning.gradients import gradients
from minitx.learning.loop import How
from minitx.learning.parameters import parameters
from minitx.learning.saved import Folder, as_json, write
from minitx.learning.stages import Stage, Staged
from minitx.learning.start import WRITERS, head_of, in_one_vector, size_of_writers, start
from minitx.learning.tokens import END, learned, settings_of, stream
from minitx.learning.train import hashes, in_folder
from minitx.loading.families import FAMILIES, from_hf
from minitx.loading.files import read_json
from minitx.positions import sinusoids

HELD_OUT = Path(__file__).parents[2] / "analysis" / "texts" / "sample.txt"
INIT = 0.08  # deviation of the first weights
FRESH = 0.02  # that of position rows that are added later
WARM_UP = 500  # steps
HOW = How(
    steps=0,
    context=0,
    batch=0,
    rate=2e-3,
    warm_up=0.0,
    decay=0.1,
    betas=(0.9, 0.98),
    eps=1e-6,
    clip=1.0,
    masked=0.2,
    span=1.0,
    seed=0,
    snapshots=0,
    dtype="float32",
)


# ---- books and their pieces


def books(folder, held_out):
    """The lines of each book, without any that also occurs in the held-out text."""
    unseen = set(held_out.read_text(encoding="utf-8").splitlines())
    texts = [path.read_text(encoding="utf-8") for path in sorted(Path(folder).glob("*.txt"))]
    if not texts:
        raise SystemExit(f"no .txt file in {folder}; wanted one book or more, one paragraph a line")
    return [[line for line in text.splitlines() if line not in unseen] for text in texts]


def lines_of(folder, held_out):
    """The lines of all books."""
    return [line for book in books(folder, held_out) for line in book]


def is_masked(config):
    """Whether a model of that Config predicts hidden words, not the next."""
    return head_of(FAMILIES[config.model_type]) == "masked"


def pieces(lines, config):
    """{name: bytes} of a tokenizer that is learned from lines: byte-level BPE."""
    new = learned([line + "\n" for line in lines], config, is_masked(config))
    settings = settings_of(config, is_masked(config))
    return {"tokenizer.json": new.to_str().encode(), "tokenizer_config.json": settings}


def stream_of(text, config, out, learn=pieces):
    """The Stream of books [[line]]; its tokenizer is learned once, and lies in `out` then.

    Before each book of a causal model stands an <|endoftext|>.
    """
    lines = [line for book in text for line in book]
    if not (out / "tokenizer.json").exists():
        out.mkdir(parents=True, exist_ok=True)
        for name, content in sorted(learn(lines, config).items(), reverse=True):
            write(out / name, content)
    if not is_masked(config):
        lines = [END * (i == 0) + line for book in text for i, line in enumerate(book)]
    return stream(lines, out, config, is_masked(config))


# ---- stages


class Row(NamedTuple):
    """A stage of a Recipe."""

    steps: int
    context: int
    batch: int
    rate: float  # at its end
    layers: int


class Recipe(NamedTuple):
    """What a bundle is made of. `.name`: its own, whose config.json has the settings."""

    name: str
    plan: tuple  # of Rows
    like: str = ""  # the bundle whose first weights it has, where the shapes are the same
    sizes: Mapping = NOTHING  # {array: factor on what it begins with}
    fixed: Mapping = NOTHING  # {array that does not learn: function of Config that gives it}
    words: Callable = Words  # what gives batches
    learn: Callable = pieces  # what makes the tokenizer

    def scaled(self, scale):
        """The Recipe with `scale` times the steps of each stage."""
        plan = [row._replace(steps=max(1, round(scale * row.steps))) for row in self.plan]
        return self._replace(plan=tuple(plan))

    def stages(self):
        """The Stages; rows of positions that come later begin smaller."""
        spreads = [INIT] + [FRESH] * (len(self.plan) - 1)
        return [
            Stage(*row[:4], self.settings(row) | {"initializer_range": spread})
            for row, spread in zip(self.plan, spreads)
        ]

    def settings(self, row):
        """config.json of a stage."""
        return sized(self.name, row.context, row.layers)

    def how(self, seed):
        """The numbers that its training goes by."""
        steps, last = sum(row.steps for row in self.plan), self.plan[-1]
        own = {"warm_up": min(1.0, WARM_UP / steps), "seed": seed}
        return HOW._replace(steps=steps, context=last.context, batch=last.batch, **own)


def sized(name, context, n_layers):
    """config.json of a bundle, for other inputs and layers."""
    settings = read_json(weights.find(name) / "config.json")
    config = from_hf(dict(settings))
    keys = FAMILIES[config.model_type].config
    settings[keys["n_layers"].name] = n_layers
    if config.n_pos:
        settings[keys["n_pos"].name] = context + config.offset
    if "layer_types" in settings:
        settings["layer_types"] = settings["layer_types"][:n_layers]
    return settings


def waves(n, D):
    """Columns sin, cos, sin, cos …, as large as random rows are: [n D]."""
    halves = np.split(sinusoids(n, D), 2, axis=1)
    return INIT * 2**0.5 * np.stack(halves, axis=-1).reshape(n, D)


class Grown(Staged):
    """The stages of a Recipe."""

    def __init__(self, recipe, text, seed):
        self.recipe = recipe
        settings = recipe.settings(recipe.plan[-1])
        super().__init__(recipe.stages(), settings, text, recipe.how(seed))

    def drawn(self, stage):
        """The Start of a stage, as the recipe has it."""
        recipe, begin = self.recipe, super().drawn(stage)
        config, arrays = begin.model.config, parameters(begin.model)
        if recipe.like:
            settings = sized(recipe.like, stage.context, config.n_layers)
            settings["initializer_range"] = begin.settings["initializer_range"]
            of_like = start(settings, self.whole.seed, self.whole.dtype).arrays
            for key, x in of_like.items():
                if key in arrays and arrays[key].shape == x.shape:
                    arrays[key][...] = x
        for key in begin.arrays:
            name = key if isinstance(key, str) else key[0]
            arrays[key] *= recipe.sizes.get(name, 1.0)
            if name in WRITERS:
                arrays[key] /= size_of_writers(config)
        for key, rows in recipe.fixed.items():
            arrays[key][...] = rows(config)
        return in_one_vector(begin.model, begin.settings, self.whole.dtype, recipe.fixed)

    def rows(self, stage):
        """What gives the batches of a stage."""
        return self.recipe.words(self.text, stage.context, self.whole.masked, self.whole.span)


# ---- files and options


def make(recipe, given, shared, loop=Grown):
    """Make a bundle as the options say, its tokenizer in the folder `shared`."""
    config = from_hf(recipe.settings(recipe.plan[-1]))
    text = stream_of(books(given.text, given.held_out), config, shared, recipe.learn)
    print(f"{recipe.name}: {len(text.ids):,} tokens of text", flush=True)
    history = train(loop(recipe, text, given.seed), text, given.out)
    unseen = [given.held_out.read_text(encoding="utf-8").splitlines()]
    loss, n = held_out_loss(history.model, stream_of(unseen, config, shared))
    print(f"loss {history.losses[-200:].mean():.4f} nats in the last steps, {loss:.4f} held out")
    print(f"({n:,} predicted tokens); written to {given.out}", flush=True)


def train(loop, text, out, init=INIT):
    """Train in a folder, or go on there, and write the checkpoint in float16; the History."""
    stated = {"config": loop.settings, "stages": [stage._asdict() for stage in loop.stages]}
    stated |= loop.whole._asdict() | hashes(text)
    history = in_folder(loop, text, Folder(out, stated, text.files), resume=True)
    halve(out, {"initializer_range": init})
    return history


def halve(out, more):
    """The checkpoint of a folder in float16, with more settings."""
    final = read_json(out / "config.json") | {"dtype": "float16"} | more
    arrays = load_file(out / "model.safetensors")
    tensors = {name: x.astype(np.float16) for name, x in arrays.items()}
    write(out / "config.json", as_json(final))
    write(out / "model.safetensors", save(tensors, metadata={"format": "pt"}))


def held_out_loss(model, text, batch=32):
    """Mean loss in nats on a Stream, and the number of tokens predicted."""
    words = Words(text, model.config.n_ctx, HOW.masked, HOW.span)
    total = count = 0
    for step in range(len(words.starts) // batch):
        rows = words.batch(step, batch, HOW.seed)
        grads = gradients(model, rows.tokens, rows.targets, [])
        total += grads.loss * grads.n_targets
        count += grads.n_targets
    return total / count, count


def options(doc, names=()):
    """The parser of a recipe that learns from books; names: of what it can make."""
    parser = argparse.ArgumentParser(description=doc.split("\n")[0])
    if names:
        parser.add_argument("name", choices=names)
    parser.add_argument("--text", required=True, help="folder of .txt books, one paragraph a line")
    parser.add_argument("--out", required=True, type=Path, help="folder for checkpoint and state")
    parser.add_argument("--held-out", type=Path, default=HELD_OUT, help="text never trained on")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps-scale", type=float, default=1.0, help="factor on steps of stages")
    return parser
