"""Executes a lesson and makes a page of it.

    python -m minitx.lessons.build 3 [--lang ja] --out FOLDER

writes FOLDER/03-name.ipynb with its outputs and FOLDER/html/03-name.html. Needs the extra `docs`.
Order: the page, its parts, how cells are executed, the command.
"""

import argparse
import copy
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import minitx
from minitx.analysis.machine.files import write

from . import notebook
from .sphinx import CONF, STRICT

NEEDED = "sphinx", "myst_nb", "furo", "nbclient", "ipykernel"
TIMEOUT = 300  # seconds for one cell
MISSING = 'a page needs {}, which the extra `docs` installs: pip install "minitx[docs]"'


def page(lesson, out):
    """Execute a lesson, write its notebook and its page into `out`, return the page's path.

    Raises Missing if a package is missing, and Failed if a cell fails.
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
    """Raise Missing if a package that pages need is missing."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise Missing(MISSING.format(", ".join(missing)))


def built(source, out, lesson):
    """Make the page of a folder that holds one notebook; raises ValueError with Sphinx's warnings.

    Sphinx runs in a process of its own: it changes its surroundings for good.
    """
    settings = {"project": "minitx", "root_doc": lesson.name, "language": lesson.language}
    settings["html_title"] = f"{lesson.number}. {lesson.title}"
    lines = [CONF, *(f"{name} = {value!r}" for name, value in settings.items())]
    write(source / "conf.py", "\n".join(lines) + "\n")
    command = [sys.executable, "-m", "sphinx", *STRICT, str(source), str(out)]
    how = {"env": environment(source), "capture_output": True, "text": True}
    done = subprocess.run(command, check=False, **how)
    if done.returncode:
        raise ValueError(f"lesson {lesson.number}: {done.stderr.strip()}")


class Missing(ValueError):
    """A package that pages need."""


class Failed(ValueError):
    """A cell of a notebook raised an error."""


def execute(unexecuted, name):
    """A notebook (a dictionary) with the outputs of its cells, each executed in a new kernel.

    The kernel works in an empty folder that is removed, talks over files in place of ports, and
    finds the commands that are installed beside it. Raises Failed with `name`, the cell and its
    traceback.
    """
    import nbformat
    from nbclient.exceptions import CellExecutionError, CellTimeoutError

    node = nbformat.from_dict(copy.deepcopy(unexecuted))
    # a short path: the name of a socket has at most 104 bytes on macOS
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        try:
            client(node, folder).execute(env=environment(folder), cwd=folder)
        except (CellExecutionError, CellTimeoutError) as error:
            raise Failed(f"{name}: {error}") from None
    for cell in node.cells:
        cell.metadata.pop("execution", None)  # times of day, which differ each time
    return json.loads(nbformat.writes(node))


def client(node, folder):
    """The client whose kernel executes a notebook; its sockets lie in the folder."""
    from nbclient import NotebookClient
    from traitlets.config import Config

    config = Config({"KernelManager": {"transport": "ipc", "ip": f"{folder}/kernel"}})
    return NotebookClient(node, config=config, timeout=TIMEOUT)


def environment(folder):
    """The variables of a kernel: its own settings are in the folder, minitx is the one here."""
    given = os.environ
    paths = [str(Path(minitx.__file__).parents[1]), given.get("PYTHONPATH", "")]
    own = {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    own["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), given.get("PATH", "")])
    return given | own | dict.fromkeys(("IPYTHONDIR", "JUPYTER_RUNTIME_DIR"), folder)


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
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{path} written in {time.monotonic() - start:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
