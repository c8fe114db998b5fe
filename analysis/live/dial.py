"""The dial: keys get the positions of the tokens so many places after them.

T tokens, H heads, S = T keys.
"""

from functools import partial

import numpy as np

from . import validation
from .positions import order
from .record import Change, Control


def _parse(value):
    return validation.whole("dial", value, -validation.MOST, validation.MOST)


def _check(changes, place):
    place.check_positions()
    n = len(place.own())
    if abs(changes.dial) >= max(n, 1):
        raise ValueError(f"dial is {changes.dial}; a text of {n} own tokens takes less than {n}")


def _says(changes):
    return f"keys' positions moved by {changes.dial:+d}"


def dialled(changes, place):
    """The token whose position each key gets: the one `dial` places after it [T].

    Own tokens only, cyclically; special tokens keep theirs.
    """
    index, own = np.arange(place.T), place.own()
    index[own] = np.roll(own, -changes.dial)
    return index


def _edits(changes, place, before):
    """Keys of a run whose positions are moved; a term of the scores is moved directly."""
    index, entered = dialled(changes, place), place.positions[0]
    earlier = before.get(entered, _same)
    if place.is_by_distance:
        return {entered: partial(_columns, index=index, before=earlier)}

    def moved(x):
        rows = earlier(x) if callable(earlier) else earlier[None]
        return rows[:, index]

    point = place.point("k")
    trace = place.run([point], before | {entered: moved})
    return {(point, layer): trace[point, layer] for layer in range(len(place.stack.layers))}


def _same(x):
    return x


def _columns(x, index, before):  # [1 H T S]: keys alone get other positions
    return before(x)[..., index]


def _python(changes, where):
    yield from order("moved", f"np.roll({{}}, {-changes.dial})", where)
    point = where.positions[0]
    is_rows = changes.positions != "shifted"
    given = f'edits.get("{point}", lambda x: x)(x)' if is_rows else f'edits["{point}"][None]'
    if where.place.is_by_distance:
        yield f'given = edits.get("{point}", lambda x: x)'
        yield f'edits["{point}"] = lambda x: given(x)[..., moved]  # of the keys alone'
        return
    keys = where.place.point("k")
    source = ", source=source" if where.place.source is not None else ""
    yield f'others = edits | {{"{point}": lambda x: {given}[:, moved]}}'
    yield f'keys = minitx.run(model, tokens, "{keys}", others{source})'
    yield "edits |= dict(keys)  # keys of a run with their positions moved"


DIAL = Change(
    "dial",
    0,
    Control(
        "slider",
        "Keys’ positions moved by",
        title="Keys get the positions of the tokens so many places after them. A head that finds "
        "its place by positions then looks so many tokens to the left of where it did.",
        bounds=(-8, 8),
    ),
    _parse,
    _says,
    _edits,
    _python,
    _check,
    reads_order=True,
    comes_last=True,
)
