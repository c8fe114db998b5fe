"""Names and texts beyond ASCII, with line breaks in names, in locales that know neither."""

import os
import shutil
import subprocess
import sys

import pytest

from minitx import weights
from minitx.loading.files import read_json

NAME = "módel\nx"
TEXT = "Café in the 日本 morning, and then he went out of the room."


def run(folder, *arguments, **env):
    """A command in a folder, in a process whose environment has these variables."""
    env = {"LC_ALL": "C", "OPENBLAS_NUM_THREADS": "1", **env}
    kept = {
        key: value for key, value in os.environ.items() if not key.startswith(("LC_", "PYTHON"))
    }
    command = [sys.executable, "-m", "minitx.analysis", *arguments]
    options = {"cwd": folder, "capture_output": True, "timeout": 100}
    path = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(command, env=kept | {"PYTHONPATH": path} | env, check=False, **options)
    return done.returncode, done.stdout, done.stderr.decode()


@pytest.fixture
def folder(tmp_path):
    """A folder with a model and a text whose names are not ASCII."""
    shutil.copytree(weights.find("tiny-roberta"), tmp_path / NAME)
    (tmp_path / "té xt.txt").write_bytes(f"{TEXT}\r\n".encode() * 40)
    return tmp_path


@pytest.mark.parametrize(
    "env", [{}, {"PYTHONIOENCODING": "ascii"}, {"PYTHONUTF8": "1"}], ids=range(3)
)
def test_a_run_does_not_depend_on_the_locale(folder, env):
    """Line ends are of Windows; the results are the same bytes as in UTF-8."""
    options = "--text", "té xt.txt", "--documents", "2", "--tokens", "30", "--out", "ö\nut"
    status, out, errors = run(folder, "run", "profiles", NAME, *options, **env)
    assert status == 0, errors
    assert b"profiles.svg .npz .json written" in out
    record = read_json(folder / "ö\nut/profiles.json")
    assert record["settings"]["model"] == NAME
    assert record["settings"]["text"]["name"] == "té xt.txt"


def test_what_cannot_be_printed_is_escaped_but_not_in_json(folder):
    ascii_ = {"PYTHONIOENCODING": "ascii"}
    status, out, errors = run(folder, "trace", "tiny-roberta", TEXT, **ascii_)
    assert status == 0, errors
    assert out.isascii() and b"\\u" in out
    arguments = "run", "shapes", NAME, "--sentence", TEXT, "--json", "--out", "o"
    status, out, errors = run(folder, *arguments, **ascii_)
    assert (status, out) == (2, b"") and "'ascii' codec can't encode" in errors


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have UTF-8 names in any locale")
def test_arguments_that_the_locale_cannot_read_are_one_line(folder):
    """Without its UTF-8 mode Python has no letters for these bytes."""
    for arguments in (
        ("run", "shapes", "tiny-roberta", "--sentence", TEXT),
        ("run", "profiles", NAME, "--documents", "1"),
        ("trace", "tiny-roberta", TEXT),
    ):
        status, _, errors = run(folder, *arguments, PYTHONUTF8="0")
        assert status == 2
        assert "is not valid UTF-8: " in errors and "set PYTHONUTF8=1" in errors
        assert errors.count("\n") == 1
