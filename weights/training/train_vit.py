"""Makes tiny-vit, a ViT that classifies where a circle is relative to a square.

    python -m minitx.weights.training.train_vit --out FOLDER

Every step draws its own pictures (weights/shapes.py). It learns by minitx.learning, without torch.
Read downward: settings, batches, the loop, files.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save

from minitx.images import Preprocessor, rows_of
from minitx.learning.batches import Batch
from minitx.learning.loop import How, Loop
from minitx.learning.saved import as_json, write
from minitx.learning.start import start
from minitx.weights import shapes

CONFIG = {
    "model_type": "vit",
    "hidden_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "image_size": shapes.SIDE,
    "patch_size": 4,
    "num_channels": 3,
    "qkv_bias": True,
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-6,
    "initializer_range": 0.05,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "id2label": {str(i): name for i, name in enumerate(shapes.CLASSES)},
    "label2id": {name: i for i, name in enumerate(shapes.CLASSES)},
}
PREPROCESSOR = {
    "image_processor_type": "ViTImageProcessor",
    "do_resize": True,
    "size": {"height": shapes.SIDE, "width": shapes.SIDE},
    "resample": 2,
    "do_rescale": True,
    "rescale_factor": 1 / 255,
    "do_normalize": True,
    "image_mean": [0.5, 0.5, 0.5],
    "image_std": [0.25, 0.25, 0.25],
}
HELD_OUT = 1 << 40  # seeds from here on are not drawn in training
EVERY = 100  # steps between two lines of the log
HOW = How(
    steps=2000,
    context=65,
    batch=32,
    rate=1e-3,
    warm_up=0.1,
    decay=0.05,
    betas=(0.9, 0.98),
    eps=1e-6,
    clip=1.0,
    masked=0.0,
    span=1.0,
    seed=0,
    snapshots=0,
    dtype="float32",
)


class Pictures:
    """Batches of pictures that are drawn when they are asked for."""

    def __init__(self, picture, folder):
        self.picture = picture
        self.preprocessor = Preprocessor(folder)

    def batch(self, step, size, seed):
        """The Batch of a step: rows of numbers [B T V], classes [B]."""
        pictures, classes = shapes.draw(size, (seed, step))
        pixels = [self.preprocessor.pixels(x, self.picture) for x in pictures]
        return Batch(rows_of(np.stack(pixels), self.picture), classes)


def train(out, steps=HOW.steps, seed=0):
    """Train, and write the checkpoint to a folder; returns the losses."""
    out.mkdir(parents=True, exist_ok=True)
    write(out / "preprocessor_config.json", as_json(PREPROCESSOR))
    how = HOW._replace(steps=steps, seed=seed)
    begin = start(CONFIG, seed, how.dtype)
    loop = Loop(begin, Pictures(begin.model.config.picture, out), how)
    while loop.done < how.steps:
        loop.step()
        if loop.done % EVERY == 0:
            print(f"step {loop.done}: loss {np.mean(loop.losses[-EVERY:]):.4f}", flush=True)
    tensors = {name: x.astype(np.float16) for name, x in begin.tensors().items()}
    write(out / "config.json", as_json(begin.settings | {"dtype": "float16"}))
    write(out / "model.safetensors", save(tensors, metadata={"format": "pt"}))
    write(out / "train.json", json.dumps({"losses": loop.losses}))
    return loop.losses


def main():
    """Train and write the checkpoint to --out."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", required=True, type=Path, help="folder for the checkpoint")
    parser.add_argument("--steps", type=int, default=HOW.steps)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    train(given.out, given.steps, given.seed)


if __name__ == "__main__":
    main()
