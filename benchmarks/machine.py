"""What was measured on: machine, BLAS and its kernels, versions, sizes on disk."""
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


def described(threads):
    """The facts and their line of a peer's process: its environment, so many threads."""
    code = "import json; from analysis import doctor; f = doctor.describe(); print(json.dumps([f, doctor.line(f)]))"
    said = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=rounds.environment(threads), check=True,
                          capture_output=True, text=True).stdout
    facts, line = json.loads(said)
    return {"line": line, **{key: facts[key] for key in ("kernels", "cores", "vectors", "family")}}


def versions():
    """{distribution: version} of every system; None for what is not installed."""
    names = dict.fromkeys(name for peer in peers.PEERS.values() for name in peer.packages if name != "minitx")
    return {name: _version(name) for name in names}


def _version(name):
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def commit():
    """The commit that is measured, with a + where files differ from it; None outside a repository."""
    try:
        told = [subprocess.run(["git", *args], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()
                for args in (("rev-parse", "--short", "HEAD"), ("status", "--porcelain", "-uno"))]
    except (OSError, subprocess.CalledProcessError):
        return None
    return told[0] + "+" * bool(told[1])


def today():
    """The date as the results' files are called."""
    return datetime.date.today().isoformat()


def installed():
    """{what: bytes on disk} of each system with all that it requires."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    wanted = {_name(line) for line in config["options"]["install_requires"].split("\n") if line}
    own = sum(path.stat().st_size for name in ("minitx", "analysis", "weights")
              for path in (ROOT / name).rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    core = sum(path.stat().st_size for path in (ROOT / "minitx").glob("*.py"))
    found = {"minitx, its core (numpy, safetensors, tokenizers)": core + sum(map(size, CORE)),
             "minitx with analyses, figures and downloads": own + sum(map(size, closure(wanted)))}
    for name, roots in (("torch and transformers", ("torch", "transformers")), ("onnxruntime", ("onnxruntime",)),
                        ("transformer-lens", ("transformer-lens",))):
        found[name] = sum(map(size, closure(roots))) if all(map(_version, roots)) else None
    return found


def closure(roots):
    """These distributions and all that they require, extras left out, of those that are installed."""
    found, left = set(), [_name(root) for root in roots]
    while left:
        name = left.pop()
        if name in found or not _version(name):
            continue
        found.add(name)
        left += [_name(line) for line in metadata.requires(name) or () if "extra ==" not in line]
    return found


def _name(requirement):
    """The distribution of a requirement, as all spellings of it compare."""
    return re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", requirement)[0]).lower()


def size(name):
    """Bytes of a distribution's files; 0 if it is not installed."""
    try:
        files = metadata.files(name) or ()
    except metadata.PackageNotFoundError:
        return 0
    paths = (Path(file.locate()) for file in files)
    return sum(path.stat().st_size for path in paths if path.is_file())
