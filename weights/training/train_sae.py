"""Makes tiny-stories-sae: a sparse autoencoder of the stream of tiny-stories before its layer 2.

    python -m minitx.weights.training.train_sae --out FOLDER

    f = the K largest of relu((x - b_dec) W_enc + b_enc),   x' = f W_dec + b_dec

Least squares on stories from their grammar (stories.py), in NumPy: the gradient is written out.
Rows of W_dec have length 1. A feature that was never active in so many steps begins again at a row
that is reconstructed badly. D numbers, F features, K active at once, N rows of a step.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

import minitx
from minitx.learning.adamw import AdamW, rate_of
from minitx.weights import stories

POINT, HOOK = ("resid_pre", 2), "blocks.2.hook_resid_pre"
F, K = 256, 8
TEXTS, SENTENCES = 3000, 12  # stories that are read, and sentences of each
STEPS, N, RATE, DEAD = 4000, 1024, 2e-3, 400


def rows_of(model, n, seed=0):  # -> [tokens D]
    """The stream of n texts."""
    texts = (stories.story(SENTENCES, seed=(seed + i)) for i in range(n))
    ids = (model.tokenizer.encode(text)[: model.config.n_ctx] for text in texts)
    return np.concatenate([minitx.run(model, row, [POINT])[POINT][0] for row in ids])


def encoded(w, x):
    """The features of rows, [N F]."""
    h = np.maximum((x - w["b_dec"]) @ w["W_enc"] + w["b_enc"], 0)
    least = np.partition(h, -K, axis=1)[:, -K, None]
    return np.where(h >= least, h, 0)


def gradients(w, x):
    """Of half the mean squared error, and the features and errors of the rows."""
    f = encoded(w, x)
    error = f @ w["W_dec"] + w["b_dec"] - x
    e = error / len(x)
    g = (e @ w["W_dec"].T) * (f > 0)
    centred = x - w["b_dec"]
    of_bias = e.sum(axis=0) - w["W_enc"] @ g.sum(axis=0)
    slopes = {"W_enc": centred.T @ g, "b_enc": g.sum(axis=0), "b_dec": of_bias}
    return slopes | {"W_dec": f.T @ e}, f, error


def trained(x, steps=STEPS, seed=0):
    """The arrays of an autoencoder of these rows [tokens D]."""
    rng = np.random.default_rng(seed)
    mean = x.mean(axis=0)
    W = rng.permutation(x)[:F] - mean
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    w = {"W_enc": W.T.copy(), "W_dec": W.copy(), "b_enc": np.zeros(F, x.dtype), "b_dec": mean}
    descent = AdamW(w, decay=0.0)
    last_active = np.zeros(F, int)
    for step in range(steps):
        batch = x[rng.integers(len(x), size=N)]
        slopes, f, error = gradients(w, batch)
        descent.step(slopes, rate_of(step, steps, RATE))
        w["W_dec"] /= np.linalg.norm(w["W_dec"], axis=1, keepdims=True)
        last_active[f.any(axis=0)] = step
        dead = np.flatnonzero(step - last_active > DEAD)
        if step < 0.8 * steps and len(dead):
            begin_again(w, descent, dead, error, last_active, step)
    return w


def begin_again(w, descent, dead, error, last_active, step):
    """Turn dead features to the rows of a step that are reconstructed worst."""
    dead = dead[:N]
    worst = -error[np.argsort(-(error * error).sum(axis=1))[: len(dead)]]
    worst /= np.linalg.norm(worst, axis=1, keepdims=True)
    w["W_dec"][dead], w["W_enc"][:, dead], w["b_enc"][dead] = worst, worst.T, 0
    last_active[dead] = step
    for moments in (descent.first, descent.second):
        moments["W_dec"][dead], moments["W_enc"][:, dead], moments["b_enc"][dead] = 0, 0, 0


def save(folder, w):
    """The files that `minitx.load_sae` reads."""
    folder.mkdir(parents=True, exist_ok=True)
    D = len(w["b_dec"])
    cfg = {"architecture": "topk", "k": K, "d_in": D, "d_sae": F, "hook_name": HOOK}
    cfg |= {"model_name": "tiny-stories", "dtype": "float16"}
    (folder / "cfg.json").write_text(json.dumps(cfg, indent=1) + "\n")
    half = {name: x.astype(np.float16) for name, x in w.items()}
    save_file(half, folder / "sae_weights.safetensors")


def main():
    """Train and write it; print how well it reconstructs stories that it has not seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    out = parser.parse_args().out
    model = minitx.load("tiny-stories")
    save(out, trained(rows_of(model, TEXTS)))
    print(minitx.load_sae(out).measure(rows_of(model, 100, seed=TEXTS)))


if __name__ == "__main__":
    main()
