"""What was computed, kept from build to build under a hash of all that it was computed from."""

import hashlib
import json
import platform
from functools import cache
from importlib.metadata import version
from pathlib import Path

from minitx.analysis.machine.files import write

ROOT = Path(__file__).parents[1]
# kind -> what it can depend on: files, and all files of folders
SOURCES = {
    "experiment": ("minitx", "weights", "analysis"),
    "page": ("minitx", "weights", "analysis", "lessons/checks", "benchmarks"),
}
# of these, what no experiment reads
NOT_READ = {"experiment": ("analysis/pages", "analysis/live", "analysis/commands")}
PACKAGES = "numpy", "scipy", "matplotlib", "tokenizers"
PROSE = ".md"  # changes no number


@cache
def sources(kind):
    """The hash of every file that a kind can depend on, and of the versions beneath it."""
    state = hashlib.sha256(platform.python_version().encode())
    for package in PACKAGES:
        state.update(f"{package} {version(package)}\n".encode())
    for name, path in files(kind).items():
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        state.update(f"{name} {content}\n".encode())
    return state.hexdigest()


def files(kind):
    """{name: path} of the files that a kind can depend on."""
    every = {}
    for folder in SOURCES[kind]:
        for path in sorted((ROOT / folder).rglob("*")):  # does not follow links
            name = path.relative_to(ROOT).as_posix()
            is_source = path.is_file() and path.suffix != PROSE and "__pycache__" not in path.parts
            if is_source and not name.startswith(NOT_READ.get(kind, ())):
                every[name] = path
    return every


class Kept:
    """Values by their key in a folder of JSON files; `clean` removes those not asked for."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.used = set()

    def path(self, what):
        """The file of a value; what: its kind, then all that it depends on beside the sources."""
        text = json.dumps([sources(what[0]), what], sort_keys=True)
        path = self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:24]}.json"
        self.used.add(path)
        return path

    def get(self, what):
        """The value that was kept, or None."""
        try:
            return json.loads(self.path(what).read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return None

    def put(self, what, value):
        """Keep a value."""
        write(self.path(what), json.dumps(value, ensure_ascii=False))

    def clean(self):
        """Remove what no page of this build asked for."""
        for path in self.folder.glob("*.json"):
            if path not in self.used:
                path.unlink()
