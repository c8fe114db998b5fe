"""Pictures in place of sentences: their patches are the points of an atlas.

Queries and keys are those of the patches alone; a class token stands for no position, and what it
gets of the attention is left out. N pictures, n patches of a picture, T tokens, V numbers of a
token.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from minitx.images import names
from minitx.weights import shapes

from ..machine.language import filled, translated
from ..maths import grid
from ..measures import pictures
from ..texts.formats import is_ids, of, sha256
from .records import Pictures, Points

REACH = 3  # patches in each direction
OFFSETS = [(y, x) for y in range(-REACH, REACH + 1) for x in range(-REACH, REACH + 1)]
DIRECTIONS = ("{n} up", "{n} down"), ("{n} to the left", "{n} to the right")
MOST_PIXELS = 112  # of a side of a picture on the page


class Shown(NamedTuple):
    """A picture as a document of an atlas."""

    inputs: np.ndarray  # [T V]
    patches: np.ndarray  # [n] their numbers, in place of token ids
    grid: pictures.Grid


class Album(NamedTuple):
    """The pictures of an atlas."""

    model: Any
    documents: list[Shown]
    titles: list[str]
    classes: np.ndarray  # [N], -1 where it is not known
    labels: list[str]  # names of the patches
    noun: str = "picture"
    source: str = "source"
    token: str = "patches"

    def shown(self, numbers):
        """The names of the patches of the pictures with these numbers, and the titles."""
        return [self.labels for _ in numbers], [self.titles[i] for i in numbers]

    def table(self, numbers):
        """The Points of these pictures: their patches one after another."""
        n, N = len(self.labels), len(numbers)
        patch = np.tile(np.arange(n), N)
        fields = {"sentence": np.repeat(np.arange(N), n), "position": patch, "token": patch}
        fields |= {"type": np.zeros(N * n, int), "length": np.full(N * n, n)}
        fields["frequency"] = np.full(N * n, 1 / n)
        fields["word_class"] = np.repeat(self.classes[[*numbers]], n)
        names = [*shapes.CLASSES] if (self.classes >= 0).any() else []
        return Points(**fields, vocabulary=self.labels, types=["patch"], word_classes=names)

    def pictures(self, numbers):
        """What the page draws of the pictures with these numbers."""
        places = self.documents[0].grid
        rows = [pictures.shown(self.model, self.documents[i].inputs) for i in numbers]
        return Pictures(places.rows, places.columns, np.array([*map(shrunk, rows)]))


def album(model, source, n, seed):
    """The Album of a source. n: 0 for all, None for as many as there are, at most 64.

    Raises ValueError, before any work, for one that cannot be read.
    """
    source = of(source).name
    if n == 0 and source != pictures.DRAWN:
        n = len(pictures.paths_of(Path(source)))
    sample = pictures.sample(model, source, n or 0, seed)
    places = pictures.grid_of(model)
    documents = [Shown(tokens, np.arange(places.n), places) for tokens in sample]
    classes = np.full(len(sample), -1) if sample.classes is None else sample.classes
    labels = names(model.config.picture)[places.patches]
    return Album(model, documents, titles(source, sample), classes, labels)


def titles(source, sample):
    """What pictures are called: the class of what is drawn, or the names of their files."""
    if sample.classes is None:
        return [path.name for path in pictures.paths_of(Path(source))[: len(sample)]]
    return [shapes.CLASSES[i] for i in sample.classes]


def at_offsets(places):
    """Masks [n n] of the keys at each of OFFSETS from their query."""
    down, across = grid.pairs(places.rows, places.columns)
    return [(down == y) & (across == x) for y, x in OFFSETS]


def where(offset):
    """An offset in words.

    >>> where((-1, 0)), where((0, 0)), where((2, -1))
    ('the patch 1 up', 'the patch itself', 'the patch 2 down and 1 to the left')
    """
    parts = [_far(n, *words) for n, words in zip(offset, DIRECTIONS) if n]
    if not parts:
        return translated("the patch itself")
    if len(parts) == 1:
        return filled("the patch {far}", far=parts[0])
    return filled("the patch {down} and {across}", down=parts[0], across=parts[1])


def _far(n, before, after):
    """So many patches in one of two directions, in words."""
    words = before if n < 0 else after
    return filled(words, n=abs(n))


def check(name, source):
    """Raise ValueError for a source that is neither the sample nor a picture or a folder."""
    if is_ids(source):
        raise ValueError(f"{name} reads pictures, and --ids takes token ids; wanted --text FOLDER")
    source = of(source).name
    if source != pictures.DRAWN and not Path(source).exists():
        text = f"{name} reads pictures: --text {source!r:.80} is no picture and no folder of them"
        raise ValueError(f"{text}; wanted one, or {pictures.DRAWN}")


def described(source):
    """What a source is, for the key of a run: the sha256 of each file."""
    source = of(source).name
    if source == pictures.DRAWN:
        return source
    return {path.name: sha256(path) for path in pictures.paths_of(Path(source))}


def shrunk(pixels, most=MOST_PIXELS):
    """Pixels [h w 3] of bytes, as means of as many of them as it takes to have `most` a side.

    >>> shrunk(np.arange(12, dtype=np.uint8).reshape(4, 1, 3), most=2)[:, 0].tolist()
    [[2, 2, 4], [8, 8, 10]]
    """
    x = pixels.astype(np.float64)
    for axis in (0, 1):
        n = x.shape[axis]
        m = -(-n // -(-n // most))
        starts = np.arange(m) * n // m
        sums = np.add.reduceat(x, starts, axis)
        shape = (-1, 1, 1) if axis == 0 else (1, -1, 1)
        x = sums / np.diff([*starts, n]).reshape(shape)
    return np.rint(x).astype(np.uint8)
