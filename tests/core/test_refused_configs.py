"""A config.json with what minitx would compute wrongly: what is refused, and what is said of it."""

import json
import shutil

import pytest
import tiny

import minitx

REFUSED = {  # variant -> what differs in its config.json, and what is said
    "bert-masked": [
        (
            dict(position_embedding_type="relative_key"),
            "position_embedding_type is 'relative_key'; only 'absolute' is supported",
        ),
        (dict(is_decoder=True), "is_decoder is True; only False is supported"),
        (dict(model_type="mamba"), "model_type is 'mamba'; supported: bert, roberta, .*gpt2"),
        (dict(model_type=None), "model_type is None; supported: bert"),
        (dict(hidden_act="gelu_10"), "unknown activation 'gelu_10'; supported: gelu, .*tanh"),
        (dict(num_attention_heads=4), "width 18 is not divisible by 4 heads"),
        (dict(hidden_size="18"), "d_model is '18'; wanted a whole number of at least 1"),
        (dict(num_hidden_layers=0), "n_layers is 0"),
        (dict(num_attention_heads=True), "n_heads is True; wanted a whole number"),
        (dict(layer_norm_eps=-1e-12), "the norms' epsilon is -1e-12; wanted a number from 0 to 1"),
        (dict(hidden_act=["gelu"]), "config.json: a value is of the wrong kind"),
        (dict(pad_token_id=0.5), "config.json: pad_token_id is 0.5; wanted 0 to 60"),
        (dict(architectures=[1]), r"architectures is \[1\]; wanted a list of names"),
        (
            dict(architectures="BertForMaskedLM"),
            "architectures is 'BertForMaskedLM'; wanted a list of names",
        ),
        (dict(layer_norm_eps=False), "the norms' epsilon is False; wanted a numb"),
        (dict(tie_word_embeddings=1), "tie_word_embeddings is 1; wanted true or f"),
    ],
    "roberta-masked": [
        (dict(position_embedding_type="relative_key_query"), "only 'absolute' is supported"),
        (dict(pad_token_id=13), "n_ctx is 0"),  # 14 rows - 13 - 1
        (dict(pad_token_id=-1), "config.json: pad_token_id is -1; wanted 0 to 60"),
        (dict(pad_token_id="1"), "config.json: a value is of the wrong kind"),
    ],
    "gpt2-causal": [
        (dict(add_cross_attention=True), "add_cross_attention is True; only False is supported"),
        (dict(activation_function="mish"), "unknown activation 'mish'"),
        (dict(n_head=-3), "n_heads is -3"),
        (
            dict(layer_norm_epsilon=float("nan")),
            "the norms' epsilon is nan; wanted a number from 0 to 1",
        ),
        (
            dict(layer_norm_epsilon="1e-5"),
            "config.json: the norms' epsilon is '1e-5'; wanted a number",
        ),
        (dict(scale_attn_weights="no"), "scale_attn_weights is 'no'; wanted true or false"),
    ],
    "distilbert-masked": [(dict(dim=18.0), "d_model is 18.0")],
    "bart-causal": [
        (dict(scale_embedding=[0]), r"scale_embedding is \[0\]; wanted true or f"),
        (dict(model_type="mbart"), "model_type is 'mbart'; supported: .*bart, marian"),
        (dict(normalize_before=True), "normalize_before is True; only False is supported"),
        (dict(add_final_layer_norm=True), "add_final_layer_norm is True; only False is supported"),
        (dict(normalize_embedding=False), "normalize_embedding is False; only True is supported"),
        (
            dict(static_position_embeddings=True),
            "static_position_embeddings is True; only False is supported",
        ),
        (dict(add_bias_logits=True), "add_bias_logits is True; only False"),
        (dict(is_decoder=True), "is_decoder is True; only False is supported"),
        (dict(encoder_attention_heads=4), "width 18 is not divisible by 4 heads"),
        (dict(decoder_attention_heads=5), "width 18 is not divisible by 5 heads"),
        (dict(encoder_layers=0), "n_layers is 0; wanted a whole number of at least 1"),
        (dict(decoder_start_token_id=None), "'decoder_start_token_id' is missing"),
        (dict(is_causal=False), "an encoder-decoder is supported only with True"),
    ],
    "t5-gated": [(dict(scale_decoder_outputs=2), "scale_decoder_outputs is 2; wanted true or")],
    "t5-relu": [
        (dict(model_type="mt5"), "model_type is 'mt5'; supported: "),
        (
            dict(decoder_start_token_id=None, pad_token_id=None),
            "decoder_start_token_id is missing; an encoder-decoder needs it",
        ),
        (
            dict(feed_forward_proj="gated-gelu_10", dense_act_fn=None, is_gated_act=None),
            "unknown activation 'gelu_10'",
        ),
        (dict(feed_forward_proj=["relu"]), "a value is of the wrong kind"),
        (dict(d_kv="5"), "d_kv is '5'; wanted a whole number of at least 1"),
        (
            dict(relative_attention_max_distance=4),
            "8 buckets of distances up to 4; wanted at least 4, and fewer than two per",
        ),
        (dict(relative_attention_num_buckets=3), "3 buckets of distances up to 9"),
        (dict(is_gated_act=True), "is_gated_act is True; feed_forward_proj 'relu' says"),
    ],
    "marian-shared": [
        (dict(normalize_embedding=True), "normalize_embedding is True; only False is supported"),
        (
            dict(max_position_embeddings=10**9),
            "max_position_embeddings is 1000000000; wanted at most 1048576",
        ),
    ],
    "marian-separate": [(dict(decoder_vocab_size=52), "decoder_start_token_id has 52; wanted")],
    "opt-before": [
        (dict(word_embed_proj_dim=4), "word_embed_proj_dim is 4, hidden_size 8"),
        (dict(_remove_final_layer_norm=True), "_remove_final_layer_norm is True"),
        (dict(layer_norm_elementwise_affine=False), "only True is supported"),
    ],
    "gptj-part": [
        (dict(rotary_dim=3), "rotary_dim is 3; wanted an even number from 2 to a he"),
        (dict(rotary_dim=None), "rotary_dim is None"),
    ],
    "phi3-old": [
        (dict(rope_scaling={"type": "longrope"}), "lack 'short_factor', which 'longro"),
        (dict(rope_scaling={"type": "su"}), "lack 'short_factor', which 'longrope'"),
        (dict(rope_scaling={"type": "linear"}), "'linear'; only 'default' and 'longr"),
    ],
    "phi3-part": [(dict(sliding_window=0), "sliding_window is 0; wanted a whole number")],
    "phi-part": [
        (
            dict(rope_parameters={"partial_rotary_factor": 0.3}),
            "0.3 turns 1 of a head's 4 features; wanted an even",
        )
    ],
    "falcon-two-norms": [
        (dict(alibi=True), "alibi is True; only False is supported"),
        (dict(parallel_attn=False), "parallel_attn is False; only True is su"),
        (dict(multi_query=1, new_decoder_architecture="x"), "wanted true or f"),
    ],
    "gemma2-capped": [
        (dict(use_bidirectional_attention=True), "use_bidirectional_attention is"),
        (dict(final_logit_softcapping=-1), "logit_cap is -1; wanted a number ab"),
        (dict(query_pre_attn_scalar="x"), "d_scale is 'x'; wanted a number ab"),
    ],
    "gemma3-window": [
        (dict(attn_logit_softcapping=9.0), "attn_logit_softcapping is 9.0; only"),
        (dict(rope_parameters={"rope_theta": 3.0}), "an object for each of full"),
    ],
    "gemma3-old": [(dict(sliding_window_pattern=0), "sliding_window_pattern is 0; wanted a wh")],
    "gemma-shared": [
        (dict(hidden_activation="relu"), "hidden_activation is 'relu'; only 'gel"),
        (dict(head_dim=1), "2 features of a head of 1 would be rotated, in pairs"),
    ],
    "gpt_neo-deep": [
        (dict(attention_types=[[["global"], 2]]), r"types are \['global', 'glo"),
        (dict(attention_types=[[["far"], 3]]), "one of global, local for each of"),
        (dict(attention_layers=["local"]), r"attention_layers are \['local'\]; a"),
        (dict(window_size=0), "window_size is 0; expected a whole number of at"),
    ],
    "olmo-limited": [
        (dict(clip_qkv=-1.0), "clip_qkv is -1.0; expected a number above 0, or nu"),
        (dict(clip_qkv=True), "clip_qkv is True; expected a number above 0"),
    ],
    "granite-shared": [
        (dict(residual_multiplier=0), "residual_multiplier is 0; expected a nu"),
        (dict(logits_scaling=None), "logits_scaling is None; expected a number"),
        (dict(attention_multiplier=True), "attention_multiplier is True; expe"),
    ],
    "smollm3-fourth": [
        (dict(no_rope_layers=None, no_rope_layer_interval=0), "interval is 0; exp"),
        (dict(no_rope_layers=[0, 2, 1, 1]), "expected 0 or 1 for each of 4"),
        (dict(layer_types=["near"] * 4), r"layer_types are \['near', .*for each"),
    ],
    "mistral-window": [
        (dict(sliding_window=0), "sliding_window is 0; wanted a whole number"),
        (dict(layer_types=["full_attention"] * 3), "layer_types is"),
    ],
    "qwen2-biases": [
        (dict(layer_types=["full_attention"]), "wanted one of full_attention"),
        (dict(layer_types=["chunked"] * 2), "layer_types are"),
    ],
    "qwen3-norms": [(dict(head_dim=None), "'head_dim' is missing")],
    "gpt_neox-parallel": [
        (dict(rotary_pct=2, rope_parameters=None), "number from 0 to 1"),
        (dict(use_parallel_residual="no"), "wanted true or false"),
    ],
    "modernbert-masked": [
        (dict(norm_bias=True), "norm_bias is True; only False is supported"),
        (dict(classifier_bias=True), "classifier_bias is True"),
        (dict(decoder_bias=False), "decoder_bias is False"),
        (dict(local_attention=1), "local_attention is 1"),
        (dict(rope_parameters={"rope_theta": 3.0}), "wanted an object for ea"),
        (dict(classifier_activation="sin"), "unknown activation 'sin'"),
    ],
    "bloom-three": [(dict(n_layer=10**6), "n_layers is 1000000; wanted at most 10000")],
    "llama-grouped": [
        (dict(num_key_value_heads=-1), "kv_heads is -1; wanted a whole number"),
        (dict(head_dim=1 << 20), "features of a head are rotated; wanted at most"),
    ],
    "deberta-masked": [
        (dict(talking_head=True), "talking_head is True; only False is supported"),
        (dict(pooler_hidden_act="tanh"), "pooler_hidden_act is 'tanh'; only 'gelu'"),
        (dict(embedding_size=4), "embedding_size is 4, hidden_size 8; wanted the same"),
        (dict(pos_att_type="c2p|p2p"), "pos_att_type is 'c2p|p2p'; wanted c2p, p2c, both"),
        (dict(pos_att_type=["c2p", "c2p"]), "wanted c2p, p2c, both, or neither, each once"),
        (dict(relative_attention=1), "relative_attention is 1; wanted true or false"),
        (dict(max_relative_positions="x"), "max_relative_positions is 'x'; wanted a whole"),
    ],
    "deberta2-masked": [
        (dict(conv_kernel_size=3), "conv_kernel_size is 3; only 0 is supported"),
        (dict(embedding_size=4), "embedding_size is 4, hidden_size 8; wanted the same"),
        (dict(share_att_key="yes"), "share_att_key is 'yes'; wanted true or false"),
        (dict(position_buckets=1), "position_buckets is 1, the farthest distance 10; want"),
        (dict(position_buckets=32), "position_buckets is 32, the farthest distance 10"),
    ],
    "bloom-twelve": [(dict(pretraining_tp=2, slow_but_exact=True), "slow_but_exact is True")],
    "llama-tied": [
        (dict(per_layer_config={"1": {}}), "per_layer_config is"),
        (dict(is_causal=0), "is_causal is 0; wanted true or false"),
    ],
    "electra-choice": [(dict(summary_type="last"), "summary_type is 'last'; only 'first'")],
    "gpt2-sequence": [(dict(pad_token_id=[1, 2]), r"a head reads is \[1, 2\]")],
    "falcon-sequence": [(dict(alibi=True), "alibi is True; only False is supported")],
    "images/vit-image": [
        (dict(image_size=9), "image_size .9, 9. is not a whole number of patches"),
        (dict(image_size="big"), "image_size is 'big'; wanted a whole number, or two"),
        (dict(patch_size=0), "patch_size is 0; wanted 1 to 8192 pixels"),
        (dict(patch_size=[4, 4, 4]), "patch_size is .4, 4, 4.; wanted"),
        (dict(num_channels=10**9), "num_channels is 1000000000; wanted 1 to 64"),
    ],
    "images/dinov2-image": [
        (dict(mlp_ratio="wide"), "mlp_ratio is 'wide'; wanted a number above 0")
    ],
    "images/clip-both": [
        (dict(vision_config=[1]), "vision_config is .1.; wanted an object"),
        (dict(text_config={"vocab_size": 0}), "n_vocab is 0; wanted a whole number"),
    ],
}


@pytest.mark.parametrize("variant, row", [(x, row) for x in REFUSED for row in REFUSED[x]])
def test_what_would_be_computed_wrongly_is_refused(tmp_path, variant, row):
    changes, message = row
    folder = shutil.copytree(tiny.GOLDEN / variant, tmp_path / "model")
    (folder / "config.json").write_text(json.dumps(tiny.config(variant, **changes)))
    with pytest.raises(ValueError, match=message):
        minitx.load(folder)
