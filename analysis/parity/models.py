"""minitx verify A B: what moved between two checkpoints of one shape, by layer.

A conversion, a quantisation, a merge, a fine-tuning. Read downward: `verify`, the weights.
"""

from itertools import islice
from typing import NamedTuple

import numpy as np

from minitx.loading.finite import named_arrays
from minitx.points import expand, name_of, points

from ..contract import sides
from ..machine.language import filled, translated
from ..texts import formats
from . import batches, compare, reference

TEXTS, TOKENS = 8, 64  # of the text that both read
MOST = 8  # weights that are named


class Moved(NamedTuple):
    """How far one array of weights moved: |A - B| / |B|, by the root of the sum of squares."""

    name: str  # as one writes it in Python: layers[3].W_Q
    share: float


def verify(a, b, text="sample", texts=TEXTS, tokens=TOKENS, bound=None):
    """(Parity of the Models a and b, [Moved] of all weights that differ), b as the reference.

    Both read b's ids of the first documents of a text, or random ids where b has no tokenizer, each
    alone and all in one padded batch.
    Raises ValueError if the two have other sizes.
    """
    check_alike(a, b)
    inputs_of_all = batches.of_rows(rows_of(b, text, texts, tokens), b)
    dtypes = str(a.weights.W_E.dtype), str(b.weights.W_E.dtype)
    bound = compare.bound_for(bound, dtypes)
    entries, labels = [], []
    for i, inputs in enumerate(inputs_of_all):
        keys = compared(b)
        theirs = compare.run(b, inputs, keys)
        ours = compare.run(a, inputs, keys)
        for order, (point, x) in enumerate(ours.items()):
            row = of_all(point, i, x, theirs[point], inputs)
            entries.append((order, i, row))
        labels.append(compare.labels_of(theirs))
    entries.sort(key=lambda entry: entry[:2])
    rows = [row for *_, row in entries]
    return compare.Parity(rows, bound, notes(a, b), labels), moved(a, b)


def check_alike(a, b):
    """Raises ValueError that names the sizes in which two models differ."""
    for ours, theirs in ((a, b), (a.encoder, b.encoder)):
        if (ours is None) != (theirs is None):
            raise ValueError("only one of the two has an encoder")
        if ours is None:
            continue
        sizes = "n_layers", "n_heads", "d_model", "d_mlp", "n_vocab", "d_head", "n_ctx"
        unlike = [
            name for name in sizes if getattr(ours.config, name) != getattr(theirs.config, name)
        ]
        if unlike:
            given = ", ".join(
                f"{name} {getattr(ours.config, name)} and {getattr(theirs.config, name)}"
                for name in unlike
            )
            raise ValueError(f"checkpoints of different sizes cannot be compared: {given}")


def rows_of(model, text, n, most):
    """Token ids of the first n documents of a text, or random ones where there is no tokenizer."""
    reader = sides.reader(model)
    if reader.config.picture is not None:
        kind = reader.config.model_type
        raise ValueError(f"two models are compared on texts, and this one ({kind}) reads pictures")
    most = min(most, reader.config.n_ctx)
    formats.filled(text)
    try:
        documents = islice(formats.records(text), n)
        return [reader.tokenizer.encode(record.text)[:most] for record in documents]
    except FileNotFoundError:
        return batches.random_rows(reader.config, n, most, seed=0)


def compared(model):
    """The points of a model without scores, which are -inf where a key is hidden."""
    keys = expand(None, points(model), model)
    return [key for key in keys if not name_of(key).endswith(("scores", "pos_bias"))]


def of_all(point, batch, x, theirs, inputs):
    """The Row of one array, every value of it compared."""
    rows = reference.flat(point, x, inputs), reference.flat(point, theirs, inputs)
    return compare.farthest(point, batch, rows, (range(len(rows[0])), x.shape, inputs))


def moved(a, b):
    """[Moved] of the weights that differ, the farthest first."""
    ours, theirs = named_arrays(a), named_arrays(b)
    differing = []
    for name in ours.keys() & theirs.keys():
        x, y = ours[name], theirs[name]
        if x.shape != y.shape or not np.array_equal(x, y):
            differing.append(Moved(name, distance(x, y)))
    only = ours.keys() ^ theirs.keys()
    differing += [Moved(name, np.inf) for name in only]
    return sorted(differing, key=lambda entry: (-entry.share, entry.name))


def distance(x, y):
    """|x - y| / |y|, infinite where they have other shapes, or y is zero."""
    size = np.linalg.norm(y.astype(np.float64))
    if x.shape != y.shape or not size:
        return np.inf
    return float(np.linalg.norm(x.astype(np.float64) - y) / size)


def says(weights):
    """The weights that moved, the farthest first, in words."""
    if not weights:
        return translated("all weights are equal")
    first = [f"{entry.name} {entry.share:.1e}" for entry in weights[:MOST]]
    more = filled(", … ({n} in all)", n=len(weights)) if len(weights) > MOST else ""
    return filled("weights that moved, |A - B| / |B|: {first}", first=", ".join(first)) + more


def notes(a, b):
    """Lines on settings in which the two differ."""
    unlike = [name for name, value in vars(a.config).items() if value != getattr(b.config, name)]
    unlike = [name for name in unlike if name != "encoder"]
    pairs = [(name, getattr(a.config, name), getattr(b.config, name)) for name in unlike]
    line = "config: {name} is {ours!r}, in the other {theirs!r}"
    return [filled(line, name=name, ours=ours, theirs=theirs) for name, ours, theirs in pairs]
