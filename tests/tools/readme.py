"""The generated parts of README.md and of the folders' READMEs.

`python tests/tools/readme.py` writes them, tests/house/test_surface.py compares them. A part stands
between `<!-- name -->` and `<!-- end -->`, in DOCUMENTS or PAGES; `families` is in three.
"""

import json
import os
import re
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[2]
# so that it also runs without an installation
sys.path[:0] = [str(ROOT), str(ROOT / "tests/tools")]

import documents  # noqa: E402

FOLDERS = "minitx", "analysis", "weights", "tests", "benchmarks"
DOCUMENTS = [ROOT / "README.md", *(ROOT / folder / "README.md" for folder in FOLDERS)]
PAGES = [ROOT / f"docs/pages/{x}.md" for x in ("index", "limits", "rejected")]
PAGES = [ROOT / "PACKAGE.md", *PAGES]


def points():
    from minitx import POINTS

    rows = []
    for name, point in POINTS.items():
        where = "every layer" if point.per_layer else "once"
        rows.append([f"`{name}`", point.axes, where, point.meaning])
    return documents.table(["point", "axes", "where", "what"], rows)


def surface():
    import minitx

    points = "the table below as a dictionary: name -> Point(axes, meaning, per_layer, needs)"
    return _names(minitx, "minitx", POINTS=points)


def circuits():
    from minitx import circuits

    return _names(circuits, "circuits")


def _names(module, prefix, **known):
    """Every public name of a module; known: what is said of those without a docstring."""
    rows = []
    for name in module.__all__:
        about = known.get(name) or getattr(module, name).__doc__
        rows.append([f"`{prefix}.{name}`", about.strip().splitlines()[0]])
    return documents.table(["name", "what"], rows)


def heads():
    """Every task head with its axes, its meaning and how the classes that it is saved from end."""
    from minitx.heads import HEADS

    rows = []
    for name, head in HEADS.items():
        saved_from = f"`…{head.saved_from}`" if head.saved_from else "by its tensors"
        rows.append([f"`{name}`", head.axes, head.meaning, saved_from])
    return documents.table(["head", "logits", "what", "saved from"], rows)


def loads():
    from minitx.loading.families import FAMILIES

    rows = []
    for model_type, family in FAMILIES.items():
        names = ", ".join(f"`{name}`" for name in family.heads)
        if family.encoder is not None and family.encoder.heads:
            alone = ", ".join(f"`{name}`" for name in family.encoder.heads)
            names += f"; for an encoder-only model {alone}"
        rows.append([f"`{model_type}`", names])
    return documents.table(["model_type", "task heads"], rows)


def families():
    from minitx.loading.families import FAMILIES

    types = ", ".join(f"`{model_type}`" for model_type in FAMILIES)
    return textwrap.fill(f"Model types that load: {types}.", 120, break_on_hyphens=False)


def refusals():
    """Every model type, size and setting that is rejected by name."""
    from minitx.loading.families import FAMILIES, ONLY
    from minitx.loading.families.refused import PARTLY, REFUSED, WIDTHS

    rows = [[f"`{name}`", x.why, f"`{x.nearest}`"] for name, x in REFUSED.items()]
    for name, x in PARTLY.items():
        given = f"`{name}`, `{WIDTHS[name]}` not `hidden_size`"
        rows.append([given, x.why, f"`{x.nearest}`"])
    of_families = [(name, pair) for name, x in FAMILIES.items() for pair in x.only.items()]
    for name, (key, only) in [*(("", pair) for pair in ONLY.items()), *of_families]:
        given = f"`{name}`, `{key}`" if name else f"`{key}`"
        rows.append([f"{given} not `{only}`", "it would change the result", f"`{only}`"])
    return documents.table(["given", "reason", "closest supported"], rows)


