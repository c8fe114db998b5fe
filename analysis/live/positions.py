"""What can be done to a model's positions: one record for each change of the live page.

A record has the change's name on the page, its words, what it cannot be, its edits and its Python.
To add one, write its functions and enter it in POSITIONS; the page draws its control from there. T
tokens.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from ..measures import switched


class Positions(NamedTuple):
    """One change. changes: a Changes; where: a Place, in `python` a Where of as_python.py."""

    label: str  # on the page
    says: str  # of a run, in words, with the fields of a Changes in braces
    edits: Callable  # (changes, place) -> {name of a point, without the stack's prefix: edit}
    python: Callable  # (changes, where) -> lines
    check: Callable = lambda changes, place: None  # raises ValueError where it cannot be


def _no_edits(changes, place):
    return {}


def _no_lines(changes, where):
    return []


def _off(changes, place):
    return switched.off(place.stack.config)


def _off_lines(changes, where, word):
    for point in where.positions:
        yield f'edits["{point}"] = np.zeros_like  # positions {word}'


def shuffled(changes, place):
    """The token whose position each token gets: own tokens in random order [T]."""
    index, own = np.arange(place.T), place.own()
    index[own] = np.random.default_rng(changes.seed).permutation(own)
    return index


def _shuffled(changes, place):
    return switched.moved(place.stack.config, shuffled(changes, place))


def _shuffled_lines(changes, where):
    rng = f"np.random.default_rng({changes.seed})"
    yield from order("order", f"{rng}.permutation({{}})", where)
    for point in where.positions:
        taken = "x[:, :, order][..., order]" if "bias" in point else "x[:, order]"
        yield f'edits["{point}"] = lambda x: {taken}  # positions shuffled'


def order(name, how, where):
    """Lines that make an index of tokens whose own ones are moved: `name`."""
    own = where.place.own()
    first, last = int(own[0]), int(own[-1]) + 1
    is_whole = len(own) == where.place.T
    part = name if is_whole else f"{name}[{first}:{last}]"
    yield f"{name} = np.arange(len({where.tokens}))"
    if not is_whole:
        yield f"{part} = {how.format(part)}  # special tokens keep their positions"
    else:
        yield f"{part} = {how.format(part)}"


def _shifted(changes, place):
    first = place.stack.config.offset + changes.shift
    return {"pos_embed": place.stack.weights.W_pos[first : first + place.T]}


def _shifted_lines(changes, where):
    yield f"first = {where.stack}.config.offset + {changes.shift}  # the text stands later"
    end = f"first + len({where.tokens})"
    yield f'edits["{where.positions[0]}"] = {where.stack}.weights.W_pos[first : {end}]'


def _check_shift(changes, place):
    cfg = place.stack.config
    if place.stack.weights.W_pos is None:
        raise ValueError(
            f"{cfg.model_type} reads distances alone: a shift of the whole text changes nothing"
        )
    most = cfg.n_ctx - place.T
    if changes.shift > most:
        raise ValueError(
            f"shift is {changes.shift}; a text of {place.T} tokens can stand at most {most} later "
            f"among this model's {cfg.n_ctx} positions"
        )


POSITIONS = {
    "on": Positions("as they are", "", _no_edits, _no_lines),
    "zero": Positions("at zero", "positions at zero", _off, partial(_off_lines, word="at zero")),
    "shuffled": Positions("shuffled", "positions shuffled", _shuffled, _shuffled_lines),
    "shifted": Positions(
        "shifted", "the text {shift} tokens later", _shifted, _shifted_lines, _check_shift
    ),
    "off": Positions("off", "positions off", _off, partial(_off_lines, word="off")),
}
