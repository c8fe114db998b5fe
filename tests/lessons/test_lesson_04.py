"""Lesson 4: its checks tell right answers from likely wrong ones, and its prose is true."""

import numpy as np
import pytest
from answered import answers
from executed import executed

import minitx
from minitx.lessons.checks import NOT_YET, Wrong
from minitx.lessons.checks.lesson_04 import check_pattern, check_rank, check_rows


@pytest.fixture(scope="module")
def lesson():
    return executed(4)[0]


@pytest.fixture(scope="module")
def trace():
    return minitx.run(minitx.load("tiny-gpt2"), "The old man came home.")


def softmax(scores, axis=1):
    x = np.exp(scores)
    return x / x.sum(axis=axis, keepdims=True)


def test_a_head_by_hand(trace):
    q, k, right = (trace[name, 0][0, 2] for name in ("q", "k", "pattern"))
    hidden = np.triu(np.full(right.shape, -np.inf), 1)
    assert "right" in check_pattern(right, trace)
    assert "right" in check_pattern(softmax(q @ k.T / 32**0.5 + hidden), trace)
    for hint, answer in wrong_patterns(q @ k.T, hidden):
        with pytest.raises(Wrong, match=hint):
            check_pattern(answer, trace)
    for head in (0, 1, 3):
        with pytest.raises(Wrong, match="of another head"):
            check_pattern(trace["pattern", 0][0, head], trace)


def wrong_patterns(products, hidden):
    scores = products / 32**0.5
    yield "these are the scores", scores
    yield "later tokens", softmax(scores)
    yield "divide the scores by the root", softmax(products + hidden)
    yield "not by 32", softmax(products / 32 + hidden)
    yield "keys ask", softmax(scores.T + hidden)
    yield "each row must have", softmax(scores + hidden, axis=0)
    yield "columns, biases", softmax(1.5 * scores + hidden)
    yield "the shape is", hidden[:3]


SAID = {
    check_rank: [
        (32, "right"),
        (128, "can it be more"),
        (128**2, "how many numbers"),
        (64, "side by side"),
        (31, "float64"),
    ],
    check_rows: [
        ([6, 13, 13], "right"),
        ((6, 13), "wanted three"),
        ((6, 13, 6), "the same rows"),
        ((13, 6, 6), "what was said so far that asks"),
        ((13, 13, 13), "self-attention"),
        ((5, 13, 13), "6 tokens ask"),
    ],
}

test_answers = answers(SAID)


def test_no_answer_is_no_fault(trace):
    assert check_pattern(..., trace) == NOT_YET


def test_one_input_and_the_head_by_hand(lesson, trace):
    assert np.allclose(lesson["mixed"], trace["z", 0][0, 1], atol=1e-5)


def test_keys_as_values_are_worse_than_noise(lesson):
    loss, changed, swaps = lesson["loss"], lesson["changed"], lesson["swaps"]
    keys_values, queries_keys = swaps["W_K and W_V"], swaps["W_Q and W_K"]
    assert loss(changed(keys_values)) > max(by_chance(lesson, keys_values))  # 9.41, 5.7 to 6.6
    swapped = loss(changed(queries_keys))
    assert loss(lesson["model"]) < swapped < min(by_chance(lesson, queries_keys))  # 3.45 3.95 4.05
    loud, quiet = loss(changed(keys_values)), loss(changed(lesson["quiet"]))
    assert loud > quiet > max(by_chance(lesson, lesson["quiet"]))  # 9.41, 6.14, 4.9 to 5.2


def by_chance(lesson, swap):
    shuffled = lesson["shuffled"]
    return [lesson["loss"](lesson["changed"](lambda w: shuffled(swap(w)))) for _ in range(3)]


def test_only_the_product_counts(lesson):
    Q, K, M = lesson["Q"], lesson["K"], lesson["M"].astype(float)
    assert np.allclose((Q @ M) @ np.linalg.solve(M, K.T), Q @ K.T, atol=1e-3)
