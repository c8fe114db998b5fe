"""Steering vectors: a planted direction, its effect by hand, and what shuffled labels give."""

import numpy as np
import pytest
import tiny
from scipy.special import log_softmax

import minitx
from minitx.analysis.measures import document_features
from minitx.research import SteeringVector

GOOD, BAD = 7, 9  # token ids
NAMES = "girl boy dog man king cat woman bird bear fox queen child".split()


def planted(u):
    """A GPT-2 whose tokens GOOD and BAD differ by 2u, and whose layers write nothing."""
    model = tiny.load("gpt2-causal")
    W_E = np.array(model.weights.W_E)
    W_E[GOOD], W_E[BAD] = W_E[0] + u, W_E[0] - u
    silent = {name: 0 * getattr(model.layers[0], name) for name in ("W_O", "b_O", "W_out", "b_out")}
    layers = {layer.index: silent for layer in model.layers}
    return tiny.with_weights(model, layers=layers, W_E=W_E)


def direction(model, seed=0):
    return np.random.default_rng(seed).standard_normal(model.config.d_model)


def at_layer_1(model, row, edits=None):  # -> [T D]
    return minitx.run(model, row, ("resid_pre", 1), edits)["resid_pre", 1][0]


def prompts(model, end, n=8):
    """Rows of ids that end in a token: the same rows for each end."""
    rows = tiny.ids(model, n, 4, seed=3)
    return [[*row, end] for row in rows]


def test_a_planted_direction_comes_back():
    u = direction(tiny.load("gpt2-causal"))
    model = planted(u)
    sides = prompts(model, GOOD), prompts(model, BAD)
    for layer in (0, 1, -1):
        v = minitx.steering_vector(model, *sides, layer=layer)
        assert np.abs(v.vector - 2 * u).max() < 1e-13  # differences of numbers near 1, in float64
    assert v.layer == model.config.n_layers - 1
    stream = [at_layer_1(model, row) for row in [*sides[0], *sides[1]]]
    lengths = np.linalg.norm(np.concatenate(stream), axis=1)
    assert v.share == pytest.approx(np.linalg.norm(2 * u) / lengths.mean())
    assert v.null < v.share
    mean = minitx.steering_vector(model, *sides, layer=1, token="mean")
    assert np.abs(mean.vector - 2 * u / 5).max() < 1e-13


def test_edits_move_the_stream_and_the_effect_is_that_of_the_logits():
    model = planted(direction(tiny.load("gpt2-causal")))
    v = minitx.steering_vector(model, prompts(model, GOOD), prompts(model, BAD), layer=1)
    row = tiny.ids(model, 6, seed=1)
    edits = minitx.steer(v, scale=-1.5)
    before, after = (minitx.run(model, row, [("resid_post", 1), "logits"], e) for e in ({}, edits))
    moved = after["resid_post", 1] - before["resid_post", 1]
    assert np.abs(moved + 1.5 * v.vector).max() < 1e-12
    log_p = []
    for trace in (before, after):
        y = log_softmax(trace["logits"][0, :-1], axis=1)
        log_p.append(y[np.arange(5), row[1:]].mean())
    effect = v.effect([row], scale=-1.5)
    assert effect.change == pytest.approx(log_p[1] - log_p[0], abs=1e-12)
    assert v.effect([row], scale=0.0).change == 0
    assert len(np.unique(effect.random)) == 20


def test_labels_that_mean_nothing_are_rarely_above_their_null():
    """40 random labellings: two are expected above, and eight or more have p < 0.001."""
    model = tiny.load("gpt2-causal")
    above = 0
    for seed in range(40):
        rows = [*tiny.ids(model, 16, 5, seed=seed)]
        v = minitx.steering_vector(model, rows[:8], rows[8:], layer=1, seed=seed)
        above += v.share > v.null
    assert above < 8


def test_sides_of_different_sizes_are_no_pairs():
    model = tiny.load("gpt2-causal")
    rows = [*tiny.ids(model, 9, 5)]
    v = minitx.steering_vector(model, rows[:3], rows[3:], layer=1)
    x = np.array([at_layer_1(model, row)[-1] for row in rows])
    expected = x[:3].mean(axis=0) - x[3:].mean(axis=0)
    assert np.abs(v.vector - expected).max() < 1e-13
    assert v.shuffled.shape == (100, model.config.d_model)


def two_kinds(n=20):
    """A silent GPT-2, and texts of its even tokens, whose embeddings have u more, and of others."""
    model = planted(direction(tiny.load("gpt2-causal")))
    u = direction(model, seed=4)
    added = np.where(np.arange(model.config.n_vocab) % 2, -1, 1)[:, None] * u
    weights = {"W_E": model.weights.W_E + added, "W_U": model.weights.W_U + added.T}
    rows = tiny.ids(model, 2 * n, 6, seed=3) // 2 * 2 % (model.config.n_vocab - 1)
    return tiny.with_weights(model, **weights), [*rows[:n]], [*rows[n:] + 1]


def contrast_of(model, even, odd, n=14, seed=0):
    v = minitx.steering_vector(model, even[:n], odd[:n], layer=1, seed=seed)
    return v.contrast(v.effect(even[n:]), v.effect(odd[n:]))


