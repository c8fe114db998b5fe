"""The list of experiments; commands, flags, the report and the README's table come from it.

An experiment is one function that turns a model into named arrays, in a file of its own. The first
line of the file is the question:

    '''Which question?'''

    def waves(model, run=UNSAVED, *, documents: int = 100, seed: int = 0):
        '''One line for the command's help.

        documents: one line for the flag's help
        '''
        return {"share": …, "share_null": …, "profile": …}

    register(
        waves,
        draw=draw_waves,
        says=say_waves,
        look="what to look for in the figure",
        published="what the published work shows",
        figure="figure 3",
        numbers={
            "share": "what the scalar result['share'] means",
            "share_null": "what chance gives",
            "lags": "what the list result['lags'] holds",
        },
        labels={"lags": "heads"},
        answer=answer_waves,
    )

The function's name is the command (with - for _), its keywords with their defaults are the flags;
their annotations say what they may be (options.py), which is checked before any work.
`run` sums over documents (stream.py). `draw(result)` makes a matplotlib figure of the same arrays,
`says(result)` tells in plain words what they show, `answer(result)` answers the question in a word
and a number. The results listed in `numbers` are the headline figures, those that tell most first;
NAME_null is the null of NAME; `labels` names the entries of a list: a result that holds their
names, or the names themselves. `per_head` names the results [L H] that `minitx compare` compares
head by head. weights_only=True: it runs on a partial checkpoint too. least_documents: with fewer
there is nothing to measure; the report then reads this many. shares_passes=True: its measures yield
what they read (passes.py), so that experiments which run together share it. sides: what it reads of
an encoder-decoder, where it takes a source by itself (sides.py).
"""

import inspect
import itertools
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, get_type_hints

from minitx.mapped import require_arrays

from ..texts import formats, naming
from .options import Option, Seed, Size, near_matches, understand

EXPERIMENTS: dict[str, "Experiment"] = {}
# what every experiment that reads texts takes beside its own options
SAMPLE = understand("sample", Size, 0, "documents of the text, drawn at random by the seed (all)")
SEED = understand("seed", Seed, 0, "of the sample")
COLUMN = understand("column", str, "", "column or key of the text in a table")
OF_TEXTS = SAMPLE, SEED, COLUMN
ABOUT = "architecture", "method", "table"


class NotApplicable(ValueError):
    """The model, or the text, lacks what an experiment needs: nothing is wrong with either."""


class Answer(NamedTuple):
    """What one run answers to the experiment's question."""

    verdict: str  # yes, partly, no or undecided, by the rule of verdict.py
    measure: str  # what was measured, in words that stand alone
    value: str  # as a reader is to see it: "7 of 7", "59 %"
    chance: str  # the same by chance, or by the text alone


@dataclass(frozen=True, repr=False)
class Experiment:
    """What one experiment asks, computes, draws and explains."""

    run: Callable
    question: str
    draw: Callable
    says: Callable | None = None
    answer: Callable | None = None
    numbers: dict = field(default_factory=dict)
    labels: dict = field(default_factory=dict)  # {list: what names its entries: a result, or names}
    look: str = ""
    published: str = ""
    figure: str = ""  # where the published work shows it: "figure 3"
    about: str = "model"  # what the answer is about: the model, or one of ABOUT in the question
    weights_only: bool = False
    per_head: tuple = ()  # results [L H] that tell heads apart, for `minitx compare`
    least_documents: int = 1
    shares_passes: bool = False  # its measures yield what they read, so that others can share it
    sides: tuple = ()  # see sides.of

    @property
    def name(self):
        return self.run.__name__.replace("_", "-")

    def check(self, model):
        """Raise NotApplicable if the model lacks tensors that the experiment needs.

        ValueError if its weights stay in their file.
        """
        require_arrays(model, self.name)
        if model.missing and not self.weights_only:
            raise NotApplicable(
                f"{self.name} needs the whole model; {len(model.missing)} tensors are missing, "
                f"{model.missing[0]} among them"
            )

    @property
    def summary(self):
        """First paragraph of the docstring."""
        return " ".join(itertools.takewhile(bool, self._doc))

    @property
    def options(self):
        """The keywords of `run`, with the 'name: help' lines of its docstring."""
        parameters = inspect.signature(self.run).parameters.values()
        keywords = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
        annotations = get_type_hints(self.run, include_extras=True)
        helps = {}
        name = None  # of the keyword whose help goes on
        for line in self._doc[1:]:
            start, _, text = line.partition(": ")
            if start in keywords:
                name = start
                helps[name] = text
            elif name:
                helps[name] = f"{helps[name]} {line}".strip()
        return [
            understand(name, annotations.get(name), default, helps.get(name, ""))
            for name, default in keywords.items()
        ]

    def checked(self, given, is_text=False):
        """Options {name: value}, names with - or _, as `run` takes them.

        is_text: the values are those of flags, where a text may stand for a number. Raises
        ValueError for a name that is no option, with those there are, or a value that is not what
        the option's annotation says.
        """
        options = {option.name: option for option in self.options}
        if self.reads_texts:
            given = with_text(given, options, is_text)
        checked = {}
        for given_name, value in given.items():
            name = given_name.replace("-", "_")
            if name not in options:
                raise ValueError(
                    f"{self.name} has no option {given_name!r} (there are: {self._defaults})"
                )
            option = options[name]
            checked[name] = option.parsed(value) if is_text else option.checked(value)
        return checked

    @property
    def reads_texts(self):
        """Whether it has an option `text`, in whose place `ids` may name a file of token ids."""
        return any(option.name == "text" for option in self.options)

    @property
    def _defaults(self):
        """All options with their defaults, as one writes them in Python."""
        return ", ".join(f"{option.name}={option.default!r}" for option in self.options)

    def __repr__(self):
        return f"<{self.name}: {self.question} Options: {self._defaults}>"

    @property
    def _doc(self):
        return (inspect.getdoc(self.run) or self.question).splitlines()


