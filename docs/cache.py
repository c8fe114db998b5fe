"""What was computed, kept from build to build under a hash of all that it was computed from."""

import hashlib
import json
import platform
from functools import cache
from importlib.metadata import version
from pathlib import Path

from minitx.analysis.runner.files import write

ROOT = Path(__file__).parents[1]
FOLDERS = "minitx", "analysis", "weights", "lessons"
PACKAGES = "numpy", "scipy", "matplotlib", "tokenizers"
PROSE = ".md"  # of these folders changes no number


@cache
def sources():
    """The hash of every file that code can depend on, and of the versions beneath it."""
    state = hashlib.sha256(platform.python_version().encode())
    for package in PACKAGES:
        state.update(f"{package} {version(package)}\n".encode())
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):  # does not follow links
            if path.is_file() and path.suffix != PROSE and "__pycache__" not in path.parts:
                content = hashlib.sha256(path.read_bytes()).hexdigest()
                state.update(f"{path.relative_to(ROOT)} {content}\n".encode())
    return state.hexdigest()


class Kept:
    """Values by their key in a folder of JSON files; `clean` removes those not asked for."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.used = set()

    def path(self, what):
        """The file of a value; what: all that it depends on beside the sources."""
        text = json.dumps([sources(), what], sort_keys=True)
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
