"""What a config.json may say that nobody reads: refused by name unless it has its default."""

import dataclasses
from contextlib import nullcontext

import pytest
import tiny

from minitx.config import Config
from minitx.loading.families import FAMILIES, ONLY, from_hf, keys

TABLE = keys.library()["types"]
DENIED = {  # keys of the library that minitx computes for their default alone: refused otherwise
    "_remove_final_layer_norm",
    "add_cross_attention",
    "classifier_bias",
    "conv_kernel_size",
    "decoder_bias",
    "head_dim",
    "is_decoder",
    "layer_norm_elementwise_affine",
    "norm_bias",
    "per_layer_config",
    "pooler_hidden_act",
    "qk_layernorm",
    "relative_attention_num_buckets",
    "slow_but_exact",
    "summary_activation",
    "summary_type",
    "summary_use_proj",
    "talking_head",
    "text_config_dict",
    "use_bidirectional_attention",
    "use_parallel_residual",
    "vision_config_dict",
}


def handled(name):
    """The keys of a type that are read or without effect."""
    stacks = FAMILIES[name], FAMILIES[name].encoder, FAMILIES[name].text
    return keys.inert().union(*(keys.known(stack) for stack in stacks if stack is not None))


@pytest.mark.parametrize("name", FAMILIES)
def test_every_key_of_the_library_is_read_inert_or_refused(name):
    """Beside a type that is new, DENIED says which of its keys are refused."""
    unread = {*TABLE[name]} - handled(name) - DENIED
    assert not unread, "read them, or say in Family.knows, INERT or DENIED that they are not"


def test_the_lists_have_no_key_that_the_library_lacks():
    every = set(keys.library()["generation"]).union(*TABLE.values())
    assert keys.inert() <= every and DENIED <= every
    assert {*TABLE} == {*FAMILIES}


@pytest.mark.parametrize("name", FAMILIES)
def test_an_old_name_stands_for_a_key_that_is_read(name):
    for old, new in keys.library()["old"].get(name, {}).items():
        assert new in handled(name) and keys.spelled({old: 7, new: 3}, name)[new] == 7


@pytest.mark.parametrize(
    "side,changes,message",
    [
        ("text_config", dict(hidden_act="sin"), "unknown activation 'sin'"),
        ("text_config", dict(layer_norm_eps=5), "the norms' epsilon is 5; wanted a number"),
        ("text_config", dict(pad_token_id=4000), "pad_token_id is 4000; wanted 0 to"),
        ("text_config", dict(eos_token_id=[1]), r"the id at which a head reads is \[1\]"),
        ("vision_config", dict(hidden_act="sin"), "unknown activation 'sin'"),
        ("vision_config", dict(per_layer_config={}), None),
        ("vision_config", dict(per_layer_config={"0": {}}), "per_layer_config is"),
    ],
)
def test_both_sides_of_a_clip_are_checked(side, changes, message):
    raw = tiny.config("images/clip-both")
    raw[side] |= changes
    with pytest.raises(ValueError, match=message) if message else nullcontext():
        from_hf(raw)


def test_an_older_object_of_a_side_counts():
    """As in the library, with its defaults for what it lacks."""
    raw = tiny.config("images/clip-both")
    older = raw["text_config"] | {"layer_norm_eps": 0.25}
    assert from_hf(raw | {"text_config_dict": older}).text.eps == 0.25


@pytest.mark.parametrize(
    "variant,changes,field,value",
    [
        ("distilbert-masked", dict(num_hidden_layers=7), "n_layers", 7),
        ("gpt2-causal", dict(num_attention_heads=6), "n_heads", 6),
        ("llama-tied", dict(is_causal=False), "causal", False),
        ("llama-tied", dict(auto_map={"AutoModel": "x"}, my_note=3), "causal", True),
        ("bloom-twelve", dict(pretraining_tp=4), "causal", True),
        ("bert-masked", dict(is_causal=False), "causal", False),
    ],
)
def test_old_names_are_read_and_what_has_no_effect_is_not_refused(variant, changes, field, value):
    assert getattr(from_hf(tiny.config(variant, **changes)), field) == value


def test_a_theta_outside_of_rope_parameters_has_no_effect_in_gpt_neox():
    plain = tiny.config("gpt_neox-parallel", drop=["rope_parameters"], rotary_pct=1.0)
    assert from_hf(plain | {"rope_theta": 3.0}) == from_hf(plain)
    assert from_hf(plain | {"rotary_emb_base": 3.0}) != from_hf(plain)


def test_a_window_reaches_one_key_farther_where_a_decoder_sees_both_sides():
    before = from_hf(tiny.config("mistral-window"))
    after = from_hf(tiny.config("mistral-window", is_causal=False))
    assert after.windows == tuple(size + 1 for size in before.windows)


def test_each_field_that_a_family_reads_is_one_of_a_model():
    fields = {field.name for field in dataclasses.fields(Config)}
    assert all({*family.config} <= fields for family in FAMILIES.values())
    assert not {*ONLY} & set().union(*TABLE.values())
