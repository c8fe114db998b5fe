"""The same bytes on one thread, threads, processes and a cluster, and when processes die.

    python tests/tools/workers.py [--documents 200] [--tokens 48] [--kills 10] [EXPERIMENT ...]

Runs each experiment on tiny-roberta with one thread, with as many as the command takes, with two
processes, and on a cluster whose scheduler is a process by itself, and compares the files byte for
byte. Then `profiles`, while a random worker is killed (SIGKILL) at random moments, and while the
client is and goes on with --resume. Prints a line for each; exit code 0 if all are equal.

Order: the command line, a run, kills, the comparison.
"""

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from benchmarks.workers import running

ROOT = Path(__file__).parents[2]
MODEL = "tiny-roberta"
EXPERIMENTS = "profiles", "lags", "remove-positions", "probe", "joint-grid"
COMMAND = [sys.executable, "-m", "minitx.analysis", "run"]
ONE_THREAD = (
    "import sys\n"
    "from minitx.analysis.running import executor\n"
    "executor.WORKERS = 1\n"
    "from minitx.analysis.__main__ import main\n"
    "sys.exit(main())\n"
)


def main(argv=None):
    """Run all and compare; exit code 0 if every file is the same."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("experiments", nargs="*", default=EXPERIMENTS)
    parser.add_argument("--documents", type=int, default=200)
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--kills", type=int, default=10)
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        lines = checked(arguments, Path(folder))
        equal = [show(*line) for line in lines]
    return 0 if all(equal) else 1


def show(name, how, seconds, is_equal):
    """Print a line of the table."""
    print(f"{name:18} {how:44} {seconds:7.1f} s  {'equal' if is_equal else 'DIFFERS'}", flush=True)
    return is_equal


def checked(arguments, folder):
    """(experiment, how it was run, seconds, whether its files are those of one thread)."""
    with running(folder) as (address, _):
        ways = {
            "threads": [],
            "2 processes": ["--workers", "2"],
            "a scheduler in another process": ["--scheduler", address],
        }
        for name in arguments.experiments:
            yield from compared(name, arguments, folder, ways)
    if arguments.kills:
        whole, draw = folder / "whole", random.Random(0)
        finished(start("profiles", arguments, whole))
        seconds = finished(start("profiles", arguments, folder / "two", "--workers", "2"))
        moments = [draw.uniform(0.2, 0.95) * seconds for _ in range(2 * arguments.kills)]
        yield from workers_killed(arguments, folder, whole, moments[: arguments.kills])
        yield from clients_killed(arguments, folder, whole, moments[arguments.kills :])


def compared(name, arguments, folder, ways):
    """One experiment in every way, beside one thread."""
    single = folder / f"{name}-single"
    seconds = finished(start(name, arguments, single, one_thread=True))
    yield name, "one thread", seconds, True
    for how, flags in ways.items():
        out = folder / f"{name}-{how.split()[0]}"
        seconds = finished(start(name, arguments, out, *flags))
        yield name, how, seconds, same(single, out)


def start(name, arguments, out, *flags, one_thread=False):
    """The process of a run."""
    command = [sys.executable, "-c", ONE_THREAD, "run"] if one_thread else COMMAND
    sizes = {"documents": arguments.documents, "tokens": arguments.tokens, "out": out}
    options = [text for flag, value in sizes.items() for text in (f"--{flag}", str(value))]
    where = {"cwd": ROOT, "env": os.environ | {"PYTHONPATH": str(ROOT)}}
    where |= {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    return psutil.Popen([*command, name, MODEL, *options, *flags], **where)


def finished(process):
    """Seconds that a run took to its end, which must be a good one."""
    begin = time.time()
    errors = process.communicate(timeout=1200)[1].decode()
    if process.returncode:
        raise RuntimeError(errors)
    return time.time() - begin


def workers_of(process):
    """The worker processes of a client with --workers."""
    with contextlib.suppress(psutil.NoSuchProcess):
        children = process.children()
        return [child for child in children if "spawn_main" in " ".join(child.cmdline())]
    return []


def workers_killed(arguments, folder, whole, moments):
    """Runs in which one worker is killed after so many seconds."""
    for i, moment in enumerate(moments):
        out = folder / f"worker-{i}"
        process = start("profiles", arguments, out, "--workers", "2")
        begin = time.time()
        time.sleep(moment)
        victims = workers_of(process)
        while not victims and process.poll() is None:
            time.sleep(0.05)
            victims = workers_of(process)
        how = "ended before the kill"
        if victims:
            victims[i % len(victims)].send_signal(signal.SIGKILL)
            how = f"a worker killed after {time.time() - begin:.1f} s"
        finished(process)
        yield "profiles", how, time.time() - begin, same(whole, out)


def clients_killed(arguments, folder, whole, moments):
    """One run that is killed again and again, and goes on each time."""
    out, flags = folder / "client", ("--workers", "2", "--resume")
    begin, resumed = time.time(), 0
    for moment in moments:
        process = start("profiles", arguments, out, *flags)
        time.sleep(moment)
        left = workers_of(process)
        process.send_signal(signal.SIGKILL)
        resumed += b"going on after" in process.communicate()[1]
        _, alive = psutil.wait_procs(left, timeout=60)
        if alive:
            raise RuntimeError(f"{len(alive)} workers outlive their client")
    finished(start("profiles", arguments, out, *flags))
    how = f"the client killed {len(moments)} times, {resumed} with a state"
    yield "profiles", how, time.time() - begin, same(whole, out)


def same(a, b):
    """Whether two folders of results have the same files, byte for byte."""
    names = [
        sorted(path.name for path in folder.iterdir() if not path.name.endswith(".tmp"))
        for folder in (a, b)
    ]
    if names[0] != names[1]:
        return False
    return all((a / name).read_bytes() == (b / name).read_bytes() for name in names[0])


if __name__ == "__main__":
    sys.exit(main())
