"""Write a corpus's activations to disk, shard after shard; an interrupted call goes on.

Rows are appended to the files of collection.py. The record is replaced after each shard, and a
call that was killed goes on from it: what stands behind its last row is written again.

Order: `collect`, the folder, what is written.
"""

import contextlib
import hashlib
import os
import zlib
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ..arrays import Model
from ..learning.saved import as_json, digest_of, write
from ..loading.files import listing
from ..loading.finite import named_arrays
from ..points import Key, expand, points, text_of
from ..words.text import told_once
from .collection import (
    FORMAT,
    RECORD,
    Collection,
    check_of,
    checked,
    crc32_before,
    header,
    read_record,
    row_bytes,
    shape_of,
)
from .passes import encode, point_of, reader, vectors

SHARD = 1 << 26  # bytes that are held in memory before they are written


@told_once()
def collect(
    model: Model | str | PathLike[str],
    documents: Iterable[Any],
    keep: Key | Sequence[Key] = ("resid_post",),
    out: str | PathLike[str] = "collection",
    *,
    workers: int = 1,
) -> Collection:
    """Write points of every token of a corpus to a folder; an interrupted call can be continued.

    documents: texts, pairs, or rows of ids, in any iterable; each goes through the model alone.
    keep: names of points, or (name, layer), with one vector for each token. out: a new folder,
    or that of an interrupted call with the same arguments: its files become byte-identical to those
    of an uninterrupted one. Memory holds one shard of 64 MB. workers: threads that read documents
    in parallel and share the cores; rows are written in order. Returns the Collection.
    Raises ValueError for a folder with other things, for another model, other points or documents
    than those of the call that is continued, or for workers that are not a whole number above 0.

    >>> import minitx, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     minitx.collect("tiny-gpt2", ["A dog", "A cat"], [("resid_post", -1)], folder).keys
    ['resid_post.3']
    """
    if isinstance(documents, str) or not isinstance(documents, Iterable):
        text = f"documents are {documents!r:.80}"
        raise ValueError(f"{text}; expected a list of texts, or another iterable of them")
    if not isinstance(workers, int) or workers < 1:
        raise ValueError(f"workers is {workers!r:.80}; expected a number of threads, 1 or more")
    model = reader(model)
    keys = points_of(model, keep)
    folder = Path(out)
    check_folder(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with alone(folder):
        writer = Writer(model, keys, folder)
        batches = (encode(model, document, i) for i, document in enumerate(documents))
        for batch in islice(batches, writer.record["documents"]):
            writer.count(batch)
        for batch, rows in in_order(lambda batch: vectors(model, batch, keys), batches, workers):
            writer.add(batch, rows)
        writer.end()
    return Collection(folder)


def in_order(function, items, workers):
    """Each item with what the function gives for it; with several workers a few are held."""
    if workers == 1:
        yield from ((item, function(item)) for item in items)
        return
    from concurrent.futures import ThreadPoolExecutor  # a thirtieth of what `import minitx` takes

    with ThreadPoolExecutor(workers) as pool:
        begun = deque()
        for item in items:
            begun.append((item, pool.submit(function, item)))
            if len(begun) == 2 * workers:
                first, future = begun.popleft()
                yield first, future.result()
        for first, future in begun:
            yield first, future.result()


def points_of(model, keep):
    """The points of `keep`. Raises ValueError unless each has one vector for each token."""
    keys = [point_of(model, key) for key in expand(keep, points(model), model)]
    if keep is None or not keys:
        raise ValueError(f"keep is {keep!r}; expected names of points, or pairs (name, layer)")
    return keys


def check_folder(folder):
    """Raises ValueError for a folder in which something else lies."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is no folder; expected the name of one, for the collection")
    names = [path.name for path in folder.glob("*") if not path.name.startswith(".")]
    if names and RECORD not in names:
        text = f"{folder} holds other files: {listing(names)}"
        raise ValueError(f"{text}; expected a new folder, or that of an interrupted collect")


@contextlib.contextmanager
def alone(folder):
    """Hold the folder's lock, which ends with the process; ValueError if another one holds it."""
    from filelock import FileLock, Timeout

    lock = FileLock(folder / ".lock", timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise ValueError(f"another collect is writing to {folder} (.lock is locked)") from None
    try:
        yield
    finally:
        lock.release()


class Writer:
    """The files of one collection, and the rows that are still to be written to them."""

    def __init__(self, model, keys, folder):
        self.model, self.keys, self.folder = model, keys, folder
        self.record = new_record(model, keys)
        self.pending = {name: [] for name in self.record["arrays"]}
        self.held, self.n = 0, 0  # bytes that are pending, documents so far
        self.sha256 = hashlib.sha256()  # of their ids
        if (folder / RECORD).is_file():
            before = read_record(folder)
            check_same(folder, before, self.record)
            crc32 = {name: checked(folder, before, name) for name in before["arrays"]}
            self.record = before | {"crc32": crc32}
        else:
            self.write_record()

    def count(self, batch):
        """The next document; at the last that was written it must be the one that it was."""
        for x in filter(lambda x: x is not None, (batch.tokens, batch.types)):
            self.sha256.update(np.array([x.shape[1], *x[0]], "<i8"))
        self.n += 1
        done = self.record["documents"]
        if self.n == done and self.sha256.hexdigest() != self.record["sha256"]:
            text = f"the first {done} documents are not those that {self.folder} was begun with"
            raise ValueError(f"{text}; give the same, or another folder")

    def add(self, batch, values):
        """The next document, and the values of its points {key: [T F]}."""
        if self.record["whole"]:
            n = self.record["documents"]
            text = f"{self.folder} is the whole collection of {n} documents, and more were given"
            raise ValueError(f"{text}; give the same, or another folder")
        self.count(batch)
        rows = {text_of(key): x for key, x in values.items()}
        rows["tokens"] = batch.tokens[0].astype(np.int32)
        rows["documents"] = np.full(len(rows["tokens"]), self.n - 1, np.int32)
        for name, x in rows.items():
            self.pending[name].append(np.ascontiguousarray(x))
            self.held += x.nbytes
        if self.held >= SHARD:
            self.write_shard()

    def end(self):
        """Write what is left. Raises ValueError if documents are missing."""
        if not self.n or self.n < self.record["documents"]:
            text = f"{self.n} documents were given"
            wanted = max(self.record["documents"], 1)
            raise ValueError(f"{text}; expected {wanted} or more, those of {self.folder} first")
        if not self.record["whole"]:
            self.write_shard(whole=True)

    def write_shard(self, whole=False):
        """Append the pending rows, then replace the record."""
        before = self.record["tokens"]
        n = before + sum(map(len, self.pending["tokens"]))
        crc32 = self.record["crc32"]
        for name, (dtype, width) in self.record["arrays"].items():
            first = header(dtype, shape_of(n, width))
            begin = len(first) + before * row_bytes(dtype, width)
            append(self.folder / f"{name}.npy", first, begin, self.pending[name])
            for x in self.pending[name]:
                crc32[name] = zlib.crc32(x, crc32[name])
            self.pending[name] = []
        self.held = 0
        state = {"documents": self.n, "tokens": n, "whole": whole}
        self.record |= state | {"sha256": self.sha256.hexdigest()}
        self.write_record()

    def write_record(self):
        """Replace the record."""
        self.record["check"] = check_of(self.record)
        write(self.folder / RECORD, as_json(self.record))


def append(path, first, begin, pieces):
    """Put arrays into a file from a byte on, with the header in front, and cut off what follows.

    Raises OSError that names the file.
    """
    try:
        with open(path, "r+b" if path.exists() else "w+b") as file:
            file.write(first)
            file.truncate(begin)
            file.seek(begin)
            for x in pieces:
                file.write(x)
            file.flush()
            os.fsync(file.fileno())  # before the record says that they are there
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


def new_record(model, keys):
    """The record of a collection without rows; the width of each point is that of a short text."""
    trial = vectors(model, encode(model, [0], 0), keys)
    arrays = {text_of(key): [x.dtype.str, x.shape[1]] for key, x in trial.items()}
    arrays |= {"tokens": ["<i4", 0], "documents": ["<i4", 0]}
    record = {"format": FORMAT, "model": model_digest(model), "layers": model.config.n_layers}
    record |= {"arrays": arrays, "documents": 0, "tokens": 0}
    record |= {"sha256": hashlib.sha256().hexdigest(), "whole": False}
    return record | {"crc32": {name: crc32_before(record, name) for name in arrays}}


def model_digest(model):
    """sha256 of the settings and arrays of a model."""
    arrays = named_arrays(model)
    return digest_of(repr(vars(model.config)), arrays, lambda name: np.asarray(arrays[name]))


def check_same(folder, before, own):
    """Raises ValueError that says what differs from the call that is continued."""
    if before["model"] != own["model"]:
        text = f"{folder} was begun with another model (its arrays or settings differ)"
        raise ValueError(f"{text}; give the same, or another folder")
    if before["arrays"] != own["arrays"]:
        old, new = (listing([*record["arrays"]][:-2]) for record in (before, own))
        text = f"{folder} was begun with keep {old}, and is now to have {new}"
        raise ValueError(f"{text}; give the same, or another folder")
