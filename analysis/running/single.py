"""One experiment on one model: loaded, checked, run, and written where a command asks for files."""

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np

import minitx
from minitx import weights
from minitx.learning.saved import digest_of

from ..contract import own_texts, registry, results, sides
from ..machine.files import as_json
from . import blas, cluster, settings, stream


class Outcome(NamedTuple):
    """The results of one run, as the pages take them."""

    headline: dict
    result: dict  # the arrays
    says: str
    settings: dict
    figures: tuple  # SVG texts without a title, for a page that has its own
    answer: registry.Answer | None
    thumbnail: bytes = b""  # PNG
    note: str = ""  # how the options differ from those given for all


def run(name, model, options, client=None):
    """One experiment, by name, on a Model or a model's name -> Result; it leaves no files.

    client: of a Dask cluster, whose workers then measure the documents.

    Raises ValueError for an unknown experiment or option, before a model is loaded,
    and NotApplicable if the model lacks what the experiment needs.
    """
    if not isinstance(name, str):
        wanted = "the name of an experiment comes first, then the model"
        raise ValueError(f"{type(name).__name__} is not a name; {wanted}")
    experiment = registry.get(name.replace("_", "-"))
    side, options = sides.split(options)
    given = model
    if not isinstance(model, minitx.Model):
        experiment.checked(options)  # before the model is loaded
    model, called = loaded(given)
    experiment = registry.of_model(experiment, model)
    options = experiment.checked(options)
    part, stated = _stated(experiment, model, called, options | {"side": side})
    changed = settings.changes(model) if model is given else []
    if changed:  # so that --resume does not take the results for those of the files
        stated["changed"] = changed
    with blas.one_thread_of_blas(), cluster.of_client(client):
        return results.explained(experiment, experiment.run(part, **stated["options"]), stated)


def loaded(model):
    """A Model and its name; where a name is given, the model is loaded and checked for NaN."""
    if isinstance(model, minitx.Model):
        return model, _name_of(model)
    name = model
    model = minitx.load(weights.find(name), partial=True)
    minitx.check(model)
    return model, name


def _name_of(model):
    """The name of a model's folder, or the hub id of a download; else "in memory"."""
    if model.tokenizer is None:
        raise ValueError(
            "this model has no tokenizer; wanted one of minitx.load, or of "
            "minitx.from_transformers(model, tokenizer)"
        )
    if model.tokenizer.folder is None:
        return "in memory"
    folder = Path(model.tokenizer.folder).resolve()
    if settings.revision(folder):
        folder = folder.parent.parent  # models--ORG--NAME/snapshots/COMMIT
    return folder.name.removeprefix("models--").replace("--", "/")


def _stated(experiment, model, name, options):
    """The Model that an experiment reads, and the settings of the run, its options checked.

    Raises NotApplicable before any work.
    """
    wanted, options = sides.split(options)
    side = sides.side_of(experiment, model, wanted)
    part = sides.part(experiment, model, side)
    experiment.check(part)
    options = own_texts.with_own(experiment, model, options)
    if sides.has_own(experiment):
        options |= {sides.OPTION.name: side or sides.AUTO}
    stated = settings.of_run(experiment, part, name, experiment.checked(options))
    return part, stated | ({"side": side} if side else {})


def produce(experiment, model, name, options, out, resume=False, format="svg"):
    """Run, draw and write one experiment into the folder `out` -> Outcome.

    resume: go on with an interrupted run. format: of the figure's file.
    """
    experiment = registry.of_model(experiment, model)
    part, stated = _stated(experiment, model, name, options)
    resumable = stream.resumable(out, experiment.name, settings.key(stated), resume)
    with blas.one_thread_of_blas(), resumable as run:
        arrays = finished(experiment, stated, out) if resume else None
        if not arrays:
            arrays = experiment.run(part, run, **stated["options"])
        result = results.explained(experiment, arrays, stated)
        result.save(out, format)
    figures, thumbnail = result.drawn
    return Outcome(
        result.headline, result.arrays, result.says, stated, figures, result.answer, thumbnail
    )


def finished(experiment, stated, out):
    """The arrays of a run that ended in this folder with the same settings, or None."""
    about, data = (out / f"{experiment.name}{ending}" for ending in (".json", ".npz"))
    if not (about.is_file() and data.is_file()):  # opening a pipe would wait
        return None
    try:
        record = json.loads(about.read_text(encoding="utf-8"))
        with open(data, "rb") as file, np.load(file) as archive:
            arrays = dict(archive)
        is_same = record["settings"] == json.loads(as_json(stated))
        is_whole = record["sha256"] == digest_of("", arrays, arrays.get)
    except stream.DAMAGED:
        return None
    return arrays if is_same and is_whole else None


class Failure(NamedTuple):
    """Why there is no outcome."""

    reason: str
    left_out: bool  # the model lacks what the experiment needs, and nothing is wrong


class NoTime(Failure):
    """Left out by a plan: nothing is wrong with the model either."""


def failed(outcomes):
    """How many of {name: Outcome or Failure} went wrong."""
    return sum(isinstance(x, Failure) and not x.left_out for x in outcomes.values())
