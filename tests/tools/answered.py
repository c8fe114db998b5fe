"""Checks of a lesson's exercises, each with answers and what it says of them."""

import re

import pytest

from minitx.lessons.checks import NOT_YET, Wrong


def answers(said):
    """A test of {check: [(answer, text)]}: "right…" begins what is said, another is of a hint.

    What is not answered is not wrong.
    """
    rows = []
    for check, pairs in said.items():
        for i, pair in enumerate([(..., NOT_YET), *pairs]):
            rows.append(pytest.param(check, *pair, id=f"{check.__name__}-{i}"))

    @pytest.mark.parametrize(("check", "answer", "text"), rows)
    def test(check, answer, text):
        try_answer(check, answer, text)

    return test


def try_all(check, pairs, *given):
    """The same at once, of a check that is given more than an answer."""
    for answer, text in [(..., NOT_YET), *pairs]:
        try_answer(check, answer, text, *given)


def try_answer(check, answer, text, *given):
    """Hold a check to what it says of one answer."""
    if answer is ...:
        assert check(answer, *given) == text
    elif text.startswith("right"):
        assert re.match(text, check(answer, *given))
    else:
        with pytest.raises(Wrong, match=text):
            check(answer, *given)
