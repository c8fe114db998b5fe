"""What a reader changes in a model: a record that gives edits for `minitx.run`, and Python.

T tokens, L layers, H heads.
"""

import math
import numbers
from dataclasses import asdict, dataclass, fields, replace
from typing import NamedTuple

import numpy as np

from ..maths import masks
from . import as_python, interventions
from .interventions import STACKS
from .positions import POSITIONS

MOST = 4096  # tokens of a shift, at most, and layers or heads in a list: no model here has more
SEED = 2**32


class Mask(NamedTuple):
    """A mask by distance: a family of masks.py with its parameters, and what its values do."""

    family: str = "linear"
    meaning: str = "weights"
    values: tuple = ()  # parameters of the family in order; those left out keep their defaults
    null_seed: int | None = None  # deals the distances at random: the null

    def function(self):
        """m(distance, head)."""
        return masks.family(self.family, *self.values)


@dataclass(frozen=True)
class Changes:
    """What is changed in one stack of a model; without arguments: nothing.

    positions: on, off (zero is the same: nothing is added, nothing turned), shuffled (among the
    text's own tokens, by `seed`), or shifted: the text stands `shift` tokens later. dial: keys are
    those of a run in which each of the text's own tokens has the position of the token `dial`
    places after it, cyclically. mask: a Mask, or its fields as a dictionary. heads_off: (layer,
    head) pairs whose output is zero. layers_off: layers that write nothing. stack: of an
    encoder-decoder the one that is changed, encoder, decoder or cross. Raises ValueError for a
    value that no model could take; `check` knows the model.

    >>> import minitx
    >>> model = minitx.load("tiny-roberta")
    >>> tokens = model.tokenizer.encode("A dog ran")
    >>> changed = Changes(positions="zero", heads_off=[(0, 1)])
    >>> list(changed.edits(model, tokens))
    ['pos_embed', ('z', 0)]
    >>> changed.says()
    'positions at zero; L0H1 off'
    """

    positions: str = "on"
    shift: int = 0
    dial: int = 0
    mask: Mask | None = None
    heads_off: tuple = ()
    layers_off: tuple = ()
    stack: str = ""
    seed: int = 0

    def __post_init__(self):
        _one_of("positions", self.positions, tuple(POSITIONS))
        _one_of("stack", self.stack, STACKS)
        _whole("shift", self.shift, 0, MOST)
        _whole("dial", self.dial, -MOST, MOST)
        _whole("seed", self.seed, 0, SEED - 1)
        if self.shift and self.positions != "shifted":
            raise ValueError(f"shift is {self.shift}, but positions are {self.positions!r}")
        self._set("mask", _as_mask(self.mask))
        self._set("heads_off", _as_heads(self.heads_off))
        self._set("layers_off", _as_layers(self.layers_off))

    def _set(self, name, value):
        object.__setattr__(self, name, value)

    def __bool__(self):
        return self != Changes(stack=self.stack, seed=self.seed)

    @classmethod
    def of(cls, values):
        """Changes from a dictionary, as JSON has them; ValueError names a key that is unknown."""
        if not isinstance(values, dict):
            raise ValueError(f"changes are {values!r:.80}; wanted an object")
        _known_keys("changes", values, [field.name for field in fields(cls)])
        return cls(**values)

    def as_json(self):
        """A dictionary that `of` reads, without what is as it is by default."""
        default, values = asdict(Changes()), asdict(self)
        if self.mask is not None:
            values["mask"] = self.mask._asdict()
        return {name: value for name, value in values.items() if value != default[name]}

    def check(self, model, tokens, source=None):
        """Raises ValueError for what this model, or a text of these tokens [T], cannot take."""
        interventions.check(self, interventions.place(self.stack, model, tokens, source))

    def edits(self, model, tokens, source=None):
        """{point: array or f(x)} for `minitx.run` of these tokens [T].

        source: ids [S] that an encoder-decoder reads. Raises ValueError as `check` does. A dial
        needs a run of its own.
        """
        where = interventions.place(self.stack, model, tokens, source)
        interventions.check(self, where)
        return interventions.edits(self, where)

    def code(self, model, text, name=None, **given):
        """The Python that computes `trace`, a run of this text with these changes.

        name: what `minitx.load` takes (the model's folder). given: how the text was read, as fields
        of as_python.Given: target, hidden.
        """
        name = name or str(model.tokenizer.folder)
        return as_python.code(self, as_python.Given(model, name, text, **given))

    def off(self, model):
        """{part of the page: numbers of the heads that write nothing}, through all layers."""
        if not self.heads_off and not self.layers_off:
            return {}
        H = interventions.stack_of(model, self.stack).config.n_heads
        numbers = {layer * H + head for layer, head in self.heads_off}
        for layer in self.layers_off:
            numbers |= {*range(layer * H, (layer + 1) * H)}
        return {self.stack: sorted(numbers)}

    def null(self):
        """What chance would give: the same with positions shuffled, a mask's distances dealt.

        Both with the next seed, so that shuffled positions are compared with another shuffle.
        """
        if self.stack == "cross":
            raise ValueError("cross-attention reads no positions of its own: no null for it here")
        seed = (self.seed + 1) % SEED
        mask = self.mask and self.mask._replace(null_seed=seed)
        return replace(self, positions="shuffled", shift=0, mask=mask, seed=seed)

    def says(self):
        """The changes in words; an empty text if there are none."""
        return "; ".join(_words(self))

    def curve(self, model, T):
        """Values of the mask by distance 0 … T - 1, [1 or H T]; None without a mask."""
        if self.mask is None:
            return None
        heads = np.arange(interventions.stack_of(model, self.stack).config.n_heads)[:, None]
        return np.atleast_2d(self.mask.function()(np.arange(T)[None], heads))


