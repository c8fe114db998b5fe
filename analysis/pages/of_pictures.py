"""Pictures on a page: which one is shown, and its patches.

T tokens, V numbers of a token, h, w: height and width in pixels, C channels.
"""

import base64
import re

from minitx.weights import shapes

from ..measures import pictures

DRAWN = re.compile(r"sample(?::(\d{1,9}))?")
WANTED = "sample, or sample:N for the N-th picture that a program draws"


def tokens_of(model, given):
    """The tokens [T V] of a file, or of a drawn picture. Raises ValueError if it cannot be read."""
    if DRAWN.fullmatch(given):
        return drawn(model, given)
    return model.encode(images=given).tokens[0]


def drawn(model, name):
    """The tokens [T V] of a picture of weights/shapes.py, by its number."""
    number = number_of(name)
    if model.config.picture.channels != 3:
        raise ValueError(f"{name} has 3 channels; this model reads {model.config.picture.channels}")
    drawing, _ = shapes.draw(1, seed=number)
    return model.encode(images=drawing[0]).tokens[0]


def number_of(name):
    """The number of a drawn picture. Raises ValueError for another name."""
    drawing = DRAWN.fullmatch(name)
    if not drawing:
        raise ValueError(f"the picture is {name!r:.80}; wanted {WANTED}")
    return int(drawing[1] or 0)


def facts(model, tokens):
    """What a page draws a picture from: its grid, and its pixels as the model reads them."""
    picture = model.config.picture
    height, width = picture.size
    pixels = base64.b64encode(pictures.shown(model, tokens).tobytes()).decode()
    numbers = picture.channels * picture.height * picture.width
    grid = {"rows": picture.rows, "columns": picture.columns, "first": picture.specials}
    return grid | {"width": width, "height": height, "numbers": numbers, "pixels": pixels}
