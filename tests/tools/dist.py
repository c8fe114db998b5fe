"""The files of a release: a wheel and an sdist, the same bytes wherever they are built.

    python tests/tools/dist.py [FOLDER]        writes them, and SHA256SUMS, into dist/

They hold the last commit: what lies beside it in a checkout stays out, such as files of an earlier
build, which setuptools takes along. SOURCE_DATE_EPOCH, if it is set, is the time of every file
inside; else that of the commit. setuptools keeps it in wheels alone, so the sdist is packed again:
members in order, of nobody.
"""

import gzip
import hashlib
import io
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUILD = "from setuptools import build_meta; print(build_meta.build_{}({!r}))"
KINDS = "wheel", "sdist"
SUMS = "SHA256SUMS"


def main(folder):
    """Build both, and say what they are; their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as tree:
        export(ROOT, tree)
        files = build(tree, folder.resolve(), epoch())
    sums = "".join(f"{hashlib.sha256(x.read_bytes()).hexdigest()}  {x.name}\n" for x in files)
    (folder / SUMS).write_text(sums, encoding="utf-8")
    for file in files:
        print(f"{file} {file.stat().st_size / 1e6:.1f} MB")
    return files


def export(checkout, tree):
    """Write the last commit of a checkout into a folder."""
    command = ["git", "archive", "--format=tar", "HEAD"]
    done = subprocess.run(command, cwd=checkout, stdout=subprocess.PIPE, check=True)
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(tree, filter="data")


def epoch():
    """The time of the files of a release, in seconds since 1970."""
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        if not given.isdecimal():
            sys.exit(f"SOURCE_DATE_EPOCH is {given!r:.80}; wanted seconds since 1970")
        return int(given)
    command = ["git", "log", "-1", "--format=%ct"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return int(done.stdout)


def build(tree, folder, seconds, kinds=KINDS):
    """The files of these kinds of a tree, as paths in a folder."""
    files = []
    for kind in kinds:
        command = [sys.executable, "-c", BUILD.format(kind, str(folder))]
        env = os.environ | {"SOURCE_DATE_EPOCH": str(seconds)}
        done = subprocess.run(
            command, cwd=tree, env=env, capture_output=True, text=True, check=False
        )
        if done.returncode:
            sys.exit(f"no {kind}: {done.stderr.strip()[-2000:]}")
        files.append(folder / done.stdout.split()[-1])
        if kind == "sdist":
            files[-1].write_bytes(packed_again(files[-1].read_bytes(), seconds))
    return files


def packed_again(archive, seconds):
    """The bytes of a .tar.gz whose members tell neither when nor by whom they were packed."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as old:
        members = sorted(old.getmembers(), key=lambda member: member.name)
        content = io.BytesIO()
        with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as new:
            for member in members:
                plain = tarfile.TarInfo(member.name)
                plain.size, plain.type, plain.linkname = member.size, member.type, member.linkname
                plain.mtime = seconds
                plain.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
                new.addfile(plain, old.extractfile(member) if member.isfile() else None)
    return gzip.compress(content.getvalue(), mtime=0)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "dist"))
