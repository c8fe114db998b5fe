"""Which heads read what which heads write, from their weights alone (Elhage et al. 2021).

With x @ W as everywhere: a head's OV = W_V W_O and QK = W_Q W_K^T are [D D] of rank d. A later head
reads what an earlier one writes through its queries, |OV QK|, its keys, |OV QK^T|, or its values,
|OV OV'|, each Frobenius norm over the product of both. Of A B C E, with A, C [D d] and B, E [d D],
the squared norm is the sum of (A^T A M) * (M E E^T), M = B C: all of it is [d d].
H heads, L layers; other axis letters: see model.py.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np

from .. import head_weights
from ..arrays import Model
from ..inputs import check_model
from ..machine.mapped import require_arrays
from ..sampling import generator
from .scores import Scores

Through = Literal["q", "k", "v"]
QUANTILE = 0.95  # over draws, of the largest of all pairs


class Heads(NamedTuple):
    """The matrices of a layer's heads, with the gains of norms."""

    inputs: dict[str, np.ndarray]  # "q", "k", "v": [H D d]
    write: np.ndarray  # W_O [H d D]


def composition(
    model: Model,
    through: Through | Sequence[Through] = ("q", "k", "v"),
    seed: int = 0,
    *,
    n_draws: int = 20,
) -> dict[str, Scores]:
    """{"q", "k", "v": [L H L H]}: how much of a head's output a later head's weights read.

    Entry [i, h, j, g]: head g of layer j reads, through its queries, keys or values, what head h of
    layer i writes; from 0 to 1, NaN unless j > i. Where heads share keys, each reads its group's.
    `.null` is a number, since the largest pair is what one looks at: the 95% quantile over n_draws
    of the largest of all pairs, where each head's output is turned by a random orthogonal matrix.
    The norm before a layer is folded in with its gain, and a LayerNorm's mean, and the gains of
    norms of queries, keys and of what is written. Not folded in: what a norm divides by, norms
    after each addition (BERT), and rotary turns. An encoder's heads: give model.encoder.
    Raises ValueError for an unknown way to read, or weights that are not in memory.

    In a model that learned to repeat, an early head's output is read through keys:

    >>> import minitx
    >>> from minitx import circuits
    >>> keys = circuits.composition(minitx.load("tiny-induction"), "k")["k"]
    >>> keys[0, 3, 1, 0].round(2), keys.null.round(2)  # L0H3 looks at the previous token
    (np.float64(0.28), np.float64(0.12))
    """
    ways = [through] if isinstance(through, str) else list(through)
    for way in ways:
        if way not in get_args(Through):
            raise ValueError(f"through is {way!r:.80}; expected one of 'q', 'k', 'v'")
    if n_draws < 1:
        raise ValueError(f"n_draws is {n_draws!r:.80}; expected 1 or more")
    check_model(model)
    require_arrays(model, "composition")
    layers = [heads_of(w, model.config) for w in model.layers]
    rng = generator(seed)
    largest: dict[str, list] = {way: [] for way in ways}
    for _ in range(n_draws):
        writers = [heads._replace(write=turn(heads.write, rng)) for heads in layers]
        for way in ways:
            pairs = all_pairs(writers, layers, way)
            largest[way].append(np.nanmax(pairs, initial=0.0))
    results: dict[str, Scores] = {}
    for way in ways:
        null = np.quantile(largest[way], QUANTILE)
        results[way] = Scores.beside(all_pairs(layers, layers, way), null)
    return results


def heads_of(w, cfg):
    """The matrices of a layer's heads, in float64."""
    inputs = {}
    for way in get_args(Through):
        W = head_weights.matrices(w, cfg, way.upper())
        inputs[way] = W.astype(np.float64)
    write = head_weights.outputs(w.W_O, cfg.n_heads)
    write = write.astype(np.float64)
    if w.attn_out_w is not None:
        write = write * w.attn_out_w
    if cfg.pre_norm and w.ln1_w is not None:
        inputs = {way: normed(W, w.ln1_w, cfg.rms_norm) for way, W in inputs.items()}
    return Heads(inputs, write)


def normed(W, gain, rms_norm):  # [H D d], [D] -> [H D d]
    """A matrix that reads a norm's output, as one that reads the stream divided by its size."""
    W = gain[:, None] * W
    return W if rms_norm else W - W.mean(axis=1, keepdims=True)


def turn(write, rng):  # [H d D] -> [H d D]
    """Each head's W_O, its output turned by a random orthogonal matrix [D D] of its own.

    That moves the d directions of the output to a random orthonormal frame [D d], so that drawing
    the frame is enough (Stewart 1980).
    """
    H, d, D = write.shape
    frame, of_noise = np.linalg.qr(rng.standard_normal((H, D, d)))
    frame *= np.sign(np.diagonal(of_noise, axis1=1, axis2=2))[:, None]  # each sign as likely
    _, triangle = np.linalg.qr(turned(write))  # write = triangle^T (an orthonormal frame)^T
    return turned(triangle) @ turned(frame)


def all_pairs(writers, readers, way):  # -> [L H L H]
    """The composition of each head with each head of a later layer; NaN elsewhere."""
    L, H = len(writers), len(writers[0].write)
    pairs = np.full((L, H, L, H), np.nan)
    for j in range(1, L):
        first, second = reading(readers[j], way)
        for i in range(j):
            pairs[i, :, j] = composed(writers[i], first, second)
    return pairs


def reading(heads, way):  # -> C [H D d], E E^T [H d d]
    """The matrix with which a head reads, and the Gram matrix of what it makes of that."""
    if way == "v":
        return heads.inputs["v"], gram(turned(heads.write))
    other = heads.inputs["k"] if way == "q" else heads.inputs["q"]
    return heads.inputs[way], gram(other)


def composed(writer, C, by_reader):  # -> [H H]
    """|A B C E| / (|A B| |C E|) of each head that writes and each that reads."""
    A, B = writer.inputs["v"], writer.write
    by_values = gram(A)
    M = np.einsum("hdi,gie->hgde", B, C, optimize=True)
    left = by_values[:, None] @ M
    squared = product(left, M @ by_reader)
    written = product(by_values, gram(turned(B)))
    is_read = product(gram(C), by_reader)
    size = np.sqrt(written[:, None] * is_read)
    size[size == 0] = np.inf  # a head of zeros
    return np.sqrt(np.maximum(squared, 0)) / size


def turned(x):  # [... D d] -> [... d D]
    """The matrices the other way round."""
    return x.swapaxes(-1, -2)


def gram(x):  # [... D d] -> [... d d]
    """x^T x."""
    return turned(x) @ x


def product(x, y):  # [... d d] twice -> [...]
    """The sum of x times y, entry by entry."""
    return (x * y).sum(axis=(-2, -1))
