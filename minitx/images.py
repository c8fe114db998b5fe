"""Pictures -> rows of numbers, one a token: what stands for token ids in a model of pictures.

A picture is a sentence of patches. Its first tokens, class and distillation, stand for no position.
The row of a token has V numbers: a 1 for one of the special tokens, or a 1 for a patch, then the
patch's pixels, channel by channel, row by row. So one product with W_E, whose rows are the special
tokens' vectors, the patches' bias and the convolution's kernel, embeds them all.

Read downward: `batch_of_images`, patches, how pictures are made ready, files. Axis letters: see
model.py; h, w: height and width of a picture in pixels, C: its channels.
"""

import contextlib
import math
import os
import warnings
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .inputs import Batch
from .loading.files import one_line, read_json

Images = str | os.PathLike[str] | np.ndarray | Sequence[Any]
MOST_PIXELS = 1 << 26  # of a picture, as it is and when it is resized: 67 million
FORMATS = "PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF", "PPM"  # none that runs another program
MODES = {1: "L", 3: "RGB"}  # channels -> Pillow's name


def batch_of_images(images, picture, preprocessor):
    """Pictures as a Batch: tokens [B T V] of float32, all valid."""
    single = isinstance(images, str | os.PathLike) or getattr(images, "ndim", 0) == 3
    images = [images] if single else list(images)
    if not images:
        raise ValueError("no picture; wanted a path, an array [height width channels], or several")
    ready = [preprocessor.pixels(image, picture, i) for i, image in enumerate(images)]
    tokens = rows_of(np.stack(ready), picture)
    return Batch(tokens, np.ones(tokens.shape[:2], bool), None)


# --- patches


def n_tokens(picture):
    """How many tokens a picture has."""
    return picture.specials + picture.rows * picture.columns


def row_length(picture):
    """V: how many numbers the row of a token has."""
    return picture.specials + 1 + picture.channels * picture.height * picture.width


def rows_of(pixels, picture):  # [B C h w] -> [B T V]
    """The rows of the special tokens, and those of all patches, row by row.

    >>> from minitx.config import Picture
    >>> pixels = np.arange(16.0).reshape(1, 1, 4, 4)
    >>> rows_of(pixels, Picture(rows=2, columns=2, channels=1, height=2, width=2))[0]
    array([[ 1.,  0.,  0.,  0.,  0.,  0.],
           [ 0.,  1.,  0.,  1.,  4.,  5.],
           [ 0.,  1.,  2.,  3.,  6.,  7.],
           [ 0.,  1.,  8.,  9., 12., 13.],
           [ 0.,  1., 10., 11., 14., 15.]])
    """
    B, s = len(pixels), picture.specials
    rows, columns, C, height, width, _ = picture
    split = pixels.reshape(B, C, rows, height, columns, width)
    tokens = np.zeros((B, n_tokens(picture), row_length(picture)), pixels.dtype)
    tokens[:, :s, :s] = np.eye(s)
    tokens[:, s:, s] = 1
    patches = split.transpose(0, 2, 4, 1, 3, 5)
    tokens[:, s:, s + 1 :] = patches.reshape(B, rows * columns, -1)
    return tokens


def pixels_of(tokens, picture):  # [B T V] -> [B C h w]
    """The pixels of rows of numbers: what `rows_of` was given."""
    rows, columns, C, height, width, s = picture
    patches = tokens[:, s:, s + 1 :].reshape(-1, rows, columns, C, height, width)
    return patches.transpose(0, 3, 1, 4, 2, 5).reshape(-1, C, *picture.size)


def names(picture):
    """A name for each token: cls, dist, then row and column of each patch."""
    specials = ["cls", "dist"][: picture.specials]
    places = np.ndindex(picture.rows, picture.columns)
    return specials + [f"{row},{column}" for row, column in places]


# --- how pictures are made ready


class Steps(NamedTuple):
    """What a preprocessor_config.json says."""

    shortest: int  # the shorter side is resized to it; 0: not so
    size: tuple[int, int] | None  # or the picture to this height and width
    resample: int  # Pillow's number of the filter
    crop: tuple[int, int] | None  # height and width of what is cut out of the middle
    factor: float  # on bytes
    mean: list[float]  # of each channel
    std: list[float]


KINDS = "ViT", "DeiT", "CLIP", "Bit"  # how the names of processors begin
READ = """
    crop_size default_to_square do_center_crop do_normalize do_rescale do_resize image_mean
    image_std resample rescale_factor size"""
