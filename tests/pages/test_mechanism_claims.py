"""Claims about ways to know places: put to the models that they are about, and able to fail."""

from types import SimpleNamespace

import numpy as np
import pytest
import tiny

import minitx
from minitx import weights
from minitx.analysis.pages import mechanism_claims, published
from minitx.analysis.running.single import Outcome

VARIANTS = {  # a model of each mechanism -> how many claims are about it
    "gpt2-causal": 1,
    "bloom-three": 1,
    "llama-grouped": 2,
    "t5-encoder": 1,
    "gpt_neox-nowhere": 2,
    "mpnet-bare": 0,  # it has a table and buckets
}


def model_of(claim):
    """What `published` looks at of a model that a claim is about."""
    table = np.ones((8, 4)) if claim.mechanism == "learned" else np.zeros((8, 4))
    name = "learned" if claim.mechanism == "none" else claim.mechanism
    config = SimpleNamespace(mechanisms=[name], causal=bool(claim.causal), offset=0, n_ctx=8)
    return SimpleNamespace(config=config, weights=SimpleNamespace(W_pos=table), encoder=None)


def judged(claim, model, ours, null):
    """The row of a claim, where the experiment gave these numbers for the first of two models."""
    names = "longest", "r2", "without_fastest"
    arrays = {name: np.array([ours, 9.0]) for name in names}
    arrays["r2_interval"] = np.array([[ours, 1.0], [9.0, 9.0]])
    arrays |= {f"{name}_null": np.array([null, 9.0]) for name in names}
    return published.judged(claim, "x", model, Outcome({}, arrays, "", {}, "", None))


@pytest.mark.parametrize("claim", mechanism_claims.CLAIMS, ids=lambda x: f"{x.source} {x.what}")
def test_every_claim_holds_for_some_numbers_and_fails_for_others(claim):
    model = model_of(claim)
    high, low = (judged(claim, model, ours, 0.5) for ours in (0.9, 0.1))
    holds_above = claim.rule.startswith("more than") and "above its null" in claim.rule
    assert high["verdict"] == ("pass" if holds_above else "fail")
    assert low["verdict"] == ("fail" if holds_above else "pass")
    near = judged(claim, model, 0.54 if holds_above else 0.46, 0.5)["verdict"]
    assert near == ("pass" if claim.rule.startswith("not") else "fail")  # less than any margin
    assert high["ours"] == 0.9 and high["null"] == 0.5 and "with" in high["of"]


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_claim_is_put_to_models_of_its_mechanism_alone(variant):
    model = tiny.load(variant)
    about = [x for x in mechanism_claims.CLAIMS if published.concerns(x, variant, model)]
    assert len(about) == VARIANTS[variant]
    others = [x for x in mechanism_claims.CLAIMS if x not in about]
    row = judged(others[0], model, 0.9, 0.5)
    assert row["verdict"] == "other checkpoint"
    assert row["reason"] == f"published for {row['of']} only"


def test_without_positions_the_two_kinds_of_models_have_claims_of_their_own():
    of_places = [x for x in mechanism_claims.CLAIMS if x.ours is mechanism_claims.low_r2]
    for causal in (True, False):
        model = model_of(SimpleNamespace(mechanism="none", causal=causal))
        about = [x.causal for x in of_places if published.concerns(x, "x", model)]
        assert about == [causal]


@pytest.mark.parametrize("name", weights.zoo())
def test_every_model_of_the_zoo_is_asked(name):
    """Of DeBERTa's terms nothing was published that `mechanisms` measures."""
    model = minitx.load(name)
    claims = [x for x in mechanism_claims.CLAIMS if published.concerns(x, name, model)]
    assert bool(claims) == ("disentangled" not in name)
