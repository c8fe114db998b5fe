"""Who wrote the guesses, and which kind each head is, as a page holds them.

T places, G guesses, C components, K heads whose words are told, W words, R places that a head reads
from.
"""

import numpy as np

from ..measures import kinds, outputs
from . import logit_attribution
from .packing import pack

LONG = 64  # places, at most, of which all guesses that the page shows have their writers
BLANKS = str.maketrans({" ": "␣", "\n": "⏎", "\t": "⇥"})


def of_text(model, tokens, **options):
    """What a page shows of all places of a text [T]; of more than LONG of the likeliest guesses.

    None for a model whose guesses are not attributed. options: further keywords of `minitx.run`.
    """
    n_guesses = outputs.GUESSES if len(tokens) <= LONG else 1
    return of_places(model, tokens, range(len(tokens)), n_guesses=n_guesses, **options)


def of_place(model, tokens, place, **options):
    """The same of one place, with the words of all heads."""
    if not 0 <= place < len(tokens):
        raise ValueError(f"place is {place}; this text has the tokens 0 to {len(tokens) - 1}")
    most = len(logit_attribution.components(model))
    return of_places(model, tokens, [place], most=most, **options)


def of_places(model, tokens, places, **options):
    """The same of some places, ready for JSON: numbers packed, words as numbers in "pieces"."""
    if not logit_attribution.is_told(model):
        return None
    each = logit_attribution.of_text(model, tokens, places, **options)
    columns = {
        name: np.array([getattr(x, name) for x in each]) for name in logit_attribution.Place._fields
    }
    content = {"at": [*places], "linear": logit_attribution.is_linear(model)}
    content["components"] = logit_attribution.components(model)
    content["gap"] = float(max(place.gap for place in each))
    content |= {name: pack(columns[name], 1, 12) for name in ("parts", "logits")}
    content |= {name: pack(columns[name], 1, 8) for name in ("null", "most_null")}
    if not columns["words"].size:  # classes: heads are not asked for words
        return content
    ids, numbers = np.unique(columns["words"], return_inverse=True)
    pieces = model.tokenizer.pieces(ids)
    content["pieces"] = visible(pieces)
    columns["words"] = numbers.reshape(columns["words"].shape)
    content |= {name: pack(columns[name], 0) for name in ("heads", "words", "sources")}
    return content | {name: pack(columns[name], 1, 12) for name in ("raised", "taken")}


def visible(labels):
    """Labels whose blanks can be seen."""
    return [label.translate(BLANKS) or "∅" for label in labels]


def of_kinds(model):
    """{part of the page: kinds of its heads}, as `kinds.labels` gives them."""
    if model.config.picture is not None:  # kinds are told by words
        return {"": None}
    if model.encoder is None:
        return {"": kinds.labels(model)}
    return {"encoder": kinds.labels(model.encoder), "decoder": kinds.labels(model)}
