"""Lesson 8: its checks tell right answers from likely wrong ones, and its prose is true."""

import numpy as np
from answered import answers

from minitx.lessons.checks.lesson_08 import check_band, check_deep, check_queries

SAID = {
    check_deep: [
        (-2, "right"),
        (1, "without the dial"),
        (4, "the wrong way"),
        (0, "layer=1, shift=3"),
    ],
    check_queries: [
        (1, "right"),
        (-3, "with the keys moved"),
        (-1, "or with both moved"),
        (2, "two further right"),
    ],
    check_band: [
        ({"2 to 4", "8 to 16"}, "right"),
        (("8 to 16", "2 to 4"), "right"),
        ({"over 16", "8 to 16"}, "hurts most by itself"),
        ({"over 16", "2 to 4"}, "for all pairs"),
        ({"2 to 4", "all waves"}, "a set of two of these"),
        ("2 to 4", "a set of two of these"),
    ],
}

test_answers = answers(SAID)


def test_layer_0_follows_and_deeper_heads_do_not(printed):
    slopes = [line for line in printed.splitlines() if "slope" in line]
    layer_0 = [line for line in slopes if line.startswith("L0")]
    deeper = [line for line in slopes if not line.startswith("L0")]
    assert len(layer_0) == 4 and all(line.endswith("slope -1.00") for line in layer_0)
    assert len(deeper) == 2 and all(line.endswith("slope +0.00") for line in deeper)


def test_one_head_of_layer_0_takes_the_next_along(printed):
    turned = [line for line in printed.splitlines() if "turned:" in line]
    offsets = [line.partition("L1H3 looks at ")[2][:2] for line in turned]
    assert offsets == ["+1", "+3", "+1", "+1"]
    assert turned[1].startswith("L0H1, which looks at +1")


def test_controls(names):
    weight_at = names["weight_at"]
    assert weight_at(names["keys"], 2) > 0.9  # measured 1.00
    assert weight_at(names["both"], 0) > 0.9  # measured 1.00
    assert names["best"] < 0.3  # measured 0.16


def test_the_model_needs_it(names):
    loss, guess = names["loss"], np.log(names["model"].config.n_vocab)
    assert loss(0, False) < guess < loss(1, False)  # measured 1.96 6.93 7.82
    assert abs(loss(4, True) - loss(0, True)) < 0.1  # measured 0.00


def test_no_band_is_necessary_and_none_is_enough(names):
    P, band, kept, mean = (names[name] for name in ("P", "band", "kept", "mean"))
    octaves = [*names["BANDS"].values()][:-1]
    without = [kept(P - band(*limits)) for limits in octaves]
    alone = [kept(mean + band(*limits)) for limits in octaves]
    assert min(without) > 0.5  # measured 0.84 0.89 0.96 0.66
    assert max(alone) < 0.3  # measured 0.13 0.18 0.09 0.19
    assert kept(P - band(*names["BANDS"]["all waves"])) < 0.1  # measured 0.02
