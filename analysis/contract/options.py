"""What an option of an experiment may be: its kind, choices and range, read from its annotation.

    text: str            whole: bool            rate: float
    documents: int       distance: Literal["cosine", "euclidean"]
    clusters: Annotated[int, AtLeast(1)]        gauge: Annotated[int, Within(2, 50)]
    text: Annotated[str, Files()]               pairs: Annotated[str, Files(but=("dates",))]
    clusters: Annotated[int, AtLeast(1), "number of clusters"]

A text in an annotation is the option's help, unless the experiment's docstring has a line for it.
Options that many experiments take stand here with theirs: Text, Documents, Tokens, Seed and others.
Where the annotation does not say all, as for a number that depends on the model, an experiment
checks by itself; see the end of this file.
"""

import contextlib
import difflib
import os
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Annotated, Literal, get_args, get_origin

import numpy as np

from minitx.weights import stories

from ..texts import formats, joined
from ..texts.refusals import NotApplicable

KINDS = {bool: "True or False", int: "a whole number", float: "a number", str: "text"}
ACCEPTED = {  # types that are taken for a kind: NumPy's numbers too, and paths for text
    bool: (bool, np.bool_),
    int: (Integral,),
    float: (Real,),
    str: (str, os.PathLike),
}


@dataclass(frozen=True)
class AtLeast:
    """Numbers from `least` on."""

    least: float

    def __contains__(self, value):
        return self.least <= value < np.inf

    def __str__(self):
        return f"{self.least} or more"


@dataclass(frozen=True)
class Within:
    """Numbers from `least` to `most`, both included."""

    least: float
    most: float

    def __contains__(self, value):
        return self.least <= value <= self.most

    def __str__(self):
        return f"{self.least} to {self.most}"


@dataclass(frozen=True)
class OrZero:
    """0, which leaves the number to the experiment, or a number of another range."""

    others: AtLeast | Within

    def __contains__(self, value):
        return value == 0 or value in self.others

    def __str__(self):
        return f"0, or {self.others}"


WAYS = (  # in which documents are named
    "a file or folder: .txt with one document or paragraph per line, .csv, .tsv, .json, .jsonl, "
    ".parquet; the text itself, if it has several words; - for standard input; or sample, the "
    "bundled text"
)
ITSELF = "the text itself, a file of it, or - for standard input"  # what TEXT stands for


@dataclass(frozen=True)
class Files:
    """A text that names what is read, as formats.py has it; "" and the names in `but` read none."""

    but: tuple = ()
    ways: str = ""  # how it may be given, if not said in its help

    def __contains__(self, value):
        return value not in ("", *self.but)


@dataclass(frozen=True)
class FilesOrPair(Files):
    """A text that names what is read, or, with | in it, is itself a pair of texts."""

    def __contains__(self, value):
        return "|" not in value and super().__contains__(value)


@dataclass(frozen=True)
class Itself:
    """A text that is read as it is given; a command also takes a file of it, or -."""

    ways: str = ITSELF
    or_pair: bool = True  # whether a tuple of two, which are read together, does as well


Said = Annotated[str, Itself()]
Target = Annotated[str, Itself(or_pair=False)]
Pairs = Annotated[
    str,
    FilesOrPair(but=("names", "dates", *stories.KINDS)),
    "clean|corrupt, a file with a pair a line, clean|corrupt|right|wrong, names, or a kind of "
    'story such as other, room or agreement ("": random words that occur twice); of an '
    "encoder-decoder source=>said in place of clean, or dates",
]
Measure = Annotated[str, "right|wrong, two tokens, where the pairs do not say it"]
Count = Annotated[int, AtLeast(1)]
Size = Annotated[int, AtLeast(0)]  # 0: as many as there are, or as the experiment chooses
Text = Annotated[str, Files(ways=WAYS), "text to read"]
Documents = Annotated[Size, "documents to read (0: as many as the text holds, at most 100)"]
TwoDocuments = Annotated[  # for what is compared between halves, or has an interval
    int,
    OrZero(AtLeast(2)),
    "documents to read, 2 or more (0: as many as the text holds, at most 100)",
]
Tokens = Annotated[Size, "length of each document (0: the model's longest input)"]
Shuffles = Annotated[Count, "shuffles of the null"]
Every = Annotated[Count, "of a masked model, hide one token in this many"]
Heads = Annotated[
    str,
    "heads to draw, e.g. L0H0,L1H2, or L1 for all of a layer; auto: those with the sharpest "
    "attention to the left and to the right, and the one with the broadest",
]
Seed = Annotated[int, AtLeast(0), "random seed"]


