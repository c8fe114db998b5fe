"""What passes through a model, reduced as soon as it exists, so that memory does not grow with the documents.

`gather` measures documents side by side and adds up, in their order, so that the result does not depend on how many
run at once, nor on whether the run was interrupted: inside `resumable` it leaves its state in a file that the next
run with the same settings goes on from. N documents, T tokens, L layers, H heads, R offsets.
"""

import contextlib
import fcntl
import io
import os
import sys
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

import numpy as np

from minitx import forward

from . import progress
from .profiles import profile

WORKERS = min(os.cpu_count() or 1, 8)  # each holds the patterns of one layer of one document
BATCH = 4 * WORKERS                    # documents handed out at once; a state is only kept between batches
SAVE_SHARE = 0.05                      # of the time, at most, goes into saving the state
DAMAGED = (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile)  # what reading a broken .npz raises

_run = None  # the resumable run that is open


class _Run:
    """Where the states of one run lie: a file for each `gather` in it."""

    def __init__(self, folder, name, key, resume):
        self.folder, self.name, self.key, self.resume = Path(folder), name, key, resume
        self.stages, self.saved = 0, False

    def next_state(self):
        self.stages += 1
        return self.folder / f".{self.name}.{self.stages}.state.npz"

    def states(self):
        return sorted(self.folder.glob(f".{self.name}.*.state.npz"))

    def remove(self):
        for path in self.states():
            path.unlink()


@contextlib.contextmanager
def resumable(folder, name, key, resume):
    """Inside, every `gather` keeps its state in `folder`; resume: go on from what lies there for the same `key`.

    The states are removed at the end, but not where the run fails or is interrupted. ValueError for a state of
    other settings, and where another run is at work in the folder.
    """
    global _run
    with _alone(Path(folder) / f".{name}.lock"):
        _run = _Run(folder, name, key, resume)
        try:
            yield
            _run.remove()
        finally:
            _run = None


@contextlib.contextmanager
def _alone(path):
    """ValueError if another process is inside for the same path; a lock ends with its process."""
    with open(path, "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(f"another run is at work in {path.parent} ({path.name} is locked)") from None
        try:
            yield
        finally:
            path.unlink()


def gather(measure, documents, what, keep=()):
    """measure(index, document [T]) -> {name: array} for every document -> {name: sum over them in float64}.

    Names in `keep` are stacked instead: [N ...]. what: a word for the progress line.
    """
    path = _run.next_state() if _run else None
    done, found = _restored(path, keep)
    due = 0.0
    rest = islice(enumerate(documents), done, None)
    with ThreadPoolExecutor(WORKERS) as pool, progress.Line(what, len(documents), done) as line:
        while batch := list(islice(rest, BATCH)):
            for result in pool.map(lambda item: measure(*item), batch):
                done += 1
                _add(found, result, keep)
                line.update(done)
            if path and (begin := time.monotonic()) >= due:
                _save(path, done, found)
                end = time.monotonic()
                due = end + (end - begin) / SAVE_SHARE
    return {name: np.array(value) for name, value in found.items()}


def _add(found, result, keep):
    """Add one document's result."""
    for name, value in result.items():
        if name in keep:
            found.setdefault(name, []).append(np.asarray(value))
        else:
            found[name] = found.get(name, 0.0) + np.asarray(value, np.float64)


def _save(path, done, found):
    """Replace the state in one step; the first time, without resume, also whatever an older run left."""
    if not _run.resume and not _run.saved and _run.states():
        print("minitx: an interrupted run was here; it is begun anew (--resume would go on)", file=sys.stderr)
        _run.remove()
    _run.saved = True
    content = io.BytesIO()
    np.savez(content, **{f"of_{name}": value for name, value in found.items()}, done=done, key=_run.key)
    draft = path.with_suffix(".tmp")
    draft.write_bytes(content.getvalue())
    os.replace(draft, path)


def _restored(path, keep):
    """(documents done, what was found in them) of an interrupted run; (0, nothing) where there is none."""
    if path is None or not _run.resume or not path.is_file():
        return 0, {}
    try:
        with np.load(path) as file:
            state = dict(file)
        key, done = state.pop("key"), int(state.pop("done"))
    except DAMAGED:
        raise ValueError(f"{path} is damaged; without --resume the run is begun anew") from None
    if key != _run.key:
        raise ValueError(f"{path} belongs to a run with other settings, model or text; without --resume it is "
                         "begun anew")
    found = {name.removeprefix("of_"): value for name, value in state.items()}
    print(f"minitx: going on after {done} documents", file=sys.stderr)
    return done, {name: [*value] if name in keep else value for name, value in found.items()}


def head_profiles(model, document):
    """Attention profile of every head on one document: [T] -> [L H R]."""
    found = {}

    def tap(name, x, layer=None):
        if name == "pattern":
            found[layer] = profile(x)[0]
        return x
    forward(model, document, at=tap)
    return np.array([found[layer] for layer in sorted(found)])
