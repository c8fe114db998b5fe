"""The generated parts of README.md.

`python tests/tools/readme.py` writes them, test_house.py compares them.
"""

import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
# so that it also runs without an installation
sys.path[:0] = [str(ROOT), str(ROOT / "tests/tools")]


def points():
    """Every point of the trace."""
    from minitx import POINTS

    rows = []
    for name, point in POINTS.items():
        where = "every layer" if point.per_layer else "once"
        rows.append(f"| `{name}` | {point.axes} | {where} | {point.meaning} |")
    return "\n".join(["| point | axes | where | what |", "|---|---|---|---|", *rows])


def surface():
    """Every public name and the first line of its docstring."""
    import minitx

    first = {
        "POINTS": "the table below as a dictionary: name -> Point(axes, meaning, per_layer, needs)"
    }
    for name in minitx.__all__:
        if name not in first:
            first[name] = (getattr(minitx, name).__doc__ or "").strip().splitlines()[0]
    rows = [f"| `minitx.{name}` | {first[name]} |" for name in minitx.__all__]
    return "\n".join(["| name | what |", "|---|---|", *rows])


def experiments():
    """Every experiment of the registry."""
    from minitx.analysis import experiments as _  # noqa: F401  (fills the registry)
    from minitx.analysis.runner.registry import markdown

    return markdown()


def checkpoints():
    """The bundled checkpoints (how their cards begin) and the hub names with an explanation."""
    from minitx import weights

    cards = {
        name: (ROOT / "weights" / name / "README.md").read_text(encoding="utf-8")
        for name in weights.bundled()
    }
    rows = [f"| `{name}` | bundled | {_beginning(card)} |" for name, card in cards.items()]
    rows += [
        f"| `{name}` | `minitx fetch {name}` | {about} |"
        for name, (_, about) in weights.KNOWN.items()
    ]
    return "\n".join(["| name | where from | what for |", "|---|---|---|", *rows])


def speed():
    """What the newest run of `make bench` measured of what was wanted."""
    newest = max((ROOT / "benchmarks/results").glob("*.md"), key=lambda path: path.stem)
    head, _, tail = newest.read_text(encoding="utf-8").partition("## What was wanted\n\n")
    name = newest.relative_to(ROOT)
    machine = head.split("\n\n")[1].partition("; two threads")[0]
    table = tail.partition("\n\n")[0]
    return f"{machine} ([{name}]({name})):\n\n{table}"


def _beginning(card):
    """A model card's text up to its first colon or full stop."""
    body = next(part for part in card.split("\n\n") if not part.startswith(("#", "---")))
    return re.split(r"[.:]\s", " ".join(body.split()))[0]


PARTS = {f.__name__: f for f in (points, surface, experiments, checkpoints, speed)}


def filled(text):
    """README text with each `<!-- name -->` … `<!-- end -->` part generated again."""
    for name, make in PARTS.items():
        part = re.search(rf"(?<=<!-- {name} -->\n).*?(?=<!-- end -->)", text, re.S)
        if not part:
            raise ValueError(f"README.md has no part <!-- {name} --> … <!-- end -->")
        text = f"{text[: part.start()]}{make()}\n{text[part.end() :]}"
    return text


if __name__ == "__main__":
    readme = ROOT / "README.md"
    new = filled(readme.read_text(encoding="utf-8"))
    readme.with_suffix(".tmp").write_text(new, encoding="utf-8")
    os.replace(readme.with_suffix(".tmp"), readme)
