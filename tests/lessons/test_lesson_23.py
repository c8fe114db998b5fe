"""Lesson 23: its checks tell right answers from wrong ones; its prose says what its cells give."""

import re

import numpy as np
from answered import answers

from minitx.lessons.checks.lesson_23 import check_recovered, check_top_k


def largest(h, k):
    return h * (h >= np.sort(h, axis=1)[:, -k, None])


SAID = {
    check_top_k: [
        (lambda h, k: largest(h, k) * (h > 0), "right"),
        (lambda h, k: np.maximum(largest(h, k), 0), "right"),
        (largest, "numbers below 0 are set to 0"),
        (lambda h, k: np.maximum(h, 0), "k = 1: 4 numbers are left in a row"),
        (lambda h, k: np.maximum(h, 0)[:, :k], r"wanted \[3, 4\], as h is; this is \[3, 1\]"),
        (lambda h, k: 2 * np.maximum(largest(h, k), 0), r"row 0 becomes \[6.0, 0.0"),
        (3, "wanted a function"),
    ],
    check_recovered: [
        (lambda loss, own, mean: 1 - (own - loss) / (mean - loss), "right"),
        (lambda loss, own, mean: (own - loss) / (mean - loss), "this is the share that is lost"),
        (lambda loss, own, mean: own / loss, "own = 2.5, mean = 4: 1.25 is not it; compare with"),
        (lambda loss, own, mean: (mean - own) / mean, "divide by what the mean loses"),
        (lambda loss, own, mean: 1.0, "wanted 1 where own = loss, 0 where own = mean"),
        (1.0, "wanted a function"),
    ],
}

test_answers = answers(SAID)


def test_the_prose_says_what_the_cells_give(names, printed):
    recovered = "of what the mean loses, recovered: 97%; by random vectors 59%"
    assert recovered in printed
    own, null = map(float, re.search(r"explained (\S+), random vectors (\S+)", printed).groups())
    assert own > 0.8 and null < 0.3
    scores = {name: np.round(row, 1) for name, row in names["scores"].items()}
    own, random, shuffled, probe = scores.values()
    assert (own.min(), own.max()) == (0.3, 0.7)
    assert (random.min(), random.max()) == (0.1, 0.4)
    assert (probe.min(), probe.max()) == (0.7, 1.0)
    assert shuffled.max() <= 0.2
    exact, by_chance, _, _ = names["scores"].values()
    assert all(a > b for a, b in zip(exact, by_chance))


def test_the_best_feature_of_womens_names_is_on_at_mens(names):
    on, words, first = names["active"]["autoencoder"], names["words"], names["first"]
    best = names["f1"](on[first], words["woman"][first]).argmax()
    women, men = (on[words[name], best].mean() for name in ("woman", "man"))
    assert women > 0.25 and men > 0.25 and on[:, best].mean() < 0.05
