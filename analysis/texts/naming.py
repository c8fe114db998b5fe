"""A text as a command or a call names it: where it lies, and what of it is read.

A plain name is a str, or a path; one that says more is a Text. All that reads texts takes both.
"""

import os
from dataclasses import dataclass, replace

SHOWN = 200  # characters of a name in an error


@dataclass(frozen=True)
class Text:
    """A text by its parts."""

    name: str  # file, folder, glob, URL, -, a name such as sample, or the text itself
    is_ids: bool = False  # a file of token ids in place of words
    column: str = ""  # of a table the columns of the text, or keys of objects, joined by commas
    label: str = ""  # of a table the column of labels
    n: int = 0  # documents to draw; 0: all are read
    seed: int = 0

    def stated(self):
        """The parts that differ from those of a plain name, as the settings state them."""
        others = {key: value for key, value in vars(self).items() if key == "name" or value}
        return {STATED.get(key, key): value for key, value in others.items()}


STATED = {"is_ids": "ids", "n": "sample"}


def of(text, **parts):
    """A name, or a Text, as a Text, with these parts changed."""
    named = text if isinstance(text, Text) else Text(os.fspath(text))
    return replace(named, **parts)


def is_ids(text):
    """Whether a text is a file of token ids."""
    return of(text).is_ids


def shown(text):
    """The name of a text as errors give it; of a text that is given itself its beginning."""
    name = of(text).name
    return "standard input" if name == "-" else repr(name[:SHOWN]) + "…" * (len(name) > SHOWN)
