"""Executes a lesson and makes a page of it.

    python -m minitx.lessons.build 3 [--lang ja] --out FOLDER

writes FOLDER/03-name.ipynb with its outputs and FOLDER/html/03-name.html. Needs the extra `docs`.
Order: the page, its parts, how cells are executed, the command.
"""

import argparse
import copy
import io
import json
import shutil
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

from minitx.analysis.runner.files import write

from . import notebook
from .sphinx import SETTINGS

NEEDED = "sphinx", "myst_nb", "furo", "nbclient", "ipykernel"
TIMEOUT = 300  # seconds for one cell
MISSING = 'pages need {}, which the extra `docs` installs: pip install "minitx[docs]"'


def page(lesson, out):
    """Execute a lesson, write its notebook and its page into `out`, return the page's path.

    Raises ModuleNotFoundError if a package is missing, and Failed if a cell fails.
    """
    check_packages()
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    executed = execute(lesson.notebook, f"lesson {lesson.number}")
    text = json.dumps(executed, indent=1, ensure_ascii=False) + "\n"
    write(out / f"{lesson.name}.ipynb", text)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "source"
        source.mkdir()
        write(source / f"{lesson.name}.ipynb", text)
        built(source, Path(folder) / "html", lesson)
        shutil.copytree(Path(folder) / "html", out / "html", dirs_exist_ok=True)
    return out / "html" / f"{lesson.name}.html"


def check_packages():
    """Raise ModuleNotFoundError if a package that pages need is missing."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise ModuleNotFoundError(MISSING.format(", ".join(missing)))


def built(source, out, lesson):
    """The page of a folder that holds one notebook; raises ValueError with Sphinx's warnings."""
    from sphinx.application import Sphinx

    settings = SETTINGS | {"project": "minitx", "root_doc": lesson.name}
    settings |= {"language": lesson.language, "html_title": f"{lesson.number}. {lesson.title}"}
    warnings = io.StringIO()
    how = {"confoverrides": settings, "status": None, "warning": warnings}
    app = Sphinx(source, None, out, source.parent / "doctrees", "html", **how)
    app.build(force_all=True)
    text = warnings.getvalue().strip()
    if text:
        raise ValueError(f"lesson {lesson.number}: {text}")


class Failed(ValueError):
    """A cell of a notebook raised an error."""


def execute(unexecuted, name):
    """A notebook (a dictionary) with the outputs of its cells, each executed in a new kernel.

    The kernel's working folder is an empty one that is removed. Raises Failed, with `name`, the
    cell and its traceback.
    """
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError
    from traitlets.config import Config

    node = nbformat.from_dict(copy.deepcopy(unexecuted))
    with tempfile.TemporaryDirectory() as folder:
        # files in place of ports, which others on this machine could listen to
        config = Config({"KernelManager": {"transport": "ipc", "ip": f"{folder}/kernel"}})
        resources = {"metadata": {"path": folder}}
        client = NotebookClient(node, config=config, timeout=TIMEOUT, resources=resources)
        try:
            client.execute()
        except (CellExecutionError, CellTimeoutError) as error:
            raise Failed(f"{name}: {error}") from None
    for cell in node.cells:
        cell.metadata.pop("execution", None)  # times of day, which differ each time
    return json.loads(nbformat.writes(node))


def main(argv=None):
    """Build one lesson; exit code 1 if a cell fails or Sphinx warns."""
    parser = argparse.ArgumentParser("python -m minitx.lessons.build", description=__doc__)
    parser.add_argument("number", type=int)
    parser.add_argument("--lang", default="en", choices=notebook.LANGUAGES)
    parser.add_argument("--out", required=True)
    arguments = parser.parse_args(argv)
    start = time.monotonic()
    try:
        path = page(notebook.get(arguments.number, arguments.lang), arguments.out)
    except (ValueError, ModuleNotFoundError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{path} written in {time.monotonic() - start:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
