"""Lesson 14: its checks tell right answers from wrong ones; its prose says what its cells give."""

import re

import numpy as np
import pytest
from answered import answers

from minitx import circuits
from minitx.lessons.checks import Wrong
from minitx.lessons.checks.lesson_14 import check_head, check_query, check_score


def from_second_half(behind):
    """The mean attention of the second half to the key that is so far behind."""

    def score(pattern, n):
        query = np.arange(n, 2 * n)
        return pattern[query, query - behind(n)].mean()

    return score


SAID = {
    check_score: [
        (from_second_half(lambda n: n - 1), "right"),
        (lambda pattern, n: np.diagonal(pattern, 1 - n)[1:].mean(), "right"),
        (from_second_half(lambda n: n), r"the first occurrence itself \(duplicate\)"),
        (from_second_half(lambda n: n + 1), "the token before the first occurrence"),
        (from_second_half(lambda n: 1), r"the token before \(previous\)"),
        (lambda pattern, n: np.diagonal(pattern, 1 - n).mean(), "last token of the first half"),
        (lambda pattern, n: np.diagonal(pattern, 1 - n)[1:].sum(), "wanted the mean"),
        (lambda pattern, n: np.diagonal(pattern, 1 - n)[1:], r"gives \[6\]; wanted one number"),
        (lambda pattern, n: pattern.mean(), "stood at t - n before"),
        (0.5, "wanted a function, such as lambda"),
    ],
    check_query: [
        (("L0H0", "queries"), "right"),
        ("L0H0", "wanted a pair"),
        (("L0H7", "keys"), "only the last token differs"),
        (("L0H0", "values"), "values are what is copied"),
        (("L0H0", "q"), "wanted one of queries, keys, values"),
        (("words", "queries"), "by way of a head"),
        (("L0H7", "queries"), "find its largest"),
    ],
    check_head: [
        (("tiny-roberta", "induction", 1, 3), "right"),
        (("tiny-bert", "induction", 1, 3), "right"),
        (("tiny-gpt2", "previous", 0, 1), "right"),
        (("tiny-induction", "itself", 0, 0), "right"),
        (("tiny-gpt2", "induction"), "wanted .model, kind, layer, head."),
        (("gpt5", "induction", 0, 0), "no bundled model 'gpt5'; available: deep-roberta"),
        (("tiny-gpt2", "copying", 0, 0), "wanted one of previous"),
        (("tiny-gpt2", "induction", 0, 4), "4 layers of 4"),
        (("tiny-gpt2", "induction", -1, 0), "4 layers of 4"),
        (("tiny-gpt2", "induction", 1, 2), "that is no more"),
        (("tiny-gpt2", "previous", 3, 0), "that is no more"),
    ],
}

test_answers = answers(SAID)


def test_the_best_head_by_chance_has_to_be_beaten(monkeypatch):
    """A head that beats its own null, but not the best one."""
    score = circuits.Scores.beside([[0.5, 0.1]], null=[[0.1, 0.45]])
    monkeypatch.setattr(circuits, "detect_heads", lambda *_, **__: {"first": score})
    with pytest.raises(Wrong, match="of all heads the best by chance gives 0.45: too near"):
        check_head(("tiny-gpt2", "first", 0, 0))


def test_the_prose_says_what_the_cells_give(names, printed):
    again, other = (float(x) for x in re.findall(r"mean loss (\S+)", printed))
    assert again < 0.01 and other > np.log(122) + 1  # 0.0003; 7.3: worse than a blind guess
    assert "the first time was 6 to 24 tokens ago\nright: 100%" in printed
    score = names["scores"]
    assert (score["induction"][1] > 0.9).all() and (score["induction"][0] < 0.1).all()
    assert score["previous"].argmax() == 7 and 0.55 < score["previous"].max() < 0.58
    assert max(x.null.max() for x in score.values()) < 0.1
    before = names["before"]
    assert before[:23].mean() > 0.95 and before[23:].mean() < 0.2  # 0.98; 0.17
    looks = names["trace"]["pattern", 1][0, 0].argmax(axis=1)
    assert list(looks[6:]) == [1, 2, 3]  # the second cat at dog, dog at moon, moon at seven


def test_the_way_leads_through_the_keys(names, printed):
    effects, null = names["restored"](names["asked"])
    keys = effects[1]
    assert keys.argmax() == 8 and keys[8] > 0.8  # L0H7; 0.88
    others = np.delete(effects.ravel(), effects.argmax())
    assert abs(others).max() < 0.1 and abs(null).max() < 0.2  # 0.04; 0.12
    assert "('L0H0', 'queries')" in printed


def test_layer_1_copies_and_chance_does_not(names):
    own = names["own_logit"]
    assert own(names["whole"]) == 1 and own(names["by_chance"]) < 0.05
    each = [own(names["copies"](1, [head])) for head in range(8)]
    assert min(each) > 0.9 and own(names["copies"](0, [7])) < 0.05


def test_what_is_left_without_heads(printed):
    lines = re.findall(r"silent: (.+?) +right +(\d+)%", printed)
    right = {name: int(share) for name, share in lines}
    assert right["none"] == right["L0H2 and L0H4, others"] == right["L0H3, previous token"] == 100
    assert 90 <= right["L0H7, previous token"] < 99
    assert right["L0H3 and L0H7"] < 30 and right["all of layer 1"] < 5
    best = [float(x) for x in re.findall(r"best induction head (\S+)", printed)]
    assert best[0] > 0.9 and best[1] < 0.1
    lines = re.findall(r"(\S+) +L\dH\d (\S+) +\(by chance at most (\S+)\)", printed)
    values = {name: (float(score), float(null)) for name, score, null in lines}
    for name in ("tiny-bert", "tiny-roberta"):  # a third
        assert 0.3 < values[name][0] < 0.4 and values[name][1] < 0.05
    for name in ("tiny-gpt2", "deep-roberta"):
        assert values[name][0] < 0.05