@dataclass(frozen=True)
class Option:
    """One keyword of an experiment."""

    name: str
    kind: type  # one of KINDS
    default: object
    help: str = ""
    choices: tuple = ()  # the texts there are; (): any
    range: AtLeast | Within | OrZero | None = None
    files: Files | None = None  # of a text that names files: which of its values do
    itself: Itself | None = None  # of a text that is read as it is given

    @property
    def flag(self):
        """Its name on the command line."""
        return self.name.replace("_", "-")

    @property
    def ways(self):
        """How a text may be given; "" for any other option."""
        return (self.files or self.itself or Files()).ways

    @property
    def takes_pair(self):
        """Whether two texts that are read together may stand in place of one."""
        return self.itself is not None and self.itself.or_pair

    @property
    def wanted(self):
        """What it may be, in words."""
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        if self.range is not None:
            return f"{KINDS[self.kind]}, {self.range}"
        return f"{KINDS[self.kind]}, such as {self.default!r}"

    def checked(self, value):
        """A value as its kind; raises ValueError for another type, choice or number.

        NumPy's numbers are taken as Python's, paths as text.
        """
        if self.files is not None and isinstance(value, formats.Text):
            return value
        if self.takes_pair and isinstance(value, tuple | list):  # of a JSON file a list
            joined.check(tuple(value))
            return tuple(value)
        if not _is_of_kind(value, self.kind):
            given = f"{value!r} ({type(value).__name__})"
            raise ValueError(f"{self.name} is {given}; wanted {self.wanted}")
        value = os.fspath(value) if self.kind is str else self.kind(value)
        if self.choices and value not in self.choices:
            near = near_matches(value, self.choices)
            raise ValueError(f"{self.name} is {value!r}; wanted {self.wanted}{near}")
        if self.range is not None and value not in self.range:
            raise ValueError(f"{self.name} is {value}; wanted {self.range}")
        return value

    def parsed(self, given):
        """The same for what a flag was given: text, which may stand for a number, or a bool."""
        if isinstance(given, str):
            with contextlib.suppress(ValueError):
                given = self.kind(given)
        return self.checked(given)


def _is_of_kind(value, kind):
    """Whether a value is of a kind of KINDS; for Python a bool is a whole number, here not."""
    if isinstance(value, ACCEPTED[bool]):
        return kind is bool
    return isinstance(value, ACCEPTED[kind])


def near_matches(given, names, cutoff=0.4):
    """'; did you mean …?' with the names closest to the given one; "" if none is close."""
    close = difflib.get_close_matches(given, names, cutoff=cutoff)
    return f"; did you mean {' or '.join(close)}?" if close else ""


def understand(name, annotation, default, about=""):
    """The Option that a keyword's annotation and default describe.

    about: the line of its help; without one the last text in the annotation is. Raises ValueError
    if the annotation is missing or none of those above, or if the default does not fit it.
    """
    kind, *notes = get_args(annotation) if get_origin(annotation) is Annotated else [annotation]
    choices = get_args(kind) if get_origin(kind) is Literal else ()
    if choices and all(isinstance(choice, str) for choice in choices):
        kind = str
    limits = next((note for note in notes if isinstance(note, AtLeast | Within | OrZero)), None)
    files = next((note for note in notes if isinstance(note, Files)), None)
    itself = next((note for note in notes if isinstance(note, Itself)), None)
    if not isinstance(kind, type) or kind not in KINDS:
        kinds = ", ".join(known.__name__ for known in KINDS)
        raise ValueError(
            f"the annotation of {name!r} is {annotation}; wanted one of {kinds}, "
            "a Literal of texts, or an Annotated number or text"
        )
    helps = [note for note in notes if isinstance(note, str)]
    new = Option(name, kind, default, about or "".join(helps[-1:]), choices, limits, files, itself)
    if type(default) is not kind:
        raise ValueError(f"the default of {name!r} is {default!r}; wanted {KINDS[kind]}")
    new.checked(default)
    return new


def at_least(name, value, least):
    """Raise ValueError unless an option is `least` or more."""
    if value < least:
        raise ValueError(f"--{name} is {value}; wanted {least} or more")


def within(name, value, least, most):
    """Raise ValueError unless least <= value <= most; a figure of more could not be read.

    NotApplicable for a model that allows no value.
    """
    if least > most:
        raise NotApplicable(f"needs --{name} of {least} or more; this model allows {most} at most")
    if not least <= value <= most:
        raise ValueError(f"--{name} is {value}; wanted {least} to {most}")


def fitting(name, value, most, usual):
    """`value` if it is 1 to `most`; the usual one is cut to what the model has.

    Raises ValueError for any other value that is not within.
    """
    if value == usual:
        value = max(1, min(value, most))
    within(name, value, 1, most)
    return value


def several(documents, least=2):
    """Raise ValueError unless an interval can be drawn: for one document it has no width."""
    if len(documents) < least:
        raise ValueError(
            f"--documents: {len(documents)} read; an interval over documents needs at least {least}"
        )
