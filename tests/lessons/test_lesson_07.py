"""Lesson 7: its checks tell right answers from likely wrong ones, and its prose is true."""

import numpy as np
from answered import answers

import minitx
from minitx.lessons.checks.lesson_07 import check_look_left, check_matrix, check_period

C, S = np.cos(0.5), np.sin(0.5)


SAID = {
    check_matrix: [
        ([[C, -S], [S, C]], "right"),
        ([[C, S], [-S, C]], "transposed"),
        (np.eye(2), "sin x cos a"),
        ([[C, S], [S, C]], "the columns are"),
        ([C, S], r"yours is \[2\]"),
    ],
    check_look_left: [(-5, "right"), (5, "five to the right"), (3, "which turn goes to")],
    check_period: [
        ((89, 256 / 89), "right"),
        ((np.int64(89), 2.88), "right"),
        ((39, 6.6), "add what you cut off"),
        ((1, 256), "another frequency is higher"),
        ((89, 89 / 256), "cycles per position"),
        ((89, 89), "divide"),
        (89, "a pair"),
    ],
}

test_answers = answers(SAID)


def test_a_sum_can_be_taken_apart(names):
    for table, right in ("W", "word"), ("P", "place"):
        share = (names["nearest"](names["sums"], names[table]) == names[right]).mean()
        assert share > 0.99  # measured 0.997 and 0.998
    assert names["cosine"] < 0.1  # measured 0.04


def test_a_shift_is_a_turn(names):
    sinusoids, turn = names["sinusoids"], names["turn"]
    table = sinusoids(200, 64)
    np.testing.assert_allclose(table[:-17] @ turn(17, 64), table[17:], atol=1e-12)
    products = table @ table.T  # equal along each diagonal: they depend on the distance alone
    np.testing.assert_allclose(products[0, :100], products[90, 90:190], atol=1e-11)


def test_training_made_waves(names):
    assert len(names["above"]) >= 10  # measured 19; each of 99 shuffles has none by definition


def test_one_turn_leads_through_a_learned_table(names):
    names_next, rng = names["names_next"], np.random.default_rng(1)
    assert names_next(names["P"])[0] > 0.99  # measured 1.00
    assert max(names_next(rng.permutation(names["P"]))[0] for _ in range(5)) < 0.05  # 0.02
    tables = {name: rows(name) for name in ("tiny-bert", "deep-roberta", "tiny-gpt2")}
    right = {name: names_next(table) for name, table in tables.items()}
    assert min(right["tiny-bert"][0], right["deep-roberta"][0]) > 0.9  # measured 0.95 0.97
    assert right["tiny-gpt2"][0] < 0.8  # measured 0.62
    assert right["tiny-gpt2"][1] == 1  # right, or the row beside


def rows(name):
    """The position table of a bundled model, the rows that a token can reach."""
    model = minitx.load(name)
    first, last = model.config.offset, model.config.offset + model.config.n_ctx
    return np.asarray(model.weights.W_pos)[first:last]


def test_heads_follow_the_rows(names):
    before, by_row = names["looks_before"](names["order"])
    assert before < 0.05  # measured 0.00
    assert by_row > 0.9  # measured 0.97
