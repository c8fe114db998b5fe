"""A training that is killed at random moments: does it go on to the same bytes?

    python tests/tools/killed_training.py [--kills N] [--seed N]

One training runs whole; another is ended by SIGKILL at a random moment and taken up again, N times
in all, beginning anew whenever it has come to its end. Then its files must have the bytes of the
whole one's. A state is saved after every step, so that kills hit the writing, too. Exit code 0 only
if all files agree.
"""

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import trained

import minitx
from minitx.training import saved

STEPS = 60
TEXT = ["the dog ran to the sea", "a cat sat on the sand", "then it was late"] * 20


def main(argv=None):
    """Kill, go on, compare."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--run", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    if given.run:
        train(given.run)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        differing, n_compared = kills(Path(folder), given.kills, random.Random(given.seed))
    print(f"{given.kills} kills, {n_compared} ends compared, differing: {differing or 'nothing'}")
    return 1 if differing else 0


def train(folder):
    """The training, which goes on with what the folder holds."""
    settings = {"model_type": "gpt2", **trained.SETTINGS["gpt2"], "vocab_size": 280}
    saved.SECONDS = -1.0
    minitx.train(settings, TEXT, out=folder, steps=STEPS, batch=4, snapshots=9, resume=True)


def kills(folder, n, dice):
    """Names of files that differ after n kills; how often they were compared."""
    whole, out, differing, n_compared = folder / "whole", folder / "out", set(), 0
    train(whole)
    expected = contents(whole)
    for i in range(1, n + 1):
        run = started(out)
        state = out / saved.STATE
        before = stamp(state)
        while run.poll() is None and stamp(state) == before:
            time.sleep(0.001)
        time.sleep(dice.uniform(0, 0.3))
        run.kill()
        run.wait()
        if i == n or (out / saved.RECORD).is_file():
            if started(out).wait():
                raise SystemExit(f"kill {i}: the training does not go on")
            ended = contents(out)
            names = {*expected, *ended}
            differing |= {name for name in names if ended.get(name) != expected.get(name)}
            n_compared += 1
            shutil.rmtree(out)
    return sorted(differing), n_compared


def started(folder):
    """The training in a process of its own."""
    return subprocess.Popen([sys.executable, __file__, "--run", str(folder)])


def stamp(path):
    """When a file was written; None where there is none."""
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return None


def contents(folder):
    """{path: bytes} of the files in a folder, without drafts that a kill left."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {
        str(path.relative_to(folder)): path.read_bytes() for path in files if path.suffix != ".tmp"
    }


if __name__ == "__main__":
    sys.exit(main())