INERT = {  # reason why a key changes no pixel here -> keys
    "speed, or the form of what the library returns": """
        data_format device disable_grouping image_seq_length return_tensors""",
    "files are read as the model's channels, arrays have theirs last": """
        do_convert_rgb input_data_format""",
    "what has an effect only beside a key that is refused": "pad_size",
}
FILES = "preprocessor_config.json", "processor_config.json"


class Preprocessor:
    """Makes pictures ready as a folder's preprocessor_config.json says, read when first used."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def steps(self):
        """The Steps of the folder."""
        path = next((self.folder / f for f in FILES if (self.folder / f).is_file()), None)
        if path is None:
            raise ValueError(
                f"{self.folder} has no {FILES[0]}, which describes how to preprocess pictures"
            )
        settings = read_json(path)
        settings = settings.get("image_processor", settings)
        try:
            return steps_of(settings)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"{path.name}: {one_line(error, 200)}") from None

    def pixels(self, image, picture, number=0):  # -> [C h w] float32
        """A picture resized, cropped, rescaled, normalised. Raises ValueError for a wrong one."""
        if isinstance(image, str | os.PathLike):
            array = read_image(image, picture.channels)
        else:
            array = checked(image, picture.channels, number)
        steps = self.steps
        array = cropped(resized(array, steps), steps.crop)
        if array.shape[:2] != picture.size:
            given, wanted = (f"{h} × {w}" for h, w in (array.shape[:2], picture.size))
            text = f"picture {number} is {given} pixels when it is ready; this model reads {wanted}"
            raise ValueError(f"{text}; minitx.resized(model, …) returns a model for another size")
        factor = steps.factor if array.dtype == np.uint8 else 1.0
        scaled = (array * factor).astype(np.float32)
        mean, std = (np.array(x, np.float32) for x in (steps.mean, steps.std))
        return ((scaled - mean) / std).transpose(2, 0, 1)


def steps_of(settings):
    """The Steps of a file's settings. Raises ValueError for what is not computed."""
    from .loading.families import keys  # which reads pictures' sizes from here

    name = settings.get("image_processor_type") or settings.get("feature_extractor_type") or "ViT"
    kind = next((kind for kind in KINDS if str(name).startswith(kind)), None)
    if kind is None:
        raise ValueError(f"image_processor_type is {name!r:.80}; supported: {', '.join(KINDS)}")
    defaults = keys.library()["pictures"][kind]
    said = {key: x for key, x in settings.items() if x is not None}
    keys.check(said, defaults, {*READ.split()} | keys.inert(INERT))
    given = defaults | said
    shortest, size = resizing(given)
    crop = pair(given["crop_size"]) if given.get("do_center_crop") else None
    resample = given["resample"]
    if resample not in range(6):
        raise ValueError(f"resample is {resample!r:.80}; wanted one of Pillow's filters, 0 to 5")
    factor, mean, std = 1.0, [0.0], [1.0]
    if given.get("do_rescale", True):
        factor = float(given.get("rescale_factor", 1 / 255))
    if given.get("do_normalize", True):
        mean, std = numbers(given["image_mean"]), numbers(given["image_std"])
    return Steps(shortest, size, resample, crop, factor, mean, std)


def resizing(given):
    """The length of the shorter side or 0, and height and width or None."""
    size = given["size"]
    if not given.get("do_resize", True):
        return 0, None
    if isinstance(size, int) and not given["default_to_square"]:
        size = {"shortest_edge": size}
    if isinstance(size, dict) and "shortest_edge" in size:
        if size.get("longest_edge"):
            raise ValueError("size has a longest_edge, which is not supported")
        return side(size["shortest_edge"]), None
    return 0, pair(size)


def pair(size):
    """Height and width of a size as files write it."""
    if isinstance(size, int):
        return side(size), side(size)
    if isinstance(size, dict):
        return side(size["height"]), side(size["width"])
    height, width = size
    return side(height), side(width)


def side(n):
    """The length of a side. Raises ValueError unless it is one that a picture can have."""
    if type(n) is not int or not 0 < n <= math.isqrt(MOST_PIXELS):
        raise ValueError(f"a side is {n!r:.80}; wanted 1 to {math.isqrt(MOST_PIXELS)} pixels")
    return n


