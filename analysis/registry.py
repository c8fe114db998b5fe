"""The list of experiments, from which commands, flags, the report and the README's table are derived.

An experiment is one function that turns a model into named arrays:

    @experiment(asks="Which question?", draw=draw, look="…", published="…", figure="figure 3", says=says,
                numbers={"share": "what the scalar result['share'] means", "share_null": "what chance gives"})
    def waves(model, *, documents: int = 100, seed: int = 0):
        '''One line for the command's help.

        documents: one line for the flag's help
        '''
        return {"share": …, "share_null": …, "profile": …}

Its name is the command (with - for _), its keyword defaults are the flags; `draw(result)` makes a matplotlib figure
of the same arrays, `says(result)` tells in plain words what they show. The results listed in `numbers` are the headline
figures; NAME_null is the null of NAME. weights_only=True: it runs on a partial checkpoint too.
"""

import difflib
import inspect
from collections.abc import Callable
from dataclasses import dataclass

EXPERIMENTS = {}


class Unfit(ValueError):
    """The model lacks what an experiment needs: nothing is wrong with either."""


@dataclass(frozen=True)
class Option:
    """One keyword of an experiment."""
    name: str
    default: object
    help: str

    @property
    def flag(self):
        return self.name.replace("_", "-")


@dataclass(frozen=True)
class Experiment:
    """What one experiment asks, computes, draws and explains."""
    run: Callable
    asks: str
    draw: Callable
    numbers: dict
    look: str
    published: str
    figure: str          # where the published work shows it: "figure 3"
    says: Callable
    weights_only: bool
    per_head: tuple      # results [L H] that tell heads apart; none: all of that shape (compare.py)

    @property
    def name(self):
        return self.run.__name__.replace("_", "-")

    def check(self, model):
        """Unfit if the model lacks tensors that the experiment needs."""
        if model.missing and not self.weights_only:
            raise Unfit(f"{self.name} needs the whole model; {len(model.missing)} tensors are missing, "
                        f"{model.missing[0]} among them")

    @property
    def summary(self):
        """First line of the docstring."""
        return self._doc[0]

    @property
    def options(self):
        """The keywords of `run`, with the 'name: help' lines of its docstring."""
        lines = [line.partition(": ") for line in self._doc[1:]]
        helps = {name.strip(): text for name, _, text in lines if text}
        keywords = [p for p in inspect.signature(self.run).parameters.values() if p.default is not p.empty]
        return [Option(p.name, p.default, helps.get(p.name, "")) for p in keywords]

    @property
    def _doc(self):
        return (inspect.getdoc(self.run) or self.asks).splitlines()


def experiment(asks, draw, numbers=None, look="", published="", figure="", says=None, weights_only=False,
               per_head=()):
    """Put the decorated function on the list; the function itself stays as it is."""
    def register(run):
        found = Experiment(run, asks, draw, numbers or {}, look, published, figure, says, weights_only, per_head)
        if found.name in EXPERIMENTS:
            raise ValueError(f"there is already an experiment {found.name!r}")
        EXPERIMENTS[found.name] = found
        return run
    return register


def get(name):
    """The experiment called `name`; ValueError with the near matches."""
    if name not in EXPERIMENTS:
        close = difflib.get_close_matches(name, EXPERIMENTS, cutoff=0.4)
        guess = f"; did you mean {' or '.join(close)}?" if close else ""
        raise ValueError(f"unknown experiment {name!r}{guess} (there are: {', '.join(EXPERIMENTS)})")
    return EXPERIMENTS[name]


def headline(experiment, result):
    """Headline figures: {name: {"value": …, "means": …}}, with "null" and "null_means" where there is one."""
    numbers = {}
    for name, means in experiment.numbers.items():
        if name not in result:  # an option may leave nothing to measure
            continue
        if name.removesuffix("_null") in numbers:
            numbers[name.removesuffix("_null")] |= {"null": result[name].tolist(), "null_means": means}
        else:
            numbers[name] = {"value": result[name].tolist(), "means": means}
    return numbers


def markdown():
    """The README's table of experiments."""
    rows = [f"| `{e.name}` | {e.asks} | {e.figure} |" for e in EXPERIMENTS.values()]
    return "\n".join(["| experiment | asks | published in |", "|---|---|---|", *rows])
