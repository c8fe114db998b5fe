"""Sums over documents: each is measured and added at once, so memory does not grow with them.

`Run.gather` measures documents side by side and adds up in their order, so the result depends
neither on how many run at once nor on whether the run was interrupted: a run with a folder leaves
its state there, in a file named after what it measures, and the next run with the same settings
goes on from it. N documents, T tokens.

Order: a run, a sum, one pass for several sums, what an interrupted run left, the lock.
"""

import contextlib
import functools
import hashlib
import itertools
import lzma
import re
import sys
import time
import tokenize
import zipfile
import zlib
from itertools import islice
from pathlib import Path

import numpy as np

from minitx.learning.saved import digest_of
from minitx.machine.interrupt import kept

from ..machine import files, progress
from . import executor, passes, together

SAVE_SHARE = 0.05  # of the time, at most, goes into saving the state
# what reading a broken .npz or .json raises; RuntimeError: encrypted, a later zip, or too deep
DAMAGED = (
    OSError,
    EOFError,
    AttributeError,
    KeyError,
    MemoryError,
    OverflowError,
    TypeError,
    ValueError,
    RuntimeError,
    lzma.LZMAError,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)


class Run:
    """One run of an experiment. Without a folder it keeps nothing, and cannot be resumed.

    key: text that is the same for the same settings, model and documents. resume: go on from what
    lies in the folder for the same key.
    """

    def __init__(self, folder=None, name="", key="", resume=False):
        self.folder = folder and Path(folder)
        self.name = name
        self.key = key
        self.resume = resume
        self.stages = set()  # what has been gathered so far
        self.saved = False

    def gather(self, measure, documents, what, keep=()):
        """measure(index, document [T]) -> {name: array}, summed over all documents in float64.

        Names in `keep` are stacked instead: [N ...]. what: words for the progress line and the name
        of the state file. A measure may be a generator, which shares what it reads (passes.py).
        Raises ValueError if a run with a folder gathers the same twice.
        """
        total = Sum(self, measure, documents, what, keep)
        meeting = together.current()
        if meeting is None:
            gathered([total])
        else:
            meeting.gather(total)
        if total.error is not None:
            raise total.error
        return total.arrays()

    def _state(self, what):
        """The state file of one `gather`; None in a run without a folder."""
        if self.folder is None:
            return None
        if what in self.stages:
            raise ValueError(f"{self.name} gathers {what!r} twice; each needs its own words")
        self.stages.add(what)
        readable = re.sub("[^a-z0-9]+", "-", what.lower())[:60]
        digest = hashlib.sha256(what.encode()).hexdigest()[:8]  # words alike in letters may differ
        return self.folder / f".{self.name}.{readable}.{digest}.state.npz"

    def _states(self):
        return sorted(self.folder.glob(f".{self.name}.*.state.npz"))

    def remove(self):
        """Delete all states of this run, and what a run that was killed was writing."""
        drafts = f"..{self.name}.*.state.npz.*.tmp", f".{self.name}.*.tmp"
        for path in (*self._states(), *(x for name in drafts for x in self.folder.glob(name))):
            path.unlink(missing_ok=True)  # the folder may be removed at any moment

    def _save(self, path, done, sums):
        """Replace a state; the first time, without resume, drop the states of an older run."""
        if not self.resume and not self.saved and self._states():
            text = "an interrupted run was here; it starts over (--resume would continue it)"
            print(f"minitx: {text}", file=sys.stderr)
            self.remove()
        self.saved = True
        state = {f"of_{name}": np.asarray(value) for name, value in sums.items()}
        state |= {"done": np.asarray(done), "key": np.asarray(self.key)}
        digest = digest_of("", state, state.get)
        with files.writing(path) as file:
            np.savez(file, **state, digest=digest)

    def _restored(self, path, keep, N):
        """Of the N documents, how many an interrupted run has done, and their sums.

        0 and {} if it left no state. Raises ValueError for a state that is not as it was saved, is
        of another run, or does not fit this one.
        """
        if path is None or not self.resume or not path.is_file():
            return 0, {}
        key, done, state = _intact(path)
        if key != self.key:
            raise ValueError(
                f"{path} belongs to a run with other settings, model or text; without --resume it "
                "starts from the beginning"
            )
        sums = {name.removeprefix("of_"): value for name, value in state.items()}
        if wrong := _misfit(done, sums, keep, N):
            raise ValueError(f"{path} {wrong}; without --resume the run starts from the beginning")
        print(f"minitx: going on after {done} documents", file=sys.stderr)
        return done, {name: [*value] if name in keep else value for name, value in sums.items()}


UNSAVED = Run()


class Sum:
    """What one `gather` adds up, from where an interrupted one ended."""

    def __init__(self, run, measure, documents, what, keep):
        self.run = run
        self.measure = measure
        self.documents = documents
        self.what = what
        self.keep = keep
        self.path = run._state(what)
        self.first, self.sums = run._restored(self.path, keep, len(documents))
        self.done = self.saved = self.first
        self.error = None

    def add(self, result):
        """Add what was measured of the next document."""
        self.done += 1
        _add(self.sums, result, self.keep)

    def save(self):
        """Save the state, if it is to be kept and something is new."""
        if self.path and self.saved < self.done:
            self.run._save(self.path, self.done, self.sums)
            self.saved = self.done

    def arrays(self):
        """{name: array} of all documents."""
        return {name: np.asarray(value) for name, value in self.sums.items()}


