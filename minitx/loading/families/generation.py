"""What a folder says of generating texts: generation_config.json, or config.json without one."""

from ...config_parts import Generation
from . import keys
from .family import Key

KEYS = {  # field of an encoder-decoder's Config -> key of either file
    "start_id": Key("decoder_start_token_id", None),
    "end_id": Key("eos_token_id", None),
}
FORCED = "forced_bos_token_id", "forced_eos_token_id"
INERT = {  # reason why a key changes no token that generate chooses -> keys
    "arguments of generate, whatever a folder says": """
        do_sample early_stopping length_penalty max_length max_new_tokens num_beams
        num_return_sequences temperature top_k top_p""",
    "tokens of a prompt, of padding, or at which to stop, which is an argument too": """
        bos_token_id decoder_start_token_id eos_token_id pad_token_id""",
    "speed, or the form of what the library returns": """
        cache_config cache_implementation compile_config continuous_batching_config disable_compile
        low_memory max_cache_len output_attentions output_hidden_states output_logits output_scores
        prefill_chunk_size return_dict_in_generate use_cache""",
    "what has an effect beside a second model alone, or where numbers are not finite": """
        assistant_confidence_threshold assistant_lookbehind is_assistant num_assistant_tokens
        num_assistant_tokens_schedule remove_invalid_values target_lookbehind""",
    "where the file comes from": "_from_model_config transformers_version",
}


def merged(raw, generated):
    """config.json with the start and end tokens of generation_config.json, if there is one."""
    generated = generated or {}
    names = [key.name for key in KEYS.values() if key.name in generated]
    return raw | {name: generated[name] for name in names}


def settings(raw, generated):
    """The Generation of a folder; a key has its default where it is null.

    As in the reference library config.json is not asked where there is a generation_config.json.
    """
    file, given = "generation_config.json", generated
    if generated is None:
        file, given = "config.json", raw
    said = {key: value for key, value in given.items() if value is not None}
    own = {key: said[key] for key in Generation._fields if key in said}
    own["bad_words_ids"] = tuple(map(tuple, own.get("bad_words_ids", ())))
    refused = ""
    try:
        keys.check(said, keys.library()["generation"], keys.inert(INERT) | {*own})
    except ValueError as error:
        ignored = "ignore_settings=True, or --ignore-settings, generates without it"
        refused = f"{file}: {error} where text is generated; {ignored}"
    return Generation(**own | {"refused": refused})


def check(cfg):
    """Raises ValueError for an id that is not one of the vocabulary."""
    words = cfg.generation.bad_words_ids
    given = {key.name: [getattr(cfg, name)] for name, key in KEYS.items()}
    given |= {name: [getattr(cfg.generation, name)] for name in FORCED}
    given["bad_words_ids"] = sum(words, ())
    if () in words:
        raise ValueError("bad_words_ids has an empty word; expected ids of tokens")
    for name, ids in given.items():
        for token in ids:
            if token is not None and not (type(token) is int and 0 <= token < cfg.n_vocab):
                wanted = f"one whole number from 0 to {cfg.n_vocab - 1}"
                raise ValueError(f"{name} has {token!r}; wanted {wanted}")
