"""Sentences as templates over the results of an experiment.

    "Held out: {mean:.2f}; {n_high[0]} of {high.size} reach {HIGH}."

A name is a result, or else what the experiment's file calls so: a constant, or a function of the
results. A list is joined with commas, each entry in the format given; `{x[0]}` is an entry,
`{x[best]}` the one that the result `best` tells, `{x.size}` how many there are, `{x.max}` the
largest, `{x.minus}` what a word of FUNCTIONS makes of it; the format `offset` gives an offset its
sign. A template is told in the current language (machine/language.py). Several pieces are a list,
put together as they stand: templates, functions of the results, `When` and `Rows`.
"""

import operator
import re
import string
from dataclasses import dataclass
from inspect import isfunction

import numpy as np

from ..machine import language
from . import draw

FIELD = re.compile(r"(?P<name>\w+)(?P<steps>(\[-?\w+\]|\.\w+)*)")
STEP = re.compile(r"\[(-?\w+)\]|\.(\w+)")

FUNCTIONS = {  # of a value, by the word that stands behind it: {gain.minus:.2f}
    "abs": np.abs,
    "exp": np.exp,
    "minus": np.negative,
    "percent": lambda x: 100 * x,
}
MINUS_NOTHING = re.compile(r"^-(0(\.0+)?%?)$")  # a number that is rounded to 0 from below
SIGNS = {  # of what is compared
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "==": operator.eq,
    "!=": operator.ne,
}


class Names:
    """What the names of templates and rules stand for: results, then the experiment's file.

    >>> names = Names({"mean": np.array([0.5, 0.25])}, {"HIGH": 0.9, "n": lambda r: len(r["mean"])})
    >>> float(names["mean[-1]"]), names["mean.size"], names["HIGH"], names["n"]
    (0.25, 2, 0.9, 2)
    """

    def __init__(self, result, scope=None):
        self.result = result
        self.scope = scope or {}

    def __getitem__(self, field):
        match = FIELD.fullmatch(field)
        if match is None:
            raise KeyError(f"{field!r} is no field; wanted NAME, NAME[0] or NAME.size")
        value = self._named(match["name"])
        for place, attribute in STEP.findall(match["steps"]):
            if attribute:
                value = _attribute(value, attribute)
            else:
                value = value[self._place(place)]
        return value

    def _place(self, place):
        """What stands in brackets: a number, or a result that tells it."""
        is_number = place.lstrip("-").isdigit()
        return int(place) if is_number else np.asarray(self[place]).item()

    def _named(self, name):
        """A result, or what the file has: a constant, or the value of a function."""
        if name in self.result:
            return self.result[name]
        if name not in self.scope:
            raise KeyError(f"{name!r} is no result, and nothing in the experiment's file")
        value = self.scope[name]
        return value(self.result) if isfunction(value) else value

    def has(self, field):
        """Whether a result is there and holds anything but 0, or whether "FIELD > 1" is so."""
        left, *compared = field.split()
        name = FIELD.match(left)["name"]
        if name not in self.result and name not in self.scope:
            return False
        if not compared:
            return bool(np.any(self[field]))
        sign, right = compared
        other = int(right) if right.isdigit() else self[right]
        return bool(SIGNS[sign](self[left], other))

    def value(self, term):
        """The value of a term of a rule: a field, a function of the results, or a number."""
        if isinstance(term, str):
            return self[term]
        return term(self.result) if callable(term) else term


def _attribute(value, name):
    """What a word of FUNCTIONS makes of a value, or its attribute, or what its method gives."""
    if name in FUNCTIONS:
        return FUNCTIONS[name](value)
    attribute = getattr(value, name)
    return attribute() if callable(attribute) else attribute


