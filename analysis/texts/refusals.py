"""The refusal that is nobody's fault: a report leaves an experiment out, and does not fail."""


class NotApplicable(ValueError):
    """The model, or the text, lacks what an experiment needs: nothing is wrong with either."""
