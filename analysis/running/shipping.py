"""A measure as bytes for a worker in another process: code and values, but weights by name.

Arrays of a model that are those of its files travel as their names. The worker loads the model from
its own folder, maps the file as every process does, so that all workers of one machine share its
pages, and is refused if the sha256 of any file differs. All else is pickled: these bytes go over
the connections of a cluster that the user chose, and are never written to or read from a file.
"""

import hashlib
import io
import os
import pickle
import threading
import time
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import minitx
from minitx import weights
from minitx.arrays import Model
from minitx.loading.finite import named_arrays
from minitx.machine import threads
from minitx.words.text import Tokenizer

from ..contract.registry import NotApplicable
from ..machine import doctor
from . import blas, settings

PACKAGES = "minitx", "python", "numpy", "scipy"  # whose versions may change numbers

OF_DASK = "65536"  # what Dask sets MALLOC_TRIM_THRESHOLD_ to


class Files(NamedTuple):
    """A model's folder on the sender's machine, and what is in it."""

    folder: str
    name: str  # a bundled name or a hub id, by which other machines find theirs
    hashes: tuple[tuple[str, str], ...]  # (file, sha256)


class Stored(NamedTuple):
    """How a model was read from its files."""

    files: Files
    dtype: str
    head: str | None


class Package(NamedTuple):
    """A measure that is ready to be sent."""

    content: bytes  # pickled
    digest: str  # sha256 of it
    with_: dict[str, str]  # what it is to be computed with, see `computing`
    n_threads: int  # of each product; another number could change its last digit


class Refused(Exception):
    """A worker that would not compute what this process computes: (its address, the reason)."""


class Unmeasured(Exception):
    """A document that could not be measured: (its number, the worker's address, error, kind)."""


@cache
def computing():
    """What the last digits of numbers depend on beside their inputs, of this process."""
    versions = settings.versions()
    stated = {name: versions.get(name, "none") for name in PACKAGES}
    own = doctor.blas()
    stated["BLAS"] = f"{own['blas']} {own['version']} {own['kernels']}".strip()
    stated["instructions"] = " ".join(doctor.simd())
    return stated


# --- the sender's side


class Sender:
    """Packs measures; it remembers which arrays are those of files."""

    def __init__(self):
        self.names: dict[int, tuple] = {}  # id of an array -> (Stored, its name)
        self.files: dict[str, Files] = {}  # by folder
        self.arrays: list[np.ndarray] = []  # those with names, whose ids so stay theirs
        self.tokenizer = None  # of the first model
        self.originals: dict[Stored, dict] = {}  # models as the files have them, while packing

    def pack(self, measure):
        """A Package of a measure."""
        while True:
            known = len(self.names)
            content = io.BytesIO()
            _pickler(self)(content, protocol=5).dump(measure)
            if len(self.names) == known:
                break  # else an array may have come before the model whose it is
        self.originals.clear()
        digest = hashlib.sha256(content.getbuffer()).hexdigest()
        return Package(content.getvalue(), digest, computing(), threads.count())

    def files_of(self, folder):
        """The Files of a folder."""
        key = os.fspath(folder)
        if key not in self.files:
            hashes = tuple(sorted(_hashes(Path(folder)).items()))
            self.files[key] = Files(key, name_of(Path(folder)), hashes)
        return self.files[key]

    def learn(self, model):
        """Note which arrays of a model are those of its files, in value and layout."""
        unknown = {n: x for n, x in named_arrays(model).items() if id(x) not in self.names}
        if model.tokenizer is None or model.tokenizer.folder is None or not unknown:
            return
        self.tokenizer = self.tokenizer or model.tokenizer
        stored = Stored(
            self.files_of(model.tokenizer.folder), settings.dtype(model), model.config.task_head
        )
        original = self.original(stored)
        for name, x in unknown.items():
            for candidate in (name, f"encoder.{name}"):
                if _is_same(x, original.get(candidate)):
                    self.names[id(x)] = stored, candidate
                    self.arrays.append(x)
                    break

    def original(self, stored):
        """{name: array} as the files have them; {} if they have not got this head."""
        if stored not in self.originals:
            try:
                self.originals[stored] = named_arrays(_loaded(stored, stored.files.folder))
            except ValueError:
                self.originals[stored] = {}
        return self.originals[stored]


def name_of(folder):
    """The name by which another machine finds the model of this folder; "" if it has none."""
    folder = folder.resolve()
    if settings.revision(folder):
        return folder.parent.parent.name.removeprefix("models--").replace("--", "/")
    is_bundled = folder.name in weights.bundled() and folder == weights.find(folder.name).resolve()
    return folder.name if is_bundled else ""


def _is_same(x, y):
    """Whether two arrays are equal and laid out alike, so that products are the same bytes."""
    if y is None or (x.dtype, x.shape, x.strides) != (y.dtype, y.shape, y.strides):
        return False
    return np.array_equal(x, y)


