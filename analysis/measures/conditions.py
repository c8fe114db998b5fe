"""Five inputs to the same heads: a text, and what is left of it without words, or positions.

Its words shuffled; one of its words repeated everywhere, so that only positions tell tokens apart;
positions alone, with all words at zero, which no model ever reads; and words alone. What a head
does on a repeated word needs no words; what it does on words alone needs no positions. What it does
on the text and on shuffled words, but on neither of these, needs both.

L layers, H heads, T tokens, D width, d width of a head, R lags.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from minitx import head_weights

from ..maths import profiles
from ..maths import sources as maths
from . import heads, inputs


class Condition(NamedTuple):
    """One input: what it is called, how its words are drawn, and what is edited."""

    words: str
    drawn: str = ""  # "shuffled", or "repeated": one word of the document everywhere
    edits: Mapping = MappingProxyType({})


CONDITIONS = {
    "text": Condition("text"),
    "shuffled": Condition("words shuffled", drawn="shuffled"),
    "repeated": Condition("same word", drawn="repeated"),
    "positions": Condition("positions alone", edits={"embed": np.zeros_like}),
    "words": Condition("words alone", edits={"pos_embed": np.zeros_like}),
}
SAME = "positions"  # the condition that is the same for all documents of the same length


def tokens(documents, index, document, name, seed):
    """Document number `index` [T] as it is read under a condition."""
    if CONDITIONS[name].drawn == "shuffled":
        return documents.shuffled(index, document, seed)
    if CONDITIONS[name].drawn == "repeated":
        return repeated(documents, index, document, seed)
    return document


def repeated(documents, index, document, seed):
    """Document number `index` [T] with one of its words in place of all; special tokens stay."""
    inner = documents.ordinary(len(document))
    document = np.array(document)
    document[inner] = np.random.default_rng((seed, index)).choice(document[inner])
    return document


def head_profiles(model, document, name):
    """Attention profile of every head on the document `tokens` under a condition: [L H R].

    Words at zero include special tokens; all layers then read only positions and token types, and
    any document of T tokens gives the same.
    """
    return heads.head_profiles(model, document, CONDITIONS[name].edits)


def stream_and_profiles(model, document, name, reach=profiles.REACH):
    """A Reading: input X [L T D] of every attention layer under a condition, profiles [L H R]."""
    return inputs.with_profiles(model, document, CONDITIONS[name].edits, reach)


def reach(T):
    """Offsets at which attention is measured: up to half of a document, within which one head
    alone has to keep its offset.
    """
    return max(profiles.REACH, T // 2)


def scores_by_lag(model, X, reach=profiles.REACH):
    """Sum of the scores at each lag near 0, for every head: X [L T D] -> [L H R]."""
    by_layer, cfg = [], model.config
    for w, x in zip(model.layers, X):
        q, k = (head_weights.projected(x[None], w, cfg, letter) for letter in "QK")
        k = head_weights.for_each_head(k, cfg.n_heads, axis=1)
        sums = maths.lag_sums(q, k, reach)[0, 0]
        by_layer.append(sums * cfg.attn_scale(w.index))
    return np.array(by_layer)
