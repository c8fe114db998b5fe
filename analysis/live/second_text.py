"""The second text of a patch: how many tokens it needs, what tells it apart, and texts that fit.

A text that fits is the first with one word that is another of a similar embedding. Words of the
texts that come with minitx go before pieces that may be parts of words. Texts that change what the
model guesses are named alone where there are some. T tokens.
"""

import functools
import re
from dataclasses import replace
from itertools import islice, zip_longest

import numpy as np

from ..texts import joined, storage
from . import patching

FITS = 3  # texts that are named, at most
TRIED = 12  # texts whose guess is asked for
NEAR = 200  # words of a similar embedding that are tried, at most
ARTICLE = re.compile(r"\b(the|an?|his|her|my|your|our|their)\s*$", re.I)
WORD = re.compile(r" ?[^\W\d_]{2,}")


def of(runs, request, other):
    """{"lengths": tokens of both texts, "differ": pieces where they do, "fits": texts that fit}.

    other "": nothing is compared. differ: of texts of different lengths alone.
    """
    model = runs.models[request.model]
    reader = model.encoder or model
    first, second = patching.both(runs, request, other)
    ids = joined.encoding(reader, first.pair).ids.tolist()
    others = joined.encoding(reader, second.pair).ids.tolist() if other else []
    lengths = [len(ids), len(others)] if other else [len(ids)]
    answer = {"lengths": lengths, "differ": None}
    if len(others) in (0, len(ids)):
        return answer | {"fits": runs.fits(first)}
    begin, end, other_end = _apart(ids, others)
    blocks = ids[begin:end], others[begin:other_end]
    answer["differ"] = [reader.tokenizer.pieces(block) for block in blocks]
    # where words are left out or put in, none stands in the place of another
    return answer | {"fits": runs.fits(first, begin if all(blocks) else None)}


def named(runs, request, place=None):
    """Of texts that fit, the first ones that change the guess; where none does, the first ones.

    `Runs.fits` keeps the last answers: a page asks at every letter of the second text.
    """
    model = runs.models[request.model]
    texts = fitting(model.encoder or model, request.pair, place, request.hidden)
    own = patching.guess(runs, request)
    changing = []
    if own is not None:
        each = (replace(request, text=text) for text in texts)
        changing = [other.text for other in each if patching.guess(runs, other) != own]
    return (changing or texts)[:FITS]


def _apart(first, second):
    """Where two rows of ids begin to differ, and where each ends to."""
    begin, n = 0, min(len(first), len(second))
    while begin < n and first[begin] == second[begin]:
        begin += 1
    same = 0
    while same < n - begin and first[-1 - same] == second[-1 - same]:
        same += 1
    return begin, len(first) - same, len(second) - same


def fitting(reader, pair, place=None, hidden=()):
    """Texts of as many tokens with another word at a place, those of nearest embeddings first.

    place: number of a token; where it is no whole word, and where it is None, each text has another
    place, as `_rank` has them. hidden: places of which no word is read. [] where the tokenizer
    tells no places.
    """
    text, *second = joined.parts(pair)
    try:
        spans = reader.tokenizer.spans(text)
    except ValueError:
        return []
    shown = ((i, span) for i, span in enumerate(spans.tolist()) if i not in hidden)
    words = {i: span for i, span in shown if _is_word(text, *span)}
    ids, texts = joined.encoding(reader, pair).ids, []
    ranked = sorted(words, key=lambda i: _rank(text, *words[i]))
    places = [place] if place in words else ranked[:FITS]
    for i in places:
        changed = _changed(reader, (text, *second), ids, i, words[i])
        texts.append(islice(changed, TRIED // len(places)))
    # one of each place, then the next of each
    return [text for row in zip_longest(*texts) for text in row if text is not None]


def _changed(reader, texts, ids, place, span):
    """The first of texts with other words at a place, where nothing else becomes another token."""
    (text, *second), (begin, end) = texts, span
    blank = " " * text[begin:end].startswith(" ")
    cased = str.capitalize if text[begin:end].strip()[0].isupper() else str.lower
    for piece in _similar(reader, ids[place]):
        changed = type(text)(f"{text[:begin]}{blank}{cased(piece)}{text[end:]}")
        given = joined.encoding(reader, (changed, *second) if second else changed)
        if len(given.ids) == len(ids) and (given.ids != ids).sum() == 1:
            yield changed


def _rank(text, begin, end):
    """Names, capitals in a sentence, come first, then words behind an article, then long ones."""
    is_first = text[:begin].rstrip()[-1:] in ("", *'.!?:“"')
    is_name = not is_first and text[begin:end].strip()[0].isupper()
    return not is_name, not ARTICLE.search(text[:begin]), begin - end


def _is_word(text, begin, end):
    """Whether letters begin to end are a whole word, with the blank before it if it is of it."""
    is_inside = text[begin - 1 : begin + 1].isalpha() or text[end : end + 1].isalpha()
    return bool(WORD.fullmatch(text, begin, end)) and not is_inside


def _similar(reader, token):
    """Words of the vocabulary, known ones first; the nearest embeddings first, by their cosine."""
    rows = reader.weights.W_E
    own = rows[token]
    lengths = np.sqrt((rows * rows).sum(axis=1)) + 1e-12
    order = np.argsort(-(rows @ own) / lengths, kind="stable")[1 : NEAR + 1]
    pieces = [reader.tokenizer.decode([i]).strip() for i in order]
    pieces = [piece for piece in pieces if WORD.fullmatch(piece)]
    yield from sorted(pieces, key=lambda piece: piece.lower() not in _known())


@functools.cache
def _known():
    """The words of the texts that come with minitx, in small letters."""
    texts = (path.read_text(encoding="utf-8") for path in storage.NAMED.values())
    return {word.lower() for text in texts for word in re.findall(r"[^\W\d_]+", text)}
