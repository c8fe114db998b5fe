"""Makes the bundled recurrent toy: five small encoder-decoders that learn to copy or to reverse.

    python -m minitx.weights.training.train_recurrent --out FOLDER

They differ in what the decoder gets of the source: the encoder's last state alone (`fixed`, and
`fixed-wide` with twice the width), or a mean of all its states, weighted by attention. Its query is
the decoder's new state (`additive`, `dot`), or the state before it, and then the mean enters the
step (`bahdanau`). Data and steps are the same for all. analysis/toys/gru.py has the formulas.

Each part returns what it computes and a function back: from the gradient of that to those of its
inputs; those of the weights are added up in `slopes`. B sequences, S source places, T steps, D
width, V symbols. Read downward: recipes; sequences; parts; the model; training and files. The
bundle itself was trained in torch, from the same first weights on the same sequences.
"""

import argparse
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save

from minitx.learning.adamw import AdamW, clipped
from minitx.learning.saved import write
from minitx.weights.training.recipe import HOW

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
BATCH, RATE, WARM_UP = 128, 4e-3, 200
REPORT_STEPS = 500


def sequences(task, rng):
    """Source and target [B T] of one step, of one length."""
    T = rng.integers(LENGTHS[0], LENGTHS[1] + 1)
    source = rng.integers(0, SYMBOLS, (BATCH, T))
    return source, source if task == "copy" else source[:, ::-1]


def initial(mechanism, D, rng):
    """Named weights; matrices from a normal distribution of deviation 1/sqrt(rows)."""
    shapes = {"W_E": (SYMBOLS + 1, D)}
    for part in ("encoder", "decoder"):
        shapes |= {f"{part}.W_x": (D, 3 * D), f"{part}.b_x": (3 * D,)}
        shapes |= {f"{part}.W_h": (D, 3 * D), f"{part}.b_h": (3 * D,)}
    if mechanism == "bahdanau":  # the context is an input too
        shapes["decoder.W_x"] = (2 * D, 3 * D)
    if mechanism in ADDITIVE:
        shapes |= {"attention.W_Q": (D, D), "attention.W_K": (D, D), "attention.v": (D, 1)}
    shapes |= {"W_out": (2 * D, D), "b_out": (D,), "W_U": (D, SYMBOLS), "b_U": (SYMBOLS,)}
    w = {}
    for name, shape in shapes.items():
        deviation = shape[0] ** -0.5 if len(shape) == 2 else 0.0
        w[name] = (deviation * rng.standard_normal(shape)).astype(np.float32)
    return w


# ---- parts


def flipped(x):
    """The last two axes in turn."""
    return np.swapaxes(x, -1, -2)


def product(x, dy):
    """The gradient of W by that of y = x W: sums over all axes but the last."""
    return x.reshape(-1, x.shape[-1]).T @ dy.reshape(-1, dy.shape[-1])


def linear(w, slopes, W, b, x):
    """x W + b."""

    def back(dy):
        slopes[W] += product(x, dy)
        slopes[b] += dy.reshape(-1, dy.shape[-1]).sum(axis=0)
        return dy @ w[W].T

    return x @ w[W] + w[b], back


def step(w, slopes, part, of_x, h):
    """A step of a GRU: x W_x + b_x [B 3D] and state [B D] -> state."""
    of_h, linear_back = linear(w, slopes, f"{part}.W_h", f"{part}.b_h", h)
    D = h.shape[1]
    gates = 1 / (1 + np.exp(-of_x[:, : 2 * D] - of_h[:, : 2 * D]))
    r, z, h_n = gates[:, :D], gates[:, D:], of_h[:, 2 * D :]
    n = np.tanh(of_x[:, 2 * D :] + r * h_n)

    def back(d):
        d_n = d * (1 - z) * (1 - n * n)
        d_gates = np.concatenate([d_n * h_n, d * (h - n)], axis=1) * gates * (1 - gates)
        d_h = d * z + linear_back(np.concatenate([d_gates, d_n * r], axis=1))
        return np.concatenate([d_gates, d_n], axis=1), d_h

    return n + z * (h - n), back


