"""Every document, and the `minitx …` lines that it shows, in blocks or between backticks."""

import re
import shlex

import rooms

DOCUMENTS = "analysis", "weights", "minitx", "benchmarks", "tests", "lessons", "docs/pages"
# what was measured on a day, in the words of that day; texts that models read
OLD = "benchmarks/results", "analysis/texts"


def documents():
    """Every document that shows commands, by its path from the root: {name: text}."""
    paths = [*rooms.ROOT.glob("*.md")]
    for folder in DOCUMENTS:
        paths += (rooms.ROOT / folder).rglob("*.md")
    names = {path.relative_to(rooms.ROOT).as_posix(): path for path in sorted(paths)}
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


def lines(texts):
    """Every distinct line of {document: text}, with the documents that show it."""
    shown = {}
    for name, text in texts.items():
        for line in (*in_blocks(text), *in_prose(text)):
            shown.setdefault(without_shell(line), {})[name] = True
    return {line: [*names] for line, names in shown.items()}


def without_shell(line):
    """A line without its comment, and without what a shell does with what it prints."""
    return re.split(r"\s+(?:#|\||>|2>|&&)", line)[0]


def split(line):
    return shlex.split(line)[1:]
