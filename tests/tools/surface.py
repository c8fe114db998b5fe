"""What minitx promises by name, and how it is called, beside the last release.

Python's public names and their parameters, commands and their flags (`minitx run NAME` for each
experiment), points and their axes. Arrays of experiments are in tests/released/arrays.json.

    python tests/tools/surface.py                  prints what a release would promise, as JSON
    python tests/tools/surface.py --release        writes both files: at a release, once

A name of the last release has to stay, and whoever calls it as it was has to be understood: its
parameters keep their names and their order, and new ones have defaults. What does not stay is
deprecated for a minor version first (minitx/machine/deprecation.py), and named under Breaking in
CHANGELOG.md: of the last release's surface, what begins with "deprecated" may go, and of a
parameter "new|old" the old name.
"""

import argparse
import importlib
import inspect
import json
import sys
from pathlib import Path
from typing import NamedTuple

import outcomes

import minitx
from minitx.analysis import commands
from minitx.analysis.contract import registry
from minitx.loading.files import read_json

MODULES = (
    *("minitx", "minitx.analysis", "minitx.circuits", "minitx.names"),
    *("minitx.testing", "minitx.weights"),
)
RELEASED = Path(__file__).with_name("released.json")
ARRAYS = Path(__file__).parents[1] / "released/arrays.json"  # {experiment: names}, of all 1.x
GOES = "deprecated"  # before the parameters of what goes away


def surface():
    """{name: [parameters as text]} of every public function, class and method of minitx."""
    named = {}
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        for name in module.__all__:
            named |= of(f"{module_name}.{name}", getattr(module, name))
    for name, point in minitx.POINTS.items():
        named[f"point {name}"] = [f"axis {i}" for i, _ in enumerate(point.axes.split())]
    return dict(sorted((named | of_commands("minitx", commands.parser())).items()))


def of_commands(name, parser):
    """{command: its arguments by place, then its flags} of a parser, and of all below it."""
    named, by_place, flags = {}, [], []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command, below in action.choices.items():
                named |= of_commands(f"{name} {command}", below)
        elif action.option_strings:
            flags += [flag + "=" * (not action.required) for flag in action.option_strings]
        else:
            by_place.append(action.dest + "=" * (action.nargs in ("?", "*")))
    return named | {name: [*by_place, "*", *flags]}


class Parameter(NamedTuple):
    names: list  # as it is called now, then as it was
    needed: bool
    by_name: bool

    @property
    def name(self):
        return self.names[0]


def broken(released, now):
    """What a caller of the release would notice, a line each."""
    promised = {name: given for name, given in released.items() if given[:1] != [GOES]}
    lines = [f"{name} is gone" for name in promised if name not in now]
    for name in promised.keys() & now.keys():
        before, after = _call(promised[name]), _call(now[name])
        was = [p for p in before if not p.by_name]
        placed = [p for p in after if not p.by_name][: len(was)]
        if len(placed) < len(was) or any(a.name not in b.names for a, b in zip(was, placed)):
            now_placed, then = ([p.name for p in side] for side in (placed, was))
            lines.append(f"{name} takes {now_placed} by place; it took {then}")
        taken = [name for p in after for name in p.names]
        lines += [f"{name} has no parameter {p.name!r}" for p in before if p.name not in taken]
        needed = [p.name for p in before if p.needed]
        new = [p for p in after if p.needed and not {*p.names} & {*needed}]
        lines += [f"{name} needs {p.name!r} now" for p in new]
    return sorted(lines)


def _call(texts):
    """The Parameters of a function, from their texts; without those that are starred."""
    parameters, by_name = [], False
    for text in texts:
        by_name |= text == "*"
        if text[0] != "*" and text != GOES:
            names = text.rstrip("=").split("|")
            parameters.append(Parameter(names, not text.endswith("="), by_name))
    return parameters


def of(name, x):
    """{name: parameters} of a function, or of a class with its public methods.

    How a class is made is not promised: functions of minitx make them.
    """
    if not inspect.isclass(x):
        return {name: _parameters(x)}
    goes = [GOES] * ("__deprecated__" in vars(x))
    fields = dict.fromkeys(getattr(x, "__dataclass_fields__", ()))
    methods = {key: y for key, y in (fields | vars(x)).items() if not key.startswith("_")}
    return {name: goes} | {f"{name}.{key}": _parameters(m) for key, m in methods.items()}


def _parameters(x):
    """Parameters as "name", "name=" with a default, after "*" by name only; [] of a value.

    "name|old" has a former name that still works.
    """
    if not inspect.isfunction(x):
        return []
    parameters = inspect.signature(x).parameters.values()
    former = {new: old for old, new in getattr(x, "__renamed__", {}).items()}
    texts, by_name = [GOES] * hasattr(x, "__deprecated__"), False
    for p in parameters:
        if p.kind is p.KEYWORD_ONLY and not by_name:
            by_name = True
            texts.append("*")
        stars = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        name = f"{p.name}|{former[p.name]}" if p.name in former else p.name
        texts.append(stars + name + ("=" if p.default is not p.empty else ""))
    return texts


def with_arrays(released):
    """{experiment: names of arrays}, those of earlier releases and what each gives now."""
    for name in registry.EXPERIMENTS:
        model = minitx.load("tiny-bart" if name == "alignment" else "tiny-roberta")
        given = outcomes.run(name, model, **outcomes.small(registry.get(name)))
        released[name] = " ".join(sorted({*released.get(name, "").split(), *given}))
    return dict(sorted(released.items()))


if __name__ == "__main__":
    names = [f"{json.dumps(name)}: {json.dumps(given)}" for name, given in surface().items()]
    text = "{\n" + ",\n".join(names) + "\n}\n"
    if "--release" in sys.argv:
        RELEASED.write_text(text, encoding="utf-8")
        both = with_arrays(read_json(ARRAYS))
        ARRAYS.write_text(json.dumps(both, indent=1) + "\n", encoding="utf-8")
    else:
        print(text, end="")
