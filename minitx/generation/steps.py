"""What a generation keeps and edits, pass after pass: the prompt, then one token at a time.

Axis letters: see model.py.
"""

import numpy as np

from ..edits import edited, edits_by_point
from ..hooks import asks
from ..inputs import source_arguments
from ..model import CROSS, ENCODER, forward, logits
from ..points import OVERWRITTEN, POINTS, expand, name_of, points
from ..trace import Trace
from .constraints import until


class Steps:
    """The hook of a generation's passes; a kept point has one array for each pass."""

    def __init__(self, model, keep, edits):
        available = points(model)
        kept = () if keep is None else expand(keep, available, model)
        self.model = model
        self.edits = edits_by_point(edits or {}, available, model)
        self.arrays = {key: [] for key in kept}
        for key, edit in self.edits.items():
            check_fits_all(key, edit)

    def __call__(self, name, x, layer=None):
        key = name if layer is None else (name, layer)
        if key in self.edits:
            x = edited(key, x, self.edits[key])
        if key in self.arrays:
            kept = x
            if name in OVERWRITTEN:
                kept = x.copy(order="K")
            self.arrays[key].append(kept)
        return x

    def asks(self, name, layer=None):
        """Whether a point that is computed on request is kept or edited."""
        key = name if layer is None else (name, layer)
        return key in self.arrays or key in self.edits

    def trace(self, prompts, new, stop):
        """The Trace of prompts and new tokens [B n]; valid up to the end of each text."""
        lengths = [len(until(stop, row)) for row in new]
        ends = np.array(lengths)[:, None]
        valid = np.arange(new.shape[1]) < ends
        prompt = prompts.batch
        tokens = np.concatenate([prompt.tokens, new], axis=1)
        valid = np.concatenate([prompt.valid, valid], axis=1)
        batch = prompt._replace(tokens=tokens, valid=valid)
        trace = Trace(self.model, batch, prompts.source, self.arrays, self.edits)
        trace.arrays = {key: joined(name_of(key), parts) for key, parts in self.arrays.items()}
        return trace


def check_fits_all(key, edit):
    """Raises ValueError for an array where passes have different numbers of tokens."""
    if callable(edit) or not is_of_tokens(name_of(key)):
        return
    if np.ndim(edit):
        shape = list(np.shape(edit))
        text = f"the edit of {key!r} is an array {shape}, and passes of a generation have different"
        raise ValueError(f"{text} numbers of tokens; expected a function or one number")


def is_of_tokens(name):
    """Whether a point grows with each new token."""
    axes = POINTS[name].axes.split()
    return "T" in axes and not name.startswith(ENCODER)


def next_logits(model, x, hook):  # [B T D] -> [B V]
    """The scores of the next token; of all tokens where a hook wants them."""
    if not asks(hook, "logits"):
        x = x[:, -1:]
    return logits(model, x, hook=hook)[:, -1]


def read_rest(model, prompts, new, cache, steps):
    """Pass those tokens that the cache lacks: the prompt, then each new one [B n]."""
    batch, given = prompts.batch, source_arguments(prompts.source)
    if not len(cache):
        given |= {"valid": batch.valid, "cache": cache}
        x = forward(model, batch.tokens, hook=steps, **given)
        next_logits(model, x, steps)
    n_known = len(cache) - batch.tokens.shape[1]
    for column in new.T[n_known:]:
        x = forward(model, column[:, None], cache=cache, hook=steps)
        next_logits(model, x, steps)


def joined(name, parts):  # [... T ...] of each pass -> [... T ...]
    """The arrays of all passes as one pass would give them.

    A later pass of several tokens is one of all tokens again (longer.py). Keys after a query are
    hidden: -inf in scores, otherwise 0.
    """
    axes = POINTS[name].axes.split()
    if not is_of_tokens(name):
        return parts[-1]
    along = axes.index("T")
    whole = [i for i, x in enumerate(parts) if x.shape[along] > 1]
    if whole:
        parts = parts[whole[-1] :]
    if "S" in axes and not name.startswith(CROSS):
        S = parts[-1].shape[-1]
        hidden = -np.inf if name == "scores" else 0
        parts = [with_keys(x, S, hidden) for x in parts]
    return np.concatenate(parts, axis=along)


def with_keys(x, S, hidden):  # [B H T s] -> [B H T S]
    """Scores or attention with later keys, which are hidden."""
    wider = np.full((*x.shape[:-1], S), hidden, x.dtype)
    wider[..., : x.shape[-1]] = x
    return wider