def gru(w, slopes, part, x, h):
    """The states [B T D] of a GRU on x [B T X], from a state [B D]."""
    of_x, linear_back = linear(w, slopes, f"{part}.W_x", f"{part}.b_x", x)
    states, backs = [], []
    for now in np.moveaxis(of_x, 1, 0):
        h, step_back = step(w, slopes, part, now, h)
        states.append(h)
        backs.append(step_back)

    def back(d):
        d_x, d_h = np.empty_like(of_x), 0.0
        for t in reversed(range(len(backs))):
            d_x[:, t], d_h = backs[t](d[:, t] + d_h)
        return linear_back(d_x), d_h

    return np.stack(states, axis=1), back


def scores(mechanism, w, slopes, q, k):
    """Scores [B T S] of queries [B T D] and keys [B S D]."""
    if mechanism == "dot":
        return q @ flipped(k), lambda d: (d @ k, flipped(d) @ q)
    W_Q, W_K, v = (f"attention.{name}" for name in ("W_Q", "W_K", "v"))
    both = np.tanh((q @ w[W_Q])[:, :, None] + (k @ w[W_K])[:, None])  # [B T S D]

    def back(d):
        slopes[v] += product(both, d[..., None])
        d_both = d[..., None] * w[v][:, 0] * (1 - both * both)
        d_q, d_k = d_both.sum(axis=2), d_both.sum(axis=1)
        slopes[W_Q] += product(q, d_q)
        slopes[W_K] += product(k, d_k)
        return d_q @ w[W_Q].T, d_k @ w[W_K].T

    return (both @ w[v])[..., 0], back


def context(mechanism, w, slopes, q, k):
    """What queries [B T D] get of the encoder's states [B S D]: [B T D]."""
    if mechanism == "fixed":  # the last state alone
        last = np.zeros_like(k)

        def last_back(d):
            last[:, -1] = d.sum(axis=1)
            return np.zeros_like(q), last

        return np.broadcast_to(k[:, -1:], q.shape), last_back
    s, scores_back = scores(mechanism, w, slopes, q, k)
    pattern = np.exp(s - s.max(axis=-1, keepdims=True))
    pattern /= pattern.sum(axis=-1, keepdims=True)

    def back(d):
        d_pattern = d @ flipped(k)
        inner = (d_pattern * pattern).sum(axis=-1, keepdims=True)
        d_q, d_k = scores_back(pattern * (d_pattern - inner))
        return d_q, d_k + flipped(pattern) @ d

    return pattern @ k, back


# ---- the model


def bahdanau(w, slopes, x, keys):
    """Decoder states and contexts [B T D] where the state before asks, from x [B T D]."""
    s, D = keys[:, -1], keys.shape[2]
    states, contexts, backs = [], [], []
    for t in range(x.shape[1]):
        c, context_back = context("bahdanau", w, slopes, s[:, None], keys)
        both = np.concatenate([x[:, t : t + 1], c], axis=-1)
        s, gru_back = gru(w, slopes, "decoder", both, s)
        s = s[:, 0]
        states.append(s)
        contexts.append(c[:, 0])
        backs.append((context_back, gru_back))

    def back(d_states, d_contexts):
        d_x, d_keys, d_s = np.empty_like(x), np.zeros_like(keys), 0.0
        for t in reversed(range(len(backs))):
            context_back, gru_back = backs[t]
            d_both, d_s = gru_back((d_states[:, t] + d_s)[:, None])
            d_x[:, t] = d_both[:, 0, :D]
            d_q, d_k = context_back(d_both[..., D:] + d_contexts[:, t : t + 1])
            d_s, d_keys = d_s + d_q[:, 0], d_keys + d_k
        d_keys[:, -1] += d_s
        return d_x, d_keys

    return np.stack(states, axis=1), np.stack(contexts, axis=1), back


