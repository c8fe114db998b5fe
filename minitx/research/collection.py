"""A collection on disk: activations of a corpus, mapped into memory.

FOLDER/resid_post.2.npy     [N D]: a row for each token of all documents, one after another
FOLDER/tokens.npy           [N]: their ids
FOLDER/documents.npy        [N]: the number of each token's document
FOLDER/collection.json      what they are of, how many rows are whole, and a crc32 of each file

The record says how many rows there are, not the header of a file: those behind are half written.
"""

import io
import json
import re
import zlib
from os import PathLike
from pathlib import Path

import numpy as np

from ..loading.files import read_json
from ..machine import show
from ..points import Key, text_of

RECORD, FORMAT = "collection.json", "minitx collection 1"
OWN = "tokens", "documents"
DTYPES = "<f4", "<f8", "<i4"


class Collection(show.Shown):
    """Activations on disk: collection["resid_post", 2] is a memory-mapped array [N D].

    `.tokens` [N] are the ids of all rows, `.documents` [N] the number of each row's document;
    `.keys` lists the points. Heads stand side by side in a row. While `collect` goes on, N is what
    was written when the collection was opened.
    """

    def __init__(self, folder: str | PathLike[str], *, check: bool = True):
        self.folder = Path(folder)
        if not (self.folder / RECORD).is_file():
            text = f"{self.folder} is no collection: it has no {RECORD}"
            raise FileNotFoundError(f"{text}; expected a folder that minitx.collect wrote")
        self.record = read_record(self.folder)
        self._unchecked = {*self.record["crc32"]} if check else set()

    @property
    def keys(self) -> list[str]:
        """The points, as the files are called."""
        return [name for name in self.record["arrays"] if name not in OWN]

    @property
    def tokens(self) -> np.ndarray:  # [N]
        """The token id of each row."""
        return self._mapped("tokens")

    @property
    def documents(self) -> np.ndarray:  # [N]
        """The number of each row's document, from 0."""
        return self._mapped("documents")

    def __getitem__(self, key: Key) -> np.ndarray:
        if isinstance(key, tuple) and len(key) == 2 and isinstance(key[1], int) and key[1] < 0:
            key = key[0], key[1] + self.record["layers"]
        name = text_of(key) if isinstance(key, str) or len(key) == 2 else str(key)
        if name not in self.keys:
            raise KeyError(f"{key!r} is not in this collection; it has {', '.join(self.keys)}")
        return self._mapped(name)

    def __len__(self):
        return self.record["tokens"]

    def _mapped(self, name):
        if name in self._unchecked:
            checked(self.folder, self.record, name)
            self._unchecked.remove(name)
        return map_rows(self.folder, self.record, name)

    def _summary(self):
        size = len(self) * sum(row_bytes(*kind) for kind in self.record["arrays"].values())
        n = f"{self.record['documents']} documents, {len(self)} tokens"
        title = f"Collection in {self.folder}: {n}, {size / 1e6:.1f} MB"
        rows = [(name, f"[{len(self)} {self.record['arrays'][name][1]}]") for name in self.keys]
        state = [] if self.record["whole"] else ["not whole: collect was interrupted"]
        return show.Summary(title, [*state, ", ".join(self.keys)], ("point", "shape"), rows)


def open_collection(folder: str | PathLike[str], *, check: bool = True) -> Collection:
    """The activations that `collect` wrote to a folder, mapped into memory.

    check: the first time that a point is asked for, compare its numbers with their checksum, which
    reads all of them once. Raises FileNotFoundError for a folder without a collection, ValueError
    for a damaged record, or one that its files contradict; asking for a damaged point raises it.

    >>> import minitx, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = minitx.collect("tiny-gpt2", ["A dog", "A cat"], ["z"], folder)
    ...     collection = minitx.open_collection(folder)
    ...     collection["z", 3].shape, collection.documents.tolist()
    ((6, 128), [0, 0, 0, 1, 1, 1])
    """
    return Collection(folder, check=check)


def map_rows(folder, record, name):
    """The rows of a file that the record counts, mapped into memory."""
    dtype, width = record["arrays"][name]
    shape = shape_of(record["tokens"], width)
    if not record["tokens"]:
        return np.zeros(shape, dtype)
    return np.memmap(folder / f"{name}.npy", dtype, "r", len(header(dtype, shape)), shape)


