"""The explore page in a notebook, as `minitx.explore` gives it: in an isolated frame."""

from html import escape
from numbers import Integral
from textwrap import shorten
from typing import Any, NamedTuple

import numpy as np

from ..drawing import draw
from ..machine.files import writable_file, write
from ..machine.language import translated
from ..running import blas, settings, single
from ..texts import joined
from . import explore
from .packing import unpack

LEAST_HEIGHT = 100  # pixels: less shows nothing but the title
SHOWN = 40  # letters of the text in a Page's name
# the page draws with a program, and saves figures; it reaches neither the notebook nor any network
SANDBOX = "allow-scripts allow-downloads"


class Page:
    """One explore page: `.html`, the whole of it, and `.save(path)`; a notebook shows it.

    The frame holds a copy of the page, escaped: a notebook file grows by a tenth more than the page
    each time it is shown. 64 tokens on 12 × 12 heads take 2.9 MB.
    """

    def __init__(self, title, html, height, run=None):
        self.title = title
        self.html = html
        self.height = height
        self._run = run

    def save(self, path):
        """Write the page to a file that any browser opens, and return its path."""
        path = writable_file(path)
        write(path, self.html)
        return path

    def __repr__(self):
        megabytes = len(self.html.encode()) / 1e6
        return (
            f"<{self.title}: a page of {megabytes:.2f} MB, which a notebook shows; "
            "elsewhere .save('explore.html') writes it for a browser>"
        )

    def _repr_html_(self):
        """The page in a frame: nothing of it can run in the notebook itself."""
        style = f"width: 100%; height: {self.height}px; border: 0"
        title, page = escape(self.title), escape(self.html)
        return (
            f'<iframe title="{title}" sandbox="{SANDBOX}" style="{style}" srcdoc="{page}"></iframe>'
        )

    def _repr_png_(self):
        """Every head's attention, where no page can be shown: in LaTeX, in a PDF."""
        with draw.style():
            return draw.png(all_heads(self._run), self.title)


def all_heads(run):
    """A figure of the attention of every head in the first part of a run, on one scale."""
    part = next(iter(run.get("parts", {"": run}).values()))
    weights = unpack(part["arrays"]["pattern"])  # [L H T S]
    L, H, T, S = weights.shape
    gap = max(1, S // 16)
    tiles = np.pad(weights, ((0, 0), (0, 0), (0, gap), (0, gap)), constant_values=np.nan)
    side = max(0.5, min(1.4, 7 / H))
    figure = draw.figure(side * H + 0.9, side * L + 0.6)
    axes = figure.subplots()
    axes.imshow(tiles.swapaxes(1, 2).reshape(L * (T + gap), -1), cmap="Blues", aspect="auto")
    axes.set_xticks(np.arange(H) * (S + gap) + (S - 1) / 2, range(H))
    axes.set_yticks(np.arange(L) * (T + gap) + (T - 1) / 2, range(L))
    axes.set(xlabel=translated("head"), ylabel=translated("layer"))
    return figure


class Wanted(NamedTuple):
    """What a page shows, as `minitx.explore` takes it."""

    words: bool = False
    target: str | None = None
    beside: str | tuple[str, str] | None = None
    beside_model: Any = None


def page(model, text, height, wanted):
    """The Page of a text; raises ValueError, before any work, for what it cannot show."""
    if not isinstance(height, Integral) or isinstance(height, bool) or height < LEAST_HEIGHT:
        raise ValueError(f"height is {height!r}; wanted {LEAST_HEIGHT} pixels or more")
    texts = [text] if wanted.beside is None else [text, wanted.beside]
    for given in texts:
        joined.check(given)
    if not isinstance(wanted.target, str | None):
        raise ValueError(f"target is {wanted.target!r:.80}; wanted a text, or None")
    runs = [(*named(model), text)]
    if wanted.beside is not None or wanted.beside_model is not None:
        second = runs[0][:2] if wanted.beside_model is None else named(wanted.beside_model)
        runs.append((*second, texts[-1]))
    with blas.one_thread_of_blas():
        computed = explore.runs(runs, wanted.words, wanted.target)
        html = explore.page(*computed)
    title = f"Explore {runs[0][1]} on {shorten(joined.shown(text), SHOWN, placeholder=' …')!r}"
    return Page(title, html, height, computed[0])


def named(given):
    """A model, and what it is called: a changed one is not called by its name alone."""
    model, name = single.loaded(given)
    changed = settings.changes(model) if model is given else []
    if changed:
        name = f"{name}, changed: {', '.join(changed)}"
    return model, name
