"""What families of pictures share: how a picture is cut up, and W_E, made of several tensors.

W_E begins with the vectors of special tokens, then comes the patches' bias, then the kernel of the
convolution, a row for each number of a patch (images.py).
"""

import numpy as np

from ...config import Picture
from ...images import n_tokens, row_length
from .family import Key, Tensor

MOST = 1 << 13  # pixels of a side
MOST_CHANNELS = 64


def sides(raw, name, default=None):
    """Height and width that a config.json has as one number or as two."""
    value = raw.get(name, default)
    pair = [value, value] if type(value) is int else value
    if not isinstance(pair, list) or len(pair) != 2:
        raise ValueError(f"{name} is {value!r:.80}; wanted a whole number, or two")
    if any(type(n) is not int or not 0 < n <= MOST for n in pair):
        raise ValueError(f"{name} is {value!r:.80}; wanted 1 to {MOST} pixels")
    return pair


def sizes(specials, image=None, patch=None):
    """The function that a Family has as `sizes`; image, patch: what a missing key stands for."""

    def of(raw):
        if raw.get("id2label") == {} and "Classification" in str(raw.get("architectures")):
            raise ValueError("id2label is empty; expected a label for each class of its head")
        picture = sides(raw, "image_size", image)
        patch_sides = sides(raw, "patch_size", patch)
        channels = raw.get("num_channels", 3)
        if type(channels) is not int or not 1 <= channels <= MOST_CHANNELS:
            raise ValueError(f"num_channels is {channels!r:.80}; wanted 1 to {MOST_CHANNELS}")
        grid = [whole // part for whole, part in zip(picture, patch_sides)]
        cut = Picture(*grid, channels, *patch_sides, specials)
        if 0 in grid or [*cut.size] != picture:
            text = f"image_size {picture} is not a whole number of patches"
            raise ValueError(f"{text} of {patch_sides} pixels")
        n = n_tokens(cut)
        return {
            "picture": cut,
            "n_vocab": row_length(cut),
            "n_ctx": n,
            "n_pos": n,
        }

    return of


KNOWS = "image_size", "patch_size", "num_channels"
UNTIED = {"n_types": 0, "pre_norm": True, "tied": False}
NO_WORDS = {"n_vocab": Key("vocab_size", None)}  # in its place comes what `sizes` gives


def stacked(kernel, *above):
    """The special tokens, the bias, and the kernel [D C h w] with a row for each number."""
    below = kernel.reshape(len(kernel), -1).T
    return np.concatenate([*(x.reshape(1, -1) for x in above), below])


def stacked_without_bias(kernel, *above):
    """The same with a bias of zeros."""
    return stacked(kernel, *above, np.zeros_like(above[0]))


def kernel_and_above(cfg):
    """The shapes of W_E's parts in a file, the kernel first."""
    _, _, channels, height, width, specials = cfg.picture
    D = cfg.d_model
    return (D, channels, height, width), *[(1, 1, D)] * specials, (D,)


def patches(kernel, *above, join=stacked):
    """W_E, of tensors by their names."""
    return Tensor((kernel,), others=above, join=join, shapes=kernel_and_above)


def first(x):
    """A table [1 P D] as [P D]."""
    return x[0]


def table(name):
    """W_pos, stored with an axis before it."""
    return Tensor((name,), join=first, shapes=lambda cfg: [(1, cfg.n_pos, cfg.d_model)])
