"""The list of experiments; commands, flags, the report and the README's table come from it.

An experiment is one function that turns a model into named arrays, in a file of its own, and what
it declares of them; CONTRIBUTING.md has a whole one. The first line of the file is the question.
The function's name is the command (with - for _), its keywords with their defaults are the flags;
their annotations say what they may be, with their help (options.py), which is checked before any
work. `run` sums over documents (stream.py). The results that `numbers` declares are the headline
figures, those that tell most first (numbers.py). The answer is a record: which number is set beside
which null, and by which rule (rules.py). Sentences are templates over results, and over constants
and functions of the file (sentences.py). Pictures are shared panels (panels.py, maps.py), or a
function of the results. `answer` and `says` may be functions of the results, too, where a rule is
too little.
"""

import inspect
import itertools
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import get_type_hints

from minitx.inputs import TooLong
from minitx.machine.mapped import require_arrays

from ..drawing.panels import Part
from ..drawing.sentences import Sentences
from ..texts import formats
from ..texts.refusals import NotApplicable
from . import nothing, numbers
from .options import Option, Seed, Size, near_matches, understand
from .rules import Answer, Asks

EXPERIMENTS: dict[str, "Experiment"] = {}
OF_PICTURES: dict[str, "Experiment"] = {}  # those that run in their place on a model of pictures
# what every experiment that reads texts takes beside its own options
SAMPLE = understand("sample", Size, 0, "documents to draw from the text at random, by --seed (all)")
SEED = understand("seed", Seed, 0, "of the sample")
COLUMN = understand(
    "column", str, "", "columns of a .csv or keys of a .jsonl file that hold the text"
)
OF_TEXTS = SAMPLE, SEED, COLUMN
# nothing went wrong: a tokenizer, a model to compare with, or what NotApplicable says is not there
LACKING = FileNotFoundError, NotApplicable, TooLong


@dataclass(frozen=True, repr=False)
class Experiment:
    """What one experiment asks, computes, draws and explains."""

    run: Callable
    question: str
    draw: Callable
    says: Callable | None = None
    answer: Callable[..., Answer] | None = None
    numbers: tuple = ()
    look: str = ""
    published: str = ""
    figure: str = ""  # where the published work shows it: "figure 3"
    about: str = "model"  # what the answer is about: the model, architecture, method or table
    weights_only: bool = False  # it runs on a partial checkpoint, too
    per_head: tuple = ()  # results [L H] that tell heads apart, for `minitx compare`
    by_head: Callable | None = None  # {title: entries of the heads} of the results, for a table
    least_documents: int = 1  # with fewer there is nothing to measure; a report reads this many
    shares_passes: bool = False  # its measures yield what they read, so that others can share it
    sides: tuple = ()  # of an encoder-decoder, where it takes a source by itself: see sides.of

    @property
    def name(self):
        return self.run.__name__.replace("_", "-")

    def figures(self, result):
        """The figures of a result, at most three panels each; the first has the answer."""
        usual = inspect.unwrap(self.draw)
        if nothing.KIND in result or not isinstance(usual, Part):
            return [self.draw(result)]
        return usual.apart(result)

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
    def option_names(self):
        """What its options are called."""
        return {option.name for option in self.options}

    @cached_property
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
        return tuple(
            understand(name, annotations.get(name), default, helps.get(name, ""))
            for name, default in keywords.items()
        )

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
                    f"{self.name} has no option {given_name!r} (available: {self._defaults})"
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
    """Options with one Text in place of `ids`, of `sample` and `seed`, and of `column`.

    own: options that the experiment has by itself, of which `seed` stays. is_text: as for
    Experiment.checked. Raises ValueError where text and ids are given, or a sample of nothing.
    """
    given = dict(given)
    number = Option.parsed if is_text else Option.checked
    if "seed" in given:
        given["seed"] = number(SEED, given["seed"])
    n = number(SAMPLE, given.pop("sample", 0))
    column = COLUMN.checked(given.pop("column", ""))
    ids = given.pop("ids", None)
    if ids is not None:
        given["text"] = _of_ids(ids, given)
    elif not n and not column:
        return given
    if "text" not in given:
        what = f"sample is {n}" if n else f"column is {column!r}"
        raise ValueError(f"{what}, but there is no text; wanted text, too (or ids, for a sample)")
    seed = 0
    if n:
        seed = given.get("seed", 0) if "seed" in own else given.pop("seed", 0)
    parts = {"column": column, "n": n, "seed": seed}
    given["text"] = formats.of(given["text"], is_ids=ids is not None, **parts)
    return given


