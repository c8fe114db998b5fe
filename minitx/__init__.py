"""minitx: see inside transformers with NumPy alone. Read model.py first, from top to bottom."""

from .machine import interrupt as _interrupt  # noqa: F401  (before all that takes time)

# isort: split
import sys as _sys
from collections.abc import Mapping as _Mapping
from dataclasses import replace as _replace
from os import PathLike as _PathLike
from os.path import isfile as _isfile
from pathlib import Path as _Path
from types import ModuleType as _ModuleType
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from numpy.typing import DTypeLike as _DTypeLike

from .arrays import Model
from .cache import Cache
from .cost import cost
from .edits import Edit as _Edit
from .generate import generate
from .images import Preprocessor as _Preprocessor
from .inputs import Batch
from .learning import History, train
from .learning.gradients import Gradients, gradients
from .loading.checkpoint import read_model as _read_model
from .loading.checkpoint import tell_unread as _tell_unread
from .loading.finite import check
from .loading.in_memory import from_arrays, from_transformers
from .model import final_norm, forward, logits
from .points import POINTS
from .research import (
    Probe,
    collect,
    fit_probe,
    load_sae,
    open_collection,
    steer,
    steering_vector,
    top_examples,
)
from .resized import resized
from .similarity import similarity
from .sweep import sweep
from .trace import Trace, run
from .weights.local import check_name as _check_name
from .weights.local import find as _find
from .words.text import of_stacks as _of_stacks

if _TYPE_CHECKING:
    from .analysis.live.server import Serving as _Serving
    from .analysis.pages.inline import Page as _Page

__all__ = [
    "POINTS",
    "Batch",
    "Cache",
    "Gradients",
    "History",
    "Model",
    "Probe",
    "Trace",
    "check",
    "collect",
    "cost",
    "explore",
    "final_norm",
    "fit_probe",
    "forward",
    "from_arrays",
    "from_transformers",
    "generate",
    "gradients",
    "load",
    "load_sae",
    "logits",
    "open_collection",
    "resized",
    "run",
    "serve",
    "similarity",
    "steer",
    "steering_vector",
    "sweep",
    "top_examples",
    "train",
]
__version__ = "1.1.0"


def load(
    name: str | _PathLike[str],
    dtype: _DTypeLike = "float32",
    partial: bool = False,
    head: str | None = None,
    keep_dtype: bool = False,
) -> Model:
    """Model from a bundled name, a hub id that was fetched, or a folder in Hugging Face layout.

    A folder has config.json and safetensors; a tokenizer is needed only for text.
    dtype: float32, or float64 for reference runs.
    partial: tensors may be missing (model.missing); the others can be read, but the model cannot
    run.
    head: the task head to load if there are several, by the names of `config.task_head`: BERT's own
    checkpoints have "masked" and "next_sentence".
    keep_dtype: matrices stay in the file, for example in 16 bits, and every pass converts them
    piece by piece: a checkpoint may be larger than memory, and results are bit-identical.
    Gradients, tuning and experiments need the arrays in memory.
    Raises FileNotFoundError or ValueError with the reason.

    >>> import minitx
    >>> model = minitx.load("tiny-gpt2", dtype="float64")
    >>> model.config.n_layers, model.weights.W_pos.shape, model.weights.W_pos.dtype
    (4, (256, 128), dtype('float64'))
    >>> minitx.load("tiny-gpt2", keep_dtype=True).weights.W_pos
    Mapped [256 128], read from its file as float32
    """
    _check_name(name)
    folder = _Path(name)
    if not _isfile(folder / "config.json"):
        folder = _find(name)
    model = _read_model(folder, dtype, partial, head, keep_dtype)
    _tell_unread(model, folder)
    source, target = _of_stacks(folder, model.config.model_type)
    model = _replace(model, preprocessor=_Preprocessor(folder))
    if model.text is not None:
        model = _replace(model, text=_replace(model.text, tokenizer=source))
    if model.encoder is None:
        return _replace(model, tokenizer=source)
    encoder = _replace(model.encoder, tokenizer=source)
    return _replace(model, tokenizer=target, encoder=encoder)


def explore(
    model: Model | str | _PathLike[str],
    text: str | tuple[str, str],
    words: bool = False,
    height: int = 800,
    *,
    target: str | None = None,
    beside: str | tuple[str, str] | None = None,
    beside_model: Model | str | _PathLike[str] | None = None,
) -> "_Page":
    """A page that shows every head on one text, for notebooks; `.save(path)` writes a file.

    model: a Model, or its name. text: a text, or a tuple of two that the model reads together, as
    a premise and a hypothesis, with separators and token types as its tokenizer makes them.
    words: show whole words, not pieces. height: of the frame, in pixels. target: the output of an
    encoder-decoder, by default its greedy output. The text is then its source, and the page has
    encoder, decoder and cross-attention.
    beside, beside_model: a second text, a second model, or both, beside the first; the page shows
    the difference where both have as many heads and tokens.
    The page is what `minitx explore` writes: 2.8 MB for 64 tokens on 12 x 12 heads, kept in the
    notebook's file. Raises ValueError, before any work, for a text of fewer than two tokens, of
    more than the page shows or the model reads, or for a partial checkpoint.

    >>> import minitx
    >>> page = minitx.explore("tiny-roberta", "The dog ran")
    >>> "<script" in page.html, page.height  # pixels
    (True, 800)
    """
    from .analysis.pages import inline

    wanted = inline.Wanted(words, target, beside, beside_model)
    return inline.page(model, text, height, wanted)


def serve(
    model: Model | str | _PathLike[str],
    text: str | tuple[str, str] | None = None,
    edits: _Mapping[_Any, _Edit] | None = None,
    *,
    port: int = 0,
    browser: bool = True,
) -> "_Serving":
    """The live page of `minitx serve`, from Python: `.address`, `.close()`, `.wait()`.

    text: the first text, or a pair; by default one that the model can read. edits: as for `run`,
    such as those of `minitx.steer`: the page then shows the changed run beside the unchanged one;
    changes made on the page are added, and replace an edit at the same point. port: 0 takes a free
    one. browser: open the page in a browser. At the end of a script, `.wait()` keeps the server
    running. It needs minitx[live].
    Raises ValueError for edits that a run refuses, for a text that the page cannot show, and for a
    taken port.

    >>> import minitx
    >>> v = minitx.steering_vector("tiny-stories", ["A sad dog"], ["A happy dog"], layer=2)
    >>> page = minitx.serve("tiny-stories", "Tom was sad.", minitx.steer(v, 4.0), browser=False)
    >>> page.address.startswith("http://127.0.0.1:")
    True
    >>> page.close()
    """
    from .analysis.live import server

    return server.of_python(model, text, edits, port, browser)


class _TraceModule(_ModuleType):
    """The module `trace`, where it is called as if it were `run`."""

    def __call__(self, *_, **__):
        raise TypeError("minitx.trace is a module; minitx.run(model, text) gives a Trace")


_sys.modules[Trace.__module__].__class__ = _TraceModule
