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

from minitx.points import POINTS, name_of

from ..runner import results
from . import sampled
from .library import Inputs, key

FORMAT = 1  # of the file; another one is refused
ENTRY = "minitx"  # in the header's metadata


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
        tensors |= {f"{i}.{named(point)}": x for point, x in reference.arrays[i].items()}
    header = {ENTRY: json.dumps(reference.about | {"format": FORMAT}, ensure_ascii=False)}
    content = save(tensors, metadata=header)
    results.write(path, content)
    return len(content)


def named(point):
    """("q", 3) -> "q.3"."""
    return point if isinstance(point, str) else f"{point[0]}.{point[1]}"


def point_of(name):
    """ "q.3" -> ("q", 3)."""
    stem, _, layer = name.partition(".")
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
                raise ValueError(f"{path} is no reference file: minitx record writes them")
            about = json.loads(header[ENTRY])
            tensors = {name: file.get_tensor(name) for name in file.keys()}
    except SafetensorError as error:
        raise ValueError(f"{path} is cut off or no safetensors file: {error}") from None
    if about.get("format") != FORMAT:
        text = f"{path} has format {about.get('format')!r}; this minitx reads {FORMAT}"
        raise ValueError(f"{text}: record it again")
    try:
        return from_tensors(tensors, about)
    except (KeyError, IndexError, TypeError) as error:
        raise ValueError(f"{path} is damaged: {error!r}") from None


def from_tensors(tensors, about):
    """The Reference of the tensors in a file."""
    rows = [{} for _ in range(1 + max(int(name.partition(".")[0]) for name in tensors))]
    for name, x in tensors.items():
        i, _, rest = name.partition(".")
        rows[int(i)][rest] = x
    batches, arrays, samples = [], [], []
    for row in rows:
        given = {name: row.pop(name) for name in Inputs._fields if name in row}
        batches.append(Inputs(**given))
        sizes = [name for name in row if name.startswith("sample.")]
        samples.append({int(name.removeprefix("sample.")): row.pop(name) for name in sizes})
        arrays.append({point_of(name): x for name, x in row.items()})
    return Reference(batches, arrays, samples, about)


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
    if axes == "B T D" and x.ndim == 2:
        x = x[None]
    return np.broadcast_to(x, (n, *x.shape[1:]))
