"""Every name of a run of TransformerLens 4 is known: its point has that value, or there is none."""

import json

import make_golden_names
import numpy as np
import pytest

import minitx
from minitx.loading.families import albert
from minitx.names import point_of

RECORD = json.loads(make_golden_names.FILE.read_text(encoding="utf-8"))["values"]
BY_HEAD = (
    "q.hook_out",
    "k.hook_out",
    "v.hook_out",
    "o.hook_in",
    "hook_q",
    "hook_k",
    "hook_v",
    "hook_z",
)


def is_without(name):
    """Whether a name's value is no point."""
    return name.endswith(("hook_normalized", "pos_embed.hook_in")) or name == "embed.hook_in"


@pytest.fixture(scope="module")
def trace():
    return minitx.run(minitx.load("tiny-gpt2"), [make_golden_names.IDS])


@pytest.mark.parametrize("name", RECORD)
def test_a_name_has_its_value_or_says_what_comes_closest(name, trace):
    if is_without(name):
        with pytest.raises(ValueError, match=f"'{name}' names no point: it is (a norm before|the)"):
            point_of(name)
        return
    x = trace[point_of(name)]
    assert_same(1 / x if name.endswith("hook_scale") else x, name, RECORD[name])


@pytest.mark.parametrize("name", ["q.3", "q.L3"])
def test_a_name_with_its_layer_is_the_point(name):
    """As files of a collection and commands write it; a point without layers has none."""
    assert point_of(name) == ("q", 3)
    with pytest.raises(ValueError, match=rf"unknown point '{name}'; minitx calls it \('q', 3\)"):
        minitx.run("tiny-gpt2", "a", name)
    with pytest.raises(ValueError, match="'embed.3' names no point"):
        point_of("embed.3")


def assert_same(x, name, expected):
    """float32 on both sides; measured: 7.2e-7 of the length at most, in T5 6.7e-7."""
    if name.endswith(BY_HEAD):
        x = x.swapaxes(1, 2)  # there heads come behind positions
    x = np.where(np.isfinite(x), x, 0.0)
    length = expected[0]
    np.testing.assert_allclose(make_golden_names.numbers(x), expected, rtol=0, atol=3e-6 * length)


OF_PAIRS = json.loads(make_golden_names.PAIRS.read_text(encoding="utf-8"))["values"]
ADDED = {"pos_embed.hook_out", "hook_pos_embed", "decoder_pos_embed.hook_out"}  # T5's biases there


@pytest.fixture(scope="module")
def pair():
    model = minitx.load(make_golden_names.GOLDEN / make_golden_names.PAIR)
    trace = minitx.run(model, [make_golden_names.TARGET], source=[make_golden_names.SOURCE])
    return model, trace


@pytest.mark.parametrize("name", OF_PAIRS)
def test_a_name_of_an_encoder_decoder_has_its_value(name, pair):
    """But for what is no norm's number, what is hidden, and a factor: see each."""
    model, trace = pair
    if is_without(name):
        with pytest.raises(ValueError, match=f"'{name}' names no point: it is (a norm before|the)"):
            point_of(name)
        return
    if name in ADDED:
        assert point_of(name) == "pos_embed" not in trace
        return
    x = trace[point_of(name)]
    if name.endswith("hook_scale"):  # there with the mean taken off, which T5 does not do
        before = trace[point_of(name.replace("hook_scale", "hook_in"))].astype(np.float64)
        expected = np.sqrt(before.var(axis=-1) + model.config.eps)
        assert_same(expected, name, OF_PAIRS[name])
        np.testing.assert_allclose(1 / x**2, (before**2).mean(-1), rtol=1e-5)
        return
    if name == "unembed.hook_in":
        x = x * model.config.unembed_scale
    if "self_attn.hook_attn_scores" in name:  # there without a mask
        seen = np.isfinite(x)
        assert not seen.all() and seen.any(axis=-1).all()
        return
    assert_same(x, name, OF_PAIRS[name])


def test_how_many_names_have_a_point():
    assert (len(RECORD), sum(map(is_without, RECORD))) == (173, 11)
    assert (len(OF_PAIRS), sum(map(is_without, OF_PAIRS))) == (216, 14)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("blocks.1.attn.q_norm.hook_normalized", "'ln_q' is behind them"),
        ("blocks.1.attn.k_norm.hook_in", "before their norm"),
        ("embed_ln.hook_in", "'ln_embed' is its norm"),
        ("blocks.1.attn.hook_cos", "the cosine of 'pos_angle'"),
        ("rotary_emb.hook_in", "an input of the rotary embedding"),
    ],
)
def test_names_of_other_models_say_what_comes_closest(name, said):
    with pytest.raises(ValueError, match=f"'{name}' names no point: it is .*{said}"):
        point_of(name)


OF_WEIGHTS = {
    "W_Q": "q",
    "W_K": "k",
    "W_V": "v",
    "W_O": "attn_out",
    "ln1_w": "ln1",
    "W_in": "pre",
    "W_out": "mlp_out",
    "ln2_w": "ln2",
}


@pytest.mark.parametrize("ours", OF_WEIGHTS)
def test_a_module_of_albert_is_the_point_of_every_layer(ours):
    """The point that its weights make, of all layers, since all of them run it."""
    module = albert.LAYER[ours].names[0].removesuffix(".weight")
    prefix = "albert.encoder.albert_layer_groups."
    assert point_of(f"{prefix}0.albert_layers.0.{module}") == OF_WEIGHTS[ours]
    for place in "1.albert_layers.0", "0.albert_layers.1":
        with pytest.raises(ValueError, match="a module of a group of layers that is not the only"):
            point_of(f"{prefix}{place}.{module}")
