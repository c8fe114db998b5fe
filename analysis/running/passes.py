"""Forward passes that are watched and not changed: whoever reads the same one shares it.

A measure that is a generator says what it reads. It yields Readings and is sent their values:

    def measure(i, document):
        X = yield inputs.reading(model, document)
        mixed = yield inputs.reading(model, documents.shuffled(i, document, seed))
        return {"x": X.sum(axis=1), "mixed": mixed.sum(axis=1)}

Readings of the same model, tokens and edits are one pass, whichever measures ask for them, and each
sees what it would see in a pass of its own. A measure that is a plain function runs its own passes.
"""

from collections.abc import Callable, Mapping
from types import GeneratorType, MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from minitx import forward
from minitx.model import identity

NOTHING: Mapping = MappingProxyType({})
ABSENT = ...  # in place of a document that a measure does not read


class Reading(NamedTuple):
    """What is read of one forward pass."""

    model: Any
    tokens: np.ndarray
    watch: Callable  # watch(name, x, layer=None) at every point; it may keep x only as a copy
    value: Callable  # value(final stream [1 T D]) after the pass: what the reading gives
    edits: Mapping = NOTHING  # {point: array or f(x)}
    options: Mapping = NOTHING  # further keywords of minitx.forward
    hook: Callable = identity  # of the pass before it is watched, where edits do not say all

    @property
    def key(self):
        """Equal for readings of the same pass."""
        tokens = np.asarray(self.tokens)
        by_identity = [sorted((k, id(v)) for k, v in x.items()) for x in (self.edits, self.options)]
        return id(self.model), id(self.hook), tokens.shape, tokens.tobytes(), str(by_identity)


def value(reading):
    """The value of one reading, from a pass of its own."""
    [(result, error)] = one_pass([reading])
    if error is not None:
        raise error
    return result


def one_pass(readings):
    """(value, None) or (None, error) for each of several readings of the same pass."""
    first = readings[0]
    errors = {}

    def hook(name, x, layer=None):
        if first.hook is not identity:
            x = first.hook(name, x, layer)
        if name in first.edits:
            x = edited(x, first.edits[name])
        for number, reading in enumerate(readings):
            if number not in errors:
                _attempt(errors, number, reading.watch, name, x, layer)
        return x

    try:
        final = forward(first.model, first.tokens, hook=hook, **first.options)
    except Exception as error:  # each of them would have met it alone
        return [(None, error)] * len(readings)
    results = []
    for number, reading in enumerate(readings):
        result = None
        if number not in errors:
            result = _attempt(errors, number, reading.value, final)
        results.append((result, errors.get(number)))
    return results


def _attempt(errors, number, function, *arguments):
    """function(*arguments); what it raises is kept, so that others go on."""
    try:
        return function(*arguments)
    except Exception as error:
        errors[number] = error


def edited(x, edit):
    """The value with which an edit, an array or f(x), replaces x."""
    new = edit(x) if callable(edit) else edit
    return np.ascontiguousarray(new, x.dtype)


def unwatched(name, x, layer=None):
    """The watch of a reading whose value is of the final stream alone."""


class Measuring:
    """One measure on one document: the reading that it waits for, or its result or error."""

    def __init__(self, measure, index, document):
        self.steps = self.reading = self.result = self.error = None
        self._go_on(self._begin, measure, index, document)

    def send(self, result, error):
        """Go on with the value of the reading, or with what was raised in its place."""
        if error is None:
            self._go_on(self.steps.send, result)
        else:
            self._go_on(self.steps.throw, error)

    def _begin(self, measure, index, document):
        """The first reading; StopIteration with the result of a measure that is a function."""
        result = measure(index, document)
        if not isinstance(result, GeneratorType):
            raise StopIteration(result)
        self.steps = result
        return next(result)

    def _go_on(self, step, *arguments):
        self.reading = None
        try:
            self.reading = step(*arguments)
        except StopIteration as end:
            self.result = end.value
        except Exception as error:
            self.error = error


def measured(measure, index, document):
    """What a measure gives for one document."""
    measuring = Measuring(measure, index, document)
    _finish([measuring])
    if measuring.error is not None:
        raise measuring.error
    return measuring.result


def measured_together(measures, index, documents):
    """The results of several measures on their documents number `index`: {(number, name): array}.

    Under (number, None) stands what a measure raised. It has none for a document that is ABSENT.
    """
    going = {
        number: Measuring(measure, index, document)
        for number, (measure, document) in enumerate(zip(measures, documents))
        if document is not ABSENT
    }
    _finish([*going.values()])
    results = {}
    for number, measuring in going.items():
        result = {None: measuring.error} if measuring.error is not None else measuring.result
        results |= {(number, name): x for name, x in result.items()}
    return results


def _finish(going):
    """Run the passes that are waited for, first those that most wait for, until none is."""
    while waiting := [measuring for measuring in going if measuring.reading is not None]:
        groups = {}
        for measuring in waiting:
            groups.setdefault(measuring.reading.key, []).append(measuring)
        largest = max(groups.values(), key=len)
        outcomes = one_pass([measuring.reading for measuring in largest])
        for measuring, outcome in zip(largest, outcomes):
            measuring.send(*outcome)
