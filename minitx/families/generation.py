"""What a folder says of generating texts: generation_config.json, or config.json without one."""

from .family import Key

KEYS = {  # field of Config -> key of either file
    "start_id": Key("decoder_start_token_id", None),
    "end_id": Key("eos_token_id", None),
    "first_id": Key("forced_bos_token_id", None),
    "last_id": Key("forced_eos_token_id", None),
    "bad_words": Key("bad_words_ids", None),
}
STAYS = (
    "decoder_start_token_id",
    "eos_token_id",
)  # taken from config.json where the other lacks them


def merged(raw, generation):
    """config.json with what generation_config.json, if there is one, says in its place.

    As in the reference library a token that only config.json forces is then not forced.
    """
    if generation is None:
        return raw
    names = [key.name for key in KEYS.values()]
    dropped = dict.fromkeys(name for name in names if name not in STAYS)
    return raw | dropped | {name: generation[name] for name in names if name in generation}


def derived(values):
    """Words as tuples, none without a list of them."""
    return {"bad_words": tuple(map(tuple, values["bad_words"] or ()))}


def check(cfg):
    """Raises ValueError for an id that is not one of the vocabulary."""
    given = {key.name: [getattr(cfg, name)] for name, key in KEYS.items()}
    given["bad_words_ids"] = sum(cfg.bad_words, ())
    for name, ids in given.items():
        for token in ids:
            if token is not None and not (type(token) is int and 0 <= token < cfg.n_vocab):
                wanted = f"one whole number from 0 to {cfg.n_vocab - 1}"
                raise ValueError(f"{name} has {token!r}; wanted {wanted}")
