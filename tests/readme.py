"""The generated parts of README.md: `python tests/readme.py` writes them, test_house.py compares them."""
import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]  # so that it also runs without an installation


def points():
    """Every point of the trace."""
    from minitx.trace import LAYERED, POINTS
    rows = [f"| `{name}` | {axes} | {'every layer' if name in LAYERED else 'once'} | {meaning} |"
            for name, (axes, meaning) in POINTS.items()]
    return "\n".join(["| point | axes | where | what |", "|---|---|---|---|", *rows])


def surface():
    """Every public name and the first line of its docstring."""
    import minitx
    first = {name: (getattr(minitx, name).__doc__ or "").strip().splitlines()[0] for name in minitx.__all__
             if name != "POINTS"}
    first["POINTS"] = "the table below as a dictionary: name -> (axes, meaning)"
    rows = [f"| `minitx.{name}` | {first[name]} |" for name in minitx.__all__]
    return "\n".join(["| name | what |", "|---|---|", *rows])


def experiments():
    """Every experiment of the registry."""
    from analysis import experiments as _  # noqa: F401  (fills the registry)
    from analysis.registry import markdown
    return markdown()


def checkpoints():
    """The bundled checkpoints (how their cards begin) and the hub names with an explanation."""
    import weights
    cards = {name: (ROOT / "weights" / name / "README.md").read_text(encoding="utf-8") for name in weights.bundled()}
    rows = [f"| `{name}` | bundled | {_beginning(card)} |" for name, card in cards.items()]
    rows += [f"| `{name}` | `minitx fetch {name}` | {about} |" for name, (_, about) in weights.KNOWN.items()]
    return "\n".join(["| name | where from | what for |", "|---|---|---|", *rows])


def speed():
    """What the newest run of `make bench` measured of what was wanted."""
    newest = max((ROOT / "benchmarks/results").glob("*.md"), key=lambda path: path.stem)
    machine, _, rest = newest.read_text(encoding="utf-8").partition("## What was wanted\n\n")
    name = newest.relative_to(ROOT)
    about = machine.split("\n\n")[1].partition("; two threads")[0]
    return f"{about} ([{name}]({name})):\n\n{rest.partition(chr(10) * 2)[0]}"


def _beginning(card):
    """A model card's text up to its first colon or full stop."""
    body = next(part for part in card.split("\n\n") if not part.startswith(("#", "---")))
    return re.split(r"[.:]\s", " ".join(body.split()))[0]


PARTS = {f.__name__: f for f in (points, surface, experiments, checkpoints, speed)}


def filled(text):
    """README text with each `<!-- name -->` … `<!-- end -->` part made anew."""
    for name, make in PARTS.items():
        found = rf"(<!-- {name} -->\n).*?(<!-- end -->)"
        if not re.search(found, text, re.S):
            raise ValueError(f"README.md has no part <!-- {name} --> … <!-- end -->")
        text = re.sub(found, lambda part: f"{part[1]}{make()}\n{part[2]}", text, flags=re.S)
    return text


if __name__ == "__main__":
    readme = ROOT / "README.md"
    new = filled(readme.read_text(encoding="utf-8"))
    readme.with_suffix(".tmp").write_text(new, encoding="utf-8")
    os.replace(readme.with_suffix(".tmp"), readme)
