"""Lesson 3: its checks tell right answers from likely wrong ones, and its prose is true."""

import numpy as np
import pytest
from answered import answers
from executed import executed

import minitx
from minitx.lessons.checks import NOT_YET, Wrong
from minitx.lessons.checks.lesson_03 import check_columns, check_swap, check_written


@pytest.fixture(scope="module")
def lesson():
    return executed(3)[0]


@pytest.fixture(scope="module")
def layer():
    return minitx.load("tiny-roberta").layers[1]


def test_the_columns_of_a_head(layer):
    W = layer.W_Q
    assert "right" in check_columns(W[:, 64:96], W)
    for hint, answer in wrong_columns(W):
        with pytest.raises(Wrong, match=hint):
            check_columns(answer, W)


def wrong_columns(W):
    yield "these are rows", W[64:96]
    yield "drawing A", W[64:96, 64:96]
    yield "head 1's", W[:, 32:64]
    yield "head 3's", W[:, 96:]
    yield "the whole matrix", W
    yield "32 columns", W[:, 60:92]


SAID = {
    check_swap: [
        ({0, 1}, "right"),
        ([], "40 is not head 0's"),
        ([0, 1, 2, 3], "begin at 64"),
        ([0], "both of them"),
        (1, "both of them"),
        ([1, 2], "whose is column 5"),
    ]
}

test_answers = answers(SAID)


def test_what_a_head_writes(layer):
    z, W = np.random.default_rng(0).standard_normal((4, 5, 32)), layer.W_O
    assert "right" in check_written(z[1] @ W[32:64], z, W)
    for hint, answer in wrong_writing(z, W):
        with pytest.raises(Wrong, match=hint):
            check_written(answer, z, W)


def wrong_writing(z, W):
    yield "writes to all 128", z[1]
    yield "wanted a row for each token", (z[1] @ W[32:64]).T
    yield "this is head 0", z[0] @ W[:32]
    yield "this is head 2", z[2] @ W[64:96]
    yield "the rows of W_O are not", z[1] @ W[:32]
    yield "not columns", z[1] @ W[:, 32:64].T
    yield "and no bias", z[1] @ W[32:64] + 1


def test_no_answer_is_no_fault(layer):
    assert check_columns(..., layer.W_Q) == check_written(..., None, layer.W_O) == NOT_YET


def test_every_head_notices_every_slice(lesson):
    assert lesson["table"].min() > 0.05  # measured 0.16


def test_slices_are_nothing_special(lesson):
    assert 1 < lesson["place"] < 24  # place 11 of 24


def test_the_numbers_have_no_order(lesson):
    X, W, order = lesson["X"], lesson["w"].W_Q, lesson["order"]
    whole, sliced = lesson["whole"], lesson["sliced"]
    assert abs(whole(X, W) - lesson["q"]).max() < 1e-4  # 0.0000
    assert abs(whole(X[:, order], W[order]) - whole(X, W)).max() < 1e-4  # 0.0000
    assert abs(sliced(X[:, order], W[order]) - sliced(X, W)).max() > 1
    assert abs(sliced(X, W) - lesson["q"]).max() > 1
