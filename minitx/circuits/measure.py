"""The number that is asked of each text: a difference of two logits, or any function of them.

N: texts of a batch; V: scores over the vocabulary, or over classes.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Weights
from ..heads import is_pooled, of_classes
from ..inputs import whole_numbers
from ..loading.labels import class_number

Token = str | int  # a text that is one token, or its id
Pair = tuple[Token, Token | None]
Measure = Callable[[np.ndarray], Any] | Pair | Sequence[Pair]
MASKS = "<mask>", "[MASK]"
STEP = 1e-4  # of a logit, in the slopes of a function
ENTRIES = 1 << 17  # logits of one text by which the slope of a function is taken at most


class Difference(NamedTuple):
    """The logit of one token minus that of another, at one place of each text."""

    places: np.ndarray  # [N]
    ids: np.ndarray  # [N]
    others: np.ndarray | None  # [N]; None: the logit itself

    def values(self, logits) -> np.ndarray:  # [N T V] -> [N]
        """The number of each text, in float64."""
        y = with_places(logits)[np.arange(len(logits)), self.places].astype(np.float64)
        row = np.arange(len(y))
        own = y[row, self.ids]
        return own if self.others is None else own - y[row, self.others]

    def slope(self, logits) -> np.ndarray:  # [N T V] -> [N T V]
        """The gradient of each text's number by its logits: 1, and -1."""
        slope = np.zeros_like(logits)
        by_row, row = with_places(slope), np.arange(len(logits))
        by_row[row, self.places, self.ids] = 1.0
        if self.others is not None:
            by_row[row, self.places, self.others] -= 1.0
        return slope

    def rows(self, index) -> "Difference":
        """The same of some of the texts, by number."""
        others = None if self.others is None else self.others[index]
        return Difference(self.places[index], self.ids[index], others)


class Function(NamedTuple):
    """f(logits [N T V]) -> [N], of a user; or a number, which is then asked of one text at once."""

    function: Callable

    def values(self, logits) -> np.ndarray:  # [N T V] -> [N]
        """The number of each text, in float64."""
        logits = np.asarray(logits, np.float64)
        values = np.asarray(self.function(logits), np.float64)
        if values.size == 1 and len(logits) > 1:
            each = [np.asarray(self.function(logits[i : i + 1])) for i in range(len(logits))]
            values = np.array(each, np.float64)
        if values.size != len(logits):
            text = f"the measure gives {list(values.shape)} for logits {list(logits.shape)}"
            raise ValueError(f"{text}; wanted one number for each text")
        return values.reshape(len(logits))

    def slope(self, logits) -> np.ndarray:  # [N T V] -> [N T V]
        """Differences of the function, by the logits of places that it looks at."""
        y = np.array(logits, np.float64, copy=True)
        slope, flat = np.zeros(y.shape), with_places(y)
        by_row = with_places(slope)
        watched = [t for t in range(flat.shape[1]) if self._looks_at(y, flat[:, t])]
        if len(watched) * flat.shape[2] > ENTRIES:
            text = f"the measure is a function of {len(watched)} places of {flat.shape[2]} logits"
            raise ValueError(f"{text}; for its slope give tokens, or the measure a .slope(logits)")
        for t in watched:
            for v in range(flat.shape[2]):
                by_row[:, t, v] = self._difference(y, flat[:, t, v])
        return slope.astype(logits.dtype)

    def _looks_at(self, y, place):
        """Whether any number changes with the logits of a place, a view of y."""
        kept, before = place.copy(), self.values(y)
        place += np.random.default_rng(0).standard_normal(place.shape)
        after = self.values(y)
        place[:] = kept
        return bool((before != after).any())

    def _difference(self, y, entry):
        """The slope by one entry of each text, a view of y: [N]."""
        kept = entry.copy()
        entry[:] = kept + STEP
        above = self.values(y)
        entry[:] = kept - STEP
        below = self.values(y)
        entry[:] = kept
        return (above - below) / (2 * STEP)

    def rows(self, index) -> "Function":
        """The same of some of the texts."""
        return self


class Sloped(Function):
    """A function that brings its own slope(logits) -> an array of their shape."""

    def slope(self, logits) -> np.ndarray:
        """The gradient of each text's number by its logits."""
        slope: Any = self.function
        return np.asarray(slope.slope(logits), logits.dtype).reshape(logits.shape)


def with_places(logits):  # [N T V], or [N C] of a head for whole texts -> [N T V]
    """A view with an axis of places."""
    return logits[:, None] if logits.ndim == 2 else logits


