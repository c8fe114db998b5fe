"""The files of a checkpoint folder: JSON, and safetensors mapped into memory.

Float32 tensors are views of the mapped file: a file changed on disk changes under the model. Others
are converted once, exactly, into copies.
"""

import functools
import json
import math
import mmap

import numpy as np
from numpy.lib.array_utils import byte_bounds
from safetensors import SafetensorError, safe_open

from ..machine.mapped import Mapped
from ..machine.threads import spread
from ..weights import states
from ..weights.local import leads_out
from ..weights.states import CONFIG, INDEX, MODEL, listing, one_line

LONGEST = 1 << 23  # bytes of a file of settings or words; the largest real ones have millions
PIECE = 1 << 17  # numbers that are converted at once: they stay in the processor's cache
DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}  # BF16: by its bits


def read_json(path):
    """The JSON object in a file.

    Raises FileNotFoundError that lists the files there are, or ValueError if there is no object, or
    one so long that it takes gigabytes in memory.
    """
    if not path.is_file():
        content = "no such folder"
        if path.parent.is_dir():
            content = listing(file.name for file in path.parent.iterdir())
        raise FileNotFoundError(f"no {path.name} in {path.parent} (there: {content})")
    check_length(path)
    try:
        return {**json.loads(path.read_text(encoding="utf-8"))}
    except (ValueError, TypeError, RecursionError) as error:  # not UTF-8, JSON, an object, or deep
        states.check_content(path)
        text = f"{path} does not hold a JSON object: {one_line(error)}"
        raise ValueError(text) from None


def read_config(folder):
    """The object in a folder's config.json. Raises ValueError where it states quantized weights."""
    settings = read_json(folder / CONFIG)
    states.check_not_quantized(folder, states.stated_quantization(settings))
    return settings


def check_length(path):
    """Raises ValueError for a file so long that what is made of it may take gigabytes."""
    size = path.stat().st_size
    if size > LONGEST:
        raise ValueError(f"{path} has {size} bytes; wanted at most {LONGEST}")


def names_in(folder):
    """Names of the files in a folder; not of pipes, which would be waited for."""
    return {file.name for file in folder.iterdir() if file.is_file()}


def settings_in(folder):
    """What a folder says of its tokenizer: a dictionary."""
    settings = {}
    for file in (CONFIG, "tokenizer_config.json"):
        if (folder / file).is_file():
            settings |= read_json(folder / file)
    return settings


def read_tensors(folder):
    """{name: FileTensor} of a folder's safetensors file or shards.

    Raises ValueError for those of quantized weights, and of an adapter that is not merged.
    """
    tensors = _tensors_in(folder)
    states.check_tensors(folder, {name: tensor.stored for name, tensor in tensors.items()})
    return tensors


def _tensors_in(folder):
    if (folder / MODEL).is_file():
        return map_file(folder / MODEL)
    if not (folder / INDEX).is_file():
        raise states.without_weights(folder)
    index = read_json(folder / INDEX).get("weight_map")
    if not isinstance(index, dict) or not all(isinstance(file, str) for file in index.values()):
        text = f"{folder / INDEX} has no weight_map from tensor names to file names"
        raise ValueError(text)
    outside = {file for file in index.values() if leads_out(file)}
    if outside:
        raise ValueError(f"{INDEX} lists shards that lead out of {folder}: {listing(outside)}")
    missing = {file for file in index.values() if not (folder / file).is_file()}
    if missing:
        raise FileNotFoundError(
            f"{INDEX} lists shards that are not in {folder}: {listing(missing)}; get them, too"
        )
    shards = {file: map_file(folder / file) for file in sorted(set(index.values()))}
    absent = [name for name, file in index.items() if name not in shards[file]]
    if absent:
        raise ValueError(f"{INDEX} lists tensors that their shards lack: {listing(absent)}")
    return {name: shards[file][name] for name, file in index.items()}


