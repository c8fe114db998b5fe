"""Makes the bundled recurrent toy: five small encoder-decoders that learn to copy or to reverse.

    python weights/training/train_recurrent.py --out FOLDER

They differ in what the decoder gets of the source: the encoder's last state alone (`fixed`, and
`fixed-wide` with twice the width), or a mean of all its states, weighted by attention. Its query is
the decoder's new state (`additive`, `dot`), or the state before it, and then the mean enters the
step (`bahdanau`). Data and steps are the same for all. Read downward: the recipes; sequences; the
model as a function of named weights (the names are those of the file, its matrices [in out]); one
training loop, which may be stopped and called again; the export. Needs torch, an optional extra;
one core.
"""

import argparse
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from train import Progress, load_state, moments_of, optimizer_of, save_state, write

try:
    import torch
    import torch.nn.functional as F
except ImportError as error:
    raise SystemExit(
        "train_recurrent.py needs PyTorch, which is not installed: pip install torch"
    ) from error

WIDTH = 48
RECIPES = {  # name -> what the decoder gets of the source, width
    "fixed": ("fixed", WIDTH),
    "bahdanau": ("bahdanau", WIDTH),
    "additive": ("additive", WIDTH),
    "dot": ("dot", WIDTH),
    "fixed-wide": ("fixed", 2 * WIDTH),
}
ADDITIVE = "bahdanau", "additive"
SYMBOLS = 16  # and one more, the last row of the embedding, with which the decoder starts
LENGTHS = 2, 20  # of the sequences
BATCH, RATE, WARM_UP, CLIP = 128, 4e-3, 200, 1.0
REPORT_STEPS = 500


def sequences(task, rng):
    """Source and target [B T] of one step, of one length."""
    T = rng.integers(LENGTHS[0], LENGTHS[1] + 1)
    source = torch.from_numpy(rng.integers(0, SYMBOLS, (BATCH, T)))
    return source, source if task == "copy" else source.flip(1)


# ---- the model


def initial(mechanism, D, rng):
    """Named weights; matrices from a normal distribution of deviation 1/sqrt(rows)."""
    shapes = {"W_E": (SYMBOLS + 1, D)}
    for gru in ("encoder", "decoder"):
        shapes |= {f"{gru}.W_x": (D, 3 * D), f"{gru}.b_x": (3 * D,)}
        shapes |= {f"{gru}.W_h": (D, 3 * D), f"{gru}.b_h": (3 * D,)}
    if mechanism == "bahdanau":  # the context is an input too
        shapes["decoder.W_x"] = (2 * D, 3 * D)
    if mechanism in ADDITIVE:
        shapes |= {"attention.W_Q": (D, D), "attention.W_K": (D, D), "attention.v": (D, 1)}
    shapes |= {"W_out": (2 * D, D), "b_out": (D,), "W_U": (D, SYMBOLS), "b_U": (SYMBOLS,)}
    w = {}
    for name, shape in shapes.items():
        deviation = shape[0] ** -0.5 if len(shape) == 2 else 0.0
        values = deviation * rng.standard_normal(shape)
        w[name] = torch.tensor(values, dtype=torch.float32).requires_grad_()
    return w


def gru(w, part, x, state):
    """States of a GRU [B T D] on x [B T D], from a state [B D]."""
    names = [f"{part}.W_x", f"{part}.W_h", f"{part}.b_x", f"{part}.b_h"]
    parameters = [w[name].T.contiguous() for name in names[:2]] + [w[name] for name in names[2:]]
    states, _ = torch.gru(x, state[None], parameters, True, 1, 0.0, True, False, True)
    return states


def pattern(mechanism, w, q, k):
    """Attention [B T S] of decoder states q [B T D] to encoder states k [B S D]."""
    if mechanism == "fixed":  # the last state alone
        last = torch.zeros(k.shape[1], dtype=k.dtype)
        last[-1] = 1
        return last.expand(*q.shape[:2], -1)
    if mechanism == "dot":
        scores = q @ k.mT
    else:
        queries, keys = q @ w["attention.W_Q"], k @ w["attention.W_K"]
        both = torch.tanh(queries[:, :, None] + keys[:, None])
        scores = (both @ w["attention.v"])[..., 0]
    return scores.softmax(-1)


def bahdanau(w, x, states):
    """Decoder states [B T D] and attention [B T S] where the state before asks, from x [B T D]."""
    s = states[:, -1:]
    steps, patterns = [], []
    for symbol in x.split(1, dim=1):
        weights = pattern("bahdanau", w, s, states)
        both = torch.cat([symbol, weights @ states], -1)
        s = gru(w, "decoder", both, s[:, 0])
        steps.append(s)
        patterns.append(weights)
    return torch.cat(steps, 1), torch.cat(patterns, 1)


def forward(mechanism, w, source, target):
    """Logits [B T V] and attention [B T S]; the decoder reads the target [B T] one place late."""
    W_E = w["W_E"]
    zeros = torch.zeros(len(source), W_E.shape[1], dtype=W_E.dtype)
    states = gru(w, "encoder", W_E[source], zeros)
    inputs = F.pad(target[:, :-1], (1, 0), value=SYMBOLS)
    if mechanism == "bahdanau":
        s, weights = bahdanau(w, W_E[inputs], states)
    else:
        s = gru(w, "decoder", W_E[inputs], states[:, -1])
        weights = pattern(mechanism, w, s, states)
    x = torch.tanh(torch.cat([s, weights @ states], -1) @ w["W_out"] + w["b_out"])
    return x @ w["W_U"] + w["b_U"], weights


# ---- training


def train(name, task, path, steps, seed):
    """Train one model from its state at `path`, if any; return its weights."""
    mechanism, width = RECIPES[name]
    if path.exists():
        w, moments, first = load_state(path)
    else:
        w, moments, first = initial(mechanism, width, np.random.default_rng(seed)), {}, 0
    optimizer = optimizer_of(w, moments, first)
    progress = Progress()
    for step in range(first, steps):
        source, target = sequences(task, np.random.default_rng([seed, step]))
        for group in optimizer.param_groups:
            group["lr"] = RATE * min(1, (step + 1) / WARM_UP) * (1 - step / steps)
        logits, _ = forward(mechanism, w, source, target)
        loss = F.cross_entropy(logits.flatten(0, 1), target.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(w.values(), CLIP)
        optimizer.step()
        optimizer.zero_grad()
        progress.add(loss.item(), source.numel())
        if (step + 1) % REPORT_STEPS == 0 or step + 1 == steps:
            left = (steps - step - 1) * BATCH * sum(LENGTHS) / 2
            progress.report(f"{name}  step {step + 1}", left)
            save_state(path, w, moments_of(w, optimizer), step + 1)
    return w


def main():
    """Train, or go on training, the four models, and write them in float16 to one file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", required=True, type=Path, help="folder for file and states")
    parser.add_argument("--task", choices=("copy", "reverse"), default="copy")
    parser.add_argument("--only", choices=RECIPES, help="train this one and write no file")
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    names = [given.only] if given.only else [*RECIPES]
    arrays = {}
    for name in names:
        path = given.out / f"{given.task}-{name}.state.safetensors"
        w = train(name, given.task, path, given.steps, given.seed)
        arrays |= {f"{name}.{key}": p.detach().numpy().astype(np.float16) for key, p in w.items()}
    if not given.only:
        path = given.out / "model.safetensors"
        write(path, lambda part: save_file(arrays, part, metadata={"task": given.task}))


if __name__ == "__main__":
    main()
