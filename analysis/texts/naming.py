"""What the name of a text says: a file, folder, glob, URL or the text itself, and what is read.

    ids:FILE                token ids in place of words
    column:NAME:FILE        the column or key of the text, for experiments without --column
    draw:N:SEED:FILE        N documents of it, drawn at random

The command line writes these for --ids, --column and --sample, so that a text has one name in
options, settings and results. They may stand before each other, in this order from the file.
"""

import re
from typing import NamedTuple

IDS = "ids:"
DRAW = re.compile(r"draw:(\d+):(\d+):")
SHOWN = 200  # characters of a name in an error
COLUMN = re.compile(r"column:([^:]+):")


class Named(NamedTuple):
    """A text by its parts."""

    place: str  # file, folder, glob, URL, or a name such as sample
    is_ids: bool = False
    column: str = ""
    n: int = 0  # documents to draw; 0: all are read
    seed: int = 0


def parsed(text):
    """The parts of a text's name."""
    name = str(text)
    n = seed = 0
    column = ""
    if drawn := DRAW.match(name):
        n, seed = map(int, drawn.groups())
        name = name[drawn.end() :]
    if named := COLUMN.match(name):
        column = named[1]
        name = name[named.end() :]
    return Named(name.removeprefix(IDS), name.startswith(IDS), column, n, seed)


def of_ids(path):
    """The name of a file of token ids."""
    return f"{IDS}{path}"


def of_column(column, text):
    """The name of a column of a text; raises ValueError for one with a colon."""
    if ":" in column:
        raise ValueError(
            f"--column {column!r} has a colon, which is not allowed in a name; rename it"
        )
    return f"column:{column}:{text}"


def drawn(text, n, seed):
    """The name of n documents of a text, drawn with this seed."""
    return f"draw:{n}:{seed}:{text}"


def is_ids(text):
    """Whether a name is that of a file of token ids."""
    return parsed(text).is_ids


def shown(text):
    """The name of a text as errors give it; of a text that is given itself its beginning."""
    place = parsed(text).place
    return "standard input" if place == "-" else repr(place[:SHOWN]) + "…" * (len(place) > SHOWN)
