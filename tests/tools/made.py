"""Attention-only models of two layers whose circuit is known, because it was made by hand.

`induction()`: L0H0 writes to each token the word before it; L1H1 looks, by its keys, for a token
that came after the present word, and writes that token's word to the logits. The other heads write
nothing. `stand_ins()`: L0H0 and L0H1 both write the word before; each alone is enough for L1H1.

The stream has columns of their own for words, words before, positions and output, one for each
word or position. Norms do nothing: their eps is so large that they divide by a constant.
"""

from dataclasses import replace

import numpy as np

import minitx
from minitx import weights
from minitx.arrays import Layer, Weights

V, P = 32, 64  # words, positions
WORD, BEFORE, OUT = (slice(i * V, (i + 1) * V) for i in range(3))
PLACE = slice(3 * V, 3 * V + P)
D, H, d = 3 * V + P, 2, 64
EPS = 1e10
SHARP = 30.0  # the score of a match; others are 0


def induction(sharp=SHARP):
    """The previous-token head L0H0 and the induction head L1H1 that reads it through its keys."""
    return build({(0, 0): previous(), (1, 1): matching(sharp)})


def stand_ins():
    """Two previous-token heads of layer 0, either of which is enough for L1H1."""
    return build({(0, 0): previous(), (0, 1): previous(), (1, 1): matching(SHARP)})


def previous():
    """Looks at the place before and writes its word as the word before."""
    head = nothing()
    head["W_Q"][PLACE, :P] = SHARP * np.eye(P, k=-1)
    head["W_K"][PLACE, :P] = np.eye(P)
    head["W_V"][WORD, :V] = np.eye(V)
    head["W_O"][:V, BEFORE] = np.eye(V)
    return head


def matching(sharp):
    """Looks for a token that comes after the present word, and writes its word to the output."""
    head = nothing()
    head["W_Q"][WORD, :V] = sharp * np.eye(V)
    head["W_K"][BEFORE, :V] = np.eye(V)
    head["W_V"][WORD, :V] = np.eye(V)
    head["W_O"][:V, OUT] = np.eye(V)
    return head


def nothing():
    head = {name: np.zeros((D, d)) for name in ("W_Q", "W_K", "W_V")}
    return head | {"W_O": np.zeros((d, D))}


def build(heads):
    """A model with these heads {(layer, head): {name: array}}; the others write nothing."""
    bundle = minitx.load(weights.find("tiny-gpt2"), dtype=np.float64)
    sizes = {"n_layers": 2, "n_heads": H, "d_model": D, "d_mlp": 1, "d_kv": d, "eps": EPS}
    sizes |= {"n_vocab": V, "n_ctx": P, "n_pos": P, "n_types": 0, "scale_attn": False}
    cfg = replace(bundle.config, rms_norm=True, tied=False, **sizes)
    W_E, W_pos, W_U = np.zeros((V, D)), np.zeros((P, D)), np.zeros((D, V))
    W_E[:, WORD] = np.eye(V)
    W_pos[:, PLACE] = np.eye(P)
    W_U[OUT] = np.eye(V)
    gain = np.full(D, EPS**0.5)
    arrays = Weights(W_E=W_E, W_pos=W_pos, W_U=W_U, ln_final_w=gain)
    layers = tuple(layer(i, heads) for i in range(cfg.n_layers))
    return replace(bundle, config=cfg, weights=arrays, layers=layers, tokenizer=None)


def layer(index, heads):
    """A layer of these heads, without biases; its MLP writes nothing."""
    arrays = {name: np.zeros((D, H * d)) for name in ("W_Q", "W_K", "W_V")}
    arrays["W_O"] = np.zeros((H * d, D))
    for (of_layer, head), parts in heads.items():
        inside = slice(head * d, (head + 1) * d)
        if of_layer == index:
            for name in ("W_Q", "W_K", "W_V"):
                arrays[name][:, inside] = parts[name]
            arrays["W_O"][inside] = parts["W_O"]
    arrays |= {"W_in": np.zeros((D, 1)), "b_in": np.zeros(1), "W_out": np.zeros((1, D))}
    arrays |= {f"ln{i}_w": np.full(D, EPS**0.5) for i in (1, 2)}
    return Layer(index=index, **arrays)


def pairs(n=6, seed=0):
    """[n 10] twice, and [n 2]: A B … A, with another word for the first A; B, and any word.

    What L1H1 finds in the clean texts is B. In the corrupt ones it finds nothing.
    """
    rng = np.random.default_rng(seed)
    clean = np.array([rng.permutation(V)[:11] for _ in range(n)])
    answers = clean[:, [3, 10]]
    clean = clean[:, :10].copy()
    clean[:, 9] = clean[:, 2]
    corrupt = clean.copy()
    corrupt[:, 2] = [np.setdiff1d(np.arange(V), row)[0] for row in clean]
    return clean, corrupt, answers
