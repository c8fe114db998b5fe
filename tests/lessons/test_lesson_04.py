"""Lesson 4: its checks tell right answers from likely wrong ones, and its prose is true."""

import numpy as np
import pytest
import told

import minitx
from minitx.lessons.checks import NOT_YET, Wrong
from minitx.lessons.checks.lesson_04 import check_pattern, check_rank, check_rows


@pytest.fixture(scope="module")
def lesson():
    return told.names(4)


@pytest.fixture(scope="module")
def trace():
    return minitx.run(minitx.load("tiny-gpt2"), "The old man came home.")


def softmax(scores, axis=1):
    x = np.exp(scores)
    return x / x.sum(axis=axis, keepdims=True)


def test_a_head_by_hand(trace):
    q, k, right = trace["q", 0][0, 2], trace["k", 0][0, 2], trace["pattern", 0][0, 2]
    hidden = np.triu(np.full(right.shape, -np.inf), 1)
    scores = q @ k.T / 32**0.5
    assert "right" in check_pattern(right, trace)
    assert "right" in check_pattern(softmax(scores + hidden), trace)
    wrong = {
        "these are the scores": scores,
        "what comes later": softmax(scores),
        "divide the scores by the root": softmax(q @ k.T + hidden),
        "not by 32": softmax(q @ k.T / 32 + hidden),
        "keys ask": softmax(scores.T + hidden),
        "of another head": trace["pattern", 0][0, 1],
        "each row must have": softmax(scores + hidden, axis=0),
        "columns, biases": softmax(1.5 * scores + hidden),
        "the shape is": right[:3],
    }
    for hint, answer in wrong.items():
        with pytest.raises(Wrong, match=hint):
            check_pattern(answer, trace)


@pytest.mark.parametrize(
    ("answer", "hint"),
    [(128, "can it be more"), (128**2, "how many numbers"), (64, "side by side"), (31, "float64")],
)
def test_the_rank_of_what_a_head_compares(answer, hint):
    with pytest.raises(Wrong, match=hint):
        check_rank(answer)


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        ((6, 13), "wanted three"),
        ((6, 13, 6), "the same rows"),
        ((13, 6, 6), "what was said so far that asks"),
        ((13, 13, 13), "self-attention"),
        ((5, 13, 13), "6 pieces ask"),
    ],
)
def test_who_asks_in_cross_attention(answer, hint):
    with pytest.raises(Wrong, match=hint):
        check_rows(answer)


def test_no_answer_is_no_fault(trace):
    assert check_rank(32).startswith("right")
    assert check_rows([6, 13, 13]).startswith("right")
    assert check_pattern(..., trace) == check_rank(...) == check_rows(...) == NOT_YET


def test_one_input_and_the_head_by_hand(lesson, trace):
    assert np.allclose(lesson["mixed"], trace["z", 0][0, 1], atol=1e-5)


def test_keys_as_values_are_worse_than_noise(lesson):
    loss, changed, swaps = lesson["loss"], lesson["changed"], lesson["swaps"]
    worse, nearer = (
        [loss(changed(lambda w: lesson["shuffled"](swap(w)))) for _ in range(3)]
        for swap in (swaps["W_K and W_V"], swaps["W_Q and W_K"])
    )
    assert loss(changed(swaps["W_K and W_V"])) > max(worse)  # 8.10 against 5.2 to 5.5
    as_it_is = loss(lesson["model"])
    assert as_it_is < loss(changed(swaps["W_Q and W_K"])) < min(nearer)  # 2.90, 3.46, 3.88
    first = lesson["model"].layers[0]
    assert abs(first.W_K).mean() > 2 * abs(first.W_V).mean()  # 0.092, 0.038


def test_only_the_product_counts(lesson):
    Q, K, M = lesson["Q"], lesson["K"], lesson["M"].astype(float)
    assert np.allclose((Q @ M) @ np.linalg.solve(M, K.T), Q @ K.T, atol=1e-3)