def commands():
    """Every command with what it must be given, and what it does."""
    from minitx.analysis.commands import component, parser

    commands = _commands_below(parser())
    rows = []
    for name, about in zip(commands.choices, commands._choices_actions):
        words = " ".join(["minitx", name, *_arguments(commands.choices[name])])
        if name not in component.NAMES:
            rows.append([f"`{words}`", about.help.partition("; ")[0]])
        elif name == next(iter(component.NAMES)):
            short = ", ".join(f"`{other}`" for other in [*component.NAMES][1:])
            rows.append([f"`{words}`, {short}", "which component a prediction comes from"])
    return documents.table(["command", "what it does"], rows)


def _commands_below(parser):
    """The action of a parser that holds its commands; None if it has none."""
    return next((a for a in parser._actions if isinstance(a.choices, dict)), None)


def _arguments(parser):
    words = [a.metavar for a in parser._get_positional_actions()]
    asked = [a for a in parser._actions if a.required and a.option_strings]
    words += [f"{a.option_strings[0]} {a.metavar}" for a in asked]
    below = _commands_below(parser)
    return words + _arguments(next(iter(below.choices.values()))) if below else words


def experiments():
    from minitx.analysis import experiments as _  # noqa: F401  (fills the registry)
    from minitx.analysis.contract.registry import markdown

    return markdown()


def checkpoints():
    """The bundled checkpoints (how their cards begin) and the hub names with an explanation."""
    from minitx import weights

    names = [*weights.bundled(), *weights.of_pictures()]
    paths = {name: weights.find(name) / "README.md" for name in names}
    cards = {name: path.read_text(encoding="utf-8") for name, path in paths.items()}
    rows = [[f"`{name}`", "bundled", _beginning(card)] for name, card in cards.items()]
    known = [(name, about) for name, (_, about) in weights.KNOWN.items()]
    rows += [[f"`{name}`", f"`minitx fetch {name}`", about] for name, about in known]
    return documents.table(["name", "where from", "what for"], rows)


RESULTS = ROOT / "benchmarks/results"


def speed():
    """What was wanted, and what the newest run of `make bench` on each kind of machine measured."""
    from benchmarks import summary
    from benchmarks.cases import WANTED

    newest = {path.stem[11:]: path for path in sorted(RESULTS.glob("????-??-??-*.json"))}
    runs = {path: json.loads(path.read_text(encoding="utf-8")) for path in newest.values()}
    lines, head = [], ["case", "must reach"]
    for path, run in runs.items():
        name = path.relative_to(RESULTS.parent).with_suffix(".md")
        line = run["settings"]["machine"]["line"]
        lines.append(f"- {line} ([{path.stem[:10]}]({name}))")
        head.append(line.partition(",")[0])
    rows = []
    for wanted in WANTED:
        cells = [summary.wanted_row(wanted, summary.reached(wanted, run)) for run in runs.values()]
        measured = [f"{cell[1]}{' *' * (cell[4] == 'no')}" for cell in cells]
        rows.append([cells[0][0].partition(" (onnx")[0], cells[0][2], *measured])
    return "\n".join([*lines, "", summary.table(head, rows).rstrip()])


def _beginning(card):
    """A model card's text up to its first colon or full stop."""
    body = next(part for part in card.split("\n\n") if not part.startswith(("#", "---")))
    return re.split(r"[.:]\s", " ".join(body.split()))[0]


PARTS = {
    part.__name__: part
    for part in (
        *(points, surface, circuits, commands, experiments, checkpoints),
        *(speed, heads, loads, refusals, families),
    )
}


def filled(text):
    """A document with each of its `<!-- name -->` … `<!-- end -->` parts generated again."""
    for name, make in PARTS.items():
        if f"<!-- {name} -->\n" in text:
            text = documents.filled(text, name, f"{make()}\n")
    return text


def write(path):
    new = path.with_suffix(".tmp")
    new.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8")
    os.replace(new, path)


if __name__ == "__main__":
    for document in (*DOCUMENTS, *PAGES):
        write(document)