def map_file(path):
    """{name: FileTensor} of one safetensors file.

    The safetensors library checks header, offsets and length; the file is mapped, not read.
    """
    try:
        with safe_open(path, "np"), open(path, "rb") as file:
            buffer = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except SafetensorError as error:
        states.check_content(path)
        size = path.stat().st_size
        text = f"{path} ({size} bytes) is cut off or not a safetensors file: {one_line(error)}"
        raise ValueError(text) from None
    start = 8 + int.from_bytes(buffer[:8], "little")  # length of the header, the header, the bytes
    header = json.loads(buffer[8:start])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        offset = start + entry["data_offsets"][0]
        tensors[name] = FileTensor(name, entry, offset, buffer)
    return tensors


class FileTensor:
    """A tensor of a mapped file; called with a dtype it gives the array."""

    def __init__(self, name, entry, offset, buffer):
        self.name, self.offset, self.buffer = name, offset, buffer
        self.stored, self.shape = entry["dtype"], entry["shape"]

    def __call__(self, dtype):
        """A read-only array: a view of the file if it is stored as `dtype` and aligned."""
        array = self.converted(self.raw(), dtype)
        array.flags.writeable = False
        return array

    def mapped(self, dtype):
        """A matrix as it stays in the file, to be read in `dtype`; any other tensor as an array."""
        if len(self.shape) != 2:
            return self(dtype)
        to_array = functools.partial(self.converted, dtype=dtype)
        return Mapped(self.raw, to_array, self.raw().shape, np.dtype(dtype))

    def raw(self):
        """The tensor as it is stored: a view of the file."""
        if self.stored not in DTYPES:
            text = f"tensor {self.name!r} is stored as {self.stored}"
            raise ValueError(f"{text}; wanted one of {', '.join(DTYPES)}")
        size = math.prod(self.shape)
        numbers = np.frombuffer(self.buffer, DTYPES[self.stored], size, self.offset)
        return numbers.reshape(self.shape)

    def converted(self, raw, dtype):
        """The tensor or a part of it, given as it is stored, in `dtype`; a copy if that differs.

        The file's own pages of what is copied are given back to the system.
        """
        try:
            with np.errstate(over="raise", invalid="ignore"):  # NaN stays NaN
                array = as_floats(raw, self.stored, np.dtype(dtype))
        except FloatingPointError:
            text = f"tensor {self.name!r} has numbers beyond {np.dtype(dtype)}"
            text += f"; it is stored as {self.stored}, which dtype=float64 reads"
            raise ValueError(text) from None
        array = np.require(array, requirements="A")
        if not np.may_share_memory(array, raw):
            self._give_back(raw)
        return array

    def _give_back(self, raw):
        """Let the system take the pages of `raw` out of memory, where it can be told so."""
        whole = self.raw()
        if not whole.size or not hasattr(self.buffer, "madvise"):
            return
        start = byte_bounds(whole)[0]
        if not np.may_share_memory(raw, whole):  # rows that were gathered
            raw = whole
        begin, end = (self.offset + address - start for address in byte_bounds(raw))
        begin -= begin % mmap.PAGESIZE
        self.buffer.madvise(mmap.MADV_DONTNEED, begin, end - begin)


def as_floats(raw, stored, dtype):
    """Numbers of a kind in DTYPES as `dtype`, in the same order of memory; if equal, no copy."""
    if stored == "BF16":  # the upper half of a float32, in this machine's byte order
        bits = in_pieces(lambda x, out: np.left_shift(x, 16, out=out, dtype=out.dtype), raw, "u4")
        raw = bits.view(np.float32)
    if raw.dtype == dtype:
        return raw
    return in_pieces(lambda x, out: np.copyto(out, x, casting="unsafe"), raw, dtype)


def in_pieces(convert, raw, dtype):
    """A new array that convert(piece of raw, piece of the array) fills, on several threads."""
    given = np.atleast_1d(raw)
    new = np.empty_like(given, dtype)
    rows, out = given, new
    if given.strides[0] < given.strides[-1]:  # the columns lie together
        rows, out = given.T, new.T

    def chunk(i, j):
        convert(rows[i:j], out[i:j])

    spread(chunk, len(rows), max(1, PIECE // max(1, rows[:1].size)))
    return new.reshape(raw.shape)
