"""Positions switched off, shuffled or shifted at run time, in a model of every mechanism."""

import numpy as np
import pytest
import tiny

import minitx
from minitx.analysis.live.changes import Changes
from minitx.analysis.measures import position_edits

CLOSE = dict(rtol=0, atol=1e-12)
MODELS = {  # variant -> the points at which places enter
    "bert-bare": ["pos_embed"],
    "gpt2-causal": ["pos_embed"],
    "mpnet-bare": ["pos_embed", "pos_bias"],
    "t5-encoder": ["pos_bias"],
    "llama-grouped": ["pos_angle"],
    "qwen2-window": ["pos_angle"],
    "modernbert-bare": ["pos_angle"],
    "bloom-three": ["pos_bias"],
    "gpt_neox-nowhere": [],
    "deberta-masked": ["pos_row"],
    "deberta2-bare": ["pos_row"],
}
EVERYWHERE = [name for name, points in MODELS.items() if points]
BOTH_WAYS = [
    "bert-bare",
    "mpnet-bare",
    "t5-encoder",
    "deberta-masked",
]  # each token sees all others
ORDER = np.array([3, 0, 5, 1, 4, 2, 6])


def stream(model, tokens, edits=()):
    """The last stream of one text [T D]."""
    return minitx.run(model, tokens, "resid_post", dict(edits))["resid_post", -1][0]


@pytest.mark.parametrize("variant", MODELS)
def test_places_enter_where_the_mechanism_says(variant):
    model = tiny.load(variant)
    assert position_edits.points(model.config) == MODELS[variant]
    terms = list(model.config.pos_terms)  # of which the rows of distances are no summand
    assert list(position_edits.off(model.config)) == (terms or MODELS[variant])


@pytest.mark.parametrize("variant", BOTH_WAYS)
def test_off_a_model_that_sees_all_reads_a_set(variant):
    """Tokens in another order give the same streams in that order; with positions they do not."""
    model = tiny.load(variant)
    tokens, off = tiny.ids(model, 7), position_edits.off(model.config)
    moved = stream(model, tokens[ORDER], off)
    np.testing.assert_allclose(moved, stream(model, tokens, off)[ORDER], **CLOSE)
    assert abs(stream(model, tokens[ORDER]) - stream(model, tokens)[ORDER]).max() > 0.01


@pytest.mark.parametrize("variant", EVERYWHERE)
def test_off_and_moved_change_the_stream_and_no_move_changes_no_bit(variant):
    model = tiny.load(variant)
    cfg, tokens = model.config, tiny.ids(model, 7)
    plain = stream(model, tokens)
    assert (stream(model, tokens, position_edits.moved(cfg, np.arange(7))) == plain).all()
    for edits in (position_edits.off(cfg), position_edits.moved(cfg, ORDER)):
        assert abs(stream(model, tokens, edits) - plain).max() > 0.01


@pytest.mark.parametrize(
    "variant", ["bert-bare", "t5-encoder", "llama-grouped", "bloom-three", "deberta2-bare"]
)
def test_moved_is_another_tokens_position(variant):
    model = tiny.load(variant)
    tokens = tiny.ids(model, 7)
    given = minitx.run(model, tokens, "resid_post", positions=ORDER)["resid_post", -1][0]
    moved = stream(model, tokens, position_edits.moved(model.config, ORDER))
    np.testing.assert_allclose(moved, given, **CLOSE)


@pytest.mark.parametrize("variant", EVERYWHERE)
def test_a_change_of_positions_is_made_whatever_the_mechanism(variant):
    """Off is zero; a dial moves keys alone: in layer 0 the queries stay."""
    model = tiny.load(variant)
    tokens = tiny.ids(model, 7)
    plain = minitx.run(model, tokens)
    off, zero = (Changes(word).edits(model, tokens) for word in ("off", "zero"))
    assert off == zero == position_edits.off(model.config)
    shuffled = minitx.run(model, tokens, edits=Changes("shuffled", seed=3).edits(model, tokens))
    assert abs(shuffled["resid_post", -1] - plain["resid_post", -1]).max() > 0.01
    dialled = minitx.run(model, tokens, edits=Changes(dial=2).edits(model, tokens))
    assert (dialled["q", 0] == plain["q", 0]).all()
    seen = np.isfinite(plain["scores", 0])
    assert abs(dialled["scores", 0][seen] - plain["scores", 0][seen]).max() > 0.01


def test_a_dial_of_rotary_positions_is_a_turn_of_the_keys():
    """In layer 0 exactly: keys turned by the angle of the token `dial` places further on."""
    model = tiny.load("llama-grouped")
    tokens = tiny.ids(model, 7)
    plain = minitx.run(model, tokens, ["k_in", "pos_angle"])
    trace = minitx.run(model, tokens, [("k", 0)], Changes(dial=2).edits(model, tokens))
    angle = plain["pos_angle", 0][:, np.roll(np.arange(7), -2)]
    turned = minitx.positions.turned(plain["k_in", 0], angle)
    np.testing.assert_allclose(trace["k", 0], turned, **CLOSE)


def test_what_has_no_positions_or_only_distances_says_so():
    nowhere, rotary = tiny.load("gpt_neox-nowhere"), tiny.load("llama-grouped")
    for change in (Changes("off"), Changes("shuffled"), Changes(dial=1)):
        with pytest.raises(ValueError, match="this gpt_neox has no positions to change"):
            change.edits(nowhere, tiny.ids(nowhere, 7))
    for variant in ("bloom-three", "t5-encoder"):
        model = tiny.load(variant)
        with pytest.raises(ValueError, match="reads only distances: a shift"):
            Changes("shifted", shift=3).edits(model, tiny.ids(model, 7))
    with pytest.raises(ValueError, match="llama reads only distances: a shift"):
        Changes("shifted", shift=3).edits(rotary, tiny.ids(rotary, 7))
