"""The numbers that an experiment declares, and the headline that they make of its results.

    mean by layer_names: mean correlation on documents that it was not fitted to, and a line
        that goes on is indented
        null: what the result mean_null means
    mean_fitted by layer_names: mean correlation of the fit
        no null: chance fits as well; the mean on other documents is beside its null
    last_[q|k]: contrast of [queries|keys] in the last layer: one number for each
        null: the same with the words shuffled
    fact documents: documents read

Each is a record, Number or Fact; where they are many of a kind an experiment makes them by itself.
"""

import re
import textwrap
from dataclasses import dataclass

from ..drawing.sentences import Names, tell
from ..machine.language import translated, using


@dataclass(frozen=True)
class Number:
    """A measured result: what NAME means, and what its null means, which is the result NAME_null.

    Raises ValueError unless it has a null or says why there is none.
    """

    name: str
    means: str
    null: str = ""  # what the result NAME_null means
    by: str | tuple = ""  # what names the entries of a list: a result, or the names themselves
    no_null: str = ""  # why chance gives no value to compare it with

    def __post_init__(self):
        if bool(self.null) == bool(self.no_null):
            given = "both" if self.null else "neither"
            raise ValueError(
                f"the number {self.name!r} has {given} of null and no_null; wanted what its null "
                "means, or why it has none"
            )


@dataclass(frozen=True)
class Fact:
    """A size, a setting or a name that a reader needs beside the numbers; chance has no part."""

    name: str
    means: str
    by: str | tuple = ""


FIRST = re.compile(r"(?P<fact>fact )?(?P<name>\w+)( by (?P<by>[\w%, -]+))?: ?(?P<means>.*)")
CHOICE = re.compile(r"\[([^][|]*\|[^][]*)\]")
FIELD = re.compile(r"(?P<field>null|no null): (?P<text>.*)")


def declared(text):
    """Number and Fact records, of a text as above.

    >>> declared('''
    ... share: share of the heads
    ...     null: share of random
    ...     heads
    ... fact documents: documents read
    ... ''')[0].null
    'share of random heads'

    Raises ValueError for a line that begins no number, and for a number without a null or reason.
    """
    records = []
    for line in _unfolded(text):
        if line[0] != " ":
            records.append(_begin(line))
            name = "means"
            continue
        field = FIELD.fullmatch(line.strip())
        if field:
            name = field["field"].replace(" ", "_")
        more = field["text"] if field else line.strip()
        records[-1][name] = f"{records[-1].get(name, '')} {more}".strip()
    return [_record(**record) for record in records]


def _unfolded(text):
    """The lines of a text, those of a number with [a|b] once for a and once for b."""
    for lines in re.split(r"\n(?! )", textwrap.dedent(text).strip()):
        first = CHOICE.search(lines)
        n = len(first[1].split("|")) if first else 1
        for i in range(n):
            yield from CHOICE.sub(lambda match, i=i: match[1].split("|")[i], lines).splitlines()


def _begin(line):
    """The fields that the first line of a number gives."""
    match = FIRST.fullmatch(line)
    if match is None:
        raise ValueError(f"{line!r} declares no number; wanted NAME: its meaning")
    return match.groupdict(default="")


def _record(fact, by, **fields):
    names = by.split(", ")
    fields["by"] = by if len(names) == 1 else tuple(names)
    return Fact(**fields) if fact else Number(**fields)


def of_experiment(numbers, scope):
    """The records of a text, whose {NAMES} the experiment's file has, or of texts and records.

    Their texts are English, as keys of translations.
    """
    if isinstance(numbers, str):
        numbers = [numbers]
    records = []
    for part in numbers:
        if isinstance(part, str):
            with using("en"):
                records += declared(tell(part, Names({}, scope)))
        else:
            records.append(part)
    return tuple(records)


def null_of(number):
    """What the null of a record means; "" for a Fact, and for a Number without one."""
    return getattr(number, "null", "")


def headline(numbers, result):
    """Headline figures of a result: {name: {"value": …, "means": …}}, in the order declared.

    Those with a null have "null" and "null_means" too, lists with names for their entries "labels".
    """
    figures = {}
    for number in numbers:
        if number.name not in result:  # an option may leave nothing to measure
            continue
        figure = {"value": result[number.name].tolist(), "means": translated(number.means)}
        if number.by:
            figure["labels"] = _labels(number.by, result)
        null = result.get(f"{number.name}_null") if null_of(number) else None
        if null is not None:
            figure |= {"null": null.tolist(), "null_means": translated(number.null)}
        figures[number.name] = figure
    return figures


def _labels(names, result):
    """The names of a list's entries; `names`: the result that holds them, or themselves."""
    return result[names].tolist() if isinstance(names, str) else list(names)
