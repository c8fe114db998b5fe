"""A training that is killed at random moments: does it go on to the same bytes?

One training runs whole; another is ended by SIGKILL at a random moment and taken up again, N times
in all, beginning anew whenever it has come to its end. Then its files must have the bytes of the
whole one's. A state is saved after every step, so that kills hit the writing, too.
"""

import shutil
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import folders
import trained

import minitx
from minitx.learning import saved

STEPS = 60
TEXT = ["the dog ran to the sea", "a cat sat on the sand", "then it was late"] * 20


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
    return subprocess.Popen([sys.executable, __file__, str(folder)])


def stamp(path):
    """When a file was written; None where there is none."""
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return None


contents = partial(folders.contents, left_out=".tmp")  # drafts that a kill left


if __name__ == "__main__":
    train(Path(sys.argv[1]))
