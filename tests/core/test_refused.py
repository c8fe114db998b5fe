"""What is not computed is rejected by name: rotary parameters, and whole model types.

golden/refused/configs.json holds the config.json that the reference library writes (5.23, those of
pictures 5.24) for each of 104 model types that do not load, without values that say nothing of what
is computed.
"""

import json
import re

import pytest
import tiny

from minitx import rotary
from minitx.loading.families import FAMILIES, from_hf
from minitx.loading.families.refused import REFUSED

CONFIGS = json.loads((tiny.GOLDEN / "refused/configs.json").read_text(encoding="utf-8"))
# model types whose code is not in the library, but in their own folders
ELSEWHERE = "baichuan", "chatglm", "exaone", "internlm", "internlm2", "jais", "qwen"
TURNED = [
    *("llama-grouped", "mistral-window", "qwen2-biases", "qwen3-norms"),
    *("olmo2-shared", "falcon-two-norms", "gemma2-capped"),
    *("gpt_neox-parallel", "modernbert-masked"),
]
# every rope_type of the reference library, and of older files, with the parameters that it has
LENGTH = "original_max_position_embeddings"
COMPUTED = {
    "default": dict(rope_theta=100.0),
    "linear": dict(rope_theta=100.0, factor=2.0),
    "llama3": {"rope_theta": 100.0, "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    | {LENGTH: 16},
    "yarn": {"rope_theta": 100.0, "factor": 4.0, "beta_fast": 1.5, "beta_slow": 0.5}
    | {LENGTH: 32, "truncate": True, "mscale": 2.0, "mscale_all_dim": 1.0},
    "dynamic": dict(rope_theta=100.0, factor=2.0),
    "longrope": {"rope_theta": 100.0, "short_factor": [1.5], "long_factor": [3.0]}
    | {LENGTH: 32, "factor": 4.0},
}
TYPES = "proportional", "axial", "mrope", "su", "ntk", "dynamic_ntk", None
UNKNOWN = [
    *("short_factor", "long_factor", "short_mscale", "long_mscale", "mrope_section"),
    *("mrope_interleaved", "llama_4_scaling_beta", "finetuned", "alpha", "full_attention"),
    *("extrapolation_factor", "rope_local_base_freq", "max_position_embeddings", "rotary_dim"),
]


def config(variant, given, key="rope_parameters"):
    """The Config of a golden model with other rotary parameters.

    A list of one number is as long as there are rotated pairs.
    """
    width = from_hf(tiny.config(variant)).rotary[0].frequencies
    given = {name: x * len(width) if isinstance(x, list) else x for name, x in given.items()}
    if variant == "modernbert-masked" and key == "rope_parameters":
        given = dict.fromkeys(("full_attention", "sliding_attention"), given)
    others = ("rope_parameters", "rope_scaling", "rope_theta", "rotary_pct")
    return from_hf(tiny.config(variant, others) | {key: given})


# --- rotary parameters


@pytest.mark.parametrize("variant", TURNED)
@pytest.mark.parametrize("key", ["rope_parameters", "rope_scaling"])
def test_a_rope_type_is_computed_or_refused_by_name(variant, key):
    plain = config(variant, COMPUTED["default"], key).rotary
    for kind, given in COMPUTED.items():
        if kind == "dynamic" and len(plain[0].frequencies) == 1:
            with pytest.raises(
                ValueError, match="2 features of a head are rotated; rope_type 'dyn"
            ):
                config(variant, {"rope_type": kind} | given, key)
            continue
        turned = config(variant, {"rope_type": kind} | given, key).rotary
        assert (turned == plain) == (kind == "default")
    assert {*COMPUTED} == {*rotary.KINDS}
    for kind in TYPES:
        with pytest.raises(ValueError, match=f"rope_type is {kind!r}; supported: default, lin"):
            config(variant, {"rope_type": kind, "factor": 2.0}, key)


@pytest.mark.parametrize("kind", COMPUTED)
def test_each_parameter_that_is_taken_changes_what_is_computed(kind):
    """So none is read and forgotten: twice of each gives another result."""
    given = {"rope_type": kind} | COMPUTED[kind]
    _, needed, others = rotary.KINDS[kind]
    assert {*needed, *others, "rope_theta"} - {"attention_factor"} == {*COMPUTED[kind]}
    given = {name: x * 8 if isinstance(x, list) else x for name, x in given.items()}
    before = rotary.rotary(given, 16, 64)
    for name in COMPUTED[kind]:
        value = given[name]
        if isinstance(value, list):
            other = [2.0] * 8
        else:
            other = not value if isinstance(value, bool) else 2 * value
        assert rotary.rotary(given | {name: other}, 16, 64) != before, name
    if "attention_factor" in others:
        assert rotary.rotary(given | {"attention_factor": 3.0}, 16, 64).scale == 3.0


@pytest.mark.parametrize("variant", TURNED)
@pytest.mark.parametrize("kind", COMPUTED)
def test_a_parameter_that_is_not_computed_is_refused_by_name(variant, kind):
    given = {"rope_type": kind} | COMPUTED[kind]
    _, needed, others = rotary.KINDS[kind]
    of_others = {*UNKNOWN, *(name for x in COMPUTED.values() for name in x)}
    for name in of_others - {*needed, *others, "rope_theta"}:
        with pytest.raises(ValueError, match=f"rope_parameters have {name!r}, which {kind!r} does"):
            config(variant, given | {name: 2.0})


@pytest.mark.parametrize("variant", TURNED)
def test_a_part_of_each_head_is_turned_in_gpt_neox_alone(variant):
    given = COMPUTED["default"] | {"partial_rotary_factor": 0.5}
    if variant == "gpt_neox-parallel":
        half, whole = (config(variant, given | {"partial_rotary_factor": x}) for x in (0.5, 1.0))
        widths = [len(cfg.rotary[0].frequencies) for cfg in (half, whole)]
        assert widths == [whole.d_head // 4, whole.d_head // 2]
        return
    message = "partial_rotary_factor is 0.5; only 1.0 is supported"
    with pytest.raises(ValueError, match=message):
        config(variant, given)
    if variant != "modernbert-masked":
        with pytest.raises(ValueError, match=message):
            from_hf(tiny.config(variant) | {"partial_rotary_factor": 0.5})


def test_parameters_for_each_kind_of_layer_are_those_of_modernbert_alone():
    kinds = dict.fromkeys(("full_attention", "sliding_attention"), COMPUTED["default"])
    for variant in TURNED[:-1]:
        with pytest.raises(ValueError, match="rope_parameters have 'full_attention', which"):
            from_hf(tiny.config(variant) | {"rope_parameters": kinds})


# --- model types


@pytest.mark.parametrize("model_type", [*CONFIGS, *ELSEWHERE])
def test_a_model_type_that_does_not_load_says_why_and_what_does(model_type):
    settings = CONFIGS.get(model_type, {"model_type": model_type})
    assert settings["model_type"] == model_type
    with pytest.raises(ValueError) as error:
        from_hf(settings)
    said = re.search(
        f"model_type is '{model_type}'; supported: .*; {model_type} is not: (.+); "
        "the closest supported is ([^ ]+)$",
        str(error.value),
    )
    assert said and said.groups() == REFUSED[model_type] and said[2] in FAMILIES


def test_all_that_are_refused_by_name_were_tried():
    assert {*REFUSED} == {*CONFIGS, *ELSEWHERE}
    assert not {*REFUSED} & {*FAMILIES}
    assert len(CONFIGS) > 100


def test_a_model_type_that_nobody_knows_is_refused():
    with pytest.raises(ValueError, match=r"model_type is 'neu'; supported: bert, .*, deberta-v2$"):
        from_hf({"model_type": "neu"})
