"""The film of a training: one self-contained HTML file with a slider over its snapshots.

All pictures are drawn by the page from numbers that stand in it, with no library and no network.
"""

from html import escape

import numpy as np

from ..drawing import draw
from ..machine import files, language
from ..maths import profiles
from . import assets, explore, tokens

STYLE, PROGRAM = "forming.css", ("language.js", "forming.js")
DIGITS = 4  # that are kept of a number


def page(name, results, said):
    """The HTML text of a training's film.

    results: {name: array} of analysis.forming.compute. said: sentences below the pictures.

    >>> steps, loss = np.array([0, 10]), np.array([3.0, 1.0])
    >>> results = {"steps": steps, "loss": loss, "gain": loss, "loss_null": loss, "losses": loss}
    >>> results["looks"] = np.zeros((2, 1, 2, 21))
    >>> "<script" in page("a training", results, ["It learns."])
    True
    """
    parts = {"style": tokens.css() + assets.text(STYLE)}
    parts["program"] = "\n".join(assets.scripts(*PROGRAM))
    title = language.filled("How positions form: {name}", name=name)
    parts["title"] = escape(draw.printable(title))
    parts["said"] = "\n".join(f"<p>{escape(draw.printable(text))}</p>" for text in said)
    parts["data"] = explore.as_script(frames(results))
    return explore.composed("forming.html", **parts)


def frames(results):
    """What the page draws: lists of numbers, one entry a snapshot."""
    names = "steps", "loss", "gain", "loss_null", "looks", "amplitude", "swing_null", "cca"
    names += "cca_null", "follow", "follow_null", "sharp", "sharp_null"
    content = {name: rounded(results[name]) for name in names if name in results}
    return files.finite(content | {"offsets": profiles.offsets().tolist()})


def rounded(x):
    """Numbers with DIGITS digits, as lists."""
    x = np.asarray(x)
    if x.dtype.kind in "iu":
        return x.tolist()
    return np.vectorize(lambda value: float(f"{value:.{DIGITS}g}"))(x).tolist()
