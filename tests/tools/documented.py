"""The `minitx …` lines of the documents: `python tests/tools/documented.py` prints them.

A line stands in a block of code, or between backticks in the text. Order: the documents, their
lines, how a shell reads one.
"""

import re
import shlex
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = "analysis", "weights", "minitx", "benchmarks", "tests", "lessons", "docs/pages"
# what was measured on a day, in the words of that day; texts that models read
OLD = "benchmarks/results", "analysis/texts"


def documents():
    """Every document that shows commands, by its path from the root: {name: text}."""
    paths = [*ROOT.glob("*.md")]
    for folder in FOLDERS:
        paths += (ROOT / folder).rglob("*.md")
    names = {path.relative_to(ROOT).as_posix(): path for path in sorted(paths)}
    return {
        name: path.read_text(encoding="utf-8")
        for name, path in names.items()
        if not name.startswith((*OLD, "CHANGELOG"))
    }


def in_blocks(text):
    """The lines of a document's blocks of code, each whole where it goes on with a backslash."""
    for block in re.findall(r"```.*?\n(.*?)```", text, re.S):
        whole = re.sub(r"\\\n\s*", "", block)
        yield from re.findall(r"^ *(?:- run: )?(minitx .*)", whole, re.M)


def in_prose(text):
    """What stands between backticks outside of the blocks, on one line or over two."""
    prose = re.sub(r"```.*?```", "", text, flags=re.S)
    for words in re.findall(r"`(minitx [^`]+)`", prose):
        yield " ".join(words.split())


def lines():
    """Every distinct line with the documents that show it: {line: [name, …]}."""
    shown = {}
    for name, text in documents().items():
        for line in (*in_blocks(text), *in_prose(text)):
            shown.setdefault(without_shell(line), {})[name] = True
    return {line: [*names] for line, names in shown.items()}


def without_shell(line):
    """A line without its comment, and without what a shell does with what it prints."""
    return re.split(r"\s+(?:#|\||>|2>|&&)", line)[0]


def arguments(line):
    """The arguments of a line, as a shell splits it."""
    return shlex.split(line)[1:]


if __name__ == "__main__":
    for line, names in lines().items():
        sys.stdout.write(f"{line:90} {', '.join(names)}\n")
