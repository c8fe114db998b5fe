"""What a page asks for: a model, a text and changes, checked before any work."""

from dataclasses import dataclass, fields, replace

from minitx.sampling import Sampling

from ..texts import joined
from . import validation
from .changes import Changes

LONGEST = 20_000  # letters of a text: more than any model here reads
HIDDEN = 512  # places, at most, where a mask token stands
TEMPERATURES = 0.0, 10.0
MOST_K = 1_000_000  # tokens, at most, among which one is drawn: more than any vocabulary has
NOTHING = Changes()


@dataclass(frozen=True)
class RunRequest:
    """One run: as it is, changed, and on request what chance would give."""

    model: str
    text: str
    second: str | None = None  # a text that is read together with the first, as a pair
    split: bool = False  # texts are cut into words, by blanks
    target: str | None = None  # what an encoder-decoder is to say; None: its own greedy output
    words: bool = False  # whole words instead of pieces
    hidden: tuple = ()  # places of tokens that a masked model does not see
    changes: Changes = NOTHING
    edited: bool = False  # with the edits that `minitx.serve` was given
    null: bool = False
    temperature: float = 1.0  # this and the next two as `minitx.generate` takes them
    top_k: int | None = None
    top_p: float | None = None

    @classmethod
    def of(cls, values, names):
        """A request from JSON; names: of the models there are. Raises ValueError, saying why."""
        if not isinstance(values, dict):
            raise ValueError(f"the request is {values!r:.80}; wanted an object")
        known = [field.name for field in fields(cls)]
        for key in values:
            if key not in known:
                raise ValueError(f"a request has no {key!r:.80}; available: {', '.join(known)}")
        values = {"model": names[0], "text": ""} | values
        values["changes"] = Changes.of(values.get("changes", {}))
        request = cls(**values)
        request.check(names)
        return replace(request, hidden=tuple(request.hidden))

    def check(self, names):
        """Raises ValueError for a value of the wrong kind, or out of its limits."""
        if self.model not in names:
            raise ValueError(f"no model {self.model!r:.80} here; available: {', '.join(names)}")
        _text("text", self.text)
        for name in "second", "target":
            if getattr(self, name) is not None:
                _text(name, getattr(self, name))
        for name in "words", "null":
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} is {getattr(self, name)!r:.80}; wanted true or false")
        _places(self.hidden)
        _number("temperature", self.temperature, *TEMPERATURES)
        if self.top_k is not None:
            validation.whole("top_k", self.top_k, 1, MOST_K)
        if self.top_p is not None:
            _number("top_p", self.top_p, 0.01, 1.0)

    @property
    def pair(self):
        """The text, or both of a pair, as `explore.readable` takes it."""
        kind = joined.Words if self.split else str
        return kind(self.text) if self.second is None else (kind(self.text), kind(self.second))

    @property
    def sampling(self):
        """How the next token is drawn."""
        return Sampling(self.temperature, self.top_k, self.top_p)

    @property
    def as_is(self):
        """The same without changes: what is computed once for all of them."""
        drawn = {"temperature": 1.0, "top_k": None, "top_p": None}
        return replace(self, changes=NOTHING, edited=False, null=False, **drawn)

    @property
    def is_changed(self):
        """Whether there is anything to compare with the model as it is."""
        return self.edited or bool(self.changes)

    @property
    def by_chance(self):
        """The same with the null of the changes in their place."""
        return replace(self.changed, changes=self.changes.null())

    @property
    def changed(self):
        """The same without what does not change a run."""
        return replace(self.as_is, changes=self.changes, edited=self.edited)


def _text(name, text):
    """Raise ValueError unless it is a text that is not too long, and can be written as UTF-8."""
    if not isinstance(text, str):
        raise ValueError(f"the {name} is {text!r:.80}; wanted a text")
    if len(text) > LONGEST:
        raise ValueError(f"the {name} has {len(text)} letters; this page takes at most {LONGEST}")
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ValueError(
            f"the {name} has half of a character (a lone surrogate), which is not a text"
        )


def _places(places):
    is_list = isinstance(places, list | tuple) and len(places) <= HIDDEN
    if not is_list or not all(type(place) is int and place >= 0 for place in places):
        raise ValueError(f"hidden is {places!r:.80}; wanted a list of at most {HIDDEN} positions")


def _number(name, value, least, most):
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not least <= value <= most:  # False of NaN
        raise ValueError(f"{name} is {value!r:.80}; wanted a number from {least} to {most}")
