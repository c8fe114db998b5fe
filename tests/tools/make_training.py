"""Makes tests/golden/training.safetensors: 200 steps from a random start by PyTorch's AdamW.

    python tests/tools/make_training.py

The start and the batches are minitx's, the gradients and steps PyTorch's, in float64: the loss of
each step, and all tensors after the last. And, only asserted: the reference library loads what a
start of every family writes, with no tensor missing and minitx's own logits. Needs torch and the
reference library.
"""

import json
import tempfile
from pathlib import Path

import make_golden
import make_golden_places
import numpy as np
import torch
import trained
from make_tuning import optimizer_of
from safetensors.numpy import save_file

import minitx
from minitx.learning import start
from minitx.learning.adamw import rate_of

OUT = Path(__file__).parents[1] / "golden" / "training.safetensors"
FOLDERS = ["bert-masked", "roberta-masked", "xlm-roberta-masked", "camembert-masked"]
FOLDERS += ["distilbert-masked", "mpnet-masked", "modernbert-masked", "gpt2-causal", "llama-tied"]
FOLDERS += ["llama-grouped", "mistral-window", "qwen2-biases", "qwen3-norms", "bloom-three"]
FOLDERS += ["gpt_neox-parallel"]
F = torch.nn.functional


def written(begin, folder):
    """A Start in a folder that loads."""
    save_file(begin.tensors(), folder / "model.safetensors", {"format": "pt"})
    (folder / "config.json").write_text(json.dumps(begin.settings))
    return folder


def steps(name):
    """{loss: [200], name of a tensor: array} after the steps."""
    loop = trained.loop_of(name)
    how = loop.how
    with tempfile.TemporaryDirectory() as folder:
        library = make_golden.library_model(written(loop.start, Path(folder)), "float64")
    optimizer = optimizer_of([*library.parameters()], how.rate, how.decay)
    for group in optimizer.param_groups:
        group |= {"betas": how.betas, "eps": how.eps}
    losses = []
    for step in range(how.steps):
        batch = loop.words.batch(step, how.batch, how.seed)
        for group in optimizer.param_groups:
            group["lr"] = rate_of(step, how.steps, how.rate, how.warm_up)
        optimizer.zero_grad()
        with make_golden_places.in_float64(library):
            y = library(input_ids=torch.from_numpy(batch.tokens)).logits
        targets = torch.from_numpy(batch.targets).reshape(-1)
        loss = F.cross_entropy(y.reshape(-1, y.shape[-1]), targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(library.parameters(), how.clip)
        optimizer.step()
        losses.append(loss.item())
    last = library.state_dict()
    arrays = {key: last[key].numpy().copy() for key in loop.start.tensors()}
    return {"loss": np.array(losses)} | arrays


def loads(variant):
    """Distance of the logits of a random start in the reference library from minitx's own."""
    settings = json.loads((make_golden.GOLDEN / variant / "config.json").read_text())
    begin = start.start(settings, 3, "float32")
    with tempfile.TemporaryDirectory() as folder:
        library = make_golden.library_model(written(begin, Path(folder)), "float32")
    tokens = np.arange(5, 11)[None]
    own = minitx.logits(begin.model, minitx.forward(begin.model, tokens))
    with torch.no_grad():
        y = library(input_ids=torch.from_numpy(tokens)).logits.numpy()
    return abs(own - y).max() / abs(y).max()


def main():
    stored = {}
    for name in trained.SETTINGS:
        arrays = steps(name)
        stored |= {f"{name}.{key}": x for key, x in arrays.items()}
        print(f"{name}: {arrays['loss'][0]:.4f} to {arrays['loss'][-1]:.4f}")
    save_file(stored, OUT)
    for variant in FOLDERS:
        distance = loads(variant)
        print(f"{variant}: {distance:.1e}")
        assert distance < 1e-5


if __name__ == "__main__":
    main()
