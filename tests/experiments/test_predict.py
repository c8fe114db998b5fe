"""Guesses: one token hidden at a time, only the masks of a sentence, or what comes next."""

import numpy as np
import pytest
from outcomes import SMALL, run
from scipy.special import softmax

import minitx
from minitx.analysis.contract import registry
from minitx.analysis.drawing import draw
from minitx.analysis.texts import corpus


def test_the_bundle_guesses_better_than_frequencies(outcomes):
    result = outcomes["predict", "bundled"]
    assert result["loss"] < result["loss_null"] - 1  # nats


def test_predict_hides_one_token_at_a_time(bundled, outcomes):
    result = outcomes["predict", "bundled"]
    tokens = bundled.tokenizer.encode(SMALL["predict"]["sentence"])
    mask = bundled.tokenizer.encode("<mask>", special=False)[0]
    before, after = corpus.specials(bundled)
    place = len(before) + 3
    masked = np.where(np.arange(len(tokens)) == place, mask, tokens)
    p = softmax(minitx.run(bundled, masked, keep=["logits"])["logits"][0, place].astype(float))
    assert len(result["here"]) == len(tokens) - len(before) - len(after)
    assert result["truth_probability"][3] == pytest.approx(p[tokens[place]], rel=1e-5)  # measured 0
    assert result["truth_rank"][3] == 1 + (p > p[tokens[place]]).sum()
    assert result["guess_id"][3].tolist() == np.argsort(-p)[:3].tolist()


@pytest.mark.parametrize("mask", ["<mask>", "[MASK]"])
def test_predict_fills_only_the_masks_in_a_sentence(bundled, mask):
    sentence = f"He went {mask} of the room, and {mask} shut."
    result = run("predict", bundled, sentence=sentence)
    assert result["here"].tolist() == ["<mask>", "<mask>"]
    assert "loss" not in result
    assert (result["truth_id"] == -1).all()
    with draw.style():
        registry.get("predict").draw(result)


def test_predict_of_a_causal_model_sees_only_what_stands_before(causal, outcomes):
    shorter = run("predict", causal, sentence="He went out of", guesses=3)
    longer = outcomes["predict", "causal"]
    n = len(shorter["here"])
    y = minitx.run(causal, "He went out of", keep=["logits"])["logits"][0].astype(float)
    p = softmax(y, axis=1)
    truth = causal.tokenizer.encode("He went out of")[1:]
    # measured 2e-15
    assert shorter["truth_probability"] == pytest.approx(p[np.arange(n), truth], rel=1e-9)
    assert longer["here"][:n].tolist() == shorter["here"].tolist()
    difference = longer["truth_probability"][:n] - shorter["truth_probability"]
    assert np.abs(difference).max() < 1e-7  # float32 logits of another length: measured 4e-10