def decoder(mechanism, w, slopes, x, keys):
    """Decoder states and contexts [B T D], from x [B T D] and the encoder's states [B S D]."""
    if mechanism == "bahdanau":
        return bahdanau(w, slopes, x, keys)
    states, gru_back = gru(w, slopes, "decoder", x, keys[:, -1])
    contexts, context_back = context(mechanism, w, slopes, states, keys)

    def back(d_states, d_contexts):
        d_q, d_keys = context_back(d_contexts)
        d_x, d_s = gru_back(d_states + d_q)
        d_keys[:, -1] += d_s
        return d_x, d_keys

    return states, contexts, back


def loss_of(mechanism, w, source, target):
    """Mean cross-entropy in nats and its gradients {name: array}; the target is read one late."""
    slopes = {name: np.zeros_like(x) for name, x in w.items()}
    W_E = w["W_E"]
    begin = np.zeros((len(source), W_E.shape[1]), W_E.dtype)
    keys, encoder_back = gru(w, slopes, "encoder", W_E[source], begin)
    inputs = np.pad(target[:, :-1], ((0, 0), (1, 0)), constant_values=SYMBOLS)
    states, contexts, decoder_back = decoder(mechanism, w, slopes, W_E[inputs], keys)
    both = np.concatenate([states, contexts], axis=-1)
    pre, out_back = linear(w, slopes, "W_out", "b_out", both)
    post = np.tanh(pre)
    logits, logits_back = linear(w, slopes, "W_U", "b_U", post)
    exp = np.exp(logits - logits.max(axis=-1, keepdims=True))
    share = exp / exp.sum(axis=-1, keepdims=True)
    of_target = np.take_along_axis(share, target[..., None], axis=-1)
    np.put_along_axis(share, target[..., None], of_target - 1, axis=-1)
    d_both = out_back(logits_back(share / target.size) * (1 - post * post))
    D = W_E.shape[1]
    d_x, d_keys = decoder_back(d_both[..., :D], d_both[..., D:])
    np.add.at(slopes["W_E"], inputs, d_x)
    np.add.at(slopes["W_E"], source, encoder_back(d_keys)[0])
    return -np.log(of_target).mean(), slopes


# ---- training and files


def train(name, task, steps, seed):
    """Train one model; return its weights."""
    mechanism, width = RECIPES[name]
    w = initial(mechanism, width, np.random.default_rng(seed))
    optimizer, losses = AdamW(w, HOW.decay, HOW.betas, HOW.eps), []
    for i in range(steps):
        source, target = sequences(task, np.random.default_rng([seed, i]))
        loss, slopes = loss_of(mechanism, w, source, target)
        rate = RATE * min(1, (i + 1) / WARM_UP) * (1 - i / steps)
        optimizer.step(clipped(slopes, HOW.clip), rate)
        losses.append(loss)
        if (i + 1) % REPORT_STEPS == 0 or i + 1 == steps:
            mean = np.mean(losses[-REPORT_STEPS:])
            print(f"{name}  step {i + 1}  loss {mean:.3f}", flush=True)
    return w


def main():
    """Train the models that are not there yet, and write them in float16 to one file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", required=True, type=Path, help="folder for the files")
    parser.add_argument("--task", choices=("copy", "reverse"), default="copy")
    parser.add_argument("--only", choices=RECIPES, help="train this one and write no common file")
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    arrays = {}
    names = [given.only] if given.only else [*RECIPES]
    for name in names:
        path = given.out / f"{given.task}-{name}.safetensors"
        if not path.exists():
            write(path, save(train(name, given.task, given.steps, given.seed)))
        arrays |= {f"{name}.{key}": x.astype(np.float16) for key, x in load_file(path).items()}
    if not given.only:
        write(given.out / "model.safetensors", save(arrays, metadata={"task": given.task}))


if __name__ == "__main__":
    main()
