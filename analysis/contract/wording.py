"""Numbers and answers as text."""

import numpy as np


def words(value, digits=3):
    """A value as text: floats with this many digits, lists with commas, a dash for None.

    An empty list is 'none'.
    """
    if isinstance(value, list):
        return ", ".join(words(item, digits) for item in value) or "none"
    if isinstance(value, float) and 1e-4 <= abs(value) < 1e6:
        return np.format_float_positional(value, digits, fractional=False, trim="-")
    if isinstance(value, float):
        return f"{value:.{digits}g}"
    return "–" if value is None else str(value)


def labelled(number):
    """The value of a headline number as text, the entries of a list behind their names."""
    if "labels" not in number:
        return words(number["value"])
    entries = zip(number["labels"], number["value"])
    return ", ".join(f"{label} {words(value)}" for label, value in entries)


def sentence(answer):
    """An Answer as one sentence."""
    chance = f" (chance: {answer.chance})" if answer.chance else ""
    return f"{answer.verdict.capitalize()}: {answer.measure}: {answer.value}{chance}."
