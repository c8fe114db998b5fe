"""minitx: see inside transformers with NumPy alone. Read model.py first, from top to bottom."""

from dataclasses import replace as _replace
from os import PathLike as _PathLike
from pathlib import Path as _Path

from numpy.typing import DTypeLike as _DTypeLike

from .cache import Cache
from .checkpoint import check
from .checkpoint import read_model as _read_model
from .generate import generate
from .inputs import Batch
from .model import Model, final_norm, forward, logits
from .sweep import sweep
from .text import Tokenizer as _Tokenizer
from .trace import POINTS, Trace, cost, run

__all__ = [
    "POINTS",
    "Batch",
    "Cache",
    "Model",
    "Trace",
    "check",
    "cost",
    "final_norm",
    "forward",
    "generate",
    "load",
    "logits",
    "run",
    "sweep",
]
__version__ = "0.4.0"


def load(name: str | _PathLike[str], dtype: _DTypeLike = "float32", partial: bool = False) -> Model:
    """Model from a bundled name, a hub id that was fetched, or a folder in Hugging Face layout.

    A folder has config.json, safetensors, and a tokenizer if text is wanted. dtype: float32, or
    float64 for reference runs. partial: tensors may be missing (model.missing), and what is there
    can be looked at but not run. Raises FileNotFoundError or ValueError that says what is wrong.
    """
    folder = _Path(name)
    if isinstance(name, str) and not folder.is_dir():
        from .weights import find

        folder = find(name)
    model = _read_model(folder, dtype, partial)
    return _replace(model, tokenizer=_Tokenizer(folder, model.config.model_type))
