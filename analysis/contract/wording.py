"""Numbers and answers as text."""

import re

import numpy as np

from ..machine.language import filled, label, translated
from . import nothing

ENDS = ["from", "to"]  # labels of an interval
HASH = re.compile(r"[0-9a-f]{64}")  # SHA-256


def words(value, digits=3):
    """A value as text: floats with this many digits, lists with commas, a dash for None.

    An empty list is 'none'. A hash is its beginning.

    >>> words("af0d9c36" * 8)
    'af0d9c36af0d…'
    """
    if isinstance(value, list):
        return ", ".join(words(item, digits) for item in value) or translated("none")
    if isinstance(value, float) and 1e-4 <= abs(value) < 1e6:
        return np.format_float_positional(value, digits, fractional=False, trim="-")
    if isinstance(value, float):
        return f"{value:.{digits}g}"
    if HASH.fullmatch(str(value)):
        return f"{value[:12]}…"
    return "–" if value is None else label(str(value))


def labelled(number):
    """The value of a headline number as text, the entries of a list behind their names.

    >>> labelled({"labels": ["L0H0", "L0H1"], "value": [2, 0.5]})
    'L0H0: 2, L0H1: 0.5'
    >>> labelled({"labels": ["from", "to"], "value": [0.25, 0.5]})
    '0.25 to 0.5'
    """
    if "labels" not in number:
        return words(number["value"])
    labels, values = [*map(str, number["labels"])], [*map(words, number["value"])]
    if labels == ENDS:
        return translated(" to ").join(values)
    return ", ".join(f"{label(name)}: {value}" for name, value in zip(labels, values))


def sentence(answer):
    """An Answer as one sentence."""
    if answer.verdict == nothing.KIND:
        return nothing.sentence(f"{answer.measure}: {answer.value}")
    verdict = translated(answer.verdict.capitalize())
    parts = {"verdict": verdict, "measure": answer.measure, "value": answer.value}
    return filled(
        "{verdict}: {measure}: {value}{chance}.", chance=by_chance(answer.chance), **parts
    )


def in_sentence(verdict):
    """A verdict in the current language, within a sentence: in small letters."""
    return translated(verdict.capitalize()).lower()


def by_chance(chance):
    """What stands behind a value: ' (chance: 3 of 12)', or nothing."""
    return filled(" (chance: {chance})", chance=chance) if chance else ""
