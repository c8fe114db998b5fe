"""All that the numbers of a run depend on: model, text, options and versions."""

import contextlib
import hashlib
import importlib.metadata
import platform
from pathlib import Path

import numpy as np

import minitx
from minitx import weights
from minitx.loading.finite import named_arrays
from minitx.weights import local

from ..machine.files import as_json
from ..texts import formats, joined

LISTED = {"bundled": weights.bundled, "zoo": weights.zoo}  # names of several models


def of_run(experiment, model, name, options):
    """All that the numbers depend on; `name` is the model as the user called it.

    Every file that was read is listed with its sha256, so that --resume takes no results of another
    model, text or version.
    """
    formats.valid(str(name), "MODEL")
    for option, value in options.items():
        given = value.name if isinstance(value, formats.Text) else value
        parts = joined.parts(given) if isinstance(given, str | tuple) else ()
        for part in parts:
            formats.valid(part, f"--{option}")
            if option in ("text", "sentence"):
                formats.not_empty(part, f"--{option}")
    values = {option.name: option.default for option in experiment.options} | options
    stated = {"experiment": experiment.name, "model": str(name)}
    stated |= origin(model)
    stated["dtype"] = dtype(model)
    stated["options"] = values
    reads_texts = model.config.picture is None
    stated["versions"] = versions(model.tokenizer.packages if reads_texts else ())
    if "others" in values:
        stated["others"] = {key: model_files(path) for key, path in others(values["others"])}
    if model.missing:  # weights alone are looked at, no text is read
        return stated | {"missing": list(model.missing)}
    return stated | {
        name: formats.described(values[name]) for name in _of_files(experiment, values)
    }


def origin(model):
    """The commit and the sha256 of what was read of a model; of one in memory, of its arrays."""
    folder = model.tokenizer.folder
    if folder is not None:
        return {"revision": revision(Path(folder))} | model_files(Path(folder))
    content = hashlib.sha256(repr(model.config).encode())
    for name, x in sorted(named_arrays(model).items()):
        content.update(f"{name} {x.dtype} {x.shape}".encode() + np.ascontiguousarray(x).tobytes())
    tokenizer = hashlib.sha256(model.tokenizer.as_json().encode())
    files = {"tokenizer in memory": tokenizer.hexdigest()}
    return {"revision": None, "weights": {"in memory": content.hexdigest()}, "files": files}


def _of_files(experiment, values):
    """Names of the options whose values name files, in alphabetical order."""
    options = sorted(experiment.options, key=lambda option: option.name)
    return [x.name for x in options if x.files is not None and values[x.name] in x.files]


def dtype(model):
    """Number format in which a model, perhaps a partial one, is computed."""
    for part in (model.weights, *model.layers):
        for x in vars(part).values():
            if isinstance(x, np.ndarray):
                return str(x.dtype)
    return "none"


def changes(model):
    """Names, such as W_Q.L3, of arrays that a program changed since the Model was loaded.

    None of a model in memory: its settings hold what its arrays are now.
    """
    folder = model.tokenizer.folder
    if folder is None:
        return []
    dtype_of = dtype(model)
    original = minitx.load(folder, "float32" if dtype_of == "none" else dtype_of, partial=True)
    if model.encoder is None and original.encoder is not None and not model.config.causal:
        original = original.encoder  # an encoder by itself
    names = _differences(model, original)
    if model.encoder is not None and original.encoder is not None:
        names += [f"encoder.{name}" for name in _differences(model.encoder, original.encoder)]
    return names


def _differences(model, original):
    """Names of what differs in two stacks."""
    names = [] if model.config == original.config else ["config"]
    names += _different_arrays(model.weights, original.weights)
    for i, (own, of_file) in enumerate(zip(model.layers, original.layers)):
        names += [f"{name}.L{i}" for name in _different_arrays(own, of_file)]
    if len(model.layers) != len(original.layers):
        names.append("layers")
    return names


def _different_arrays(a, b):
    """Names of what differs in two namespaces of arrays, those of cross-attention among them."""
    a, b = _flat(a), _flat(b)
    names = [name for name in a if name not in b or not np.array_equal(a[name], b[name])]
    return names + [name for name in b if name not in a]


def _flat(arrays):
    """{name: array} of a namespace; cross-attention's begin with cross_."""
    own = dict(vars(arrays))
    cross = own.pop("cross", None)
    if cross is not None:
        own |= {f"cross_{name}": x for name, x in vars(cross).items()}
    return own


def revision(folder):
    """Commit of a folder in the download cache; None for any other."""
    return folder.name if folder.parent.name == "snapshots" else None


def model_files(folder):
    """sha256 of all that is read of a model: its weights, and its other files."""
    return {"weights": hashes(folder), "files": _hashes(folder, (*local.TEXTS, local.INDEX))}


def hashes(folder):
    """sha256 of each weight file: one, or those that an index names, in subfolders too."""
    return _hashes(folder, local.shards(folder) or [local.MODEL])


def _hashes(folder, names):
    return {name: formats.sha256(folder / name) for name in names if (folder / name).is_file()}


def others(names):
    """(name, folder) of the models that the option `others` names, see `minitx run models`."""
    listed = LISTED[names]() if names in LISTED else names.split(",")
    stripped = filter(None, map(str.strip, listed))
    return [(name, weights.find(name)) for name in stripped]


def versions(of_texts=("tokenizers",)):
    """Versions of minitx, Python, and the packages that compute, tokenize or draw."""
    packages = ("numpy", "scipy", *of_texts, "matplotlib")
    installed = {}
    for package in packages:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            installed[package] = importlib.metadata.version(package)
    return {"minitx": minitx.__version__, "python": platform.python_version()} | installed


def key(stated):
    """Text that is the same for the same settings; True and 1 count as the same.

    Switches used to be numbers: a run that was interrupted then can still be resumed.
    """
    values = {
        name: int(value) if isinstance(value, bool) else value
        for name, value in stated["options"].items()
    }
    return hashlib.sha256(as_json(stated | {"options": values}).encode()).hexdigest()
