"""Features of documents, one vector each, with positions and without; computed once and kept.

They are kept in MINITX_CACHE (an environment variable; without it, minitx in XDG_CACHE_HOME or ~/.cache), under the
sha256 of all that they depend on: weights, tokens, options, the code itself. The files can be deleted at any time.
Order: the versions of a model, one vector per document, all of them, the files. N documents, T tokens, D width.
"""

import hashlib
import io
import os
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np

import minitx

from . import inputs, results, stream

POOLS = {  # final features [T D] -> one vector [D]
    "mean": lambda x: x.mean(axis=0, dtype=np.float64).astype(x.dtype),
    "first": lambda x: x[0],
    "last": lambda x: x[-1]}
VERSIONS = "kept", "zero", "shuffled", "random"


def versions(model, seed=0):
    """The model as it is, with its positions at zero, with them shuffled, and with random weights: {name: model}."""
    rng, cfg, table = np.random.default_rng(seed), model.config, model.weights.W_pos
    mixed = np.array(table)
    mixed[cfg.offset:cfg.offset + cfg.n_ctx] = rng.permutation(inputs.reachable(model))
    return dict(zip(VERSIONS, (model, _with_positions(model, np.zeros_like(table)), _with_positions(model, mixed),
                               untrained(model, rng))))


def _with_positions(model, table):
    return replace(model, weights=SimpleNamespace(**vars(model.weights) | {"W_pos": table}))


def untrained(model, rng):
    """A model of the same shape: every array is Gaussian noise of the mean and deviation that it has."""
    def noise(x):
        if not isinstance(x, np.ndarray):
            return x
        mean, deviation = float(x.mean(dtype=np.float64)), float(x.std(dtype=np.float64))
        return (mean + deviation * rng.standard_normal(x.shape, np.float32)).astype(x.dtype)
    parts = [SimpleNamespace(**{name: noise(x) for name, x in vars(part).items()})
             for part in (model.weights, *model.layers)]
    return replace(model, weights=parts[0], layers=tuple(parts[1:]))


def of(model, documents, pool="mean", seed=0):
    """One vector for every document under every version of the model: {version: [N D]}.

    documents: token arrays [T_i], with a len; each passes alone, so that nothing is padded. pool: the mean over its
    tokens, special ones included, or the first or last token's features.
    ValueError for another pool, and for the first token of a causal model.
    """
    if pool not in POOLS:
        raise ValueError(f"--pool is {pool!r}; there are: {', '.join(POOLS)}")
    if pool == "first" and model.config.causal:
        raise ValueError("--pool first: the first token of a causal model sees nothing but itself; take mean or last")
    path = folder() / f"{digest(model, documents, pool, seed)}.npz"
    found = restored(path, (len(documents), len(VERSIONS), model.config.d_model))
    if found is None:
        models = [*versions(model, seed).values()]

        def measure(_, document):
            return {"pooled": np.array([POOLS[pool](minitx.forward(one, document)[0]) for one in models])}
        found = stream.gather(measure, documents, "documents", keep=("pooled",))["pooled"]
        keep(path, found)
    return {name: found[:, i] for i, name in enumerate(VERSIONS)}


def folder():
    """Where features are kept."""
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("MINITX_CACHE") or Path(caches) / "minitx") / "features"


def digest(model, documents, *options):
    """sha256 of all that features depend on: code, NumPy, options, weights, tokens."""
    found = hashlib.sha256(repr((np.__version__, options, model.config)).encode())
    for path in (*sorted(Path(minitx.__file__).parent.glob("*.py")), Path(__file__)):
        found.update(path.read_bytes())
    for part in (model.weights, *model.layers):
        for name, x in sorted(vars(part).items()):
            if isinstance(x, np.ndarray):
                found.update(f"{name} {x.dtype.str} {x.shape}".encode())
                found.update(np.ascontiguousarray(x))
    for document in documents:
        found.update(np.array([len(document), *document], "<i8"))
    return found.hexdigest()


def restored(path, shape):
    """What lies there [N versions D]; None if there is nothing, or it is damaged."""
    try:
        with np.load(path) as file:
            found = file["pooled"]
    except stream.DAMAGED:
        return None
    return found if found.shape == shape else None


def keep(path, found):
    """Write features in one step; where that is not possible, say so and go on."""
    content = io.BytesIO()
    np.savez(content, pooled=found)
    try:
        results.write(results.writable(path.parent) / path.name, content.getvalue())
    except OSError as error:
        print(f"minitx: features are not kept: {error}", file=sys.stderr)
