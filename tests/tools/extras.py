"""Each extra alone: the wheel with it in a new environment, and what the extra is for.

    python tests/tools/extras.py [EXTRA ...] [--python PROGRAM] [--wheel FILE]

Without names: no extra (none), then every extra but the LARGE ones. The command an extra is for
is run twice: without any extra, where a command of minitx has to name the one it needs, and with
this one alone, where it has to work. Prints a table: packages beside minitx, MB of all files,
seconds to install and to run. Exit code 0 only if all is so. Needs a package index.
"""

import argparse
import contextlib
import functools
import http.server
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

import dist
import make_japanese
import make_pieces

ROOT = dist.ROOT
LARGE = "torch", "bench"  # gigabytes: only where they are named
NONE = "none"
LIMIT = 1200  # seconds of a command
FEW = "--documents 4 --tokens 32 --out out"
READ = f"minitx run profiles tiny-roberta {FEW} --text "
CUT = """
from pathlib import Path
from minitx.words.text import Tokenizer
print(Tokenizer(Path({!r}), {!r}).encode({!r}))
"""
SERVED = """
import subprocess, sys, urllib.request
command = "minitx", "serve", "tiny-gpt2", "--port", "0", "--no-browser"
with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
    address = next((x for line in server.stdout for x in line.split() if "http:" in x), None)
    if address:
        print(len(urllib.request.urlopen(address, timeout=60).read()), "bytes")
    server.terminate()
sys.exit(address is None)
"""
SEEN = """
import shutil
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright
program = shutil.which("chromium") or shutil.which("google-chrome")
with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
    page = browser.new_page()
    page.set_content("<html lang=en><title>a</title><main><h1>a</h1></main></html>")
    print(Axe().run(page).violations_count, "violations")
    browser.close()
"""


def python(code):
    return shlex.join(["python", "-c", code])


USES = {  # extra -> a command that is what it is for
    NONE: READ + "sample.txt",
    "parquet": READ + "sample.parquet",
    "zstd": READ + "sample.jsonl.zst",
    "remote": READ + "http://127.0.0.1:{port}/sample.txt",
    "japanese": python(CUT.format("japanese", "bert", "京都の手紙")),
    "sentencepiece": python(CUT.format(str(make_pieces.HERE / "marian"), "marian", "a letter")),
    "images": "minitx explore tiny-vit picture.png --out out",
    "docs": "minitx lesson 1 --no-browser --out out",
    "live": python(SERVED),
    "dask": READ + "sample.txt --workers 2",
    "ica": f"minitx run components tiny-roberta --method ica {FEW}",
    "tsne": "minitx run joint-space tiny-roberta --method tsne --documents 4 --out out",
    "umap": "minitx run joint-space tiny-roberta --method umap --documents 4 --out out",
    "completion": "minitx --print-completion bash",
    "test": f"python -m pytest -p no:cacheprovider {ROOT}/tests/core/test_kernels.py",
    "lint": f"ruff check --no-cache {ROOT}/minitx",
    "browser": python(SEEN),
    "torch": "minitx record tiny-bert --text sample.txt --out reference.safetensors",
    "bench": python("import onnxruntime, onnxscript, transformer_lens"),
}
FOR_ALL = NONE, "images"  # works anywhere: matplotlib brings Pillow along
NOT_MINITX = "test", "lint", "browser", "bench"  # no command of minitx needs them


class Ended(NamedTuple):
    status: int
    said: str  # on both streams
    seconds: float


def main(argv=None):
    names = [name for name in USES if name not in LARGE]
    new = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    new.add_argument("extras", nargs="*", metavar="EXTRA", default=names)
    new.add_argument("--python", default=sys.executable, help="of the environments")
    new.add_argument("--wheel", type=Path, help="in place of one that is built")
    args = new.parse_args(argv)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = args.wheel.resolve() if args.wheel else dist.main(folder / "dist")[0]
        without = Environment(folder / NONE, args.python, wheel)
        print("| extra | packages | MB | s to install | s to run | with it | without it |")
        print("|---|---|---|---|---|---|---|", flush=True)
        faults = [tried(extra, without, folder / extra) for extra in args.extras]
    return 1 if any(faults) else 0


