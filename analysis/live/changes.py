"""What a reader changes in a model: values of registry.py's records, edits and Python of a run.

T tokens, L layers, H heads.
"""

from dataclasses import dataclass

from . import as_python, interventions, validation
from .mask import SEED
from .place import STACKS, place, stack_of
from .registry import CHANGES


@dataclass(frozen=True, init=False)
class Changes:
    """What is changed in one stack of a model; without arguments: nothing.

    positions: on, off (zero is the same: nothing is added, nothing turned), shuffled (among the
    text's own tokens, by `seed`), or shifted: the text stands `shift` tokens later. dial: keys are
    those of a run in which each of the text's own tokens has the position of the token `dial`
    places after it, cyclically; of a picture, `dial` columns to the right and `dial_down` rows
    below. mask: a Mask, or its fields as a dictionary. heads_off: (layer, head) pairs whose output
    is zero. layers_off: layers that write nothing. mlps_off: layers whose MLP writes nothing.
    stack: of an encoder-decoder the one that is changed, encoder, decoder or cross. Each name of
    CHANGES is an attribute. Raises ValueError for a value that no model could take; `check` knows
    the model.

    >>> import minitx
    >>> model = minitx.load("tiny-roberta")
    >>> tokens = model.tokenizer.encode("A dog ran")
    >>> changed = Changes(positions="zero", heads_off=[(0, 1)])
    >>> list(changed.edits(model, tokens))
    ['pos_embed', ('z', 0)]
    >>> changed.says()
    'positions at zero; L0H1 off'
    """

    values: tuple  # (name, value) of what is changed, in the order of CHANGES
    stack: str
    seed: int

    def __init__(self, positions="on", *, stack="", seed=0, **values):
        values["positions"] = positions
        validation.known_keys("changes", values, _names())
        changed = []
        for name, change in CHANGES.items():
            value = change.parse(values.get(name, change.nothing))
            if value != change.nothing:
                changed.append((name, value))
        self._set("values", tuple(changed))
        self._set("stack", validation.one_of("stack", stack, STACKS))
        self._set("seed", validation.whole("seed", seed, 0, SEED - 1))
        for change in self.records():
            _check_owner(self, change)

    def _set(self, name, value):
        object.__setattr__(self, name, value)

    def __getattr__(self, name):
        if name not in CHANGES:
            raise AttributeError(f"changes have no {name!r}; available: {', '.join(_names())}")
        return dict(self.values).get(name, CHANGES[name].nothing)

    def __bool__(self):
        return bool(self.values)

    @classmethod
    def of(cls, values):
        """Changes from a dictionary, as JSON has them; ValueError names a key that is unknown."""
        if not isinstance(values, dict):
            raise ValueError(f"changes are {values!r:.80}; wanted an object")
        validation.known_keys("changes", values, _names())
        return cls(**values)

    def records(self):
        """The records of what is changed, in the order of CHANGES."""
        return [CHANGES[name] for name, _ in self.values]

    def as_json(self):
        """A dictionary that `of` reads, without what is as it is by default."""
        values = {name: CHANGES[name].as_json(value) for name, value in self.values}
        context = {"stack": self.stack, "seed": self.seed}
        return values | {name: value for name, value in context.items() if value}

    def check(self, model, tokens, source=None):
        """Raises ValueError for what this model, or a text of these tokens [T], cannot take."""
        interventions.check(self, place(self.stack, model, tokens, source))

    def edits(self, model, tokens, source=None, given=()):
        """{point: array or f(x)} for `minitx.run` of these tokens [T].

        source: ids [S] that an encoder-decoder reads. given: edits that are made first. Raises
        ValueError as `check` does. A dial needs a run of its own.
        """
        where = place(self.stack, model, tokens, source)
        interventions.check(self, where)
        return interventions.edits(self, where, given)

    def code(self, model, text, name=None, **given):
        """The Python that computes `trace`, a run of this text with these changes.

        name: what `minitx.load` takes (the model's folder). given: how the text was read, as fields
        of as_python.Given: target, hidden; and what it prints: shown.
        """
        name = name or str(model.tokenizer.folder)
        return as_python.code(self, as_python.Given(model, name, text, **given))

    def off(self, model):
        """{part of the page: numbers of the heads that write nothing}, through all layers."""
        changes = [change for change in self.records() if change.silent]
        if not changes:
            return {}
        H = stack_of(model, self.stack).config.n_heads
        return {self.stack: sorted(set().union(*(change.silent(self, H) for change in changes)))}

    def null(self):
        """The chance baseline: the same with positions shuffled, a mask's distances dealt.

        Both with the next seed, so that shuffled positions are compared with another shuffle.
        """
        if self.stack == "cross":
            raise ValueError("cross-attention reads no separate positions, so it has no null here")
        seed, values = (self.seed + 1) % SEED, dict(self.values)
        for name, change in CHANGES.items():
            if change.null:
                values[name] = change.null(self, seed)
        return Changes(**values, stack=self.stack, seed=seed)

    def says(self):
        """The changes in words; an empty text if there are none."""
        return "; ".join(filter(None, (change.says(self) for change in self.records())))

    def curve(self, model, T):
        """Values of the mask by distance 0 … T - 1, [1 or H T]; None without a mask."""
        if self.mask is None:
            return None
        return self.mask.by_distance(T, stack_of(model, self.stack).config.n_heads)


def _names():
    """All that a Changes may be given."""
    return [*CHANGES, "stack", "seed"]


def _check_owner(changes, change):
    """Raise ValueError for a number that belongs to a choice which is not made."""
    if not change.control.of:
        return
    name, wanted = change.control.of
    if getattr(changes, name) != wanted:
        value, other = getattr(changes, change.name), getattr(changes, name)
        raise ValueError(f"{change.name} is {value}, but {name} is {other!r}; wanted {wanted!r}")
