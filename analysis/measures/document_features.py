"""Features of documents, one vector each, with positions and without; computed once and kept.

They are kept in MINITX_CACHE (an environment variable; without it, minitx in XDG_CACHE_HOME or
~/.cache), under the sha256 of everything that they depend on: weights, tokens, options, the code
itself. The files can be deleted at any time. N documents, T tokens, D width.
"""

import functools
import hashlib
import sys
import threading
import weakref
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np

import minitx
from minitx.learning.parameters import parameters
from minitx.loading.files import as_floats
from minitx.machine.mapped import Mapped

from ..machine import files
from ..machine.files import cache, writable
from ..running import stream
from . import inputs, position_tables

POOLS = {  # final features [T D] -> one vector [D]
    "mean": lambda x: x.mean(axis=0, dtype=np.float64).astype(x.dtype),
    "first": lambda x: x[0],
    "last": lambda x: x[-1],
}
VERSIONS = "kept", "zero", "shuffled", "random"
LARGE = 1 << 24  # numbers of a model above which random ones take two bytes each


def versions(model, seed=0):
    """{name: model}: as it is, with positions at zero, with them shuffled, with random weights."""
    rng = np.random.default_rng(seed)
    cfg = model.config
    table = model.weights.W_pos
    mixed = np.array(table)
    mixed[cfg.offset : cfg.offset + cfg.n_ctx] = rng.permutation(inputs.reachable(model))
    changed = [position_tables.with_table(model, rows) for rows in (np.zeros_like(table), mixed)]
    return dict(zip(VERSIONS, (model, *changed, untrained(model, rng))))


_random: dict[int, tuple] = {}  # seed -> (the model, its random one), as long as both are in use
_lock = threading.Lock()


def random(model, seed):
    """`untrained` by a seed: the same Model for all who use it at one time."""
    with _lock:
        original, noise = (ref() for ref in _random.get(seed, (lambda: None,) * 2))
        if original is not model or noise is None:
            size = sum(x.size for x in parameters(model).values())
            noise = untrained(model, np.random.default_rng(seed), in_two_bytes=size > LARGE)
            _random[seed] = weakref.ref(model), weakref.ref(noise)
    return noise


def untrained(model, rng, in_two_bytes=False):
    """A model of the same shape with arrays of Gaussian noise, of their own mean and deviation.

    in_two_bytes: matrices are rounded to bfloat16, of which a product reads what it needs.
    """
    kept = _in_two_bytes if in_two_bytes else np.asarray
    noisy = []
    for part in (model.weights, *model.layers):
        arrays = {name: _noise_like(x, rng, kept) for name, x in vars(part).items()}
        noisy.append(SimpleNamespace(**arrays))
    return replace(model, weights=noisy[0], layers=tuple(noisy[1:]))


def _noise_like(x, rng, kept):
    """Gaussian noise of the mean and deviation of an array, kept(it); anything else as it is."""
    if isinstance(x, Mapped):
        x = np.asarray(x)
    if not isinstance(x, np.ndarray):
        return x
    mean, deviation = _mean_and_deviation(x)
    noise = rng.standard_normal(x.shape, np.float32)
    noise *= deviation  # in place, as an embedding may be the largest array of all
    noise += mean
    return kept(noise.astype(x.dtype, copy=False))


def _in_two_bytes(x):
    """A matrix of float32 as bfloat16, made in its own memory; any other array as it is."""
    if x.ndim != 2 or x.dtype != np.float32:
        return x
    bits = x.view(np.uint32)
    bits += 1 << 15  # half of what is cut off
    bits >>= 16
    bits = bits.astype(np.uint16)
    to_array = functools.partial(as_floats, stored="BF16", dtype=x.dtype)
    return Mapped(lambda: bits, to_array, x.shape, x.dtype)


def _mean_and_deviation(x):
    """Of all entries, added up in float64 row by row, so that nothing as large as x is made."""
    rows = x.reshape(len(x), -1) if x.ndim else x.reshape(1, 1)
    mean = rows.mean(dtype=np.float64)
    squares = [np.square(row - mean, dtype=np.float64).sum() for row in rows]
    return float(mean), float(np.sqrt(np.sum(squares) / x.size))


def pooled(model, documents, pool="mean", seed=0, run=stream.UNSAVED):
    """One vector for every document under every version of the model: {version: [N D]}.

    documents: a sequence of token arrays [T_i]; each goes through the model alone, so that nothing
    is padded. pool: the mean over a document's tokens, special ones included, or the first or last
    token's features. Raises ValueError for the first token of a causal model.
    """
    if pool == "first" and model.config.causal:
        raise ValueError(
            "--pool first: the first token of a causal model sees nothing but itself; "
            "take mean or last"
        )
    path = folder() / f"{digest(model, documents, pool, seed)}.npz"
    features = restored(path, (len(documents), len(VERSIONS), model.config.d_model))
    if features is None:
        features = _computed(versions(model, seed), documents, POOLS[pool], run)
        keep(path, features)
    return {name: features[:, i] for i, name in enumerate(VERSIONS)}


def _computed(models, documents, pool, run):
    """One vector for every document under each of these models: [N versions D]."""

    def measure(_, document):
        vectors = [pool(minitx.forward(model, document)[0]) for model in models.values()]
        return {"pooled": np.array(vectors)}

    return run.gather(measure, documents, "documents", keep=("pooled",))["pooled"]


def folder():
    """Where features are kept."""
    return cache() / "features"


def digest(model, documents, *options):
    """sha256 of all that features depend on: code, NumPy, options, weights, tokens."""
    sha256 = hashlib.sha256(repr((np.__version__, options, model.config)).encode())
    for path in (*sorted(Path(minitx.__file__).parent.rglob("*.py")), Path(__file__)):
        sha256.update(path.read_bytes())
    for part in (model.weights, *model.layers):
        for name, x in sorted(vars(part).items()):
            if isinstance(x, np.ndarray):
                sha256.update(f"{name} {x.dtype.str} {x.shape}".encode())
                sha256.update(np.ascontiguousarray(x))
    for document in documents:
        sha256.update(np.array([len(document), *document], "<i8"))
    return sha256.hexdigest()


def restored(path, shape):
    """Features [N versions D] from a file; None if there is none, or it is damaged."""
    try:
        with open(path, "rb") as file, np.load(file) as arrays:
            features = arrays["pooled"]
    except stream.DAMAGED:
        return None
    return features if features.shape == shape else None


def keep(path, features):
    """Write features to a file; if that is not possible, print a message and go on."""
    try:
        with files.writing(writable(path.parent) / path.name) as file:
            np.savez(file, pooled=features)
    except OSError as error:
        print(f"minitx: features are not kept: {error}", file=sys.stderr)
