"""The public names of minitx and how they are called, beside those of the last release.

    python tests/tools/surface.py                  prints what a release would promise, as JSON
    python tests/tools/surface.py --release        writes it to released.json: at a release, once

A name of the last release has to stay, and whoever calls it as it was has to be understood: its
parameters keep their names and their order, and new ones have defaults. What does not stay is
deprecated for a minor version first, and named under Breaking in CHANGELOG.md.
"""

import importlib
import inspect
import json
import sys
from pathlib import Path

MODULES = "minitx", "minitx.analysis", "minitx.circuits", "minitx.weights"
RELEASED = Path(__file__).with_name("released.json")


def surface():
    """{name: [parameters as text]} of every public function, class and method of minitx."""
    named = {}
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        for name in module.__all__:
            named |= _of(f"{module_name}.{name}", getattr(module, name))
    return dict(sorted(named.items()))


def broken(released, now):
    """What a caller of the release would notice, a line each."""
    lines = [f"{name} is gone" for name in released if name not in now]
    for name in released.keys() & now.keys():
        by_place, before = _call(released[name])
        new_by_place, after = _call(now[name])
        if new_by_place[: len(by_place)] != by_place:
            lines.append(f"{name} takes {new_by_place} by place; it took {by_place}")
        lines += [f"{name} has no parameter {p!r}" for p in before if p not in after]
        needed = [p for p in after if after[p] and not before.get(p)]
        lines += [f"{name} needs {p!r} now" for p in needed]
    return sorted(lines)


def _call(parameters):
    """Names that can be given by place, and {name: whether it has to be given}."""
    by_place = parameters[: parameters.index("*")] if "*" in parameters else parameters
    named = {p.rstrip("="): not p.endswith("=") for p in parameters if not p.startswith("*")}
    return [p.rstrip("=") for p in by_place], named


def _of(name, x):
    """{name: parameters} of a function, or of a class with its public methods.

    How a class is made is not promised: functions of minitx make them.
    """
    if not inspect.isclass(x):
        return {name: _parameters(x)}
    methods = {key: member for key, member in vars(x).items() if not key.startswith("_")}
    return {name: []} | {f"{name}.{key}": _parameters(m) for key, m in methods.items()}


def _parameters(x):
    """Parameters as "name", "name=" with a default, after "*" by name only; [] of a value."""
    if not inspect.isfunction(x):
        return []
    parameters = inspect.signature(x).parameters.values()
    texts, by_name = [], False
    for p in parameters:
        if p.kind is p.KEYWORD_ONLY and not by_name:
            by_name = True
            texts.append("*")
        stars = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        texts.append(stars + p.name + ("=" if p.default is not p.empty else ""))
    return texts


if __name__ == "__main__":
    names = [f"{json.dumps(name)}: {json.dumps(given)}" for name, given in surface().items()]
    text = "{\n" + ",\n".join(names) + "\n}\n"
    if "--release" in sys.argv:
        RELEASED.write_text(text, encoding="utf-8")
    else:
        print(text, end="")
