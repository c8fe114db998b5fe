"""An answer of its own: there is nothing in the model of which the question could be asked.

A causal model without positions has none that could be moved. That is not "no", which says that
positions were moved and nothing followed, and the model lacks nothing that the experiment needs.
"""

import functools

import numpy as np

from ..drawing import draw
from ..machine import language

KIND = "nothing"  # the verdict, and the result that says why


class Nothing(Exception):
    """Says what there is nothing of, and why: "nothing to move: …"."""


def answered(run):
    """`run` of an experiment, in which Nothing is a result with its words."""

    @functools.wraps(run)
    def with_words(*args, **options):
        try:
            return run(*args, **options)
        except Nothing as reason:
            return {KIND: np.array(str(reason))}

    return with_words


def words(result):
    """What there is nothing of, and why, of a result with nothing.

    >>> words({KIND: np.array("nothing to move: no mechanism")})
    ('nothing to move', 'no mechanism')
    """
    what, _, why = str(result[KIND]).partition(": ")
    return what, why


def sentence(reason):
    """What there is nothing of, and why, as a sentence in the current language."""
    return language.filled("There is {reason}.", reason=language.label(reason))


def says(result):
    """The sentence of a result with nothing; None of any other."""
    return sentence(str(result[KIND])) if KIND in result else None


def figure(result):
    """A figure of a result with nothing, which holds its words; None of any other."""
    if KIND not in result:
        return None
    empty = draw.figure(7, 1.6)
    axes = empty.subplots()
    axes.set_axis_off()
    style = {"ha": "center", "va": "center", "transform": axes.transAxes}
    axes.text(0.5, 0.5, draw.literal(draw.wrapped(str(result[KIND]), 70)), **style)
    return empty


def first(instead, usual):
    """The function of results that gives what `instead` has for them, and else what `usual` has."""

    def either(result):
        given = instead(result)
        return usual(result) if given is None else given

    either.__wrapped__ = usual  # for whoever looks for the texts inside
    return either
