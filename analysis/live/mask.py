"""A mask by distance: a family of masks.py, its parameters, and what its values do.

T tokens, H heads.
"""

from typing import NamedTuple

import numpy as np

from ..maths import masks
from . import validation
from .record import Change, Control

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

    def by_distance(self, T, n_heads):
        """Its values at the distances 0 … T - 1: [1 or H T]."""
        heads = np.arange(n_heads)[:, None]
        return np.atleast_2d(self.function()(np.arange(T)[None], heads))


def _parse(value):
    """A Mask from one, or from a dictionary of its fields; None stays None."""
    if value is None:
        return None
    if isinstance(value, dict):
        validation.known_keys("masks", value, Mask._fields)
        value = Mask(**value)
    if not isinstance(value, Mask):
        raise ValueError(f"mask is {value!r:.80}; wanted a Mask, or a dictionary of its fields")
    validation.one_of("family of a mask", value.family, tuple(masks.FAMILIES))
    validation.one_of("meaning of a mask", value.meaning, tuple(masks.MEANINGS))
    mask = value._replace(values=validation.finite("values of the mask", value.values))
    if mask.null_seed is not None:
        validation.whole("null_seed", mask.null_seed, 0, SEED - 1)
    mask.function()  # raises for values out of bounds
    return mask


def _check(changes, place):
    if place.stack.config.picture is not None:
        raise ValueError("a mask depends on distance along a line; patches are in rows and columns")
    if changes.mask.meaning == "library-now" and place.stack.config.causal:
        raise ValueError(
            "meaning 'library-now' shows a causal model what comes later; wanted one of the others"
        )


def _says(changes):
    mask = changes.mask
    by_chance = "" if mask.null_seed is None else ", its distances shuffled"
    return f"mask {masks.words(mask.function())} as {mask.meaning}{by_chance}"


def _edits(changes, place, before):
    cfg, rule = place.stack.config, masks.meaning(changes.mask.meaning)
    function, seed = changes.mask.function(), changes.mask.null_seed
    values = masks.build_mask(function, place.T, cfg.n_heads, cfg.causal, seed)
    values = values.astype(place.stack.weights.W_E.dtype)
    prepared = rule.prepare(values)
    by_point = {place.point(rule.point): lambda x: rule.combine(x, prepared)}
    if rule.values:
        by_point[place.point("pattern")] = lambda pattern: pattern * values
    return by_point


def _python(changes, where):
    mask = changes.mask
    values = "".join(f", {value!r}" for value in mask.values)
    seed = "" if mask.null_seed is None else f", seed={mask.null_seed}"
    cfg, stack = f"{where.stack}.config", where.stack
    yield f"f = masks.family({mask.family!r}{values})"
    size = f"len({where.tokens}), {cfg}.n_heads, {cfg}.causal{seed}"
    yield f"m = masks.build_mask(f, {size})"
    yield f"m = m.astype({stack}.weights.W_E.dtype)"
    rule = masks.meaning(mask.meaning)
    if rule.before:
        yield rule.before
    yield f'edits["{where.place.point(rule.point)}"] = {rule.python}'
    if rule.values:
        yield f'edits["{where.place.point("pattern")}"] = lambda p: p * m  # and the values'


def _options():
    """Families with the default, least and most of each parameter; meanings with their formula."""
    families = {}
    for name in masks.FAMILIES:
        defaults = masks.parameters(name).items()
        families[name] = {key: [value, *masks.BOUNDS[key][:2]] for key, value in defaults}
    meanings = {name: [rule.label, rule.says] for name, rule in masks.MEANINGS.items()}
    return {"families": families, "meanings": meanings}


MASK = Change(
    "mask",
    None,
    Control(
        "mask",
        "Mask by distance",
        note="Makes tokens count less, the farther away they are.",
        options=_options(),
    ),
    _parse,
    _says,
    _edits,
    _python,
    _check,
    null=lambda changes, seed: changes.mask and changes.mask._replace(null_seed=seed),
    as_json=Mask._asdict,
    imports=("from minitx.analysis.maths import masks",),
    reads_order=True,
)
