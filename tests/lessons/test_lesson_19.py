"""Lesson 19: its checks tell right answers from wrong ones; its prose says what its cells give."""

import re

import numpy as np
from answered import answers

from minitx.lessons.checks.lesson_19 import check_fold, check_norm, check_unseen


def centred(x):
    return x - x.mean(axis=-1, keepdims=True)


def length(x):
    return np.linalg.norm(x, axis=-1, keepdims=True)


def std(x, **given):
    return x.std(axis=-1, keepdims=True, **given)


SAID = {
    check_norm: [
        (lambda x, g, b: centred(x) / std(x) * g + b, "right"),
        (lambda x, g, b: g * centred(x) / np.sqrt(std(x) ** 2 + 1e-12) + b, "right"),
        (lambda x, g, b: centred(x) / std(x), "gain and bias are left out"),
        (lambda x, g, b: centred(x) / std(x) * g, "the bias is left out"),
        (lambda x, g, b: (centred(x) / std(x) + b) * g, "the gain comes first"),
        (lambda x, g, b: centred(x) * g + b, "the length is still there"),
        (lambda x, g, b: centred(x) / std(x) ** 2 * g + b, "the root of the variance"),
        (lambda x, g, b: x / np.sqrt((x**2).mean(-1, keepdims=True)) * g + b, "an RMSNorm"),
        (lambda x, g, b: centred(x) / std(x, ddof=1) * g + b, "not over D - 1"),
        (lambda x, g, b: centred(x) / length(centred(x)) * g + b, "these rows have length 1"),
        (lambda x, g, b: (x - x.mean()) / x.std() * g + b, "of each row, not of all numbers"),
        (lambda x, g, b: (x - x.mean(0)) / x.std(0) * g + b, "not it: take the mean off"),
        (lambda x, g, b: x.mean(axis=-1), r"wanted \[3, 5, 8\], like x; this gives \[3, 5\]"),
        (np.zeros((3, 5, 8)), "wanted a function, such as lambda x, gain, bias"),
    ],
    check_unseen: [
        ({"times 3", "plus 1 everywhere"}, "right"),
        (["plus 1 everywhere", "times 3"], "right"),
        ({"times 3"}, "one is missing"),
        (set(), "one is missing"),
        ({"times 3", "times -1", "plus 1 everywhere"}, "times -1: the direction is turned round"),
        ({"plus 1 in one place"}, "that turns the row"),
        ({"reversed"}, "the norm keeps the new order"),
        ({"times 4"}, "'times 4' is not in the list: plus 1 everywhere, "),
        ("times 3", "wanted a set of names"),
    ],
    check_fold: [
        (centred, "right"),
        (lambda W: W @ (np.eye(8) - 1 / 8), "right"),
        (lambda W: W - W.mean(axis=0), "this centres columns"),
        (lambda W: W - W.mean(), "the matrix as a whole"),
        (lambda W: W, "the rows of x @ W have means up to"),
        (lambda W: 0 * W, "but more than the mean has changed"),
        (lambda W: centred(W) / std(W), "but more than the mean has changed"),
        (lambda W: W.mean(axis=1), r"wanted \[6, 8\], like W; this gives \[6\]"),
        (np.eye(8), "wanted a function, such as lambda W"),
    ],
}

test_answers = answers(SAID)


def test_the_prose_says_what_the_cells_give(names, printed):
    grown, changes = names["grown"], names["changes"]
    assert 19 < grown["tiny-gpt2"][-1] / grown["tiny-gpt2"][0] < 22
    assert 0.8 < grown["tiny-bert"][-1] / grown["tiny-bert"][0] < 1.1
    assert min(grown["tiny-gpt2", seed][-1] for seed in range(5)) > grown["tiny-gpt2"][-1]
    assert changes["tiny-gpt2"][0] < 1e-4 and round(changes["tiny-gpt2"][2], 2) == 0.49
    assert changes["tiny-bert"][0] > 5 and round(changes["tiny-bert"][2], 2) == 0.07
    assert changes["tiny-bert"][1][1] > 0.95 and changes["tiny-gpt2"][1][1] < 0.4
    seen = names["seen"]
    assert seen["longer"] < 1e-4 and seen["higher mean"] < 1e-4 and 0.09 < seen["random"] < 0.1
    assert re.search(r"differ by at most \de-06", printed)


def test_the_first_mlp_writes_more_with_random_weights(names):
    ratio = names["trained"] / names["chance"].mean(axis=0)
    trained, chance = names["trained"], names["chance"]
    assert round(trained[1]) == 5 and chance[:, 1].min() > trained[1]
    assert 1.4 < ratio[::2].min() and ratio[::2].max() < 2.3  # attention
    assert ratio[1:6:2].max() < 1 and trained[7] > chance[:, 7].max()
