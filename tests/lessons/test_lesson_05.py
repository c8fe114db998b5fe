"""Lesson 5: its checks tell right answers from likely wrong ones, and its prose is true."""

import numpy as np
from answered import answers

from minitx.analysis.toys import gru, recurrent
from minitx.lessons.checks.lesson_05 import check_look, check_order, check_uniform

CHANCE = 1 / 16


def last(s, h):
    return np.eye(len(h))[-1]


SAID = {
    check_look: [
        (last, "right"),
        (lambda s, h: np.eye(len(h))[0], "the first letter's state"),
        (lambda s, h: np.full(len(h), 1 / len(h)), "other positions still get some weight"),
        (lambda s, h: np.ones(len(h)), "weights sum to 1, yours to 6.00"),
        (lambda s, h: h[-1], r"one weight per letter, 6 here; yours are \(4,\)"),
        ("last", "wanted a function"),
    ],
    check_uniform: [
        (0.12, "right"),  # measured 0.120
        (1.0, "still use the scores"),
        (12, "between 0 and 1"),
        (0.3, "every row of `rows`"),
    ],
    check_order: [
        (("turned", "same"), "right"),
        (("same", "same"), "each score belongs to one state"),
        (("turned", "new"), "terms are added in another order"),
        (("turned", "turned"), "terms are added in another order"),
        (("back", "same"), "one of same, turned, new"),
        ("turned", "a pair of words"),
    ],
}

test_answers = answers(SAID)


def test_the_beginning_is_kept_and_the_end_is_a_guess(names):
    right = names["right"]
    assert right[:3].min() > 0.75  # measured 0.92 0.86 0.81
    assert abs(right[-1] - CHANCE) < 0.05  # measured 0.06
    assert gru.encode(gru.load()["fixed"], names["rows"])[0, 0].shape == (48,)


def test_the_last_squares_hold_opposite_ends(names):
    probe = names["probe"]
    first, last = ([probe(name, place) for name in ("fixed", "dot")] for place in (0, 19))
    assert first[0] > 0.9 and abs(first[1] - CHANCE) < 0.03  # measured 0.99, 0.07
    assert last[1] > 0.9 and last[0] > names["right"][-1] + 0.1  # measured 1.00, 0.30 and 0.06


def test_looking_back_costs_nothing_and_goes_on(names):
    share, models = names["share_right"], names["models"]
    assert share("fixed", 40) < share("fixed-wide", 40) < 0.5  # measured 0.16 0.20
    assert min(share(name, 40) for name in ("dot", "additive")) > 0.95  # measured 1.00 both
    sizes = {name: gru.n_parameters(w) for name, w in models.items()}
    assert sizes["dot"] == sizes["fixed"]
    assert 3.5 < sizes["fixed-wide"] / sizes["fixed"] < 4.5  # 3.87: "about four times"


def test_the_machine_that_looks_back_before_its_step_fails_beyond_the_training(names):
    share = names["share_right"]
    assert share("bahdanau", 20) > 0.99  # measured 1.00
    assert share("bahdanau", 40) < 0.65  # 0.54


def test_the_machine_that_looks_back_before_its_step_mostly_counts(names):
    """77% of the lesson, of `minitx toy` with 200 sequences."""
    w, rows = names["models"]["bahdanau"], recurrent.draw_sequences(200, 20, 0)
    decoded = gru.decode("bahdanau", w, rows)
    others = recurrent.crossed("bahdanau", w, decoded, np.roll(rows, 1, axis=0))
    counted = (others.argmax(axis=-1) == np.arange(20)).mean()
    assert round(counted, 2) == 0.77  # 3094 of 4000; a place that hangs on rounding is 0.0003


def test_the_map_is_more_than_counting(names):
    own, other = np.mean(names["own"]), np.mean(names["other"])
    assert own > 0.95  # measured 1.00
    assert 1 / 20 < other < 0.5  # measured 0.29


def test_a_lesson_writes_as_the_kit_does(names):
    row = names["rows"][0]
    letters, maps = names["write"]("dot", row, names["attention"])
    decoded = gru.decode("dot", names["models"]["dot"], row[None])
    np.testing.assert_array_equal(letters, decoded.output[0])
    np.testing.assert_allclose(maps, decoded.pattern[0], atol=1e-12)
