"""Pages with code: lessons in each language, how-to pages; executed, and offered as notebooks.

Order: which there are, what is added below a heading, the files that Sphinx reads.
"""

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from minitx import lessons
from minitx.analysis.machine.files import write
from minitx.lessons import notebook
from minitx.lessons.build import execute

PAGES = Path(__file__).parent / "pages"
OFFERS = {"en": "This page as a notebook", "ja": "このレッスンのノートブック"}
LIVE = {
    "en": "Live beside it: `minitx serve {}`",
    "ja": "横で動かす: `minitx serve {}`",
}


@dataclass(frozen=True)
class Page:
    """A page with code: its place without an ending, its cells, what stands below its heading."""

    place: str  # lessons/01-name
    cells: list
    language: str = "en"
    beside: tuple = ()  # Markdown: links to other languages, the live page
    original: str = ""  # the place of the page that has the same code; "": it is this one

    @property
    def notebook(self):
        """What it offers: not executed."""
        return notebook.as_notebook(self.cells, self.language)

    @property
    def code(self):
        """All that its outputs depend on beside the sources."""
        return [cell.source for cell in self.cells if cell.kind == "code"]

    @property
    def executed_as(self):
        """The place of the page whose outputs it shows: a translation is not executed again."""
        return self.original or self.place

    @property
    def name(self):
        return self.place.rpartition("/")[2]


@cache
def every():
    """The pages with code."""
    return [*lesson_pages(), *written_pages()]


def lesson_pages():
    """A Page for each lesson in each language; a translation knows its original and back."""
    places = {}
    for language in notebook.LANGUAGES:
        folder = "lessons" if language == "en" else f"lessons/{language}"
        for lesson in lessons.every(language):
            places[language, lesson.number] = f"{folder}/{lesson.name}", lesson
    for (language, number), (place, lesson) in places.items():
        others = []
        for other, called in notebook.LANGUAGES.items():
            if other != language and (other, number) in places:
                others.append(f"[{called}](/{places[other, number][0]}.ipynb)")
        if lesson.live:
            others.append(LIVE[language].format(lesson.live))
        original = places["en", number][0]
        yield Page(place, lesson.cells, language, tuple(others), original)


def written_pages():
    """A Page for each file of pages/ that has cells of code."""
    for path in sorted(PAGES.rglob("*.md")):
        cells = notebook.cells(path.read_text(encoding="utf-8"))
        if any(cell.kind == "code" for cell in cells):
            yield Page(path.relative_to(PAGES).with_suffix("").as_posix(), cells)


def executed(page):
    """The outputs of a page's cells of code, in order."""
    ran = execute(page.notebook, page.place)
    return [cell["outputs"] for cell in ran["cells"] if cell["cell_type"] == "code"]


def write_page(page, outputs, source):
    """Write a page as Sphinx reads it into the folder `source`, and beside it what it offers."""
    path = source / f"{page.place}.ipynb"
    offered = path.parent / "notebooks" / path.name
    offered.parent.mkdir(parents=True, exist_ok=True)
    write(offered, json.dumps(page.notebook, indent=1, ensure_ascii=False) + "\n")
    filled = page.notebook
    counted = [cell for cell in filled["cells"] if cell["cell_type"] == "code"]
    for n, (cell, shown) in enumerate(zip(counted, outputs, strict=True), 1):
        cell |= {"outputs": shown, "execution_count": n}
    first = filled["cells"][0]
    first["source"] = below_heading(first["source"], header(page))
    for cell in filled["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = linked(cell["source"], path.parent, source)
    write(path, json.dumps(filled, ensure_ascii=False))


def linked(text, folder, source):
    """A page's Markdown with its links to pages with code, which Sphinx reads as notebooks."""
    places = {page.place for page in every()}

    def link(match):
        target = (folder / match[1]).resolve().relative_to(source.resolve())
        ending = ".ipynb" if target.as_posix() in places else ".md"
        return f"]({match[1]}{ending}{match[2] or ''})"

    return re.sub(r"\]\(((?:\.\./)*[\w/-]+)\.md(#[\w-]+)?\)", link, text)


def header(page):
    """The line below a heading: the notebook, other languages, the live page."""
    offer = f"{{download}}`{OFFERS[page.language]} <notebooks/{page.name}.ipynb>`"
    return " · ".join([offer, *page.beside])


def below_heading(text, line):
    """A text with a line below its heading."""
    heading, _, rest = text.partition("\n")
    return f"{heading}\n\n:::{{container}} offers\n{line}\n:::\n{rest}"
