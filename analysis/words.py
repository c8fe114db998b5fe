"""Words instead of pieces: what belongs together, and attention, queries and keys of whole words.

A word is a run of letters and digits without a blank; every other sign, and every special token, stands alone.
T tokens, W words. Order: the words of a text, their names, arrays of words.
"""

import numpy as np

PART = "\N{REPLACEMENT CHARACTER}"  # what a piece of a character decodes to


def numbers(ids, decode):
    """The word that each token belongs to, from 0: [T] -> [T]. decode(ids) gives a text without special tokens."""
    found, word = [], []
    for i in np.ravel(ids).tolist():
        joined = word and decode([i]) and _goes_on(decode(word).strip(), decode([*word, i]).strip())
        word = [*word, i] if joined else [i]
        found.append(found[-1] + (not joined) if found else 0)
    return np.array(found, int)


def _goes_on(text, longer):
    """Whether a longer text goes on with the last character of a text, or only adds letters to its last letter."""
    if text.endswith(PART) and (longer == text or not longer.startswith(text)):
        return True
    ends = text[-1:] + longer[len(text):len(text) + 1]
    return longer.startswith(text) and len(ends) == 2 and all(x.isalnum() or x == PART for x in ends)


def names(ids, word, decode, pieces):
    """The text of each word, a special token as its piece: [T], [T], and [T] pieces -> [W]."""
    ids = np.ravel(ids)
    return [decode(ids[word == w]).strip() or pieces[int((word == w).argmax())] for w in range(word.max() + 1)]


def merged(pattern, q, k, word):
    """Attention [... W W], queries and keys [... W d] of words, from those of their pieces.

    Attention is summed over the pieces of the key and averaged over those of the query, so that rows still add up to
    1; the vectors of the pieces are averaged.
    """
    member = (word == np.arange(word.max() + 1)[:, None]).astype(np.float64)  # [W T]
    mean = member / member.sum(axis=1, keepdims=True)
    return mean @ pattern @ member.T, mean @ q, mean @ k


def matches(name, names):
    """Which of these names are `name`, upper and lower case being the same: [n] of bool."""
    return np.array([name.strip().casefold() == x.strip().casefold() for x in names], bool)
