"""Lesson 4: its checks tell right answers from likely wrong ones, and its prose is true."""

import numpy as np
import pytest
from answered import answers, try_all

import minitx
from minitx.lessons.checks.lesson_04 import check_pattern, check_rank, check_rows


@pytest.fixture(scope="module")
def trace():
    return minitx.run(minitx.load("tiny-gpt2"), "The old man came home.")


def softmax(scores, axis=1):
    x = np.exp(scores)
    return x / x.sum(axis=axis, keepdims=True)


def test_a_head_by_hand(trace):
    q, k = (trace[name, 0][0, 2] for name in ("q", "k"))
    try_all(check_pattern, patterns(q @ k.T), trace)
    heads = trace["pattern", 0][0]
    others = ((heads[head], "of another head") for head in (0, 1, 3))
    try_all(check_pattern, [(heads[2], "right"), *others], trace)


def patterns(products):
    hidden = np.triu(np.full(products.shape, -np.inf), 1)
    scores = products / 32**0.5
    yield softmax(scores + hidden), "right"
    yield scores, "these are the scores"
    yield softmax(scores), "later tokens"
    yield softmax(products + hidden), "divide the scores by the root"
    yield softmax(products / 32 + hidden), "not by 32"
    yield softmax(scores.T + hidden), "keys ask"
    yield softmax(scores + hidden, axis=0), "each row must have"
    yield softmax(1.5 * scores + hidden), "columns, biases"
    yield hidden[:3], "the shape is"


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


def test_one_input_and_the_head_by_hand(names, trace):
    assert np.allclose(names["mixed"], trace["z", 0][0, 1], atol=1e-5)


def test_keys_as_values_are_worse_than_noise(names):
    loss, changed, swaps = names["loss"], names["changed"], names["swaps"]
    keys_values, queries_keys = swaps["W_K and W_V"], swaps["W_Q and W_K"]
    assert loss(changed(keys_values)) > max(by_chance(names, keys_values))  # 9.41, 5.7 to 6.6
    swapped = loss(changed(queries_keys))
    assert loss(names["model"]) < swapped < min(by_chance(names, queries_keys))  # 3.45 3.95 4.05
    loud, quiet = loss(changed(keys_values)), loss(changed(names["quiet"]))
    assert loud > quiet > max(by_chance(names, names["quiet"]))  # 9.41, 6.14, 4.9 to 5.2


def by_chance(names, swap):
    shuffled = names["shuffled"]
    return [names["loss"](names["changed"](lambda w: shuffled(swap(w)))) for _ in range(3)]


def test_only_the_product_counts(names):
    Q, K, M = names["Q"], names["K"], names["M"].astype(float)
    assert np.allclose((Q @ M) @ np.linalg.solve(M, K.T), Q @ K.T, atol=1e-3)
