"""config.json: what is needed, what is refused, and what a file's wording comes out as."""

import json

import numpy as np
import pytest
import tiny

import minitx
from minitx.families import from_hf

BERT = (
    "vocab_size hidden_size num_hidden_layers num_attention_heads intermediate_size "
    "max_position_embeddings"
).split()
DISTILBERT = "vocab_size dim n_layers n_heads hidden_dim max_position_embeddings".split()
GPT2 = "vocab_size n_embd n_layer n_head n_positions".split()
NEEDED = {  # sizes: other values of a class are seldom a checkpoint's
    "bert": BERT,
    "roberta": BERT,
    "xlm-roberta": BERT,
    "camembert": BERT,
    "distilbert": DISTILBERT,
    "gpt2": GPT2,
}
VARIANT = {tiny.config(name)["model_type"]: name for name in tiny.ONE_EACH}


@pytest.mark.parametrize("family,key", [(f, key) for f in NEEDED for key in NEEDED[f]])
def test_a_missing_key_is_named_and_no_default_is_taken(family, key):
    absent = tiny.config(VARIANT[family], drop=[key])
    null = tiny.config(VARIANT[family], **{key: None})
    message = rf"'{key}' is missing \({family}\); available: .*model_type"
    for settings in (absent, null):
        with pytest.raises(ValueError, match=message):
            from_hf(settings)


@pytest.mark.parametrize(
    "variant,key,field,value",
    [
        ("modernbert-masked", "norm_eps", "eps", 1e-5),
        ("bert-masked", "layer_norm_eps", "eps", 1e-12),
        ("bert-masked", "hidden_act", "act", "gelu"),
        ("roberta-masked", "pad_token_id", "pad_id", 1),
        ("gemma2-capped", "attn_logit_softcapping", "score_cap", 50.0),
        ("opt-sequence", "pad_token_id", "read_id", 1),
        ("gpt2-sequence", "pad_token_id", "read_id", None),
    ],
)
def test_what_is_no_size_may_be_missing_and_is_then_the_librarys_default(
    variant, key, field, value
):
    assert getattr(from_hf(tiny.config(variant, drop=[key])), field) == value


@pytest.mark.parametrize("family", NEEDED)
def test_nothing_else_is_needed(family):
    full = tiny.config(VARIANT[family])
    config = from_hf({key: full[key] for key in ["model_type", *NEEDED[family]]})
    assert config.model_type == family and config.tied is True
    assert (config.n_layers, config.d_model, config.d_head) == (2, 18, 6)
    assert config.scale_attn and not config.scale_by_layer and config.task_head is None


def test_what_the_families_differ_in():
    """RoBERTa's pad id sets its first row and length, its head has GELU; GPT-2's MLP is 4 D."""
    for pad, rows, n_ctx in ((0, 513, 512), (1, 514, 512), (3, 514, 510)):
        settings = tiny.config("roberta-masked", pad_token_id=pad, max_position_embeddings=rows)
        config = from_hf(settings)
        assert (config.offset, config.no_position_id) == (pad + 1, pad)
        assert (config.n_pos, config.n_ctx) == (rows, n_ctx)
    assert from_hf(tiny.config("roberta-masked", hidden_act="relu")).head_act == "gelu"
    assert from_hf(tiny.config("bert-masked", hidden_act="relu")).head_act == "relu"
    assert from_hf(tiny.config("distilbert-masked")).eps == 1e-12
    assert from_hf(tiny.config("gpt2-causal", n_inner=None)).d_mlp == 4 * 18
    assert from_hf(tiny.config("gpt2-causal", n_inner=30)).d_mlp == 30
    assert [from_hf(tiny.config(v)).causal for v in VARIANT.values()] == [False] * 5 + [True]


def test_the_factor_on_scores():
    scaled = from_hf(tiny.config("gpt2-causal"))
    plain = from_hf(tiny.config("gpt2-causal", scale_attn_weights=False))
    by_layer = from_hf(tiny.config("gpt2-causal", scale_attn_by_inverse_layer_idx=True))
    factors = [config.attn_scale(2) for config in (scaled, plain, by_layer)]
    assert factors == pytest.approx([6**-0.5, 1, 6**-0.5 / 3], rel=1e-15)
    assert type(scaled.attn_scale(0)) is float  # a NumPy scalar would turn float32 into float64


def test_a_config_cannot_be_changed():
    with pytest.raises(AttributeError):
        tiny.load("bert-masked").config.n_heads = 1


def test_no_config_or_not_one(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"")
    message = r"no config.json in .*\(there: model.safetensors\)"
    with pytest.raises(FileNotFoundError, match=message):
        minitx.load(tmp_path)
    with pytest.raises(FileNotFoundError, match="nowhere' is not a bundled model .*no folder"):
        minitx.load(tmp_path / "nowhere")
    (tmp_path / "config.json").write_text("")
    with pytest.raises(ValueError, match="config.json is empty: get the file again"):
        minitx.load(tmp_path)
    for text in ("{not json", "[1, 2]", "3", '"bert"', "null"):
        (tmp_path / "config.json").write_text(text)
        with pytest.raises(ValueError, match="config.json does not hold a JSON object"):
            minitx.load(tmp_path)
    deep = '{"a":' * 100_000 + "0" + "}" * 100_000
    (tmp_path / "config.json").write_text(deep)
    with pytest.raises(ValueError, match="config.json does not hold a JSON object: maximum recur"):
        minitx.load(tmp_path)
    (tmp_path / "config.json").write_bytes(b"\xff\xfe{}")
    with pytest.raises(ValueError, match="config.json is UTF-16: save it as UTF-8"):
        minitx.load(tmp_path)
    (tmp_path / "config.json").write_bytes(b"{}" + b" " * (1 << 23))
    with pytest.raises(ValueError, match="config.json has 8388610 bytes; wanted at most 8388608"):
        minitx.load(tmp_path)


NUMBERS = [None, True, False, -1, 0, 10**9, 1.5, float("nan")]
VALUES = [*NUMBERS, "x", "", [], ["x"], {}, {"a": 1}]


@pytest.mark.parametrize(
    "variant", ["roberta-masked", "gpt2-causal", "distilbert-masked", *tiny.PAIRS]
)
def test_any_value_in_any_key_loads_or_says_what_is_wrong(tmp_path, variant):
    """No JSON value raises anything but ValueError; what loads also runs, or says why not."""
    tiny.make(tmp_path, variant)
    settings = tiny.config(variant)
    wrong = {}
    for key in settings:
        for value in VALUES:
            (tmp_path / "config.json").write_text(json.dumps(settings | {key: value}))
            try:
                model = minitx.load(tmp_path)
                source = {} if model.encoder is None else {"source": [6]}
                minitx.forward(model, np.arange(4, 8), **source)
            except ValueError:
                pass
            except Exception as error:
                wrong[key, str(value)] = repr(error)
    assert not wrong
