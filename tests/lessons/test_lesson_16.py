"""Lesson 16: its checks tell right answers from wrong ones; its prose says what its cells give."""

import re

import numpy as np
import pytest
from answered import answers

import minitx
from minitx.lessons.checks import NOT_YET, Wrong, lesson_16
from minitx.lessons.checks.lesson_16 import check_first_loss, check_model, check_step


def first_above(steps, values):
    """The first step at which the share is half or more, whatever comes later."""
    return next((step for step, share in zip(steps, values) if share >= 0.5), None)


def strictly_above(steps, values):
    """Right, but for a share of exactly half."""
    low = np.flatnonzero(values <= 0.5)
    first = 0 if not len(low) else low[-1] + 1
    return steps[first] if first < len(steps) else None


def never_none(steps, values):
    """Right, but for a curve that ends below half: it was not learned."""
    low = np.flatnonzero(values < 0.5)
    return steps[min(low[-1] + 1, len(steps) - 1)] if len(low) else steps[0]


SAID = {
    check_first_loss: [
        (np.log, "right"),
        (lambda V: -np.log(1 / V), "right"),
        (lambda V: 1 / V, "1 / V is the probability"),
        (lambda V: -np.log(V), "a loss is positive"),
        (lambda V: V, "the probability of each token is 1 / V"),
        (lambda V: np.log(2) if V == 2 else np.log2(V), "this is in bits"),
        (3.7, "wanted a function, such as lambda"),
    ],
    check_step: [
        (first_above, "after that step the share falls below half once more"),
        (lambda steps, values: steps[-1], "wanted 10, this gives 100; after|wanted 10, this giv"),
        (lambda steps, values: None, "wanted 10, this gives None"),
        (strictly_above, "wanted 5, this gives 50"),
        (never_none, "at the end it is below half, so it was not learned"),
    ],
}

test_answers = answers(SAID)


def test_a_model_is_asked_for_dates_that_it_never_read(monkeypatch):
    assert check_model(..., set()) == NOT_YET
    model = minitx.load("tiny-gpt2")
    with pytest.raises(Wrong, match=r"wanted its \.model"):
        check_model(minitx.History(model, np.zeros(1), {}), set())
    with pytest.raises(Wrong, match="this is str"):
        check_model("tiny-gpt2", set())
    dates = sorted(lesson_16.dates())
    assert len(dates) == 366 and "the 22nd of May" in dates and "the 31st of June" not in dates
    for lines, unseen, hint in (
        (["the 1th of May"] * 9 + dates[:9], set(), "50.0% of its lines are dates"),
        (dates[:9], {dates[10]}, "it knows the others by heart"),
    ):
        monkeypatch.setattr(lesson_16, "written", lambda model, lines=lines: lines)
        with pytest.raises(Wrong, match=hint):
            check_model(model, unseen)
    monkeypatch.setattr(lesson_16, "written", lambda model: dates)
    assert check_model(model, {dates[3]}).startswith("right: 100.0% of its lines are dates, 1 of")


def test_the_prose_says_what_the_cells_give(names, printed):
    values, steps = names["shares"], names["history"].snapshots
    form, month, date = (names["learned_at"](steps, column) for column in values.T[:3])
    assert form <= month <= date < steps[-1]  # 102, 102, 135
    assert (values[:, 0] >= values[:, 1]).all() and (values[:, 1] >= values[:, 2]).all()
    assert values[steps.index(102), 0] > 1.3 * values[steps.index(102), 1]  # 0.88, 0.56
    assert (values[-1] > 0.85).all() and not values[0][:3].any()
    assert set(names["DATES"]) == lesson_16.dates()
    assert names["history"].losses[0] > np.log(names["config"]["vocab_size"]) - 0.3
    never = re.search(r"wrote (\S+)% \(± (\S+)%\) were never read", printed)
    share, error = map(float, never.groups())
    assert share - error > 5 and share + error < 16.4  # 11.2 ± 1.4
    assert "with nothing but memory: 0%" in printed
    table = [float(x) for x in re.findall(r"the bigram model (\S+)%", printed)]
    assert table[2] < 0.1 and max(table) < 1
    assert names["to_the_one"].max() > 0.5
    assert printed.count("right: ") == 3 and printed.count(NOT_YET) == 3