@dataclass(frozen=True)
class When:
    """A piece that stands where a result is there and not 0, and another piece that does if not.

    name: the result, or a field beside another, or a whole number: "mean > mean_null", "n == 1".
    A result that may be 0, or missing: "n_left >= 0".
    """

    name: str
    then: object
    otherwise: object = ""

    def tell(self, names):
        """The piece that holds."""
        return tell(self.then if names.has(self.name) else self.otherwise, names)


@dataclass(frozen=True)
class Rows:
    """One template told for each entry of lists of one length.

    where: only for entries of this result that are not 0. first: number of the first of these that
    is told. most: at most so many. none: where there are no rows.
    """

    template: str
    where: str = ""
    join: str = "; "
    none: str = ""
    most: int | None = None
    first: int = 0

    def tell(self, names):
        """The rows, joined."""
        lists = self._lists(names)
        n = min(map(len, lists.values()))
        numbers = np.flatnonzero(names[self.where]) if self.where else range(n)
        texts = []
        for i in numbers[self.first :][: self.most]:
            entries = {field: values[i] for field, values in lists.items()}
            texts.append(tell(self.template, _Row(names, entries)))
        return language.translated(self.join).join(texts) or tell(self.none, names)

    def _lists(self, names):
        """{field of the template: its list}."""
        fields = [field for _, field, _, _ in string.Formatter().parse(self.template) if field]
        arrays = {field: np.asarray(names[field]) for field in fields}
        return {field: values for field, values in arrays.items() if values.ndim}


class _Row:
    """Names of which some stand for an entry of their list."""

    def __init__(self, names, entries):
        self.names, self.entries, self.result = names, entries, names.result

    def __getitem__(self, field):
        return self.entries[field] if field in self.entries else self.names[field]


class _Formatter(string.Formatter):
    """str.format whose fields are Names, lists entry by entry."""

    def __init__(self, names):
        self.names = names

    def get_field(self, field_name, args, kwargs):
        return self.names[field_name], field_name

    def format_field(self, value, format_spec):
        return words(value, format_spec)

    def convert_field(self, value, conversion):
        return super().convert_field(np.asarray(value).item() if conversion else value, conversion)


def words(value, spec=""):
    """A value, or a list of values, in a format of Python's, or in the format `offset`.

    `to .2f` is the format .2f for the two ends of an interval, if there is one.

    >>> words(np.array([0.5, 0.25]), ".1%"), words(np.array([-1, 0, 2]), "offset")
    ('50.0%, 25.0%', '-1, 0, +2')
    """
    if spec.startswith("to "):
        return _ends(value, spec.removeprefix("to "))
    if isinstance(value, np.ndarray | list | tuple) and np.ndim(value):
        return ", ".join(words(entry, spec) for entry in value)
    if spec == "offset":
        return draw.offset(int(value))
    value = np.asarray(value).item()
    if isinstance(value, str) and not spec:
        return language.label(value)
    text = format(value, spec)
    return text if "+" in spec else MINUS_NOTHING.sub(r"\1", text)


def _ends(interval, spec):
    """The two ends of an interval, or that there is none."""
    if np.isnan(interval).any():
        return language.translated("of one document: no interval")
    return language.translated(" to ").join(words(end, spec) for end in interval)


def tell(piece, names):
    """The text of a piece: a template, a function of the results, When, Rows, or a list of these.

    >>> pieces = ["{n} heads", When("extra", " ({extra} more)"), "."]
    >>> tell(pieces, Names({"n": 3})), tell(pieces, Names({"n": 3, "extra": 2}))
    ('3 heads.', '3 heads (2 more).')
    """
    if isinstance(piece, list | tuple):
        return "".join(tell(part, names) for part in piece)
    if isinstance(piece, When | Rows):
        return piece.tell(names)
    if callable(piece):
        return piece(names.result)
    return _Formatter(names).format(language.translated(piece))


@dataclass(frozen=True)
class Sentences:
    """Pieces, and the experiment's file, whose constants and functions they name."""

    pieces: object
    scope: dict

    def __call__(self, result):
        return tell(self.pieces, Names(result, self.scope))
