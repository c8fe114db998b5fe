"""Models whose heads have a direction: by positions, of a chosen size, or by words alone.

By words a head knows its neighbours: the embedding of a word holds, beside the word, the words that
stand before it in the sample. So its heads look at the token before, and no position tells them. In
`copied` a second layer reads words that such a head has copied; in `near` the same head also reads
slow waves, a wide bump around its own token. `noise` is a position table that no head reads.

In `written_over` no head looks anywhere; MLPs write what words make over some of the positions. In
`forgetful` layer 0 takes positions away that layer 1 would need.
"""

from dataclasses import replace

import numpy as np
import scipy
import tiny
from constructed import (
    ALL,
    COPIES,
    HALF,
    POSITIONS,
    SLOW,
    WORDS,
    T,
    both_signs,
    build,
    d,
    fit,
    move,
    moved_waves,
    position_head,
    wave_table,
)
from constructed import D as WIDTH

from minitx.analysis.texts import corpus
from minitx.arrays import Layer

QUIET = 0.3  # amplitude of the waves that heads of one band read, beside 1 of the others
NOISE = 0.3  # amplitude of position noise
BUMP = 3.0  # of slow waves, beside words
SHARP = 8.0  # the score of the right neighbour, by words
NEURONS, LOUD = 256, 4.0  # of MLPs that write over positions, and how loud they are
READ = 50  # documents whose neighbours are known
IN_RUNS = np.arange(300, 330)  # words of `runs`


def by_positions(lags, share, tokens=T, waves_read=ALL, written=False):
    """Heads of layer 0, one for each lag, that give it this share of attention, the rest to all.

    Waves that are not read are louder, so that hardly any direction is lost if their energy is
    removed evenly. written: they copy the words there, which as many heads of layer 1 write.
    """
    amplitude = np.where(np.isin(ALL, waves_read), QUIET if len(waves_read) < len(ALL) else 1, 1)
    table = wave_table(tokens)
    table[:, POSITIONS] *= np.repeat(amplitude, 2)
    length = 2 * (len(WORDS) + np.square(amplitude).sum())  # squared, of a token: a norm makes it D
    heads = {}
    for head, lag in enumerate(lags):
        W_Q, W_K = moved_waves(lag, waves_read)
        sharp = _sharpness(lag, share, tokens, waves_read) / amplitude[waves_read[0]] ** 2
        heads[0, head] = {"W_Q": W_Q * sharp * length / WIDTH, "W_K": W_K}
        if written:
            heads[0, head] |= move(WORDS, COPIES)
            heads[1, head] = position_head(0, ALL) | move(COPIES, WORDS)
    return build(table, heads)


def _sharpness(lag, share, tokens, waves_read):
    """The factor of the scores with which a lag gets this share, on average over queries."""
    places = np.arange(tokens)
    fits = fit(places - places[:, None] - lag, waves_read)  # [queries keys]
    queries = np.arange(max(0, -lag), tokens - max(0, lag))

    def too_much(sharp):
        attention = scipy.special.softmax(sharp * fits, axis=1)
        return attention[queries, queries + lag].mean() - share

    return scipy.optimize.brentq(too_much, 0, 200)


def by_words(kind, seed=0, places=T):
    """A null model: `words`, `copied` or `near`."""
    rng = np.random.default_rng(seed)
    table = NOISE * rng.standard_normal((places, HALF))
    table[:, [*WORDS, *COPIES]] = 0
    factor = SHARP / len(WORDS) * 2 * (len(WORDS) + len(COPIES)) / WIDTH
    heads = {(0, head): _word_head(COPIES, WORDS, factor) for head in range(3)}
    if kind == "copied":
        heads[0, 0] |= move(WORDS, POSITIONS, 2.0)
        heads[1, 0] = heads[1, 1] = _word_head(WORDS, POSITIONS, factor)
    if kind == "near":
        table = wave_table(places)
        heads = {place: _with_bump(parts, factor) for place, parts in heads.items()}
    model = build(table, heads)
    return tiny.with_weights(model, W_E=_with_neighbours(model, rng))


def written_over(stay, size, seed=0, places=T):
    """MLPs write over all but this share of the waves, which are `size` of words, and elsewhere."""
    rng = np.random.default_rng(seed)
    model = build(size * wave_table(places), {})
    lost = [*COPIES, *POSITIONS[2 * round(stay * len(ALL)) :]]
    layers = tuple(_writing(layer, lost, rng) for layer in model.layers)
    return replace(model, config=replace(model.config, d_mlp=NEURONS), layers=layers)


def forgetful(erased=1.0, places=T):
    """Layer 0 takes this share of the positions away; L1H0 copies the word before, if it finds it.

    It guesses the words of `runs` alone.
    """
    erase = position_head(0, ALL) | move(POSITIONS, POSITIONS, -erased)
    copy = position_head(-1, ALL) | move(WORDS, WORDS, 20.0)
    model = build(wave_table(places), {(0, 0): erase, (1, 0): copy})
    b_U = np.full(model.config.n_vocab, -20.0)
    b_U[IN_RUNS] = 0
    return tiny.with_weights(model, W_U=0.08 * model.weights.W_U, b_U=b_U)


def runs(seed=0, n=1280):
    """n token ids in which each word stands 16 times: the word before is the best guess."""
    words = np.random.default_rng(seed).choice(IN_RUNS, n // 16)
    return " ".join(map(str, np.repeat(words, 16)))


def _writing(layer, columns, rng):
    """The layer with an MLP that reads words alone and writes to these columns."""
    W_in, W_out = np.zeros((NEURONS, HALF)), np.zeros((NEURONS, HALF))
    W_in[:, WORDS] = rng.standard_normal((NEURONS, len(WORDS))) / len(WORDS) ** 0.5
    W_out[:, columns] = LOUD * rng.standard_normal((NEURONS, len(columns))) / NEURONS**0.5
    arrays = {"W_in": both_signs(W_in / 2).T, "b_in": np.zeros(NEURONS), "W_out": both_signs(W_out)}
    return Layer(**vars(layer) | arrays)


def _word_head(queried, looked_up, factor):
    """The query's columns are looked up in the key's, where no slow wave is read."""
    W_Q, W_K = np.zeros((2, HALF, d))
    free = np.delete(np.arange(d), np.r_[2 * SLOW, 2 * SLOW + 1])[: len(queried)]
    W_Q[queried, free] = factor
    W_K[looked_up, free] = 1.0
    return {"W_Q": W_Q, "W_K": W_K}


def _with_bump(parts, factor):
    """The same head, which also reads slow waves: a wide bump around its own token."""
    W_Q, W_K = moved_waves(0, SLOW)
    return {"W_Q": parts["W_Q"] + BUMP * factor * W_Q, "W_K": parts["W_K"] + W_K}


def _with_neighbours(model, rng):
    """The embedding with, beside each word, the signs of the words before it in the sample."""
    W_E = np.array(model.weights.W_E[:, :HALF])
    sums = np.zeros((len(W_E), len(WORDS)))
    for document in corpus.documents(model, "sample", READ, T):
        np.add.at(sums, document[1:], W_E[document[:-1]][:, WORDS])
    W_E[:, COPIES] = np.sign(sums + 1e-3 * rng.standard_normal(sums.shape))
    return both_signs(W_E)
