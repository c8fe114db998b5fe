"""The atlas page: every head as one scatter of the queries and keys of hundreds of sentences.

One self-contained HTML file, or two atlases side by side in it. Tables of the points stand in it as
JSON; what each head has of its own is packed apart, so that the page opens it head by head. L
layers, H heads, n queries, m keys: points are queries first, then keys.
"""

import base64
import zlib
from html import escape
from pathlib import Path

import numpy as np

from ..drawing import draw
from ..machine import files
from ..machine.language import filled, translated
from . import assets, explore
from .packing import TINY
from .writers import visible

STEPS = 4095  # of a coordinate, between the least and the greatest of its head
DEEP_STEPS = 255  # of the third coordinate, which only turning shows
NORM_STEPS = 63  # of a norm, which is a colour
WEIGHT_STEPS = 127  # of the root of a weight
BYTE = 255  # a query has no further key: all bits of its number
PROJECTIONS = {"pca": "PCA", "pca3": "PCA, 3-D"} | {
    f"{name}{end}": f"{title}{words}"
    for name, title in (("tsne", "t-SNE"), ("umap", "UMAP"))
    for end, words in (("", ""), ("3", ", 3-D"))
}
ASSETS = {"d3": "d3.min.js", "three": "three.min.js"}
PROGRAM = (
    "language.js",
    "dom.js",
    "colours.js",
    "atlas-data.js",
    "atlas-colours.js",
    "atlas-address.js",
    "atlas-cloud.js",
    "atlas-draw.js",
    "atlas-save.js",
    "atlas-heads.js",
    "atlas-sentence.js",
    "atlas.js",
)
STYLES = "explore.css", "atlas.css"


def write(atlas, path):
    """Write the page of an Atlas to the file `path`; return its size in bytes."""
    content = page(atlas).encode()
    files.write(Path(path), content)
    return len(content)


def page(atlas):
    """The HTML text of the page of an Atlas, and of the one beside it."""
    atlases = [atlas, *([atlas.beside] if atlas.beside else [])]
    arrays = {}
    runs = [described(each, f"{n}", arrays) for n, each in enumerate(atlases)]
    projections = {name: translated(title) for name, title in PROJECTIONS.items()}
    parts = {name: assets.text(file) for name, file in ASSETS.items()}
    names = translated(" and ").join(draw.printable(a.name) for a in atlases)
    parts["title"] = escape(filled("Atlas of {names}", names=names))
    parts["style"] = explore.style(*STYLES)
    parts["data"] = explore.as_script({"runs": runs, "projections": projections})
    licences = map(assets.text, ("LICENCES.txt", "three.licence.txt"))
    parts["licences"] = escape("\n".join(licences))
    parts["program"] = explore.scripts(*PROGRAM)
    holders = (f'<script type="text/plain" id="{name}">{x}</script>' for name, x in arrays.items())
    parts["arrays"] = "\n".join(holders)  # each is opened when it is needed
    return explore.composed("atlas.html", **parts)


# what is packed of a space


def described(atlas, number, arrays):
    """What the page says of an Atlas, ready for JSON; adds its packed arrays to `arrays`."""
    spaces = [_space(s, f"{number}.{k}", arrays) for k, s in enumerate(atlas.sides)]
    sentences = [_shown(tokens) for tokens in atlas.sentences]
    content = {"name": draw.printable(atlas.name), "spaces": spaces, "sentences": sentences}
    content |= {"titles": _plain(atlas.titles), "sampled": _plain(atlas.sampled)}
    stated = [f"{translated(str(key))}: {value}" for key, value in atlas.settings.items()]
    content["settings"] = _plain(", ".join(stated))
    return content | {"scope": _plain(atlas.settings.get("scope"))}


def _space(space, number, arrays):
    """What the page says of one Space; adds its packed arrays."""
    content = {name: getattr(space, name) for name in ("name", "L", "H", "d")}
    content["layers"] = _plain(space.layers)
    content["queries"] = _table(space.queries)
    is_shared = space.keys is space.queries or _table(space.keys) == content["queries"]
    content["keys"] = None if is_shared else _table(space.keys)
    packed = pack_heads(space)
    for head in range(space.L * space.H):
        for name, (_, rows) in packed.items():
            arrays[f"{number}.{name}.{head}"] = squeezed(rows[head])
    content["packed"] = {name: facts for name, (facts, _) in packed.items()}
    content["pictures"] = space.pictures and _pictures(space.pictures, number, arrays)
    flags = [_plain(flag._asdict()) for flag in space.flags]
    moves = {name: _plain(np.ravel(x)) for name, x in space.moves._asdict().items()}
    return content | {"flags": flags, "lie": _lie(space.lie), "moves": moves}


def _pictures(pictures, number, arrays):
    """What the page says of Pictures; adds the pixels of each as an array of its own."""
    N, height, width, _ = pictures.pixels.shape
    for n in range(N):
        arrays[f"{number}.picture.{n}"] = squeezed(pictures.pixels[n])
    grid = {"rows": pictures.rows, "columns": pictures.columns}
    return grid | {"height": height, "width": width, "n": N}


def _table(points):
    numbers = ("sentence", "position", "token", "type", "length", "frequency", "word_class")
    content = {name: _plain(getattr(points, name)) for name in numbers}
    names = {"word_classes": _plain(points.word_classes)}
    names["types"] = _plain([*map(translated, points.types)])
    return content | names | {"vocabulary": _shown(points.vocabulary)}


