"""Runs of corpus experiments that are killed, or meet an accident: is anything lost?

    python tests/tools/killed.py [--kills N] [--seed N] [--no-accidents] [EXPERIMENT ...]

Each experiment is run whole once. Then N times: it is started with --resume, and ended by SIGKILL
at a random moment, half of the times just after it has saved a state. After a kill a run is killed
again or, with a chance of 1 in 4 and at the end, goes on to its own end: then its files must have
the bytes of the whole run's. And the accidents: a full disk, a folder that is removed, one that
cannot be written, a second run in the same folder: each must end in one line and exit code 2, and
leave the earlier results as they were. Exit code 0 only if all that holds.

Runs are forked from this process, which has imported everything: so kills hit the work. The full
and the read-only disk are small ones in memory, which root may mount; others get a limit on the
size of a file, and a path below a file. Linux only.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy is imported: a fork has one thread
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import argparse
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import folders
import matplotlib.backends.backend_agg
import matplotlib.backends.backend_svg
import scipy.cluster
import scipy.optimize
import scipy.signal
import scipy.stats
import tokenizers

from minitx.analysis import __main__ as cli
from minitx.analysis import commands
from minitx.analysis.running import stream

EXPERIMENTS = "profiles", "lags", "remove-positions", "probe", "joint-grid"
OPTIONS = "--documents", "24", "--tokens", "16"
OTHER = "--documents", "16", "--tokens", "16"  # an earlier run's
IMPORTED = matplotlib, scipy, tokenizers, commands
ROOM = 0, 0.3, 0.8  # what is free on the full disk, as a share of what a run writes
stream.SAVE_SHARE = 1e9  # a state after every batch


class Ended(NamedTuple):
    status: int  # exit code, or -9
    said: str  # on stderr
    seconds: float


def main(argv=None):
    new = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    new.add_argument("experiments", nargs="*", default=EXPERIMENTS, metavar="EXPERIMENT")
    new.add_argument("--kills", type=int, default=20)
    new.add_argument("--accidents", action=argparse.BooleanOptionalAction, default=True)
    new.add_argument("--seed", type=int, default=1)
    args = new.parse_args(argv)
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        for name in args.experiments:
            faults += killed(name, args.kills, random.Random(f"{args.seed} {name}"), Path(folder))
        for accident in ACCIDENTS * args.accidents:
            lost = accident(args.experiments[0], Path(tempfile.mkdtemp(dir=folder)))
            print(f"{accident.__doc__} {'; '.join(lost) or 'one line, and nothing lost'}")
            faults += lost
    print(*faults, "failed" if faults else "nothing lost", sep="\n")
    return 1 if faults else 0


def killed(name, kills, dice, folder):
    """Kill runs of one experiment at random moments -> what was lost."""
    whole, out, faults = folder / f"{name}-whole", folder / name, []
    duration = ended(started(name, whole)).seconds
    expected, n_resumed, n_compared = contents(whole), 0, 0
    for i in range(1, kills + 1):
        before = states(out)
        run = started(name, out, "--resume")
        if i % 2:
            wait_for_a_state(run, out, before)
            time.sleep(dice.uniform(0, 0.02))
        else:
            time.sleep(dice.uniform(0, duration))
        n_resumed += "going on after" in ended(run, kill=True).said
        if i == kills or dice.random() < 0.25:
            end = ended(started(name, out, "--resume"))
            n_compared += 1
            n_resumed += "going on after" in end.said
            if end.status or contents(out) != expected:
                faults.append(f"{name}, kill {i}: {end.status} {end.said}; {differing(out, whole)}")
            shutil.rmtree(out)
    counts = f"{kills} kills, {n_resumed} times gone on with, {n_compared} times compared"
    print(f"{name}: {counts}, {len(faults)} of these not the same bytes", flush=True)
    return faults


contents = partial(folders.contents, left_out=".lock")  # which is empty


def differing(out, whole):
    a, b = contents(out), contents(whole)
    return [name for name in sorted({*a, *b}) if a.get(name) != b.get(name)]


def states(folder):
    """When each state in a folder was written."""
    try:
        return {path: path.stat().st_mtime_ns for path in folder.glob(".*.state.npz")}
    except FileNotFoundError:  # a finished run removes its own
        return None


def wait_for_a_state(run, folder, before):
    """Wait until the states in a folder are others than before, or the run has ended."""
    while states(folder) == before and not run.is_over():
        time.sleep(0.001)


# --- accidents


def full_disk(name, folder):
    """Disk full:"""
    faults = []
    size = sum(map(len, earlier(name, folder / "size").values()))
    for room in (int(share * size) for share in ROOM):
        with small_disk(folder / str(room)) as disk:
            before = earlier(name, disk.path)
            disk.fill(room)
            end = ended(started(name, disk.path, limit=disk.limit))
            disk.free()
            faults += wrong(end, "No space left on device, |File too large, ", str(disk.path))
            faults += [f"{lost} is lost with {room} bytes free" for lost in gone(before, disk.path)]
            end = ended(started(name, disk.path, "--resume"))
            if end.status:
                faults.append(f"with room again it ends with {end.status} {end.said}")
    return faults


def folder_gone(name, folder):
    """Folder removed during the run:"""
    out = folder / "out"
    run = started(name, out)
    wait_for_a_state(run, out, {})
    shutil.rmtree(out.rename(folder / "removed"))  # at once: the run writes all the time
    return wrong(ended(run), "the folder was removed during the run", str(out))


def read_only(name, folder):
    """A folder that cannot be written:"""
    with small_disk(folder / "disk") as disk:
        before = earlier(name, disk.path)
        out = disk.protect()
        faults = wrong(ended(started(name, out)), "Read-only file system|Not a directory", str(out))
        return faults + [f"{lost} is lost" for lost in gone(before, disk.path)]


def two_at_once(name, folder):
    """Two runs in one folder:"""
    ended(started(name, folder / "whole"))
    first = started(name, folder / "out")
    while not [*(folder / "out").glob(".*.lock")]:
        time.sleep(0.001)
    second = ended(started(name, folder / "out"))
    faults = wrong(second, "another run is writing to ", str(folder / "out"))
    faults += ["the first run failed"] * bool(ended(first).status)
    return faults + differing(folder / "out", folder / "whole")


ACCIDENTS = full_disk, folder_gone, read_only, two_at_once


def earlier(name, folder):
    """The files of an earlier run with other options."""
    end = ended(started(name, folder, options=OTHER))
    if end.status:
        raise SystemExit(f"the earlier run failed: {end.said}")
    return contents(folder)


def gone(before, folder):
    """Names of an earlier run's files that are not as they were."""
    now = contents(folder)
    return [name for name in before if now.get(name) != before[name]]


