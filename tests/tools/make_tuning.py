"""Makes tests/golden/tuning.safetensors: steps of PyTorch's AdamW, and curves of 200 of them.

    python tests/tools/make_tuning.py

Five steps on random gradients; two golden models that learn 200 steps in float64, with decay,
clipping and a rate that rises and falls; and, only asserted, tuned folders of several families that
the reference library loads with minitx's own logits. Needs torch and the reference library.
"""

import tempfile
from pathlib import Path

import make_golden
import numpy as np
import torch
import tuning
from safetensors.numpy import save_file

import minitx
from minitx.analysis.tuning import tensors
from minitx.learning import adamw

OUT = Path(__file__).parents[1] / "golden" / "tuning.safetensors"
FOLDERS = ["bert-masked", "roberta-masked", "distilbert-untied", "electra-token", "mpnet-masked"]
FOLDERS += ["gpt2-causal", "gpt2-untied", "bert-untied", "roberta-legacy"]
WITH_CLASSES = ["bert-masked", "roberta-masked", "distilbert-untied", "gpt2-causal", "mpnet-masked"]
F = torch.nn.functional


def optimizer_of(learned, rate, decay):
    """AdamW with decay of matrices alone."""
    flat = [x for x in learned if x.ndim < 2]
    groups = [{"params": flat, "weight_decay": 0.0}]
    groups.append({"params": [x for x in learned if x.ndim > 1]})
    return torch.optim.AdamW(groups, lr=rate, weight_decay=decay)


def steps():
    """Five steps on random gradients: {name: array}."""
    arrays, gradients = tuning.random_steps()
    learned = {name: torch.tensor(x, requires_grad=True) for name, x in arrays.items()}
    optimizer = optimizer_of([*learned.values()], 0.0, tuning.DECAY)
    stored = {}
    for i, given in enumerate(gradients):
        for group in optimizer.param_groups:
            group["lr"] = tuning.RATE / (i + 1)
        for name, x in learned.items():
            x.grad = torch.tensor(given[name])
        optimizer.step()
        stored |= {f"step.{i}.{name}": x.detach().numpy().copy() for name, x in learned.items()}
    return stored


def curve(variant):
    """The losses of 200 steps [200]."""
    run = tuning.prepared(variant)
    how = run.how
    library = make_golden.library_model(make_golden.GOLDEN / variant, "float64")
    learned = [*library.parameters()]
    optimizer = optimizer_of(learned, how.rate, how.decay)
    losses = []
    for step in range(how.steps):
        batch = run.batch(step)
        for group in optimizer.param_groups:
            group["lr"] = adamw.rate_of(step, how.steps, how.rate, how.warm_up)
        optimizer.zero_grad()
        y = library(
            input_ids=torch.from_numpy(batch.tokens), attention_mask=torch.from_numpy(batch.valid)
        ).logits
        targets = torch.from_numpy(batch.targets)
        loss = F.cross_entropy(y.reshape(-1, y.shape[-1]), targets.reshape(-1))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(learned, how.clip)
        optimizer.step()
        losses.append(loss.item())
    return np.array(losses)


def loads(variant, classes):
    """Distance of the logits of a tuned folder in the reference library from minitx's own."""
    run, checkpoint = tuning.started(variant, np.float32, classes, steps=3)
    run.go_on()
    with tempfile.TemporaryDirectory() as folder:
        tensors.save_checkpoint(checkpoint, Path(folder))
        library = make_golden.library_model(folder, "float32")
        model = minitx.load(folder)
    tokens = run.data.tokens[:2]
    own = minitx.logits(model, minitx.forward(model, tokens))
    if classes and model.config.model_type == "gpt2":
        library.config.pad_token_id = -1  # no padding here
    with torch.no_grad():
        y = library(input_ids=torch.from_numpy(tokens)).logits.numpy()
    return abs(own.reshape(y.shape) - y).max() / abs(y).max()


def main():
    stored = steps()
    for variant in tuning.CURVES:
        stored[f"curve.{variant}"] = curve(variant)
        first, last = stored[f"curve.{variant}"][[0, -1]]
        print(f"{variant}: {first:.4f} to {last:.4f}")
    save_file(stored, OUT)
    for classes, variants in ((), FOLDERS), (("bad", "good", "so-so"), WITH_CLASSES):
        for variant in variants:
            distance = loads(variant, classes)
            print(f"{variant} {len(classes)} classes: {distance:.1e}")
            assert distance < 1e-5


if __name__ == "__main__":
    main()
