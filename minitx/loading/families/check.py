"""Values that no model can have: checked before anything is read of the weights."""

from ...activations import ACTIVATIONS

SIZES = "n_layers", "n_heads", "d_model", "d_mlp", "n_vocab", "n_ctx"


MOST_LAYERS = 10_000  # ten times the deepest published; a partial checkpoint may lack all of them


def check_sizes(values):
    """Raises ValueError for a size that is no whole number above 0; values: {field: value}."""
    for name in SIZES:
        if type(values[name]) is not int or values[name] < 1:
            raise ValueError(f"{name} is {values[name]!r}; wanted a whole number of at least 1")
    if values["n_layers"] > MOST_LAYERS:
        raise ValueError(f"n_layers is {values['n_layers']}; wanted at most {MOST_LAYERS}")
    for name in ("kv_heads", "d_kv", "d_embed"):
        value = values.get(name, 0)
        if type(value) is not int or value < 0:
            raise ValueError(f"{name} is {value!r:.80}; wanted a whole number of at least 1")


def check_config(cfg):
    """Raises ValueError for values that no model can have."""
    if not (isinstance(cfg.eps, int | float) and 0 <= cfg.eps < 1):
        raise ValueError(f"the norms' epsilon is {cfg.eps!r}; wanted a number from 0 to 1")
    if type(cfg.pad_id) is not int or not 0 <= cfg.pad_id < cfg.n_vocab:
        raise ValueError(f"pad_token_id is {cfg.pad_id!r}; wanted 0 to {cfg.n_vocab - 1}")
    if cfg.d_model % cfg.n_heads and not cfg.d_kv:
        raise ValueError(f"width {cfg.d_model} is not divisible by {cfg.n_heads} heads")
    if cfg.n_heads % cfg.n_kv:
        text = f"{cfg.n_heads} heads cannot share {cfg.n_kv} heads of keys and values"
        raise ValueError(f"{text}; wanted a divisor")
    turned = max((2 * len(turn.frequencies) for turn in cfg.rotary if turn), default=0)
    if turned > cfg.d_head:
        text = f"{turned} features of a head of {cfg.d_head} would be rotated, in pairs"
        raise ValueError(f"{text}; wanted an even width")
    for name in (cfg.act, cfg.head_act or cfg.act):
        if name not in ACTIVATIONS:
            raise ValueError(f"unknown activation {name!r}; supported: {', '.join(ACTIVATIONS)}")
    if type(cfg.read_id) not in (int, type(None)):
        raise ValueError(f"the id at which a head reads is {cfg.read_id!r:.80}; wanted one number")
    if cfg.text is not None:
        check_config(cfg.text)
    if cfg.encoder is not None:
        check_config(cfg.encoder)
        if cfg.start_id is None:
            raise ValueError("decoder_start_token_id is missing; an encoder-decoder needs it")