def _of_ids(path, given):
    """The name of a file of token ids; raises ValueError for a text beside it."""
    if given.get("text", "sample") != "sample":
        raise ValueError(f"text is {given['text']!r} and ids {path!r}; wanted one of them")
    formats.not_empty(str(path), "ids")
    return path


def experiment(run, *, draw, question="", **described):
    """The Experiment of a function; it is on no list.

    The question is the first line of the function's file, unless it is given; `described` are the
    other fields of an Experiment. Raises ValueError if an option is not annotated as options.py
    says.
    """
    scope = run.__globals__
    question = question or scope["__doc__"].partition("\n")[0]
    new = Experiment(nothing.answered(run), question, **_bound({"draw": draw, **described}, scope))
    _ = new.options  # raises if one is not annotated
    return new


def register(run, **described):
    """Put `run` on the list of experiments and return its Experiment, see `experiment`.

    A call is the last statement of the experiment's file. Raises ValueError if the name is taken.
    """
    new = experiment(run, **described)
    if new.name in EXPERIMENTS:
        raise ValueError(f"there is already an experiment {new.name!r}")
    EXPERIMENTS[new.name] = new
    return new


def register_of_pictures(run, **described):
    """Let `run` be what the experiment of its name computes of a model of pictures."""
    new = experiment(run, **described)
    OF_PICTURES[new.name] = new
    return new


def of_model(experiment, model):
    """The Experiment that runs on a model: another one on pictures, where positions form a grid.

    Raises NotApplicable for an experiment that reads texts alone.
    """
    if model.config.picture is None:
        return experiment
    if experiment.name not in OF_PICTURES:
        text = f"{experiment.name} reads texts, and this model ({model.config.model_type}) pictures"
        raise NotApplicable(f"{text}; pictures are read by {', '.join(OF_PICTURES)}")
    return OF_PICTURES[experiment.name]


def _bound(described, scope):
    """Fields of an Experiment, with templates and rules as functions of the results.

    scope: of the experiment's file, whose constants and functions they name.
    """
    fields = dict(described)
    fields["draw"] = nothing.first(nothing.figure, fields["draw"])
    if fields.get("numbers"):
        fields["numbers"] = numbers.of_experiment(fields["numbers"], scope)
    if not callable(fields.get("says", callable)):
        fields["says"] = Sentences(fields["says"], scope)
    if fields.get("says"):
        fields["says"] = nothing.first(nothing.says, fields["says"])
    if isinstance(fields.get("answer"), Asks):
        fields["answer"] = replace(fields["answer"], scope=scope)
    return fields


def get(name):
    """The experiment called `name`; raises ValueError with the near matches if there is none."""
    if name in EXPERIMENTS:
        return EXPERIMENTS[name]
    near = near_matches(name, EXPERIMENTS)
    raise ValueError(f"unknown experiment {name!r}{near} (available: {', '.join(EXPERIMENTS)})")


def headline(experiment, result):
    """Headline figures {name: {"value": …, "means": …}}, see numbers.headline."""
    return numbers.headline(experiment.numbers, result)


PAPERS = re.compile("figure|section|EMNLP|AttentionViz")  # not a blog post, not slides


def markdown():
    """The README's table of experiments on papers' figures, and the names of all the others."""
    every = EXPERIMENTS.values()
    rows = [f"| `{e.name}` | {e.question} | {e.figure} |" for e in every if PAPERS.match(e.figure)]
    others = ", ".join(f"`{e.name}`" for e in every if not PAPERS.match(e.figure))
    line = textwrap.fill(f"Others (`minitx list`): {others}.", 120, break_on_hyphens=False)
    return "\n".join(["| experiment | asks | published in |", "|---|---|---|", *rows, "", line])