def read_measure(model, measure, inputs, place=None):
    """A measure as users give it, for these Inputs.

    A function of the logits; two tokens; or two tokens for each text. place: a number, or one for
    each text, counted in the text; None: see `places`. Raises ValueError for other things.
    """
    n = len(inputs.batch.tokens)
    if callable(measure):
        kind = Sloped if hasattr(measure, "slope") else Function
        return kind(measure)
    pairs = _pairs_of_tokens(measure, n)
    ids, others = (np.array(column, object) for column in zip(*pairs))
    others = None if others[0] is None else token_ids(model, others)
    return Difference(places(model, inputs, place), token_ids(model, ids), others)


def _pairs_of_tokens(measure, n):
    """Two tokens for each of n texts."""
    wanted = "wanted a function of logits, (token, other), or a list of such pairs"
    if np.ndim(measure) == 0 and not isinstance(measure, str):
        raise ValueError(f"measure is {measure!r}; {wanted}")
    is_pair = len(measure) == 2 and _is_token(measure[0])
    if isinstance(measure, str) or is_pair:
        measure = [measure] * n
    if len(measure) != n:
        raise ValueError(f"{len(measure)} pairs of tokens for {n} pairs of texts; {wanted}")
    for pair in measure:
        if isinstance(pair, str) or np.ndim(pair) == 0 or len(pair) != 2 or not _is_token(pair[0]):
            raise ValueError(f"measure has {pair!r}; {wanted}")
    return measure


def _is_token(value):
    return isinstance(value, str | int | np.integer)


def with_tokens(model, ids):
    """The model with these columns of its vocabulary alone."""
    arrays = dict(vars(model.weights))
    for name in ("W_U", "b_U"):
        if arrays[name] is not None:
            arrays[name] = arrays[name][..., ids]
    return replace(model, weights=Weights(**arrays))


def token_ids(model, tokens) -> np.ndarray:
    """Each token, an id or a text that is one token, as an id."""
    ids = [token_id(model, token) for token in tokens]
    n = model.weights.W_U.shape[1]
    return whole_numbers("target tokens", ids, n)


def token_id(model, token) -> int:
    """An id as it is; of a text its one token. Raises ValueError if it is several tokens.

    Of a head for classes an id is the number of a class, a text its name: its label, or "class 0".
    """
    if not isinstance(token, str):
        return token
    if of_classes(model.config.task_head):
        return class_number(model, token)
    ids = model.tokenizer.encode(token, special=False)
    if len(ids) != 1:
        pieces = model.tokenizer.pieces(ids)
        raise ValueError(f"target {token!r} is {len(ids)} tokens, {pieces}; wanted one token")
    return int(ids[0])


def places(model, inputs, place=None) -> np.ndarray:  # -> [N]
    """The column at which each text's logits are asked for.

    By default the one mask of a masked model's text, the last place of a causal model or of what a
    decoder has said, and 0 where there is one row of logits for a whole text.
    """
    tokens, valid, _ = inputs.batch
    if is_pooled(model.config.task_head):
        return np.zeros(len(tokens), np.intp)
    first, n = valid.argmax(axis=1), valid.sum(axis=1)
    if place is not None:
        place = np.asarray(place)
        if place.dtype.kind not in "iu":
            raise ValueError(f"place is {place.tolist()!r:.80}; wanted a whole number")
        place = np.broadcast_to(place, n.shape)
        if ((place < -n) | (place >= n)).any():
            raise ValueError(f"place is {place.tolist()}; the texts have {n.tolist()} tokens")
        return first + place % n
    if model.config.causal:
        return first + n - 1
    return _masked_places(model, tokens)


def _masked_places(model, tokens):
    """The column of each text's mask. Raises ValueError unless there is exactly one."""
    head = model.config.task_head
    if of_classes(head):
        raise ValueError(f"the head {head!r} has logits at every token; wanted place=, one of them")
    is_mask = np.zeros(tokens.shape, bool)
    if head == "masked":
        is_mask = tokens == mask_id(model.tokenizer)
    for i, n in enumerate(is_mask.sum(axis=1)):
        if n != 1:
            raise ValueError(f"text {i} has {n} masks; wanted one {' or '.join(MASKS)}, or place=")
    return is_mask.argmax(axis=1)


def mask_id(tokenizer) -> int:
    """The id of the token that hides another; -1 where there is none."""
    try:
        for mask in MASKS:
            ids = tokenizer.encode(mask, special=False)
            if tokenizer.pieces(ids) == [mask]:
                return int(ids[0])
    except FileNotFoundError:  # a folder without tokenizer
        pass
    return -1
