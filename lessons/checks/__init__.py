"""Checks of exercises: `check_…(answer)` returns a short sentence, or raises Wrong with a hint.

An answer that is still `...` gives NOT_YET, so that a notebook runs to its end before any exercise
is solved.
"""

NOT_YET = "not answered yet"


class Wrong(AssertionError):
    """The answer of an exercise is wrong; the text is a hint."""
