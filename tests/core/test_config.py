"""config.json: what is needed, what is refused, and what a file's wording comes out as."""

import json
from itertools import product

import numpy as np
import pytest
import tiny

import minitx
from minitx.config_parts import Generation
from minitx.loading.families import from_hf

BERT = (
    "vocab_size hidden_size num_hidden_layers num_attention_heads intermediate_size "
    "max_position_embeddings"
)
DISTILBERT = "vocab_size dim n_layers n_heads hidden_dim max_position_embeddings"
GPT2 = "vocab_size n_embd n_layer n_head n_positions"
BART = (
    "vocab_size d_model max_position_embeddings decoder_start_token_id "
    "encoder_layers encoder_attention_heads encoder_ffn_dim "
    "decoder_layers decoder_attention_heads decoder_ffn_dim"
)
# sizes: other values of a class are seldom a checkpoint's
NEEDED = dict(zip(tiny.ONE_EACH, [BERT] * 4 + [DISTILBERT, GPT2], strict=True))
OF_PAIRS = {"bart-causal": BART, "marian-shared": BART}
OF_PAIRS["t5-relu"] = "vocab_size d_model d_ff num_layers num_heads"


def needed(variant):
    """The keys that a variant's config cannot lack."""
    return (NEEDED | OF_PAIRS)[variant].split()


@pytest.mark.parametrize(
    "variant,key", [(name, key) for name in NEEDED | OF_PAIRS for key in needed(name)]
)
def test_a_missing_size_is_named_and_no_default_is_taken(variant, key):
    settings = tiny.config(variant, drop=["num_decoder_layers"])
    absent = {name: value for name, value in settings.items() if name != key}
    message = rf"'{key}' is missing \({settings['model_type']}\); available: .*model_type"
    for given in (absent, settings | {key: None}):
        with pytest.raises(ValueError, match=message):
            from_hf(given)


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


@pytest.mark.parametrize("variant", NEEDED)
def test_nothing_else_is_needed(variant):
    full = tiny.config(variant)
    config = from_hf({key: full[key] for key in ["model_type", *needed(variant)]})
    assert config.model_type == full["model_type"] and config.tied is True
    assert (config.n_layers, config.d_model, config.d_head) == (2, 18, 6)
    assert config.scale_attn and not config.scale_by_layer and config.task_head is None


@pytest.mark.parametrize("variant", OF_PAIRS)
def test_nothing_else_is_needed_for_two_stacks(variant):
    full = tiny.config(variant)
    own = ["pad_token_id"] if variant == "t5-relu" else []  # T5's start, where none is named
    config = from_hf({key: full[key] for key in ["model_type", *needed(variant), *own]})
    assert config.model_type == full["model_type"] and config.tied is True
    assert (config.n_layers, config.d_model, config.encoder.n_layers) == (2, 18, 2)
    assert config.causal and not config.encoder.causal and config.encoder.encoder is None
    assert config.start_id == full["decoder_start_token_id"]
    assert config.end_id is None and config.generation == Generation()
    assert config.embed_scale == 1


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
    assert [from_hf(tiny.config(v)).causal for v in tiny.ONE_EACH] == [False] * 5 + [True]


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


VALUES = [None, True, False, -1, 0, 10**9, 1.5, float("nan"), "x", "", [], ["x"], {}, {"a": 1}]
WHOLE = ["roberta-masked", "gpt2-causal", "distilbert-masked", *tiny.PAIRS]  # all their keys
KEYS = {  # those about places, sizes and caps
    "llama-grouped": ("head_dim", "num_key_value_heads", "rope_parameters", "attention_bias"),
    "llama-tied": ("rope_theta", "rope_scaling", "mlp_bias", "max_position_embeddings"),
    "opt-before": ("do_layer_norm_before", "word_embed_proj_dim", "enable_bias", "ffn_dim"),
    "gptj-tied": ("rotary_dim", "n_inner", "n_positions", "rotary"),
    "phi3-part": ("partial_rotary_factor", "sliding_window", "num_key_value_heads"),
    "falcon-single-key": ("num_kv_heads", "multi_query", "new_decoder_architecture", "bias"),
    "gemma2-capped": ("query_pre_attn_scalar", "attn_logit_softcapping", "head_dim", "layer_types"),
    "gpt_neo-untied": ("attention_types", "attention_layers", "window_size", "intermediate_size"),
    "gemma-shared": ("head_dim", "hidden_act", "hidden_activation", "rope_scaling"),
    "phi-norms": (
        "qk_layernorm",
        "partial_rotary_factor",
        "num_key_value_heads",
        "rope_parameters",
    ),
    "smollm3-listed": ("no_rope_layers", "no_rope_layer_interval", "layer_types", "sliding_window"),
    "gemma3-all": ("sliding_window_pattern", "rope_parameters", "layer_types"),
}


@pytest.mark.parametrize("variant", [*WHOLE, *KEYS])
def test_any_value_in_any_key_loads_or_says_what_is_wrong(tmp_path, variant):
    """No JSON value raises anything but ValueError; what loads also runs, or says why not."""
    tiny.make(tmp_path, variant)
    settings = tiny.config(variant)
    wrong = {}
    for key, value in product(KEYS.get(variant, settings), VALUES):
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
