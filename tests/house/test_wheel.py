"""A wheel is the same bytes whenever and wherever it is built, as SOURCE_DATE_EPOCH promises."""

import hashlib
import os
import shutil
import subprocess
import sys

import rooms

SKIPPED = ".*", "__pycache__", "*.egg-info", "report", "out", "build", "dist", "tests"
BUILD = "from setuptools import build_meta; build_meta.build_wheel({!r})"


def built(folder, year):
    """The sha256 of the wheel of a copy of the tree, whose files were changed in some year."""
    skip = shutil.ignore_patterns(*SKIPPED)
    tree = shutil.copytree(rooms.ROOT, folder / "minitx", symlinks=True, ignore=skip)
    seconds = (year - 1970) * 365.25 * 24 * 3600
    for path in tree.rglob("*"):
        os.utime(path, (seconds, seconds), follow_symlinks=False)
    env = os.environ | {"SOURCE_DATE_EPOCH": "1700000000"}
    command = [sys.executable, "-c", BUILD.format(str(folder))]
    subprocess.run(command, cwd=tree, env=env, check=True, capture_output=True, timeout=200)
    [wheel] = folder.glob("*.whl")
    return hashlib.sha256(wheel.read_bytes()).hexdigest()


def test_a_wheel_is_the_same_bytes_twice(tmp_path):
    """2.8 seconds each. Not so the sdist, whose archive keeps the times of its files."""
    (tmp_path / "elsewhere").mkdir()
    assert built(tmp_path, 2005) == built(tmp_path / "elsewhere", 2024)
