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
        if answer is ...:
            assert check(answer) == text
        elif text.startswith("right"):
            assert re.match(text, check(answer))
        else:
            with pytest.raises(Wrong, match=text):
                check(answer)

    return test
