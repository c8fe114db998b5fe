"""Lesson 3: its checks tell right answers from likely wrong ones, and its prose is true."""

import numpy as np
import pytest
from answered import answers, try_all

import minitx
from minitx.lessons.checks.lesson_03 import check_columns, check_swap, check_written


@pytest.fixture(scope="module")
def layer():
    return minitx.load("tiny-roberta").layers[1]


def test_the_columns_of_a_head(layer):
    try_all(check_columns, columns(layer.W_Q), layer.W_Q)


def columns(W):
    yield W[:, 64:96], "right"
    yield W[64:96], "these are rows"
    yield W[64:96, 64:96], "drawing A"
    yield W[:, 32:64], "head 1's"
    yield W[:, 96:], "head 3's"
    yield W, "the whole matrix"
    yield W[:, 60:92], "32 columns"


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
    z = np.random.default_rng(0).standard_normal((4, 5, 32))
    try_all(check_written, writing(z, layer.W_O), z, layer.W_O)


def writing(z, W):
    yield z[1] @ W[32:64], "right"
    yield z[1], "writes to all 128"
    yield (z[1] @ W[32:64]).T, "wanted a row for each token"
    yield z[0] @ W[:32], "this is head 0"
    yield z[2] @ W[64:96], "this is head 2"
    yield z[1] @ W[:32], "the rows of W_O are not"
    yield z[1] @ W[:, 32:64].T, "not columns"
    yield z[1] @ W[32:64] + 1, "and no bias"


def test_every_head_notices_every_slice(names):
    assert names["table"].min() > 0.05  # measured 0.16


def test_slices_are_nothing_special(names):
    assert 1 < names["place"] < 24  # place 11 of 24


def test_the_numbers_have_no_order(names):
    X, W, order = names["X"], names["w"].W_Q, names["order"]
    whole, sliced = names["whole"], names["sliced"]
    assert abs(whole(X, W) - names["q"]).max() < 1e-4  # 0.0000
    assert abs(whole(X[:, order], W[order]) - whole(X, W)).max() < 1e-4  # 0.0000
    assert abs(sliced(X[:, order], W[order]) - sliced(X, W)).max() > 1
    assert abs(sliced(X, W) - names["q"]).max() > 1
