"""Makes tests/golden/recurrent-toy: what torch computes with the bundled recurrent toy.

Needs torch, as make_golden.py does. recurrent.safetensors holds `source` [B S], and for each model
in float64 `NAME.logits` [B S V] and `NAME.pattern` [B S S]; the decoder reads what it should have
written.
"""

from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

from minitx.weights.training.train_recurrent import RECIPES, SYMBOLS

ROOT = Path(__file__).parents[2]


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


def main():
    torch.manual_seed(0)
    arrays = {"source": torch.randint(SYMBOLS, (3, 9))}
    weights = load_file(ROOT / "weights/recurrent-toy/model.safetensors")
    for name, (mechanism, _) in RECIPES.items():
        prefix = f"{name}."
        w = {key[len(prefix) :]: x.double() for key, x in weights.items() if key.startswith(prefix)}
        logits, pattern = forward(mechanism, w, arrays["source"], arrays["source"])
        arrays |= {f"{name}.logits": logits, f"{name}.pattern": pattern.contiguous()}
    folder = ROOT / "tests/golden/recurrent-toy"
    folder.mkdir(parents=True, exist_ok=True)
    save_file(arrays, folder / "recurrent.safetensors")


if __name__ == "__main__":
    main()
