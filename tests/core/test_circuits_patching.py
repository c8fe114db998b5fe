"""Activation patching: what a patched run gives, in both directions, on models made by hand too."""

import made
import numpy as np
import pytest
import tiny
from paired import ANSWER, answer, contrast, given, pairs_of, record

import minitx
from minitx import circuits

FAMILIES = ["gpt2-causal", "llama-grouped", "gpt_neox-parallel", "bert-masked", "mpnet-masked"]
FAMILIES += ["albert-inner", "bart-causal", "t5-gated", "bert-question"]


def by_hand(model, base, donor, key, i):
    """The measure of one text alone, without padding, with index i of a point from another."""
    value = record(model, donor, key)[key]

    def patched(x):
        x[:, i] = value[:, i]
        return x

    y = record(model, base, "logits", {key: patched})["logits"]
    return contrast(model, y[0, given(model).get("place", -1)])


@pytest.mark.parametrize(
    "point", ["z", "v", "mlp_out", "cross_z", "cross_k", "enc_z", "enc_pattern"]
)
@pytest.mark.parametrize("variant", FAMILIES)
def test_patches_are_those_of_single_runs(variant, point):
    """Batches of texts of several lengths give what each text gives alone."""
    model = tiny.load(variant)
    if model.encoder is None and point.startswith(("cross_", "enc_")):
        pytest.skip("one stack")
    clean, corrupt = pairs_of(model)
    effects = circuits.patch(model, clean, corrupt, answer(model), point, **given(model))
    by_place = point == "mlp_out" and model.encoder is None
    for pair, layer in np.ndindex(3, 2):
        n = effects.into_corrupt.shape[2]
        short = n - len(clean[pair]) if by_place else 0
        left = short if model.config.causal else 0
        for i in range(left, n - short + left):
            arguments = (point, layer), i - left
            value = by_hand(model, corrupt[pair], clean[pair], *arguments)
            assert abs(effects.into_corrupt[pair, layer, i] - value) < 1e-12
            value = by_hand(model, clean[pair], corrupt[pair], *arguments)
            assert abs(effects.into_clean[pair, layer, i] - value) < 1e-12


def test_effects_are_shares_of_the_difference():
    model = tiny.load("gpt2-causal")
    clean, corrupt = pairs_of(model)
    effects = circuits.patch(model, clean, corrupt, ANSWER)
    whole = (effects.clean - effects.corrupt).sum()
    restored = (effects.into_corrupt - effects.corrupt[:, None, None]).sum(axis=0) / whole
    lost = (effects.clean[:, None, None] - effects.into_clean).sum(axis=0) / whole
    assert abs(restored - effects.effects).max() < 1e-12 and abs(lost - effects.lost).max() < 1e-12
    assert (np.asarray(effects) == effects.effects).all() and effects.shape == (2, 3)
    low, high = effects.intervals
    assert (low <= effects.effects).all() and (effects.effects <= high).all() and (low < high).any()
    again = circuits.patch(model, clean, corrupt, ANSWER)
    assert (again.intervals == effects.intervals).all() and (again.null == effects.null).all()


def test_the_last_stream_restores_everything():
    """And what is the same in both texts nothing; with one pair the interval has no width."""
    model = tiny.load("gpt2-causal")
    clean, corrupt = pairs_of(model, (6,))
    effects = circuits.patch(model, clean, corrupt, ANSWER, ("resid_post", -1))
    assert effects.shape == (1, 6) and abs(effects[0, -1] - 1) < 1e-12
    assert abs(effects[0, :-1]).max() < 1e-12
    assert (effects.intervals[0] == effects.intervals[1]).all()
    assert "on 1 pair of texts" in repr(effects) and "one pair" in repr(effects)
    assert abs(circuits.patch(model, clean, corrupt, ANSWER, "pos_embed").effects).max() < 1e-12


MEASURES = {
    "of a batch": lambda y: y[:, -1, 5] - y[:, -1, 9],
    "of a text": lambda y: y[0, -1, 5] - y[0, -1, 9],
    "a mean": lambda y: (y[:, -1, 5] - y[:, -1, 9]).mean(),
}


@pytest.mark.parametrize("measure", MEASURES)
def test_functions_are_measures(measure):
    model = tiny.load("gpt2-causal")
    clean, corrupt = pairs_of(model)
    expected = circuits.patch(model, clean, corrupt, [ANSWER] * 3)
    effects = circuits.patch(model, clean, corrupt, MEASURES[measure])
    assert abs(effects.effects - expected.effects).max() < 1e-12


