"""Lesson 3: its checks tell right answers from likely wrong ones, and its prose is true."""

import numpy as np
import pytest
import told

import minitx
from minitx.lessons.checks import NOT_YET, Wrong
from minitx.lessons.checks.lesson_03 import check_columns, check_swap, check_written


@pytest.fixture(scope="module")
def lesson():
    return told.names(3)


@pytest.fixture(scope="module")
def layer():
    return minitx.load("tiny-roberta").layers[1]


def test_the_columns_of_a_head(layer):
    W = layer.W_Q
    assert "right" in check_columns(W[:, 64:96], W)
    wrong = {
        "these are rows": W[64:96],
        "drawing A": W[64:96, 64:96],
        "head 1's": W[:, 32:64],
        "head 3's": W[:, 96:],
        "the whole matrix": W,
        "32 columns": W[:, 60:92],
    }
    for hint, answer in wrong.items():
        with pytest.raises(Wrong, match=hint):
            check_columns(answer, W)


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        ([], "40 is not head 0's"),
        ([0, 1, 2, 3], "begin at 64"),
        ([0], "both of them"),
        (1, "both of them"),
        ([1, 2], "whose is column 5"),
    ],
)
def test_columns_that_change_places(answer, hint):
    with pytest.raises(Wrong, match=hint):
        check_swap(answer)


def test_what_a_head_writes(layer):
    z, W = np.random.default_rng(0).standard_normal((4, 5, 32)), layer.W_O
    assert "right" in check_written(z[1] @ W[32:64], z, W)
    wrong = {
        "writes to all 128": z[1],
        "wanted a row for each piece": (z[1] @ W[32:64]).T,
        "this is head 0": z[0] @ W[:32],
        "this is head 2": z[2] @ W[64:96],
        "the rows of W_O are not": z[1] @ W[:32],
        "not columns": z[1] @ W[:, 32:64].T,
        "and no bias": z[1] @ W[32:64] + 1,
    }
    for hint, answer in wrong.items():
        with pytest.raises(Wrong, match=hint):
            check_written(answer, z, W)


def test_no_answer_is_no_fault(layer):
    assert check_swap({0, 1}).startswith("right")
    assert check_swap(...) == check_columns(..., layer.W_Q) == NOT_YET
    assert check_written(..., None, layer.W_O) == NOT_YET


def test_every_head_notices_every_slice(lesson):
    assert lesson["table"].min() > 0.05  # measured 0.15


def test_slices_are_nothing_special(lesson):
    assert 1 < lesson["place"] < 24  # place 12 of 24


def test_the_numbers_have_no_order(lesson):
    numbers = [float(x) for x in lesson["printed"][4].split() if "." in x]
    assert numbers[1] < 1e-4  # 2e-06
    assert numbers[2] > 1  # 8.36