def wrong(end, wanted, place):
    """What is wrong with how a run ended: exit code 2 and one line with one of these texts."""
    lines = [line for line in end.said.splitlines() if "going on after" not in line]
    is_said = any(text in end.said for text in wanted.split("|")) and place in end.said
    if end.status == 2 and len(lines) == 1 and is_said:
        return []
    return [f"status {end.status}, said {end.said!r}"]


class Disk(NamedTuple):
    """A small file system, or what stands for one where nobody may mount it."""

    path: Path
    is_mounted: bool

    @property
    def limit(self):
        """The largest file that a run may write; None on a real disk."""
        return None if self.is_mounted else int((self.path.parent / "limit").read_text())

    def fill(self, room):
        """Leave so many bytes free."""
        if not self.is_mounted:
            (self.path.parent / "limit").write_text(str(room // 2))  # of one file
            return
        size = shutil.disk_usage(self.path).free - room
        with open(self.path / "ballast.lock", "wb") as file:  # `contents` leaves locks out
            file.write(bytes(max(0, size)))

    def free(self):
        (self.path / "ballast.lock").unlink(missing_ok=True)

    def protect(self):
        """Forbid writing -> a folder in which nothing can be written."""
        if not self.is_mounted:
            return next(self.path.glob("*.json")) / "out"
        subprocess.run(["mount", "-o", "remount,ro", str(self.path)], check=True)
        return self.path


@contextmanager
def small_disk(path):
    """A Disk of four megabytes at this path."""
    path = path / "disk"
    path.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(path)]
    is_mounted = not subprocess.run(mount, capture_output=True, check=False).returncode
    try:
        yield Disk(path, is_mounted)
    finally:
        if is_mounted:
            subprocess.run(["umount", str(path)], check=True)


# --- one run


class Started:
    def __init__(self, child, errors):
        self.child, self.errors = child, errors
        self.begin, self.status = time.monotonic(), None

    def is_over(self):
        """Whether it has ended; its status is then known."""
        if self.status is None:
            child, status = os.waitpid(self.child, os.WNOHANG)
            self.status = os.waitstatus_to_exitcode(status) if child else None
        return self.status is not None


def started(name, out, *more, options=OPTIONS, limit=None):
    """Start a run, whose stderr goes to a file; limit: on the bytes of each file that it writes."""
    errors = tempfile.TemporaryFile()
    child = os.fork()
    if child:
        return Started(child, errors)
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(errors.fileno(), 2)
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        words = ["run", name, "tiny-roberta", *options, "--out", str(out), *more]
        os._exit(cli.main(words))
    finally:
        os._exit(9)


def ended(run, kill=False):
    """Kill a run, or wait until it ends -> Ended."""
    if kill and not run.is_over():
        os.kill(run.child, signal.SIGKILL)
    while not run.is_over():
        time.sleep(0.002)
    seconds = time.monotonic() - run.begin
    run.errors.seek(0)
    return Ended(run.status, run.errors.read().decode(), seconds)


if __name__ == "__main__":
    sys.exit(main())
