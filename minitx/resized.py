"""A model of pictures for pictures of another size: its position table, interpolated."""

from dataclasses import replace

import numpy as np

from .arrays import Model, Weights
from .images import n_tokens
from .inputs import check_model

A = -0.75  # of the cubic convolution, as in the reference library


def resized(model: Model, height: int, width: int) -> Model:
    """The model for pictures of height × width pixels, with interpolated positions of patches.

    Every patch keeps its size; their number changes. Rows of the position table are interpolated in
    both directions by cubic convolution (Keys 1981); those of class and distillation token stay.
    The reference library does the same for a picture of another size than the model's: published
    DINOv2 was trained on 518 × 518 pixels, and its preprocessor makes 224 × 224. Raises ValueError
    for a model without pictures, or a size that is not a whole number of patches.

    >>> import minitx
    >>> model = minitx.resized(minitx.load("tiny-vit"), 16, 24)
    >>> model.config.picture.rows, model.config.picture.columns, model.weights.W_pos.shape
    (4, 6, (25, 64))
    """
    check_model(model)
    cfg = model.config
    picture = cfg.picture
    if picture is None:
        raise ValueError(f"a {cfg.model_type} reads no pictures, so their size cannot be changed")
    rows = height // picture.height
    columns = width // picture.width
    new = picture._replace(rows=rows, columns=columns)
    if min(rows, columns) < 1 or new.size != (height, width):
        text = f"{height} × {width} pixels are not a whole number of patches"
        raise ValueError(f"{text} of {picture.height} × {picture.width}")
    W_pos = interpolated(np.asarray(model.weights.W_pos), picture, new)
    W_pos.flags.writeable = False
    arrays = vars(model.weights) | {"W_pos": W_pos}
    n = n_tokens(new)
    return replace(
        model,
        config=replace(cfg, picture=new, n_ctx=n, n_pos=n),
        weights=Weights(**arrays),
    )


def interpolated(W_pos, picture, new):  # [P D] -> [P' D]
    """The rows of a position table for another grid of patches."""
    specials = W_pos[: picture.specials]
    patches = W_pos[picture.specials :]
    grid = patches.reshape(picture.rows, picture.columns, -1)
    down = between(picture.rows, new.rows)
    across = between(picture.columns, new.columns)
    grid = np.einsum("iy,jx,yxd->ijd", down, across, grid, optimize=True)
    patches = grid.reshape(new.rows * new.columns, -1)
    return np.concatenate([specials, patches.astype(W_pos.dtype)])


def between(n, m):  # -> [m n]
    """The share of each of n values in each of m that lie evenly over the same length.

    Beyond the ends the last value goes on.
    """
    weights = np.zeros((m, n))
    new = np.arange(m)
    places = (new + 0.5) * n / m - 0.5
    first = np.floor(places).astype(int)
    for step in (-1, 0, 1, 2):
        old = first + step
        near = np.clip(old, 0, n - 1)
        np.add.at(weights, (new, near), cubic(places - old))
    return weights


def cubic(t):
    """Weight of a value at a distance t, in values, below 2."""
    t = abs(t)
    inside = ((A + 2) * t - (A + 3)) * t * t + 1
    outside = A * (((t - 5) * t + 8) * t - 4)
    return np.where(t <= 1, inside, outside)
