"""A recurrent encoder-decoder: what the decoder gets of the source is all that its kinds differ in.

The encoder is a GRU that reads the source, one symbol a step. The decoder is another, which starts
from the encoder's last state s_0 = h_S and writes one symbol a step:

    s_t = GRU(W_E[y_{t-1}], s_{t-1})
    c_t = sum_j a_tj h_j                        context: the encoder's states, weighted
    y_t = argmax(tanh([s_t, c_t] W_out + b_out) W_U + b_U)

    fixed      a_tS = 1                         the last state alone (Cho et al. 2014)
    bahdanau   v^T tanh(W_Q s_{t-1} + W_K h_j)  before the softmax over j (Bahdanau et al. 2015)
    additive   v^T tanh(W_Q s_t + W_K h_j)      likewise, with the query of the next one
    dot        s_t^T h_j                        likewise (Luong et al. 2015)

Bahdanau et al. ask with the state before the step, and the step reads the context:
s_t = GRU([W_E[y_{t-1}], c_t], s_{t-1}). In `additive` and `dot` the new state asks.

Axes: B sequences, S source places, T steps, D width, V symbols. Read downward: the bundled file,
one step of a GRU, the encoder, the scores, one step of the decoder, the decoder.
"""

from typing import NamedTuple

import numpy as np
import scipy
from safetensors.numpy import load_file

from minitx.weights import local

FOLDER = local.BUNDLED / "recurrent-toy"


class Decoded(NamedTuple):
    """What a decoder writes, and how it came to it."""

    output: np.ndarray  # symbols [B T]
    logits: np.ndarray  # [B T V]
    states: np.ndarray  # of the decoder [B T D]
    pattern: np.ndarray  # weight of each source place at each step [B T S]
    queries: np.ndarray  # the states that ask [B T D]


def load(dtype=np.float64):
    """The bundled models: {name: {weight's name: array}}.

    >>> {name: n_parameters(w) for name, w in load().items()}
    {'additive': 39136, 'bahdanau': 46048, 'dot': 34480, 'fixed-wide': 133456, 'fixed': 34480}
    """
    models = {}
    for name, x in sorted(load_file(FOLDER / local.MODEL).items()):
        model, _, weight = name.partition(".")
        models.setdefault(model, {})[weight] = x.astype(dtype)
    return models


def n_parameters(w):
    """The number of learned parameters."""
    return sum(x.size for x in w.values())


def step(w, part, x, h):
    """One step of a GRU, "encoder" or "decoder": input x and state h -> state, each [B D].

    r, z = σ(x W_x + b_x + h W_h + b_h), n = tanh(x W_x + b_x + r (h W_h + b_h)), each with its own
    third of the columns; h <- (1 - z) n + z h.
    """
    of_x = x @ w[f"{part}.W_x"] + w[f"{part}.b_x"]
    of_h = h @ w[f"{part}.W_h"] + w[f"{part}.b_h"]
    x_r, x_z, x_n = np.split(of_x, 3, axis=-1)
    h_r, h_z, h_n = np.split(of_h, 3, axis=-1)
    r, z = scipy.special.expit(x_r + h_r), scipy.special.expit(x_z + h_z)
    n = np.tanh(x_n + r * h_n)
    return (1 - z) * n + z * h


def encode(w, source):
    """States of the encoder after each symbol of the source [B S] -> [B S D]."""
    W_E = w["W_E"]
    h = np.zeros((len(source), W_E.shape[1]), W_E.dtype)
    states = []
    for symbols in source.T:
        h = step(w, "encoder", W_E[symbols], h)
        states.append(h)
    return np.stack(states, axis=1)


def fixed(w, q, k):
    """All weight on the last place, whatever the decoder's state: [B D], [B S D] -> [B S]."""
    pattern = np.zeros(k.shape[:2], k.dtype)
    pattern[:, -1] = 1
    return pattern


def additive(w, q, k):
    """Attention by a small network that reads query and key: [B D], [B S D] -> [B S]."""
    queries, keys = q @ w["attention.W_Q"], k @ w["attention.W_K"]
    both = np.tanh(queries[:, None] + keys)
    scores = (both @ w["attention.v"])[..., 0]
    return scipy.special.softmax(scores, axis=-1)


def dot(w, q, k):
    """Attention by the product of query and key, without a parameter: [B D], [B S D] -> [B S]."""
    scores = (k @ q[..., None])[..., 0]
    return scipy.special.softmax(scores, axis=-1)


KINDS = {
    "fixed": fixed,
    "fixed-wide": fixed,
    "bahdanau": additive,
    "additive": additive,
    "dot": dot,
}


class Step(NamedTuple):
    """One step of the decoder."""

    state: np.ndarray  # [B D]
    query: np.ndarray  # the state that asks [B D]
    pattern: np.ndarray  # [B S]
    context: np.ndarray  # [B D]


def advance(name, w, x, s, keys):
    """One step of the decoder on a symbol x [B D], from state s [B D] and keys [B S D] -> Step."""
    if name == "bahdanau":
        pattern = KINDS[name](w, s, keys)
        context = weighted(pattern, keys)
        both = np.concatenate([x, context], axis=-1)
        return Step(step(w, "decoder", both, s), s, pattern, context)
    s = step(w, "decoder", x, s)
    pattern = KINDS[name](w, s, keys)
    return Step(s, s, pattern, weighted(pattern, keys))


def weighted(pattern, keys):
    """Mean of the encoder's states with these weights: [B S], [B S D] -> [B D]."""
    return (pattern[:, None] @ keys)[:, 0]


def decode(name, w, source, n=None, target=None):
    """Decode n symbols, as many as the source [B S] has if None -> Decoded.

    name: one of KINDS. Each step reads the symbol written before it or, with `target` [B T], the
    symbol that should have been.

    >>> decode("dot", load()["dot"], np.array([[7, 1, 1, 12]])).output
    array([[ 7,  1,  1, 12]])
    """
    W_E = w["W_E"]
    keys = encode(w, source)
    s = keys[:, -1]
    y = np.full(len(source), len(W_E) - 1)  # the last row of the embedding starts a sequence
    steps = []
    for t in range(n or source.shape[1]):
        s, query, pattern, context = advance(name, w, W_E[y], s, keys)
        x = np.tanh(np.concatenate([s, context], axis=-1) @ w["W_out"] + w["b_out"])
        logits = x @ w["W_U"] + w["b_U"]
        output = logits.argmax(axis=-1)
        y = output if target is None else target[:, t]
        steps.append(Decoded(output, logits, s, pattern, query))
    return Decoded(*(np.stack(values, axis=1) for values in zip(*steps)))
