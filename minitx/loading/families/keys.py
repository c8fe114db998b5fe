"""The keys of a config.json: all that the reference library knows are read, inert, or refused.

keys.json has {type: {key: default}} of the library's config classes, made from them by
tests/tools/make_config_keys.py. A key that no family reads and that is not in INERT is refused by
name unless it has its default. One that the library does not know has no effect there either.
"""

import functools
import json
from pathlib import Path

FILE = Path(__file__).with_name("keys.json")
INERT = {  # reason why a key changes no number here -> keys
    "dropout, which only training has": """
        activation_dropout attention_dropout attention_probs_dropout_prob attn_pdrop
        classifier_dropout classifier_dropout_prob cls_dropout decoder_layerdrop drop_path_rate
        dropout dropout_rate embed_dropout resid_dropout residual_dropout
        embd_pdrop embedding_dropout encoder_layerdrop hidden_dropout hidden_dropout_prob layerdrop
        mlp_dropout pooler_dropout qa_dropout resid_pdrop seq_classif_dropout
        summary_first_dropout summary_last_dropout""",
    "values of weights before training, or what only training reads": """
        init_std initializer_cutoff_factor initializer_factor initializer_range layerscale_value
        logit_scale_init_value sinusoidal_pos_embds sparse_pred_ignore_index sparse_prediction
        use_mask_token""",
    "tokens that a tokenizer adds": "bos_token_id cls_token_id eos_token_id sep_token_id",
    "speed, or the form of what the library returns": """
        _out_features _out_indices apply_layernorm deterministic_flash_attn out_features
        out_indices reorder_and_upcast_attn reshape_hidden_states stage_names use_cache""",
    "heads that are not read": "encoder_stride pooler_act pooler_output_size",
    "sizes and sharing that the tensors show": """
        num_labels num_ln_in_parallel_attn pooler_hidden_size projection_dim
        share_encoder_decoder_embeddings""",
    "what generation.py reads": "forced_bos_token_id forced_eos_token_id",
    "what has an effect only beside a key that is refused": """
        conv_act conv_groups embedding_size pretraining_tp""",
}
EVERYWHERE = {"vocab_size", "tie_word_embeddings", "pad_token_id", "is_causal"}
SIDES = {"vision_config": "clip_vision_model", "text_config": "clip_text_model"}  # -> model type


@functools.cache
def library():
    """What keys.json says."""
    return json.loads(FILE.read_text())


def inert(reasons=INERT):
    """All keys without effect; reasons: {why: names}."""
    return {key for keys in reasons.values() for key in keys.split()}


def default(model_type, key):
    """The reference library's default of a key; None where it has none."""
    return library()["types"].get(model_type, {}).get(key)


def spelled(raw, model_type):
    """config.json by the present names of keys, an old name counting more, as in the library."""
    old = library()["old"].get(model_type, {})
    return raw | {old[key]: value for key, value in raw.items() if key in old}


def known(family):
    """The keys that a family reads, or says to have no effect."""
    keys = {name for key in family.config.values() for name in (key.name, key.other)}
    return keys | {*family.only, *family.knows} | EVERYWHERE


def check(raw, defaults, handled):
    """Raises ValueError for a key that is not handled, with a value that is not its default."""
    for key, only in defaults.items():
        if key in raw and key not in handled and not is_same(raw[key], only):
            raise ValueError(f"{key} is {raw[key]!r:.80}; only {only!r} is supported")


def is_same(value, only):
    """Whether a value is a default; null is no and none, 1 is not true."""
    if value is None or only is None:
        return not value and not only
    return value == only and isinstance(value, bool) == isinstance(only, bool)
