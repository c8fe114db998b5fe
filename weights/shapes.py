"""Pictures of a circle and a square, drawn by a program: the data of tiny-vit.

The question is where: is the circle left of the square, right of it, above or below? Shapes alike
in all places answer it only by place, so patches in another order say nothing. The circle is always
warm and the square cold: which is which is easy to see. Shades, sizes and places are drawn; of the
two distances, across and down, the larger one gives the class, and the other is at most half of
it, so that no picture lies between two classes.

>>> pictures, classes = draw(2, seed=0)
>>> pictures.shape, pictures.dtype, [CLASSES[i] for i in classes]
((2, 32, 32, 3), dtype('uint8'), ['below', 'above'])
"""

import numpy as np

CLASSES = "left", "right", "above", "below"  # of the square is the circle
SIDE = 32  # pixels
RADIUS = 3.5, 5.0  # of the circle, and half of the square's side
APART = 10.0, 20.0  # the larger of the two distances of their centres
NOISE = 8.0  # deviation of each pixel, of 255


def draw(n, seed):
    """n pictures [n 32 32 3] of bytes, and the number of each one's class [n]."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, len(CLASSES), n)
    far = rng.uniform(*APART, n)
    aside = rng.uniform(-0.5, 0.5, n) * far
    sign = np.where(classes % 2 == 0, -1, 1)
    is_across = classes < 2
    across = np.where(is_across, sign * far, aside)
    down = np.where(is_across, aside, sign * far)
    radius = rng.uniform(*RADIUS, (2, n))
    square = np.stack([centre(across, radius, rng), centre(down, radius, rng)])
    circle = square + np.stack([across, down])
    shown = rng.uniform(0, 90, (n, 1, 1, 3))  # the ground
    ink = inks(n, rng)
    is_square = np.abs(from_centre(square)).max(axis=0) <= 0.85 * radius[1][:, None, None]
    shown = painted(shown, is_square, ink[0])
    is_circle = (from_centre(circle) ** 2).sum(axis=0) <= radius[0][:, None, None] ** 2
    shown = painted(shown, is_circle, ink[1])
    shown = shown + NOISE * rng.standard_normal(shown.shape)
    return np.clip(np.rint(shown), 0, 255).astype(np.uint8), classes


def from_centre(centres):
    """How far each pixel stands from a centre, across and down: [2 n 32 32]."""
    y, x = np.indices((SIDE, SIDE))
    across, down = centres[..., None, None]
    return np.stack([x - across, y - down])


def painted(shown, inside, ink):
    """Pictures with the pixels inside a shape in its ink."""
    return np.where(inside[..., None], ink[:, None, None], shown)


def inks(n, rng):
    """Colours of the square and of the circle: [2 n 3]."""
    ink = rng.uniform(60, 160, (2, n, 3))
    strong = rng.uniform(180, 255, (2, n))
    ink[0, :, 2], ink[1, :, 0] = strong
    return ink


def centre(distance, radius, rng):
    """Where the square stands on one axis, so that both shapes are inside the picture."""
    low = np.maximum(radius[1], radius[0] - distance)
    high = SIDE - 1 - np.maximum(radius[1], radius[0] + distance)
    return rng.uniform(low, high)
