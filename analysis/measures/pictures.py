"""Pictures in place of documents: which are read, and what experiments in two dimensions share.

N pictures, T tokens of a picture, n patches, V numbers in the row of a token.
"""

from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np

from minitx.images import n_tokens, pixels_of
from minitx.weights import shapes

from ..contract import options
from ..contract.registry import NotApplicable

DRAWN = "sample"
AS_MANY = 64  # where their number is not given
ENDINGS = {".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".tif", ".tiff", ".ppm"}
Source = Annotated[str, "a picture, a folder of pictures, or sample: drawn by a program"]
Count = Annotated[options.Size, f"pictures to read (0: as many as there are, at most {AS_MANY})"]


class Sample(NamedTuple):
    """Pictures as a model reads them."""

    tokens: np.ndarray  # [N T V]
    classes: np.ndarray | None  # [N]: of those that are drawn

    def __len__(self):
        return len(self.tokens)

    def __iter__(self):
        return iter(self.tokens)


class Grid(NamedTuple):
    """Where the patches of a picture are among its tokens, and its places."""

    rows: int
    columns: int
    first: int  # number of the first patch: how many tokens stand before it

    @property
    def n(self):
        """How many patches there are."""
        return self.rows * self.columns

    @property
    def patches(self):
        """Their tokens, or their rows of the position table."""
        return slice(self.first, self.first + self.n)


def grid_of(model):
    """The Grid of a model of pictures."""
    picture = model.config.picture
    return Grid(picture.rows, picture.columns, n_tokens(picture) - picture.rows * picture.columns)


def table(model):
    """The rows [n D] of the position table that patches read."""
    return np.asarray(model.weights.W_pos, np.float64)[grid_of(model).patches]


def sample(model, source, n, seed):
    """The Sample of a source. Raises ValueError, before any work, for one that cannot be read."""
    if source == DRAWN:
        if model.config.picture.channels != 3:
            raise NotApplicable("the sample has three channels; wanted --text FOLDER of pictures")
        pictures, classes = shapes.draw(n or AS_MANY, (seed, 1))
        return Sample(model.encode(images=[*_sized(pictures, model)]).tokens, classes)
    paths = paths_of(Path(source))
    if len(paths) < max(n, 1):
        text = f"{source} has {len(paths)} pictures; wanted {n or 'at least 1'}"
        raise ValueError(f"{text}, whose names end in {', '.join(sorted(ENDINGS))}")
    return Sample(model.encode(images=paths[: n or AS_MANY]).tokens, None)


def _sized(pictures, model):
    """Drawn pictures [N h w C] in the size that a model reads whose preprocessor resizes none."""
    steps = model.preprocessor.steps
    if steps.size or steps.shortest or steps.crop:
        return pictures
    rows, columns = (
        np.arange(n) * side // n for n, side in zip(model.config.picture.size, pictures.shape[1:3])
    )
    return pictures[:, rows][:, :, columns]


def paths_of(path):
    """A file, or the files of pictures in a folder, by name."""
    if not path.is_dir():
        return [path]
    return sorted(x for x in path.iterdir() if x.suffix.lower() in ENDINGS)


def knows_classes(model, pictures):
    """Whether the model says the classes in which the sample is drawn."""
    if pictures.classes is None or model.config.task_head != "image":
        return False
    return model.weights.W_U.shape[1] == len(shapes.CLASSES)


def shuffled_places(grid, T, rng):
    """Positions [T] in which the patches read each other's rows of the table."""
    positions = np.arange(T)
    positions[grid.patches] = rng.permutation(positions[grid.patches])
    return positions


def shown(model, tokens):
    """The pixels of tokens [T V] in colours, before they were normalised: [h w 3] of bytes."""
    steps = model.preprocessor.steps
    pixels = pixels_of(tokens[None], model.config.picture)[0].transpose(1, 2, 0)
    if pixels.shape[-1] != 3:
        pixels = pixels.mean(axis=-1, keepdims=True)
    bright = (pixels * np.array(steps.std) + steps.mean) / (steps.factor or 1)
    whole = np.clip(np.rint(np.nan_to_num(bright)), 0, 255).astype(np.uint8)
    return np.broadcast_to(whole, (*bright.shape[:2], 3))
