"""Lesson 22: its checks tell right answers from wrong ones; its prose says what its cells give."""

import re

import numpy as np
from answered import answers

from minitx.lessons.checks.lesson_22 import check_bias, check_cost, check_pentagon


def star(n=5, begin=0.0, scale=1.0):
    angle = begin + 2 * np.pi * np.arange(n) / n
    return scale * np.array([np.cos(angle), np.sin(angle)])


SAID = {
    check_pentagon: [
        (star(), "right"),
        (star(begin=1.0), "right"),
        (star()[:, [2, 0, 4, 1, 3]], "right"),
        (star().tolist(), "right"),
        (star().T, r"wanted \[2, 5\], .*; this is \[5, 2\]"),
        (star(6), r"this is \[2, 6\]"),
        (star(scale=1.16), "columns of lengths 1.16 to 1.16; wanted 1"),
        (star(6)[:, :5], "the nearest two are 60° apart; wanted 72°"),
        (star()[:, [0, 0, 1, 2, 3]], "the nearest two are 0° apart"),
    ],
    check_bias: [
        (-0.309, "right: what is there reads 0.69"),
        (-np.cos(np.radians(72)), "right: what is there reads 0.69"),
        (0.309, "must be negative"),
        (-0.2, "the neighbours still read 0.11: go lower"),
        (0, "the neighbours still read 0.31: go lower"),
        (-0.81, "all others are silent, but 0.50 less would do"),
    ],
    check_cost: [
        (lambda n, m, p: (n - m) * (p / 3 - p**2 / 4), "right"),
        (lambda n, m, p: (n - m) * p * (4 - 3 * p) / 12, "right"),
        (lambda n, m, p: m * (p / 3 - p**2 / 4), "these are the features held"),
        (lambda n, m, p: n * (p / 3 - p**2 / 4), "the cost of holding none"),
        (lambda n, m, p: (n - m) * p / 3, "this says 0 for the others"),
        (
            lambda n, m, p: (n - m) / 12,
            "p = 0.1: 0.25 is not it; this is so where a feature is always",
        ),
        (lambda n, m, p: (n - m) * p / 12, "the mean that is said is wrong, too"),
        (lambda n, m, p: p / 3 - p**2 / 4, "the cost of one feature"),
        (lambda n, m, p: n - m, "n = 5, m = 2, p = 1: 3 is not it; each of the 3 others"),
        (0.25, "wanted a function, such as lambda n, m, p"),
    ],
}

test_answers = answers(SAID)


def test_the_prose_says_what_the_cells_give(names, printed):
    lengths = {name: names["length"](W) for name, (W, b) in names["machines"].items()}
    dense = lengths["always there"]
    assert dense[:2].min() > 0.9 and dense[2:].max() < 0.2
    assert lengths["one time in ten"].min() > 1 and lengths["one in fifty"].min() > 1
    measured, calculated = re.search(r"always there: (\S+); calculated (\S+)", printed).groups()
    assert abs(float(measured) / float(calculated) - 1) < 0.01
    gaps = np.diff([*names["angles"], names["angles"][0] + 360])
    assert abs(gaps - 72).max() < 2
    mine, numeric = re.search(r"gradient (\S+), by finite differences (\S+)", printed).groups()
    assert np.isclose(float(mine), float(numeric), rtol=1e-5)


def test_rare_features_and_a_relu_are_both_needed(names):
    kept, ratio, tried = names["kept"], names["ratio"], names["shares"]
    assert [kept[True, p] for p in tried] == [2, 2, 4, 4, 5, 5, 5]
    assert {kept[False, p] for p in tried} == {2}
    assert all(0.97 < ratio[False, p] < 1.06 for p in tried)
    costs = [ratio[True, p] for p in tried]
    assert costs == sorted(costs, reverse=True) and 0.97 < costs[0] < 1.06 and costs[-1] < 0.2


def test_four_features_lie_in_two_pairs(names):
    W, _ = names["best"][True, 0.3]
    kept = W[:, names["length"](W) > 0.5]
    cosines = np.sort((kept / names["length"](kept)).T @ kept / names["length"](kept), axis=0)
    assert kept.shape == (2, 4) and (cosines[0] < -0.99).all() and abs(cosines[1:3]).max() < 0.1


def test_several_at_once_are_read_no_better_than_by_chance(names):
    missed, ghosts = np.transpose(names["price"])
    assert missed[0] < 0.1 and missed[1:].min() > 0.24 and (np.diff(missed) > 0).all()
    assert ghosts[0] < 0.02