def numbers(values):
    """A number for each channel."""
    values = values if isinstance(values, list) else [values]
    values = [float(x) for x in values]
    if not all(map(math.isfinite, values)):
        raise ValueError(f"mean or deviation is {values}; wanted finite numbers")
    return values


def checked(image, channels, number):
    """An array [h w C] of bytes, or of numbers from 0 to 1; raises ValueError for another."""
    array = np.asarray(image)
    wanted = f"[height width {channels}] of uint8, or of floats from 0 to 1"
    if array.ndim != 3 or array.shape[2] != channels or not array.size:
        raise ValueError(f"picture {number} is {array.dtype} {list(array.shape)}; wanted {wanted}")
    if array.dtype == np.uint8:
        return array
    if array.dtype.kind != "f" or not (array.min() >= 0 and array.max() <= 1):
        raise ValueError(
            f"picture {number} is {array.dtype}, with numbers out of range; wanted {wanted}"
        )
    return array


def resized(array, steps):  # [h w C] -> [h w C]
    """A picture in the size that the Steps want before they crop it."""
    height, width = array.shape[:2]
    size = steps.size or (height, width)
    if steps.shortest:
        short, long = sorted((height, width))
        longer = int(steps.shortest * long / short)
        size = (longer, steps.shortest) if width <= height else (steps.shortest, longer)
    if math.prod(size) > MOST_PIXELS:
        text = f"a picture of {height} × {width} pixels would be resized to {size[0]} × {size[1]}"
        raise ValueError(f"{text}; wanted at most {MOST_PIXELS} pixels")
    if size == (height, width):
        return array
    if array.dtype != np.uint8:
        text = f"floats of {height} × {width} pixels are not resized"
        raise ValueError(f"{text}; wanted {size[0]} × {size[1]} pixels, or uint8")
    pillow = need_pillow(f"to resize a picture of {height} × {width} pixels")
    image = pillow.fromarray(array[:, :, 0] if array.shape[2] == 1 else array)
    small = np.asarray(image.resize(size[::-1], resample=steps.resample))
    return small.reshape(*size, -1)


def cropped(array, crop):  # [h w C] -> [h w C]
    """The middle of a picture, zeros around it where it is too small; as the reference library."""
    if crop is None:
        return array
    for axis, wanted in enumerate(crop):
        length = array.shape[axis]
        missing = max(0, wanted - length)
        before = -(-missing // 2)
        around = [(0, 0)] * 3
        around[axis] = before, missing - before
        array = np.pad(array, around)
        first = (length - wanted) // 2 + before
        array = array.take(range(first, first + wanted), axis)
    return array


# --- files


def need_pillow(what):
    """Pillow's Image. Raises ValueError that names the extra if it is not installed."""
    try:
        from PIL import Image
    except ImportError:
        text = f"Pillow is needed {what}: pip install 'minitx[images]'"
        raise ValueError(f"{text}; without it arrays of the model's size are read") from None
    return Image


def read_image(path, channels):  # -> [h w C] uint8
    """The first picture of a file; what is transparent lies on white.

    Raises ValueError, in one line, for a file that is missing, damaged, too large or of no known
    format; FORMATS are known. The orientation that a photograph's file states is not applied.
    """
    pillow = need_pillow(f"to read {path}")
    if channels not in MODES:
        raise ValueError(f"a model of {channels} channels reads arrays, not files of pictures")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of damaged metadata; large pictures are refused below
            with contextlib.closing(pillow.open(path, formats=FORMATS)) as image:
                width, height = image.size
                if width * height > MOST_PIXELS:
                    raise ValueError(f"{width} × {height} pixels; wanted at most {MOST_PIXELS}")
                return pixels_in(pillow, image, MODES[channels])
    except MemoryError:
        raise ValueError(f"{path}: too large for memory") from None
    except Exception as error:  # what a damaged file makes of a decoder has no common class
        kind = "" if isinstance(error, ValueError | OSError) else f"{type(error).__name__}: "
        raise ValueError(f"cannot read the picture {path}: {kind}{one_line(error, 200)}") from None


def pixels_in(pillow, image, mode):  # -> [h w C] uint8
    """The pixels of an open file, in a mode of Pillow's."""
    if "A" in image.getbands() or image.info.get("transparency") is not None:
        image = image.convert("RGBA")
        white = pillow.new("RGBA", image.size, (255, 255, 255, 255))
        image = pillow.alpha_composite(white, image)
    array = np.asarray(image.convert(mode))
    return array.reshape(*array.shape[:2], -1)
