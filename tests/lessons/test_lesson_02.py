"""Lesson 2: its checks tell right answers from likely wrong ones, and its prose is true."""

import numpy as np
from answered import answers

from minitx.lessons.checks.lesson_02 import check_reach, check_silent, check_weights

SAID = {
    check_silent: [
        (1, "right"),
        (16, "needs attention"),
        (4, "the same row"),
        (0, "begins with other"),
        (7, "compare"),
    ],
    check_reach: [
        (np.int64(9), "right"),
        (3, "after one layer"),
        (5, "both sides"),
        (8, "in the middle"),
        (16, "one position only"),
        (1, "without attention"),
        (7, "how far is that"),
    ],
    check_weights: [
        ([0.83, 0.0425, 0.0425, 0.0425, 0.0425], "right"),
        ([0.5, 0.5], "wanted five"),
        ([0.5, 0.5, 0, 0, 0], "larger than 0"),
        ([0.5, 0.5, 0.1, 0.1, 0.1], "have the sum 1"),
        ([0.2] * 5, "5.00: too even"),
        ([0.96, 0.01, 0.01, 0.01, 0.01], "too uneven"),
    ],
}

test_answers = answers(SAID)


def test_attention_changes_every_row_and_the_mlp_one(names):
    rows, position = names["rows_that_change"], names["position"]
    T = len(names["old"].labels[0])
    assert rows("resid_pre", "attn_out").tolist() == [*range(T)]
    assert rows("resid_mid", "mlp_out").tolist() == [position]
    assert all((names["changes"][name] > 1e-6).all() for name in ("attention", "MLP"))


def test_the_text_of_the_lesson_is_the_one_of_the_checks(names):
    assert len(names["old"].labels[0]) == 16
    assert 4 <= names["position"] < 16 - 4  # a change can go four tokens to each side


def test_mixing_loses_directions_as_chance_does(names):
    mixed, by_chance, weighed = (names[name] for name in ("mixed", "by_chance", "weighed"))
    before = names["directions"](names["V"]).mean()
    assert before - mixed.mean() > 5 * (mixed - by_chance).mean()  # 14.6, 11.1 and 10.6
    assert names["above"] > 0.6  # 0.78 of the heads
    assert np.corrcoef(weighed.ravel(), mixed.ravel())[0, 1] < -0.8  # -0.94


def test_heads_of_a_layer_look_at_few_pieces_or_at_many(names):
    pieces = names["effective"](names["old"]["pattern", 0][0]).mean(axis=-1)
    assert pieces.min() < 2  # 1.0
    assert pieces.max() > 10  # 14.2 of 16


def test_rollout_seldom_points_to_the_answer_and_occlusion_often(names):
    assert names["hits"] == {"rollout": 10, "occlusion": 77} and round(names["chance"]) == 8
    mute, other = (names[name]["logits"][0, -1] for name in ("mute", "other"))
    assert abs(mute - other).max() == 0
    assert names["circuits"].rollout(names["mute"])[-1, 0, -1, 0] > 0.05
