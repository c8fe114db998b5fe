"""The command `minitx lesson`: lists the lessons, or opens one.

Order: the command, the list, where a lesson's page is.
"""

import sys
import webbrowser
from pathlib import Path

from minitx.analysis.machine.files import as_json, writable_file, write
from minitx.analysis.machine.language import filled, translated

from . import build, notebook

ROOT = Path(__file__).resolve().parents[1]
LAST = "minitx lesson NUMBER opens one; --notebook FILE writes it as a notebook"
BUILT = ROOT / "docs/_build/html/lessons"  # in a checkout in which `make docs` ran


def run(number, language, file=None, out=None, browser=True):
    """Print the lessons, or write and open the one with this number.

    file: write its notebook there, not executed, and nothing else. out: folder for a page that
    has to be built, or for the notebook where packages that pages need are missing. browser: open
    the page.
    """
    if number is None:
        print(listed(language))
        return
    lesson = notebook.get(number, language)
    if file is not None:
        return write_notebook(lesson, file)
    folder = Path(out or Path("out") / "lessons")
    try:
        path = page(lesson, folder)
    except build.Missing as error:
        print(error, file=sys.stderr)
        return write_notebook(lesson, folder / f"{lesson.name}.ipynb")
    print(f"{lesson.number}. {lesson.title}\n{path}")
    if lesson.live:
        print(filled("live beside it: minitx serve {model}", model=lesson.live))
    if browser:
        webbrowser.open(path.resolve().as_uri())


def write_notebook(lesson, file):
    """Write a lesson as a notebook that was not executed, and say so."""
    write(writable_file(file), as_json(lesson.notebook) + "\n")
    n, title = lesson.number, lesson.title
    print(filled("{file} written: lesson {n}, {title}", file=file, n=n, title=title))


def listed(language):
    """A line for each lesson: its number, its title, its question."""
    lines = []
    for lesson in notebook.every(language):
        lines.append(f"{lesson.number:2}  {lesson.title}\n    {lesson.question}")
    return "\n".join([*lines, "", translated(LAST)])


def page(lesson, out):
    """The path of a lesson's page: that of the built documentation, or built now into `out`."""
    folder = BUILT if lesson.language == "en" else BUILT / lesson.language
    built = folder / f"{lesson.name}.html"
    if is_fresh(built, lesson):
        return built
    build.check_packages()
    print(filled("executing lesson {n} …", n=lesson.number), file=sys.stderr)
    return build.page(lesson, out)


def is_fresh(built, lesson):
    """Whether a built page is there and newer than the lesson's files."""
    sources = [lesson.path, notebook.FOLDER / lesson.path.name]
    return built.is_file() and built.stat().st_mtime > max(x.stat().st_mtime for x in sources)
