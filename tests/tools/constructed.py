"""Models whose mechanism is known, because it was built in.

Four masked models of two layers, four heads and the tokenizer of tiny-roberta:

- `waves`: heads of both layers read positions: queries are the keys' waves, moved by a known lag;
- `copies`: a head of layer 0 copies the word before each token and another erases the positions, so
  that a head of layer 1 can only find its neighbour by the copied word;
- `neither`: all heads read words; positions are noise that no head reads;
- `strengths`: heads give a known share of their attention to their lag and the rest to the first
  token, in documents of up to 512 tokens.

The stream holds positions, words and copied words in columns of their own, each column once more
with the other sign: then every vector has mean 0, all tokens have the same length, and a norm only
multiplies by one number. MLPs write nothing.
"""

from dataclasses import replace

import numpy as np

import minitx
from minitx import weights
from minitx.arrays import Layer, Weights

H, T = 4, 128  # heads, places
PERIODS = np.array([2.2, 2.6, 3.1, 3.7, 4.9, 6.3, 8.7, 11.9, 17.0, 23.0, 31.0, 47.0])  # in tokens
FAST, SLOW = np.arange(4), np.arange(8, 12)  # waves of up to 4 tokens, of more than 16
ALL = np.arange(len(PERIODS))
POSITIONS, WORDS, COPIES = (range(24 * i, 24 * (i + 1)) for i in range(3))  # columns of the stream
HALF = 72
D = 2 * HALF  # the columns, and once more with the other sign
d = D // H
SHARP = 10.0  # how far the score of the right key stands above the next best

# of `waves`: (lag, waves that the head reads); the head looks at that offset
LAGS = {
    (0, 0): (-1, ALL),
    (0, 1): (+1, FAST),
    (0, 2): (-3, SLOW),
    (0, 3): (+2, ALL),
    (1, 0): (-2, ALL),
    (1, 1): (+3, FAST),
    (1, 2): (+1, SLOW),
}
# of `strengths`: (lag, share of the attention)
SHARES = {
    (0, 0): (-1, 0.02),
    (0, 1): (+1, 0.05),
    (0, 2): (-3, 0.15),
    (0, 3): (+2, 0.3),
    (1, 0): (-2, 0.6),
    (1, 1): (+3, 0.95),
}
LONG = 512  # places of `strengths`
FIRST, OTHERS = 48, 49  # columns of the stream: what marks the first place, and all others
COPIED = -1  # of `copies`: L0H0 copies the word at this offset, so that L1H0 looks at the opposite
UNRELATED = +2  # L0H1 looks there and copies nothing


def waves():
    """Every head of LAGS reads positions: it looks at its lag."""
    heads = {place: position_head(*choice) for place, choice in LAGS.items()}
    return build(wave_table(), heads)


def copies():
    """L0H0 copies the word before, L0H3 erases the positions; L1H0 reads the copied word."""
    heads = {(0, 0): position_head(COPIED, ALL) | move(WORDS, COPIES)}
    heads[0, 1] = position_head(UNRELATED, ALL)
    heads[0, 3] = position_head(0, ALL) | move(POSITIONS, POSITIONS, -1.0)
    heads[1, 0] = word_head(WORDS, COPIES)
    return build(wave_table(), heads)


def neither():
    """Two heads look for their own word, the others everywhere; positions are noise."""
    table = np.zeros((T, HALF))
    table[:, POSITIONS] = np.random.default_rng(2).standard_normal((T, len(POSITIONS))) * 0.7
    return build(table, {(0, 0): word_head(WORDS, WORDS), (1, 1): word_head(WORDS, WORDS)})


def strengths(planted=SHARES):
    """Every head planted gives a share of its attention to its lag, and the rest to place 0."""
    table = wave_table(LONG)
    table[1:, OTHERS] = 1
    table[0] = 0
    table[0, FIRST] = np.sqrt(len(PERIODS) + 1)  # as long as the other rows
    heads = {place: sharing_head(*choice) for place, choice in planted.items()}
    return build(table, heads)


def sharing_head(lag, share, waves_read=ALL):
    """A position head whose queries fit the first place, too: odds of the lag share : 1 - share."""
    parts = position_head(lag, waves_read, LONG)
    query, key = wave_table(LONG)[[9, 9 + lag]]
    at_lag = (query @ parts["W_Q"]) @ (key @ parts["W_K"])  # the score there, before the norm
    length = 2 * (len(WORDS) + len(PERIODS) + 1)  # squared, of a token: a norm makes it D
    behind = np.log(share / (1 - share)) * length / D
    column = len(POSITIONS)
    parts["W_Q"][OTHERS, column] = (at_lag - behind) / np.sqrt(len(PERIODS) + 1)
    parts["W_K"][FIRST, column] = 1.0
    return parts


