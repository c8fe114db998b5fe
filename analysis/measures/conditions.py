"""Four inputs to the same heads: a text, its words shuffled, positions alone, and words alone.

What a head does on positions alone needs no words, what it does on words alone no positions; what
it does on the text and on shuffled words but on neither alone is built on both.

L layers, H heads, T tokens, D width, d width of a head, R lags.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from ..maths import profiles
from ..maths import sources as maths
from . import heads, inputs


class Condition(NamedTuple):
    """One input: what it is called, whether words are shuffled, and what is edited."""

    words: str
    shuffles: bool = False
    edits: Mapping = MappingProxyType({})


CONDITIONS = {
    "text": Condition("text"),
    "shuffled": Condition("words shuffled", shuffles=True),
    "positions": Condition("positions alone", edits={"embed": np.zeros_like}),
    "words": Condition("words alone", edits={"pos_embed": np.zeros_like}),
}
SAME = "positions"  # the condition that is the same for all documents of a length


def tokens(documents, index, document, name, seed):
    """Document number `index` [T] as it is read under a condition: its words shuffled, or as is."""
    if CONDITIONS[name].shuffles:
        return documents.shuffled(index, document, seed)
    return document


def head_profiles(model, document, name):
    """Attention profile of every head under a condition, `tokens` being the document: [L H R].

    Words at zero are all words, special tokens too; through all layers only positions and token
    types are read then, and any document of T tokens gives the same.
    """
    return heads.head_profiles(model, document, CONDITIONS[name].edits)


def stream_and_profiles(model, document, name):
    """Input X [L T D] of every attention layer under a condition, and profiles [L H R]."""
    attention = []

    def note_profile(pattern):
        attention.append(profiles.profile(pattern[0]))
        return pattern

    edits = {**CONDITIONS[name].edits, "pattern": note_profile}
    return inputs.of_text(model, document, edits), np.array(attention)


def scores_by_lag(model, X, reach=profiles.REACH):
    """Sum of the scores at each lag near 0, for every head: X [L T D] -> [L H R]."""
    by_layer = []
    for w, x in zip(model.layers, X):
        q = _by_head(x @ w.W_Q + w.b_Q, model)
        k = _by_head(x @ w.W_K + w.b_K, model)
        sums = maths.lag_sums(q[None], k[None], reach)[0, 0]
        by_layer.append(sums * model.config.attn_scale(w.index))
    return np.array(by_layer)


def _by_head(x, model):
    """[T D] -> [H T d]."""
    return x.reshape(len(x), model.config.n_heads, -1).swapaxes(0, 1)
