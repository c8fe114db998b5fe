"""A position table that is learned anew, on documents whose words stand farther apart.

After every word come some fillers, tokens for what no vocabulary has. All arrays but the table are
as they were, the table begins at small random numbers and follows the loss of hidden words.

n words of a document, T = (1 + fillers) n tokens of a spread one and its special tokens, R offsets.
"""

import numpy as np

import minitx
from minitx.learning.parameters import parameters, writable

from ..contract import NotApplicable
from ..maths import profiles
from ..measures import losses
from ..texts import corpus

FILLERS = "<unk>", "[UNK]"
FRESH = 0.02  # deviation of the first rows
USUAL = 128  # tokens of a document: of 256, tiny-roberta learns less in as many steps
LEAST = 8  # words of a document


def n_words(model, fillers, tokens=0):
    """Words of a document that has this many tokens once it is spread (0: USUAL, or the longest).

    Raises NotApplicable where the model reads too few for a head to look LEAST words away,
    ValueError for other numbers of tokens.
    """
    ends = sum(map(len, corpus.specials(model)))
    longest, least = model.config.n_ctx, LEAST * (1 + fillers) + ends
    if longest < least:
        reads = f"this model reads at most {longest}"
        raise NotApplicable(f"documents spread with {fillers} fillers have {least} tokens; {reads}")
    if tokens and not least <= tokens <= longest:
        raise ValueError(f"--tokens {tokens}: spread documents have {least} to {longest} here")
    tokens = tokens or min(longest, max(least, USUAL))
    return (tokens - ends) // (1 + fillers)


class Spread:
    """Documents [N n] of words with fillers after each: [N T]; hidden words are to be told."""

    def __init__(self, model, rows, fillers, share=0.15):
        before, after = map(len, corpus.specials(model))
        self.mask_id = losses.mask_token(model.tokenizer)
        self.share, self.groups, self.plain = share, np.arange(len(rows)), rows
        words = rows[:, before : rows.shape[1] - after]
        shape = len(rows), words.shape[1], fillers
        fill = np.full(shape, losses.token_of(model.tokenizer, FILLERS))
        spread = np.concatenate([words[..., None], fill], axis=2).reshape(len(rows), -1)
        ends = rows[:, :before], rows[:, rows.shape[1] - after :]
        self.rows = np.concatenate([ends[0], spread, ends[1]], axis=1)
        self.words = before + np.arange(words.shape[1]) * (1 + fillers)  # their places

    def batch(self, numbers, rng):
        """These documents, a share of the words hidden -> (tokens, targets) [B T]."""
        tokens = self.rows[numbers]
        draws = rng.random((len(numbers), len(self.words))) < self.share
        draws[:, 0] |= ~draws.any()
        is_told = np.zeros(tokens.shape, bool)
        is_told[:, self.words] = draws
        targets = np.where(is_told, tokens, -100)
        return np.where(is_told, self.mask_id, tokens), targets


def fresh(model, seed):
    """A copy of the model with a new table, which may be changed in place; the copy's arrays."""
    copy = writable(model)
    table = copy.weights.W_pos
    drawn = np.random.default_rng(seed).standard_normal(table.shape)
    table[...] = FRESH * drawn
    table[: model.config.offset] = 0
    return copy, parameters(copy)


def attention(model, rows, queries, reach):
    """Mean attention of these queries to the key at each offset, of every head: [L H R].

    Each document counts once; a query counts for the offsets at which it has a key.
    """
    total = 0.0
    for row in rows:
        pattern = minitx.run(model, row, "pattern").stack("pattern")[:, 0]
        total = total + at_offsets(pattern[:, :, queries], queries, reach)
    return total / len(rows)


def at_offsets(pattern, queries, reach):
    """Mean over queries [n] of their attention [... n S] at each offset: [... R]."""
    means = []
    for offset in profiles.offsets(reach):
        keys = queries + offset
        inside = (keys >= 0) & (keys < pattern.shape[-1])
        picked = pattern[..., np.flatnonzero(inside), keys[inside]]
        means.append(picked.mean(axis=-1, dtype=np.float64))
    return np.stack(means, axis=-1)
