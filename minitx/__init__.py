"""minitx: see inside transformers with NumPy alone. Read model.py first: the whole computation is there."""
from pathlib import Path as _Path

from .cache import Cache
from .checkpoint import check, read as _read
from .generate import generate
from .model import Model, forward, logits
from .text import Tokenizer as _Tokenizer
from .trace import POINTS, Trace, cost, run

__all__ = ["Cache", "Model", "POINTS", "Trace", "check", "cost", "forward", "generate", "load", "logits", "run"]

def load(folder, dtype="float32", partial=False):
    """Model from a folder in Hugging Face layout: config.json, safetensors, and a tokenizer if text is wanted.

    dtype float32 or float64 (reference runs). partial: tensors may be missing (model.missing), and what is there can
    be looked at but not run. FileNotFoundError or ValueError says what is wrong with the folder.
    """
    config, weights, layers, *names = _read(folder := _Path(folder), dtype, partial)
    return Model(config, weights, layers, _Tokenizer(folder, config.model_type), *names)
