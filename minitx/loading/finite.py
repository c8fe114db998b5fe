"""Are all numbers of a checkpoint finite? Its arrays, by the names that one writes in Python."""

import numpy as np

from ..arrays import Model
from ..inputs import check_model
from ..machine.mapped import ARRAY, pieces

LARGEST = 1e10  # no sound checkpoint has a weight that is as large


def check(model: Model) -> None:
    """Raise ValueError that names every weight with NaN or infinity. Reads the whole file.

    The same holds for numbers beyond 1e10: in float32 their products overflow within a layer.

    A sound checkpoint:

    >>> import minitx
    >>> minitx.check(minitx.load("tiny-bert")) is None
    True
    """
    check_model(model)
    arrays = named_arrays(model).items()
    sizes = {name: np.max([*map(largest, pieces(x))], initial=0) for name, x in arrays}
    wrong = [name for name, size in sizes.items() if not np.isfinite(size)]
    if wrong:
        raise ValueError(f"NaN or infinity in: {', '.join(wrong)}")
    wrong = [name for name, size in sizes.items() if size > LARGEST]
    if wrong:
        raise ValueError(f"numbers beyond {LARGEST:.0e} in: {', '.join(wrong)}")


def largest(x):
    """The largest size of a number, NaN if there is one: without a copy of the array."""
    return max(-x.min(initial=0), x.max(initial=0))


def named_arrays(model):
    """{name as one writes it in Python: array} of all weights of a model."""
    parts = {"": model.weights}
    for w in model.layers:
        parts |= {f"layers[{w.index}].": w, f"layers[{w.index}].cross.": w.cross}
    arrays = {}
    for prefix, part in parts.items():
        own = {} if part is None else vars(part)
        arrays |= {prefix + k: x for k, x in own.items() if isinstance(x, ARRAY)}
    if model.encoder is not None:
        arrays |= {f"encoder.{name}": x for name, x in named_arrays(model.encoder).items()}
    return arrays
