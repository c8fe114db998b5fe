"""Lesson 10: its checks tell right answers from wrong ones; its prose says what its cells give."""

import numpy as np
from answered import answers

from minitx.lessons.checks.lesson_10 import check_free, check_scale, check_translation


def test_the_letters_are_right_about_attention():
    rng = np.random.default_rng(0)
    q, k, a = rng.normal(size=(5, 8)), rng.normal(size=(6, 8)), rng.normal(size=8)
    turn, order = np.linalg.qr(rng.normal(size=(8, 8)))[0], rng.permutation(8)
    changes = {"a": (q, k + a), "b": (q + a, k), "c": (2 * q, k / 2)}
    changes |= {"d": (2 * q, k), "e": (q @ turn, k @ turn)}
    changes["f"] = q[:, order], k[:, order]
    free = [x for x, pair in changes.items() if np.allclose(softmax(*pair), softmax(q, k))]
    assert check_free("".join(free)).startswith("right")


def softmax(q, k):
    e = np.exp(q @ k.T)
    return e / e.sum(axis=1, keepdims=True)


SAID = {
    check_free: [
        ("acef", "right"),
        ("fcea", "right"),
        ("abcef", "b adds a·k"),
        ("acd", "d doubles all products"),
        ("ac", "there are more: a rotation keeps"),
        ("cef", "there are more: a adds the same"),
        ("ace", "in any order"),
        ("xyz", "wanted a string of letters from a to f"),
        (["a"], "wanted a string"),
    ],
    check_translation: [
        (0.5, "wanted a function, such as lambda"),
        (lambda q, k: q.mean(axis=0) - k.mean(axis=0), "right"),
        (lambda q, k: k.mean(axis=0) - q.mean(axis=0), "moves the keys away"),
        (lambda q, k: q.mean() - k.mean(), r"a is \[\]; wanted one row \[4\]"),
        (lambda q, k: q.mean(axis=0), "is not the mean of the queries"),
    ],
    check_scale: [
        (100, "right"),
        (0.01, "all queries have the same nearest key, the shortest"),
        (1, "make .* matter less"),
        (-3, "wanted a number above 0"),
        ("large", "wanted a number above 0"),
    ],
}

test_answers = answers(SAID)


def test_the_prose_says_what_the_cells_give(names, printed):
    values, nearer = names["values"], names["nearer"]
    assert values.max() > 0.9  # "in some heads near does mean attended"
    assert values.min() < 1.5 * names["chance"]  # 0.19 and 0.17: "hardly more than by chance"
    assert printed.count("attention changes by") == 5
    assert all(float(x.split(";")[0].split()[0]) < 1e-6 for x in printed.split("changes by")[1:])
    before, after = names["before"], names["after"]
    assert before[:, 0].mean() > 2 * before[:, 1:].mean()  # near before the change: 0.62, 0.17
    assert after[:, 0].mean() > 2 * after[:, 1:].mean()
    assert nearer[1:].min() <= nearer[0] <= nearer[1:].max()  # 12; 4 to 14: not beyond chance
    turned = float(printed.split("queries turned at random: correlation ")[1].split()[0])
    own = float(printed.split("queries of the head: correlation ")[1].split()[0])
    assert turned / own > 0.5  # "a good part of the correlation": -0.52 of -0.69