def gathered(totals):
    """Measure documents until every Sum has all of its own: one pass over them for all."""
    first, n = min(x.first for x in totals), max(len(x.documents) for x in totals)
    results = executor.current().results(*_measures(totals, first))
    names = ", ".join(dict.fromkeys(x.run.name for x in totals))
    what = totals[0].what if len(totals) == 1 else f"documents for {names}"
    line = progress.Line(what, n, first, for_workers=True)
    save_due, done = 0.0, first
    with kept(), contextlib.closing(results), line:
        for result in results:
            done += 1
            _hand_out(totals, result)
            del result  # before the next one is made
            line.update(done)
            begin = time.monotonic()
            if begin >= save_due:
                _save_all(totals)
                end = time.monotonic()
                save_due = end + (end - begin) / SAVE_SHARE
    _save_all(totals)  # so that what comes after them need not measure it again


def _measures(totals, first):
    """What an executor takes: the measure of all Sums, and their documents from `first` on."""
    if len(totals) == 1:
        measure = functools.partial(passes.measured, totals[0].measure)
        return measure, islice(enumerate(totals[0].documents), first, None)
    measure = functools.partial(passes.measured_together, [x.measure for x in totals])
    return measure, islice(_side_by_side(totals), first, None)


def _side_by_side(totals):
    """(index, Documents) for each number that a Sum still reads."""
    of_each = itertools.zip_longest(*(x.documents for x in totals), fillvalue=passes.ABSENT)
    for index, documents in enumerate(of_each):
        row = [
            document if index >= total.first and total.error is None else passes.ABSENT
            for total, document in zip(totals, documents)
        ]
        yield index, Documents(_without_copies(row))


class Documents(tuple):
    """The documents of several Sums that have the same number."""

    @property
    def nbytes(self):
        """Bytes of those that differ."""
        return sum({id(x): getattr(x, "nbytes", 0) for x in self}.values())


def _without_copies(documents):
    """Equal arrays as the same one, which is sent to a worker once."""
    seen = {}
    for document in documents:
        if isinstance(document, np.ndarray):
            key = document.dtype.str, document.shape, document.tobytes()
            yield seen.setdefault(key, document)
        else:
            yield document


def _hand_out(totals, result):
    """Add the results of one document to the Sums that they belong to."""
    if len(totals) == 1:
        totals[0].add(result)
        return
    by_number = {}
    for (number, name), x in result.items():
        by_number.setdefault(number, {})[name] = x
    for number, own in by_number.items():
        total = totals[number]
        total.error = total.error or own.get(None)
        if total.error is None:
            _add_or_fail(total, own)


def _add_or_fail(total, result):
    """Add a result; an error is that Sum's alone."""
    try:
        total.add(result)
    except ValueError as error:
        total.error = error


def _save_all(totals):
    for total in totals:
        total.save()


def _intact(path):
    """The key, the number of documents and the arrays of a state.

    Raises ValueError if they are not those that were saved.
    """
    try:
        # opened here: NumPy does not close a file that is not a whole archive
        with open(path, "rb") as file, np.load(file) as arrays:
            state = dict(arrays)
        digest = state.pop("digest")
        is_whole = bool(digest == digest_of("", state, state.get))
        key, done = str(state.pop("key")), int(state.pop("done"))
    except DAMAGED:
        is_whole = False
    if not is_whole:
        raise ValueError(f"{path} is damaged; without --resume the run starts from the beginning")
    return key, done, state


def _misfit(done, sums, keep, N):
    """Why a run over N documents cannot continue from the sums of `done`; "" if it can."""
    if not 0 < done <= N:
        return f"holds {done} documents, of the {N} that are to be read"
    for name, value in sums.items():
        if name in keep and (value.ndim == 0 or len(value) != done):
            return f"holds {name!r} {list(value.shape)} of {done} documents"
        if name not in keep and value.dtype != np.float64:
            return f"holds {name!r} as {value.dtype}, not as sums in float64"
    return ""


def _add(sums, result, keep):
    """Add one document's result; raises ValueError for an array of another shape than before."""
    for name, value in result.items():
        kept = name in keep
        x = np.asarray(value) if kept else np.asarray(value, np.float64)
        if name in sums:
            _check_shape(name, x, sums[name][0] if kept else sums[name])
        if kept:
            sums.setdefault(name, []).append(x)
        elif name in sums and x.ndim:
            sums[name] += x
        else:
            sums[name] = sums.get(name, 0.0) + x


def _check_shape(name, x, before):
    """NumPy would add a scalar to an array, or a row to a table."""
    if x.shape != before.shape:
        raise ValueError(
            f"{name!r} is {list(x.shape)} of a document and {list(before.shape)} of those before "
            "it; without --resume the run starts from the beginning"
        )


@contextlib.contextmanager
def resumable(folder, name, key, resume):
    """A run that keeps its states in `folder`.

    They are removed at the end, unless the run fails or is interrupted; an empty lock file stays.
    Raises ValueError if another run is writing to the folder.
    """
    with _alone(Path(folder) / f".{name}.lock"):
        run = Run(folder, name, key, resume)
        yield run
        run.remove()


@contextlib.contextmanager
def _alone(path):
    """Hold the lock at `path`, which ends with the process; ValueError if another one holds it.

    The file stays: were it deleted, one process could lock the file that is gone and another one
    the file that takes its place. Only a run that fails with nothing written deletes it, so that
    the folder made for it can go (files.remove_empty).
    """
    from filelock import FileLock, Timeout

    lock = FileLock(path, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise ValueError(
            f"another run is writing to {path.parent} ({path.name} is locked)"
        ) from None
    try:
        yield
    except Exception:
        if files.is_new_with(path):
            path.unlink()
        raise
    finally:
        lock.release()
