"""Patching between two texts of the live page: which head, which place carries the difference.

What is asked is the logit of the first text's guess less that of the second's. L layers, H heads, T
tokens.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

import minitx
from minitx import circuits
from minitx.circuits.measure import mask_id, with_places
from minitx.inputs import Batch
from minitx.kernels import softmax_
from minitx.loading.labels import predicted

from ..contract import verdict
from ..machine.language import filled
from ..measures import heads as names
from ..measures import outputs
from ..pages.packing import TINY
from ..pages.writers import visible
from ..texts import joined

POINTS = {  # part of the page: what is patched, by head and by place
    "": {"heads": "z", "stream": "resid_pre"},
    "encoder": {"heads": "enc_z", "stream": "enc_resid_pre"},
    "decoder": {"heads": "z", "stream": "resid_pre"},
    "cross": {"heads": "cross_z"},
}
PATCHED = "Compared with “{other}”: logit of “{own}” minus logit of “{others}”. {ways}"
WAYS = {
    "into_second": "Of all heads {name} carries most of the difference into the second text, "
    "{share} (an unrelated text: {chance}).",
    "into_first": "Into the first text {name} carries most, {share} (an unrelated text: {chance}).",
}
NO_HEAD = {  # of a way on which none exceeds an unrelated text by the margin
    "into_second": "No head carries 10 points more of the difference into the second text than "
    "an unrelated text does: {name} carries most, {share} (an unrelated text: {chance}).",
    "into_first": "Into the first text no head exceeds an unrelated text by 10 points: {name} "
    "carries most, {share} (an unrelated text: {chance}).",
}


class Asked(NamedTuple):
    """Two texts of one length, and the two guesses that tell them apart."""

    texts: list  # [2] ids [T], of an encoder-decoder its sources
    guesses: tuple  # the id that each text makes likelier
    first: int | None = None  # the likeliest of both texts, if they have the same
    probabilities: tuple | None = None  # of its guess in each text, of a single stack
    place: int | None = None  # where they are guessed; None: the last place, or of a whole text
    prefix: list | None = None  # what the decoder of an encoder-decoder has read
    types: np.ndarray | None = None  # [T] token types of pairs; None: those of a single text

    @property
    def sides(self):
        """The texts as `circuits.patch` takes them."""
        types = None if self.types is None else self.types[None]
        return [Batch(ids[None], np.ones((1, len(ids)), bool), types) for ids in self.texts]


def between(runs, request, other, check=lambda: None):
    """Effects of patches between the text of a request and another, ready for JSON.

    Of a pair the other text stands in place of the first, and both are read with the second.
    check: called between stages; it raises an error if nobody waits any more. Raises ValueError for
    texts that do not align, or whose guesses are the same.
    """
    model = runs.models[request.model]
    requests = both(runs, request, other)
    asked = _asked(model, *map(runs.tokens, requests))
    parts = {}
    for part, points in POINTS.items():
        if bool(part) == (model.encoder is not None):
            check()
            parts[part] = {name: _effects(model, asked, point) for name, point in points.items()}
    reader = model.encoder or model
    labels = [_pieces(reader, ids) for ids in asked.texts]
    shown = {"guesses": _named(model, asked.guesses), "labels": labels, "parts": parts}
    shown["probabilities"] = asked.probabilities
    shown["same"] = None if asked.first is None else _named(model, [asked.first])[0]
    shown["code"] = "\n".join(_code(model, requests, asked)) + "\n"
    return shown | {"prefix": asked.prefix and _pieces(model, asked.prefix)}


def both(runs, request, other):
    """The request as it is, and the same of another text; ValueError for pictures."""
    if runs.models[request.model].config.picture is not None:
        raise ValueError("patches are between two texts; this model reads pictures")
    first = replace(request.as_is, target=None)
    second = replace(first, text=other)
    second.check(runs.names)
    return first, second


def saved(runs, request, other, check=lambda: None):
    """What `between` gives, and what it shows in a sentence, for a page that is saved."""
    shown = between(runs, request, other, check)
    heads = next(iter(shown["parts"].values()))["heads"]
    own, others = shown["guesses"]
    of_ways = []
    for way, sentence in WAYS.items():
        effects, null = (np.array(heads[way][name]) for name in ("shares", "null"))
        layer, head = np.unravel_index(effects.argmax(), effects.shape)
        share, chance = effects[layer, head], null[layer, head]
        numbers = {"share": f"{100 * share:.0f}%", "chance": f"{100 * chance:.0f}%"}
        text = sentence if share > chance + verdict.MARGIN else NO_HEAD[way]
        of_ways.append(filled(text, name=names.name(layer, head), **numbers))
    given = {"other": other, "own": own, "others": others}
    return shown | {"sentence": filled(PATCHED, **given, ways=" ".join(of_ways))}


def guess(runs, request):
    """The id that a text makes likeliest where two texts are asked; None where that is nowhere."""
    model = runs.models[request.model]
    if model.encoder is not None:
        return None
    said = runs.tokens(request).said
    ids, place = joined.of(said).ids, None
    if model.config.task_head == "masked":
        place = _first_mask(model, ids)
        if place is None:
            return None
    return int(_probabilities(model, ids, place, joined.of(said).types).argmax())


def _code(model, requests, asked):
    """The lines that compute the map of heads, of an encoder-decoder's encoder."""
    point, reader, more = "z", "model", ""
    if model.encoder is not None:
        point, reader, more = "enc_z", "model.encoder", f", prefix=[{asked.prefix}]"
    yield from ("import minitx", "from minitx import circuits", "")
    yield f"model = minitx.load({requests[0].model!r})"
    for name, request in zip(("first", "second"), requests):
        cut = ", is_split_into_words=True" if request.split else ""
        yield f"{name} = {reader}.encode([{request.pair!r}]{cut})"
        for place in request.hidden:
            yield f"{name}.tokens[0, {place}] = {mask_id(model.tokenizer)}  # the mask token"
    yield f"tokens = {asked.guesses}  # {' less '.join(_named(model, asked.guesses))}"
    place = "" if asked.place is None else f", place={asked.place}"
    yield f"effects = circuits.patch(model, first, second, tokens, {point!r}{place}{more})"
    for values, null, way in (
        ("effects", "null", "first text into the second"),
        ("lost", "lost_null", "second text into the first"),
    ):
        yield f"print(effects.{values}.round(2))  # [layer, head]: {way}"
        yield f"print(abs(effects.{null}).max().round(2))  # the most of an unrelated text"


