"""Words instead of pieces: which pieces are one word, and attention, queries and keys of words.

A word is a run of letters and digits without a blank; every other sign, and every special token,
stands alone. T tokens, W words.
"""

import numpy as np

PART = "\N{REPLACEMENT CHARACTER}"  # what a piece of a character decodes to


def numbers(ids, decode, second=None):
    """The number of the word that each token belongs to, from 0: [T] -> [T].

    decode(ids) gives a text without special tokens. second: where a second text begins, which a
    word of the first does not go on into.
    """
    if second:
        first = numbers(ids[:second], decode)
        return np.append(first, first[-1] + 1 + numbers(ids[second:], decode))
    by_token = []
    word = []  # the ids of the current word
    number = -1
    for token in np.ravel(ids).tolist():
        if word and decode([token]) and _belongs(word, token, decode):
            word = [*word, token]
        else:
            word = [token]
            number += 1
        by_token.append(number)
    return np.array(by_token, int)


def _belongs(word, token, decode):
    """Whether a token goes on with a word, both given as ids."""
    return _goes_on(decode(word).strip(), decode([*word, token]).strip())


def _goes_on(text, longer):
    """Whether a longer text completes the last character of a text, or adds letters to a letter."""
    is_longer = longer.startswith(text)
    if text.endswith(PART) and (longer == text or not is_longer):
        return True
    ends = text[-1:] + longer[len(text) : len(text) + 1]
    are_letters = all(x.isalnum() or x == PART for x in ends)
    return is_longer and len(ends) == 2 and are_letters


def names(ids, word, decode, pieces):
    """The text of each word, a special token as its piece: [T], [T], and [T] pieces -> [W]."""
    ids = np.ravel(ids)
    texts = []
    for w in range(word.max() + 1):
        is_of_word = word == w
        texts.append(decode(ids[is_of_word]).strip() or pieces[int(is_of_word.argmax())])
    return texts


def merged(pattern, q, k, word, of_key=None):
    """Attention [... W W], queries and keys [... W d] of words, from those of their pieces.

    of_key: the number of each key's word, where keys are of another text than queries.

    Attention is summed over the pieces of the key and averaged over those of the query, so that
    rows still add up to 1; the vectors of the pieces are averaged.
    """
    member = _members(word)
    of_key = member if of_key is None else _members(of_key)
    mean, mean_of_key = (x / x.sum(axis=1, keepdims=True) for x in (member, of_key))
    return mean @ pattern @ of_key.T, mean @ q, mean_of_key @ k


def _members(word):
    """Which tokens belong to each word: [T] -> [W T] of 0 and 1."""
    return (word == np.arange(word.max() + 1)[:, None]).astype(np.float64)


def matches(name, names):
    """Which of these names are `name`, upper and lower case being the same: [n] of bool."""
    return np.array([name.strip().casefold() == x.strip().casefold() for x in names], bool)
