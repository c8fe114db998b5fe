"""A reference file: batches of ids, what a model computed for them, and what it was computed with.

One safetensors file. Batch i has `i.tokens i.valid` (and `i.source i.source_valid`); of each point
sampled values `i.pattern.3`, and in `i.sample.SIZE` the places of all samples from arrays of that
size (sampled.py). Everything else is JSON in the header's `minitx`.
"""

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from minitx.loading.files import one_line
from minitx.points import POINTS, name_of, text_of

from ..machine import files
from . import sampled
from .library import Inputs, key

FORMAT = 1  # of the file; another one is refused
ENTRY = "minitx"  # in the header's metadata
KINDS = {"texts": (list, type(None)), "dtype": str, "config": dict, "weights": dict}  # of about
DTYPES = "float64", "float32"


class Reference(NamedTuple):
    """What was recorded.

    batches: [Inputs]. arrays: for each batch {point: values [N]}. samples: for each batch {size of
    an array: places of its values [N]}. about: texts, dtype, seed, versions, config, hashes.
    """

    batches: list
    arrays: list
    samples: list
    about: dict


def write(path, reference):
    """Write a reference file, and return its size in bytes."""
    tensors = {}
    for i, inputs in enumerate(reference.batches):
        given = {name: x for name, x in inputs._asdict().items() if x is not None}
        tensors |= {f"{i}.{name}": np.ascontiguousarray(x) for name, x in given.items()}
        tensors |= {f"{i}.sample.{size}": x for size, x in reference.samples[i].items()}
        tensors |= {f"{i}.{text_of(point)}": x for point, x in reference.arrays[i].items()}
    header = {ENTRY: json.dumps(reference.about | {"format": FORMAT}, ensure_ascii=False)}
    content = save(tensors, metadata=header)
    files.write(path, content)
    return len(content)


def point_of(name):
    """ "q.3" -> ("q", 3); ValueError for what is no point."""
    stem, _, layer = name.partition(".")
    if stem not in POINTS or (layer and not layer.isdecimal()):
        raise ValueError(f"{name!r:.80} is not a point")
    return key(stem, int(layer) if layer else None)


def read_file(path):
    """The Reference in a file.

    Raises FileNotFoundError, or ValueError for a file that `minitx record` did not write.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"no reference file {str(path)!r}")
    try:
        with safe_open(path, "np") as file:
            header = file.metadata() or {}
            if ENTRY not in header:
                raise ValueError(f"{path} is not a reference file; minitx record writes them")
            tensors = {name: file.get_tensor(name) for name in file.keys()}
    except SafetensorError as error:
        raise ValueError(
            f"{path} is truncated or not a safetensors file: {one_line(error)}"
        ) from None
    try:
        about = about_of(header[ENTRY])
        return from_tensors(tensors, about)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{path} cannot be read: {one_line(error)}; record it again") from None


def about_of(text):
    """What a file says of itself; ValueError for what `verify` could not read."""
    about = json.loads(text)
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        format_ = about.get("format") if isinstance(about, dict) else None
        raise ValueError(f"it has format {format_!r:.80}, this minitx reads {FORMAT}")
    for name, kind in KINDS.items():
        if not isinstance(about.get(name), kind):
            raise ValueError(f"its {name!r} is {about.get(name)!r:.80}")
    if about["dtype"] not in DTYPES:
        raise ValueError(f"its 'dtype' is {about['dtype']!r:.80}, wanted one of {DTYPES}")
    if not all(isinstance(text, str) for text in about["texts"] or ()):
        raise ValueError(f"its 'texts' are {about['texts']!r:.80}")
    return about


def from_tensors(tensors, about):
    """The Reference of the tensors in a file."""
    rows = {}
    for name, x in tensors.items():
        batch, _, rest = name.partition(".")
        rows.setdefault(batch, {})[rest] = x
    batches, arrays, samples = [], [], []
    for i in range(len(rows)):
        if str(i) not in rows:
            raise ValueError(f"it has no batch {i}; available: {', '.join(rows):.80}")
        row = rows[str(i)]
        batches.append(inputs_of(row, i))
        sizes = [name for name in row if name.startswith("sample.")]
        samples.append(dict(sample_of(name, row.pop(name)) for name in sizes))
        for name, x in row.items():
            wanted(f"{i}.{name}", x, "f", 1)
        arrays.append({point_of(name): x for name, x in row.items()})
    if not any(arrays):
        raise ValueError("it holds no arrays to compare with")
    return Reference(batches, arrays, samples, about)


def inputs_of(row, i):
    """The Inputs of a batch, taken out of its tensors."""
    given = {name: row.pop(name) for name in Inputs._fields if name in row}
    for ids, valid in (("tokens", "valid"), ("source", "source_valid")):
        if ids == "source" and not given.keys() & {ids, valid}:
            continue
        if not {ids, valid} <= given.keys():
            raise ValueError(f"{i}.{ids} or {i}.{valid} is missing")
        wanted(f"{i}.{ids}", given[ids], "iu", 2)
        wanted(f"{i}.{valid}", given[valid], "b", 2)
    return Inputs(**given)


def sample_of(name, places):
    """The size of an array, and the places [N] of its sampled values."""
    wanted(name, places, "iu", 1)
    size = name.removeprefix("sample.")
    if not size.isdecimal() or (places >= int(size)).any() or (places < 0).any():
        raise ValueError(f"{name!r:.80} has indices outside the array")
    return int(size), places


def wanted(name, x, kinds, axes):
    """Raise ValueError unless an array is of these kinds of numbers and has so many axes."""
    if x.dtype.kind not in kinds or x.ndim != axes or not x.size:
        raise ValueError(f"{name!r:.80} is {x.dtype} {x.shape}")


def flat(point, x, inputs):
    """A point's values at real tokens, in one row; those of the source in the encoder."""
    x = with_batch(x, axes_of(point), len(inputs.tokens))
    return sampled.flat(x, axes_of(point), valid_for(point, inputs))


def place(point, number, shape, inputs):
    """Where a value of `flat` comes from."""
    return sampled.place(number, shape, axes_of(point), valid_for(point, inputs))


def axes_of(point):
    """The letters of a point's axes."""
    return POINTS[name_of(point)].axes


def valid_for(point, inputs):
    """Which tokens are real [B T] in an array of a point."""
    name = name_of(point)
    of_source = name.startswith("enc_") or name in ("cross_k", "cross_v")
    return inputs.source_valid if of_source else inputs.valid


def with_batch(x, axes, n):
    """An array with its batch axis; position embeddings may be the same for all n texts."""
    if axes in ("B T D", "B T E") and x.ndim == 2:
        x = x[None]
    return np.broadcast_to(x, (n, *x.shape[1:]))
