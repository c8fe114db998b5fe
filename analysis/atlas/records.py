"""What an atlas holds: the records that the computation hands to the page.

L layers, H heads, n queries, m keys. Of points, queries come first, then keys; in self-attention
both have the same table. `strongest.index` counts keys of the table, -1 where a query has fewer.
"""

from typing import Any, NamedTuple

import numpy as np


class Points(NamedTuple):
    """What is known of the queries or of the keys, the same in all heads.

    A patch of a picture is a token whose position counts patches row by row, and a picture is the
    sentence in which it stands.
    """

    sentence: np.ndarray  # [n] number of its sentence
    position: np.ndarray  # [n] from 0 in its sentence
    token: np.ndarray  # [n] number in the vocabulary
    type: np.ndarray  # [n] number in types
    length: np.ndarray  # [n] tokens of its sentence
    frequency: np.ndarray  # [n] share of all tokens that were read
    word_class: np.ndarray  # [n] number in word_classes, -1 without one
    vocabulary: list[str]
    types: list[str]
    word_classes: list[str]


class Strongest(NamedTuple):
    """The keys that each query attends to most, the strongest first."""

    index: np.ndarray  # [L H n 5]
    weight: np.ndarray  # [L H n 5] attention, float16


class Flag(NamedTuple):
    """A head that stands out, beyond what chance gives to any head."""

    layer: int
    head: int
    kind: str
    value: float
    null: float
    words: str


class Moves(NamedTuple):
    """How far products follow distances in each head, before and after the move. [L H] each."""

    c: np.ndarray  # factor on the queries, 1 / c on the keys
    before: np.ndarray  # correlations of products and distances
    after: np.ndarray
    before_null: np.ndarray  # of queries rotated at random
    after_null: np.ndarray


class Misleads(NamedTuple):
    """The head whose plane differs most from the whole space."""

    layer: int
    head: int
    words: str


class Lie(NamedTuple):
    """Shares of the strongest keys that are among the nearest ones: [L H] each."""

    near_plane: np.ndarray
    near_space: np.ndarray
    near_plane_null: np.ndarray  # of shuffled keys
    near_space_null: np.ndarray
    misleads: Misleads | None  # None where no head differs more than with shuffled keys
    others: dict[str, np.ndarray]  # of every other projection: near in it, and its null [2 L H]


class Pictures(NamedTuple):
    """The pictures whose patches are the points of a space."""

    rows: int
    columns: int
    pixels: np.ndarray  # [pictures h w 3] of bytes


class Space(NamedTuple):
    """Queries and keys of all heads of one stack, or of cross-attention."""

    name: str
    L: int
    H: int
    d: int
    layers: list[str]
    queries: Points
    keys: Points
    norms: dict[str, np.ndarray]  # "query" [L H n], "key" [L H m], before they are scaled
    xy: dict[str, np.ndarray]  # of a projection [L H n+m 2], of "pca3" [L H n+m 3]
    strongest: Strongest
    flags: list[Flag]
    lie: Lie
    moves: Moves
    pictures: Pictures | None = None


class Atlas(NamedTuple):
    """The atlas of a model on a text."""

    name: str
    sides: list[Space]
    sentences: list[list[str]]
    titles: list[str]
    sampled: tuple[int, int, str]  # points drawn, points there, in words
    beside: "Atlas | None"
    settings: dict[str, Any]