def _words(changes):
    """What is changed, one sentence part each."""
    if changes.positions != "on":
        yield POSITIONS[changes.positions].says.format_map(vars(changes))
    if changes.dial:
        yield f"keys' positions moved by {changes.dial:+d}"
    if changes.mask:
        by_chance = "" if changes.mask.null_seed is None else ", its distances dealt at random"
        yield f"mask {masks.words(changes.mask.function())} as {changes.mask.meaning}{by_chance}"
    if changes.heads_off:
        yield " ".join(f"L{layer}H{head}" for layer, head in changes.heads_off) + " off"
    if changes.layers_off:
        yield "layer " + ", ".join(map(str, changes.layers_off)) + " off"


def _one_of(name, value, choices):
    """Raise ValueError unless the value is one of the choices."""
    if value not in choices:
        wanted = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} is {value!r:.80}; wanted one of {wanted}")


def _whole(name, value, least, most):
    """The value, a whole number from least to most; ValueError if it is none."""
    is_whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not is_whole or not least <= value <= most:
        raise ValueError(f"{name} is {value!r:.80}; wanted a whole number from {least} to {most}")
    return int(value)


def _known_keys(name, values, known):
    """Raise ValueError for a key that nothing reads."""
    for key in values:
        if key not in known:
            raise ValueError(f"{name} have no {key!r:.80}; there are: {', '.join(known)}")


def _as_mask(mask):
    """A Mask from one, or from a dictionary of its fields; None stays None."""
    if mask is None:
        return None
    if isinstance(mask, dict):
        _known_keys("masks", mask, Mask._fields)
        mask = Mask(**mask)
    if not isinstance(mask, Mask):
        raise ValueError(f"mask is {mask!r:.80}; wanted a Mask, or a dictionary of its fields")
    _one_of("family of a mask", mask.family, tuple(masks.FAMILIES))
    _one_of("meaning of a mask", mask.meaning, tuple(masks.MEANINGS))
    mask = mask._replace(values=_numbers("values of the mask", mask.values))
    if mask.null_seed is not None:
        _whole("null_seed", mask.null_seed, 0, SEED - 1)
    mask.function()  # raises for values out of bounds
    return mask


def _numbers(name, values):
    """Finite numbers as a tuple; ValueError for anything else."""
    _is_list(name, values)
    for value in values:
        is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
        if not is_number or not math.isfinite(value):
            raise ValueError(f"{name} are {values!r:.80}; wanted finite numbers")
    return tuple(map(float, values))


def _as_heads(heads):
    """Pairs (layer, head), each once, in order."""
    _is_list("heads_off", heads)
    for pair in heads:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise ValueError(f"heads_off has {pair!r:.80}; wanted pairs [layer, head]")
    pairs = {tuple(_whole("a layer or head", n, 0, MOST) for n in pair) for pair in heads}
    return tuple(sorted(pairs))


def _as_layers(layers):
    """Numbers of layers, each once, in order."""
    _is_list("layers_off", layers)
    return tuple(sorted({_whole("a layer", n, 0, MOST) for n in layers}))


def _is_list(name, values):
    """Raise ValueError unless it is a list or tuple, and not a long one."""
    if not isinstance(values, list | tuple) or len(values) > MOST:
        raise ValueError(f"{name} is {values!r:.80}; wanted a list of at most {MOST}")
