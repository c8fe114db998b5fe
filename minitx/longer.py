"""A cache that a text outgrows, whose rotary positions depend on its length (Rotary.reach)."""

import numpy as np

from .cache import Cache


def is_outgrown(cache, cfg, tokens, valid):  # [B T], [B S] -> bool
    """Whether a text of this length turns keys otherwise than those that the cache holds.

    The cache keeps the tokens, old and new, for `run_again`.
    """
    if not any(turn is not None and turn.reach for turn in cfg.rotary):
        return False
    n = len(cache)
    if not n:
        cache.tokens = tokens
        return False
    cache.tokens = np.concatenate([cache.tokens[:, :n], tokens], axis=1)
    before, now = (int(x.sum(axis=1).max()) for x in (cache.valid, valid))
    turns = {*cfg.rotary} - {None}
    return any(turn.for_length(before) != turn.for_length(now) for turn in turns)


def run_again(forward, model, cache, valid, hook, of_new):  # [B S] -> [B T D]
    """A pass of all tokens, old and new, that renews the cache -> the stream of the new tokens.

    of_new: positions and mask, which a caller gives for the new tokens alone. Raises ValueError
    unless both are None.
    """
    if any(x is not None for x in of_new):
        text = "with these tokens the text is so long that all are turned otherwise (rope)"
        raise ValueError(f"{text}; positions and mask need a pass of all tokens without a cache")
    renewed = Cache()
    x = forward(model, cache.tokens, valid=valid, cache=renewed, hook=hook)
    n_old = len(cache)
    vars(cache).update(vars(renewed))
    return x[:, n_old:]
