"""What can be done to a model's positions: one record for each choice of the live page.

To add a choice, write its functions and enter it in KINDS. T tokens.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from ..measures import position_edits
from . import validation
from .record import Change, Control


class Kind(NamedTuple):
    """One choice. changes: a Changes; place: a Place; where: a Where of as_python.py."""

    label: str  # on the page
    says: str  # of a run, in words, with the values of `changes` in braces
    edits: Callable  # (changes, place) -> {name of a point, without the stack's prefix: edit}
    python: Callable  # (changes, where) -> lines
    check: Callable = lambda changes, place: None  # raises ValueError where it cannot be


def _off(changes, place):
    return position_edits.off(place.stack.config)


def _off_lines(changes, where, word):
    for name in position_edits.off(where.place.stack.config):
        yield f'edits["{where.place.point(name)}"] = np.zeros_like  # positions {word}'


def shuffled(changes, place):
    """The token whose position each token gets: own tokens in random order [T]."""
    index, own = np.arange(place.T), place.own()
    index[own] = np.random.default_rng(changes.seed).permutation(own)
    return index


def _shuffled(changes, place):
    return position_edits.moved(place.stack.config, shuffled(changes, place))


def _shuffled_lines(changes, where):
    rng = f"np.random.default_rng({changes.seed})"
    yield from order("order", f"{rng}.permutation({{}})", where)
    for name in position_edits.points(where.place.stack.config):
        is_rows = position_edits.MOVES[name] is position_edits.rows
        taken = "x[:, order]" if is_rows else "x[..., order, :][..., order]"
        yield f'edits["{where.place.point(name)}"] = lambda x: {taken}  # positions shuffled'


def order(name, how, where):
    """Lines that make an index of tokens whose own ones are moved: `name`."""
    own = where.place.own()
    first, last = int(own[0]), int(own[-1]) + 1
    is_whole = len(own) == where.place.T
    part = name if is_whole else f"{name}[{first}:{last}]"
    if len(own) < last - first:  # of two texts: special tokens stand between them
        yield f"own = np.r_[{_ranges(own)}]"
        part = f"{name}[own]"
    yield f"{name} = np.arange(len({where.tokens}))"
    remark = "" if is_whole else "  # special tokens keep their positions"
    yield f"{part} = {how.format(part)}{remark}"


def _ranges(own):
    """Rising numbers as slices: [1 2 3 6 7] -> '1:4, 6:8'."""
    rows = np.split(own, np.flatnonzero(np.diff(own) > 1) + 1)
    return ", ".join(f"{row[0]}:{row[-1] + 1}" for row in rows)


def _shifted(changes, place):
    first = place.stack.config.offset + changes.shift
    return {"pos_embed": place.stack.weights.W_pos[first : first + place.T]}


def _shifted_lines(changes, where):
    yield f"first = {where.stack}.config.offset + {changes.shift}  # the text stands later"
    end = f"first + len({where.tokens})"
    yield f'edits["{where.place.positions[0]}"] = {where.stack}.weights.W_pos[first : {end}]'


def _check_shift(changes, place):
    cfg = place.stack.config
    if place.stack.weights.W_pos is None:
        raise ValueError(
            f"{cfg.model_type} reads only distances: a shift of the whole text changes nothing"
        )
    most = cfg.n_ctx - place.T
    if changes.shift > most:
        raise ValueError(
            f"shift is {changes.shift}; a text of {place.T} tokens can stand at most {most} later "
            f"among this model's {cfg.n_ctx} positions"
        )


KINDS = {
    "on": Kind("as they are", "", lambda changes, place: {}, lambda changes, where: ()),
    "zero": Kind("at zero", "positions at zero", _off, partial(_off_lines, word="at zero")),
    "shuffled": Kind("shuffled", "positions shuffled", _shuffled, _shuffled_lines),
    "shifted": Kind(
        "shifted", "the text {changes.shift} tokens later", _shifted, _shifted_lines, _check_shift
    ),
    "off": Kind("off", "positions off", _off, partial(_off_lines, word="off")),
}


# the change itself, and the number of tokens of a shift


def _check(changes, place):
    place.check_positions()
    KINDS[changes.positions].check(changes, place)


def _edits(changes, place, before):
    by_point = KINDS[changes.positions].edits(changes, place)
    return {place.point(name): edit for name, edit in by_point.items()}


POSITIONS = Change(
    "positions",
    "on",
    Control(
        "choice",
        "Positions",
        note="Which position each token gets.",
        options=[(name, kind.label) for name, kind in KINDS.items()],
    ),
    lambda value: validation.one_of("positions", value, tuple(KINDS)),
    lambda changes: KINDS[changes.positions].says.format(changes=changes),
    _edits,
    lambda changes, where: KINDS[changes.positions].python(changes, where),
    _check,
    null=lambda changes, seed: "shuffled",
    reads_order=True,
)
SHIFT = Change(
    "shift",
    0,
    Control("number", "by", bounds=(0, None), usual=8, unit="tokens", of=("positions", "shifted")),
    lambda value: validation.whole("shift", value, 0, validation.MOST),
    says=lambda changes: "",  # the positions say and do it
    edits=lambda changes, place, before: {},
    python=lambda changes, where: (),
    null=lambda changes, seed: 0,
    reads_order=True,
)
