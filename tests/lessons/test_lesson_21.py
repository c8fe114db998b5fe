"""Lesson 21: its checks tell right answers from wrong ones; its prose says what its cells give."""

import numpy as np
from answered import answers

from minitx.lessons.checks.lesson_21 import check_agreement, check_memory, check_unit


def fits(post, values, comes):
    return values.argmax(axis=1) == comes[post.argmax(axis=0)]


SAID = {
    check_memory: [
        (lambda post, W_out, k: np.outer(post[:, k], W_out[k]), "right"),
        (lambda post, W_out, k: post * np.eye(6)[k] @ W_out, "right"),
        (lambda post, W_out, k: W_out[k], "this is the value; how much"),
        (lambda post, W_out, k: post @ W_out, "what all units write together"),
        (lambda post, W_out, k: np.outer(post[:, k], W_out[:, k]), "not a column"),
        (lambda post, W_out, k: np.outer(post[k], W_out[k]), "are a column of post"),
        (lambda post, W_out, k: post[:, k] @ post, r"wanted \[5, 6\], .*; this gives \[6\]"),
        (lambda post, W_out, k: 2 * np.outer(post[:, k], W_out[k]), "not it: the unit's activity"),
        (np.zeros((5, 6)), "wanted a function, such as lambda post, W_out, k"),
    ],
    check_agreement: [
        (lambda *given: fits(*given).mean(), "right"),
        (lambda *given: fits(*given).sum(), "this is their number"),
        (fits, r"wanted one number, this gives \[30\]"),
        (lambda post, values, comes: fits(post, values.T, comes).mean(), "along a row of values"),
        (
            lambda post, values, comes: (values.argmax(axis=1) == post.argmax(axis=0)).mean(),
            "not the place itself",
        ),
        (lambda post, values, comes: fits(-post, values, comes).mean(), "is the maximum"),
        (lambda post, values, comes: 0.9, "0.9 is not it"),
        (0.4, "wanted a function, such as lambda post, values, comes"),
    ],
    check_unit: [
        ((3, 33), "right: on other passages 1.00 of the words"),
        ((2, 5), r"0.\d\d of the words are below .*; so it is with \d+ of 200 other values"),
        ((4, 0), "there are 4 layers of 256 units"),
        ((0, 256), "there are 4 layers of 256 units"),
        (474, r"474: wanted \(layer, unit\)"),
    ],
}

test_answers = answers(SAID)


def test_the_strongest_texts_of_random_keys_are_alike_too(names):
    trained, chance = np.array(names["trained"]), np.array(names["random_keys"])
    assert 0.33 < chance.min() and chance.max() < 0.5
    assert (trained > chance.max(axis=1)).tolist() == [True, False, True, True]


def test_values_say_what_fits_their_keys(names):
    own, null, agree, chance = zip(*names["table"], strict=True)
    ranks = [x.mean() for x in own]
    assert max(ranks) == ranks[-1] and min(ranks) > 0.7  # 0.72 0.76 0.74 0.85
    assert all(0.4 < x.mean() < 0.55 for x in null)
    assert min(agree) > 0.1 > 5 * max(chance)


def test_no_single_unit_is_missed(names):
    whole, losses = names["whole"], names["losses"]
    for layer in range(4):
        assert abs(losses[layer, "one unit ablated"] - whole) < 0.01
        half, none, foreign = (losses[layer, x] for x in ("half of them", "all", "values shuffled"))
        assert whole + 0.02 < half < none < foreign
    *others, last = names["composed"]
    assert last < min(others) and max(others) < 0.5  # 33 31 42 16%
