"""t-SNE and UMAP of every head, from its first principal components: seeded, computed once.

What was computed is kept in the cache (machine/files.py), under the sha256 of all that it depends
on: the points, the method, its package, the seed. The files can be deleted at any time.
"""

import hashlib
import sys
from importlib import metadata
from typing import NamedTuple

import numpy as np

from ..machine import files
from ..maths import embed_2d
from ..running import stream

INNER = 16  # principal components that they start from


class Extra(NamedTuple):
    """A projection beside principal components."""

    method: str  # of embed_2d.METHODS
    axes: int


EXTRAS = {
    f"{name}{end}": Extra(name, axes)
    for name in embed_2d.METHODS
    if name != "pca"
    for end, axes in (("", 2), ("3", 3))
}


def checked(names):
    """The names of projections beside PCA, joined by commas, as a list.

    Raises ValueError for a name that is not known, or whose package is missing.

    >>> checked("pca")
    []
    """
    extras = [name for name in names.split(",") if name != "pca"]
    for name in extras:
        if name not in EXTRAS:
            raise ValueError(f"--projection {name!r}; available: {', '.join(['pca', *EXTRAS])}")
        embed_2d.method(EXTRAS[name].method, "projection")
    return list(dict.fromkeys(extras))


def points(name, x, seed, run):
    """Points [L H n C] of all heads in two or three columns each: [L H n axes].

    Computed once: a later run reads them from the cache.
    """
    shape = *x.shape[:3], EXTRAS[name].axes
    key = digest(x, name, seed)
    path = files.cache() / "projections" / f"{key}.npz"
    xy = restored(path, key, shape)
    if xy is None:
        xy = computed(name, x, seed, run).reshape(shape)
        keep(path, key, xy)
    return xy


def computed(name, x, seed, run):
    """The points of all heads, one head after the other: [L*H n axes]."""
    method, axes = EXTRAS[name]
    reduce = embed_2d.method(method)

    def measure(_, place):
        return {"xy": np.asarray(reduce(x[tuple(place)], seed, axes), np.float32)}

    heads = [np.array(place) for place in np.ndindex(x.shape[:2])]
    return run.gather(measure, heads, f"heads: {name}", ("xy",))["xy"]


def digest(x, name, seed):
    """sha256 of all that a projection depends on."""
    package = embed_2d.METHODS[EXTRAS[name].method][-1]
    versions = np.__version__, metadata.version(package)
    sha256 = hashlib.sha256(repr((name, seed, INNER, versions, x.dtype.str, x.shape)).encode())
    sha256.update(np.ascontiguousarray(x))
    return sha256.hexdigest()


def restored(path, key, shape):
    """Points from a file; None if there is none, it is damaged, or of something else."""
    if not path.is_file():
        return None
    try:
        with open(path, "rb") as file, np.load(file) as arrays:
            xy, stated = arrays["xy"], str(arrays["of"])
    except stream.DAMAGED:
        xy = stated = None
    if stated == stamp(key, xy) and xy.shape == shape:
        return xy
    print(f"minitx: {path} is damaged, or of another atlas; it is replaced", file=sys.stderr)
    return None


def stamp(key, xy):
    """What a file says of itself: its key, and the sha256 of its points."""
    return xy is not None and f"{key} {hashlib.sha256(np.ascontiguousarray(xy)).hexdigest()}"


def keep(path, key, xy):
    """Write points to a file; if that is not possible, print a message and go on."""
    try:
        with files.writing(files.writable(path.parent) / path.name) as file:
            np.savez(file, xy=xy, of=np.array(stamp(key, xy)))
    except OSError as error:
        print(f"minitx: a projection is not kept: {error}", file=sys.stderr)
