"""Refusals that are nobody's fault: a report leaves an experiment out, and does not fail."""

from minitx.inputs import TooLong


class NotApplicable(ValueError):
    """The model, or the text, lacks what an experiment needs: nothing is wrong with either."""


# nothing went wrong: a tokenizer, a model to compare with, or what NotApplicable says is not there
LACKING = FileNotFoundError, NotApplicable, TooLong