def with_text(given, own=(), is_text=False):
    """Options with one name of a text in place of `ids`, of `sample` and `seed`, and of `column`.

    own: options that the experiment has by itself; of these `column` and `seed` stay. is_text: as
    for Experiment.checked. Raises ValueError where text and ids are given, or a sample of nothing.
    """
    given = _with_ids(given)
    number = Option.parsed if is_text else Option.checked
    n = number(SAMPLE, given.pop("sample", 0))
    column = "" if "column" in own else given.pop("column", "")
    if not n and not column:
        return given
    if "text" not in given:
        what = f"sample is {n}" if n else f"column is {column!r}"
        raise ValueError(f"{what}, but of no text; wanted text too (or ids, for a sample)")
    if column:
        given["text"] = naming.of_column(column, given["text"])
    if n:
        seed = given.get("seed", 0) if "seed" in own else given.pop("seed", 0)
        given["text"] = naming.drawn(given["text"], n, number(SEED, seed))
    return given


def _with_ids(given):
    """Options with `text` in place of `ids`."""
    given = dict(given)
    path = given.pop("ids", None)
    if path is None:
        return given
    if given.get("text", "sample") != "sample":
        raise ValueError(f"text is {given['text']!r} and ids {path!r}; wanted one of them")
    formats.not_empty(str(path), "ids")
    return given | {"text": naming.of_ids(path)}


def register(run, *, draw, question="", **described):
    """Put `run` on the list of experiments and return its Experiment.

    A call is the last statement of the experiment's file. The question is the first line of the
    file, unless it is given; `described` are the other fields of an Experiment. Raises ValueError
    if the name is taken, or an option is not annotated as options.py says.
    """
    question = question or run.__globals__["__doc__"].partition("\n")[0]
    new = Experiment(run, question, draw, **described)
    if new.name in EXPERIMENTS:
        raise ValueError(f"there is already an experiment {new.name!r}")
    _ = new.options  # raises if one is not annotated
    EXPERIMENTS[new.name] = new
    return new


def get(name):
    """The experiment called `name`; raises ValueError with the near matches if there is none."""
    if name in EXPERIMENTS:
        return EXPERIMENTS[name]
    near = near_matches(name, EXPERIMENTS)
    raise ValueError(f"unknown experiment {name!r}{near} (there are: {', '.join(EXPERIMENTS)})")


def headline(experiment, result):
    """Headline figures: {name: {"value": …, "means": …}}.

    Those with a null have "null" and "null_means" too, lists with names for their entries "labels".
    """
    numbers = {}
    for name, means in experiment.numbers.items():
        if name not in result:  # an option may leave nothing to measure
            continue
        value = result[name].tolist()
        measured = name.removesuffix("_null")
        if measured in numbers:
            numbers[measured] |= {"null": value, "null_means": means}
        else:
            numbers[name] = {"value": value, "means": means}
        if name in experiment.labels:
            numbers[name]["labels"] = _labels(experiment.labels[name], result)
    return numbers


def _labels(names, result):
    """The names of a list's entries; `names`: the result that holds them, or themselves."""
    return result[names].tolist() if isinstance(names, str) else list(names)


def markdown():
    """The README's table of experiments on published figures, and the names of all the others."""
    every = EXPERIMENTS.values()
    rows = [f"| `{e.name}` | {e.question} | {e.figure} |" for e in every if e.figure]
    others = ", ".join(f"`{e.name}`" for e in every if not e.figure)
    line = textwrap.fill(f"Others (`minitx list`): {others}.", 120)
    return "\n".join(["| experiment | asks | published in |", "|---|---|---|", *rows, "", line])
