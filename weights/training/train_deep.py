"""Trains a RoBERTa that keeps positions in its stream to the last layer, in NumPy alone.

    python -m minitx.weights.training.train_deep --text FOLDER --out FOLDER

The stages of deep-roberta without its spans, by minitx.training: layers are added as copies, inputs
grow longer, matrices that write to the stream begin small, and in a step each layer is left out at
random. Text and tokenizer are those of tiny-roberta. It may be stopped at any time and goes on from
FOLDER when called again. Read downward: stages, a loop that leaves out layers, files.

deep-roberta itself was trained in torch, before this program: there a layer that was left out did
not move at all, where here it goes on along the running means of its gradients; all layers could be
left out at once, where here one stays; and new position rows of context 128 were drawn alike.
"""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from safetensors.numpy import load_file, save

from minitx import weights
from minitx.families import from_hf
from minitx.files import read_json
from minitx.gradients import gradients
from minitx.parameters import parameters, with_arrays
from minitx.training.loop import How
from minitx.training.saved import Folder, as_json, write
from minitx.training.stages import Stage, Staged
from minitx.training.start import WRITERS
from minitx.training.tokens import stream
from minitx.training.train import hashes, in_folder
from minitx.weights.training.train_history import HELD_OUT, lines_of

CONTEXT, LAYERS, OFFSET, INIT = 128, 4, 2, 0.08
FRESH = 0.02  # deviation of position rows that are added later
SMALL = 0.2  # of their size: how matrices that write to the stream begin
SKIP = 0.3  # probability with which a layer is left out
PLAN = (  # steps, context, inputs, rate at the end, layers
    (2400, 32, 64, 2e-3, 1),
    (600, 32, 64, 2e-3, 2),
    (600, 32, 64, 2e-3, 4),
    (950, 64, 32, 2e-3, 4),
    (3700, 128, 16, 2e-3, 4),
    (2000, 128, 16, 0.0, 4),
)
HOW = How(
    steps=sum(row[0] for row in PLAN),
    context=CONTEXT,
    batch=16,
    rate=2e-3,
    warm_up=500 / sum(row[0] for row in PLAN),
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


# ---- stages


def settings():
    """config.json: tiny-roberta's, with more heads and shorter inputs."""
    own = {"num_attention_heads": 8, "max_position_embeddings": CONTEXT + OFFSET}
    return read_json(weights.find("tiny-roberta") / "config.json") | own


def stages(scale):
    """The Stages, each of `scale` times its steps."""
    plan = []
    for steps, context, batch, rate, layers in PLAN:
        own = {"num_hidden_layers": layers, "max_position_embeddings": context + OFFSET}
        own["initializer_range"] = FRESH if plan else INIT
        plan.append(Stage(max(1, round(steps * scale)), context, batch, rate, own))
    return plan


# ---- a loop that leaves out layers


class Of(NamedTuple):
    """Gradients by name, 0 where a layer was left out."""

    loss: float
    arrays: dict

    def __getitem__(self, key):
        return self.arrays[key]


class Skipping(Staged):
    """Stages in which each layer is left out at random, so that none can count on the others."""

    def __init__(self, *given):
        super().__init__(*given)
        for key in self.start.arrays:
            if key[0] in WRITERS:
                self.start.arrays[key] *= SMALL

    def used(self):
        """The layers of the next step."""
        rng = np.random.default_rng((self.how.seed, self.done, 2))
        n = self.start.model.config.n_layers
        draws = rng.random(n)
        draws[rng.integers(n)] = 1.0  # one stays
        return np.flatnonzero(draws >= SKIP).tolist()

    def slopes_of(self, batch):
        """The gradients of the model without the layers that are left out."""
        used = self.used()
        model = thinner(self.start.model, used)
        keys = {key: own(key, used) for key in self.start.arrays}
        wanted = [key for key in keys.values() if key is not None]
        grads = gradients(model, batch.tokens, batch.targets, wanted)
        arrays = {
            key: np.zeros_like(self.start.arrays[key]) if now is None else grads[now]
            for key, now in keys.items()
        }
        return Of(grads.loss, arrays)


def own(key, used):
    """The name of an array in a model of the layers used; None: it is not there."""
    if isinstance(key, str):
        return key
    return (key[0], used.index(key[1])) if key[1] in used else None


def thinner(model, used):
    """The model of some of its layers, with the same arrays."""
    arrays = {own(key, used): x for key, x in parameters(model).items()}
    config = replace(model.config, n_layers=len(used))
    return with_arrays(replace(model, config=config, layers=model.layers[: len(used)]), arrays, "")


# ---- files


def train(text, held_out, out, scale=1.0, seed=0):
    """Train in a folder, or go on there, and write the checkpoint in float16; the History."""
    plan, folder = stages(scale), weights.find("tiny-roberta")
    how = HOW._replace(steps=sum(stage.steps for stage in plan), seed=seed)
    given = stream(lines_of(text, held_out), folder, from_hf(settings()), is_masked=True)
    loop = Skipping(plan, settings(), given, how)
    stated = {"config": settings(), "stages": [stage._asdict() for stage in plan]}
    stated |= how._asdict() | hashes(given)
    history = in_folder(loop, given, Folder(out, stated, given.files), resume=True)
    final = read_json(out / "config.json") | {"dtype": "float16", "initializer_range": INIT}
    arrays = load_file(out / "model.safetensors")
    halves = {name: x.astype(np.float16) for name, x in arrays.items()}
    write(out / "config.json", as_json(final))
    write(out / "model.safetensors", save(halves, metadata={"format": "pt"}))
    return history


def main():
    """Train, or go on training, and write the checkpoint to --out."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--text", required=True, help="folder of .txt books, one paragraph a line")
    parser.add_argument("--out", required=True, type=Path, help="folder for checkpoint and state")
    parser.add_argument("--held-out", type=Path, default=HELD_OUT, help="text never trained on")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--steps-scale", type=float, default=1.0, help="factor on every stage's steps"
    )
    given = parser.parse_args()
    history = train(given.text, given.held_out, given.out, given.steps_scale, given.seed)
    print(f"loss {history.losses[-200:].mean():.4f} nats in the last steps; written to {given.out}")


if __name__ == "__main__":
    main()