def test_a_planted_kind_is_steered_beyond_chance():
    contrast = contrast_of(*two_kinds())
    low, high = contrast.interval
    assert contrast.null < low < contrast.change < high
    assert contrast.verdict == "beyond chance"


@pytest.mark.parametrize("keep_dtype", [False, True])
def test_random_weights_make_a_vector_of_their_own(keep_dtype):
    """By hand; of weights that stay in their file, too, which are noise then as well."""
    model = minitx.load("tiny-stories", keep_dtype=keep_dtype)
    happy, sad = ([f"the {x} was {word} ." for x in NAMES] for word in ("happy", "sad"))
    v = minitx.steering_vector(model, happy[:6], sad[:6], layer=2)
    effect = v.effect(happy[6:], 2.0)
    noise = document_features.untrained(minitx.load("tiny-stories"), np.random.default_rng(3))
    other = minitx.steering_vector(noise, happy[:6], sad[:6], layer=2)
    change = other.effect(happy[6:], 2.0).change
    assert effect.untrained.shape == (4,)
    assert effect.untrained[3] == pytest.approx(change, abs=1e-5)


def test_what_random_weights_reach_is_no_verdict_beyond_chance():
    model, even, odd = two_kinds()
    v = minitx.steering_vector(model, even[:14], odd[:14], layer=1)
    towards, away = v.effect(even[14:]), v.effect(odd[14:])
    assert (towards.untrained - away.untrained).max() < v.contrast(towards, away).interval[0]
    more = np.array([0, 0, 0, towards.change - away.change])
    reached = towards._replace(untrained=away.untrained + more)
    assert v.contrast(reached, away).verdict == "undecided"


def test_kinds_that_do_not_differ_are_steered_no_more_than_chance():
    """20 labellings of the same texts: by its rule one has p < 1/21, and three p < 0.07."""
    model, even, odd = two_kinds()
    verdicts = []
    for seed in range(20):
        mixed = np.random.default_rng(seed).permutation([*even, *odd])
        verdicts.append(contrast_of(model, [*mixed[:20]], [*mixed[20:]], seed=seed).verdict)
    assert verdicts.count("beyond chance") <= 2 < verdicts.count("no more than chance")


def test_too_few_texts_are_undecided():
    model, even, odd = two_kinds()
    assert contrast_of(model, even, odd, n=5).verdict == "undecided"
    single = contrast_of(model, even[:15], odd[:15])
    assert single.verdict == "undecided" and np.isnan(single.interval).all()
    v = minitx.steering_vector(model, even[:14], odd[:14], layer=1)
    same = v.effect([even[15], even[15]]), v.effect([odd[15], odd[15]])
    contrast = v.contrast(*same)  # no spread
    assert contrast.interval == pytest.approx((contrast.change, contrast.change))


@pytest.mark.parametrize("variant", tiny.SINGLE)
def test_every_single_stack_is_steered(variant):
    model = tiny.single(variant)
    positive, negative = tiny.ids(model, 2, 5), tiny.ids(model, 2, 5, seed=1)
    v = minitx.steering_vector(model, [*positive], [*negative], layer=1)
    row = tiny.ids(model, 5, seed=2)
    moved = at_layer_1(model, row, minitx.steer(v)) - at_layer_1(model, row)
    assert np.abs(moved - v.vector).max() < 1e-12


@pytest.mark.parametrize(
    "given, match",
    [
        ({"layer": 9}, "no point .*resid_pre.*layers 0 to"),
        ({"token": "first"}, "token is 'first'; expected one of: last, mean"),
        ({"positive": []}, r"positive are \[\]; expected a list of texts"),
        ({"positive": 3}, "positive are 3; expected a list of texts"),
        ({"negative": [[1] * 99]}, "text 1 has 99 tokens; this model reads at most"),
    ],
)
def test_what_cannot_be_steered_is_said(given, match):
    given = {"positive": [[1, 2]], "negative": [[3, 4]], "layer": 1} | given
    with pytest.raises(ValueError, match=match):
        minitx.steering_vector(tiny.load("gpt2-causal"), **given)


def test_what_is_no_vector_and_no_scale_is_said():
    model = tiny.load("bert-masked")
    v = minitx.steering_vector(model, [[1, 2]], [[3, 4]], layer=1)
    assert isinstance(v, SteeringVector) and "before layer 1" in repr(v)
    with pytest.raises(ValueError, match="is no steering vector; expected what"):
        minitx.steer(v.vector)
    for scale in (None, "2", [1, 2]):
        with pytest.raises(ValueError, match="scale is .*; expected a finite number"):
            minitx.steer(v, scale)
    with pytest.raises(ValueError, match="scale is nan; expected a finite number"):
        minitx.steer(v, np.nan)
    with pytest.raises(ValueError, match="does not predict the next token"):
        v.effect([[1, 2, 3]])
    causal = tiny.load("gpt2-causal")
    with pytest.raises(ValueError, match="a text has one token"):
        minitx.steering_vector(causal, [[1, 2]], [[3, 4]], layer=1).effect([[1]])