def wave_table(places=T):
    """The position table's first half: cosine and sine of every wave: [places HALF]."""
    table = np.zeros((places, HALF))
    angles = 2 * np.pi * np.arange(places)[:, None] / PERIODS
    table[:, POSITIONS[::2]] = np.cos(angles)
    table[:, POSITIONS[1::2]] = np.sin(angles)
    return table


def position_head(lag, waves_read, places=T):
    """Queries are the given waves moved by `lag`, keys the waves as they are; SHARP."""
    W_Q, W_K = moved_waves(lag, waves_read)
    fits = fit(np.arange(places), waves_read)
    return {"W_Q": W_Q * SHARP / (fits[0] - fits[1:].max()), "W_K": W_K}


def fit(distances, waves_read):
    """Score by the distance from the right key, in tokens: [...] -> [...]."""
    return np.cos(2 * np.pi * np.asarray(distances)[..., None] / PERIODS[waves_read]).sum(axis=-1)


def moved_waves(lag, waves_read):
    """W_Q and W_K [HALF d]: the given waves moved by `lag`, and as they are."""
    W_Q, W_K = np.zeros((2, HALF, d))
    angles = 2 * np.pi * lag / PERIODS
    for i in waves_read:
        columns = POSITIONS[2 * i : 2 * i + 2]
        cos, sin = np.cos(angles[i]), np.sin(angles[i])
        W_Q[columns, 2 * i : 2 * i + 2] = [[cos, sin], [-sin, cos]]
        W_K[columns, 2 * i : 2 * i + 2] = np.eye(2)
    return W_Q, W_K


def word_head(queried, looked_up):
    """The query's columns are looked up in the key's: [HALF d] each."""
    W_Q, W_K = np.zeros((2, HALF, d))
    places = np.arange(len(queried))
    W_Q[queried, places] = SHARP / len(places)
    W_K[looked_up, places] = 1.0
    return {"W_Q": W_Q, "W_K": W_K}


def move(source, target, factor=1.0):
    """Values are some columns of the stream; they are written to others, times `factor`."""
    W_V, W_O = np.zeros((HALF, d)), np.zeros((d, HALF))
    places = np.arange(len(source))
    W_V[source, places] = 1.0
    W_O[places, target] = factor
    return {"W_V": W_V, "W_O": W_O}


def build(table, heads):
    """A model with this position table [places HALF] and the {(layer, head): {name: weights}}."""
    bundle = minitx.load(weights.find("tiny-roberta"), dtype=np.float64)
    sizes = {"n_layers": 2, "n_heads": H, "d_model": D, "d_mlp": 1, "eps": 1e-12}
    places = {"n_ctx": len(table), "n_pos": len(table), "offset": 0}
    cfg = replace(bundle.config, **places, scale_attn=False, **sizes)
    signs = np.random.default_rng(1).choice([-1.0, 1.0], (cfg.n_vocab, len(WORDS)))
    W_E = np.zeros((cfg.n_vocab, HALF))
    W_E[:, WORDS] = signs
    W_E = both_signs(W_E)
    ones, zeros = np.ones(D), np.zeros(D)
    arrays = {"W_E": W_E, "W_pos": both_signs(table), "W_type": np.zeros((1, D)), "W_U": W_E.T}
    arrays |= {"ln_embed_w": ones, "ln_embed_b": zeros, "b_U": np.zeros(cfg.n_vocab)}
    arrays |= {"ln_head_w": None, "ln_head_b": None, "W_head": None, "b_head": None}
    arrays |= {"ln_final_w": None, "ln_final_b": None}
    layers = tuple(layer(i, heads) for i in range(cfg.n_layers))
    return replace(bundle, config=cfg, weights=Weights(**arrays), layers=layers)


def both_signs(x):
    """Columns [... HALF] and, beside them, the columns with the other sign: [... D]."""
    return np.concatenate([x, -x], axis=-1)


def layer(index, heads):
    """A layer of these heads; the others have weights of zero and look at all keys alike."""
    arrays = {name: np.zeros((D, D)) for name in ("W_Q", "W_K", "W_V", "W_O")}
    for (of_layer, head), parts in heads.items():
        if of_layer != index:
            continue
        inside = slice(head * d, (head + 1) * d)
        for name, W in parts.items():
            if name == "W_O":
                arrays[name][inside] = both_signs(W)
            else:  # the two signs of a column say the same: half of each is read
                arrays[name][:, inside] = both_signs(W.T / 2).T
    arrays |= {name: np.zeros(D) for name in ("b_Q", "b_K", "b_V", "b_O", "b_out")}
    arrays |= {"W_in": np.zeros((D, 1)), "b_in": np.zeros(1), "W_out": np.zeros((1, D))}
    for norm in ("ln1", "ln2"):
        arrays |= {f"{norm}_w": np.ones(D), f"{norm}_b": np.zeros(D)}
    return Layer(index=index, **arrays)
