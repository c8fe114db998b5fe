"""A lesson's file, NN-name.md: prose and cells of code, in MyST Markdown.

    ---
    file_format: mystnb
    kernelspec: {name: python3}
    question: Is a transformer "attention only"?
    live: tiny-roberta
    ---
    # 1. One stream, two writers

    Prose.

    ```{code-cell} python
    :tags: [hide-cell]
    1 + 1
    ```

The translation in ja/ has prose of its own and, for each cell of code, an empty one: the code has
one source. Order: the cells of a text, a lesson, all lessons.
"""

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import yaml

FOLDER = Path(__file__).parent
LANGUAGES = {"en": "English", "ja": "日本語"}  # the first has the code
HEAD = re.compile(r"\A---\n(.*?)^---\n", re.M | re.S)
FENCE = re.compile(r"^(`{3,})\{code-cell\}[^\n]*\n(.*?)^\1[ \t]*$\n?", re.M | re.S)
BREAK = re.compile(r"^\+\+\+.*$\n?", re.M)  # between two cells of prose
OPTION = re.compile(r"\A(?::[\w-]+:.*\n)+")  # lines `:tags: [hide-cell]` at the top of a cell
FOLDED = {  # what a page calls a folded cell; English: minitx.lessons.sphinx
    "ja": {"code_prompt_show": "コードを表示", "code_prompt_hide": "コードを隠す"},
}
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


class Cell(NamedTuple):
    """One cell of a notebook."""

    kind: str  # "markdown" or "code"
    source: str
    metadata: dict


def head(text):
    """What a file says of itself, above its prose: {name: value}."""
    match = HEAD.match(text)
    return yaml.safe_load(match[1]) if match else {}


def cells(text):
    """The cells of a file, in order."""
    body, end = HEAD.sub("", text), 0
    every = []
    for fence in FENCE.finditer(body):
        every += _prose(body[end : fence.start()])
        every.append(_code(fence[2]))
        end = fence.end()
    return every + _prose(body[end:])


def _prose(text):
    """The cells of a piece of prose, without empty ones."""
    return [Cell("markdown", part.strip(), {}) for part in BREAK.split(text) if part.strip()]


def _code(text):
    """The cell of what stands in a fence: options, then code."""
    match = OPTION.match(text)
    options = match[0] if match else ""
    metadata = {}
    for line in options.splitlines():
        _, name, value = line.split(":", 2)
        metadata[name] = yaml.safe_load(value)
    return Cell("code", text[len(options) :].strip("\n"), metadata)


def filled(translated, original):
    """The cells of a translation, its empty cells of code filled from the original's, in order.

    Raises ValueError if they are not as many, or one of them is not empty.
    """
    code = [cell for cell in original if cell.kind == "code"]
    places = [cell for cell in translated if cell.kind == "code"]
    if len(code) != len(places):
        raise ValueError(f"{len(places)} cells of code in the translation; wanted {len(code)}")
    for place in places:
        if place.source:
            raise ValueError(f"a cell of code in the translation is not empty: {place.source!r}")
    sources = iter(code)
    return [next(sources) if cell.kind == "code" else cell for cell in translated]


def as_notebook(parts, language="en"):
    """Cells as the dictionary that an .ipynb holds, in format 4.5."""
    entries = []
    for i, cell in enumerate(parts):
        entry = {"cell_type": cell.kind, "id": f"cell-{i}", "metadata": cell.metadata}
        entry["source"] = cell.source
        if cell.kind == "code":
            entry |= {"execution_count": None, "outputs": []}
        entries.append(entry)
    metadata = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    if language in FOLDED:
        metadata["mystnb"] = FOLDED[language]
    return {"cells": entries, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


@dataclass(frozen=True)
class Lesson:
    """One lesson in one language.

    `.number`, `.title` (without the number), `.question`, `.live` (a model's name, or ""),
    `.after` (numbers of the lessons that it takes up), `.notebook` (what an .ipynb of it holds, not
    executed).
    """

    path: Path
    language: str = "en"

    @property
    def name(self):
        """The name of its file without the ending."""
        return self.path.stem

    @property
    def number(self):
        return int(self.name.partition("-")[0])

    @cached_property
    def text(self):
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def head(self):
        return head(self.text)

    @property
    def question(self):
        return self.head.get("question", "")

    @property
    def live(self):
        return self.head.get("live", "")

    @property
    def after(self):
        """Numbers of lessons, as the head of the original names them: a translation has none."""
        text = (FOLDER / self.path.name).read_text(encoding="utf-8")
        return tuple(head(text).get("after", ()))

    @property
    def title(self):
        """Its heading, without the number."""
        heading = re.search(r"^# (?:\d+\. )?(.*)$", HEAD.sub("", self.text), re.M)
        if heading is None:
            raise ValueError(f"{self.path.name} has no heading `# N. Title`")
        return heading[1]

    @property
    def cells(self):
        """Its cells; a translation's code is the original's."""
        if self.language == "en":
            return cells(self.text)
        original = FOLDER / self.path.name
        if not original.is_file():
            raise ValueError(f"{self.path} is a translation of {original.name}, which is missing")
        try:
            return filled(cells(self.text), cells(original.read_text(encoding="utf-8")))
        except ValueError as error:
            raise ValueError(f"{self.language}/{self.path.name}: {error}") from None

    @property
    def notebook(self):
        return as_notebook(self.cells, self.language)


def every(language="en"):
    """The lessons in a language, by number."""
    if language not in LANGUAGES:
        raise ValueError(f"language is {language!r}; wanted {' or '.join(LANGUAGES)}")
    folder = FOLDER if language == "en" else FOLDER / language
    return [Lesson(path, language) for path in sorted(folder.glob("[0-9][0-9]-*.md"))]


def get(number, language="en"):
    """The lesson with this number; raises ValueError with those that there are."""
    lessons = {lesson.number: lesson for lesson in every(language)}
    if number not in lessons:
        numbers = ", ".join(map(str, lessons)) or "none"
        raise ValueError(
            f"there is no lesson {number} in {LANGUAGES[language]}; available: {numbers}"
        )
    return lessons[number]
