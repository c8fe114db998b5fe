"""The measured machine: its BLAS and kernels, versions of the systems, sizes on disk."""

import configparser
import datetime
import json
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from . import peers, rounds

ROOT = Path(__file__).parents[1]
CORE = "numpy", "safetensors", "tokenizers"  # what loading, running and generating imports


DESCRIBE = """
import json
from minitx.analysis.machine import doctor
facts = doctor.describe()
print(json.dumps([facts, doctor.line(facts)]))
"""


def described(threads):
    """The facts and their line, as a peer's process with this number of threads has them."""
    command = [sys.executable, "-c", DESCRIBE]
    env = rounds.environment(threads)
    done = subprocess.run(command, cwd=ROOT, env=env, check=True, capture_output=True, text=True)
    facts, line = json.loads(done.stdout)
    return {"line": line, **{key: facts[key] for key in ("kernels", "cores", "vectors", "family")}}


def kind(facts):
    """The kind of machine, as in the names of the results' files: processor and cores."""
    name = facts["family"] or facts["line"].partition(",")[0]
    words = re.findall(r"[a-z0-9]+", f"{name} {facts['cores']} cores".lower())
    return "-".join(words)


def versions():
    """{distribution: version} of every system; None for what is not installed."""
    packages = [name for peer in peers.PEERS.values() for name in peer.packages]
    return {name: _version(name) for name in dict.fromkeys(packages) if name != "minitx"}


def _version(name):
    """The version of a distribution; None if it is not installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def commit():
    """The measured commit, with a + if files differ from it; None outside a repository."""
    try:
        head = _git("rev-parse", "--short", "HEAD")
        changes = _git("status", "--porcelain", "-uno")
    except (OSError, subprocess.CalledProcessError):
        return None
    return f"{head}+" if changes else head


def _git(*arguments):
    """What git prints about this repository."""
    command = ["git", *arguments]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def today():
    """The date, as in the names of the results' files."""
    return datetime.date.today().isoformat()


def installed():
    """{system: bytes on disk} of each system with all that it requires."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    required = {_name(line) for line in config["options"]["install_requires"].split("\n") if line}
    core = sum(path.stat().st_size for path in (ROOT / "minitx").rglob("*.py"))
    sizes = {
        "minitx, its core (numpy, safetensors, tokenizers)": core + sum(map(size, CORE)),
        "minitx with analyses, figures and downloads": own_size() + whole_size(required),
    }
    for name, roots in (
        ("torch and transformers", ("torch", "transformers")),
        ("onnxruntime", ("onnxruntime",)),
        ("transformer-lens", ("transformer-lens",)),
    ):
        sizes[name] = whole_size(roots) if all(map(_version, roots)) else None
    return sizes


def own_size():
    """Bytes of this project's own files."""
    paths = [
        path for name in ("minitx", "analysis", "weights") for path in (ROOT / name).rglob("*")
    ]
    paths = [path for path in paths if path.is_file() and "__pycache__" not in path.parts]
    return sum(path.stat().st_size for path in paths)


def whole_size(roots):
    """Bytes of these distributions and all that they require."""
    return sum(map(size, closure(roots)))


def closure(roots):
    """These distributions and all that they require, of those that are installed; no extras."""
    names, left = set(), [_name(root) for root in roots]
    while left:
        name = left.pop()
        if name in names or not _version(name):
            continue
        names.add(name)
        left += [_name(line) for line in metadata.requires(name) or () if "extra ==" not in line]
    return names


def _name(requirement):
    """The distribution of a requirement, in the spelling by which names are compared."""
    return re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", requirement)[0]).lower()


def size(name):
    """Bytes of a distribution's files; 0 if it is not installed."""
    try:
        files = metadata.files(name) or ()
    except metadata.PackageNotFoundError:
        return 0
    paths = (Path(file.locate()) for file in files)
    return sum(path.stat().st_size for path in paths if path.is_file())