def checked(folder, record, name):
    """The crc32 of a file. Raises ValueError where the record says another; an older one has none.

    It begins with the file's name and what the record says of all, so that both are held to it.
    """
    crc32 = zlib.crc32(map_rows(folder, record, name), crc32_before(record, name))
    if record["crc32"].get(name, crc32) != crc32:
        text = f"{folder / name}.npy or {RECORD} is damaged: crc32 is {crc32}"
        raise ValueError(f"{text}; expected {record['crc32'][name]}. Collect into a new folder")
    return crc32


def crc32_before(record, name):
    """The crc32 of a file without rows."""
    about = [name, record["model"], record["layers"], record["arrays"]]
    return zlib.crc32(json.dumps(about).encode())


def check_of(record):
    """The crc32 of all else that a record says; an older one does not hold it."""
    own = {name: value for name, value in record.items() if name != "check"}
    text = json.dumps(own, sort_keys=True)
    return zlib.crc32(text.encode())


def header(dtype, shape):
    """The bytes that a .npy file begins with: as many for any number of rows."""
    file = io.BytesIO()
    description = {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, description)
    return file.getvalue()


def shape_of(n, width):
    """The shape of n rows; a width of 0 stands for numbers."""
    return (n, width) if width else (n,)


def row_bytes(dtype, width):
    """Bytes of one row."""
    return np.dtype(dtype).itemsize * max(width, 1)


def is_named(name, kind):
    """Whether an entry of a record is a file's name, its dtype and its width."""
    is_pair = isinstance(kind, list) and len(kind) == 2 and kind[0] in DTYPES
    return re.fullmatch(r"\w[\w.]*", name) and is_pair and type(kind[1]) is int and kind[1] >= 0


RIGHT = {  # what a record has, and whether it is of the right kind
    "format": lambda x: x == FORMAT,
    "model": lambda x: isinstance(x, str),
    "layers": lambda x: type(x) is int,
    "arrays": lambda x: isinstance(x, dict) and {*OWN} < {*x} and all(map(is_named, x, x.values())),
    "documents": lambda x: type(x) is int and x >= 0,
    "tokens": lambda x: type(x) is int and x >= 0,
    "sha256": lambda x: isinstance(x, str),
    "whole": lambda x: isinstance(x, bool),
    "crc32": lambda x: isinstance(x, dict) and all(type(y) is int for y in x.values()),
}


def read_record(folder):
    """The record in a folder. Raises ValueError where it, or a file that it names, is damaged."""
    path = folder / RECORD
    record = read_json(path)
    record.setdefault("crc32", {})  # an older one has none
    for name, is_right in RIGHT.items():
        if not is_right(record.get(name)):
            raise ValueError(f"{path} is damaged: {name!r} is {record.get(name)!r:.80}")
    if record.get("check", check_of(record)) != check_of(record):
        raise ValueError(f"{path} is damaged: it has another crc32 than it says")
    if record["crc32"] and record["crc32"].keys() != record["arrays"].keys():
        raise ValueError(f"{path} is damaged: 'crc32' is of other files than 'arrays'")
    n = record["tokens"]
    arrays = record["arrays"] if n or record["whole"] else {}
    for name, kind in arrays.items():
        file = folder / f"{name}.npy"
        needed = n * row_bytes(*kind) + len(header(kind[0], (n,)))
        size = file.stat().st_size if file.is_file() else 0
        if size < needed:
            text = f"{file} has {size} bytes"
            raise ValueError(f"{text}; expected {needed} or more, for {n} tokens")
        rows = rows_of_header(file, *kind)
        if rows < n or (record["whole"] and rows > n):
            text = f"{file} has not the header of {n} rows of {kind[1] or 1} {kind[0]}"
            raise ValueError(f"{text}, as {RECORD} says: one of the two is damaged")
    return record


def rows_of_header(path, dtype, width):
    """How many rows the header of a file tells; -1 if it is none of this dtype and width."""
    with open(path, "rb") as file:
        given = file.read(len(header(dtype, (0,))))
    stated = re.search(rb"'shape': \((\d+),", given)
    rows = int(stated[1]) if stated else -1
    return rows if given == header(dtype, shape_of(rows, width)) else -1