def _lie(lie):
    """How far each head's pictures can be trusted, and where the plane misleads most."""
    names = ("near_plane", "near_space", "near_plane_null", "near_space_null")
    content = {name: _plain(np.ravel(getattr(lie, name))) for name in names}
    content["others"] = {key: [_plain(x.ravel()) for x in pair] for key, pair in lie.others.items()}
    return content | {"misleads": lie.misleads and _plain(lie.misleads._asdict())}


def _shown(labels):
    """Labels whose blanks can be seen, and that turn no direction."""
    return visible(draw.printable(str(x)) for x in labels)


def _plain(value):
    """A value as JSON has it: arrays as lists, numbers of NumPy as Python's."""
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, dict):
        return {_plain(str(key)): _plain(x) for key, x in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(x) for x in value]
    if isinstance(value, float):
        return float(f"{value:.6g}") if np.isfinite(value) else None
    return value if isinstance(value, int | bool | None) else draw.printable(str(value))


def pack_heads(space):
    """{name: (facts for the page, one array of codes a head)} of what each head has of its own.

    Coordinates have `low` and `step` of each head, one for all axes, so that a plane keeps its
    shape; a projection "pca3" whose first two axes are those of "pca" is packed as its third alone.
    """
    packed = {}
    for name, xy in space.xy.items():
        points = heads_of(xy, space)
        axes = np.moveaxis(points, 2, 1)  # [heads axes points]
        if name == "pca3" and np.array_equal(heads_of(space.xy["pca"], space), points[..., :2]):
            packed["third"] = steps_of(axes[:, 2:], DEEP_STEPS)
        else:
            packed[name] = steps_of(axes, STEPS)
    both = [heads_of(space.norms[side], space) for side in ("query", "key")]
    packed["norms"] = steps_of(np.concatenate(both, axis=1), NORM_STEPS)
    packed["strongest"] = strongest(space)
    return packed


def heads_of(x, space):
    """An array of layers and heads as one of heads: [L H ...] -> [L*H ...]."""
    x = np.asarray(x)
    return x.reshape(space.L * space.H, *x.shape[2:])


def steps_of(x, steps):
    """Codes 0 to `steps` between the least and the greatest value of each head: [heads ...]."""
    rows = np.asarray(x, np.float64)
    within = tuple(range(1, rows.ndim))
    low, high = rows.min(axis=within, keepdims=True), rows.max(axis=within, keepdims=True)
    codes = np.rint((rows - low) / np.maximum(high - low, TINY) * steps)
    facts = {"low": low.ravel().tolist(), "step": ((high - low).ravel() / steps).tolist()}
    facts |= {"steps": steps, "shape": list(x.shape[1:])}
    return facts, codes.astype(np.uint16 if steps > 255 else np.uint8)


def strongest(space):
    """The strongest keys of each query, from the first key of its sentence on, and their weights.

    Numbers of keys have one byte, or two where a sentence is too long: low ones, weights, then high
    ones. Raises ValueError for a key of another sentence.
    """
    index = np.moveaxis(heads_of(space.strongest.index, space), 2, 1)  # [heads 5 n]
    offsets = np.where(index >= 0, index - first_keys(space), -1)
    longest = np.bincount(space.keys.sentence).max()
    if (offsets[index >= 0] < 0).any() or offsets.max() >= longest:
        raise ValueError(
            f"a query's strongest key is {offsets.max()} keys after the first of its sentence; "
            f"wanted 0 to {longest - 1}, keys of the same sentence in their order"
        )
    weight = np.moveaxis(heads_of(space.strongest.weight, space), 2, 1)
    codes = np.rint(np.sqrt(np.clip(np.float64(weight), 0, 1)) * WEIGHT_STEPS)
    rows = [offsets & BYTE, codes, *([] if longest <= BYTE else [offsets >> 8 & BYTE])]
    facts = {"steps": WEIGHT_STEPS, "most": index.shape[1]}
    packed = np.concatenate(rows, axis=1).astype(np.uint8)
    return facts | {"shape": list(packed.shape[1:])}, packed


def first_keys(space):
    """The first key of each query's sentence. [n]"""
    sentences, firsts = np.unique(space.keys.sentence, return_index=True)
    return firsts[np.searchsorted(sentences, space.queries.sentence).clip(0, len(firsts) - 1)]


def squeezed(codes):
    """Codes as text: low bytes, then high ones if there are any, compressed, in base 85.

    >>> opened(squeezed(np.array([[1, 300]], np.uint16)), (1, 2), np.uint16).tolist()
    [[1, 300]]
    """
    flat = codes.ravel()
    planes = [flat] if codes.dtype == np.uint8 else [flat & 255, flat >> 8]
    content = b"".join(plane.astype(np.uint8).tobytes() for plane in planes)
    return base64.b85encode(zlib.compress(content, 9)).decode().replace("<", "/")


def opened(text, shape, dtype):
    """The codes again, as the page reads them."""
    content = np.frombuffer(zlib.decompress(base64.b85decode(text.replace("/", "<"))), np.uint8)
    if dtype == np.uint16:
        low, high = content.reshape(2, -1).astype(np.uint16)
        content = low | high << 8
    return content.reshape(shape)
