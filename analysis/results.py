"""Run one experiment and write what it found: NAME.svg, NAME.npz (arrays), NAME.json (headline, settings).

The same inputs give the same bytes: nothing in these files tells the time or the machine.
"""

import hashlib
import importlib.metadata
import io
import json
import os
import platform
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from . import data, draw, progress, registry, stream


class Outcome(NamedTuple):
    """What one run left behind."""
    headline: dict
    result: dict  # the arrays
    says: str
    settings: dict
    svg: str      # the figure without its title, for a page that has its own


def settings(experiment, model, name, options):
    """All that the numbers depend on; `name` is the model as the user called it."""
    for option, value in options.items():
        data.valid(str(value), f"--{option}")
    folder = Path(model.tokenizer.folder)
    chosen = {option.name: option.default for option in experiment.options} | options
    found = {"experiment": experiment.name, "model": str(name), "revision": revision(folder),
             "weights": hashes(folder), "dtype": dtype(model), "options": chosen,
             "versions": versions()}
    if model.missing:
        found["missing"] = list(model.missing)
    texts = {name: chosen[name] for name in ("text", "test") if chosen.get(name) and not model.missing}
    return found | {name: data.described(text) for name, text in texts.items()}


def dtype(model):
    """Number format in which a model, perhaps a partial one, is computed."""
    arrays = (x for part in (model.weights, *model.layers) for x in vars(part).values())
    return next((str(x.dtype) for x in arrays if isinstance(x, np.ndarray)), "none")


def revision(folder):
    """Commit of a folder in the download cache; None for any other."""
    return folder.name if folder.parent.name == "snapshots" else None


def hashes(folder):
    """sha256 of each weight file."""
    return {path.name: sha256(path) for path in sorted(folder.glob("*.safetensors"))}


def sha256(path):
    """Hexadecimal digest of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def versions():
    """Python and the packages that compute or draw."""
    packages = ("numpy", "scipy", "tokenizers", "matplotlib")
    return {"python": platform.python_version()} | {p: importlib.metadata.version(p) for p in packages}


def writable(folder):
    """The folder, made if need be and tried out; OSError where files cannot be written."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    trial = folder / f".{os.getpid()}.tmp"
    trial.write_bytes(b"")
    trial.unlink()
    return folder


def write(path, content):
    """Replace a file in one step."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    draft.write_bytes(content if isinstance(content, bytes) else content.encode())
    os.replace(draft, path)


def as_json(value):
    """JSON text; ValueError for what JSON has no number for (NaN, infinities)."""
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False)


def words(value, digits=3):
    """A number for people: so many digits, lists with commas, 'none' for an empty one, a dash where there is none."""
    if isinstance(value, list):
        return ", ".join(words(one, digits) for one in value) or "none"
    if isinstance(value, float):
        return np.format_float_positional(value, digits, fractional=False, trim="-") if 1e-4 <= abs(value) < 1e6 \
            else f"{value:.{digits}g}"
    return "–" if value is None else str(value)


def produce(experiment, model, name, options, out, resume=False):
    """Run, draw and write one experiment into the folder `out` -> Outcome; resume: go on with an interrupted run."""
    experiment.check(model)
    stated = settings(experiment, model, name, options)
    key = hashlib.sha256(as_json(stated).encode()).hexdigest()
    with stream.resumable(out, experiment.name, key, resume):
        result = (finished(experiment, stated, out) if resume else None) or experiment.run(model, **options)
        result = {key: np.asarray(value) for key, value in result.items()}
        headline = registry.headline(experiment, result)
        says = experiment.says(result) if experiment.says else ""
        with draw.style():
            plain = draw.svg(experiment.draw(result))
        titled = draw.titled(plain, f"{experiment.asks}  ({name})")
        arrays = io.BytesIO()
        np.savez_compressed(arrays, **result)
        text = as_json({"headline": headline, "says": says, "settings": stated})
        for ending, content in ((".svg", titled), (".npz", arrays.getvalue()), (".json", text + "\n")):
            write(out / (experiment.name + ending), content)
    return Outcome(headline, result, says, stated, plain)


def finished(experiment, stated, out):
    """The arrays of a run that ended in this folder with the same settings; None if there is none."""
    try:
        told = json.loads((out / f"{experiment.name}.json").read_text(encoding="utf-8"))
        with np.load(out / f"{experiment.name}.npz") as arrays:
            return dict(arrays) if told["settings"] == json.loads(as_json(stated)) else None
    except stream.DAMAGED:
        return None


def no_tokenizer(model):
    """Whether the model's folder has none."""
    try:
        model.tokenizer.encode("a")
    except FileNotFoundError:
        return True
    return False


class Failure(NamedTuple):
    """Why there is no outcome; left_out: the model lacks what the experiment needs, and nothing is wrong."""
    reason: str
    left_out: bool


def failed(found):
    """How many of {name: Outcome or Failure} went wrong."""
    return sum(isinstance(x, Failure) and not x.left_out for x in found.values())


def every(experiments, model, name, options, out, resume=False):
    """Produce each of these experiments -> yields (experiment, Outcome or Failure, seconds), a line on stdout for each.

    options: those that an experiment has are passed on to it.
    """
    for experiment in experiments:
        progress.show(f"{experiment.name} …")
        begin, state = time.monotonic(), ""
        chosen = {option.name: options[option.name] for option in experiment.options if option.name in options}
        try:
            found = produce(experiment, model, name, chosen, out, resume)
        except Exception as error:  # the others must not be lost with it
            unfit = isinstance(error, registry.Unfit) or isinstance(error, FileNotFoundError) and no_tokenizer(model)
            found = Failure(str(error) if unfit else f"{type(error).__name__}: {error}", unfit)
            state = f"  {'left out' if unfit else 'failed'}: {found.reason}"
        seconds = time.monotonic() - begin
        progress.show("")
        print(f"{experiment.name:18} {seconds:6.1f} s{state}", flush=True)
        yield experiment, found, seconds