def tried(extra, without, folder):
    """Print the row of an extra, and return whether something in it is a fault."""
    here = without if extra == NONE else Environment(folder, without.program, without.wheel, extra)
    missing, ended = without.run(extra), here.run(extra)
    outcome = "works" if ended.status == 0 else f"**fails**: {last(ended.said)}"
    numbers = here.megabytes(), here.seconds, ended.seconds
    cells = [str(here.packages()), *(f"{x:.0f}" for x in numbers), outcome, said(extra, missing)]
    print("|", " | ".join([extra, *cells]), "|", flush=True)
    return ended.status != 0 or cells[-1].startswith("**")


def said(extra, missing):
    """What is to be said of a command that ran without its extra."""
    if missing.status == 0:
        return "works" if extra in FOR_ALL else "works, too"
    if extra in NOT_MINITX or f"minitx[{extra}]" in last(missing.said):
        return "is named" if extra not in NOT_MINITX else "fails"
    return f"**not named**: {last(missing.said)}"


def last(text):
    return (text.strip().splitlines() or [""])[-1][:200]


class Environment:
    """A new environment with the wheel, and with one of its extras or none."""

    def __init__(self, folder, program, wheel, extra=NONE):
        self.folder, self.program, self.wheel = folder, program, wheel
        begin = time.monotonic()
        checked(program, "-m", "venv", "--without-pip", folder)
        wanted = str(wheel) if extra == NONE else f"{wheel}[{extra}]"
        pip = sys.executable, "-m", "pip", "--python", folder / "bin/python"
        checked(*pip, "install", "--quiet", "--disable-pip-version-check", wanted)
        self.seconds = time.monotonic() - begin

    def packages(self):
        """How many there are beside minitx."""
        return len([*self.folder.glob("lib/*/site-packages/*.dist-info")]) - 1

    def megabytes(self):
        """Of all files that were installed, links left out."""
        files = [x for x in self.folder.rglob("*") if x.is_file() and not x.is_symlink()]
        return sum(x.stat().st_size for x in files) / 1e6

    def run(self, extra):
        """How the command of an extra ends here, in a new folder with the files it names."""
        with tempfile.TemporaryDirectory() as name, files(Path(name)) as port:
            env = os.environ | {"PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}"}
            command = shlex.split(USES[extra].replace("{port}", str(port)))
            begin = time.monotonic()
            pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
            if not shutil.which(command[0], path=env["PATH"]):
                return Ended(127, f"no program {command[0]}", 0)
            done = subprocess.run(command, cwd=name, env=env, timeout=LIMIT, check=False, **pipes)
            return Ended(done.returncode, done.stdout, time.monotonic() - begin)


def checked(*command):
    """Run a program, and end with what it said if it fails."""
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{shlex.join(map(str, command))}: {last(done.stderr)}")


@contextlib.contextmanager
def files(folder):
    """Files that the commands name, in a folder; the port on which they are served."""
    furnish(folder)
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """Nothing."""


def furnish(folder):
    """Texts of each kind, a picture, and a Japanese tokenizer."""
    import numpy as np
    import pyarrow
    import pyarrow.parquet
    from matplotlib import image

    try:
        from compression import zstd
    except ImportError:  # before Python 3.14
        from backports import zstd

    shutil.copy(ROOT / "analysis/texts/sample.txt", folder)
    texts = [x for x in (folder / "sample.txt").read_text("utf-8").split("\n\n") if len(x) > 200]
    pyarrow.parquet.write_table(pyarrow.table({"text": texts}), folder / "sample.parquet")
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    (folder / "sample.jsonl.zst").write_bytes(zstd.compress(lines.encode()))
    image.imsave(folder / "picture.png", np.eye(32))
    make_japanese.tokenizer_folder(folder / "japanese", "wordpiece")


if __name__ == "__main__":
    sys.exit(main())