def _asked(model, first, second):
    """What tells two texts apart; each is what `Runs.tokens` gives."""
    if model.encoder is not None:
        return _asked_of_pair(first, second)
    texts = [first.ids, second.ids]
    _check_texts(texts)
    place = None
    if model.config.task_head == "masked":
        place = _masked(model, texts)
    types = joined.of(first.said).types
    p = [_probabilities(model, ids, place, types) for ids in texts]
    best = [int(x.argmax()) for x in p]
    if best[0] != best[1]:
        most = tuple(float(x.max()) for x in p)
        return Asked(texts, tuple(best), probabilities=most, place=place, types=types)
    guesses = _telling(p[0], p[1]), _telling(p[1], p[0])
    if None in guesses:
        (piece,) = _named(model, best[:1])
        raise ValueError(f"both texts have the same prediction {piece!r}, and no other differs")
    return Asked(texts, guesses, best[0], place=place, types=types)


def _check_texts(texts):
    n, other = map(len, texts)
    if np.array_equal(*texts):
        raise ValueError("both texts are the same: exchange a word in the second")
    if n != other:
        raise ValueError(
            f"the first text has {n} tokens, the second {other}; they are exchanged one by one: "
            "write a second text of as many tokens"
        )


def _masked(model, texts):
    """The place of the first mask, which both texts have."""
    first, second = (_first_mask(model, ids) for ids in texts)
    if None in (first, second):
        raise ValueError(
            "this model predicts hidden tokens: hide a token, or write a mask into both texts"
        )
    if first != second:
        raise ValueError(
            f"the first text hides token {first}, the second {second}; wanted the same position"
        )
    return first


def _first_mask(model, ids):
    """The place of the first mask of a text [T]; None where it has none."""
    masked = np.flatnonzero(ids == mask_id(model.tokenizer))
    return int(masked[0]) if len(masked) else None


def _probabilities(model, ids, place, types):  # -> [V]
    """Of every token, or class, where the texts are asked."""
    y = with_places(minitx.run(model, ids, "logits", types=types)["logits"])[0]
    y = y[-1] if place is None else y[place]  # of a class there is one row
    return softmax_(y.astype(np.float64) - y.max())


def _telling(p, other):  # [V], [V]
    """Of the guesses that a page shows, the one that this text makes most likelier than another.

    None if it makes none likelier.
    """
    ids = np.argsort(-p, kind="stable")[: outputs.GUESSES]
    ratio = p[ids] / np.maximum(other[ids], TINY)
    return int(ids[ratio.argmax()]) if ratio.max() > 1 else None


def _asked_of_pair(first, second):
    """Of two sources: up to where the outputs are the same, and what is said then."""
    texts = [first.source, second.source]
    _check_texts(texts)
    said = [text.said.outputs for text in (first, second)]
    n = min(map(len, said))
    differs = np.flatnonzero(said[0][:n] != said[1][:n])
    if not len(differs):
        raise ValueError(
            "the model predicts the same for both texts: there is no difference to patch"
        )
    step = int(differs[0])
    guesses = tuple(int(outputs[step]) for outputs in said)
    return Asked(texts, guesses, prefix=first.said.inputs[: step + 1].tolist())


def _effects(model, asked, point):
    """Shares of the difference that patches of each piece carry over: both ways, with nulls.

    The null of a place is what an unrelated text does there, that of a head the most that any does.
    """
    given = {"place": asked.place}
    if asked.prefix is not None:
        given = {"prefix": [asked.prefix]}
    effects = circuits.patch(model, *asked.sides, asked.guesses, point, **given)
    is_by_head = point.endswith("z")
    shown = {"differences": [float(effects.clean[0]), float(effects.corrupt[0])]}
    shown["into_second"] = _way(effects.effects, abs(effects.null), is_by_head)
    shown["into_first"] = _way(effects.lost, abs(effects.lost_null), is_by_head)
    return shown


def _way(effects, null, is_by_head):
    """Effects of one way, as shares, ready for JSON."""
    if is_by_head:
        null = np.full_like(null, null.max())
    return {"shares": effects.round(4).tolist(), "null": null.round(4).tolist()}


def _named(model, ids):
    """Pieces of predicted tokens, or names of classes."""
    return visible(predicted(model, np.asarray(ids)))


def _pieces(model, ids):
    return visible(model.tokenizer.pieces(np.asarray(ids)))
