"""Lesson 11: its checks tell right answers from wrong ones; its prose says what its cells give."""

import numpy as np
import pytest
from answered import answers

from minitx.lessons.checks.lesson_11 import OMEGA, check_rows, check_score, check_slopes

FIRST = OMEGA * 7  # queries and keys both turned, as in a model


def turned(arrow, angle):
    """An arrow of two numbers, as a complex one, turned."""
    z = complex(*arrow) * np.exp(1j * angle)
    return np.array([z.real, z.imag])


SAID = {
    check_score: [
        (lambda q, k, lag: q @ turned(k, OMEGA * lag), "right"),
        (lambda q, k, lag: turned(q, -OMEGA * lag) @ k, "right"),
        (lambda q, k, lag: turned(q, FIRST) @ turned(k, FIRST + OMEGA * lag), "right"),
        (0.5, "wanted a function, such as lambda"),
        (lambda q, k, lag: q @ k, "this is the score at lag 0"),
        (lambda q, k, lag: turned(q, OMEGA * lag) @ k, "this turns the wrong way"),
        (lambda q, k, lag: q @ turned(k, lag), "turns by OMEGA, not by 1"),
        (lambda q, k, lag: q @ k * np.cos(OMEGA * lag), "at lag 1 it gives"),
        (lambda q, k, lag: turned(k, OMEGA * lag), r"gives \[2\]; a score is one number"),
    ],
    check_slopes: [
        ([1 / 2**i for i in range(1, 9)], "right: from 1/2 to 1/256$"),
        ([1 / 4, 1 / 16, 1 / 64, 1 / 256], "wanted 8 numbers, one a head; these are 4"),
        (2.0 ** -np.arange(8), "the first slope is less than 1"),
        (4.0 ** -np.arange(1, 9), "belonged to four heads"),
        (-(2.0 ** -np.arange(1, 9)), "a slope is positive"),
        (np.arange(1, 9) / 8, "the same share of the last"),
    ],
    check_rows: [
        ((1, 11), "right: 1, and 11"),
        ((10, 11), "whether it is of two or of ten"),
        ((1, 2), "the same for all"),
        ((1, 10), "the token in front has a row"),
        ((2, 11), "run both"),
        (11, "wanted two numbers"),
    ],
}

test_answers = answers(SAID)


def test_only_the_penalty_goes_on(names):
    change = names["change"]
    low, high = np.array([names["interval"](x) for x in change.values()]).swapaxes(0, 1)
    of = {name: i for i, name in enumerate(names["SIX"])}
    assert high[of["causal-alibi"], 1] < 0  # -0.04: gains
    assert all(low[i, 1] > 0 for name, i in of.items() if name != "causal-alibi")
    means = {name: x.mean(axis=0) for name, x in change.items()}
    assert abs(means["causal-rotary"][0]) < 0.03 and means["causal-rotary"][1] > 0.1  # 0.01; 0.20
    longest = {name: x[1] for name, x in means.items()}
    order = sorted(longest, key=longest.get)
    assert order[:2] == ["causal-alibi", "causal-none"] and order[-1] == "masked-buckets"


def test_the_model_without_places_begins_with_the_highest_loss(names):
    at_64 = names["at_64"]
    causal = {name: loss for name, loss in at_64.items() if name.startswith("causal")}
    assert max(causal, key=causal.get) == "causal-none"
    assert at_64["causal-none"] - at_64["causal-rotary"] > 0.25  # 0.4


def test_changes_against_chance(names):
    for name, change in names["change"].items():
        above = abs(change.mean(axis=0)) > names["by_chance"](change)
        assert above.tolist() == [name != "causal-rotary", True]


def test_sharpest_heads(names):
    sharpest = names["sharpest"]
    order = sorted(sharpest, key=sharpest.get)
    assert order[:2] == ["causal-none", "causal-alibi"]  # 2.7, 4.4 times chance
    assert order[-1] == "masked-buckets" and sharpest["masked-buckets"] > 20  # 28.6
    assert sharpest["causal-none"] > 2


def test_places_by_hand_are_the_models(names, printed):
    assert names["error"] < 1e-5  # 1e-7
    moved = names["moved"]
    assert min(moved["causal-learned"], moved["causal-sinusoidal"]) > 0.3  # 0.8
    assert max(moved["causal-rotary"], moved["causal-alibi"]) < 1e-5  # 3e-7
    assert "as the model has it: True" in printed
    assert "looks  3.5 tokens far in a text of 64,   3.5 in one of 256" in printed
    assert "slope 1/256 looks 30.2 tokens far in a text of 64, 106.5 in one of 256" in printed


def test_the_drawn_score_depends_on_the_lag(names):
    turn = names["turn"]
    scores = [
        turn(names["query"], 0.4 * q) @ turn(names["key"], 0.4 * k) for q, k in names["PAIRS"]
    ]
    assert scores[:3] == pytest.approx([scores[0]] * 3)  # 0.932
    assert scores[3] < scores[0] - 1  # -0.503


def test_why_two_of_them_do_not_go_on(names):
    rotary, none = (names["hidden_far"][x][:, 1].mean() for x in ("causal-rotary", "causal-none"))
    assert rotary < 0.02  # -0.03; 0.20 with far tokens
    assert none > 0.08  # 0.11; 0.13
    as_it_is = names["change"]["masked-buckets"].mean(axis=0)
    held = names["repaired"].mean(axis=0)
    assert (held < as_it_is / 2).all() and (held > 0.1).all()  # 0.19, 0.92 of 0.73, 2.12
    numbers = names["numbers"]  # [H 248], offset 0 at 124
    assert (abs(numbers[:, :50]) < 0.3).all() and (abs(numbers[:, -50:]) < 0.3).all()
    middle = numbers[:, 124 + 20 : 124 + 60]
    assert (middle.mean(axis=1) < numbers[:, -50:].mean(axis=1)).all()


def test_order_is_noticed_by_all_but_one(names):
    noticed = names["noticed"]
    assert max(noticed["masked-none"]) < 1e-5  # 5e-7: rounding
    assert all(min(noticed[x]) > 0.1 for x in noticed if x != "masked-none")  # 0.3


def test_heads_that_go_by_the_place_follow_their_keys(names):
    dialled = names["dialled"]
    for name in ("masked-learned", "masked-rotary", "masked-buckets"):
        first = dialled[name][0]
        assert dialled[name] == [first - s for s in range(5)]
    for name in ("causal-learned", "causal-rotary"):
        assert dialled[name] == [-1, -1, -2, -3, -4]
    assert dialled["causal-alibi"] == [-1, -1, -1, -1, -4]


def test_all_but_the_penalty_are_best_at_the_size_they_learned(names):
    best = {name: int(np.argmin(losses)) for name, losses in names["sized"].items()}
    assert best == dict.fromkeys(best, 2) | {"causal-alibi": 3}
    given = names["injected"]
    assert given["not"] < given["again"] < given["shuffled"] < given["not"] + 0.02


def test_terms_with_a_position_make_the_peak_and_content_makes_none(names):
    for head, beside in ((0, 1), (2, -1)):
        of = {term: names["curves"][head, term] for term in names["TERMS"]}
        for term in ("c2p", "p2c"):  # 12 and 5
            assert names["OFFSETS"][of[term].argmax()] == beside
        assert of["c2p"].max() > 2 * of["p2c"].max()
        assert abs(of["c2c"]).max() < 0.1  # 0.08
    assert names["error"] < 1e-5
