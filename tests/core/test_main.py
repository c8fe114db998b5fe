"""`python -m minitx` is the command line, and `import minitx` does not load it."""

import os
import subprocess
import sys
from pathlib import Path

import minitx

ROOT = Path(__file__).parents[2]


def python(*words):
    """What a Python of its own prints, and its exit code."""
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, *words], text=True, capture_output=True, env=env, cwd=ROOT, check=False
    )
    return done.stdout, done.stderr, done.returncode


def test_the_package_is_run_as_its_command():
    assert python("-m", "minitx", "--version") == (f"minitx {minitx.__version__}\n", "", 0)
    assert python("-m", "minitx", "list") == python("-m", "minitx.analysis", "list")
    out, error, code = python("-m", "minitx", "trace", "no-such-model", "a text")
    assert (out, code) == ("", 2) and error.startswith("minitx: ")


def test_import_loads_no_part_of_the_command_line():
    code = "import sys, minitx; print([n for n in sys.modules if n.startswith('minitx.analysis')])"
    assert python("-c", code) == ("[]\n", "", 0)
