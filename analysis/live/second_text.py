"""The second text of a patch: how many tokens it needs, what tells it apart, and texts that fit.

A text that fits is the first with one word that is another of a similar embedding. T tokens.
"""

import re

import numpy as np

from ..texts import joined
from . import patching

FITS = 3  # texts that are named, at most
NEAR = 200  # words of a similar embedding that are tried, at most
WORD = re.compile(r" ?[^\W\d_]{2,}")


def of(runs, request, other):
    """{"lengths": tokens of both texts, "differ": pieces where they do, "fits": texts that fit}.

    other "": nothing is compared. differ: of texts of different lengths alone.
    """
    model = runs.models[request.model]
    reader = model.encoder or model
    first, second = patching.both(runs, request, other)
    ids = joined.encoding(reader, first.pair).ids.tolist()
    if not other:
        fits = fitting(reader, first.pair)
        return {"lengths": [len(ids)], "differ": None, "fits": fits}
    others = joined.encoding(reader, second.pair).ids.tolist()
    answer = {"lengths": [len(ids), len(others)], "differ": None, "fits": []}
    if len(ids) == len(others):
        return answer
    begin, end, other_end = _apart(ids, others)
    blocks = ids[begin:end], others[begin:other_end]
    answer["differ"] = [reader.tokenizer.pieces(block) for block in blocks]
    return answer | {"fits": fitting(reader, first.pair, begin)}


def _apart(first, second):
    """Where two rows of ids begin to differ, and where each ends to."""
    begin, n = 0, min(len(first), len(second))
    while begin < n and first[begin] == second[begin]:
        begin += 1
    same = 0
    while same < n - begin and first[-1 - same] == second[-1 - same]:
        same += 1
    return begin, len(first) - same, len(second) - same


def fitting(reader, pair, place=None):
    """Texts of as many tokens with another word at a place, those of nearest embeddings first.

    place: number of a token; where it is no whole word, and where it is None, the longest word
    stands for it. [] where the tokenizer tells no places.
    """
    text, *second = joined.parts(pair)
    try:
        spans = reader.tokenizer.spans(text)
    except ValueError:
        return []
    words = {i: span for i, span in enumerate(spans.tolist()) if _is_word(text, *span)}
    if not words:
        return []
    if place not in words:
        place = max(words, key=lambda i: words[i][1] - words[i][0])
    begin, end = words[place]
    blank = " " * text[begin:end].startswith(" ")
    ids = joined.encoding(reader, pair).ids
    texts = []
    for piece in _similar(reader, ids[place]):
        changed = type(text)(f"{text[:begin]}{blank}{piece}{text[end:]}")
        given = joined.encoding(reader, (changed, *second) if second else changed)
        if len(given.ids) == len(ids) and (given.ids != ids).sum() == 1:
            texts.append(changed)
        if len(texts) == FITS:
            break
    return texts


def _is_word(text, begin, end):
    """Whether letters begin to end are a whole word, with the blank before it if it is of it."""
    is_inside = text[begin - 1 : begin + 1].isalpha() or text[end : end + 1].isalpha()
    return bool(WORD.fullmatch(text, begin, end)) and not is_inside


def _similar(reader, token):
    """Words of the vocabulary, the nearest embeddings by their cosine first."""
    rows = reader.weights.W_E
    own = rows[token]
    lengths = np.sqrt((rows * rows).sum(axis=1)) + 1e-12
    order = np.argsort(-(rows @ own) / lengths, kind="stable")[1 : NEAR + 1]
    for i in order:
        piece = reader.tokenizer.decode([i]).strip()
        if WORD.fullmatch(piece):
            yield piece
