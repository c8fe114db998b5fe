"""Lesson 18: its checks tell right answers from wrong ones; its prose says what its cells give."""

import numpy as np
from answered import answers

from minitx.lessons.checks.lesson_18 import check_nucleus, check_ratio, check_two


def cut(keeps, divide=True):
    """A function of p and top_p that keeps what keeps(cumulative, top_p) says of sorted p."""

    def answer(p, top_p):
        order = np.argsort(-p)
        q = np.zeros_like(p)
        stays = order[keeps(p[order], top_p)]
        q[stays] = p[stays]
        return q / q.sum() if divide and q.sum() else q

    return answer


def smallest(p, top_p):
    return np.cumsum(p) - p < top_p - 1e-12


def unsorted(p, top_p):
    q = np.where(smallest(np.sort(p)[::-1], top_p), p, 0)
    return q / q.sum()


def flat(p, top_p):
    q = cut(smallest)(p, top_p) > 0
    return q / q.sum()


SAID = {
    check_ratio: [
        (lambda ratio, T: ratio ** (1 / T), "right"),
        (lambda ratio, T: np.exp(np.log(ratio) / T), "right"),
        (lambda ratio, T: ratio**T, "ratio 4, T = 0.5: 2 is not it; upside down"),
        (lambda ratio, T: ratio / T, "8 is not it; logits are divided"),
        (lambda ratio, T: ratio * T, "2 is not it; "),
        (lambda ratio, T: ratio, "only the order stays"),
        (lambda ratio, T: np.exp(ratio / T), "already e to the difference"),
        (lambda ratio, T: 7, "wanted 16, not 7"),
        (4, "wanted a function, such as lambda ratio, T"),
    ],
    check_two: [
        (0.69, "right"),
        (np.float64(0.691), "right"),
        (1, "2.58 tokens: too flat, go lower"),
        (0.5, "too sharp, go higher"),
        (0, "above 0"),
    ],
    check_nucleus: [
        (cut(smallest), "right"),
        (cut(smallest, divide=False), "top_p 0.3: the sum is 0.40; divide by it"),
        (cut(lambda p, top_p: np.cumsum(p) < top_p), "0 tokens stay, wanted 1: their sum is below"),
        (cut(lambda p, top_p: p > 0), "5 tokens stay, wanted 1: the smallest set"),
        (unsorted, "not the most probable ones"),
        (flat, "the ratios among the tokens that stay"),
        (lambda p, top_p: top_p, r"wanted \[5\], a number for each token; got \[\]"),
        (np.ones(5) / 5, "wanted a function, such as lambda p, top_p"),
    ],
}

test_answers = answers(SAID)


def test_the_prose_says_what_the_cells_give(names, printed):
    rows = dict(zip(names["temperatures"], names["rows"], strict=True))
    assert len({right for _, right, *_ in rows.values()}) == 1
    assert [round(rows[0.25][i], 2) for i in (0, 1)] == [0.78, 0.28]
    assert round(rows[1][0], 2) == 0.30
    losses = {T: row[3] for T, row in rows.items()}
    assert min(losses, key=losses.get) == 1 and losses[0.1] > losses[0.5] and losses[10] > losses[2]
    assert all(drawn < right for _, right, drawn, *_ in rows.values())
    wide = names["kept"]["top-p 0.9"]
    assert (wide.min(), wide.max()) == (1, 206)
    lost = [round(names["lost"][name], 2) for name in ("top-p 0.9", "top-k 50")]
    assert lost == [0.12, 0.16]
    assert printed.count("the opposite of") > 2  # in circles


def test_shuffled_logits_are_as_sure_and_know_nothing(names):
    rows = dict(zip(names["temperatures"], names["rows"], strict=True))
    for T, (sure, right, drawn, loss, size) in names["by_chance"].items():
        assert np.allclose([sure, size], rows[T][[0, 4]])
        assert right < 0.003 and drawn < 0.003 and loss > np.log(1024)
