"""Pictures on a page: which one is shown, its patches, and the names of its classes.

T tokens, V numbers of a token, h, w: height and width in pixels, C channels.
"""

import base64
import re

from minitx.files import read_json
from minitx.weights import shapes

from ..measures import pictures

DRAWN = re.compile(r"sample(?::(\d{1,9}))?")
WANTED = "sample, or sample:N for the N-th picture that a program draws"
MOST_CLASSES, LONGEST = 10_000, 80  # names that are shown, and their letters


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


def classes(model, n):
    """Names of n classes, by config.json's id2label; None where it does not name each."""
    names = read_json(model.preprocessor.folder / "config.json").get("id2label")
    if not isinstance(names, dict) or n > MOST_CLASSES:
        return None
    named = [names.get(str(i)) for i in range(n)]
    return [name[:LONGEST] for name in named] if all(isinstance(x, str) for x in named) else None