def test_a_circuit_that_was_made():
    """The two heads restore all and lose all, the others nothing; unrelated pairs do not."""
    clean, corrupt, answers = made.pairs()
    effects = circuits.patch(made.induction(), clean, corrupt, answers)
    expected = np.eye(2)  # L0H0 and L1H1
    assert abs(effects.effects - expected).max() < 1e-9
    assert abs(effects.lost - expected).max() < 1e-9
    assert effects.null.max() < 0.5 < effects.lost_null[0, 0]  # measured: 0.13, 1.04


def test_two_heads_that_stand_in_for_each_other():
    """Patched into clean texts alone, neither loses anything; the other direction shows both."""
    clean, corrupt, answers = made.pairs()
    model = made.stand_ins()
    effects = circuits.patch(model, clean, corrupt, answers)
    assert abs(effects.lost[0]).max() < 1e-9
    assert abs(effects.effects[0] - 1).max() < 1e-9
    both = circuits.patch(model, clean, corrupt, answers, together=[(0, 0), (0, 1)])
    assert abs(both.lost - 1) < 1e-9 and abs(float(both) - 1) < 1e-9


def test_a_pair_by_itself_has_a_null_of_random_tokens():
    clean, corrupt, answers = made.pairs(1)
    effects = circuits.patch(made.induction(), clean, corrupt, answers)
    assert abs(effects.null[0, 0]) < 0.3 and effects.effects[0, 0] > 0.99


def test_effects_show_themselves():
    clean, corrupt, answers = made.pairs()
    effects = circuits.patch(made.induction(), clean, corrupt, answers)
    assert "6 pairs" in repr(effects) and "0, 0  1.000" in repr(effects)


TWO = ([5, 6, 7], [5, 8, 7])
WRONG = {
    "pair 1 does not align: \\[1, 2, 3\\] is 3 tokens, \\[1, 2\\] is 2": dict(
        clean=[[1, 2], [1, 2, 3]], corrupt=[[1, 3], [1, 2]]
    ),
    "2 clean texts and 1 corrupt": dict(clean=[[1, 2], [1, 2]], corrupt=[[1, 3]]),
    "no texts": dict(clean=[], corrupt=[]),
    "unknown point 'zz'": dict(at="zz"),
    "'logits', from which the measure is computed": dict(at="logits"),
    "has no point 'cross_z'": dict(at="cross_z"),
    "target tokens: 99 is out of range": dict(measure=(99, 5)),
    "1 pairs of tokens for 2 pairs of texts": dict(clean=TWO, corrupt=TWO[::-1], measure=[(3, 4)]),
    "measure is 3; wanted a function": dict(measure=3),
    "measure has 3; wanted a function": dict(measure=(3,)),
    "place is 1.5; wanted a whole number": dict(place=1.5),
    "place is '1'; wanted a whole number": dict(place="1"),
    "place is nan; wanted a whole number": dict(place=np.nan),
    "measure has .*; wanted a function": dict(measure=[[1, 2, 3]]),
    "gives \\[3, 61\\] for logits": dict(measure=lambda y: y[0]),
    "clean texts is .*; wanted a difference": dict(clean=[TWO[0]], corrupt=[TWO[0]]),
    "together has \\(0, 3\\); wanted indices within \\[2, 3\\]": dict(together=[(0, 3)]),
    "prefix given, but this model": dict(prefix=[3]),
}


@pytest.mark.parametrize("message", WRONG)
def test_bad_requests_are_refused(message):
    asked = dict(clean=[TWO[0]], corrupt=[TWO[1]], measure=ANSWER) | WRONG[message]
    texts = [asked.pop(name) for name in ("clean", "corrupt", "measure")]
    with pytest.raises(ValueError, match=message):
        circuits.patch(tiny.load("gpt2-causal"), *texts, **asked)


def test_texts_and_their_targets_are_refused_by_name():
    model = minitx.load("tiny-gpt2")
    with pytest.raises(
        ValueError, match="pair 0 does not align: 'A man' is 2 tokens, 'A dog' is 3"
    ):
        circuits.patch(model, "A man", "A dog", (" he", " she"))
    with pytest.raises(ValueError, match="target ' dog' is 2 tokens, \\[' do', 'g'\\]; wanted one"):
        circuits.patch(model, "A man", "A day", (" dog", " she"))
    with pytest.raises(ValueError, match="no head that gives logits"):
        circuits.patch(tiny.load("gpt2-bare"), [[5]], [[6]], (1, 2))
