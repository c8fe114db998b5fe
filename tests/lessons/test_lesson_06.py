"""Lesson 6: its checks tell right answers from likely wrong ones, and its prose is true."""

import numpy as np
from answered import answers

from minitx.lessons.checks.lesson_06 import check_place, check_row, check_rows

SAID = {
    check_row: [
        (7, "right"),
        (8, "that row has read the 6"),
        (6, "</s> and <s> are rows too"),
        (3, "the 6 of the year"),
        (0, "write down what each row has read"),
    ],
    check_place: [
        (7, "right"),
        (np.int64(7), "right"),
        (8, "from position 8 it writes -"),
        (6, "from position 6 it writes 0"),
        (100, "from 0 to 63"),
    ],
    check_rows: [
        ((5050, 100), "right"),
        ([5050, 100], "right"),
        ((100, 5050), "the other way round"),
        ((10_000, 100), "step n has n rows"),
        ((4950, 100), "step n computes n rows"),
        ((5050, 1), "a step computes one row"),
        (5050, "a pair"),
    ],
}

test_answers = answers(SAID)


def test_the_query_has_not_seen_the_source(names):
    assert names["change_of_query"] == 0
    by_character = names["by_character"]
    assert names["one"].source_labels[0][by_character.argmax()] == "9"
    assert by_character.max() > 3 * np.sort(by_character)[-2]  # measured 0.73, 0.12


def test_whatever_the_row_has_read_it_looks_at_the_9(printed):
    lies = [line for line in printed.splitlines() if line.startswith("it has read")]
    assert len(lies) == 11
    assert all("looks at '9'" in line and line.endswith("writes 9") for line in lies)


def test_its_place_decides_what_is_written(names):
    last_row, ids, pieces = names["last_row"], names["ids"], names["pieces"]
    following = [last_row(ids[:3], positions=[0, 1, place])[2] for place in range(2, 12)]
    assert "".join(pieces(following)) == "912-05-03</s>"


def test_a_row_looks_at_what_is_written_not_at_its_own_like(names):
    counts = names["counts"]
    share = {name: hits / n for name, (n, hits, _) in counts.items()}
    chance = {name: null / n for name, (n, _, null) in counts.items()}
    assert share["written, year only"] > 0.95  # measured 1.00
    assert share["written"] > 5 * chance["written"]  # measured 0.60, 0.08
    assert share["asking"] < 2 * chance["asking"]  # measured 0.06, 0.08


def test_all_rows_at_once_are_the_same(names):
    assert names["difference"] < 1e-5  # measured 6e-8
    assert (names["rows_with"], names["rows_without"]) == (12, 78)
