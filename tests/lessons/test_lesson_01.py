"""Lesson 1: its checks tell right answers from likely wrong ones, and its prose is true."""

import numpy as np
import pytest
from answered import answers
from executed import executed

import minitx
from minitx.lessons.checks import NOT_YET, Wrong
from minitx.lessons.checks.lesson_01 import check_attention, check_crossing, check_stream


@pytest.fixture(scope="module")
def lesson():
    return executed(1)[0]


@pytest.fixture(scope="module")
def trace():
    return minitx.run(minitx.load("tiny-gpt2"), "A dog")


SAID = {
    check_attention: [
        (2_359_296, "right"),
        (768**2, "one matrix"),
        (3 * 768**2, "W_O is missing"),
        (4 * 768**2 // 12, "one head"),
        (4 * 768**2 + 4 * 768, "with the biases"),
        (2 * 768 * 3072, "that is the MLP"),
        (17, "four square matrices"),
    ],
    check_crossing: [
        (3072, "right"),
        (6144, "mixing takes T D again"),
        (1536, "two matrices as well"),
        (768, "solve 2 T D"),
        (17, "what is left of it"),
    ],
}

test_answers = answers(SAID)


def test_the_stream_is_a_sum(trace):
    right = trace["resid_mid", 2]
    assert "right" in check_stream(right, trace)
    assert "right" in check_stream(right[0], trace)
    for hint, answer in wrong_streams(trace, right):
        with pytest.raises(Wrong, match=hint):
            check_stream(answer, trace)


def wrong_streams(trace, right):
    yield "the MLP of layer 2", trace["resid_post", 2]
    yield "attention of layer 2 is missing", trace["resid_pre", 2]
    yield "pos_embed, are missing", right - trace["pos_embed"]
    yield "this is layer 1", trace["resid_mid", 1]
    yield "this is layer 3", trace["resid_mid", 3]
    yield "both writers of layers", right - trace["mlp_out", 0]
    yield "the shape is", right[..., :5]


def test_no_answer_is_no_fault(trace):
    assert check_stream(..., trace) == NOT_YET


def test_attention_is_a_third_of_a_layer(lesson):
    assert lesson["share"] == pytest.approx(1 / 3)


def test_the_writers_add_up(lesson):
    assert lesson["error"] < 1e-4  # measured 0.0


def test_the_mlps_are_missed_more(lesson):
    loss, average = lesson["loss"], lesson["average"]
    for instead in (np.zeros_like, average):
        no_attention, no_mlp = loss({"attn_out": instead}), loss({"mlp_out": instead})
        assert loss({}) < no_attention < no_mlp  # 3.45, silent 4.96 9.13, average 4.09 6.76
    chance = np.log(lesson["model"].config.n_vocab)
    assert loss({"mlp_out": np.zeros_like}) > chance > loss({"mlp_out": average})  # 6.93
