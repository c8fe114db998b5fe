"""One change of the live page as a record: what it takes, checks, does, is called, and its control.

The page draws a control for each record of registry.py, the Python and the words come from there.
"""

from collections.abc import Callable
from typing import NamedTuple

from ..machine import language


class Control(NamedTuple):
    """How the page draws a change: live.js has a function for each kind."""

    kind: str  # choice, number, slider, mask; layers or heads, of which each has a button
    label: str  # of layers with {} for the layer; of heads the word behind the name of a head
    group: str = ""  # the legend of the box that it shares with others; "": a box of its own
    title: str = ""  # shown by the pointer
    note: str = ""  # one line below it
    options: object = ()  # of a choice: pairs (value, label); of a mask: its families and meanings
    bounds: tuple = ()  # of a number or slider: least, most (of a number None: any), step (1)
    usual: object = None  # of a number: what it starts with
    unit: str = ""  # behind a number
    of: tuple = ()  # (name of another change, its value) to which this one belongs
    cell: str = ""  # on the button of a layer, with {} for the layer
    words: tuple = ()  # on the button of the chosen head, with {} for its name: to change, to undo


def _as_it_is(value):
    return value


class Change(NamedTuple):
    """One change. changes: a Changes; place: a Place; where: a Where of as_python.py.

    Its value is `changes.NAME`. Functions are called only where that is not `nothing`, `null`
    always.
    """

    name: str
    nothing: object  # the value that changes nothing
    control: Control
    parse: Callable  # value of JSON -> a value that can be hashed; ValueError if no model takes it
    says: Callable  # changes -> words
    edits: Callable  # (changes, place, before) -> {point: edit}; before: those of the others
    python: Callable  # (changes, where) -> lines
    check: Callable = lambda changes, place: None  # ValueError where the model or text cannot
    null: Callable | None = None  # (changes, seed) -> the value that chance would give
    silent: Callable | None = None  # (changes, n_heads) -> numbers of heads that write nothing
    as_json: Callable = _as_it_is  # value -> what `parse` takes
    imports: tuple = ()  # lines that its Python needs
    of_pictures: bool = False  # only of a model of pictures
    reads_order: bool = False  # not for cross-attention, which knows no positions or distances
    comes_last: bool = False  # its edits come from a run in which all others are made

    @property
    def facts(self):
        """What the page must know, ready for JSON."""
        names = "name", "nothing", "reads_order", "of_pictures"
        own = {name: getattr(self, name) for name in names}
        return own | translated_texts(self.control._asdict())


def translated_texts(control):
    """The texts of a control in the current language."""
    texts = {
        name: language.label(control[name]) for name in ("label", "group", "title", "note", "unit")
    }
    texts["words"] = [language.translated(words) for words in control["words"]]
    if isinstance(control["options"], tuple | list):
        texts["options"] = [(value, language.label(label)) for value, label in control["options"]]
    else:
        meanings = control["options"]["meanings"].items()
        said = {name: [*map(language.label, lines)] for name, lines in meanings}
        texts["options"] = control["options"] | {"meanings": said}
    return control | texts