@cache
def _pickler_class():
    import cloudpickle

    class Pickler(cloudpickle.Pickler):
        """Pickles functions by value; weights and tokenizers as their place in a folder."""

        sender: Sender

        def reducer_override(self, x):
            """What stands for x, as a function and its arguments."""
            if isinstance(x, Model):
                self.sender.learn(x)
            if isinstance(x, np.ndarray):
                if id(x) in self.sender.names:
                    return array_of, self.sender.names[id(x)]
                if x.ndim > 1 and not x.flags.forc and not x.dtype.hasobject:
                    return as_laid_out, _laid_out(x)
            if isinstance(x, Tokenizer) and x.folder is not None:
                files = self.sender.files_of(x.folder)
                return tokenizer_of, (files, x.model_type, x.target)
            return super().reducer_override(x)

    return Pickler


def _pickler(sender):
    """A class of picklers that asks this sender."""
    return type("Pickler", (_pickler_class(),), {"sender": sender})


def _laid_out(x):
    """(a C-contiguous copy, the order of axes that lays it out as x): pickle keeps no strides."""
    order = np.argsort([-abs(stride) for stride in x.strides], kind="stable")
    return np.ascontiguousarray(x.transpose(order)), tuple(np.argsort(order).tolist())


# --- the worker's side


def as_laid_out(x, axes):
    """The array that `_laid_out` took apart."""
    return x.transpose(axes)


def array_of(stored, name):
    """An array of a model's files on this machine."""
    return arrays_of(stored)[name]


def tokenizer_of(files, model_type, target):
    """The tokenizer of a model's folder on this machine."""
    return Tokenizer(folder_of(files), model_type, target)


@lru_cache(4)
def arrays_of(stored):
    """{name: array} of a model, loaded once in each process."""
    return named_arrays(_loaded(stored, folder_of(stored.files)))


def _loaded(stored, folder):
    """A model as it was read; without the head that a bare model lacks."""
    return minitx.load(folder, stored.dtype, partial=True, head=stored.head)


@lru_cache(8)
def folder_of(files):
    """The folder of these files on this machine; raises ValueError unless each is the same."""
    folder = Path(files.folder)
    if not folder.is_dir():
        if not files.name:
            raise ValueError(f"there is no folder {files.folder} on its machine")
        folder = weights.find(files.name)
    own = _hashes(folder)
    for file, sha256 in files.hashes:
        if own.get(file) != sha256:
            given = f"sha256 {own[file][:12]}…" if file in own else "no such file"
            raise ValueError(f"{folder / file}: {given}; wanted sha256 {sha256[:12]}…")
    return folder


def _hashes(folder):
    """{file: sha256} of all that is read of a model."""
    of_model = settings.model_files(folder)
    return of_model["weights"] | of_model["files"]


_lock = threading.Lock()  # a worker may have several threads
_unpacked: dict[str, Any] = {}  # digest of a Package -> its measure; the last one alone


def unpack(package):
    """The measure in a Package; raises ValueError where this process would compute otherwise."""
    with _lock:
        if package.digest not in _unpacked:
            _check(package.with_)
            measure = pickle.loads(package.content)
            _unpacked.clear()
            _unpacked[package.digest] = measure
        return _unpacked[package.digest]


def _check(wanted):
    """Raise ValueError unless this process computes with the same as the sender."""
    for name, value in computing().items():
        if wanted.get(name) != value:
            raise ValueError(f"it computes with {name} {value}; wanted {wanted.get(name)}")


def measured(package, numbered, address=None):
    """([measure(index, document), ...], seconds) of a batch, in a worker.

    Raises Refused, or Unmeasured for the first document that could not be measured; both hold texts
    alone, so that they can travel.
    """
    address = address or _address()
    measure, reason = None, ""
    _keep_freed_memory()
    try:
        measure = unpack(package)
    except Exception as error:
        reason = str(error)
    if measure is None:
        raise Refused(address, reason)
    if threads.count() != package.n_threads:
        blas.limit(package.n_threads)
    begin = time.monotonic()
    results = []
    for index, document in numbered:
        result, failure = _tried(measure, index, document)
        if failure:
            raise Unmeasured(index, address, *failure)
        results.append(result)
    return results, time.monotonic() - begin


def _tried(measure, index, document):
    """(the result, None) or (None, (error as text, its kind))."""
    try:
        return measure(index, document), None
    except Exception as error:
        kind = "not applicable" if isinstance(error, NotApplicable) else ""
        return None, (said(error), kind)


def said(error):
    """An error as one text: a ValueError was written for who reads it, others need their type."""
    return str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"


def _address():
    from distributed import get_worker

    return get_worker().address


def _keep_freed_memory():
    """Leave freed memory to minitx/memory.py: Dask has it given back, which took 28% of a pass."""
    if os.environ.get("MALLOC_TRIM_THRESHOLD_") == OF_DASK:  # nobody's choice
        del os.environ["MALLOC_TRIM_THRESHOLD_"]
