"""Lesson 1: its checks tell right answers from likely wrong ones, and its prose is true."""

import numpy as np
import pytest
from answered import answers, try_all

import minitx
from minitx.lessons.checks.lesson_01 import check_attention, check_crossing, check_stream

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


def test_the_stream_is_a_sum():
    trace = minitx.run(minitx.load("tiny-gpt2"), "A dog")
    try_all(check_stream, streams(trace, trace["resid_mid", 2]), trace)


def streams(trace, right):
    yield right, "right"
    yield right[0], "right"
    yield trace["resid_post", 2], "the MLP of layer 2"
    yield trace["resid_pre", 2], "attention of layer 2 is missing"
    yield right - trace["pos_embed"], "pos_embed, are missing"
    yield trace["resid_mid", 1], "this is layer 1"
    yield trace["resid_mid", 3], "this is layer 3"
    yield right - trace["mlp_out", 0], "both writers of layers"
    yield right[..., :5], "the shape is"


def test_attention_is_a_third_of_a_layer(names):
    assert names["share"] == pytest.approx(1 / 3)


def test_the_writers_add_up(names):
    assert names["error"] < 1e-4  # measured 0.0


def test_the_mlps_are_missed_more(names):
    loss, average = names["loss"], names["average"]
    for instead in (np.zeros_like, average):
        no_attention, no_mlp = loss({"attn_out": instead}), loss({"mlp_out": instead})
        assert loss({}) < no_attention < no_mlp  # 3.45, silent 4.96 9.13, average 4.09 6.76
    chance = np.log(names["model"].config.n_vocab)
    assert loss({"mlp_out": np.zeros_like}) > chance > loss({"mlp_out": average})  # 6.93
