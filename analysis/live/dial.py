"""The dial: keys get the positions of the tokens so many places after them, or below them.

T tokens, H heads, S = T keys.
"""

from functools import partial

import numpy as np

from . import validation
from .positions import order
from .record import Change, Control


def _parse(value, name="dial"):
    return validation.whole(name, value, -validation.MOST, validation.MOST)


def _grid(place):
    """(rows, columns) of the own tokens: a text is one row."""
    picture = place.stack.config.picture
    return (1, len(place.own())) if picture is None else (picture.rows, picture.columns)


def _check(changes, place):
    place.check_positions()
    rows, columns = _grid(place)
    if abs(changes.dial) >= max(columns, 1):
        what = f"a text of {columns} own tokens takes" if rows == 1 else f"{columns} columns take"
        raise ValueError(f"dial is {changes.dial}; {what} less than {columns}")
    if abs(changes.dial_down) >= rows:
        raise ValueError(f"dial_down is {changes.dial_down}; {rows} rows take less than {rows}")


def dialled(changes, place):
    """The token whose position each key gets: the one `dial` places after it [T].

    Of a picture the one `dial` columns to the right and `dial_down` rows below. Own tokens only,
    cyclically; special tokens keep theirs.
    """
    index, own = np.arange(place.T), place.own()
    grid = own.reshape(_grid(place))
    index[own] = np.roll(grid, (-changes.dial_down, -changes.dial), axis=(0, 1)).ravel()
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


def _roll(changes, place):
    """The Python of `dialled`, with {} for the indices."""
    if place.stack.config.picture is None:
        return f"np.roll({{}}, {-changes.dial})"
    by = -changes.dial_down, -changes.dial
    return f"np.roll({{}}.reshape{_grid(place)}, {by}, axis=(0, 1)).ravel()"


def _python(changes, where):
    yield from order("moved", _roll(changes, where.place), where)
    point = where.place.positions[0]
    is_rows = changes.positions != "shifted"
    given = f'edits.get("{point}", lambda x: x)(x)' if is_rows else f'edits["{point}"][None]'
    if where.place.is_by_distance:
        yield f'given = edits.get("{point}", lambda x: x)'
        yield f'edits["{point}"] = lambda x: given(x)[..., moved]  # of the keys alone'
        return
    keys = where.place.point("k")
    source = ", source=source" if where.place.source is not None else ""
    source += "".join(f", {name}={name}" for name in where.place.options)
    yield f'others = edits | {{"{point}": lambda x: {given}[:, moved]}}'
    yield f'keys = minitx.run(model, tokens, "{keys}", others{source})'
    yield "edits |= dict(keys)  # keys of a run with their positions moved"


DIAL = Change(
    "dial",
    0,
    Control(
        "slider",
        "Keys’ positions moved by",
        title="Keys get the positions of the tokens so many places after them; of patches, so many "
        "columns to the right. A head that finds its place by positions then looks so many tokens "
        "to the left of where it did.",
        note="Each key gets the position of a token so many positions later.",
        bounds=(-8, 8),
    ),
    _parse,
    lambda changes: f"keys' positions moved by {changes.dial:+d}",
    _edits,
    _python,
    _check,
    reads_order=True,
    comes_last=True,
)

DOWN = DIAL._replace(
    name="dial_down",
    control=Control(
        "slider",
        "Keys’ positions moved down by",
        title="Keys get the positions of the patches so many rows below them. A head that finds "
        "its patch by positions then looks so many rows above where it did.",
        bounds=(-8, 8),
    ),
    parse=partial(_parse, name="dial_down"),
    says=lambda changes: f"keys' positions moved down by {changes.dial_down:+d}",
    # where both are given, the dial moves both
    edits=lambda changes, *given: {} if changes.dial else _edits(changes, *given),
    python=lambda changes, where: () if changes.dial else _python(changes, where),
    of_pictures=True,
)
